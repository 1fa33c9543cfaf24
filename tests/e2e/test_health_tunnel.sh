#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Checks through the tunnel find what a direct check cannot: a backend that lost its VIP, its decapsulation or its way
# back. In all four combinations of families: b1 is reached over IPv4, b2 over IPv6, each for an IPv4 and an IPv6 VIP.
source "$(dirname "$0")/tap.sh"

RHYTHM="interval: 250ms, timeout: 200ms, rise: 2, fall: 2, damping: { enabled: false }"

# pool NAME VIP PORT CHECK
pool() {
    EXTRA_POOL+="  - name: $1
    table_size: 251
    health: { $4, via: tunnel, $RHYTHM }
    backends:
      - { name: b1, address: $(backend_address 1) }
      - { name: b2, address: \"$(backend_address 2)\" }
"
    EXTRA_SERVICE+="  - { name: $1, vip: \"$2\", protocol: tcp, port: $3, pool: $1 }"$'\n'
}

is() { api GET backends | is_true "[.backends[] | select(.pool == \"$1\" and .name == \"$2\")][0].state == \"$3\""; }
last_failure() { api GET backends | jq -r "[.backends[] | select(.pool == \"$1\" and .name == \"$2\")][0].last_failure.reason"; }
# all STATE BACKEND POOL...
all() {
    local state=$1 backend=$2 name
    shift 2
    for name in "$@"; do
        is "$name" "$backend" "$state" || return 1
    done
}

needed lab_up tunnel 1 2
# Answers have a VIP as their source: the strictest setting lets them in, since the way to the VIP is the way they come.
in_ns lb sysctl -qw net.ipv4.conf.all.rp_filter=1 net.ipv4.conf.eth0.rp_filter=1
EXTRA_POOL='' EXTRA_SERVICE=''
pool tcp4 "$VIP4" 1 "type: tcp, port: 80"
pool http4 "$VIP4" 2 "type: http, port: 80"
pool http6 "$VIP6" 3 "type: http, port: 80"
pool udp4 "$VIP4" 4 "type: udp, port: 7, send: hello, expect: b"
pool udp6 "$VIP6" 5 "type: udp, port: 7, send: hello, expect: b"
pool icmp4 "$VIP4" 6 "type: icmp"
pool icmp6 "$VIP6" 7 "type: icmp"
ipv4=(tcp4 http4 udp4 icmp4)
ipv6=(http6 udp6 icmp6)
needed start_balancer 1 2
for n in 1 2; do
    check "b$n is up in all pools" wait_for 10 "b$n is up" all up b$n "${ipv4[@]}" "${ipv6[@]}"
done
note "$(api GET backends | jq -r '.backends[] | select(.pool == "http6") | .name + ": " + .reason')"

in_ns b1 ip addr del "$VIP4/32" dev lo
check "a lost VIP is found" wait_for 10 "b1 is down for the VIP" all down b1 "${ipv4[@]}"
note "lost VIP: $(last_failure tcp4 b1)"
check "the direct check does not see it" is web b1 up
check "nor does it concern the other VIP" all up b1 "${ipv6[@]}"
check "nor the other backend" all up b2 "${ipv4[@]}" "${ipv6[@]}"
in_ns b1 ip addr add "$VIP4/32" dev lo
check "it is seen when the VIP is back" wait_for 10 "b1 is up" all up b1 "${ipv4[@]}"

in_ns b2 "$(program halbach-backend)" detach eth0 >/dev/null
check "a lost decapsulation is found" wait_for 10 "b2 is down" all down b2 "${ipv4[@]}" "${ipv6[@]}"
check "the direct check does not see that either" is web b2 up
attach_decap 2
check "it is seen when the decapsulation is back" wait_for 10 "b2 is up" all up b2 "${ipv4[@]}" "${ipv6[@]}"

# A router on the way that takes nothing from the VIP (a filter against forged sources), but from the backend's address.
in_ns router ip rule add from "$VIP4" iif b1 blackhole
in_ns router ip -6 rule add from "$VIP6" iif b1 blackhole
check "a broken way back is found" wait_for 10 "b1 is down" all down b1 "${ipv4[@]}" "${ipv6[@]}"
check "the direct check does not see it" is web b1 up
in_ns router ip rule del from "$VIP4" iif b1 blackhole
in_ns router ip -6 rule del from "$VIP6" iif b1 blackhole
check "it is seen when the way back is there" wait_for 10 "b1 is up" all up b1 "${ipv4[@]}" "${ipv6[@]}"

kill_nginx 1
check "a dead server is found through the tunnel too" wait_for 10 "b1 is down" all down b1 tcp4 http4 http6
note "dead server: $(last_failure tcp4 b1)"
check "its host answers all the same" all up b1 icmp4 icmp6
start_nginx 1
check "it is seen when the server is back" wait_for 10 "b1 is up" all up b1 tcp4 http4 http6

# A VIP on the balancer itself would keep probes here, and something here might answer. That proves nothing.
in_ns lb ip addr add "$VIP4/32" dev lo
says_local() { api GET backends | is_true 'any(.backends[]; .pool == "tcp4" and (.reason | test("address of this machine")))'; }
check "a VIP on the balancer is named" wait_for 10 "the reason says so" says_local
check "nobody falls for it" all up b1 "${ipv4[@]}"
in_ns lb ip addr del "$VIP4/32" dev lo
check "probes go on without it" wait_for 10 "the reason is another" eval '! says_local'

# The rules of a control that was killed are no obstacle to the next one.
has_rules() { in_ns lb ip rule | grep -q 'fwmark 0x48420000'; }
restarted() { [ "$(api GET status | jq .pid)" != "$1" ] && ctl status; }
old=$(<"$LAB_DIR/control.pid")
kill -KILL "$old"
check "control is killed and comes back" wait_for 20 "another control answers" restarted "$old"
sees_new_failures() { api GET backends | is_true 'any(.backends[]; .pool == "http4" and (.reason | test("status 200")))'; }
check "checks through the tunnel go on" wait_for 10 "a probe succeeded" sees_new_failures
check "nobody fell" all up b1 "${ipv4[@]}" "${ipv6[@]}"
stop_control
check "nothing of it is left when control ends" test -z "$(in_ns lb ip rule | grep fwmark; in_ns lb ip -br link show | grep halbach)"
finish
