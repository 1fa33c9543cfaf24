#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# UDP over NAT and full NAT, IPv4 and IPv6: a server that echoes is reached and answers; what networks say about its
# flows (port unreachable, fragmentation needed, packet too big) reaches the end that must hear it, as about its own flow.
source "$(dirname "$0")/tap.sh"
source "$(dirname "$0")/nat.sh"
NAT_RETURN=lb

DNS4=$VIP4:53
DNS6=[$VIP6]:53
ask() { in_ns client "$LAB_SOURCE/udp_ask.py" "$@"; }
unreachable() { api GET backends | jq '[.backends[] | select(.pool | startswith("dns")) | .path.unreachable] | add'; }
pool_nat() { api GET status | jq -c --arg n "$1" '.pools[] | select(.name == $n) | .nat'; }

needed lab_up natudp
needed nat_backend 1
needed nat_backend 2
needed nat_udp 1
needed nat_udp 2
# What full NAT takes as sources is routed to the balancer.
in_ns router ip route add 198.51.100.240/28 via "$LB4"
in_ns router ip route add 2001:db8:0:f::/120 via "$LB6"

serve() {
    local web4=$1 web6=$2 dns4=$3 dns6=$4
    shift 4
    nat_udp_pools "$dns4" "$dns6" "$@"
    nat_config "$web4" "$web6" 1 2
}
nat() { serve $'forwarding: nat\n    nat: { port: 8080 }' $'forwarding: nat\n    nat: { port: 8080 }' \
    $'forwarding: nat\n    nat: { port: 5300 }' $'forwarding: nat\n    nat: { port: 5300 }' "$@"; }
full() { echo "forwarding: full_nat"$'\n'"    nat: { port: $1, sources: [\"$2\"] }"; }
full_nat() { serve "$(full 8080 198.51.100.240/30)" "$(full 8080 2001:db8:0:f::/126)" \
    "$(full 5300 198.51.100.244/30)" "$(full 5300 2001:db8:0:f::4/126)" "$@"; }

# Both servers, small and full-size datagrams; nothing is dropped.
datagrams() {
    local mode=$1 result
    result=$(in_ns client "$LAB_TRAFFIC" udp "$DNS4" "$DNS6" --count 20 --rate 25 --requests 500)
    note "$mode: $result"
    check_json "$mode: every datagram is answered once, by both servers" "$result" \
        '.failed == 0 and .moved == 0 and .foreign == 0 and .sent == 500 and (.backends | keys == ["b1", "b2"])'
    check "$mode, IPv4: a datagram of the largest size comes back" grep -q ^answer <<<"$(ask "$DNS4" --size 1469)"
    check "$mode, IPv6: the same" grep -q ^answer <<<"$(ask "$DNS6" --size 1449)"
}

# The server is gone, its host is not: the host's ICMP error comes back as from the VIP, about the client's own flow.
port_unreachable() {
    local mode=$1 before family target got
    before=$(unreachable)
    stop udp-b1 KILL
    stop udp-b2 KILL
    for family in 4 6; do
        target=DNS$family
        got=$(ask "${!target}")
        check "$mode, IPv$family: the client hears that the port is closed ($got)" test "$got" = refused
    done
    check "$mode: such errors are counted for the backends ($before, $(unreachable))" test "$(unreachable)" -ge $((before + 2))
    needed nat_udp 1
    needed nat_udp 2
}

nat 1 2
needed nat_start 2
datagrams nat
check "nat: no packet was dropped" test "$(api GET drops | jq .total)" = 0
check_json "nat has no sessions" "$(api GET status)" '[.pools[].nat] | unique == [null]'
port_unreachable nat
# The answer fits the server's link (1600) and the balancer's, not the client's. The router tells the VIP; the server
# hears of it, and its next answer comes in fragments.
for family in 4 6; do
    target=DNS$family
    got=$(ask "${!target}" --size 1530 --fragment)
    check "nat, IPv$family: an answer that is too large for the client's link comes in fragments ($got)" grep -q ^answer <<<"$got"
done

# Requests and answers of 3,000 bytes, both in fragments: the same bytes come back, with a checksum that the client's kernel
# has looked at, from the backend of the flow's small datagrams. No fragment is dropped or still held; what is dropped are
# errors about them: over IPv6 they are too large for the client's link at first, and the router complains about later
# ones as well, which have no ports.
large() {
    local mode=$1 family target result
    for family in 4 6; do
        target=DNS$family
        result=$(in_ns client "$LAB_SOURCE/datagrams.py" "${!target}" --size 3000 --count 20)
        check_json "$mode, IPv$family: datagrams of 3,000 bytes come back whole: $result" "$result" \
            '.small == 20 and .large == 20 and .same == 20 and (.backends | length) == 2'
    done
    check_json "$mode: no fragment is held" "$(api GET stats)" '.totals.held_packets == 0'
    check_json "$mode: none was dropped" "$(api GET drops)" \
        '[.drops[] | select(.reason != "icmp_quote") | .packets] | add == 0'
}
large nat

full_nat 1 2
check "reload to full NAT" ctl reload
needed wait_for 10 "the dataplane has it" in_sync
before=$(api GET drops | jq .total)
datagrams full_nat
check "full_nat: no packet was dropped" test "$(api GET drops | jq .total)" = "$before"
large full_nat
for pool in dns dns6; do
    nat=$(pool_nat $pool)
    note "$pool: $nat"
    check_json "$pool: sessions and ports are counted" "$nat" \
        '.sessions >= 10 and .ports == 4 * 64512 and .ports_used > 0 and .ports_used <= .sessions and .ports_free == .ports - .ports_used and .exhausted == 0'
done
check "halbachctl shows them" grep -q '^Full NAT .* sessions in use' <<<"$(ctl stats)"
port_unreachable full_nat

# The path to the server becomes narrow: the router tells the source address of the balancer, and the client hears of it.
full_nat 1
check "reload to one server" ctl reload
needed wait_for 10 "the dataplane has it" in_sync
in_ns router ip link set b1 mtu 1300
for family in 4 6; do
    target=DNS$family
    got=$(ask "${!target}" --size 1400)
    check "full_nat, IPv$family: the client hears what fits ($got)" test "$got" = "too_big 1300"
    got=$(ask "${!target}" --size 1200)
    check "full_nat, IPv$family: that much passes ($got)" test "$got" = "answer b1"
done
in_ns router ip link set b1 mtu 1600
finish
