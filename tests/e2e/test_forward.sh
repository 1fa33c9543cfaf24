#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Both VIPs are served over all four kinds of IPIP tunnel, TCP and UDP, small and full-size packets, and every
# packet is accounted for.
source "$(dirname "$0")/tap.sh"

needed lab_up forward 1 2
needed start_balancer 1 2

# b1 is reached through IPv4, b2 through IPv6: both VIPs to both backends are 4in4, 4in6, 6in4 and 6in6.
for family in 4 6; do
    url=URL$family
    names=$(in_ns client curl -s --no-keepalive --max-time 20 -H 'Connection: close' \
        "${!url}/?"'[1-60]' | sort | uniq -c | awk '{ printf "%s=%s ", $2, $1 }')
    note "IPv$family VIP: $names"
    check "IPv$family VIP through an IPv4 tunnel (b1)" grep -q 'b1=' <<<"$names"
    check "IPv$family VIP through an IPv6 tunnel (b2)" grep -q 'b2=' <<<"$names"
done

result=$(in_ns client "$LAB_TRAFFIC" udp "$UDP4" "$UDP6" --count 40 --rate 25 --requests 2000)
note "UDP: $result"
check_json "UDP: every datagram is answered once" "$result" '.sent == 2000 and .answered == .sent and .duplicates == 0'
check_json "UDP: flows stay with their backend" "$result" '.moved == 0 and (.backends | length) == 2'

# A body of 1 MB makes the client send full-size packets towards the VIP, which become larger than the client's MTU
# in the tunnel. nginx answers 405 to a POST here, after it has read it: a status means it all arrived.
head -c 1048576 /dev/zero >"$LAB_DIR/body"
for family in 4 6; do
    url=URL$family
    for n in 1 2 3 4; do
        sent=$(in_ns client curl -sg --max-time 10 -o /dev/null -w '%{size_upload} %{http_code}' \
            -H 'Expect:' --data-binary "@$LAB_DIR/body" "${!url}/echo")
        [ "${sent%% *}" = 1048576 ] || break
    done
    check "IPv$family: an upload of full-size packets arrives (attempt $n: $sent)" test "${sent%% *}" = 1048576
done
check "no packet was dropped" test "$(api GET drops | jq .total)" = 0

stats=$(api GET stats)
check_json "packets in = packets out + punted + dropped" "$stats" \
    '.totals | .rx_packets > 0 and .rx_packets == .tx_packets + .punted_packets + .dropped_packets'

# What is not for a service stays the kernel's.
check "the balancer's own address answers ping" in_ns client ping -c 1 -W 2 "$LB4"
check "the balancer's own IPv6 address answers ping" in_ns client ping -c 1 -W 2 "$LB6"
in_ns client curl -s --max-time 1 "$URL4:81/" >/dev/null
check "a port that no service has is dropped by name" test "$(drops no_service)" -gt 0

lookup=$(ctl lookup 203.0.113.10:40000 "$VIP4:80" tcp --json)
note "lookup: $lookup"
check_json "lookup of an unknown flow answers from the table" "$lookup" '.source == "table" and .backend != null'
finish
