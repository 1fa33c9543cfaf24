#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# NAT over IPv4 and IPv6: requests reach servers that know no VIP, with the client's own address, and their answers
# come back through the balancer; health checks of the same servers go on; a drain breaks nothing.
source "$(dirname "$0")/tap.sh"
source "$(dirname "$0")/nat.sh"
NAT_RETURN=lb

needed lab_up nat
needed nat_backend 1
needed nat_backend 2
head -c 12000000 /dev/urandom >"$LAB_DIR/www/file"
head -c 1048576 /dev/urandom >"$LAB_DIR/body"
nat_config $'forwarding: nat\n    nat: { port: 8080 }' $'forwarding: nat\n    nat: { port: 8080 }' 1 2
needed nat_start 2

for family in 4 6; do
    url=URL$family
    who=$(in_ns client curl -s --no-keepalive -H 'Connection: close' --max-time 20 "${!url}/who?"'[1-40]' | sort | uniq -c)
    note "IPv$family: $who"
    check "IPv$family: both servers answer" test "$(wc -l <<<"$who")" = 2
    client=203.0.113.10
    [ $family = 4 ] || client=2001:db8:c::10
    check "IPv$family: they see the client itself, on their own address and port" \
        test "$(grep -cE " $client .*:8080\$" <<<"$who")" = 2
    sent=$(in_ns client curl -sg --max-time 10 -o /dev/null -w '%{size_upload} %{http_code}' -H 'Expect:' \
        --data-binary "@$LAB_DIR/body" "${!url}/echo")
    check "IPv$family: an upload of full-size packets arrives ($sent)" test "${sent%% *}" = 1048576
    check "IPv$family: a download is right, byte for byte" \
        in_ns client sh -c "curl -sg --max-time 20 '${!url}/file' | cmp - '$LAB_DIR/www/file'"
done
check "the servers answer health checks all the time" backends_up 2
check "no packet was dropped" test "$(api GET drops | jq .total)" = 0

# A port that nothing listens on: the server's RST comes back from the VIP, at once.
stop nginx-b1 KILL
wait_for 5 "b1 is down" backend_is b1 down
code=$(in_ns client curl -s --max-time 5 -o /dev/null -w '%{http_code}' "$URL4/")
check "a server that died is left out" test "$code" = 200
needed nat_nginx 1
needed wait_for 10 "both are up again" backends_up 2

needed traffic hold hold "$URL4/echo" "$URL6/echo" --count 20 --rate 10
needed start_download "$URL4/file"
victim=$(download_backend)
check "drain $victim while a download runs through it" ctl drain "$victim"
check "the download was still running when it was drained" is_running download
take_download
wait_for 30 "the download ends" has_ended taker
check "the download is complete, byte for byte" cmp "$LAB_DIR/www/file" "$LAB_DIR/downloaded"
check "undrain" ctl undrain "$victim"

# The way back needs no memory: a dataplane that was killed goes on with the connections.
kill -KILL "$(<"$LAB_DIR/dataplane.pid")"
needed wait_for 20 "the new dataplane serves" in_sync
hold=$(traffic_end hold)
note "established: $hold"
check_json "connections survive the drain and a kill -9 of the dataplane" "$hold" '.failed == 0 and .moved == 0'

# Two services behind one port of a backend: whose answer would it be?
sed -e "s/^services:/&\n  - { name: other, vip: 192.0.2.11, protocol: tcp, port: 81, pool: web }/" \
    "$LAB_DIR/halbach.yaml" >"$LAB_DIR/alike.yaml"
answer=$("$(program halbachctl)" config check "$LAB_DIR/alike.yaml" 2>&1)
note "$answer"
check "two services whose answers would be alike are refused, with the remedy" grep -q 'use full_nat' <<<"$answer"
finish
