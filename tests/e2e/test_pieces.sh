#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# IPv4 datagrams without DF that do not fit the link to the backends with their headers: dropped, cut inside, or cut
# outside, where the kernel's own VXLAN interface puts the tunnel packets together and opens them.
source "$(dirname "$0")/tap.sh"

needed lab_up pieces 1
needed in_ns lb ip link set eth0 mtu 1500 # as everywhere else: no room for a header
needed start_balancer 1

# ask BYTES, at most 1469 (the answer is longer by three): one datagram without DF to the UDP echo; fails when no answer comes.
ask() {
    in_ns client python3 - "$VIP4" "$1" <<'PYTHON'
import socket, sys

IP_MTU_DISCOVER, IP_PMTUDISC_DONT = 10, 0
flow = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
flow.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DONT)
flow.settimeout(1)
data = bytes(i * 7 % 251 for i in range(int(sys.argv[2])))
flow.sendto(data, (sys.argv[1], 7))
answer = flow.recv(65535)
sys.exit(0 if answer.endswith(data) else 1)
PYTHON
}
is_not_answered() { ! ask "$1" 2>/dev/null; }

check "what fits is answered" ask 1400
check "drop: what does not fit is not" is_not_answered 1469
check "and is counted by name" test "$(drops oversize)" -gt 0

LAB_FORWARDING='    forwarding: ipip
    fragment: inner'
write_config 1
check "fragment: inner: the reload is taken" ctl reload
check "in sync" wait_for 5 "in sync" in_sync
before=$(drops oversize)
for bytes in 1453 1460 1468 1469; do
    check "inner: $bytes bytes arrive and are answered" ask $bytes
done
check "nothing more was dropped" test "$(drops oversize)" = "$before"

# b1 without halbach-backend: the kernel's VXLAN, whose MAC address is the one that control makes of the backend's.
needed in_ns b1 "$(program halbach-backend)" detach eth0
IFS=. read -r -a bytes <<<"$(backend_address4 1)"
mac=$(printf '02:48:%02x:%02x:%02x:%02x' "${bytes[@]}")
needed in_ns b1 sh -c "ip link add vx0 address $mac type vxlan id 100 dstport 4789 local $(backend_address4 1) nolearning &&
    ip link set vx0 mtu 1500 up && sysctl -qw net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.vx0.rp_filter=0"
LAB_FORWARDING='    forwarding: vxlan
    vxlan: { vni: 100, checksum: true }
    fragment: outer'
write_config 1
check "vxlan, fragment: outer: the reload is taken" ctl reload
check "in sync" wait_for 5 "in sync" in_sync
check "the kernel opens what fits" ask 1400
for bytes in 1423 1460 1469; do
    check "outer: $bytes bytes arrive and are answered" ask $bytes
done
check "HTTP over the IPv4 VIP" wait_for 5 "the IPv4 VIP" in_ns client curl -sf --max-time 1 -o /dev/null "$URL4/"
check "HTTP over the IPv6 VIP" wait_for 5 "the IPv6 VIP" in_ns client curl -sgf --max-time 1 -o /dev/null "$URL6/"
check "nothing more was dropped" test "$(drops oversize)" = "$before"

finish
