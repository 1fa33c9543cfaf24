#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# BL-49, BL-92: a drain is over at its deadline at the latest: flows that never pause are selected anew, without a lost datagram, and
# counted. A restart of control in the middle does not restart the clock. An empty backend is drained at once, an undrain
# gives the old table back, and nobody drains the last backend by mistake.
source "$(dirname "$0")/tap.sh"

drain_of() { api GET backends | jq -c --arg n "$1" --arg p "${2:-web}" '[.backends[] | select(.pool == $p and .name == $n)][0].drain'; }
digests() { api GET status | jq -c '[.pools[].digest]'; }
back() { [ "$(<"$LAB_DIR/control.pid")" != "$1" ] && in_sync; }

# Flows that nobody ends are forgotten soon.
# shellcheck disable=SC2034
LAB_DATAPLANE_OPTIONS="--timeout-tcp-established 5s --timeout-udp 5s"
needed lab_up deadline 1 2 3
needed start_balancer 1 2 3
before=$(digests)
needed traffic hold hold "$URL4/echo" "$URL6/echo" --count 30 --rate 10
needed traffic udp udp "$UDP4" "$UDP6" --count 30 --rate 10
needed traffic open open "$URL4/echo" "$URL6/echo" --rate 50

answer=$(ctl drain b2 --deadline 6s --json)
drained_at=$(now)
check_json "a drain with a deadline is applied at once" "$answer" '.applied and (.backends[0].drain | .at_deadline == "reassign" and .deadline_s <= 6 and .drained == false)'
deadline=$(drain_of b2 | jq .deadline_unix)
launch waiting "$(program halbachctl)" --socket "$LAB_DIR/control.sock" drain b2 --wait
needed wait_for 5 "the command waits" grep -q 'flows left' "$LAB_DIR/waiting.out"
pid=$(<"$LAB_DIR/control.pid")
kill -KILL "$pid"
needed wait_for 10 "control is back" back "$pid"
check "control was killed: the deadline is what it was" test "$(drain_of b2 | jq .deadline_unix)" = "$deadline"
# Unless all this took so long that the deadline has passed.
still_drains() { backend_is b2 draining || is_true "$EPOCHREALTIME >= $deadline" <<<null; }
check "it still drains" still_drains

disabled() { backend_is b2 disabled; }
check "at the deadline the backend is disabled" wait_for 10 "b2 is disabled" disabled
passed_at=$(now)
late=$(jq -n "$passed_at - $deadline")
check_json "not before it" "{\"late\": $late}" '.late >= 0'
enough() { [ "$(outage udp "$passed_at" | jq .requests)" -ge 300 ]; }
needed wait_for 20 "300 datagrams after the deadline" enough
result=$(outage udp "$passed_at")
check_json "no datagram goes there any more, and none is lost" "$result" '.backends.b2 == null and .failed == 0'
result=$(outage udp "$drained_at" --until "$deadline")
check_json "until then its UDP flows stayed" "$result" '.backends.b2 > 0 and .failed == 0'
check_json "no new connection went there from the drain on" "$(outage open "$drained_at")" '.backends.b2 == null and .failed == 0'
check_json "the flows that did not stay are counted" "$(drain_of b2 echo)" '.forced > 0 and .drained'
check_json "and in the status" "$(api GET status)" '.drain_forced > 0'
check "the command that waited says so" wait_for 5 "its end" grep -q 'b2 is drained: its deadline has passed after .* did not stay' "$LAB_DIR/waiting.out"
note "$(tail -n 3 "$LAB_DIR/waiting.out")"

check "undrain" ctl undrain b2
check "undrain gives the old tables back, to the digest" test "$(digests)" = "$before"
check_json "new connections come again" "$(api GET backends)" '[.backends[] | select(.name == "b2") | .state] == ["up", "up"]'
hold=$(traffic_end hold) udp=$(traffic_end udp) open=$(traffic_end open)
note "established TCP, of which those of b2 broke at the deadline: $(jq -c '[.connections, .failed, .moved]' <<<"$hold")"
check_json "connections of other backends were not touched" "$hold" '[.broken[] | select(.backend != "b2")] == []'
check_json "no new connection failed, no datagram was lost or doubled" "[$open, $udp]" 'all(.[]; .failed == 0)'

# A deadline that resets: both ends of each connection hear of it, and nobody else does.
connections_of() { in_ns "$1" ss -Htn state established 'sport = :80' | wc -l; }
# The servers' ends of the connections that were selected anew above have heard nothing yet.
stale=$(connections_of b2)
needed traffic ends hold "$URL4/echo" "$URL6/echo" --count 30 --rate 10
check "b2's server has new connections" test "$(connections_of b2)" -gt "$stale"
resets=$(api GET stats | jq .totals.drain_resets)
check "drain b2 with resets at the deadline" ctl drain b2 --deadline 2s --at-deadline reset
needed wait_for 10 "b2 is disabled" disabled
reset_there() { [ "$(connections_of b2)" -le "$stale" ]; }
check "its server's ends of them are gone" wait_for 10 "no new connection at b2" reset_there
check "other servers have theirs" test "$(connections_of b1)" -gt 0
check_json "the dataplane counts the resets" "$(api GET stats)" ".totals.drain_resets > $resets"
check "undrain b2" ctl undrain b2
ends=$(traffic_end ends)
note "connections that were reset: $(jq -c '[.connections, .failed, .moved]' <<<"$ends")"
check_json "the clients' ends were reset, at once and only those of b2" "$ends" '.failed > 0 and .moved == 0 and ([.broken[] | [.backend, .problem]] | unique) == [["b2", "reset"]]'

# No flow is left: said early, not at the deadline.
empty() { [ "$(api GET backends | jq '[.backends[] | select(.name == "b3") | .flows] | add')" = 0 ]; }
launch quick "$(program halbachctl)" --socket "$LAB_DIR/control.sock" drain b3 --deadline 10m --wait
needed wait_for 90 "b3 has no flows" empty
check "an empty backend is drained long before its deadline" wait_for 5 "the end of the wait" has_ended quick
check "and that is what is said" grep -q 'b3 is drained: no flow is left after' "$LAB_DIR/quick.out"
note "$(cat "$LAB_DIR/quick.out")"

check "drain b2 as well" ctl drain b2
refusal=$(ctl drain b1 2>&1) && refusal="taken: $refusal"
check "the last backend of a pool is not drained without --force" grep -q 'would have 0 usable backends' <<<"$refusal"
check "nothing has changed" backend_is b1 up
check "with --force it is" ctl drain b1 --force
for n in 1 2 3; do
    check "undrain b$n" ctl undrain "b$n"
done
check "the tables are what they were in the beginning" test "$(digests)" = "$before"
check "both VIPs are served" wait_for 5 "both VIPs" serves
finish
