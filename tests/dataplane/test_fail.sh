#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# BL-107: the start of halbach-dataplane with the first, the second, ... call that can fail failing, until
# one start does without. Each must end with status 1 or 2, the cause told, and nothing left behind.
# Calls whose failure the dataplane can live without may also lead to a start that works.
#
#     test_fail.sh HALBACH-DATAPLANE FAIL_CALL.SO
set -u
dataplane=$1
shim=$2
folder=$(mktemp -d /tmp/hb-test-fail-XXXXXX)
socket=$folder/dataplane.sock
log=$folder/log
pid=
failed=0
trap 'if [ -n "$pid" ]; then kill -9 "$pid" 2>/dev/null; fi; rm -rf "$folder"' EXIT

# Runs until the dataplane has ended, or works and is told to end. Its exit status is in $status.
run() {
    : >"$log" # or the words of the run before would be taken for this one's
    HB_FAIL_CALL=$1 LD_PRELOAD=$shim "$dataplane" --lcores "0@0,1@0" --no-huge --vdev net_null0 -- \
        --socket "$socket" --flows 4K --idle-sleep 1000 >"$log" 2>&1 &
    pid=$!
    local end=$((SECONDS + 20))
    while kill -0 "$pid" 2>/dev/null; do
        if grep -q "control     $socket" "$log" || [ "$SECONDS" -ge "$end" ]; then
            kill -TERM "$pid" 2>/dev/null
            break
        fi
        sleep 0.02
    done
    wait "$pid" 2>/dev/null
    status=$?
    pid=
}

complain() {
    echo "not ok - call $1: $2"
    sed 's/^/# /' "$log"
    failed=1
}

for ((call = 1; call <= 300; call++)); do
    run "$call"
    name=$(sed -n 's/^fail_call: //p' "$log")
    if [ -z "$name" ]; then
        if [ "$status" -ne 0 ]; then complain "$call" "no call failed, but the status is $status"; fi
        break
    fi
    if [ -e "$socket" ]; then complain "$call" "$name left the socket behind"; fi
    case $status in
    0) echo "ok - call $call: $name can be done without" ;;
    1 | 2)
        if ! grep -q '^halbach-dataplane: ' "$log"; then complain "$call" "$name is not explained"; fi
        echo "ok - call $call: $name: $(tail -n 1 "$log")"
        ;;
    *) complain "$call" "$name: status $status" ;;
    esac
done
if [ "$call" -lt 15 ]; then
    echo "not ok - only $((call - 1)) calls could fail"
    failed=1
fi
exit "$failed"
