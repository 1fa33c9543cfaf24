#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A bond of two NICs, by DPDK's bond device: it is one port, its members are none, and traffic of VIPs and kernel passes.
# Not tried: a member that loses its link. The TAP devices that play NICs here do not tell their bond about it.
source "$(dirname "$0")/tap.sh"
source "$(dirname "$0")/wire.sh"

needed lab_up bond 1 2
LAB_EAL_PORTS="--vdev net_tap0,iface=wire0,mac=02:00:00:00:00:10 --vdev net_tap1,iface=wire1,mac=02:00:00:00:00:11
    --vdev net_bonding0,mode=1,slave=net_tap0,slave=net_tap1,primary=net_tap0"
LAB_PORTS="--punt 2=hb0"
WIRES=(wire0 wire1)
write_config 1 2
needed start_wired 1 2

ports=$(api GET status | jq -c .dataplane.ports)
note "ports: $ports"
check_json "the bond is the one port" "$ports" 'length == 1 and .[0].driver == "net_bonding" and .[0].interface == "hb0"'
check "ping reaches the balancer" in_ns router ping -c 3 -i 0.2 -W 2 "$LB4"

for family in 4 6; do
    url=URL$family
    answers=$(in_ns client curl -s --no-keepalive --max-time 20 -H 'Connection: close' "${!url}/?[1-100]" | grep -c '^b[12]$')
    check "IPv$family VIP: 100 of 100 connections are served ($answers)" test "$answers" -eq 100
done
check_json "received = sent + punted + dropped" "$(api GET stats)" \
    '.totals | .rx_packets == .tx_packets + .punted_packets + .dropped_packets'
finish
