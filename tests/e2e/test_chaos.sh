#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Either daemon, or both, are killed at arbitrary moments while operators drain and reload. Each time they find each
# other again by themselves, and what an operator said last is what holds. A paused dataplane goes on where it was.
source "$(dirname "$0")/tap.sh"

needed lab_up chaos 1 2 3
needed start_balancer 1 2 3
before=$(api GET status | jq -c '[.pools[].digest]')
needed traffic open open "$URL4/echo" "$URL6/echo" --rate 50

# Drains and undrains as fast as they are answered. Control may be away: then curl fails, and it goes on.
storm() {
    while :; do
        for change in b3/drain b3/undrain b2/drain b2/undrain; do
            api POST "backends/$change" >/dev/null
            ctl reload >/dev/null 2>&1
        done
    done
}
storm &
storm_pid=$!

back() { [ "$(<"$LAB_DIR/$1.pid")" != "$2" ] && in_sync; }
for victims in control dataplane "control dataplane" dataplane control "dataplane control"; do
    declare -A pids=()
    for victim in $victims; do
        pids[$victim]=$(<"$LAB_DIR/$victim.pid")
    done
    kill -KILL "${pids[@]}"
    for victim in $victims; do
        check "killed ($victims): $victim is back and in sync" wait_for 15 "$victim is back" back "$victim" "${pids[$victim]}"
    done
    check "killed ($victims): both VIPs are served" wait_for 10 "both VIPs" serves
done
kill $storm_pid
wait $storm_pid 2>/dev/null

check "drain b2" ctl drain b2
check "undrain b2" ctl undrain b2
check "undrain b3" ctl undrain b3
check "all are up" wait_for 10 "all backends are up" backends_up 3
after=$(api GET status | jq -c '[.pools[].digest]')
check "the tables are what they were in the beginning ($after)" test "$before" = "$after"
settled_at=$(now)
new_requests_done() { [ "$(outage open "$settled_at" | jq .requests)" -ge 100 ]; }
needed wait_for 20 "100 new connections" new_requests_done
result=$(outage open "$settled_at")
check_json "then no connection fails" "$result" '.failed == 0 and (.backends | length) == 3'
note "in all this: $(traffic_end open)"

# BL-109: a pause: the receive ring fills up and must not stay stuck.
needed traffic udp udp "$UDP4" "$UDP6" --count 20 --rate 100
pid=$(<"$LAB_DIR/dataplane.pid")
kill -STOP "$pid"
paused_at=$(now)
lost_nothing_yet() { [ "$(jq -n "$(now) - $paused_at > 2")" = true ]; }
wait_for 5 "two seconds pass" lost_nothing_yet
kill -CONT "$pid"
continued_at=$(now)
answers_again() { outage udp "$continued_at" | is_true '(.requests - .failed) > 100'; }
check "a dataplane that was paused for 2 s answers again within 2 s" wait_for 2 "answers" answers_again
udp=$(traffic_end udp)
note "udp over the pause: $udp"
check_json "no datagram was doubled, no flow moved" "$udp" '.duplicates == 0 and .foreign == 0 and .moved == 0'

# 137 is SIGKILL; anything else would be a crash.
check "neither daemon ended in any other way" \
    test "$(cat "$LAB_DIR"/{control,dataplane}.log | grep 'supervise: .* ended' | grep -vc 'status 137')" = 0
finish
