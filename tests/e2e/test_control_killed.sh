#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Control is killed under load: nothing is lost, nothing moves, and it takes over what it finds. Without it the
# dataplane goes on by itself.
source "$(dirname "$0")/tap.sh"

needed lab_up control 1 2 3
needed start_balancer 1 2 3
needed ctl drain b2 >/dev/null
needed traffic hold hold "$URL4/echo" "$URL6/echo" --count 30 --rate 20
needed traffic open open "$URL4/echo" "$URL6/echo" --rate 100
needed traffic udp udp "$UDP4" "$UDP6" --count 30 --rate 20

before=$(api GET status | jq -r '.pools[0].digest')
for round in 1 2 3; do
    pid=$(<"$LAB_DIR/control.pid")
    kill -KILL "$pid"
    new_control() { [ "$(<"$LAB_DIR/control.pid")" != "$pid" ] && in_sync; }
    check "killed ($round): it is back and in sync within 5 s" wait_for 5 "control is in sync again" new_control
done
check "a drain survives the restart" backend_is b2 draining
check "the table is the same" test "$before" = "$(api GET status | jq -r '.pools[0].digest')"

# No control at all: the dataplane serves on.
stop_control
alone_at=$(now)
new_requests_done() { [ "$(outage open "$alone_at" | jq .requests)" -ge 200 ]; }
needed wait_for 20 "200 new connections without control" new_requests_done
check_json "without control new connections are served" "$(outage open "$alone_at")" '.failed == 0'
needed start_control
needed wait_for 5 "control is in sync again" in_sync

hold=$(traffic_end hold) open=$(traffic_end open) udp=$(traffic_end udp)
note "established: $hold"
note "new: $open"
note "udp: $udp"
check_json "no established connection broke or moved" "$hold" '.failed == 0 and .moved == 0'
check_json "no new connection failed, none went to the drained backend" "$open" '.failed == 0 and .backends.b2 == null'
check_json "no datagram was lost or doubled, no UDP flow moved" "$udp" '.failed == 0 and .moved == 0'
finish
