#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What control remembers over a kill -9 that comes at once: who ordered what, a slow start that has just begun, a fall
# and what damping makes of it.
source "$(dirname "$0")/tap.sh"

member() { api GET backends | jq -c --arg n "$1" ".backends[] | select(.pool == \"web\" and .name == \$n) | $2"; }

needed lab_up memory 1 2 3
needed start_balancer 1 2 3
# Two falls hold a backend down for minutes, unless somebody forgets one of them.
check="{ type: tcp, port: 80, interval: 250ms, timeout: 200ms, rise: 1, fall: 1, damping: { suppress: 1.5, reuse: 0.5, half_life: 5m, max_hold: 10m } }"
sed -i -e "0,/^    backends:/s//    slow_start: 60s\n    backends:/" -e "0,/health: {.*}/s//health: $check/" "$LAB_DIR/halbach.yaml"
needed ctl reload >/dev/null
needed wait_for 10 "all are up" backend_is b3 up

# 1. An order, answered, and the end of control in the next moment.
generation=$(api POST backends/b2/drain | jq .generation)
kill_control
check_json "the history has the order that was answered, and who gave it" "$(api GET history)" \
    "[.generations[] | select(.number == $generation)] | length == 1 and (.[0].cause | test(\"draining\")) and .[0].actor.by == \"unix\""
check "the drain holds" backend_is b2 draining

# 2. A slow start that the undrain begins.
needed api POST backends/b2/undrain >/dev/null
kill_control
check_json "the slow start of b2 goes on" "$(member b2 '[.slow_start != null, .share]')" '.[0] and .[1] < 0.2'
check_json "nobody else begins one" "$(api GET backends | jq -c '[.backends[] | select(.slow_start != null) | .name]')" '. == ["b2"]'

# 3. Falls, killed as soon as the dataplane has them: the state file knows nothing of them yet, or just.
b3_is_out() { member b3 '[.state, .slots]' | is_true '. == ["down", 0]' && in_sync; }
fall() {
    needed kill_nginx 3
    needed wait_for 10 "b3 has no slots" b3_is_out
    kill_control
}
fall
check "b3 is down still" backend_is b3 down
check_json "its penalty is one fall" "$(member b3 .damping)" '.penalty > 0.9 and .penalty <= 1'
needed start_nginx 3
needed wait_for 10 "b3 is up" backend_is b3 up
fall
check_json "with the next fall it is held down" "$(member b3 .damping)" '.penalty > 1.8 and .penalty <= 2 and .held_s > 200'
needed start_nginx 3
well() { member b3 .reason | grep -q 'held down for'; }
check "good checks do not bring it back" wait_for 10 "a good check" well
kill_control
check "nor does another restart" wait_for 10 "a good check" well
check "it is down" backend_is b3 down
finish
