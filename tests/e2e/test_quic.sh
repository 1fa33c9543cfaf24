#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A real QUIC client changes its port in the middle of a connection, as a NAT would change it, and stays with its
# server, whose connection ids name it (QUIC-LB), also when the balancer's configurations are changed under the
# connection. Without the ids it would be led elsewhere.
source "$(dirname "$0")/tap.sh"

server=$LAB_BUILD/tests/tools/quic_server
if [ ! -x "$server" ] || ! command -v gtlsclient >/dev/null; then
    echo "ok 1 - QUIC # skip needs libngtcp2-dev, libngtcp2-crypto-gnutls-dev and ngtcp2-client (scripts/deps test)"
    echo "1..1"
    tap_finished=1
    exit 0
fi

KEY=8f95f09245765f80256934e50c66207f
CLIENTS=8

needed lab_up quic 1 2 3 4
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=quic.example \
    -keyout "$LAB_DIR/key.pem" -out "$LAB_DIR/certificate.pem" 2>/dev/null
for n in 1 2 3 4; do
    launch "quic-b$n" ip netns exec "$LAB-b$n" "$server" "b$n" "$VIP4" 443 "$LAB_DIR/certificate.pem" \
        "$LAB_DIR/key.pem" 2 "01$(printf %02x "$n")" "$KEY"
    needed wait_for 5 "the QUIC server of b$n is ready" grep -q ready "$LAB_DIR/quic-b$n.out"
done

# The pool of the QUIC service; `quic` is the key of that name, or nothing.
set_quic() {
    local n
    EXTRA_POOL="  - name: h3
    health: { type: none }
    backends:
$(for n in 1 2 3 4; do
        echo "      - { name: b$n, address: \"$(backend_address "$n")\", server_id: 01$(printf %02x "$n") }"
    done)"
    EXTRA_SERVICE="  - { name: h3, vip: $VIP4, protocol: udp, port: 443, pool: h3${1:+, quic: $1} }"
}
set_quic "[ { id: 1, nonce: 8 }, { id: 2, nonce: 14, key: $KEY } ]"
needed start_balancer 1 2 3 4

# Each client asks for a page after its port has changed, and after the command, if there is one, which begins when all
# are connected. Prints how many got it.
run_clients() {
    local i got=0 pids=() move=200ms ask=500ms before
    before=$(told accepted)
    [ $# = 0 ] || move=6s ask=7s
    for ((i = 1; i <= CLIENTS; i++)); do
        in_ns client timeout 60 gtlsclient --no-quic-dump --timeout=20s --change-local-addr=$move --nat-rebinding \
            --delay-stream=$ask --exit-on-all-streams-close "$VIP4" 443 "https://quic.example/" \
            </dev/null >"$LAB_DIR/client-$i.log" 2>&1 &
        pids+=($!)
    done
    connected() { [ "$(told accepted)" -ge $((before + CLIENTS)) ]; }
    if [ $# != 0 ]; then
        wait_for 10 "all clients are connected" connected >&2
        "$@" >&2
    fi
    wait "${pids[@]}"
    for ((i = 1; i <= CLIENTS; i++)); do
        ! grep -q ':status: 200' "$LAB_DIR/client-$i.log" || got=$((got + 1))
    done
    echo "$got"
}

# told WORD: how many lines all servers have told that begin with it.
told() { cat "$LAB_DIR"/quic-b*.out | grep -c "^$1 "; }
totals() { api GET stats | jq -r ".totals.$1"; }

got=$(run_clients)
note "$(for n in 1 2 3 4; do echo "b$n: $(grep -c ^accepted "$LAB_DIR/quic-b$n.out") accepted"; done | paste -sd ' ')"
check "all $CLIENTS clients got their page after they moved ($got)" test "$got" = $CLIENTS
check "each of them was seen to move by its server" test "$(told moved)" -ge $CLIENTS
check "no packet reached another server" test "$(told unknown)" = 0
check "connections spread over servers" test "$(grep -l ^accepted "$LAB_DIR"/quic-b*.out | wc -l)" -ge 2
check "packets were routed by their connection id" test "$(totals quic_routed)" -gt 0
note "routed by id: $(totals quic_routed), not routable: $(totals quic_unroutable)"

# Keys are changed under connections: a configuration goes, another comes, that of the connections stays.
outcome() { api GET services | jq '.services[] | select(.name == "h3") | .quic.'"$1"; }
rotate() {
    set_quic "$1"
    write_config 1 2 3 4
    ctl reload >/dev/null
}
got=$(run_clients rotate "[ { id: 2, nonce: 14, key: $KEY }, { id: 3, nonce: 14, key: 000102030405060708090a0b0c0d0e0f } ]")
check "all $CLIENTS clients got their page while configurations changed ($got)" test "$got" = $CLIENTS
check "still no packet reached another server" test "$(told unknown)" = 0
check "no id was of an unknown configuration" test "$(outcome unknown_configuration)" = 0
# And the mistake: the configuration of living connections is taken away.
run_clients rotate "[ { id: 3, nonce: 14, key: 000102030405060708090a0b0c0d0e0f } ]" >/dev/null
check "ids of a configuration that went too early are counted" test "$(outcome unknown_configuration)" -gt 0
note "outcomes: $(api GET services | jq -c '.services[] | select(.name == "h3") | .quic')"
rotate "[ { id: 2, nonce: 14, key: $KEY } ]"

# The same without ids: what moves is a new flow, for whom the table decides.
set_quic ""
write_config 1 2 3 4
check "reload without connection ids" ctl reload
before=$(told unknown)
got=$(run_clients)
note "without ids: $got clients got their page, $(told unknown) packets reached another server"
check "without connection ids packets of clients that move go astray" test "$(told unknown)" -gt "$before"
finish
