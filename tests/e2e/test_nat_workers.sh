#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# NAT and full NAT with two workers. Requests and answers are flows of their own, so the port gives about half of the
# answers to the worker that did not see the request: it translates them by the map (NAT), or hands them to the one that
# has the session (full NAT).
source "$(dirname "$0")/tap.sh"
source "$(dirname "$0")/nat.sh"
NAT_RETURN=lb
# shellcheck disable=SC2034
LAB_WORKERS=2

needed lab_up natwork
needed nat_backend 1
needed nat_backend 2
needed nat_udp 1
needed nat_udp 2
in_ns router ip route add 198.51.100.240/28 via "$LB4"
in_ns router ip route add 2001:db8:0:f::/120 via "$LB6"
head -c 2000000 /dev/urandom >"$LAB_DIR/www/file"
head -c 1048576 /dev/urandom >"$LAB_DIR/body"
full() { echo "forwarding: full_nat"$'\n'"    nat: { port: $1, sources: [\"$2\"]${3:-} }"; }
workers() { api GET stats | jq -c "[.workers[].$1]"; }
# shellcheck disable=SC2034
DNS4=$VIP4:53 DNS6=[$VIP6]:53

# judge MODE: connections, transfers and datagrams, while a backend is drained.
judge() {
    local mode=$1 family url sent hold udp
    needed traffic hold hold "$URL4/echo" "$URL6/echo" --count 40 --rate 10
    needed traffic udp udp "$DNS4" "$DNS6" --count 40 --rate 10
    for family in 4 6; do
        url=URL$family
        check "$mode, IPv$family: a download is right, byte for byte" \
            in_ns client sh -c "curl -sg --max-time 20 '${!url}/file' | cmp - '$LAB_DIR/www/file'"
        sent=$(in_ns client curl -sg --max-time 20 -o /dev/null -w '%{size_upload} %{http_code}' -H 'Expect:' \
            --data-binary "@$LAB_DIR/body" "${!url}/echo")
        check "$mode, IPv$family: an upload arrives ($sent)" test "${sent%% *}" = 1048576
    done
    check "$mode: drain b1" ctl drain b1
    check "$mode: a new connection is served meanwhile" serves
    check "$mode: undrain" ctl undrain b1
    hold=$(traffic_end hold) udp=$(traffic_end udp)
    note "$mode: $hold $udp"
    check_json "$mode: no connection broke or moved" "$hold" '.failed == 0 and .moved == 0'
    check_json "$mode: every datagram is answered once, by one server" "$udp" '.failed == 0 and .moved == 0 and .foreign == 0'
}

nat_udp_pools $'forwarding: nat\n    nat: { port: 5300 }' $'forwarding: nat\n    nat: { port: 5300 }' 1 2
nat_config $'forwarding: nat\n    nat: { port: 8080 }' $'forwarding: nat\n    nat: { port: 8080 }' 1 2
needed nat_start 2
check_json "two workers" "$(api GET status)" '.dataplane.workers == 2'
judge nat
check_json "nat: both workers had packets" "$(workers rx_packets)" 'all(.[]; . > 100)'
check_json "nat: no worker gave an answer away" "$(workers nat_handovers)" '. == [0, 0]'

nat_udp_pools "$(full 5300 198.51.100.244/30)" "$(full 5300 2001:db8:0:f::4/126)" 1 2
nat_config "$(full 8080 198.51.100.240/30)" "$(full 8080 2001:db8:0:f::/126)" 1 2
check "reload to full NAT" ctl reload
needed wait_for 10 "the dataplane has it" in_sync
judge full_nat
note "sessions $(workers nat_sessions), answers handed over $(workers nat_handovers)"
check_json "full_nat: both workers have sessions" "$(workers nat_sessions)" 'all(.[]; . > 0)'
check_json "full_nat: both gave answers to the other" "$(workers nat_handovers)" 'all(.[]; . > 0)'
check "full_nat: no answer was without a session ($(drops nat_no_session))" test "$(drops nat_no_session)" = 0

# With a PROXY header the answers' numbers are changed too, by the worker of the session.
nat_config "$(full 8081 198.51.100.240/30 ', client_address: proxy_v2')" "$(full 8081 2001:db8:0:f::/126 ', client_address: proxy_v2')" 1 2
check "reload to PROXY v2" ctl reload
needed wait_for 10 "the dataplane has it" in_sync
for family in 4 6; do
    url=URL$family
    check "PROXY, IPv$family: five downloads are right, byte for byte" in_ns client sh -c \
        "for i in 1 2 3 4 5; do curl -sg --max-time 20 '${!url}/file' | cmp - '$LAB_DIR/www/file' || exit 1; done"
done
finish
