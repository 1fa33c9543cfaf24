#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The whole balancer goes out of service and comes back: its commands move the routes, traffic leaves before it is called
# safe, a restart (kill -9) forgets nothing, and commands that fail or hang are said loudly and tried again.
source "$(dirname "$0")/tap.sh"

field() { ctl maintenance --json | jq -r "$1"; }
# What a routing daemon would do: the router's routes to this balancer. Each run leaves a line.
write_command() {
    cat >"$LAB_DIR/routes" <<SH
#!/bin/sh
echo "\$HALBACH_STATE" >>$LAB_DIR/commands
case \$HALBACH_STATE in
withdrawn) change=del ;;
announced) change=replace ;;
esac
ip netns exec $LAB-router ip route \$change 192.0.2.0/24 via $LB4 2>/dev/null
ip netns exec $LAB-router ip route \$change 2001:db8:0:a::/64 via $LB6 2>/dev/null
true
SH
    chmod +x "$LAB_DIR/routes"
}
# use ON_WITHDRAW [TIME_LIMIT]
use() {
    write_config 1 2
    printf '%s\n' "maintenance:" "  on_withdraw: \"$1\"" "  on_announce: $LAB_DIR/routes" "  time_limit: ${2:-10s}" >>"$LAB_DIR/halbach.yaml"
}
commands() { tr '\n' ' ' <"$LAB_DIR/commands"; }
result_is() { [ "$(field .command.result)" = "$1" ]; }

needed lab_up maintain 1 2
write_command
use "$LAB_DIR/routes"
needed start_dataplane
needed start_control
needed wait_for 10 "all backends are up" backends_up 2
check "on_announce runs once the dataplane serves" wait_for 10 "the command" result_is "done"
check "the state is announced" test "$(field .state) $(commands)" = "announced announced "
needed wait_for 5 "both VIPs are served" serves
needed traffic open open "$URL4/echo" "$URL6/echo" --rate 100

launch waiting "$(program halbachctl)" --socket "$LAB_DIR/control.sock" maintenance on --wait
withdrawn() { [ "$(field .state)" = withdrawn ]; }
check "maintenance on" wait_for 5 "withdrawn" withdrawn
check "the wait ends when traffic has left" wait_for 20 "the end of the wait" has_ended waiting
check "and says that it is safe" grep -q '^safe: ' "$LAB_DIR/waiting.out"
note "$(cat "$LAB_DIR/waiting.out")"
check "not before the routes had changed" test "$(commands)" = "announced withdrawn "
check_json "the API says so too" "$(ctl maintenance --json)" '.state == "withdrawn" and .safe and .packets_per_s < .quiet and .command.result == "done"'
check "halbachctl status tells" grep -q 'withdrawn for maintenance, safe to stop' <(ctl status)
unreachable() { ! in_ns client curl -sf --max-time 0.3 -o /dev/null "$URL4/"; }
check "no traffic comes" unreachable
kill_control
check "a restarted control is still withdrawn" test "$(field .state)" = withdrawn
check "it runs its command once more" wait_for 10 "the command" result_is "done"
check "on_withdraw, not on_announce" test "$(commands)" = "announced withdrawn withdrawn "

check "maintenance off" ctl maintenance off
check "both VIPs are served again" wait_for 10 "both VIPs" serves
check_json "announced, not safe to stop" "$(ctl maintenance --json)" '.state == "announced" and .safe == false'

# A command that fails, and one that hangs.
use 'exit 3'
needed ctl reload >/dev/null
check "maintenance on, with a command that fails" ctl maintenance on
check "that is said" wait_for 5 "failed" result_is failed
check_json "with its exit status, and it is not safe" "$(ctl maintenance --json)" '.command.problem == "exit status 3" and .safe == false'
check "in the status as well" grep -q 'the command for the state withdrawn has failed: exit status 3' <(ctl status)
check "traffic goes on meanwhile" serves
use "echo \$HALBACH_STATE hangs >>$LAB_DIR/commands; sleep 1000 & wait" 200ms
needed ctl reload >/dev/null
hangs() { [ "$(field .command.problem)" = "it took longer than 200 ms and was ended" ]; }
check "a command that hangs is ended after its time limit, and run again" wait_for 20 "the retry has been ended" hangs
nothing_left() { ! pgrep -f 'sleep 1000' | xargs -r -n 1 -I{} sh -c "ip netns identify {} 2>/dev/null" | grep -q "^$LAB-lb\$"; }
check "with what it had started" wait_for 5 "no process is left" nothing_left
use "$LAB_DIR/routes"
needed ctl reload >/dev/null
check "mended: it succeeds by itself" wait_for 20 "done" result_is "done"
check "maintenance off again" ctl maintenance off
check "both VIPs are served" wait_for 10 "both VIPs" serves
refusal=$(ctl maintenance perhaps 2>&1) && refusal="taken: $refusal"
check "other words are refused" grep -q 'takes on, off or nothing' <<<"$refusal"
note "new connections in all this: $(traffic_end open)"
finish
