#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Two owners a slot: connections from before a change stay on their backend without the flow cache. Backends are
# drained, undrained, added and removed; after each change the dataplane is killed, which empties the cache, or control
# is. Once with tracking: all, once with tracking: changed, where a settled balancer holds no TCP entries at all.
# What was set up while slots were unsettled lives in the cache alone: it survives a restart of control, and what a
# restart of the dataplane does to it is told.
source "$(dirname "$0")/tap.sh"

unsettled() { api GET status | jq '[.pools[].unsettled] | add'; }
has_settled() { [ "$(unsettled)" = 0 ] && in_sync; }
is_unsettled() { [ "$(unsettled)" -gt 0 ]; }
no_entries() { [ "$(api GET status | jq .dataplane.flows)" = 0 ]; }
flush_is_refused() { ! ctl flush; }

# kill_daemon NAME: kills it and waits until it is back at work by itself.
kill_daemon() {
    local name=$1 pid
    pid=$(<"$LAB_DIR/$name.pid")
    kill -KILL "$pid"
    back() { [ "$(<"$LAB_DIR/$name.pid")" != "$pid" ] && in_sync && serves; }
    check "$mode: $name killed, $2: serves again" wait_for 15 "$name is back" back
}

# Some time of traffic: so many packets of TCP clients forwarded.
packets() { api GET services | jq '[.services[] | select(.protocol == "tcp").packets] | add'; }
passes() {
    local from
    from=$(packets)
    reached() { [ "$(packets)" -ge $((from + $1)) ]; }
    needed wait_for 20 "$1 packets more" reached "$1"
}

reload_with() {
    write_config "$@"
    needed ctl reload >/dev/null
    wait_for 5 "the new configuration is in use" in_sync
}

export LAB_SETTLE=4s LAB_TRACKING=changed
LAB_DATAPLANE_OPTIONS="--timeout-tcp-established 5s"
needed lab_up owners 1 2 3 4
needed start_balancer 1 2 3

for mode in changed all; do
    LAB_TRACKING=$mode
    needed reload_with 1 2 3
    check "$mode: slots settle" wait_for 30 "no slot is unsettled" has_settled
    needed traffic hold hold "$URL4/echo" "$URL6/echo" --count 40 --rate 10
    if [ $mode = changed ]; then
        check "changed: a settled balancer holds no TCP entries" wait_for 20 "the flow cache is empty" no_entries
        passes 200
        check "changed: connections that are in use make none" no_entries
    fi

    # Without the cache: drained, then undrained again, then added, then removed.
    needed ctl drain b2 >/dev/null
    check "$mode: drained: slots are unsettled" is_unsettled
    kill_daemon dataplane "drained"
    kill_daemon control "drained"
    check "$mode: a restarted control knows what is unsettled" is_unsettled
    passes 400
    needed ctl undrain b2 >/dev/null
    kill_daemon dataplane "undrained"
    needed reload_with 1 2 3 4
    needed wait_for 10 "b4 is up" backend_is b4 up
    kill_daemon dataplane "one added"
    needed reload_with 1 2 3
    kill_daemon dataplane "one removed"
    kill_daemon control "one removed"
    passes 400
    result=$(traffic_end hold)
    note "$mode: established before the changes: $result"
    check_json "$mode: no connection from before the changes broke or moved" "$result" \
        '.failed == 0 and .moved == 0 and .requests > 400'

    # Set up while a third of the slots is unsettled.
    check "$mode: slots settle again" wait_for 60 "no slot is unsettled" has_settled

    # Settled: the caches may be emptied under connections. Unsettled: not unless it is forced.
    needed traffic flushed hold "$URL4/echo" "$URL6/echo" --count 40 --rate 10
    for _ in 1 2 3; do
        check "$mode: settled: the flow caches are flushed" ctl flush
        passes 100
    done
    result=$(traffic_end flushed)
    check_json "$mode: no connection broke or moved by a flush" "$result" \
        '.failed == 0 and .moved == 0 and .requests > 100'
    check "$mode: the event says who flushed" \
        test "$(api GET events | jq -r '[.events[] | select(.type == "flush")] | last | .actor.by')" = unix
    needed ctl drain b2 >/dev/null
    check "$mode: unsettled: a flush is refused" flush_is_refused
    needed traffic late hold "$URL4/echo" "$URL6/echo" --count 40 --rate 10
    kill_daemon control "flows on unsettled slots"
    needed ctl undrain b2 >/dev/null
    passes 400
    check_json "$mode: flows set up on unsettled slots survive changes and control's restart" \
        "{\"failed\": $(grep -c ' failed ' "$LAB_DIR/late.requests")}" '.failed == 0'
    kill_daemon dataplane "flows on unsettled slots"
    result=$(traffic_end late)
    note "$mode: set up on unsettled slots, broken when the dataplane was killed: $(jq -c "[.failed, .connections]" <<<"$result")"
done
check "no slot stays unsettled" wait_for 60 "no slot is unsettled" has_settled
finish
