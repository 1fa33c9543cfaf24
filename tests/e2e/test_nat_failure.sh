#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What becomes of connections over NAT and full NAT when their server vanishes, when it is drained by reset, and when it
# is removed: they end at once, by a reset that the client gets; those of other servers do not notice.
source "$(dirname "$0")/tap.sh"
source "$(dirname "$0")/nat.sh"
NAT_RETURN=lb

needed lab_up natfail
needed nat_backend 1
needed nat_backend 2
in_ns router ip route add 198.51.100.240/28 via "$LB4"
in_ns router ip route add 2001:db8:0:f::/120 via "$LB6"
full() { echo "forwarding: full_nat"$'\n'"    nat: { port: 8080, sources: [\"$1\"] }"; }
nat() { nat_config $'forwarding: nat\n    nat: { port: 8080 }' $'forwarding: nat\n    nat: { port: 8080 }' "$@"; }
full_nat() { nat_config "$(full 198.51.100.240/30)" "$(full 2001:db8:0:f::/126)" "$@"; }

stats() { api GET stats | jq ".totals.$1"; }
backends_are() { [ "$(api GET backends | jq -c '[.backends[] | select(.name == "b1") | .state] | unique')" = "[\"$1\"]" ]; }
all_up() { [ "$(api GET backends | jq '[.backends[] | select(.state == "up")] | length')" = "$1" ]; }
# Connections of the clients alone: health checks come from the balancer's own address.
connections_of() { in_ns "$1" ss -Htn state established "sport = :8080 and not dst $LB4 and not dst [$LB6]" | wc -l; }
has_none() { [ "$(connections_of "$1")" = 0 ]; }

# ended MODE NAME VICTIM WHAT: each connection of the victim, and no other, has ended by a reset.
ended() {
    local mode=$1 name=$2 victim=$3 what=$4 result
    result=$(traffic_end "$name")
    note "$mode, $what: $(jq -c '[.connections, .failed, .moved, .backends]' <<<"$result")"
    check_json "$mode, $what: every connection of $victim was reset, and no other" "$result" \
        ".failed == .backends.$victim and .failed > 0 and .moved == 0 and
         [.broken[] | select(.backend != \"$victim\" or .problem != \"reset\")] == []"
}
# requests NAME ok|failed BACKEND: of a run of `hold`: connections that the backend has got, or those of it that broke.
requests() { grep -c "^[0-9.]* [0-9.]* $2 $3 " "$LAB_DIR/$1.requests"; }
all_failed() { [ "$(requests "$1" failed "$2")" -ge "$3" ]; }

for mode in nat full_nat; do
    "$mode" 1 2
    if [ $mode = nat ]; then
        needed nat_start 2
    else
        check "reload to full NAT" ctl reload
        needed wait_for 10 "the dataplane has it" in_sync
        needed wait_for 10 "all are up" all_up 4
    fi

    # A host that vanishes: nothing comes from it any more, no reset either.
    before=$(stats nat_resets)
    needed traffic vanish hold "$URL4/echo" "$URL6/echo" --count 20 --rate 10 --timeout 15
    count=$(requests vanish ok b1)
    in_ns router ip route add blackhole "$(backend_address4 1)"
    in_ns router ip -6 route add blackhole "$(backend_address6 1)"
    needed wait_for 10 "b1 is down" backends_are down
    wait_for 15 "the $count connections of b1 end" all_failed vanish b1 "$count"
    ended $mode vanish b1 "its host vanishes"
    [ $mode = nat ] || check "the balancer has reset them ($before, $(stats nat_resets))" \
        test "$(stats nat_resets)" -ge $((before + count))
    in_ns router ip route del blackhole "$(backend_address4 1)"
    in_ns router ip -6 route del blackhole "$(backend_address6 1)"
    needed wait_for 10 "all are up" all_up 4

    # A drain that ends by reset: both ends hear of it.
    before=$(stats drain_resets)
    needed traffic drained hold "$URL4/echo" "$URL6/echo" --count 20 --rate 10 --timeout 15
    count=$(requests drained ok b2)
    check "$mode: drain b2, reset what is left after a second" ctl drain b2 --deadline 1s --at-deadline reset
    wait_for 15 "the $count connections of b2 end" all_failed drained b2 "$count"
    ended $mode drained b2 "drained by reset"
    check "$mode: the resets are counted" test "$(stats drain_resets)" -gt "$before"
    check "$mode: the server has heard of it: no connection is left there" wait_for 5 "none is left" has_none b2
    check "$mode: undrain" ctl undrain b2
    needed wait_for 10 "all are up" all_up 4

    # Removed from the configuration.
    needed traffic removed hold "$URL4/echo" "$URL6/echo" --count 20 --rate 10 --timeout 15
    count=$(requests removed ok b1)
    "$mode" 2
    check "$mode: reload without b1" ctl reload
    wait_for 15 "the $count connections of b1 end" all_failed removed b1 "$count"
    ended $mode removed b1 "removed"
    check "$mode: what is left serves" wait_for 5 "both VIPs are served" serves
done
finish
