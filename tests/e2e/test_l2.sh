#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# L2: backends on the balancer's own link get the packets by their MAC address. Those behind the router can't have it,
# and control says so.
#
#   router, its end of the balancer's link as a switch:   lb ---- sw (198.51.100.1) ---- b1 eth1 198.51.100.4
#                                                                                   ---- b2 eth1 198.51.100.5
source "$(dirname "$0")/tap.sh"

needed lab_up l2 1 2

make_switch() {
    in_ns router sh -c "ip link add sw type bridge && ip addr flush dev lb && ip link set lb master sw mtu 1600 &&
        ip addr add 198.51.100.1/28 dev sw && ip -6 addr add 2001:db8:0:1::1/64 dev sw nodad && ip link set sw up &&
        ip route replace 192.0.2.0/24 via $LB4 && ip -6 route replace 2001:db8:0:a::/64 via $LB6"
}

# join N ADDRESS4 ADDRESS6: a second interface of a backend, on the switch. Answers leave by the first one.
join() {
    ip link add eth1 mtu 1600 netns "$LAB-b$1" type veth peer name "sw$1" mtu 1600 netns "$LAB-router"
    in_ns router sh -c "ip link set sw$1 master sw && ip link set sw$1 up && ethtool -K sw$1 tx off >/dev/null"
    in_ns "b$1" sh -c "ip addr add $2/28 dev eth1 && ip -6 addr add $3/64 dev eth1 nodad && ip link set eth1 up &&
        ethtool -K eth1 tx off >/dev/null && sysctl -qw net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.eth1.rp_filter=0"
}

needed make_switch
needed join 1 198.51.100.4 2001:db8:0:1::4
needed join 2 198.51.100.5 2001:db8:0:1::5
backend_address() { if (($1 == 1)); then echo 198.51.100.4; else echo 2001:db8:0:1::5; fi; }
LAB_FORWARDING='    forwarding: l2
    fragment: inner'
needed start_balancer 1 2
needed traffic hold hold "$URL4/echo" "$URL6/echo" --count 10 --rate 20

check "on the wire as it came" in_ns router "$LAB_SOURCE/sniff.py" lb --seconds 10 --until plain4 plain6
kinds=$(in_ns router "$LAB_SOURCE/sniff.py" lb --seconds 1)
note "kinds: $kinds"
check_json "and without any tunnel" "$kinds" 'keys - ["plain4", "plain6", "other"] == []'
for family in 4 6; do
    url=URL$family
    names=$(in_ns client curl -s --no-keepalive --max-time 20 -H 'Connection: close' \
        "${!url}/?"'[1-60]' | sort | uniq -c | awk '{ printf "%s=%s ", $2, $1 }')
    note "IPv$family VIP: $names"
    check "IPv$family VIP: a backend known by IPv4 and one by IPv6 serve it" test "$(wc -w <<<"$names")" = 2
done
head -c 1048576 /dev/zero >"$LAB_DIR/body"
for url in "$URL4" "$URL6"; do
    sent=$(in_ns client curl -sg --max-time 10 -o /dev/null -w '%{size_upload}' -H 'Expect:' --data-binary "@$LAB_DIR/body" "$url/echo")
    check "$url takes an upload" test "$sent" = 1048576
done
hold=$(traffic_end hold)
note "hold: $hold"
check_json "no connection broke or moved" "$hold" '.failed == 0 and .moved == 0'
check "no packet was dropped" test "$(api GET drops | jq .total)" = 0

# b2 by an address behind the router.
backend_address() { if (($1 == 1)); then echo 198.51.100.4; else backend_address4 2; fi; }
write_config 1 2
check "a reload with a far backend is taken" ctl reload
problem_of() { api GET backends | jq -r --arg n "$1" '[.backends[] | select(.pool == "web" and .name == $n)][0].next_hop.problem'; }
far_is_named() { problem_of b2 | grep -q 'is behind 198.51.100.1; forwarding by l2 needs it on a link'; }
check "its next hop says what is wrong" wait_for 5 "the problem is shown" far_is_named
note "$(problem_of b2)"
check "the other one serves" wait_for 5 "both VIPs" serves
finish
