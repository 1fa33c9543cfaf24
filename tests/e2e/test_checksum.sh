#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# UDP checksums of tunnels, over IPv4 and IPv6, computed by the dataplane, and by the port it sends on when that was
# asked for and the port can (BL-18): the kernel's own VXLAN interfaces, which check them, take every packet.
source "$(dirname "$0")/tap.sh"
source "$(dirname "$0")/wire.sh"

needed lab_up checksum 1 2
LAB_EAL_PORTS="--vdev net_tap0,iface=wire0,mac=02:00:00:00:00:10"
LAB_PORTS="--punt 0=hb0"
WIRES=(wire0)
LAB_FORWARDING='    forwarding: vxlan
    vxlan: { vni: 100, mac: 02:00:00:00:00:64, checksum: true }'
for n in 1 2; do
    needed in_ns "b$n" "$(program halbach-backend)" detach eth0 >/dev/null
    needed in_ns "b$n" sh -c "ip link add vx0 address 02:00:00:00:00:64 type vxlan id 100 dstport 4789 nolearning \
            local $(backend_address "$n") && ip link set vx0 mtu 1500 up &&
        sysctl -qw net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.vx0.rp_filter=0"
done
needed in_ns client ip link set eth0 mtu 1400 # the wire has 1,500, and headers take 70
head -c 1048576 /dev/zero >"$LAB_DIR/body"

udp_errors() { in_ns "$1" cat /proc/net/snmp /proc/net/snmp6 | awk '/^Udp:/ && n++ { v4 = $8 } /^Udp6InCsumErrors/ { v6 = $2 } END { print v4 + v6 }'; }

# run TEXT: one life of the balancer.
run() {
    local url n answers sent
    for url in "$URL4" "$URL6"; do
        answers=$(in_ns client curl -s --no-keepalive --max-time 20 -H 'Connection: close' "$url/?"'[1-40]' | sort | uniq -c |
            awk '{ printf "%s=%s ", $2, $1 }')
        note "$1: $url: $answers"
        check "$1: $url: both backends serve it" test "$(wc -w <<<"$answers")" = 2
        sent=$(in_ns client curl -sg --max-time 10 -o /dev/null -w '%{size_upload}' -H 'Expect:' --data-binary "@$LAB_DIR/body" "$url/echo")
        check "$1: $url takes an upload" test "$sent" = 1048576
    done
    for n in 1 2; do
        check "$1: b$n found no checksum wrong" test "$(udp_errors "b$n")" = 0
    done
}

write_config 1 2
needed start_wired 1 2
check "the dataplane computes them" sh -c "! grep -q 'UDP checksums' '$LAB_DIR/dataplane.log'"
run "computed here"
stop_control
stop_dataplane
LAB_DATAPLANE_OPTIONS=--udp-checksum-offload
needed start_wired 1 2
check "the dataplane says who computes them" grep -q 'port 0 .*computes UDP checksums' "$LAB_DIR/dataplane.log"
run "by the port"
finish
