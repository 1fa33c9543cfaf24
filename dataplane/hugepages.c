/* SPDX-License-Identifier: BSD-3-Clause */
/* See hugepages.h. */
#include "hugepages.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>

uint64_t hb_hugepages_free(const char *folder)
{
    DIR *sizes = opendir(folder);
    uint64_t bytes = 0;
    const struct dirent *entry;

    if (sizes == NULL)
        return 0;
    while ((entry = readdir(sizes)) != NULL) {
        char path[512];
        uint64_t kilobytes, count;
        FILE *file;

        if (sscanf(entry->d_name, "hugepages-%" SCNu64 "kB", &kilobytes) != 1)
            continue;
        snprintf(path, sizeof(path), "%s/%s/free_hugepages", folder, entry->d_name);
        file = fopen(path, "re");
        if (file == NULL)
            continue;
        if (fscanf(file, "%" SCNu64, &count) == 1)
            bytes += count * kilobytes * 1024;
        fclose(file);
    }
    closedir(sizes);
    return bytes;
}
