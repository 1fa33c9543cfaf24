/* SPDX-License-Identifier: BSD-3-Clause */
/* Which arguments EAL gets, on machines of all kinds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "eal_setup.h"
#include "hugepages.h"

#define MB (UINT64_C(1) << 20)

static struct hb_eal_plan plan;

/* The plan as one line, without what quietens the log. */
static const char *plan_for(const char *words, const struct hb_machine *machine)
{
    static char line[2048];
    static char *argv[48], copy[1024];
    char problem[HB_TEXT_SIZE], *rest = copy;
    struct hb_command_line split;
    struct hb_options options;
    int argc = 0;

    snprintf(copy, sizeof(copy), "%s", words);
    argv[argc++] = "hd";
    for (char *word; (word = strsep(&rest, " ")) != NULL;)
        if (*word != '\0')
            argv[argc++] = word;
    argv[argc] = NULL;
    assert_int_equal(hb_command_line_split(argc, argv, &split, problem), 0);
    assert_int_equal(hb_options_parse(split.own_count, split.own, &options, problem), 0);
    assert_int_equal(hb_eal_make_plan(argv[0], &split, &options, machine, &plan, problem), 0);
    line[0] = '\0';
    for (int i = 0; i < plan.count; i++) {
        if (strncmp(plan.argument[i], "--log-level=", 12) == 0)
            continue;
        strcat(line, i > 0 ? " " : "");
        strcat(line, plan.argument[i]);
    }
    assert_null(plan.argument[plan.count]);
    return line;
}

static struct hb_machine make_machine(uint32_t cpus, uint32_t queues, uint64_t huge_mb)
{
    struct hb_machine machine = {.hugepage_bytes = huge_mb * MB, .cpus = cpus, .queues = queues};

    for (uint32_t i = 0; i < cpus; i++)
        machine.cpu[i] = (uint16_t)i;
    return machine;
}

static void an_interface_alone_is_enough(void **state)
{
    struct hb_machine machine = make_machine(4, 1, 4096);

    (void)state;
    assert_string_equal(plan_for("--interface eth0", &machine),
                        "hd -l 0,1 --in-memory --no-pci --iova-mode=va");
    assert_string_equal(plan.remark, "");
    machine.queues = 2;
    assert_string_equal(plan_for("--interface eth0", &machine),
                        "hd -l 0,1,2 --in-memory --no-pci --iova-mode=va");
    machine.queues = 64; /* never more workers than CPUs */
    assert_string_equal(plan_for("--interface eth0", &machine),
                        "hd -l 0,1,2,3 --in-memory --no-pci --iova-mode=va");
    machine = make_machine(1, 8, 4096);
    machine.cpu[0] = 5;
    assert_string_equal(plan_for("--interface eth0", &machine),
                        "hd --lcores 0@5,1@5 --in-memory --no-pci --iova-mode=va");
}

/* BL-54: CPU numbers with holes. */
static void cpus_need_not_be_in_a_row(void **state)
{
    struct hb_machine machine = make_machine(3, 2, 4096);

    (void)state;
    machine.cpu[0] = 2, machine.cpu[1] = 64, machine.cpu[2] = 128;
    assert_string_equal(plan_for("--interface eth0", &machine),
                        "hd -l 2,64,128 --in-memory --no-pci --iova-mode=va");
}

static void what_the_user_says_stays(void **state)
{
    struct hb_machine machine = make_machine(4, 1, 4096);

    (void)state;
    assert_string_equal(plan_for("-l 0,3 -- --interface eth0", &machine),
                        "hd -l 0,3 --in-memory --no-pci --iova-mode=va");
    assert_string_equal(plan_for("--lcores=0@0,1@0 -a 0000:3b:00.0 --", &machine),
                        "hd --lcores=0@0,1@0 -a 0000:3b:00.0 --in-memory");
    assert_string_equal(plan_for("-l0,1 --file-prefix x --vdev net_null0", &machine),
                        "hd -l0,1 --file-prefix x --vdev net_null0 --no-pci --iova-mode=va");
    assert_string_equal(plan_for("-l 0,1 --single-file-segments --iova-mode=pa", &machine),
                        "hd -l 0,1 --single-file-segments --iova-mode=pa --no-pci");
    machine.hugepage_bytes = 0; /* memory options: EAL is told nothing else, and complains itself */
    assert_string_equal(plan_for("-l 0,1 -m 512 --no-pci", &machine),
                        "hd -l 0,1 -m 512 --no-pci --in-memory");
    plan_for("-l 0,1 --log-level=debug", &machine);
    assert_true(plan.user_sets_logs);
}

/* BL-106: what is needed is compared with what is free, to the page. */
static void hugepages_are_used_when_there_are_enough(void **state)
{
    struct hb_machine machine = make_machine(2, 1, 4096);
    uint64_t needed;

    (void)state;
    plan_for("--interface eth0", &machine);
    needed = plan.memory_mb;
    assert_in_range(needed, 100, 400);
    for (int round = 0; round < 4; round++) {
        const uint64_t free_mb[] = {0, 64, needed - 1, needed};
        char words[64];

        machine.hugepage_bytes = free_mb[round] * MB;
        plan_for("--interface eth0", &machine);
        assert_int_equal(plan.no_huge, round < 3);
        if (!plan.no_huge) {
            assert_string_equal(plan.remark, "");
            continue;
        }
        snprintf(words, sizeof(words), "%d MB of hugepages are free and about %d MB",
                 (int)free_mb[round], (int)needed);
        assert_non_null(strstr(plan.remark, words));
        assert_non_null(strstr(plan.remark, "half the speed"));
        assert_non_null(strstr(plan.remark, "/proc/sys/vm/nr_hugepages"));
    }
}

static void ordinary_memory_has_its_own_arguments(void **state)
{
    struct hb_machine machine = make_machine(2, 1, 0);

    (void)state;
    /* EAL does not take --in-memory with --no-huge, and its default of 64 MB is too little. */
    assert_non_null(strstr(plan_for("--interface eth0", &machine), "--no-huge -m "));
    assert_non_null(strstr(plan_for("--interface eth0", &machine), " --no-shconf "));
    assert_null(strstr(plan_for("--interface eth0", &machine), "--in-memory"));
    machine.hugepage_bytes = 4096 * MB;
    assert_non_null(strstr(plan_for("--no-huge -l 0,1 --", &machine), "-m "));
    assert_string_equal(plan.remark, ""); /* that was a wish */
    assert_string_equal(plan_for("--no-huge -m 700 -l 0,1 --", &machine),
                        "hd --no-huge -m 700 -l 0,1 --no-shconf --no-pci --iova-mode=va");
}

static void memory_grows_with_flows_ports_and_workers(void **state)
{
    struct hb_machine machine = make_machine(8, 0, 1 << 20);
    uint64_t one, more;

    (void)state;
    plan_for("-l 0,1 --vdev net_null0 -- --flows 1M", &machine), one = plan.memory_mb;
    plan_for("-l 0,1 --vdev net_null0 -- --flows 16M", &machine), more = plan.memory_mb;
    assert_in_range(more - one, 15 * 32 - 2, 15 * 32 + 2);
    plan_for("-l 0,1 --vdev net_null0 --vdev=net_null1 -- --flows 1M", &machine);
    assert_true(plan.memory_mb > one);
    plan_for("-l 0,1 --vdev net_null0 -- --flows 1M --flows6 1M", &machine);
    assert_true(plan.memory_mb > one + 40 && plan.memory_mb < one + 64);
    plan_for("-l 0,1 --vdev net_null0 -- --flows 1M --mbufs 1K",
             &machine); /* the rings hold more */
    assert_int_equal(plan.memory_mb, one);
    plan_for("-l 0,1 --vdev net_null0 -- --flows 1M --mbufs 1M", &machine);
    assert_true(plan.memory_mb > one + 2000);
    plan_for("-l 0,1 --vdev net_null0 -- --flows 1M --mbufs 1M --mbuf-size 128", &machine);
    assert_true(plan.memory_mb > one + 500 && plan.memory_mb < one + 700);
    plan_for("-l 0-4 --vdev net_null0 -- --flows 1M", &machine), more = plan.memory_mb;
    assert_true(more > one);
    plan_for("--lcores (0-4)@0 --vdev net_null0 -- --flows 1M", &machine);
    assert_int_equal(plan.memory_mb, more);
    plan_for("--lcores 0@(0,5,6),1@2,2@3,3@4,4@5 --vdev net_null0 -- --flows 1M", &machine);
    assert_int_equal(plan.memory_mb, more);
    plan_for("-c 1f --vdev net_null0 -- --flows 1M", &machine);
    assert_int_equal(plan.memory_mb, more);
}

static void write_count(const char *folder, const char *size, const char *count)
{
    char path[256];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", folder, size);
    mkdir(path, 0700);
    snprintf(path, sizeof(path), "%s/%s/free_hugepages", folder, size);
    file = fopen(path, "w");
    assert_non_null(file);
    fputs(count, file);
    fclose(file);
}

static void hugepages_of_all_sizes_count(void **state)
{
    char folder[] = "/tmp/hb-test-huge-XXXXXX", command[64];

    (void)state;
    assert_non_null(mkdtemp(folder));
    assert_int_equal(hb_hugepages_free(folder), 0);
    write_count(folder, "hugepages-2048kB", "600\n");
    assert_int_equal(hb_hugepages_free(folder), 1200 * MB);
    write_count(folder, "hugepages-1048576kB", "3\n");
    assert_int_equal(hb_hugepages_free(folder), (1200 + 3072) * MB);
    write_count(folder, "hugepages-64kB", "nonsense\n");
    assert_int_equal(hb_hugepages_free(folder), (1200 + 3072) * MB);
    assert_int_equal(hb_hugepages_free("/nonexistent"), 0);
    snprintf(command, sizeof(command), "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_interface_alone_is_enough),
        cmocka_unit_test(cpus_need_not_be_in_a_row),
        cmocka_unit_test(what_the_user_says_stays),
        cmocka_unit_test(hugepages_are_used_when_there_are_enough),
        cmocka_unit_test(ordinary_memory_has_its_own_arguments),
        cmocka_unit_test(memory_grows_with_flows_ports_and_workers),
        cmocka_unit_test(hugepages_of_all_sizes_count),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
