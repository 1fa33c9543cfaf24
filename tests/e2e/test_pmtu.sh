#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Path MTU discovery through the balancer, by real TCP stacks: clients whose packets do not fit the tunnel are told so,
# and servers learn of a small link on the way to a client. Without these messages the same transfers hang. And a VIP
# answers pings.
source "$(dirname "$0")/tap.sh"

reload_icmp() {
    LAB_ICMP=$1
    write_config 1 2
    ctl reload >/dev/null && wait_for 10 "the dataplane has the new settings" in_sync
}

needed lab_up pmtu 1 2
# The balancer's link is no larger than the client's: full-size packets do not fit once they are in a tunnel.
in_ns lb ip link set eth0 mtu 1500
in_ns router ip link set lb mtu 1500
LAB_ICMP='{ rate: 0, relay_rate: 0 }'
needed start_balancer 1 2

head -c 300000 /dev/zero >"$LAB_DIR/body"
head -c 300000 /dev/zero >"$LAB_DIR/www/file"

# upload URL SECONDS, download URL SECONDS: whether all of it arrives.
upload() {
    [ "$(in_ns client curl -sg --max-time "$2" -o /dev/null -w '%{http_code}' -H 'Expect:' \
        --data-binary "@$LAB_DIR/body" "$1/sink")" = 200 ]
}
download() { [ "$(in_ns client curl -sg --max-time "$2" -o /dev/null -w '%{size_download}' "$1/file")" = 300000 ]; }
hangs() { ! "$@" 3; }
# Several connections, so that both backends are asked: one through IPv4, one through IPv6.
arrives() {
    local _
    for _ in 1 2 3 4; do "$@" 20 || return 1; done
}

for family in 4 6; do
    url=URL$family
    check "IPv$family: without messages an upload hangs" hangs upload "${!url}"
done
needed reload_icmp '{ rate: 1000, relay_rate: 0 }'
for family in 4 6; do
    url=URL$family vip=VIP$family
    check "IPv$family: with messages uploads arrive" arrives upload "${!url}"
    route=$(in_ns client ip route get "${!vip}")
    note "$route"
    check "IPv$family: the client has learned the tunnel's MTU" grep -qE 'mtu (1480|1460)' <<<"$route"
done
check_json "messages were sent" "$(api GET stats)" '.totals | .icmp_sent > 0 and .made_packets == .icmp_sent'

# The link from the router to the client shrinks. The router tells the sender, which is the VIP.
in_ns router ip link set client mtu 1400
for family in 4 6; do
    url=URL$family
    check "IPv$family: without relay a download hangs" hangs download "${!url}"
done
needed reload_icmp '{ rate: 1000, relay_rate: 10000 }'
for family in 4 6; do
    url=URL$family
    check "IPv$family: with relay downloads arrive" arrives download "${!url}"
done
stats=$(api GET stats)
note "$(jq -c '.totals | { icmp_sent, icmp_relayed, icmp_elsewhere }' <<<"$stats")"
check_json "errors were relayed" "$stats" '.totals.icmp_relayed > 0'

# Pings of the VIP.
for vip in "$VIP4" "$VIP6"; do
    check "$vip answers pings" in_ns client ping -c 3 -i 0.05 -W 5 "$vip"
done
needed reload_icmp '{ echo: forward }'
for vip in "$VIP4" "$VIP6"; do
    check "a backend answers pings of $vip" in_ns client ping -c 3 -i 0.05 -W 5 "$vip"
done
needed reload_icmp '{ echo: drop }'
before=$(drops echo)
in_ns client ping -c 1 -W 1 "$VIP4" >/dev/null
check "pings are dropped where that is wanted" test "$(drops echo)" -gt "$before"

stats=$(api GET stats)
check_json "received + made = sent + punted + dropped + held" "$stats" \
    '.totals | .rx_packets + .made_packets == .tx_packets + .punted_packets + .dropped_packets + .held_packets'
finish
