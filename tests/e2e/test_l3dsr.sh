#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# L3DSR: packets go to the backends' own addresses with a DSCP that stands for the VIP, and the backends put it back.
source "$(dirname "$0")/tap.sh"

needed lab_up l3dsr 1 2 3 4
for n in 1 2 3 4; do
    vip=$VIP4 dscp=10
    ((n % 2)) || vip=$VIP6 dscp=11
    needed in_ns "b$n" "$(program halbach-backend)" attach eth0 --dscp "$dscp=$vip" --address "$(backend_address "$n")" >/dev/null
done

# pool NAME DSCP N...: a pool of one family.
pool() {
    local n
    printf '  - name: %s\n    forwarding: l3dsr\n    l3dsr: { dscp: %s }\n' "$1" "$2"
    printf '    health: { type: tcp, port: 80, interval: 250ms, timeout: 200ms, rise: 2, fall: 2 }\n    backends:\n'
    for n in "${@:3}"; do
        printf '      - { name: b%s, address: "%s" }\n' "$n" "$(backend_address "$n")"
    done
}

write_l3dsr_config() {
    cat >"$LAB_DIR/halbach.yaml" <<YAML
seed: lab-seed-that-is-no-secret
pools:
$(pool web4 10 1 3)
$(pool web6 11 2 4)
services:
  - { name: www, vip: $VIP4, protocol: tcp, port: 80, pool: web4 }
  - { name: www6, vip: "$VIP6", protocol: tcp, port: 80, pool: web6 }
  - { name: echo, vip: $VIP4, protocol: udp, port: 7, pool: web4 }
  - { name: echo6, vip: "$VIP6", protocol: udp, port: 7, pool: web6 }
YAML
}

write_l3dsr_config
needed start_dataplane
needed start_control
needed wait_for 10 "the dataplane has control's generation" in_sync
needed wait_for 10 "both VIPs are served" serves
needed traffic hold hold "$URL4/echo" "$URL6/echo" --count 10 --rate 20
check "on the wire, marked, without a tunnel" in_ns router "$LAB_SOURCE/sniff.py" lb --seconds 10 \
    --until plain4-dscp10 plain6-dscp11

for family in 4 6; do
    url=URL$family
    names=$(in_ns client curl -s --no-keepalive --max-time 20 -H 'Connection: close' \
        "${!url}/?"'[1-60]' | sort | uniq -c | awk '{ printf "%s=%s ", $2, $1 }')
    note "IPv$family VIP: $names"
    check "IPv$family VIP: both backends" test "$(wc -w <<<"$names")" = 2
done
head -c 1048576 /dev/zero >"$LAB_DIR/body"
for url in "$URL4" "$URL6"; do
    sent=$(in_ns client curl -sg --max-time 10 -o /dev/null -w '%{size_upload}' -H 'Expect:' --data-binary "@$LAB_DIR/body" "$url/echo")
    check "$url takes an upload" test "$sent" = 1048576
done
result=$(in_ns client "$LAB_TRAFFIC" udp "$UDP4" "$UDP6" --count 20 --rate 25 --requests 1000)
note "UDP: $result"
check_json "UDP: every datagram is answered once" "$result" '.sent == 1000 and .answered == .sent and .duplicates == 0 and .moved == 0'
hold=$(traffic_end hold)
note "hold: $hold"
check_json "no connection broke or moved" "$hold" '.failed == 0 and .moved == 0'
for n in 1 2 3 4; do
    counters=$(in_ns "b$n" "$(program halbach-backend)" status --json)
    check_json "b$n put the VIP back" "$counters" '.interfaces[0].counters | .restored > 100 and .decapsulated == 0'
done
check "no packet was dropped" test "$(api GET drops | jq .total)" = 0

# A pool of the other family is refused with the reason.
sed -i 's/pool: web4 }/pool: web6 }/' "$LAB_DIR/halbach.yaml"
refusal=$(ctl reload 2>&1)
check "a VIP of the other family is refused" grep -q 'l3dsr cannot change the family' <<<"$refusal"
check "both VIPs are served" serves
finish
