#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# halbach-dataplane as a process: start, serve, refuse, be killed, start again, end. On a port that only
# invents packets (net_null), in ordinary memory, so neither root nor hugepages nor a network is needed.
#
#     test_start.sh HALBACH-DATAPLANE PUBLISH
#
# One line a check, "ok" or "not ok"; exit status 1 when one is not ok.
# shellcheck disable=SC2317 # functions are called by name through check
set -u
dataplane=$1
publish=$2
folder=$(mktemp -d /tmp/hb-test-start-XXXXXX)
socket=$folder/dataplane.sock
eal=(--lcores "0@0,1@0" --no-huge --vdev net_null0)
own=(--socket "$socket" --flows 4K --idle-sleep 1000)
pid=
failed=0

clean_up() {
    if [ -n "$pid" ]; then kill -9 "$pid" 2>/dev/null; fi
    rm -rf "$folder"
}
trap clean_up EXIT

# check DESCRIPTION COMMAND...
check() {
    local what=$1
    shift
    if "$@"; then
        echo "ok - $what"
    else
        echo "not ok - $what"
        sed 's/^/# /' "$folder"/*.log
        failed=1
    fi
}

says() { grep -qF -- "$2" "$folder/$1.log"; }

# until COMMAND...: true as soon as it succeeds, false after ten seconds.
until_true() {
    local end=$((SECONDS + 10))
    until "$@"; do
        if [ "$SECONDS" -ge "$end" ]; then return 1; fi
        sleep 0.02
    done
}

# start NAME ARGUMENT...: in the background, its output in NAME.log
start() {
    local name=$1
    shift
    "$dataplane" "$@" >"$folder/$name.log" 2>&1 &
    pid=$!
    until_true says "$name" "control     $socket"
}

# ends NAME STATUS ARGUMENT...: runs to its end, with this exit status
ends() {
    local name=$1 status=$2
    shift 2
    timeout 20 "$dataplane" "$@" >"$folder/$name.log" 2>&1
    [ $? -eq "$status" ]
}

stop() {
    kill -"$1" "$pid"
    wait "$pid" 2>/dev/null
    local status=$?
    pid=
    [ "$status" -eq "$2" ]
}

# Wrong usage is told before anything is touched.
check "--help exits 0" ends help 0 --help
check "--version exits 0" ends version 0 --version
check "an unknown option exits 2" ends unknown 2 -- --flow 1M
check "and is named" says unknown "unknown option '--flow'"
check "a bad value exits 2" ends value 2 -- --flows lots
check "mixed options exit 2" ends mixed 2 -l 0,1 --flows 1M
check "no worker lcore exits 2" ends lcore 2 --lcores 0@0 --no-huge --vdev net_null0 -- "${own[@]}"
check "and the remedy is told" says lcore "--lcores '0@0,1@0'"

# What is missing is named.
check "no port exits 1" ends port 1 --lcores "0@0,1@0" --no-huge -- "${own[@]}"
check "and the remedy is told" says port "give --interface IFNAME"
check "no such interface exits 1" ends interface 1 --interface hb-nowhere "${own[@]}"
check "and is named" says interface "--interface hb-nowhere"
check "a device that fails exits 1" ends device 1 --lcores "0@0,1@0" --no-huge \
    --vdev net_pcap0,rx_pcap=/nonexistent -- "${own[@]}"
check "and is named" says device "net_pcap0"
check "a kernel interface for no port exits 1" ends nokernel 1 "${eal[@]}" -- "${own[@]}" \
    --kernel-interface 3=lo
check "and is named" says nokernel "--kernel-interface 3=lo"
check "a TAP for no port exits 1" ends notap 1 "${eal[@]}" -- "${own[@]}" --punt 3=hb-tap
check "and is named" says notap "--punt 3=hb-tap"
check "a TAP whose name is taken exits 1" ends taken 1 "${eal[@]}" -- "${own[@]}" --punt 0=lo
check "and the remedy is told" says taken "choose another name"
# BL-54, BL-109: no worker without a queue. (A file of no packets is a port of one queue.)
printf '\xd4\xc3\xb2\xa1\2\0\4\0\0\0\0\0\0\0\0\0\0\0\1\0\1\0\0\0' >"$folder/none.pcap"
check "fewer queues than workers exits 1" ends queues 1 --lcores "0@0,1@0,2@0" --no-huge -m 64 \
    --vdev "net_pcap0,rx_pcap=$folder/none.pcap" --no-pci --no-telemetry -- "${own[@]}"
check "and the remedy is told" says queues "has 1 queues, 2 workers need one each; use fewer lcores"
check "too little memory exits 1" ends memory 1 "${eal[@]}" -m 16 -- "${own[@]}"
check "and the remedy is told" says memory "(-m)"

# BL-107: a start that fails behind any of its steps leaves nothing and tells the first error.
for step in signals listener eal ports counters generation workers launch server; do
    export HALBACH_TEST_FAIL_AFTER=$step
    check "a failure behind step $step exits 1" ends "step-$step" 1 "${eal[@]}" -- "${own[@]}"
    check "and is the error that is told" says "step-$step" "asked to fail after step '$step'"
    check "and leaves no socket" test ! -e "$socket"
    unset HALBACH_TEST_FAIL_AFTER
done

# It serves, refuses what is bad and goes on serving (BL-88), and one dataplane has one path (BL-106).
check "it starts" start first "${eal[@]}" -- "${own[@]}"
check "it adopts generations" "$publish" "$socket" 20
check "with tables that it holds" "$publish" "$socket" 20 held
check "a bad generation is refused, twice" "$publish" "$socket" 3 bad
check "and logged once" test "$(grep -c 'refused a generation' "$folder/first.log")" -eq 1
check "a second dataplane on the path exits 1" ends second 1 "${eal[@]}" -- "${own[@]}"
check "and the first is named" says second "another dataplane (pid $pid) serves $socket"
check "the first goes on" "$publish" "$socket" 1

# BL-106: killed, it starts again; ended, it reports.
check "kill -9 ends it" stop KILL 137
check "its socket stays behind" test -e "$socket"
check "it starts again" start again "${eal[@]}" -- "${own[@]}"
check "and knows nothing of before" bash -c "'$publish' '$socket' 1 | grep -q 'generation 0,'"
check "SIGTERM ends it with 0" stop TERM 0
check "with a report" says again "packets received"

# Jumbo frames, on a port that has room for them; and an offload that the port does not have is not claimed.
check "it starts with --mtu" start jumbo "${eal[@]}" -- "${own[@]}" --mtu 9000 --udp-checksum-offload
check "and the port has it" says jumbo "MTU 9000"
check "and claims no checksums of net_null" bash -c "! grep -q 'UDP checksums' '$folder/jumbo.log'"
check "SIGTERM ends it with 0" stop TERM 0
check "and its socket is gone" test ! -e "$socket"
check "it starts once more" start more "${eal[@]}" -- "${own[@]}"
check "SIGINT ends it with 0" stop INT 0
exit "$failed"
