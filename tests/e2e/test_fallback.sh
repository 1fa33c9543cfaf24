#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Where AF_XDP can't be had the dataplane takes AF_PACKET, says so and why, and serves. Where there are no hugepages it
# takes ordinary memory.
source "$(dirname "$0")/tap.sh"

needed lab_up fallback 1 2
# The native XDP mode of veth needs packets to fit a page; with this MTU the kernel refuses the program.
in_ns lb ip link set eth0 mtu 9000
in_ns router ip link set lb mtu 9000
LAB_NO_HUGE=1
needed start_balancer 1 2

ports=$(api GET status | jq -c .dataplane.ports)
check_json "the port is AF_PACKET" "$ports" '.[0].driver == "net_af_packet"'
check "the log says so and why" grep -Eq 'AF_PACKET instead of AF_XDP .*because .+' "$LAB_DIR/dataplane.log"
note "$(grep -E 'AF_PACKET instead' "$LAB_DIR/dataplane.log")"
check "the log says that there are no hugepages" grep -q 'ordinary memory' "$LAB_DIR/dataplane.log"

for family in 4 6; do
    url=URL$family
    answers=$(in_ns client curl -s --no-keepalive --max-time 20 -H 'Connection: close' "${!url}/?[1-100]" | grep -c '^b[12]$')
    check "IPv$family: 100 of 100 connections are served ($answers)" test "$answers" -eq 100
done
result=$(in_ns client "$LAB_TRAFFIC" udp "$UDP4" "$UDP6" --count 20 --rate 25 --requests 500)
note "UDP: $result"
check_json "every datagram is answered once" "$result" '.failed == 0 and .moved == 0 and .sent == 500'
check "the balancer's own address answers ping" in_ns client ping -c 1 -W 2 "$LB4"
finish
