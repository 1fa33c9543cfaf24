#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A backend whose server dies is noticed and taken out; it comes back by itself when its server does.
source "$(dirname "$0")/tap.sh"

needed lab_up failure 1 2 3
needed start_balancer 1 2 3
needed traffic open open "$URL4/echo" "$URL6/echo" --rate 100
needed traffic hold hold "$URL4/echo" "$URL6/echo" --count 30 --rate 10

killed_at=$(now)
kill_nginx 3
check "control notices within 3 s" wait_for 3 "b3 is down" backend_is b3 down
noticed_at=$(now)
reason=$(api GET backends | jq -r '[.backends[] | select(.pool == "web" and .name == "b3")][0].reason')
note "reason: $reason"
check "it says why" test -n "$reason"
check "the dataplane follows" wait_for 2 "the generation is adopted" in_sync
settled_at=$(now)
new_requests_done() { [ "$(outage open "$1" | jq .requests)" -ge 100 ]; }
needed wait_for 20 "100 new connections after the swap" new_requests_done "$settled_at"

result=$(outage open "$killed_at")
note "noticed after $(jq -n "$noticed_at - $killed_at | . * 1000 | round") ms;" \
    "new connections failed over $(jq .outage_s <<<"$result") s: $(jq .failed <<<"$result") of $(jq .requests <<<"$result")"
check_json "new connections work after the swap" "$(outage open "$settled_at")" '.failed == 0 and .backends.b3 == null'
check_json "nothing failed for more than 3 s" "$result" '.outage_s < 3'

start_nginx 3
back_at=$(now)
check "the backend is taken back within 5 s" wait_for 5 "b3 is up" backend_is b3 up
needed wait_for 20 "100 new connections after it came back" new_requests_done "$(now)"
check_json "it gets new connections, and none failed" "$(outage open "$back_at")" '.failed == 0 and .backends.b3 > 0'

hold=$(traffic_end hold)
traffic_end open >/dev/null
note "established: $hold"
check_json "connections broke only on the backend that died" "$hold" \
    '.moved == 0 and (.broken | length > 0) and all(.broken[]; .backend == "b3")'

# No backend at all: dropped by name, and served again as soon as one is back.
for n in 1 2 3; do
    kill_nginx $n
done
check "all backends are down" wait_for 5 "no backend is up" backends_up 0
wait_for 3 "the dataplane has it" in_sync
in_ns client curl -s --max-time 1 "$URL4/" >/dev/null
check "packets for a pool without backends are dropped by name" test "$(drops no_backend)" -gt 0
start_nginx 2
check "one backend is enough to serve again" wait_for 5 "both VIPs are served" serves
finish
