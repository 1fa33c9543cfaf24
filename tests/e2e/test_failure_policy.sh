#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# BL-68: what a pool does that has too few usable backends: panic, backup pool, closed, each as configured and never by accident.
# Checks look at port 81 and the service is on port 80, so a check can fail while the server works, as it does when the
# checker is what is wrong. A control that is killed meanwhile changes nothing.
source "$(dirname "$0")/tap.sh"

web() { api GET status | jq -r ".pools[] | select(.name == \"web\").$1"; }
is_mode() { [ "$(web mode)" = "$1" ] && in_sync; }
slots() { api GET backends | jq -c '[.backends[] | select(.pool == "web") | {key: .name, value: .slots}] | from_entries'; }
healthy() { [ "$(web healthy)" = "$1" ] && in_sync; }
start_check() {
    launch "check-b$1" ip netns exec "$LAB-b$1" python3 -m http.server --bind :: 81
    wait_for 5 "port 81 of b$1" in_ns "b$1" curl -sgf -o /dev/null 'http://[::1]:81/'
}
stop_check() { stop "check-b$1" KILL; }

# use POLICY N...: the lab's configuration with the checks on port 81 and this policy for pool web.
use() {
    local policy=$1
    shift
    write_config "$@"
    sed -i "0,/type: tcp, port: 80/s//type: tcp, port: 81/; 0,/^    backends:/s//    failure: $policy\n    backends:/" "$LAB_DIR/halbach.yaml"
}
reload_with() {
    use "$@"
    needed ctl reload >/dev/null
    needed wait_for 5 "the new configuration is in use" in_sync
}
# Where new connections go for a while: {"b1": 50, ...}, and how many failed.
traffic_now() {
    local at
    at=$(now)
    asked() { [ "$(outage open "$at" | jq .requests)" -ge 60 ]; }
    needed wait_for 20 "60 new connections" asked
    outage open "$at"
}

needed lab_up policy 1 2 3 4
for n in 1 2 3 4; do
    needed start_check "$n"
done
use '{ panic: 0.5 }' 1 2 3 4
needed start_dataplane
needed start_control
needed wait_for 10 "all backends are up" healthy 4
needed wait_for 10 "both VIPs are served" serves
needed traffic open open "$URL4/echo" "$URL6/echo" --rate 60

# ---- panic: below half, all are used
needed ctl drain b4 >/dev/null
needed stop_check 1
check "panic 0.5: two of three usable is no panic" wait_for 10 "one is down" healthy 2
check_json "b1 gets nothing, nor does the drained b4" "$(traffic_now)" '.backends.b1 == null and .backends.b4 == null and .failed == 0'
needed stop_check 2
check "panic 0.5: one of three is" wait_for 10 "panic" is_mode panic
check_json "all are used but the drained one, and their servers answer" "$(traffic_now)" '.failed == 0 and .backends.b1 > 0 and .backends.b2 > 0 and .backends.b3 > 0 and .backends.b4 == null'
check "status says it loudly" grep -q 'panic' <(ctl status)
kill_control
check "a restarted control is still in panic" is_mode panic
check_json "and traffic goes on" "$(traffic_now)" '.failed == 0 and .backends.b1 > 0'
needed stop_check 3
check "all checks fail: still everything is used" wait_for 10 "none is healthy" healthy 0
check_json "no connection fails" "$(traffic_now)" '.failed == 0 and .backends.b3 > 0'
for n in 1 2 3; do needed start_check "$n"; done
check "the checks work again: no panic" wait_for 10 "normal" is_mode normal
needed ctl undrain b4 >/dev/null

# ---- close: fewer than the minimum get no new flows
reload_with '{ minimum: 3, below: close }' 1 2 3 4
needed traffic hold hold "$URL4/echo" "$URL6/echo" --count 20 --rate 10
needed stop_check 1
needed wait_for 10 "one is down" healthy 3
check_json "close: three of four are enough" "$(traffic_now)" '.failed == 0 and .backends.b1 == null'
before=$(drops no_backend)
needed stop_check 2
check "close: two are not" wait_for 10 "closed" is_mode closed
check_json "no new connection" "$(traffic_now)" '.backends == {}'
check "each is counted (no_backend)" test "$(drops no_backend)" -gt "$before"
for n in 1 2; do needed start_check "$n"; done
check "and open again" wait_for 10 "normal" is_mode normal
hold=$(traffic_end hold)
note "established: $hold"
check_json "established connections of healthy backends went on" "$hold" '[.broken[] | select(.backend == "b3" or .backend == "b4")] == []'

# ---- backup: two pools
EXTRA_POOL="  - name: spare
    health: { type: tcp, port: 81, interval: 250ms, timeout: 200ms }
    backends: [ { name: b4, address: \"$(backend_address 4)\" } ]"
reload_with '{ minimum: 2, below: backup, backup: spare }' 1 2 3
check_json "the backup is a member and gets nothing" "$(slots)" '.b4 == 0 and .b1 > 0'
check_json "all three serve" "$(traffic_now)" '.failed == 0 and .backends.b4 == null'
needed wait_for 10 "three are up" healthy 3
for n in 1 2; do needed stop_check "$n"; done
check "backup: fewer than two: the backup pool serves" wait_for 10 "backup" is_mode backup
check_json "by b4 alone" "$(traffic_now)" '.failed == 0 and (.backends | keys) == ["b4"]'
needed traffic hold2 hold "$URL4/echo" "$URL6/echo" --count 20 --rate 10
kill_control
check "a restarted control is still on it" is_mode backup
needed start_check 1
check "two are back: the pool serves itself" wait_for 10 "normal" is_mode normal
check_json "new connections come back" "$(traffic_now)" '.failed == 0 and .backends.b4 == null'
hold=$(traffic_end hold2)
check_json "connections that were set up on the backup stay there" "$hold" '.failed == 0 and .moved == 0 and (.backends | keys) == ["b4"]'
needed stop_check 4
needed stop_check 1
check "backup and too few: what is left serves" wait_for 10 "one is left" healthy 1
check_json "no connection fails" "$(traffic_now)" '.failed == 0 and (.backends | keys) == ["b3"]'
needed stop_check 3
check "nothing is left: closed" wait_for 10 "closed" is_mode closed
check_json "nothing is forwarded to anybody" "$(traffic_now)" '.backends == {}'
for n in 1 2 3; do needed start_check "$n"; done
check "and back" wait_for 10 "normal" is_mode normal
check "both VIPs are served" wait_for 5 "both VIPs" serves
note "in all this: $(traffic_end open)"
finish
