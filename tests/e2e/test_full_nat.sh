#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Full NAT: servers that have no route to clients through the balancer, told by PROXY v2 or a TCP option who the
# client is; a drain breaks nothing; source ports run out by name.
source "$(dirname "$0")/tap.sh"
source "$(dirname "$0")/nat.sh"

SOURCES4=198.51.100.240/30
SOURCES6=2001:db8:0:f::/126

needed lab_up fullnat
needed nat_backend 1
needed nat_backend 2
# The sources belong to no host: the router sends them to the balancer, as it does with the VIPs.
in_ns router ip route add "$SOURCES4" via "$LB4"
in_ns router ip route add "$SOURCES6" via "$LB6"
head -c 12000000 /dev/urandom >"$LAB_DIR/www/file"
head -c 8388608 /dev/urandom >"$LAB_DIR/body"
full() { echo "forwarding: full_nat"$'\n'"    nat: { port: $1, sources: [\"$2\"]${3:-} }"; }
nat_config "$(full 8080 $SOURCES4)" "$(full 8080 $SOURCES6)" 1 2
needed nat_start 2

for family in 4 6; do
    url=URL$family
    who=$(in_ns client curl -s --no-keepalive -H 'Connection: close' --max-time 20 "${!url}/who?"'[1-40]' | sort -u)
    note "IPv$family: $who"
    prefix=198.51.100.24
    [ $family = 4 ] || prefix=2001:db8:0:f::
    check "IPv$family: both servers see source addresses of the pool" \
        test "$(grep -oE '^b[12] '"$prefix" <<<"$who" | sort -u | wc -l)" = 2
    check "IPv$family: a download is right, byte for byte" \
        in_ns client sh -c "curl -sg --max-time 20 '${!url}/file' | cmp - '$LAB_DIR/www/file'"
done
check "no packet was dropped" test "$(api GET drops | jq .total)" = 0

needed traffic hold hold "$URL4/echo" "$URL6/echo" --count 20 --rate 10
needed start_download "$URL4/file"
victim=$(download_backend)
check "drain $victim while a download runs through it" ctl drain "$victim"
check "the download was still running when it was drained" is_running download
take_download
wait_for 30 "the download ends" has_ended taker
check "the download is complete, byte for byte" cmp "$LAB_DIR/www/file" "$LAB_DIR/downloaded"
check "undrain" ctl undrain "$victim"
hold=$(traffic_end hold)
note "established: $hold"
check_json "no established connection broke or moved" "$hold" '.failed == 0 and .moved == 0'

# ---- PROXY v2: nginx itself says who the client is
nat_config "$(full 8081 $SOURCES4 ', client_address: proxy_v2')" "$(full 8081 $SOURCES6 ', client_address: proxy_v2')" 1 2
check "reload to PROXY v2" ctl reload
needed wait_for 10 "the dataplane has it" in_sync
for family in 4 6; do
    url=URL$family
    client=203.0.113.10
    [ $family = 4 ] || client=2001:db8:c::10
    who=$(in_ns client curl -sg --max-time 5 --local-port "4012$family" "${!url}/who")
    note "IPv$family, PROXY: $who"
    check "IPv$family: nginx knows the client by the PROXY header" grep -q " $client 4012$family\$" <<<"$who"
    for n in 1 2 3; do
        in_ns client sh -c "curl -sg --max-time 20 '${!url}/file' | cmp - '$LAB_DIR/www/file'" || break
        sent=$(in_ns client curl -sg --max-time 20 -o /dev/null -w '%{size_upload} %{http_code}' -H 'Expect:' \
            --data-binary "@$LAB_DIR/body" "${!url}/who")
        [ "$sent" = "8388608 200" ] || break
    done
    check "IPv$family: downloads and uploads are whole behind a PROXY header ($n: $sent)" test "$n $sent" = "3 8388608 200"
    check "IPv$family: the access log has the client" grep -qh "^$client " "$LAB_DIR"/access-b*
done

# ---- TCP option: on the SYN, seen on the wire
nat_config "$(full 8080 $SOURCES4 ', client_address: tcp_option')" "$(full 8080 $SOURCES6 ', client_address: tcp_option')" 1
check "reload to the TCP option" ctl reload
needed wait_for 10 "the dataplane has it" in_sync
for family in 4 6; do
    url=URL$family
    : >"$LAB_DIR/seen"
    launch sniff ip netns exec "$LAB-b1" "$LAB_SOURCE/client_option.py" "$LAB_DIR/seen"
    needed wait_for 5 "the sniffer listens" grep -q ready "$LAB_DIR/seen"
    check "IPv$family: a request passes" in_ns client curl -sgf --max-time 5 --local-port "4032$family" -o /dev/null "${!url}/"
    client=203.0.113.10
    [ $family = 4 ] || client=2001:db8:c::10
    check "IPv$family: the SYN and the ACK after it name the client" wait_for 5 "$client twice in the options" \
        sh -c "test \$(grep -c '^254 $client 4032$family' '$LAB_DIR/seen') -ge 2"
    note "$(tail -n 3 "$LAB_DIR/seen")"
    stop sniff KILL
done

# ---- BL-85: as many connections as there are ports, then a refusal by name, then again
nat_config "$(full 8080 198.51.100.240/32 ', ports: 2000-2009')" "$(full 8080 $SOURCES6)" 1
check "reload to ten ports" ctl reload
needed wait_for 10 "the dataplane has it" in_sync
launch many ip netns exec "$LAB-client" "$LAB_TRAFFIC" hold --count 10 --rate 5 --log "$LAB_DIR/many.requests" "$URL4/echo"
needed wait_for 15 "ten connections" grep -q '^ready' "$LAB_DIR/many.requests"
code=$(in_ns client curl -s --max-time 2 -o /dev/null -w '%{http_code}' "$URL4/")
check "the eleventh connection gets no port ($code, $(drops nat_ports) drops)" test "$code" = 000 -a "$(drops nat_ports)" -gt 0
many=$(traffic_end many)
note "ten connections: $many"
check_json "the ten went on" "$many" '.failed == 0'
finish
