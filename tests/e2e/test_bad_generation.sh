#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Generations that fail a check are refused with a reason, the old one keeps serving, and the log says so once each.
source "$(dirname "$0")/tap.sh"

needed lab_up generation 1 2
needed start_balancer 1 2
needed ctl drain b2 >/dev/null # so that the generation has to carry its tables
serving=$(api GET status | jq .generation.serving)
needed traffic hold hold "$URL4/echo" "$URL6/echo" --count 20 --rate 20
needed traffic udp udp "$UDP4" "$UDP6" --count 20 --rate 20

# One control at a time holds the connection.
second=$("$LAB_SOURCE/bad_control.py" "$LAB_DIR/dataplane.sock" 2>&1)
check "a second control is refused while the first is connected" grep -q 'bad_control: .*type 1' <<<"$second"
stop_control

lines_before=$(wc -l <"$LAB_DIR/dataplane.log")
results=$("$LAB_SOURCE/bad_control.py" "$LAB_DIR/dataplane.sock" 2>&1)
note "$(jq -r '"\(.case): \(.reason): \(.text)"' <<<"$results" 2>/dev/null || echo "$results")"
while IFS=$'\t' read -r name expected reason number; do
    check "$name: $expected" test "$reason" = "$expected"
    [ "$expected" = NONE ] || check "$name: generation $serving keeps serving" test "$number" -eq "$serving"
done < <(jq -r '[.case, .expected, .reason, .serving] | @tsv' <<<"$results" 2>/dev/null)
check "all cases were played" test "$(jq -s length <<<"$results")" -eq 27
lines=$(($(wc -l <"$LAB_DIR/dataplane.log") - lines_before))
note "the dataplane's log grew by $lines lines"
check "the log says each of the 26 refusals, once" test "$(tail -n $lines "$LAB_DIR/dataplane.log" | grep -ci 'refused\|reject')" -eq 26

needed start_control
check "control takes over again" wait_for 5 "control is in sync" in_sync
hold=$(traffic_end hold) udp=$(traffic_end udp)
check_json "no established connection noticed" "$hold" '.failed == 0 and .moved == 0'
check_json "no datagram was lost or doubled" "$udp" '.failed == 0 and .moved == 0'
finish
