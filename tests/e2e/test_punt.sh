#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A port that DPDK owns, with a TAP beside it: what is not for a VIP reaches the kernel by the TAP and its answers
# leave, at full function; and a flood toward the host costs the VIPs nothing.
# Runs alone: its flood keeps both CPUs busy.
source "$(dirname "$0")/tap.sh"
source "$(dirname "$0")/wire.sh"

needed lab_up punt 1 2
LAB_EAL_PORTS="--vdev net_tap0,iface=wire0,mac=02:00:00:00:00:10"
LAB_PORTS="--punt 0=hb0"
WIRES=(wire0)

write_config 1 2
cat >>"$LAB_DIR/halbach.yaml" <<YAML
punt: { rate: 2000 }
YAML
needed start_wired 1 2

ports=$(api GET status | jq -c .dataplane.ports)
note "ports: $ports"
check_json "the port's kernel interface is the TAP" "$ports" '.[0].interface == "hb0" and .[0].mac == "02:00:00:00:00:10" and .[0].link'
check "no address is on the wire's side" sh -c "! ip netns exec $LAB-lb ip -br addr show br0 | grep -q 198.51"
check "ping reaches the balancer and comes back" in_ns router ping -c 3 -i 0.2 -W 2 "$LB4"
check "so does IPv6, with neighbour discovery" in_ns router ping -c 3 -i 0.2 -W 2 "$LB6"
check "large packets pass whole" in_ns router ping -c 1 -W 2 -s 1400 -M "do" "$LB4"

# A TCP server of the host, as SSH would be.
launch host-server ip netns exec "$LAB-lb" "$LAB_TRAFFIC" serve --name host --address "$LB4" --port 7
needed wait_for 5 "the host's server runs" sh -c "ip netns exec $LAB-lb ss -Hlun 'sport = :7' | grep -q ."
result=$(in_ns client "$LAB_TRAFFIC" udp "$LB4:7" --count 4 --rate 25 --requests 100)
check_json "a server on the balancer itself is reached" "$result" '.failed == 0 and .sent == 100'

for family in 4 6; do
    url=URL$family
    answers=$(in_ns client curl -s --no-keepalive --max-time 20 -H 'Connection: close' "${!url}/?[1-100]" | grep -c '^b[12]$')
    check "IPv$family VIP: 100 of 100 connections are served ($answers)" test "$answers" -eq 100
done

# ---- a flood toward the host ----
before=$(drops punt_limit)
flood_host 20
flooded() { (($(drops punt_limit) > before + 1000)); }
needed wait_for 15 "the flood is limited and counted (punt_limit)" flooded
result=$(in_ns client "$LAB_TRAFFIC" udp "$UDP4" "$UDP6" --count 10 --rate 25 --requests 500)
note "VIP traffic during the flood: $result"
check_json "VIP traffic loses nothing to it" "$result" '.failed == 0 and .sent == 500'
in_ns router ip neigh flush dev lb
check "and ARP has a rate of its own" wait_for 2 "an answer to ARP" arp_answered
stop flood

# ---- the kernel learns that the link is down ----
in_ns lb ip link set wire0 down
check "the link of the NIC goes down: hb0 has no carrier" wait_for 5 "no carrier" carrier_is 0
in_ns lb ip link set wire0 up
check "and it is back with it" wait_for 5 "carrier" carrier_is 1
check "VIPs are served again" wait_for 10 "both VIPs are served" serves

check_json "received = sent + punted + dropped" "$(api GET stats)" \
    '.totals | .rx_packets == .tx_packets + .punted_packets + .dropped_packets'
finish
