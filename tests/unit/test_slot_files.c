/* SPDX-License-Identifier: BSD-3-Clause */
/* A control that comes back knows who owned each slot: from its files, from the dataplane's
 * generation; and what is not usable of either does no harm. */
#include "model_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "slot_files.h"
#include "take_over.h"

static const struct hb_held_tables nothing_held = {0};
static char folder[] = "/tmp/hb-slots-XXXXXX", inner[64];

static int make_folder(void **state)
{
    (void)state;
    if (mkdtemp(folder) == NULL)
        return -1;
    snprintf(inner, sizeof(inner), "%s/state.json.slots", folder); /* made when it is needed */
    return 0;
}

static int remove_folder(void **state)
{
    char command[128];

    (void)state;
    snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    return system(command);
}

static int save(const char *to, const struct hb_model_pool *pool)
{
    size_t size;
    void *file = hb_slot_file_make(pool, &size);
    int error = hb_slot_file_put(to, pool->name, file, size);

    free(file);
    return error;
}

/* Backend 2 of 4 is drained: its slots are unsettled. */
static struct hb_model *make_past(struct hb_plan *plan)
{
    struct hb_model *model = hb_model_new();

    apply(model, make_web(4));
    resolve_all(model);
    all_up(model);
    reconcile(model, plan);
    hb_backend_state_apply(&backend_at(model, "web", "198.51.100.2")->state, HB_EVENT_DRAIN, 2, 2,
                           NOW_MS, NOW_MS);
    reconcile(model, plan);
    assert_true(model->pools[0].history.unsettled_count > 40);
    return model;
}

/* The same backends with other ids; nothing known but what is loaded after this. */
static struct hb_model *restart(void)
{
    struct hb_model *model = hb_model_new();

    hb_ids_claim(model->backend_ids, "another pool's", NULL, NULL);
    apply(model, make_web(4));
    resolve_all(model);
    all_up(model);
    hb_backend_state_apply(&backend_at(model, "web", "198.51.100.2")->state, HB_EVENT_DRAIN, 2, 2,
                           NOW_MS, NOW_MS);
    return model;
}

static void assert_same_past(struct hb_model *a, struct hb_model *b)
{
    const struct hb_slot_history *before = &a->pools[0].history, *after = &b->pools[0].history;

    assert_int_equal(after->slots, before->slots);
    assert_int_equal(after->unsettled_count, before->unsettled_count);
    for (uint32_t slot = 0; slot < before->slots; slot++) {
        assert_int_equal(after->owner[slot], before->owner[slot] + 1);
        assert_int_equal(hb_slot_is_unsettled(after->unsettled, slot),
                         hb_slot_is_unsettled(before->unsettled, slot));
        if (hb_slot_is_unsettled(after->unsettled, slot))
            assert_int_equal(after->previous[slot], before->previous[slot] + 1);
    }
}

static void a_file_brings_it_back(void **state)
{
    struct hb_plan plan = {0};
    struct hb_model *before = make_past(&plan), *after = restart();
    struct stat about;

    (void)state;
    assert_int_equal(hb_slot_file_load(inner, &after->pools[0], after->table_seed), -ENOENT);
    assert_int_equal(save(inner, &before->pools[0]), 0);
    assert_int_equal(stat(inner, &about), 0);
    assert_int_equal(about.st_mode & 0777, 0700);
    assert_int_equal(hb_slot_file_load(inner, &after->pools[0], after->table_seed), 0);
    assert_same_past(before, after);
    reconcile(after, &plan);
    assert_same_past(before, after); /* the table is the one it was */
    hb_model_free(before);
    hb_model_free(after);
    hb_plan_clear(&plan);
}

/* While control was away its configuration lost one backend, and one went down. */
static void changes_while_away_are_changes(void **state)
{
    struct hb_plan plan = {0};
    struct hb_model *before = make_past(&plan), *after = hb_model_new();
    const struct hb_slot_history *past;
    uint16_t owner[251];

    (void)state;
    memcpy(owner, before->pools[0].owner, sizeof(owner));
    assert_int_equal(save(inner, &before->pools[0]), 0);
    apply(after, make_web(3));
    resolve_all(after);
    all_up(after);
    for (int times = 0; times < 2; times++)
        probe(after, "web", "198.51.100.1", false);
    past = &after->pools[0].history;
    assert_int_equal(hb_slot_file_load(inner, &after->pools[0], after->table_seed), 0);
    reconcile(after, &plan);
    for (uint32_t slot = 0; slot < 251; slot++) {
        bool was_marked = hb_slot_is_unsettled(before->pools[0].history.unsettled, slot);

        if (was_marked && before->pools[0].history.previous[slot] != 4) /* ids are the same */
            assert_int_equal(past->previous[slot], before->pools[0].history.previous[slot]);
        else if (!was_marked && owner[slot] == 1)
            assert_int_equal(past->previous[slot], 1);
        else if (!was_marked && owner[slot] == 4) /* its flows are dead */
            assert_false(hb_slot_is_unsettled(past->unsettled, slot));
    }
    hb_model_free(before);
    hb_model_free(after);
    hb_plan_clear(&plan);
}

static void a_bad_file_is_as_none(void **state)
{
    struct hb_plan plan = {0};
    struct hb_model *before = make_past(&plan), *after = restart();
    struct hb_model_pool *pool = &after->pools[0];
    char path[128], command[200];
    uint8_t bytes[4096];
    FILE *file;
    size_t size;

    (void)state;
    assert_int_equal(save(inner, &before->pools[0]), 0);
    snprintf(command, sizeof(command), "ls '%s'", inner);
    file = popen(command, "r");
    snprintf(path, sizeof(path), "%s/", inner);
    assert_non_null(fgets(path + strlen(path), 32, file));
    path[strlen(path) - 1] = '\0';
    pclose(file);
    assert_int_equal(hb_slot_file_load(inner, pool, 4711), -EBADMSG); /* another seed */
    file = fopen(path, "r");
    size = fread(bytes, 1, sizeof(bytes), file);
    fclose(file);
    assert_in_range(size, 1000, 2000);
    for (size_t length = 0; length < size; length += 13) {
        file = fopen(path, "w");
        fwrite(bytes, 1, length, file);
        fclose(file);
        assert_int_equal(hb_slot_file_load(inner, pool, after->table_seed), -EBADMSG);
    }
    for (size_t at = 0; at < size; at += 7) {
        bytes[at] ^= 0x40;
        file = fopen(path, "w");
        fwrite(bytes, 1, size, file);
        fclose(file);
        assert_int_equal(hb_slot_file_load(inner, pool, after->table_seed), -EBADMSG);
        bytes[at] ^= 0x40;
    }
    assert_null(pool->history.owner);
    assert_int_equal(save("/proc/nowhere", &before->pools[0]), -ENOENT);
    hb_model_free(before);
    hb_model_free(after);
    hb_plan_clear(&plan);
}

static void files_go_with_their_pools(void **state)
{
    struct hb_plan plan = {0};
    struct hb_model *model = make_past(&plan), *empty = hb_model_new(), *after = restart();

    (void)state;
    assert_int_equal(save(inner, &model->pools[0]), 0);
    hb_slot_files_prune(inner, model);
    assert_int_equal(hb_slot_file_load(inner, &after->pools[0], after->table_seed), 0);
    hb_slot_files_prune(inner, empty);
    assert_int_equal(hb_slot_file_load(inner, &after->pools[0], after->table_seed), -ENOENT);
    hb_slot_files_prune("/nowhere", empty);
    hb_model_free(model);
    hb_model_free(after);
    hb_model_free(empty);
    hb_plan_clear(&plan);
}

/* No file, but the dataplane serves on; its ids are those of the old control. */
static void the_generation_brings_it_back(void **state)
{
    struct hb_plan plan = {0};
    struct hb_model *before = make_past(&plan), *after = restart();
    struct hb_table_record *table;
    void *blob;
    size_t size;

    (void)state;
    assert_int_equal(hb_generation_encode(&plan, 7, &nothing_held, &blob, &size), 0);
    hb_take_over_tables(after, blob);
    assert_same_past(before, after);
    hb_model_free(after);

    /* Bodies that do not lie in the blob, or are not carried, say nothing. */
    table = (void *)((uint8_t *)blob + ((struct hb_generation_header *)blob)->tables.offset);
    for (int wrong = 0; wrong < 4; wrong++) {
        struct hb_table_record right = *table;

        table->offset = wrong == 0 ? 0 : wrong == 1 ? (size + 63) & ~UINT64_C(63) : right.offset;
        table->slots = wrong == 2 ? 5000011 : wrong == 3 ? 3 : right.slots;
        after = restart();
        hb_take_over_tables(after, blob);
        assert_null(after->pools[0].history.owner);
        hb_model_free(after);
        *table = right;
    }
    free(blob);
    hb_model_free(before);
    hb_plan_clear(&plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_brings_it_back),
        cmocka_unit_test(changes_while_away_are_changes),
        cmocka_unit_test(a_bad_file_is_as_none),
        cmocka_unit_test(files_go_with_their_pools),
        cmocka_unit_test(the_generation_brings_it_back),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
