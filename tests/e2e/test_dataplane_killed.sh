#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The dataplane is killed under load: it is back at work by itself, and connections whose slots did not change
# survive, as the table sends them to the same backend.
source "$(dirname "$0")/tap.sh"

needed lab_up dataplane 1 2 3
needed start_balancer 1 2 3
needed traffic hold hold "$URL4/echo" "$URL6/echo" --count 30 --rate 10
needed traffic udp udp "$UDP4" "$UDP6" --count 20 --rate 50

for round in 1 2; do
    pid=$(<"$LAB_DIR/dataplane.pid")
    killed_at=$(now)
    kill -KILL "$pid"
    new_dataplane() { [ "$(<"$LAB_DIR/dataplane.pid")" != "$pid" ] && in_sync && serves; }
    check "killed ($round): serves again within 10 s, nothing done by anyone" \
        wait_for 10 "the dataplane serves again" new_dataplane
    note "served again after $(jq -n "$(now) - $killed_at | . * 1000 | round") ms"
done
check "control was not restarted meanwhile" test "$(grep -c 'starting it again' "$LAB_DIR/control.log")" = 0

# An ordinary end: SIGTERM, by the supervisor, and a start.
stop_dataplane
needed start_dataplane
check "stopped and started: serves again" wait_for 10 "the dataplane serves again" in_sync
check "both VIPs are served" wait_for 5 "both VIPs" serves

hold=$(traffic_end hold)
udp=$(traffic_end udp)
note "established: $hold"
note "udp: $udp"
check_json "established connections survive: the table is the same" "$hold" '.failed == 0 and .moved == 0'
check_json "no datagram was doubled, no UDP flow moved" "$udp" '.duplicates == 0 and .moved == 0'
finish
