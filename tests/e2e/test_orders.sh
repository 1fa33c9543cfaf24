#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Many orders at once, and many one after another: what is acknowledged serves (BL-83), every worker has what control wants,
# a file that is reloaded again and again changes nothing and costs nothing (BL-75, BL-87), a pool that is replaced as a
# whole has no gap (BL-79), and a dataplane that lost everything gets it back without a word from anybody (BL-80).
#
#   HB_ORDERS=10000 tests/e2e/test_orders.sh     so many orders in all (400)
#   HB_RELOADS=30000 tests/e2e/test_orders.sh    so many reloads (150), every third of a file that is refused
source "$(dirname "$0")/tap.sh"

digests() { api GET status | jq -c '[.pools[].digest]'; }
control_file() { echo "/proc/$(<"$LAB_DIR/control.pid")/$1"; }
rss_kb() { awk '/^VmRSS/ { print $2 }' "$(control_file status)"; }
fds() { find "$(control_file fd)" -mindepth 1 2>/dev/null | wc -l; }
commands() { "$LAB_SOURCE/commands.py" "$1" "$LAB_DIR/control.sock" "${@:2}" 2>&1; }

needed lab_up orders 1 2 3 4
needed start_balancer 1 2 3
before=$(digests)
needed traffic hold hold "$URL4/echo" "$URL6/echo" --count 30 --rate 10
needed traffic open open "$URL4/echo" "$URL6/echo" --rate 50

# b1 is left alone, so that there is always somebody.
result=$(commands weights 4 $((${HB_ORDERS:-400} / 4)) b2 b3)
note "$result"
check_json "BL-83: no order of four clients is acknowledged before it serves" "$result" '.wrong == []'
check_json "BL-83: every worker has what control wants" "$(api GET stats | jq -c --argjson g "$(api GET status | jq .generation)" '{workers: [.workers[].generation], generation: $g}')" \
    '.generation.in_sync and (.workers | unique) == [.generation.serving]'
check "BL-83: in the end the tables are what they were" test "$(digests)" = "$before"

# Two files, and one that is refused.
cp "$LAB_DIR/halbach.yaml" "$LAB_DIR/one"
write_config 1 2 3 4
cp "$LAB_DIR/halbach.yaml" "$LAB_DIR/two"
sed 's/^seed:.*/seed: short/' "$LAB_DIR/one" >"$LAB_DIR/bad"
files=("$LAB_DIR/halbach.yaml" "$LAB_DIR/one" "$LAB_DIR/two" "$LAB_DIR/bad")
needed commands reloads 30 "${files[@]}" >/dev/null
memory=$(rss_kb) descriptors=$(fds)
result=$(commands reloads "${HB_RELOADS:-150}" "${files[@]}")
note "$result; control: $memory kB and $descriptors descriptors before, $(rss_kb) kB and $(fds) after"
check_json "BL-87: reloads of two files and of a bad one are answered as they must be" "$result" '.wrong == []'
check "BL-87: memory stays" test "$(rss_kb)" -le $((memory + memory / 20 + 512))
same_fds() { [ "$(fds)" -le $((descriptors + 8)) ]; }
check "BL-87: descriptors stay" wait_for 10 "probes that are under way end" same_fds
cp "$LAB_DIR/one" "$LAB_DIR/halbach.yaml"
needed ctl reload >/dev/null
check_json "BL-75: the same file once more changes nothing" "$(ctl reload --json)" '.changed == false and .pools == [] and ([.backends[]] | add) == 0'
check "the tables are what they were" test "$(digests)" = "$before"

# ---- BL-79
at=$(now)
write_config 4
check_json "BL-79: all backends are replaced at once" "$(ctl reload --json)" '.backends.added == 2 and .backends.removed == 6'
only_new() { [ "$(api GET backends | jq -c '[.backends[].name] | unique')" = '["b4"]' ] && backend_is b4 up; }
check "BL-79: the old ones go when the new one is up" wait_for 10 "b4 alone" only_new
new_requests_done() { [ "$(outage open "$at" | jq .requests)" -ge 100 ]; }
needed wait_for 20 "100 new connections" new_requests_done
# With a gap new connections would time out, or fail at more than one moment.
result=$(outage open "$at")
note "new connections: $result"
check_json "BL-79: no new connection failed" "$result" ".backends.b4 > 0 and $CUT_AT_MOST"
cp "$LAB_DIR/one" "$LAB_DIR/halbach.yaml"
needed ctl reload >/dev/null
needed wait_for 10 "the three are up" backends_up 3

# ---- BL-80
pid=$(<"$LAB_DIR/dataplane.pid")
wanted=$(digests)
kill -KILL "$pid"
back() { [ "$(<"$LAB_DIR/dataplane.pid")" != "$pid" ] && in_sync; }
check "BL-80: the dataplane is killed: it gets everything again by itself" wait_for 15 "in sync" back
check "BL-80: what serves is what was wanted" test "$(digests)" = "$wanted"
check "both VIPs are served" wait_for 5 "both VIPs" serves
note "established (their backends were removed): $(traffic_end hold | jq -c '[.connections, .failed, .moved]')"
finish
