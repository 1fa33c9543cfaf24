/* SPDX-License-Identifier: BSD-3-Clause */
/* "Did you mean": which name a mistyped word is near to. */
#include <stdint.h>
#include <string.h>

#include "command_line.h"

/* Edits from one word to the other: insert, delete, replace, or swap neighbours (the optimal string
 * alignment distance). Words longer than the rows here are not worth a guess. */
static unsigned count_edits(const char *from, const char *to)
{
    enum { LONGEST = 24 };
    unsigned cost[LONGEST + 1][LONGEST + 1];
    size_t from_size = strlen(from), to_size = strlen(to), i, j;

    if (from_size > LONGEST || to_size > LONGEST)
        return UINT32_MAX;
    for (i = 0; i <= from_size; i++) {
        for (j = 0; j <= to_size; j++) {
            unsigned best;

            if (i == 0 || j == 0) {
                cost[i][j] = (unsigned)(i + j);
                continue;
            }
            best = cost[i - 1][j - 1] + (from[i - 1] != to[j - 1]);
            if (cost[i - 1][j] + 1 < best)
                best = cost[i - 1][j] + 1;
            if (cost[i][j - 1] + 1 < best)
                best = cost[i][j - 1] + 1;
            if (i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1] &&
                cost[i - 2][j - 2] + 1 < best)
                best = cost[i - 2][j - 2] + 1;
            cost[i][j] = best;
        }
    }
    return cost[from_size][to_size];
}

/* The nearest name when it is near: at most a third of its letters wrong, or begun alike. */
void hb_consider(const char *word, const char *name, const char **nearest, unsigned *best)
{
    unsigned edits = count_edits(word, name);

    if (strlen(word) >= 3 && strncmp(word, name, strlen(word)) == 0)
        edits = 1;
    if (edits < *best && edits * 3 <= strlen(name) + 2) {
        *best = edits;
        *nearest = name;
    }
}
