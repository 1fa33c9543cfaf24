#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Every tunnel, one after the other by reload, with connections running all the time: they stay where they are (BL-55),
# and uploads of full-size packets arrive over IPv4 and IPv6.
source "$(dirname "$0")/tap.sh"

PREFIX4=198.51.100.128/25
PREFIX6=2001:db8:0:2::/112

needed lab_up modes 1 2
for n in 1 2; do
    needed attach_decap "$n" --source $PREFIX4 --source $PREFIX6
done
needed start_balancer 1 2
needed traffic hold hold "$URL4/echo" "$URL6/echo" --count 10 --rate 20
needed traffic udp udp "$UDP4" "$UDP6" --count 10 --rate 20
head -c 1048576 /dev/zero >"$LAB_DIR/body"

sniff() { in_ns router "$LAB_SOURCE/sniff.py" lb --seconds 10 --until "$@"; }

# upload URL: both backends get some; nginx answers 405 after it has read the body.
upload() {
    local sent
    for _ in 1 2 3 4 5 6; do
        sent=$(in_ns client curl -sg --max-time 10 -o /dev/null -w '%{size_upload}' -H 'Expect:' \
            --data-binary "@$LAB_DIR/body" "$1/echo")
        [ "$sent" = 1048576 ] || return 1
    done
}

# try NAME KIND LINES [TUNNEL]: the pools forward like that from now on. KIND as sniff.py has it, without the family.
try() {
    local name=$1 kind=$2
    LAB_FORWARDING=$3
    [ $# -lt 4 ] || LAB_TUNNEL=$4
    write_config 1 2
    check "$name: the reload is taken" ctl reload
    check "$name: the dataplane has it" wait_for 5 "in sync" in_sync
    check "$name: on the wire, over IPv4 and IPv6" sniff "${kind}4" "${kind}6"
    check "$name: the IPv4 VIP takes uploads" upload "$URL4"
    check "$name: the IPv6 VIP takes uploads" upload "$URL6"
}

try gue gue0- '    forwarding: gue'
try "gue variant 1, checksums" gue1- '    forwarding: gue
    gue: { variant: 1, checksum: true }'
try "gue without checksums" gue0- '    forwarding: gue
    gue: { zero_checksum6: true }'
try gre gre '    forwarding: gre'
try vxlan vxlan '    forwarding: vxlan
    vxlan: { vni: 100, checksum: true }'
try "ipip from a prefix" ipip '    forwarding: ipip' "tunnel: { source_prefix: $PREFIX4, source_prefix6: \"$PREFIX6\" }"

sources=$(in_ns router "$LAB_SOURCE/sniff.py" lb --seconds 1)
note "kinds seen: $sources"
hold=$(traffic_end hold) udp=$(traffic_end udp)
note "hold: $hold"
note "udp: $udp"
check_json "no connection broke or moved" "$hold" '.failed == 0 and .moved == 0'
check_json "no datagram was lost or doubled" "$udp" '.failed == 0 and .moved == 0 and .duplicates == 0'
for n in 1 2; do
    counters=$(in_ns "b$n" "$(program halbach-backend)" status --json)
    check_json "b$n opened all of it" "$counters" '.interfaces[0].counters | .decapsulated > 1000 and .malformed == 0
        and .not_source == 0 and .not_vip == 0 and .ecn_dropped == 0'
done
check "no packet was dropped" test "$(api GET drops | jq .total)" = 0
stats=$(api GET stats)
check_json "packets in = packets out + punted + dropped" "$stats" \
    '.totals | .rx_packets == .tx_packets + .punted_packets + .dropped_packets'

# A prefix with somebody in it is refused, and nothing changes (BL-08).
LAB_TUNNEL="tunnel: { source_prefix: 198.51.100.0/24 }"
write_config 1 2
refusal=$(ctl reload 2>&1)
check "a prefix that holds a backend is refused" grep -q 'tunnel.source_prefix: .* holds 198.51.100.18' <<<"$refusal"
check "both VIPs are served" serves
finish
