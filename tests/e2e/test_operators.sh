#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What operators see and do while traffic flows: events with reasons, who caused a generation, a rollback in one swap,
# top, talkers, metrics; and who may do what.
source "$(dirname "$0")/tap.sh"

needed lab_up operators 1 2 3
needed start_balancer 1 2 3
cp "$LAB_DIR/halbach.yaml" "$LAB_DIR/good.yaml"
needed traffic hold hold "$URL4/echo" "$URL6/echo" --count 20 --rate 10
needed traffic open open "$URL4/echo" "$URL6/echo" --rate 100

# top: rates of both services, summed over the backends again
top_sees_traffic() { ctl top --json --once | is_true '([.services[].packets_per_s] | add) > 50'; }
check "top sees the traffic" wait_for 10 "packets in top" top_sees_traffic
check_json "the backends have it too" "$(ctl top --json --once)" '([.backends[].new_flows_per_s] | add) > 5'

# talkers: there is one client only
talkers=$(api GET talkers)
check_json "the client is the top talker, within its bounds" "$talkers" \
    '.sampled > 0 and ([.talkers[] | select(.source == "203.0.113.10" or .source == "2001:db8:c::10") | .count - .error] | add) == .sampled'
check_json "it says to which service" "$talkers" '[.talkers[].service] | unique == ["www", "www6"]'
check "halbachctl talkers shows it" grep -q '203.0.113.10' <<<"$(ctl talkers)"

# events of a failure, followed live
launch follow "$(program halbachctl)" --socket "$LAB_DIR/control.sock" events --follow --json
kill_nginx 3
told() { jq -es "any(.[]; .type == \"backend\" and .object == \"b3\" and (.message | test(\"$1\")))" "$LAB_DIR/follow.out"; }
check "the stream tells that b3 is down, and why" wait_for 5 "an event" told "is down: port 80: .+"
start_nginx 3
needed wait_for 10 "b3 is up" backend_is b3 up
check "and that it is up again" wait_for 5 "an event" told "is up"
stop follow
wait_for 3 "the dataplane has it" in_sync
check_json "the history has the cause of each generation" "$(api GET history)" \
    '([.generations[] | select(.cause | test("backend b3 is down"))] | length > 0) and (.generations[-1].outcome == "served")'

# A mistake that is valid: b1 gets no new flows. Then back, in one generation, while connections go on.
sed -E 's/(name: b1, address: "[^"]+")/\1, weight: 0/' "$LAB_DIR/good.yaml" >"$LAB_DIR/halbach.yaml"
cmp -s "$LAB_DIR/good.yaml" "$LAB_DIR/halbach.yaml" && not_ok "the mistake is in the file"
check "the mistake is accepted" ctl reload
before=$(api GET status | jq .generation.serving)
answer=$(ctl rollback --json)
note "rollback: $answer"
check_json "a rollback is one generation further" "$answer" ".applied and .changed and .generation == $before + 1 and .from == 2 and .to == 1"
check "b1 has its weight back" test "$(api GET backends | jq '[.backends[] | select(.name == "b1" and .pool == "web")][0].weight')" = 1
check "status says that the file differs" grep -q 'since a rollback' <<<"$(ctl status)"
stop control-supervisor
needed start_control
needed wait_for 10 "in sync again" in_sync
check_json "the rollback survives a restart of control, which sends nothing" "$(api GET status)" \
    ".config.rollback != null and .config.configuration == 1 and .generation.serving == $before + 1"
check_json "so does the history" "$(api GET history)" \
    '[.generations[].cause] | any(test("rollback from configuration 2 to 1"))'
cp "$LAB_DIR/good.yaml" "$LAB_DIR/halbach.yaml"
before=$(api GET status | jq .generation.serving)
check "a reload takes the file again" ctl reload
check_json "it said the same as the rollback: no generation more" "$(api GET status)" \
    ".config.rollback == null and .generation.serving == $before"

# who may do what
as_nobody() { setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }
nobody() { as_nobody curl -s --max-time 10 --unix-socket "$LAB_DIR/control.sock" -X "$1" "http://halbach/v1/$2"; }
chmod 755 "$LAB_DIR"
check "another user can't even connect" test "$(nobody GET status)" = ""
echo 'api: { others_may_read: true, listen: "127.0.0.1:8080" }' >>"$LAB_DIR/halbach.yaml"
check "the configuration lets others read" ctl reload
check_json "then another user may read" "$(nobody GET status)" '.generation.in_sync'
check_json "and change nothing" "$(nobody POST backends/b1/drain)" '.error.message | test("may read, but change nothing")'
check "b1 is not drained" backend_is b1 up
chgrp 65534 "$LAB_DIR/control.sock"
stop control-supervisor
needed start_control
needed wait_for 10 "in sync again" in_sync
tcp() { in_ns lb curl -s --max-time 10 "$@"; }
check_json "the TCP port answers after a restart" "$(tcp http://127.0.0.1:8080/v1/status)" '.version'
check_json "and changes nothing" "$(tcp -X POST http://127.0.0.1:8080/v1/reload)" '.error.message | test("over TCP nothing can be changed")'
check_json "who drained is recorded" "$(ctl drain b2 --json >/dev/null && api GET history)" \
    '.generations[-1] | .actor.by == "unix" and .actor.uid == 0 and .actor.pid > 0 and .cause == "backend b2: draining"'
ctl undrain b2 >/dev/null

# BL-113: reading changes nothing, and a counter counts what its name says: TCP flows are not counted as UDP.
content() { api GET status | jq -c '[.generation.serving, .pools]'; }
before=$(content)
for path in status services backends stats drops lookup events history talkers routes; do
    api GET "$path" >/dev/null
done
check "BL-113: reading changes nothing" test "$before" = "$(content)"

# BL-115: clean traffic raises no alarm, and every packet is accounted for once it is quiet.
sum() { awk -v name="$1" 'index($1, name) == 1 && $0 !~ /^#/ { total += $NF } END { printf "%d", total }' "$LAB_DIR/metrics"; }
traffic_end open >/dev/null
check_json "no connection noticed any of this" "$(traffic_end hold)" '.moved == 0 and all(.broken[]?; .backend == "b3")'
balanced() {
    curl -s --unix-socket "$LAB_DIR/control.sock" http://halbach/metrics >"$LAB_DIR/metrics"
    [ $(($(sum halbach_worker_received_packets_total) + $(sum halbach_worker_made_packets_total))) -eq \
        $(($(sum halbach_worker_sent_packets_total) + $(sum halbach_worker_punted_packets_total) + \
            $(sum halbach_dropped_packets_total) + $(sum halbach_worker_held_packets))) ]
}
check "BL-115: received = forwarded + passed + dropped, exactly" wait_for 10 "the sums are equal" balanced
note "received $(sum halbach_worker_received_packets_total), sent $(sum halbach_worker_sent_packets_total)," \
    "punted $(sum halbach_worker_punted_packets_total), dropped $(sum halbach_dropped_packets_total)"
grep -E '^halbach_dropped_packets_total.* [1-9]' "$LAB_DIR/metrics" >"$LAB_DIR/dropped" || true
check "BL-115: nothing was dropped but what came while b3 was away" test "$(grep -vcE 'reason="no_backend"' "$LAB_DIR/dropped")" -eq 0
if command -v promtool >/dev/null; then
    check "promtool finds nothing in /metrics" test -z "$(promtool check metrics <"$LAB_DIR/metrics" 2>&1)"
fi
finish
