#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A flood toward the balancer's own address, by an AF_XDP port: the steering program passes the kernel its rate and
# drops and counts the rest, and traffic to VIPs is what it was without the flood. (By a port of DPDK's: test_punt.sh.)
source "$(dirname "$0")/tap.sh"

needed lab_up flood 1 2
needed start_balancer 1 2
echo "punt: { rate: 500 }" >>"$LAB_DIR/halbach.yaml"
needed ctl reload >/dev/null

steered() { api GET stats | jq ".steering.$1"; }
# What VIPs answer in two seconds.
measure() { in_ns client "$LAB_TRAFFIC" udp "$UDP4" "$UDP6" --count 10 --rate 25 --seconds 2; }

alone=$(measure)
note "VIP traffic without a flood: $alone"
limited=$(steered limited)
passed=$(steered passed)
flood_host 60
flooded() { (($(steered limited) > limited + 5000)); }
check "the flood is limited and counted (steering.limited)" wait_for 30 "packets above the limit" flooded
during=$(measure)
note "VIP traffic during the flood: $during"
note "the flood so far: $(($(steered passed) - passed)) passed to the kernel, $(($(steered limited) - limited)) dropped"
check_json "VIP traffic is at least half of what it was without the flood" "[$alone, $during]" \
    '.[0].answered > 200 and .[1].answered * 2 >= .[0].answered'
check_json "and loses nothing to it" "$during" '.failed == 0 and .answered == .sent'
check "more of the flood was dropped than passed" \
    test $(($(steered limited) - limited)) -gt $(($(steered passed) - passed))
in_ns router ip neigh flush dev lb
check "ARP has a rate of its own" wait_for 2 "an answer to ARP" arp_answered
stop flood
finish
