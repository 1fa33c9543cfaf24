#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# BL-69: 1,000 swaps of the lookup tables under load: no packet is lost or doubled and no established flow moves.
# Runs alone: it keeps both CPUs busy.
source "$(dirname "$0")/tap.sh"

SWAPS=${HB_SWAPS:-1000}
needed lab_up swaps 1 2 3
needed start_balancer 1 2 3
needed traffic hold hold "$URL4/echo" "$URL6/echo" --count 60 --rate 10
needed traffic open open "$URL4/echo" "$URL6/echo" --rate 50
needed traffic udp udp "$UDP4" "$UDP6" --count 60 --rate 10

# One curl for many requests: drain and undrain by turns, each answered once the dataplane forwards by it.
swap() {
    local i urls=()
    for ((i = 0; i < $1 / 2; i++)); do
        urls+=("http://halbach/v1/backends/b3/drain" "http://halbach/v1/backends/b3/undrain")
    done
    curl -s --no-progress-meter --max-time 300 --unix-socket "$LAB_DIR/control.sock" -X POST -w '\n' "${urls[@]}" |
        jq -cs '{requests: length, applied: [.[] | select(.applied)] | length, moved: [.[] | .backends[0].moved] | add}'
}
before=$(api GET status | jq .generation.serving)
start=$(now)
result=$(swap "$SWAPS")
after=$(api GET status | jq .generation.serving)
note "swaps: $result in $(jq -n "$(now) - $start | . * 10 | round / 10") s; generations $before to $after"
check_json "every change was applied" "$result" ".applied == $SWAPS"
check "the dataplane adopted $SWAPS generations" test $((after - before)) -ge "$SWAPS"
check_json "no generation was refused" "$(api GET status)" '.generation.rejects == 0'

hold=$(traffic_end hold) open=$(traffic_end open) udp=$(traffic_end udp)
note "established: $hold"
note "new: $open"
note "udp: $udp"
check_json "no established connection broke or moved; sequences are complete" "$hold" '.failed == 0 and .moved == 0'
check_json "no new connection failed" "$open" '.failed == 0'
check_json "no datagram was lost or doubled, no UDP flow moved" "$udp" '.failed == 0 and .moved == 0'
check "the dataplane dropped nothing" test "$(api GET drops | jq .total)" = 0
check_json "packets in = packets out + punted + dropped" "$(api GET stats)" \
    '.totals | .rx_packets == .tx_packets + .punted_packets + .dropped_packets'
finish
