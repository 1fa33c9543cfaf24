#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Two arms: clients come by eth0, backends are reached by eth1, as the kernel's routes say. When eth1 loses its link the
# kernel's routes change, control learns it, and packets leave by eth0; and back again.
#
#   router --- eth0  clients' side; default route, worse metric
#          `-- eth1  route to the backends' networks
source "$(dirname "$0")/tap.sh"

needed lab_up arms 1 2

second_arm() {
    ip link add eth1 mtu 1600 numtxqueues 1 numrxqueues 1 netns "$LAB-lb" type veth \
        peer name lb2 mtu 1600 numtxqueues 1 numrxqueues 1 netns "$LAB-router"
    in_ns router sh -c "ip addr add 198.51.100.193/28 dev lb2
        ip addr add 2001:db8:0:2::1/64 dev lb2 nodad && ip link set lb2 up && ethtool -K lb2 tx off >/dev/null"
    in_ns lb sh -c "ip addr add 198.51.100.194/28 dev eth1
        ip addr add 2001:db8:0:2::10/64 dev eth1 nodad && ip link set eth1 up && ethtool -K eth1 tx off >/dev/null"
}
to_backends() {
    in_ns lb sh -c "ip route add $(backend_address4 1)/32 via 198.51.100.193 metric 10
        ip route add $(backend_address6 2)/128 via 2001:db8:0:2::1 metric 10"
}
needed second_arm
needed to_backends
LAB_PORTS="--interface eth0 --interface eth1"
LAB_FALL=20 # probes go by the same routes: what they make of the change is not the matter here
needed start_balancer 1 2

sent_by() { in_ns router cat "/sys/class/net/$1/statistics/rx_packets"; }
note "ports: $(api GET status | jq -c '[.dataplane.ports[] | {id, interface, driver}]')"

serve_100() {
    local before0 before1
    before0=$(sent_by lb) before1=$(sent_by lb2)
    answers=$(in_ns client curl -s --no-keepalive --max-time 20 -H 'Connection: close' "$URL4/?[1-100]" | grep -c '^b[12]$')
    by_eth0=$(($(sent_by lb) - before0)) by_eth1=$(($(sent_by lb2) - before1))
}

serve_100
check "100 of 100 connections are served ($answers)" test "$answers" -eq 100
check "packets to the backends leave by eth1 ($by_eth1), not by eth0 ($by_eth0)" test "$by_eth1" -gt 400 -a "$by_eth0" -lt 100

# A connection that lasts over all that follows.
traffic hold hold "$URL4/echo" --count 10 --rate 20 --seconds 60

changed_at=$(now)
in_ns lb ip link set eth1 down
moved() { serve_100 && [ "$answers" -eq 100 ] && ((by_eth0 > 400)); }
check "with eth1 down they leave by eth0" wait_for 15 "packets leave by eth0" moved
note "after the failure: $(outage hold "$changed_at")"
in_ns lb ip link set eth1 up
in_ns lb ip addr add 2001:db8:0:2::10/64 dev eth1 nodad 2>/dev/null
needed to_backends
back() { serve_100 && [ "$answers" -eq 100 ] && ((by_eth1 > 400)); }
check "and by eth1 again when it is back" wait_for 15 "packets leave by eth1" back
result=$(traffic_end hold)
note "$result"
check_json "connections lived through both" "$result" '.moved == 0 and .failed == 0'
finish
