#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Next hops and tunnel sources are learned from the kernel and followed: the router's MAC address changes, then the way
# to a backend does.
source "$(dirname "$0")/tap.sh"

needed lab_up hop 1 2
# A router that is replaced announces its new MAC address, as real ones do.
in_ns router sysctl -qw net.ipv4.conf.lb.arp_notify=1 net.ipv6.conf.lb.ndisc_notify=1
LAB_TUNNEL= # no source in the configuration: the kernel's preferred one, which the backends were told
needed start_balancer 1 2
mac_of() { api GET backends | jq -r --arg n "$1" '[.backends[] | select(.pool == "web" and .name == $n)][0].next_hop.mac'; }
all_have_mac() { [ "$(mac_of b1)" = "$1" ] && [ "$(mac_of b2)" = "$1" ] && in_sync; }

old=$(in_ns router cat /sys/class/net/lb/address)
check "control knows the router's MAC address ($old)" all_have_mac "$old"
source_of() { api GET backends | jq -r --arg n "$1" '[.backends[] | select(.name == $n)][0].next_hop.source'; }
check "tunnel sources are learned" test "$(source_of b1) $(source_of b2)" = "$LB4 $LB6"
check "it says the gateway" test "$(api GET backends | jq -r '[.backends[] | select(.name == "b1")][0].next_hop.gateway')" = 198.51.100.1

new=02:00:00:00:0b:0b
needed traffic udp udp "$UDP4" "$UDP6" --count 20 --rate 25
changed_at=$(now)
in_ns router ip link set lb address $new
check "a new MAC address is followed within 5 s" wait_for 5 "both backends have $new" all_have_mac $new
note "followed after $(jq -n "($(now) - $changed_at) * 1000 | round") ms"
check "both VIPs are served" wait_for 5 "both VIPs" serves
udp=$(traffic_end udp)
note "udp: $udp"
check_json "flows went on where they were" "$udp" '.moved == 0 and .duplicates == 0 and (.answered > 0)'

# The way to b1 disappears from the balancer's routes and comes back.
in_ns lb ip route add unreachable 198.51.100.16/28
check "a backend without a route goes down" wait_for 5 "b1 is down" backend_is b1 down
note "reason: $(api GET backends | jq -c '[.backends[] | select(.pool == "web" and .name == "b1")][0] | [.reason, .next_hop.problem]')"
check "the other one serves" wait_for 5 "both VIPs" serves
in_ns lb ip route del unreachable 198.51.100.16/28
check "it is taken back when the route is there again" wait_for 5 "b1 is up" backend_is b1 up
finish
