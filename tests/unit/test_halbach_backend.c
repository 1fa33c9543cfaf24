/* SPDX-License-Identifier: BSD-3-Clause */
/* halbach-backend as an operator calls it: exit status and words. Its path is the first argument.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/wait.h>

#include "bpf_run.h"
#include "decap.skel.h"

static const char *binary;

/* One after the other on one interface. */
static const struct row {
    const char *arguments;
    int status;
    const char *says; /* part of what is printed */
} rows[] = {
    {"--help", 0, "Usage: halbach-backend"},
    {"--version", 0, "halbach-backend " HB_VERSION},
    {"", 2, "a command is missing"},
    {"frobnicate", 2, "unknown command: frobnicate"},
    {"attach", 2, "attach IFACE"},
    {"attach hbt0", 2, "at least one --vip and one --source"},
    {"attach hbt0 --vip 192.0.2.10", 2, "at least one --vip and one --source"},
    {"attach hbt0 --vip 192.0.2.10 --source 198.51.100.010", 2, "198.51.100.010"},
    {"attach hbt0 --vip 192.0.2.10/28 --source 198.51.100.10", 2, "192.0.2.10/28"},
    {"attach hbt0 --vip 192.0.2.0/33 --source 198.51.100.10", 2, "192.0.2.0/33"},
    {"attach hbt0 --vip 192.0.2.10 --source 198.51.100.10 --tunnel ipv4", 2, "not: ipv4"},
    {"attach hbt0 --vip 192.0.2.10 --source 198.51.100.10 --gue-port 0", 2, "65535"},
    {"attach hbt0 --dscp 64=192.0.2.10 --address 198.51.100.11", 2, "64=192.0.2.10"},
    {"attach hbt0 --dscp 10 --address 198.51.100.11", 2, "such as 10=192.0.2.10"},
    {"attach hbt0 --dscp 10=192.0.2.10", 2, "--dscp needs an --address"},
    {"attach hbt0 --dscp 10=192.0.2.10 --address 2001:db8::1", 2, "of the VIP's family"},
    {"attach hbt0 --vip 192.0.2.10 --source 198.51.100.10 --address 198.51.100.11", 2,
     "--address is for --dscp"},
    {"attach hbt0 --vip 192.0.2.10 --dscp 10=192.0.2.10 --address 198.51.100.11", 2,
     "one --vip and one --source"},
    {"attach hbt0 --vip", 2, "lacks its value"},
    {"attach hbt0 --vips 192.0.2.10", 2, "unknown option"},
    {"attach hbt0 hbt1 --vip 192.0.2.10 --source 198.51.100.10", 2, "hbt1"},
    {"attach hbt0 --vip 192.0.2.10 --source 198.51.100.10 --mode fast", 2, "fast"},
    {"detach hbt0 --vip 192.0.2.10", 2, "detach"},
    {"detach", 2, "detach IFACE"},
    {"attach nosuch0 --vip 192.0.2.10 --source 198.51.100.10", 1, "nosuch0"},
    {"status hbt0", 1, "no decapsulation program is attached to hbt0"},
    {"status", 0, "no interface has the decapsulation program"},
    {"status --json", 0, "\"interfaces\": []"},
    {"detach hbt0", 0, "hbt0: no program was attached"},
    {"attach hbt0 --vip 192.0.2.10 --source 198.51.100.10", 0, "attached, native mode, 1 VIPs"},
    {"attach --source 2001:db8::1 --source 198.51.100.10 --vip 192.0.2.10 hbt0", 0,
     "updated in place, native mode, 1 VIPs, 2 tunnel sources"},
    {"attach hbt0 --vip 192.0.2.10 --source 198.51.100.10 --mode generic", 1,
     "native mode already"},
    {"status", 0, "hbt0: native mode"},
    {"status hbt0 --json", 0, "\"decapsulated\": 0"},
    {"status --json", 0, "\"2001:db8::1\""},
    {"attach hbt0 --vip 192.0.2.0/24 --source 198.51.100.128/25 --tunnel gue --gue-port 7000", 0,
     "updated in place, native mode, 1 VIPs, 1 tunnel sources"},
    {"status", 0, "gue (UDP port 7000)"},
    {"status", 0, "192.0.2.0/24"},
    {"status --json", 0, "\"198.51.100.128/25\""},
    {"attach hbt0 --dscp 10=192.0.2.10 --dscp 11=2001:db8::10 --address 198.51.100.11 --address "
     "2001:db8::11",
     0, "0 VIPs, 0 tunnel sources, 2 marks"},
    {"status", 0, "DSCP 10 to 198.51.100.11 is for 192.0.2.10"},
    {"status --json", 0, "\"vip\": \"2001:db8::10\""},
    {"detach hbt0", 0, "hbt0: decapsulation detached"},
    {"attach lo --vip 192.0.2.10 --source 198.51.100.10", 0,
     "generic mode is used, which is slower"},
    {"detach lo", 0, "lo: decapsulation detached"},
};

static void check_row(const struct row *row)
{
    char command[512], printed[4096];
    FILE *pipe;
    size_t size;
    int status;

    snprintf(command, sizeof(command), "%s %s 2>&1", binary, row->arguments);
    pipe = popen(command, "r");
    assert_non_null(pipe);
    size = fread(printed, 1, sizeof(printed) - 1, pipe);
    printed[size] = 0;
    status = pclose(pipe);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != row->status || !strstr(printed, row->says))
        fail_msg("halbach-backend %s: status %d instead of %d, or without \"%s\":\n%s",
                 row->arguments, WEXITSTATUS(status), row->status, row->says, printed);
}

static void test_commands(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        check_row(&rows[i]);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_commands)};
    size_t size;
    const void *bytes = decap__elf_bytes(&size);
    struct bpf_object *object = bpf_object__open_mem(bytes, size, NULL);

    if (argc != 2 || !object) {
        printf("usage: test_halbach_backend PATH\n");
        return 1;
    }
    binary = argv[1];
    load_program_or_skip(object);
    bpf_object__close(object);
    if (system("ip link add hbt0 type veth peer name hbt1 && ip link set hbt0 up") != 0)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
