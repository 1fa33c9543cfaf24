#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A link between balancer and backends that carries less than the balancer's own. The router in the middle tells the
# tunnel's source; the balancer learns the path's MTU and tells clients what fits in the tunnel, so that uploads with DF
# arrive: in every tunnel, over IPv4 and IPv6, inside and outside. And a backend that is gone shows.
source "$(dirname "$0")/tap.sh"

PATH_MTU=1400
PREFIX4=198.51.100.128/25
PREFIX6=2001:db8:0:2::/112

needed lab_up tunnelpmtu 1 2
for n in 1 2; do
    needed attach_decap "$n" --source $PREFIX4 --source $PREFIX6
    in_ns router ip link set "b$n" mtu $PATH_MTU
done
# The prefix of sources is routed to the balancer, and there it is the machine's own.
in_ns router sh -c "ip route add $PREFIX4 via $LB4 && ip -6 route add $PREFIX6 via $LB6"
in_ns lb sh -c "ip route add local $PREFIX4 dev lo && ip -6 route add local $PREFIX6 dev lo"
needed start_balancer 1 2
head -c 100000 /dev/zero >"$LAB_DIR/body"

# upload URL SECONDS: whether all of it arrives.
upload() {
    [ "$(in_ns client curl -sg --max-time "$2" -o /dev/null -w '%{http_code}' -H 'Expect:' \
        --data-binary "@$LAB_DIR/body" "$1/sink")" = 200 ]
}
forget() { in_ns client sh -c 'ip route flush cache; ip -6 route flush cache'; }
paths() { api GET backends | jq -c '[.backends[] | select(.pool == "web") | .path.mtu]'; }
# Uploads to both VIPs, by a client that knows nothing either, until both backends have had some: the flow's source port
# decides.
all_learned() {
    forget
    upload "$URL4" 10 && upload "$URL6" 10 && [ "$(paths)" = "[$PATH_MTU,$PATH_MTU]" ]
}

# An upload that was given up is sent again by the kernel for a while, and a control that has just begun would learn by it.
in_ns client sysctl -qw net.ipv4.tcp_orphan_retries=1
nothing_is_sent() { [ -z "$(in_ns client ss -Htn)" ]; }

# Nobody but control hears what the router says.
stop_control
check "without control an upload hangs" eval "! upload $URL4 3"
forget

# try NAME HEADER LINES [TUNNEL]: the pools forward like that from now on; control begins anew and knows no path.
try() {
    local name=$1 header=$2 route
    LAB_FORWARDING=$3
    [ $# -lt 4 ] || LAB_TUNNEL=$4
    write_config 1 2
    needed wait_for 60 "no upload is left" nothing_is_sent
    forget
    needed start_control
    needed wait_for 10 "the dataplane has the new mode" in_sync
    check "$name: no path is known" test "$(paths)" = '[null,null]'
    check "$name: uploads arrive, and both paths are learned" wait_for 60 "both backends have an MTU" all_learned
    for vip in "$VIP4" "$VIP6"; do
        route=$(in_ns client ip route get "$vip")
        note "$route"
        check "$name: the client knows what fits" grep -qE \
            "mtu ($((PATH_MTU - 20 - header))|$((PATH_MTU - 40 - header)))" <<<"$route"
    done
    note "$(api GET backends | jq -c '.backends[] | select(.pool == "web") | .path')"
    stop_control
}
try ipip 0 '    forwarding: ipip'
try gue 12 '    forwarding: gue'
try "gue variant 1" 8 '    forwarding: gue
    gue: { variant: 1 }'
try gre 4 '    forwarding: gre'
try vxlan 30 '    forwarding: vxlan
    vxlan: { vni: 100 }'
try "ipip from a prefix" 0 '    forwarding: ipip' "tunnel: { source_prefix: $PREFIX4, source_prefix6: \"$PREFIX6\" }"

# Another route to b1, by another router (here it is the same one): of that way nothing is known, of the way to b2 what
# there was. The generation says so too: the next uploads learn it anew.
LAB_FORWARDING='    forwarding: ipip'
unset LAB_TUNNEL
write_config 1 2
forget
needed start_control
needed wait_for 10 "the dataplane has the new mode" in_sync
needed wait_for 60 "both backends have an MTU" all_learned
in_ns router ip addr add 198.51.100.3/28 dev lb
in_ns lb ip route add "$(backend_address4 1)" via 198.51.100.3
forgotten() { [ "$(paths)" = "[null,$PATH_MTU]" ]; }
check "another route to b1: its path is forgotten, that of b2 is not" wait_for 10 "b1 has no MTU" forgotten
needed wait_for 10 "the dataplane has it" in_sync
check "uploads learn it anew" wait_for 60 "both backends have an MTU" all_learned
in_ns lb ip route del "$(backend_address4 1)"
check "back by the first route: forgotten again" wait_for 10 "b1 has no MTU" forgotten
in_ns router ip addr del 198.51.100.3/28 dev lb

# Without decapsulation the backends' kernels refuse the tunnel's protocol.
needed wait_for 10 "all backends are up" backends_up 2
in_ns b1 "$(program halbach-backend)" detach eth0 >/dev/null
refused() {
    in_ns client curl -s --max-time 0.2 -o /dev/null "$URL4/"
    api GET backends | is_true '[.backends[] | select(.pool == "web" and .name == "b1")][0].path.unreachable > 0'
}
check "a backend that does not decapsulate shows by its errors" wait_for 10 "errors are counted" refused
report=$(ctl backends --traffic)
note "$report"
check "halbachctl says so" grep -q 'b1 (pool web): ICMP errors on the way: [1-9][0-9]* unreachable' <<<"$report"
finish
