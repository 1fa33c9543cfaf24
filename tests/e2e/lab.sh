# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
#
# lab.sh: a small data centre in network namespaces on this machine. Sourced by the tests and by scripts/demo.
#
#      client                     router (kernel forwarding)                  backends, MTU 1600
#   203.0.113.10 --- MTU 1500 --- .1                   198.51.100.17 ----- b1  198.51.100.18
#   2001:db8:c::10                |                    198.51.100.33 ----- b2  2001:db8:0:b2::2
#                                 |                    198.51.100.49 ----- b3  198.51.100.50
#                           198.51.100.1               198.51.100.65 ----- b4  2001:db8:0:b4::2
#                                 | MTU 1600
#                           198.51.100.10  lb: halbach-dataplane, halbach-control
#                           2001:db8:0:1::10
#
#   client -> router -> lb            to a VIP: the router's routes for 192.0.2.0/24 and 2001:db8:0:a::/64
#   lb -> router -> backend           the same packet inside an IPIP tunnel
#   backend -> router -> client       direct server return: the backend has the VIP on `lo`
#
# Every link has IPv4 and IPv6 and its own subnets, so routes and next hops are real, and all neighbours are
# learned. As balancers know them, b1 and b3 are IPv4 addresses, b2 and b4 IPv6: with a VIP of each family all four
# kinds of tunnel are in use. The inner links are larger than the client's by more than the largest tunnel header
# (40 bytes), so that full-size packets fit without fragments, as in a data centre.
#
# Many labs can run at the same time: everything carries the lab's name, unique by process id. What it makes:
# namespaces NAME-client, NAME-router, NAME-lb, NAME-b1 to -b4, and the folder /run/halbach-lab/NAME.

# Numbers with a point, messages in English: what tools print is read by scripts here.
export LC_ALL=C.UTF-8

LAB_SOURCE=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
LAB_ROOT=$(realpath "$LAB_SOURCE/../..")
LAB_BUILD=${HB_BUILD:-$LAB_ROOT/build}
declare -A LAB_PROGRAMS=(
    [halbach-dataplane]=dataplane/halbach-dataplane
    [halbach-control]=control/halbach-control
    [halbachctl]=control/halbachctl/halbachctl
    [halbach-backend]=control/backend/halbach-backend
)
LAB_BASE=/run/halbach-lab
LAB_TRAFFIC=$LAB_SOURCE/traffic.py

VIP4=192.0.2.10
VIP6=2001:db8:0:a::10
URL4=http://$VIP4
URL6=http://[$VIP6]
# shellcheck disable=SC2034 # for those who source this
UDP4=$VIP4:7
# shellcheck disable=SC2034
UDP6=[$VIP6]:7
LB4=198.51.100.10
LB6=2001:db8:0:1::10

backend_address4() { echo "198.51.100.$((16 * $1 + 2))"; }
backend_address6() { echo "2001:db8:0:b$1::2"; }
# The address by which the balancer knows it.
backend_address() { if (($1 % 2)); then backend_address4 "$1"; else backend_address6 "$1"; fi; }

# ---- running things --------------------------------------------------------------------------------

fail() {
    echo "lab: $*" >&2
    return 1
}

# program NAME: its path in the build folder.
program() { echo "$LAB_BUILD/${LAB_PROGRAMS[$1]}"; }

# in_ns client COMMAND...
in_ns() { ip netns exec "$LAB-$1" "${@:2}"; }

# wait_for SECONDS WHAT COMMAND...: until the command succeeds; says what did not happen when time is up.
wait_for() {
    local seconds=$1 what=$2 deadline
    shift 2
    # The builtin clock, in microseconds: a process for each look would cost as much as what is waited for.
    deadline=$((${EPOCHREALTIME/[.,]/} + seconds * 1000000))
    until "$@" >/dev/null 2>&1; do
        if ((${EPOCHREALTIME/[.,]/} > deadline)); then
            fail "waited $seconds s, but: $what"
            return 1
        fi
        sleep 0.1
    done
}

# Starts COMMAND in the background, away from the terminal's ctrl-C, so that the script decides in which order
# things end. Standard error goes to NAME.log, standard output to NAME.out; the pid to NAME.pid.
launch() {
    local name=$1
    shift
    setsid "$@" </dev/null >"$LAB_DIR/$name.out" 2>>"$LAB_DIR/$name.log" &
    echo $! >"$LAB_DIR/$name.pid"
    disown
}

is_running() { [ -e "$LAB_DIR/$1.pid" ] && kill -0 "$(<"$LAB_DIR/$1.pid")" 2>/dev/null; }
has_ended() { ! is_running "$1"; }

# stop NAME [SIGNAL]: ends what launch started, and waits until it is gone.
stop() {
    local name=$1 signal=${2:-TERM}
    is_running "$name" || { rm -f "$LAB_DIR/$name.pid" && return 0; }
    kill "-$signal" "$(<"$LAB_DIR/$name.pid")"
    wait_for "${HB_STOP_SECONDS:-10}" "$name still runs after SIG$signal" has_ended "$name" ||
        kill -KILL "$(<"$LAB_DIR/$name.pid")"
    rm -f "$LAB_DIR/$name.pid"
}

# ---- namespaces and links --------------------------------------------------------------------------

new_namespace() {
    local name=$1
    ip netns add "$LAB-$name"
    # Duplicate address detection would keep IPv6 addresses unusable for a second or two; there are no
    # duplicates here. Set before links exist: new interfaces copy "default".
    in_ns "$name" sysctl -qw net.ipv6.conf.{all,default}.accept_dad=0 \
        net.ipv6.conf.default.{dad_transmits,router_solicitations,accept_ra}=0
    in_ns "$name" ip link set lo up
}

# link NAME MTU ADDRESS4/LEN ROUTER4 ADDRESS6/LEN ROUTER6: joins a namespace (its eth0) to the router (interface NAME).
link() {
    local name=$1 mtu=$2 address4=$3 router4=$4 address6=$5 router6=$6
    ip link add eth0 mtu "$mtu" numtxqueues 1 numrxqueues 1 netns "$LAB-$name" type veth \
        peer name "$name" mtu "$mtu" numtxqueues 1 numrxqueues 1 netns "$LAB-router"
    in_ns router sh -c "ip addr add $router4/${address4#*/} dev $name
        ip addr add $router6/${address6#*/} dev $name nodad && ip link set $name up"
    in_ns "$name" sh -c "ip addr add $address4 dev eth0 && ip addr add $address6 dev eth0 nodad &&
        ip link set eth0 up && ip route add default via $router4 && ip route add default via $router6"
    # Packets made on this machine would carry unfinished checksums across veth: the dataplane and the
    # decapsulation look at packets as they are on a wire.
    in_ns "$name" ethtool -K eth0 tx off >/dev/null
    in_ns router ethtool -K "$name" tx off >/dev/null
}

add_backend_namespace() {
    local n=$1
    new_namespace "b$n"
    link "b$n" 1600 "$(backend_address4 "$n")/28" "198.51.100.$((16 * n + 1))" \
        "$(backend_address6 "$n")/64" "2001:db8:0:b$n::1"
    in_ns "b$n" sh -c "ip addr add $VIP4/32 dev lo && ip addr add $VIP6/128 dev lo nodad"
    # The VIP is on every backend, but on the wire it belongs to the balancer: no answers to ARP for it. (IPv6:
    # the kernel answers solicitations only for addresses of the receiving interface.)
    in_ns "b$n" sysctl -qw net.ipv4.conf.all.arp_ignore=1 net.ipv4.conf.all.arp_announce=2
}

# ---- the backends' servers -------------------------------------------------------------------------

write_nginx_config() {
    local n=$1
    cat >"$LAB_DIR/nginx-b$n.conf" <<NGINX
# One process in the foreground: what the lab kills is what serves.
daemon off;
master_process off;
pid $LAB_DIR/nginx-b$n.nginx-pid;
error_log stderr warn;
events { worker_connections 4096; }
http {
    access_log off;
    client_body_temp_path $LAB_DIR/tmp; proxy_temp_path $LAB_DIR/tmp; fastcgi_temp_path $LAB_DIR/tmp;
    uwsgi_temp_path $LAB_DIR/tmp; scgi_temp_path $LAB_DIR/tmp;
    # Connections of the tests stay open as long as the client wants.
    keepalive_timeout 3600s;
    keepalive_requests 1000000000;
    server {
        listen 80 backlog=4096;
        listen [::]:80 backlog=4096;
        root $LAB_DIR/www;
        add_header X-Backend b$n;
        location / { default_type text/plain; return 200 "b$n\n"; }
        location /echo { default_type text/plain; return 200 "b$n \$args\n"; }
        # Answers when it has read the whole body.
        location /sink {
            client_max_body_size 16m;
            proxy_pass http://127.0.0.1/echo;
            proxy_method GET;
            proxy_pass_request_body off;
            proxy_set_header Content-Length "";
        }
        location /file { default_type application/octet-stream; limit_rate ${LAB_FILE_RATE:-4m}; }
    }
}
NGINX
}

start_nginx() {
    local n=$1
    write_nginx_config "$n"
    launch "nginx-b$n" ip netns exec "$LAB-b$n" nginx -c "$LAB_DIR/nginx-b$n.conf"
    wait_for 5 "nginx of b$n answers" in_ns "b$n" curl -sf -o /dev/null "http://$VIP4/"
}

# As a crash would: nothing is finished, the port refuses from now on.
kill_nginx() { stop "nginx-b$1" KILL; }

start_udp_server() {
    launch "udp-b$1" ip netns exec "$LAB-b$1" "$LAB_TRAFFIC" serve --name "b$1" \
        --address "$VIP4" --address "$VIP6" --port 7
}

# start_backend N: namespace, servers and decapsulation.
start_backend() {
    local n=$1
    add_backend_namespace "$n" && start_nginx "$n" && start_udp_server "$n" && attach_decap "$n"
}

# attach_decap N [OPTION]...
attach_decap() {
    in_ns "b$1" "$(program halbach-backend)" attach eth0 --vip "$VIP4" --vip "$VIP6" \
        --source "$LB4" --source "$LB6" "${@:2}" >>"$LAB_DIR/backend-b$1.log" 2>&1 ||
        fail "halbach-backend attach failed in b$1: $(tail -n 3 "$LAB_DIR/backend-b$1.log")"
}

# ---- the two daemons -------------------------------------------------------------------------------

# write_config N...: the configuration with these backends in both pools. EXTRA_POOL and EXTRA_SERVICE go in as
# they are; LAB_TUNNEL replaces the line of tunnel sources, LAB_FORWARDING those of the pools' forwarding; LAB_SETTLE
# is settle_after, LAB_ICMP is icmp, LAB_TRACKING that of the TCP services,
# LAB_FALL the failures in a row until a backend is down. `echo` has no health check, so that killing
# an nginx changes only `web`.
write_config() {
    local n members='' tunnel="tunnel: { source: $LB4, source6: \"$LB6\" }"
    for n in "$@"; do
        members+="      - { name: b$n, address: \"$(backend_address "$n")\" }"$'\n'
    done
    cat >"$LAB_DIR/halbach.yaml.new" <<YAML
seed: lab-seed-that-is-no-secret
${LAB_TUNNEL-$tunnel}
${LAB_SETTLE:+settle_after: $LAB_SETTLE}
${LAB_ICMP:+icmp: $LAB_ICMP}
pools:
  - name: web
    algorithm: maglev
    table_size: ${LAB_TABLE_SIZE:-65537}
${LAB_FORWARDING-    forwarding: ipip}
    health: { type: tcp, port: 80, interval: 250ms, timeout: 200ms, rise: 2, fall: ${LAB_FALL:-2} }
    backends:
$members
  - name: echo
    algorithm: maglev
    table_size: ${LAB_TABLE_SIZE:-65537}
${LAB_FORWARDING-    forwarding: ipip}
    health: { type: none }
    backends:
$members
${EXTRA_POOL:-}
services:
  - { name: www, vip: $VIP4, protocol: tcp, port: 80, pool: web, tracking: ${LAB_TRACKING:-all} }
  - { name: www6, vip: "$VIP6", protocol: tcp, port: 80, pool: web, tracking: ${LAB_TRACKING:-all} }
  - { name: echo, vip: $VIP4, protocol: udp, port: 7, pool: echo }
  - { name: echo6, vip: "$VIP6", protocol: udp, port: 7, pool: echo }
${EXTRA_SERVICE:-}
YAML
    mv "$LAB_DIR/halbach.yaml.new" "$LAB_DIR/halbach.yaml"
}

# Memory of the dataplane: hugepages when there are enough free ones or root can get them, else --no-huge. Sets
# LAB_EAL_MEMORY and LAB_MEMORY_TEXT. What nr_hugepages was is kept in $LAB_DIR/nr_hugepages.
# shellcheck disable=SC2034 # LAB_MEMORY_TEXT is for those who source this
choose_memory() {
    local want=${LAB_HUGEPAGES:-192} free total
    free=$(awk '/^HugePages_Free/ { print $2 }' /proc/meminfo)
    if [ "${LAB_NO_HUGE:-0}" = 0 ] && ((free < want)); then
        total=$(</proc/sys/vm/nr_hugepages)
        # Half of the free memory at most: this machine has other work.
        if (($(awk '/^MemAvailable/ { print $2 }' /proc/meminfo) > 2 * (want - free) * 2048)) &&
            echo $((total + want - free)) 2>/dev/null >/proc/sys/vm/nr_hugepages; then
            echo "$total $((total + want - free))" >"$LAB_DIR/nr_hugepages"
        fi
        free=$(awk '/^HugePages_Free/ { print $2 }' /proc/meminfo)
    fi
    if [ "${LAB_NO_HUGE:-0}" = 0 ] && ((free >= want)); then
        LAB_EAL_MEMORY="--in-memory"
        LAB_MEMORY_TEXT="2 MB hugepages"
    else
        LAB_EAL_MEMORY="--no-huge -m 384"
        LAB_MEMORY_TEXT="no hugepages to be had: ordinary 4 KB pages (--no-huge), about half the speed"
    fi
}

# Gives back what choose_memory took, unless somebody changed the number since.
restore_hugepages() {
    local before after
    [ -e "$LAB_DIR/nr_hugepages" ] || return 0
    read -r before after <"$LAB_DIR/nr_hugepages"
    [ "$(</proc/sys/vm/nr_hugepages)" != "$after" ] || echo "$before" >/proc/sys/vm/nr_hugepages
    rm -f "$LAB_DIR/nr_hugepages"
}

# The main lcore sleeps most of the time, the worker polls; on a machine with one CPU both share it. With LAB_TURN labs
# that run at the same time take turns at the CPU of the worker.
# --idle-sleep: the machine has few CPUs and all of the lab runs on them. LAB_EAL_PORTS and LAB_PORTS are for another
# port than eth0: options of EAL and of the dataplane. LAB_WORKERS: more workers than one, which share that CPU.
start_dataplane() {
    local worker_cpu=$(((${LAB_TURN:-0} + 1) % 2)) main_cpu lcores worker
    [ "$(nproc)" -gt 1 ] || worker_cpu=0
    main_cpu=$((worker_cpu == 0 && $(nproc) > 1))
    lcores=0@$main_cpu
    for ((worker = 1; worker <= ${LAB_WORKERS:-1}; worker++)); do
        lcores+=",$worker@$worker_cpu"
    done
    [ -n "${LAB_EAL_MEMORY:-}" ] || choose_memory
    # shellcheck disable=SC2086 # LAB_EAL_MEMORY is several words
    launch dataplane-supervisor "$LAB_SOURCE/supervise.sh" "$LAB_DIR/dataplane.pid" "$LAB_DIR/dataplane.log" \
        ip netns exec "$LAB-lb" "$(program halbach-dataplane)" \
        --lcores "$lcores" $LAB_EAL_MEMORY ${LAB_EAL_PORTS:-} --no-telemetry --file-prefix "$LAB" -- \
        ${LAB_PORTS---interface eth0} --socket "$LAB_DIR/dataplane.sock" --flows 65536 --idle-sleep 250 ${LAB_DATAPLANE_OPTIONS:-}
    wait_for 20 "the dataplane listens on its socket" test -S "$LAB_DIR/dataplane.sock"
}

start_control() {
    launch control-supervisor "$LAB_SOURCE/supervise.sh" "$LAB_DIR/control.pid" "$LAB_DIR/control.log" \
        ip netns exec "$LAB-lb" "$(program halbach-control)" --config "$LAB_DIR/halbach.yaml" \
        --dataplane "$LAB_DIR/dataplane.sock" --socket "$LAB_DIR/control.sock" --state "$LAB_DIR/state.json"
    wait_for 20 "control answers on its socket" ctl status
}

stop_dataplane() { stop dataplane-supervisor; }
stop_control() { stop control-supervisor; }

ctl() { "$(program halbachctl)" --socket "$LAB_DIR/control.sock" "$@"; }

# api GET|POST PATH: the answer's body, also for errors.
api() { curl -s --max-time 10 --unix-socket "$LAB_DIR/control.sock" -X "$1" "${@:3}" "http://halbach/v1/$2"; }

# is_true FILTER: whether it holds for the one JSON value on standard input. (jq -e alone is content with no input.)
is_true() { jq -es "length == 1 and (.[0] | $1)"; }

# Facts about control and the dataplane, for wait_for.
in_sync() { api GET status | is_true '.dataplane.connected and .generation.in_sync and .generation.serving > 0'; }
backend_state() { api GET backends | jq -r --arg n "$1" '[.backends[] | select(.pool == "web" and .name == $n)][0].state'; }
backend_is() { [ "$(backend_state "$1")" = "$2" ]; }
backends_up() { [ "$(api GET backends | jq '[.backends[] | select(.pool == "web" and .state == "up")] | length')" = "$1" ]; }
serves() { in_ns client curl -sf --max-time 1 -o /dev/null "$URL4/" && in_ns client curl -sgf --max-time 1 -o /dev/null "$URL6/"; }
drops() { api GET drops | jq -r --arg r "$1" '[.drops[] | select(.reason == $r)][0].packets // 0'; }

# ---- traffic ---------------------------------------------------------------------------------------

# traffic NAME MODE ARGUMENTS...: starts traffic.py in the client; its log is NAME.requests, its result NAME.out.
traffic() {
    local name=$1 mode=$2
    shift 2
    rm -f "$LAB_DIR/$name.requests"
    launch "$name" ip netns exec "$LAB-client" "$LAB_TRAFFIC" "$mode" --log "$LAB_DIR/$name.requests" "$@"
    wait_for 15 "first answers to the traffic '$name'" grep -q '^ready' "$LAB_DIR/$name.requests"
}

# traffic_end NAME: ends it and prints its line of JSON.
traffic_end() {
    HB_STOP_SECONDS=25 stop "$1"
    cat "$LAB_DIR/$1.out"
}

# outage NAME SINCE [OPTION]...: failures of a traffic since a time, as JSON; options of `traffic.py outage`.
outage() { "$LAB_TRAFFIC" outage "$LAB_DIR/$1.requests" --since "$2" "${@:3}"; }

# What was under way to a backend that left without a drain may be cut, and nothing else may fail. (jq)
# shellcheck disable=SC2034 # for those who source this
CUT_AT_MOST='.at_once and (.problems | del(.reset)) == {}'

# start_download URL: a download by the client that stops after the header, however fast it is, until take_download lets it
# go on: its body goes to a pipe that nobody reads before. What arrives is in `downloaded`.
start_download() {
    rm -f "$LAB_DIR/head" "$LAB_DIR/pipe"
    mkfifo "$LAB_DIR/pipe"
    launch download ip netns exec "$LAB-client" curl -s -o "$LAB_DIR/pipe" -D "$LAB_DIR/head" "$1"
    wait_for 15 "the download's first header" grep -q '^X-Backend: b' "$LAB_DIR/head"
}
download_backend() { tr -d '\r' <"$LAB_DIR/head" | awk '/^X-Backend/ { print $2 }'; }
take_download() { launch taker cp "$LAB_DIR/pipe" "$LAB_DIR/downloaded"; }

now() { echo "$EPOCHREALTIME"; }

# ---- life of the lab -------------------------------------------------------------------------------

# lab_up NAME N...: namespaces, router, client, and backends N... with their servers. Sets LAB and LAB_DIR.
lab_up() {
    local n
    [ "$(id -u)" -eq 0 ] || { fail "network namespaces need root" && return 1; }
    LAB=hb$$-$1
    shift
    LAB_DIR=$LAB_BASE/$LAB
    # Twice: a lab that ends may just remove the folder that all have in common.
    mkdir -p "$LAB_DIR/tmp" "$LAB_DIR/www" 2>/dev/null || mkdir -p "$LAB_DIR/tmp" "$LAB_DIR/www"
    echo $$ >"$LAB_DIR/owner"
    if ! { new_namespace router && in_ns router true; }; then
        fail "'ip netns exec' does not work here; in a container it needs CAP_SYS_ADMIN and a root that is a mount"
        return 1
    fi
    in_ns router sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
    new_namespace client
    link client 1500 203.0.113.10/24 203.0.113.1 2001:db8:c::10/64 2001:db8:c::1
    in_ns client sysctl -qw net.ipv4.ip_local_port_range="1024 65535"
    new_namespace lb
    link lb 1600 $LB4/28 198.51.100.1 $LB6/64 2001:db8:0:1::1
    in_ns router ip route add 192.0.2.0/24 via $LB4
    in_ns router ip route add 2001:db8:0:a::/64 via $LB6
    for n in "$@"; do
        start_backend "$n" || return 1
    done
}

# start_balancer N...: both daemons with these backends, and waits until both VIPs are served.
start_balancer() {
    write_config "$@"
    start_dataplane && start_control || return 1
    wait_for 10 "the dataplane has control's generation" in_sync || return 1
    wait_for 10 "all backends are up" backends_up $# || return 1
    wait_for 5 "both VIPs are served" serves
}

# lab_down [DIR]: removes the lab, in any state it may be in. Knows nothing but the folder, so that a lab left by
# --keep, or by a killed test, can be removed by another process.
lab_down() {
    LAB_DIR=${1:-${LAB_DIR:-}}
    [ -n "$LAB_DIR" ] && [ -d "$LAB_DIR" ] || return 0
    LAB=$(basename "$LAB_DIR")
    local name pidfile namespace
    for name in dataplane-supervisor control-supervisor; do
        stop $name 2>/dev/null
    done
    for pidfile in "$LAB_DIR"/*.pid; do
        [ ! -e "$pidfile" ] || stop "$(basename "$pidfile" .pid)" KILL 2>/dev/null
    done
    for namespace in $(ip netns list | awk -v lab="$LAB-" 'index($1, lab) == 1 { print $1 }'); do
        # What still runs in a namespace of the lab was started in it by the lab.
        ip netns pids "$namespace" | xargs -r kill -KILL 2>/dev/null
        ip netns del "$namespace"
    done
    restore_hugepages
    rm -rf "$LAB_DIR" "/var/run/dpdk/$LAB"
    rmdir "$LAB_BASE" 2>/dev/null
    return 0
}

# What a person wants to see when a test has failed.
lab_dump() {
    local log
    [ -d "${LAB_DIR:-}" ] || return 0
    {
        echo "==== state of the lab $LAB"
        ctl status
        ctl backends
        ctl drops
        echo "---- balancer: addresses, neighbours, XDP"
        in_ns lb ip -br addr
        in_ns lb ip neigh
        in_ns lb ip -s link show eth0
        echo "---- router: neighbours"
        in_ns router ip neigh
        for log in "$LAB_DIR"/*.log; do
            [ -s "$log" ] && echo "---- $log" && tail -n 40 "$log"
        done
        echo "==== end of state"
    } 2>&1 | sed 's/^/# /'
}
