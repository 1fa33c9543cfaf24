/* SPDX-License-Identifier: BSD-3-Clause */
/* halbachctl doctor against machines that are made of files. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "ctl.h"
#include "doctor.h"
#include "json.h"

static char root[64];

static void write_file(const char *path, const char *text)
{
    char full[512];
    FILE *file;

    snprintf(full, sizeof(full), "%s%s", root, path);
    for (char *slash = strchr(full + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        assert_true(mkdir(full, 0700) == 0 || errno == EEXIST);
        *slash = '/';
    }
    file = fopen(full, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void add_cpu(unsigned cpu, const char *governor, const char *siblings)
{
    char path[128];

    snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/cpufreq/scaling_governor", cpu);
    write_file(path, governor);
    snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/topology/thread_siblings_list",
             cpu);
    write_file(path, siblings);
}

static void add_worker(unsigned process, unsigned number, const char *cpus)
{
    char path[128], text[64];

    snprintf(path, sizeof(path), "/proc/%u/task/%u/comm", process, process + 1 + number);
    snprintf(text, sizeof(text), "rte-worker-%u\n", number);
    write_file(path, text);
    snprintf(path, sizeof(path), "/proc/%u/task/%u/status", process, process + 1 + number);
    snprintf(text, sizeof(text), "Name:\tx\nCpus_allowed_list:\t%s\n", cpus);
    write_file(path, text);
}

/* Nothing costs speed here: two workers on CPU 2 and 3, one NIC beside them. */
static int make_good_machine(void **state)
{
    (void)state;
    snprintf(root, sizeof(root), "/tmp/hb-test-doctor-XXXXXX");
    assert_non_null(mkdtemp(root));
    write_file("/proc/meminfo", "MemTotal: 1 kB\nHugePages_Total:    1024\nHugePages_Free:      7\n"
                                "Hugepagesize:       2048 kB\n");
    write_file("/proc/100/comm", "halbach-datapla\n");
    write_file("/proc/200/comm", "halbach-control\n");
    add_worker(100, 1, "2");
    add_worker(100, 2, "3");
    for (unsigned cpu = 0; cpu < 4; cpu++) {
        char alone[8];

        snprintf(alone, sizeof(alone), "%u\n", cpu);
        add_cpu(cpu, cpu < 2 ? "powersave\n" : "performance\n", alone);
    }
    write_file("/sys/devices/system/cpu/isolated", "2-3\n");
    write_file("/sys/devices/system/cpu/nohz_full", "2-3\n");
    write_file("/sys/devices/system/node/node0/cpulist", "0-1\n");
    write_file("/sys/devices/system/node/node1/cpulist", "2-3\n");
    write_file("/sys/class/net/eth0/ifindex", "2\n");
    write_file("/sys/class/net/eth0/device/numa_node", "1\n");
    write_file("/sys/class/net/eth0/device/current_link_speed", "16.0 GT/s PCIe\n");
    write_file("/sys/class/net/eth0/device/max_link_speed", "16.0 GT/s PCIe\n");
    write_file("/sys/class/net/eth0/device/current_link_width", "16\n");
    write_file("/sys/class/net/eth0/device/max_link_width", "16\n");
    return 0;
}

static int remove_machine(void **state)
{
    char command[128];

    (void)state;
    snprintf(command, sizeof(command), "rm -rf %s", root);
    return system(command);
}

static json_t *examine(const char *device)
{
    const char *devices[] = {device};
    json_t *findings = json_array();

    hb_doctor_examine(root, devices, device != NULL, findings);
    return findings;
}

/* Exactly this check costs speed, it says nothing else as well, and its text and remedy have these
 * words. */
static void expect_cost(const char *check, const char *words, const char *remedy)
{
    json_t *findings = examine("eth0");
    const json_t *finding;
    bool found = false;
    size_t i;

    json_array_foreach (findings, i, finding) {
        const char *name = hb_json_text(finding, "check");

        if (strcmp(hb_json_text(finding, "level"), "costs") != 0 && strcmp(name, check) != 0)
            continue;
        if (strcmp(name, check) != 0 || found)
            fail_msg("%s: %s", name, hb_json_text(finding, "text"));
        found = true;
        assert_non_null(strstr(hb_json_text(finding, "text"), words));
        assert_non_null(strstr(hb_json_text(finding, "remedy"), remedy));
    }
    assert_true(found);
    json_decref(findings);
}

static void test_good_machine(void **state)
{
    json_t *findings = examine("eth0");
    const json_t *finding;
    size_t i;

    (void)state;
    json_array_foreach (findings, i, finding)
        assert_string_equal(hb_json_text(finding, "level"), "ok");
    assert_int_equal(json_array_size(findings), 8);
    json_decref(findings);
}

static void test_each_cost(void **state)
{
    static const struct {
        const char *file, *text, *check, *words, *remedy;
    } rows[] = {
        {"/proc/meminfo", "HugePages_Total: 0\n", "hugepages", "half the speed", "nr_hugepages"},
        {"/sys/devices/system/cpu/cpu3/cpufreq/scaling_governor", "schedutil\n", "governor",
         "CPU 3 has 'schedutil'", "cpupower"},
        {"/sys/devices/system/cpu/isolated", "2\n", "isolated", "CPU 3", "isolcpus="},
        {"/sys/devices/system/cpu/nohz_full", "\n", "ticks", "CPU 2", "nohz_full="},
        {"/sys/devices/system/cpu/cpu2/topology/thread_siblings_list", "2-3\n", "siblings",
         "workers on CPU 2 and 3 share one core", "one CPU of each core"},
        {"/sys/devices/system/cpu/cpu3/topology/thread_siblings_list", "1,3\n", "siblings",
         "CPU 3 shares its core", "idle"},
        {"/sys/class/net/eth0/device/numa_node", "0\n", "numa",
         "eth0 is on NUMA node 0, the worker on CPU 2 is on 1", "-l"},
        {"/sys/class/net/eth0/device/current_link_width", "8\n", "pcie", "x8 of 16.0 GT/s PCIe x16",
         "slot"},
        {"/proc/100/task/103/status", "Cpus_allowed_list:\t2\n", "workers", "share CPU 2", "-l"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        write_file(rows[i].file, rows[i].text);
        expect_cost(rows[i].check, rows[i].words, rows[i].remedy);
        remove_machine(state);
        make_good_machine(state);
    }
}

/* They do not know of each other. */
static void test_two_dataplanes(void **state)
{
    json_t *findings;

    (void)state;
    write_file("/proc/300/comm", "halbach-datapla\n");
    add_worker(300, 1, "2");
    expect_cost("workers", "2 workers share CPU 2", "-l");
    add_worker(300, 2, "2");
    expect_cost("workers", "3 workers share CPU 2", "-l");
    add_worker(300, 1, "0");
    add_worker(300, 2, "1");
    findings = examine(NULL);
    assert_string_equal(hb_json_text(json_array_get(findings, 0), "text"),
                        "4 workers, each on a CPU of its own");
    json_decref(findings);
}

static void test_unknown_device_and_no_dataplane(void **state)
{
    json_t *findings;

    (void)state;
    write_file("/proc/100/comm", "sshd\n");
    findings = examine("eth9");
    assert_int_equal(json_array_size(findings), 3);
    assert_string_equal(hb_json_text(json_array_get(findings, 0), "level"), "unknown");
    assert_string_equal(hb_json_text(json_array_get(findings, 2), "level"), "missing");
    assert_non_null(strstr(hb_json_text(json_array_get(findings, 2), "text"), "no eth9"));
    json_decref(findings);
    findings = examine("../../etc");
    assert_string_equal(hb_json_text(json_array_get(findings, 2), "level"), "missing");
    json_decref(findings);
}

static void test_what_is_printed(void **state)
{
    struct hb_screen screen;
    char *printed;
    size_t size;
    json_t *findings;

    (void)state;
    write_file("/sys/devices/system/cpu/isolated", "2\n");
    findings = examine(NULL);
    screen = (struct hb_screen){.out = open_memstream(&printed, &size)};
    hb_show_doctor(&screen, findings);
    fclose(screen.out);
    assert_non_null(strstr(printed, "isolated   costs speed  CPU 3 is not among them"));
    assert_non_null(strstr(printed, "\nisolated: isolcpus= on the kernel's command line\n"));
    assert_null(strstr(printed, "nothing was found"));
    free(printed);
    json_decref(findings);
}

static void test_a_device_that_is_missing_is_a_failure(void **state)
{
    struct hb_ctl ctl = {.arguments = {"no-such-nic"}, .arguments_count = 1};
    char *printed;
    size_t size;

    (void)state;
    ctl.screen.out = open_memstream(&printed, &size);
    assert_int_equal(hb_ctl_doctor(&ctl), HB_EXIT_FAILED);
    fclose(ctl.screen.out);
    assert_non_null(strstr(printed, "missing"));
    assert_null(strstr(printed, ": -\n"));
    assert_non_null(strstr(printed, "\ndevice: name an interface (eth0) or a PCI address"));
    assert_null(strstr(printed, "nothing was found"));
    free(printed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_good_machine, make_good_machine, remove_machine),
        cmocka_unit_test_setup_teardown(test_two_dataplanes, make_good_machine, remove_machine),
        cmocka_unit_test_setup_teardown(test_each_cost, make_good_machine, remove_machine),
        cmocka_unit_test_setup_teardown(test_unknown_device_and_no_dataplane, make_good_machine,
                                        remove_machine),
        cmocka_unit_test_setup_teardown(test_what_is_printed, make_good_machine, remove_machine),
        cmocka_unit_test(test_a_device_that_is_missing_is_a_failure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
