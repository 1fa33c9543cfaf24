#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A pool whose backends all drain is closed, not gone: established connections go on, also those that have no entry in
# the flow cache (tracking: changed, and a dataplane that was killed); new ones are dropped and counted. Nothing is
# drained that a connection may still run on.
source "$(dirname "$0")/tap.sh"

export LAB_SETTLE=2s LAB_TRACKING=changed
# shellcheck disable=SC2034
LAB_DATAPLANE_OPTIONS="--timeout-tcp-established 5s"
unsettled() { api GET status | jq '[.pools[].unsettled] | add'; }
has_settled() { [ "$(unsettled)" = 0 ] && in_sync; }
no_entries() { [ "$(api GET status | jq .dataplane.flows)" = 0 ]; }
web_mode() { api GET status | jq -r '.pools[] | select(.name == "web").mode'; }
refused() { ! in_ns client curl -sf --max-time 0.3 -o /dev/null "$URL4/"; }
packets() { api GET services | jq '[.services[] | select(.protocol == "tcp").packets] | add'; }
passes() {
    local from
    from=$(packets)
    reached() { [ "$(packets)" -ge $((from + $1)) ]; }
    needed wait_for 20 "$1 packets more" reached "$1"
}

needed lab_up closed 1 2 3
needed start_balancer 1 2 3
check "slots settle" wait_for 30 "no slot is unsettled" has_settled
needed traffic hold hold "$URL4/echo" "$URL6/echo" --count 30 --rate 10
check "a settled balancer holds no TCP entries" wait_for 20 "the flow cache is empty" no_entries

for n in 1 2 3; do
    needed ctl drain "b$n" --force >/dev/null
done
check "all backends drain: the pool is closed" test "$(web_mode)" = closed
check_json "status says so" "$(api GET status)" '.pools[] | select(.name == "web") | .usable == 0 and .healthy == 0 and .digest != null'
before=$(drops no_backend)
check "new connections are dropped" refused
check "and counted (no_backend)" test "$(drops no_backend)" -gt "$before"
passes 400
pid=$(<"$LAB_DIR/dataplane.pid")
kill -KILL "$pid"
back() { [ "$(<"$LAB_DIR/dataplane.pid")" != "$pid" ] && in_sync; }
needed wait_for 15 "the dataplane is back" back
passes 400
pid=$(<"$LAB_DIR/control.pid")
kill -KILL "$pid"
back() { [ "$(<"$LAB_DIR/control.pid")" != "$pid" ] && in_sync; }
needed wait_for 15 "control is back" back
check "a restarted control keeps it closed" test "$(web_mode)" = closed
check "still no new connection" refused
passes 400
not_drained() { api GET backends | is_true '[.backends[] | select(.pool == "web") | .drain.drained] == [false, false, false]'; }
check "no backend counts as drained while connections run" not_drained
for n in 1 2 3; do
    check "undrain b$n" ctl undrain "b$n"
done
check "both VIPs are served" wait_for 5 "both VIPs" serves
passes 400
result=$(traffic_end hold)
note "established: $result"
check_json "no established connection broke or moved in all this" "$result" '.failed == 0 and .moved == 0 and .requests > 400'
finish
