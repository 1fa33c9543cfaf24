#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Datagrams in fragments reach real servers, over IPv4 and IPv6, in order and with the last fragment first, on the
# backend of the flow's small datagrams.
source "$(dirname "$0")/tap.sh"

needed lab_up fragments 1 2
needed start_balancer 1 2

whole='.small == 20 and .large == 20 and .same == 20 and (.backends | length) == 2'
for target in "$UDP4" "$UDP6"; do
    result=$(in_ns client "$LAB_SOURCE/datagrams.py" "$target" --size 4000 --count 20)
    check_json "datagrams of 4,000 bytes to $target: $result" "$result" "$whole"
done
result=$(in_ns client "$LAB_SOURCE/datagrams.py" "$UDP4" --size 6000 --count 20 --reversed 203.0.113.10)
check_json "the last fragment first: $result" "$result" "$whole"

stats=$(api GET stats)
note "$(jq -c '.totals | { fragments, held_packets, icmp_relayed, made_packets }' <<<"$stats")"
check_json "fragments were forwarded, none is held" "$stats" '.totals | .fragments >= 20 * (3 + 3 + 5) and .held_packets == 0'
check_json "no fragment was dropped" "$(api GET drops)" \
    '[.drops[] | select(.reason | startswith("fragment")) | .packets] | add == 0'

# A fragment whose first one never comes waits in vain, and nothing else happens.
in_ns client python3 -c "import socket, struct
raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
raw.sendto(struct.pack('!BBHHHBBH4s4s', 0x45, 0, 0, 7, 100, 64, 17, 0, socket.inet_aton('203.0.113.10'),
                       socket.inet_aton('$VIP4')) + bytes(64), ('$VIP4', 0))"
lost() { [ "$(drops fragment_no_first)" = 1 ]; }
check "a lone fragment is dropped in the end" wait_for 10 "fragment_no_first is 1" lost
stats=$(api GET stats)
check_json "received + made = sent + punted + dropped + held" "$stats" \
    '.totals | .rx_packets + .made_packets == .tx_packets + .punted_packets + .dropped_packets + .held_packets'
finish
