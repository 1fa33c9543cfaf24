#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Services that are more than one address and one port, with real servers and clients: a prefix of VIPs, ranges of
# ports, the most specific match, affinity, sources that are denied, and a limit that keeps a flood to itself.
source "$(dirname "$0")/tap.sh"

needed lab_up services 1 2 3

# The servers take every address of the prefixes, and listen on two more ports. (halbach-backend wants addresses.)
NET4=192.0.2.64/26
NET6=2001:db8:0:a:64::/80
ADDRESSES=(192.0.2.64 192.0.2.65 192.0.2.66 192.0.2.127 2001:db8:0:a:64::1 2001:db8:0:a:64:ffff::2)
for n in 1 2 3; do
    in_ns "b$n" sh -c "ip route add local $NET4 dev lo && ip route add local $NET6 dev lo"
    sed -E "s/listen 80 .*/listen 8000; listen 8003;/; s/listen \[::\]:80 .*/listen [::]:8000; listen [::]:8003;/
        s/(nginx-b$n)\.nginx-pid/\1-more.nginx-pid/" "$LAB_DIR/nginx-b$n.conf" >"$LAB_DIR/nginx-b$n-more.conf"
    launch "nginx-b$n-more" ip netns exec "$LAB-b$n" nginx -c "$LAB_DIR/nginx-b$n-more.conf"
    needed wait_for 5 "nginx of b$n answers on port 8003" in_ns "b$n" curl -sf -o /dev/null "http://$VIP4:8003/"
    in_ns "b$n" "$(program halbach-backend)" detach eth0 >>"$LAB_DIR/backend-b$n.log" 2>&1
    needed in_ns "b$n" "$(program halbach-backend)" attach eth0 --source "$LB4" --source "$LB6" --vip "$VIP4" \
        --vip "$VIP6" "${ADDRESSES[@]/#/--vip=}" >>"$LAB_DIR/backend-b$n.log"
done
# The clients' network: .10 is there already.
for host in 11 12 13 14 15 16 17 66; do
    in_ns client ip addr add 203.0.113.$host/24 dev eth0
done

EXTRA_POOL="  - name: first
    health: { type: none }
    backends:
      - { name: b1, address: \"$(backend_address 1)\" }"
EXTRA_SERVICE="  - { name: net, vip: $NET4, protocol: tcp, port: 8000-8003, pool: web, affinity: source, deny: [ 203.0.113.64/26 ] }
  - { name: net6, vip: \"$NET6\", protocol: tcp, port: any, pool: web }
  - { name: one, vip: 192.0.2.65, protocol: tcp, port: 8003, pool: first }
  - { name: limited, vip: 192.0.2.66, protocol: tcp, port: 80, pool: web, new_flows: 20, flows: 10 }"
needed start_balancer 1 2 3

# who URL [FROM]: the backend that answers; nothing when none does.
who() { in_ns client curl -sg --max-time 2 ${2:+--interface "$2"} "$1/"; }
# several URL COUNT [FROM]: the backends that answer so many connections, each once, in one line.
several() {
    in_ns client curl -s --no-keepalive --max-time 20 -H 'Connection: close' ${3:+--interface "$3"} "$1/?[1-$2]" |
        sort -u | paste -sd ' '
}

check "an address of the prefix is served" test -n "$(who http://192.0.2.64:8000)"
check "the last address of the prefix, another port of the range" test -n "$(who http://192.0.2.127:8003)"
check "an address of the IPv6 prefix, any port" test -n "$(who 'http://[2001:db8:0:a:64:ffff::2]:8000')"
check "one address and port within the prefix has its own pool" \
    test "$(several http://192.0.2.65:8003 20)" = b1
in_ns client curl -s --max-time 1 http://192.0.2.64:8004/
check "a port behind the range is dropped by name" test "$(drops no_service)" -gt 0
check "an address outside of the prefix is the kernel's, not dropped" \
    test "$(api GET drops | jq '[.drops[] | select(.reason == "not_vip")][0].packets // 0')" = 0

mine=$(several http://192.0.2.64:8000 20)
check "a source stays with one backend ($mine)" test "$(wc -w <<<"$mine")" = 1
check "on every port and VIP of the service" test "$(several http://192.0.2.127:8003 20)" = "$mine"
check "as lookup says" test "$(ctl lookup 203.0.113.10:4711 192.0.2.65:8000 tcp --json | jq -r .backend)" = "$mine"
all=$(for host in 10 11 12 13 14 15 16 17; do who http://192.0.2.64:8000 203.0.113.$host; done | sort -u | wc -l)
check "sources spread over backends ($all)" test "$all" -ge 2
check "without affinity connections spread" test "$(several 'http://[2001:db8:0:a:64::1]:8003' 40 | wc -w)" -ge 2

check "a source of the denied prefix gets nothing" test -z "$(who http://192.0.2.64:8000 203.0.113.66)"
check "but is served by other services" test -n "$(who "$URL4" 203.0.113.66)"
services=$(api GET services)
check_json "what was denied is counted for its service" "$services" \
    '[.services[] | select(.denied > 0)] | length == 1 and .[0].name == "net"'
check "the drops have the name" test "$(drops denied)" -gt 0
check "'halbachctl services' shows prefix and range" grep -q '192\.0\.2\.64/26:8000-8003' <<<"$(ctl services)"

dropped_by_limits() { [ $(($(drops limit_new_flows) + $(drops limit_flows))) -gt "$1" ]; }
# A flood of new connections on one service; the others do not notice.
needed traffic other open "$URL4/echo" --rate 20
in_ns client python3 -c '
import socket
sockets = [socket.socket() for _ in range(600)]
for s in sockets:
    s.setblocking(False)
    s.connect_ex(("192.0.2.66", 80))'
check "the flood is cut to its limit" wait_for 5 "drops by the limits" dropped_by_limits 400
result=$(traffic_end other)
check_json "connections to another service all went through" "$result" '.failed == 0'
services=$(api GET services)
check_json "what was limited is counted for its service" "$services" \
    '[.services[] | select(.limited > 0)] | length == 1 and .[0].name == "limited"'

check_json "no more connections of it than its limit have entries" "$services" \
    '.services[] | select(.name == "limited") | .flows > 0 and .flows <= 10'

# Prefixes come and go like addresses.
serving=$(api GET status | jq .generation.serving)
EXTRA_SERVICE="  - { name: net, vip: 192.0.2.64/27, protocol: tcp, port: any, pool: web }"
write_config 1 2 3
check "reload with a smaller prefix" ctl reload
check "another generation serves" test "$(api GET status | jq .generation.serving)" -gt "$serving"
check "what is in it is served, from any source" test -n "$(who http://192.0.2.66:8003 203.0.113.66)"
check "what is not is served no more" test -z "$(who http://192.0.2.127:8003)"
finish
