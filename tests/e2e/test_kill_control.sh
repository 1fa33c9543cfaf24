#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# kill -9 of control at random moments while an operator drains, undrains, weighs and reloads, and backends of another pool
# come and go: afterwards everything is as it had been acknowledged, and no connection, old or new, has noticed.
#
#   HB_KILLS=200 tests/e2e/test_kill_control.sh     so many kills (20); HB_KILL_SECONDS=60: as many as fit; HB_KILL_SEED=7
source "$(dirname "$0")/tap.sh"

needed lab_up kill 1 2 3 4
# Two configurations that differ in a pool of their own, whose checks fail and work again every second.
spare() {
    EXTRA_POOL="  - name: spare
    table_size: 251
    health: { type: tcp, port: 81, interval: 100ms, timeout: 90ms, rise: 1, fall: 1 }
    backends: [ { name: b1, address: \"$(backend_address 1)\" }$1 ]"
}
export EXTRA_SERVICE="  - { name: spare, vip: $VIP4, protocol: tcp, port: 81, pool: spare }"
spare ", { name: b2, address: \"$(backend_address 2)\" }"
write_config 1 2 3 4
cp "$LAB_DIR/halbach.yaml" "$LAB_DIR/other.yaml"
spare ''
needed start_balancer 1 2 3 4
cp "$LAB_DIR/halbach.yaml" "$LAB_DIR/first.yaml"
flap() {
    while :; do
        in_ns b1 timeout 1 python3 -m http.server --bind :: 81
        sleep 0.7 # nobody listens: this is the failure
    done
}
flap >/dev/null 2>&1 &
flap_pid=$!
needed traffic hold hold "$URL4/echo" "$URL6/echo" --count 40 --rate 10
needed traffic open open "$URL4/echo" "$URL6/echo" --rate 50
needed traffic udp udp "$UDP4" "$UDP6" --count 20 --rate 10

# b1 is left alone, so that the pool always has somebody.
result=$("$LAB_SOURCE/kill_control.py" --socket "$LAB_DIR/control.sock" --pid "$LAB_DIR/control.pid" \
    --config "$LAB_DIR/halbach.yaml" --first "$LAB_DIR/first.yaml" --other "$LAB_DIR/other.yaml" \
    --kills "${HB_KILLS:-20}" --seconds "${HB_KILL_SECONDS:-170}" --seed "${HB_KILL_SEED:-$RANDOM}" b2 b3 b4 2>&1)
kill $flap_pid
wait $flap_pid 2>/dev/null
note "$result"
check_json "control was killed and came back" "$result" '.kills > 0 and .acknowledged > 0'
check_json "what it had acknowledged is what it remembers" "$result" '.wrong == []'
hold=$(traffic_end hold) open=$(traffic_end open) udp=$(traffic_end udp)
note "established: $hold"
note "new: $open"
check_json "no established connection broke or moved" "$hold" '.failed == 0 and .moved == 0'
check_json "no new connection failed" "$open" '.failed == 0'
check_json "no datagram was lost or doubled, no flow moved" "$udp" '.failed == 0 and .moved == 0'
check "no state file was set aside, no file is left over" test "$(find "$LAB_DIR" -name 'state.json*' ! -name state.json ! -name 'state.json.new' ! -name 'state.json.slots' \
    ! -name 'state.json.history' ! -name 'state.json.configs' | wc -l)" = 0
check "neither daemon ended in any other way" \
    test "$(cat "$LAB_DIR"/{control,dataplane}.log | grep 'supervise: .* ended' | grep -vc 'status 137')" = 0
for n in 2 3 4; do
    check "undrain b$n" ctl undrain "b$n"
done
finish
