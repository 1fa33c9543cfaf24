#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A backend that joins gets its share in steps (slow_start), and its first slot at once; a restart of control in the middle
# goes on where it was and starts nobody else slowly; no established connection moves. And weights at run time: they hold
# over a reload and a restart until they are taken back.
source "$(dirname "$0")/tap.sh"

digest() { api GET status | jq -r '.pools[] | select(.name == "web").digest'; }
member() { api GET backends | jq -c --arg n "$1" ".backends[] | select(.pool == \"web\" and .name == \$n) | $2"; }
reload_with() {
    write_config "$@"
    sed -i "0,/^    backends:/s//    slow_start: ${slow_start:-15s}\n    backends:/" "$LAB_DIR/halbach.yaml"
    needed ctl reload >/dev/null
    needed wait_for 5 "the new configuration is in use" in_sync
}

needed lab_up slow 1 2 3 4
needed start_balancer 1 2 3 4
whole=$(digest)
reload_with 1 2 3
needed traffic hold hold "$URL4/echo" "$URL6/echo" --count 30 --rate 10
needed traffic open open "$URL4/echo" "$URL6/echo" --rate 100

reload_with 1 2 3 4
needed wait_for 10 "b4 is up" backend_is b4 up
joined_at=$(now)
first=$(member b4 '[.slots, .share, .share_to_come, .slow_start.left_s]')
note "at once: $first"
# Of 15 seconds; left_s is rounded up.
check_json "it has slots at once, as many of those to come as time has passed" "$first" \
    '.[0] >= 1 and .[1] <= .[2] * (16 - .[3]) / 15 and .[2] > 0.24 and .[2] < 0.26 and .[3] > 0'
check "halbachctl shows both shares" grep -qE 'b4 .* %? of 25\.0 %|b4 .* % of 25' <(ctl backends)
half() { member b4 '.share > 0.11' | grep -q true; }
needed wait_for 15 "half of the ramp" half
early=$(outage open "$joined_at" --until "$(now)")
kill_control
check_json "control was killed: the ramp goes on where it was" "$(member b4 '[.share, .slow_start != null]')" '.[0] > 0.1 and .[1]'
check_json "and nobody else begins one" "$(api GET backends | jq -c '[.backends[] | select(.slow_start != null) | .name]')" '. == ["b4"]'
last=0
grows=1
done_ramping() {
    local share
    share=$(member b4 .share)
    jq -en "$share >= $last" >/dev/null || grows=0
    last=$share
    [ "$(member b4 .slow_start)" = null ]
}
check "the ramp ends" wait_for 30 "no slow start" done_ramping
check "its share only grew" test $grows = 1
check "the table is the one that a ramp never touched" test "$(digest)" = "$whole"
# Two runs of control, each with its row, and a row each for the step in which something else happened.
check_json "its steps are a few lines of history" "$(api GET history | jq -c '[.generations[] | select(.cause | test("slow start of backend b4")) | .count]')" \
    'add >= 6 and length <= 4'
ended_at=$(now)
later_enough() { [ "$(outage open "$ended_at" | jq .requests)" -ge 200 ]; }
needed wait_for 20 "200 new connections after the ramp" later_enough
late=$(outage open "$ended_at")
part='(.backends.b4 // 0) / .requests'
note "part of the new connections: $(jq "$part" <<<"$early") in the first half, $(jq "$part" <<<"$late") after the ramp"
check_json "new connections follow the share" "[$early, $late]" "(.[0] | $part) < (.[1] | $part) and .[0].failed == 0 and .[1].failed == 0"

# A server that fails and comes back starts slowly again; one second of slow start, so that this test ends.
slow_start=1s reload_with 1 2 3 4
needed kill_nginx 4
needed wait_for 10 "b4 is down" backend_is b4 down
needed start_nginx 4
needed wait_for 10 "b4 is up" backend_is b4 up
ramped() { [ "$(member b4 .slow_start)" = null ] && [ "$(digest)" = "$whole" ]; }
check "after a failure and a slow start the table is the old one" wait_for 10 "the end of the ramp" ramped

# ---- weights
check_json "a weight at run time" "$(ctl weight b1 3 --pool web --json)" '.applied and .backends[0].weight == 3 and .backends[0].moved > 0'
check_json "has its share at once" "$(member b1 .share)" '. > 0.49 and . < 0.51'
reload_with 1 2 3 4
check_json "a reload leaves it" "$(member b1 .weight)" '. == 3'
kill_control
check_json "a restart leaves it" "$(member b1 '[.weight, .configured_weight]')" '. == [3, 1]'
check "halbachctl shows both weights" grep -q '3 (1)' <(ctl backends)
check "and takes it back" ctl weight b1 --reset
check "then the table is the old one" test "$(digest)" = "$whole"
refusal=$(ctl weight b1 many 2>&1) && refusal="taken: $refusal"
check "a weight that is none is refused" grep -q 'a whole number from 0 to 65535' <<<"$refusal"

hold=$(traffic_end hold) open=$(traffic_end open)
note "established: $hold"
check_json "no established connection broke or moved" "$hold" '[.broken[] | select(.backend != "b4")] == [] and .moved == 0'
note "new ones: $open"
finish
