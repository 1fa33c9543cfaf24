/* SPDX-License-Identifier: BSD-3-Clause */
/* hash_fixture.h: servers S0, S1, ... and keys for the tests of hashing methods. */
#ifndef HB_TESTS_HASH_FIXTURE_H
#define HB_TESTS_HASH_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hashing/h32.h"
#include "hashing/hash_method.h"
#include "table_fixture.h"

struct servers {
    struct hb_table_member *members;
    char (*names)[16];
    struct hb_table_request request; /* of these members; change what a test needs */
};

/* S0, S1, ...: weight 1, bucket and id the number in the name. */
static inline struct servers make_servers(uint32_t count)
{
    struct servers servers = {0};

    servers.members = calloc(count, sizeof(*servers.members));
    servers.names = calloc(count, sizeof(*servers.names));
    for (uint32_t i = 0; i < count; i++) {
        snprintf(servers.names[i], sizeof(servers.names[i]), "S%u", i);
        servers.members[i] = (struct hb_table_member){
            .identity = servers.names[i], .weight = 1, .id = (uint16_t)i, .bucket = i};
    }
    servers.request = (struct hb_table_request){
        .members = servers.members, .count = count, .slots = 65537, .seed = 1};
    return servers;
}

static inline void free_servers(struct servers *servers)
{
    free(servers->members);
    free(servers->names);
}

/* The owners of the first `keys` published keys; NULL when the method refuses. Freed by the caller.
 */
static inline uint32_t *ask_owners(const struct hb_hash_method *method,
                                   const struct hb_table_request *request, uint32_t keys)
{
    struct hb_key_source source = {HB_KEY_SEED};
    uint32_t *owners = calloc(keys, sizeof(*owners));
    char key[HB_KEY_TEXT];
    void *state;

    if (method->prepare(request, &state) != HB_TABLE_OK) {
        free(owners);
        return NULL;
    }
    for (uint32_t i = 0; i < keys; i++) {
        size_t size = hb_next_key(&source, key);

        owners[i] = method->owner(state, key, size);
    }
    method->release(state);
    return owners;
}

#endif
