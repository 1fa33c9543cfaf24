#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# BL-84: 1,000 services, 10,000 backends and 100 pools, all checked for real: reloads, a failure, and 1,000 backends that
# fail and come back at once, again and again. Traffic to a pool beside them does not notice. Changes that come together go
# out together, nothing is lost and nothing piles up. (How long it all takes: scripts/bench control.)
# Runs alone: it keeps both CPUs busy.
source "$(dirname "$0")/tap.sh"

# shellcheck disable=SC2034
LAB_HUGEPAGES=320
members() { # FIRST COUNT: addresses of 198.18.0.0/15, which all are b1
    local i n
    for ((i = 0; i < $2; i++)); do
        n=$(($1 + i))
        echo "      - { name: m$n, address: 198.$((18 + (n >> 16))).$((n >> 8 & 255)).$((n & 255)) }"
    done
}
# The flock fails as one: its check has a port of its own.
write_fleet() { # BACKENDS of the last pool
    local p s
    echo "seed: lab-seed-that-is-no-secret"
    echo "tunnel: { source: $LB4, source6: \"$LB6\" }"
    echo "pools:"
    for ((p = 0; p < 99; p++)); do
        echo "  - { name: p$p, table_size: 10007, health: { type: tcp, port: 83, interval: 20s, timeout: 4s }, backends: ["
        members $((1 + p * 100)) 100 | sed 's/^ *- //; s/$/,/'
        echo "    ] }"
    done
    echo "  - { name: flock, table_size: 100003, health: { type: tcp, port: 82, interval: 1s, timeout: 900ms, rise: 1, fall: 1 }, backends: ["
    members 20001 "$1" | sed 's/^ *- //; s/$/,/'
    echo "    ] }"
    echo "  - { name: web, health: { type: tcp, port: 80 }, backends: [ { name: b1, address: $(backend_address 1) } ] }"
    echo "services:"
    echo "  - { name: www, vip: $VIP4, protocol: tcp, port: 80, pool: web }"
    echo "  - { name: www6, vip: \"$VIP6\", protocol: tcp, port: 80, pool: web }"
    echo "  - { name: flock, vip: 192.0.2.11, protocol: tcp, port: 80, pool: flock }"
    for ((s = 0; s < 997; s++)); do
        echo "  - { name: s$s, vip: 192.0.2.$((100 + s / 100)), protocol: tcp, port: $((1000 + s)), pool: p$((s % 99)) }"
    done
}
fleet() { write_fleet "$1" >"$LAB_DIR/halbach.yaml.new" && mv "$LAB_DIR/halbach.yaml.new" "$LAB_DIR/halbach.yaml"; }
flock_up() { [ "$(api GET status | jq '.pools[] | select(.name == "flock").healthy')" = "$1" ] && in_sync; }
all_up() { [ "$(api GET status | jq .backends.up)" = "$1" ] && in_sync; }
generation() { api GET status | jq .generation.wanted; }
start_others() { launch others ip netns exec "$LAB-b1" "$LAB_SOURCE/accept.py" 83; }
start_flock() { launch flock ip netns exec "$LAB-b1" "$LAB_SOURCE/accept.py" 82; }
rss_mb() { awk '/^VmRSS/ { print int($2 / 1024) }' "/proc/$(<"$LAB_DIR/control.pid")/status"; }
fds() { find "/proc/$(<"$LAB_DIR/control.pid")/fd" -mindepth 1 2>/dev/null | wc -l; }

needed lab_up scale 1
in_ns b1 ip route add local 198.18.0.0/15 dev lo
in_ns b1 sysctl -qw net.core.somaxconn=8192
in_ns router ip route add 198.18.0.0/15 via "$(backend_address4 1)"
needed start_others
needed start_flock
fleet 1000
needed start_dataplane
started=$(now)
needed start_control
needed wait_for 60 "all backends are up" all_up 10901
note "start with 10,901 backends until all are up: $(jq -n "$(now) - $started") s, control has $(rss_mb) MB"
needed wait_for 5 "the VIPs are served" serves
needed traffic hold hold "$URL4/echo" "$URL6/echo" --count 20 --rate 10
needed traffic open open "$URL4/echo" "$URL6/echo" --rate 50

reload_at=$(now)
check_json "a reload of the same file changes nothing" "$(ctl reload --json)" '.changed == false and .applied'
note "reload, same file: $(jq -n "$(now) - $reload_at") s"
fleet 999
reload_at=$(now)
check_json "a reload without one backend moves one pool" "$(ctl reload --json)" '.applied and .backends.removed == 1 and ([.pools[].name] == ["flock"])'
note "reload, one backend less: $(jq -n "$(now) - $reload_at") s"
fleet 1000
check_json "and one with it again" "$(ctl reload --json)" '.applied and .backends.added == 1'
needed wait_for 20 "the flock is whole" flock_up 1000

before=$(generation)
memory=$(rss_mb) descriptors=$(fds)
cpu() { awk '{ print $14 + $15 }' "/proc/$(<"$LAB_DIR/control.pid")/stat"; }
ticks=$(cpu)
rounds=${HB_FLAPS:-3}
for ((round = 1; round <= rounds; round++)); do
    stop flock KILL
    needed wait_for 20 "all of the flock is down" flock_up 0
    needed start_flock
    needed wait_for 20 "all of the flock is up" flock_up 1000
done
generations=$(($(generation) - before))
note "$rounds times 1,000 failures and recoveries: $generations generations, $(($(cpu) - ticks)) ticks of CPU"
check "1,000 backends that flap at once are told in batches ($generations generations for $((2000 * rounds)) changes)" \
    test "$generations" -le $((250 * rounds))
check_json "nothing is lost: the dataplane has what control wants" "$(api GET status)" \
    '.generation.in_sync and .generation.rejects == 0 and .backends.up == 10901'
fleet 1000
check_json "nor is anything changed after all" "$(ctl reload --json)" '.changed == false'
check "memory does not grow with it ($memory MB before, $(rss_mb) after)" test "$(rss_mb)" -le $((memory * 11 / 10 + 8))
few_descriptors() { [ "$(fds)" -le $((descriptors + 1100)) ]; }
check "nor do descriptors" wait_for 10 "probes have ended" few_descriptors
note "control has $(rss_mb) MB"
hold=$(traffic_end hold) open=$(traffic_end open)
check_json "no established connection of another pool broke or moved" "$hold" '.failed == 0 and .moved == 0'
check_json "no new connection failed" "$open" '.failed == 0'
finish
