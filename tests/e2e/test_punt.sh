#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A port that DPDK owns, with a TAP beside it: what is not for a VIP reaches the kernel by the TAP and its answers
# leave, at full function; and a flood toward the host costs the VIPs nothing.
#
#   router --- eth0 - br0 - wire ===DPDK=== halbach-dataplane ===TAP=== hb0: the balancer's addresses
#
# The bridge only carries frames to the device that plays the NIC; the kernel of the balancer has addresses on hb0 alone.
source "$(dirname "$0")/tap.sh"

needed lab_up punt 1 2
LAB_EAL_PORTS="--vdev net_tap0,iface=wire,mac=02:00:00:00:00:10"
LAB_PORTS="--punt 0=hb0"

wire_up() {
    in_ns lb sh -c "
        ip addr flush dev eth0 scope global
        sysctl -qw net.ipv6.conf.eth0.disable_ipv6=1 net.ipv6.conf.wire.disable_ipv6=1
        ip link add br0 type bridge mcast_snooping 0
        sysctl -qw net.ipv6.conf.br0.disable_ipv6=1
        ip link set wire address 02:00:00:00:99:99
        ip link set eth0 master br0
        ip link set wire master br0 up
        ip link set br0 up
        ip addr add $LB4/28 dev hb0
        ip addr add $LB6/64 dev hb0 nodad
        ip link set hb0 up
        ip route add default via 198.51.100.1
        ip route add default via 2001:db8:0:1::1"
}

write_config 1 2
cat >>"$LAB_DIR/halbach.yaml" <<YAML
punt: { rate: 2000 }
YAML
needed start_dataplane
needed wait_for 20 "the TAP is there" in_ns lb ip link show hb0
needed wire_up
needed start_control
needed wait_for 20 "the dataplane has control's generation" in_sync
needed wait_for 15 "both backends are up" backends_up 2
needed wait_for 10 "both VIPs are served" serves

ports=$(api GET status | jq -c .dataplane.ports)
note "ports: $ports"
check_json "the port's kernel interface is the TAP" "$ports" '.[0].interface == "hb0" and .[0].mac == "02:00:00:00:00:10" and .[0].link'
check "no address is on the wire's side" sh -c "! ip netns exec $LAB-lb ip -br addr show br0 | grep -q 198.51"
check "ping reaches the balancer and comes back" in_ns router ping -c 3 -i 0.2 -W 2 "$LB4"
check "so does IPv6, with neighbour discovery" in_ns router ping -c 3 -i 0.2 -W 2 "$LB6"
check "large packets pass whole" in_ns router ping -c 1 -W 2 -s 1400 -M do "$LB4"

# A TCP server of the host, as SSH would be.
launch host-server ip netns exec "$LAB-lb" "$LAB_TRAFFIC" serve --name host --address "$LB4" --port 7
needed wait_for 5 "the host's server runs" sh -c "ip netns exec $LAB-lb ss -Hlun 'sport = :7' | grep -q ."
result=$(in_ns client "$LAB_TRAFFIC" udp "$LB4:7" --count 4 --rate 25 --seconds 1)
check_json "a server on the balancer itself is reached" "$result" '.failed == 0 and .sent > 50'

for family in 4 6; do
    url=URL$family
    answers=$(in_ns client curl -s --no-keepalive --max-time 20 -H 'Connection: close' "${!url}/?[1-100]" | grep -c '^b[12]$')
    check "IPv$family VIP: 100 of 100 connections are served ($answers)" test "$answers" -eq 100
done

# ---- a flood toward the host ----
before=$(drops punt_limit)
# At most 20 s of datagrams to a port of the host where nobody listens.
launch flood ip netns exec "$LAB-router" python3 -c '
import socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
end = time.monotonic() + 20
while time.monotonic() < end:
    for i in range(100):
        try: s.sendto(b"flood", (sys.argv[1], 9))
        except OSError: pass
    time.sleep(0.005)
' "$LB4"
flooded() { (($(drops punt_limit) > before + 1000)); }
needed wait_for 15 "the flood is limited and counted (punt_limit)" flooded
result=$(in_ns client "$LAB_TRAFFIC" udp "$UDP4" "$UDP6" --count 10 --rate 25 --seconds 2)
note "VIP traffic during the flood: $result"
check_json "VIP traffic loses nothing to it" "$result" '.failed == 0 and .sent > 200'
in_ns router ip neigh flush dev lb
check "and ARP has a rate of its own" in_ns router sh -c "for i in 1 2 3 4 5 6 7 8 9 10; do ip neigh show $LB4 dev lb | grep -q lladdr && exit 0; sleep 0.2; done; exit 1"
stop flood INT

# ---- the kernel learns that the link is down ----
carrier_is() { [ "$(in_ns lb cat /sys/class/net/hb0/carrier)" = "$1" ]; }
in_ns lb ip link set wire down
check "the link of the NIC goes down: hb0 has no carrier" wait_for 5 "no carrier" carrier_is 0
in_ns lb ip link set wire up
check "and it is back with it" wait_for 5 "carrier" carrier_is 1
check "VIPs are served again" wait_for 10 "both VIPs are served" serves

check_json "received = sent + punted + dropped" "$(api GET stats)" \
    '.totals | .rx_packets == .tx_packets + .punted_packets + .dropped_packets'
finish
