# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
#
# wire.sh: a NIC that DPDK owns, played by a TAP device (two for a bond). Sourced after tap.sh.
#
#   router --- eth0 - br0 - wire0 ===DPDK=== halbach-dataplane ===TAP=== hb0: the balancer's addresses
#                         `- wire1 ===
#
# The bridge only carries frames to the devices that play NICs; the balancer's kernel has its addresses on hb0 alone.

# wire_up WIRE...: joins the wires to the router and moves the balancer's addresses to hb0.
wire_up() {
    local wire
    in_ns lb sh -c "
        ip addr flush dev eth0 scope global
        sysctl -qw net.ipv6.conf.eth0.disable_ipv6=1
        ip link add br0 type bridge mcast_snooping 0
        sysctl -qw net.ipv6.conf.br0.disable_ipv6=1
        ip link set eth0 master br0
        ip link set br0 up"
    for wire in "$@"; do
        # The bridge takes frames to its own devices' addresses for itself.
        in_ns lb sh -c "
            sysctl -qw net.ipv6.conf.$wire.disable_ipv6=1
            ip link set $wire address 02:00:00:00:99:0${wire#wire}
            ip link set $wire master br0 up"
    done
    in_ns lb sh -c "
        ip addr add $LB4/28 dev hb0
        ip addr add $LB6/64 dev hb0 nodad
        ip link set hb0 up
        ip route add default via 198.51.100.1
        ip route add default via 2001:db8:0:1::1"
}

# start_wired N...: both daemons with these backends, once LAB_EAL_PORTS and LAB_PORTS say what the port is, and WIRES
# what it is made of.
start_wired() {
    start_dataplane && wait_for 20 "the TAP is there" in_ns lb ip link show hb0 && wire_up "${WIRES[@]}" || return 1
    start_control || return 1
    wait_for 20 "the dataplane has control's generation" in_sync &&
        wait_for 15 "all backends are up" backends_up $# && wait_for 10 "both VIPs are served" serves
}

carrier_is() { [ "$(in_ns lb cat /sys/class/net/hb0/carrier)" = "$1" ]; }
