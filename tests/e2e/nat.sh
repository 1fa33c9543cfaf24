# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
#
# nat.sh: backends that are reached by NAT or full NAT, for the tests that source it after tap.sh.
#
#   client -> router -> lb -> router -> backend       the packet itself, its destination exchanged
#   backend -> router -> lb -> router -> client       NAT: the router sends what comes from backends to the balancer
#
# The backends have no VIP and no decapsulation. Their nginx listens on port 8080, and on 8081 for connections that
# begin with a PROXY header.

nat_nginx() {
    local n=$1
    cat >"$LAB_DIR/nginx-b$n.conf" <<NGINX
daemon off;
master_process off;
pid $LAB_DIR/nginx-b$n.nginx-pid;
error_log stderr warn;
events { worker_connections 4096; }
http {
    access_log off;
    client_max_body_size 64m;
    client_body_temp_path $LAB_DIR/tmp; proxy_temp_path $LAB_DIR/tmp; fastcgi_temp_path $LAB_DIR/tmp;
    uwsgi_temp_path $LAB_DIR/tmp; scgi_temp_path $LAB_DIR/tmp;
    keepalive_timeout 3600s;
    keepalive_requests 1000000000;
    log_format client '\$proxy_protocol_addr \$proxy_protocol_port \$remote_addr \$request_length';
    server {
        listen 8080 backlog=4096;
        listen [::]:8080 backlog=4096;
        root $LAB_DIR/www;
        add_header X-Backend b$n;
        location / { default_type text/plain; return 200 "b$n\n"; }
        location /echo { default_type text/plain; return 200 "b$n \$args\n"; }
        location /who { default_type text/plain; return 200 "b$n \$remote_addr \$server_addr:\$server_port\n"; }
        location /file { default_type application/octet-stream; limit_rate ${LAB_FILE_RATE:-4m}; }
    }
    server {
        listen 8081 proxy_protocol;
        listen [::]:8081 proxy_protocol;
        root $LAB_DIR/www;
        add_header X-Backend b$n;
        access_log $LAB_DIR/access-b$n client;
        location / { default_type text/plain; return 200 "b$n\n"; }
        location /who { default_type text/plain; return 200 "b$n \$proxy_protocol_addr \$proxy_protocol_port\n"; }
        location /file { default_type application/octet-stream; limit_rate ${LAB_FILE_RATE:-4m}; }
    }
}
NGINX
    launch "nginx-b$n" ip netns exec "$LAB-b$n" nginx -c "$LAB_DIR/nginx-b$n.conf"
    wait_for 5 "nginx of b$n answers" in_ns "b$n" curl -sf -o /dev/null "http://127.0.0.1:8080/"
}

# nat_backend N: namespace and server. NAT_RETURN=lb: what it sends goes to the balancer.
nat_backend() {
    local n=$1
    add_backend_namespace "$n"
    in_ns "b$n" sh -c "ip addr del $VIP4/32 dev lo && ip addr del $VIP6/128 dev lo"
    nat_nginx "$n" || return 1
    [ "${NAT_RETURN:-}" = lb ] || return 0
    in_ns router ip rule add from "$(backend_address4 "$n")" lookup 100
    in_ns router ip -6 rule add from "$(backend_address6 "$n")" lookup 100
    in_ns router ip route replace default via "$LB4" table 100
    in_ns router ip -6 route replace default via "$LB6" table 100
}

# nat_udp N: a UDP server on port 5300 that names itself and echoes.
nat_udp() {
    launch "udp-b$1" ip netns exec "$LAB-b$1" "$LAB_TRAFFIC" serve --name "b$1" \
        --address "$(backend_address4 "$1")" --address "$(backend_address6 "$1")" --port 5300
    wait_for 5 "the UDP server of b$1 listens" sh -c "ip netns exec '$LAB-b$1' ss -Hlun 'sport = :5300' | grep -q 5300"
}

# nat_members FAMILY N...: the backends of a pool.
nat_members() {
    local family=$1 n
    for n in "${@:2}"; do
        echo "      - { name: b$n, address: \"$("backend_address$family" "$n")\" }"
    done
}

# Fills EXTRA_POOL and EXTRA_SERVICE: pools dns (IPv4) and dns6, UDP port 53 of both VIPs, with these keys and backends.
nat_udp_pools() {
    local keys4=$1 keys6=$2
    shift 2
    EXTRA_POOL="  - name: dns
    $keys4
    health: { type: none }
    backends:
$(nat_members 4 "$@")
  - name: dns6
    $keys6
    health: { type: none }
    backends:
$(nat_members 6 "$@")"
    EXTRA_SERVICE="  - { name: dns, vip: $VIP4, protocol: udp, port: 53, pool: dns }
  - { name: dns6, vip: \"$VIP6\", protocol: udp, port: 53, pool: dns6 }"
}

# nat_config POOL-KEYS N...: pools web (IPv4) and web6 with these backends, TCP port 80 of both VIPs.
nat_config() {
    local keys4=$1 keys6=$2
    shift 2
    cat >"$LAB_DIR/halbach.yaml.new" <<YAML
seed: lab-seed-that-is-no-secret
pools:
  - name: web
    $keys4
    health: { type: tcp, port: 8080, interval: 250ms, timeout: 200ms, rise: 2, fall: 2 }
    backends:
$(nat_members 4 "$@")
  - name: web6
    $keys6
    health: { type: tcp, port: 8080, interval: 250ms, timeout: 200ms, rise: 2, fall: 2 }
    backends:
$(nat_members 6 "$@")
${EXTRA_POOL:-}
services:
  - { name: www, vip: $VIP4, protocol: tcp, port: 80, pool: web }
  - { name: www6, vip: "$VIP6", protocol: tcp, port: 80, pool: web6 }
${EXTRA_SERVICE:-}
YAML
    mv "$LAB_DIR/halbach.yaml.new" "$LAB_DIR/halbach.yaml"
}

nat_start() {
    start_dataplane && start_control || return 1
    wait_for 10 "the dataplane has control's generation" in_sync || return 1
    wait_for 10 "all backends are up" backends_up "$1" || return 1
    wait_for 5 "both VIPs are served" serves
}
