#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Each kind of health check against a real server: it finds what it is there to find, says why, and sees it mended.
# b1 is checked over IPv4, b2 over IPv6. Pools have the names of their checks; what breaks does so on b1 or b2 alone.
source "$(dirname "$0")/tap.sh"

RHYTHM="interval: 250ms, timeout: 200ms, rise: 2, fall: 2, damping: { enabled: false }"

# pool NAME PORT CHECK: a pool of b1 and b2, and a service for it.
pool() {
    local members
    members="      - { name: b1, address: $(backend_address 1) }"$'\n'"      - { name: b2, address: \"$(backend_address 2)\" }"
    EXTRA_POOL+="  - name: $1"$'\n'"    table_size: 251"$'\n'"    health: { $3, $RHYTHM }"$'\n'"    backends:"$'\n'"$members"$'\n'
    EXTRA_SERVICE+="  - { name: $1, vip: $VIP4, protocol: tcp, port: $2, pool: $1 }"$'\n'
}

# What a pool says of a backend.
is() { api GET backends | is_true "[.backends[] | select(.pool == \"$1\" and .name == \"$2\")][0].state == \"$3\""; }
last_failure() { api GET backends | jq -r "[.backends[] | select(.pool == \"$1\" and .name == \"$2\")][0].last_failure.reason"; }

# found POOL BACKEND TEXT WHAT: it goes down, and the last failure has the text; the pool's other one stays up.
found() {
    local other=b2
    [ "$2" = b1 ] || other=b1
    check "$1: $4 is found" wait_for 10 "$2 of $1 is down" is "$1" "$2" down
    check "$1: it says why ($3)" grep -qF "$3" <<<"$(last_failure "$1" "$2")"
    check "$1: the other one stays" is "$1" "$other" up
}

mended() { check "$1: mended" wait_for 10 "$2 of $1 is ${3:-up}" is "$1" "$2" "${3:-up}"; }

# The servers of the checks: HTTP with a file that is there or not, HTTPS, UDP, and gRPC.
certificate() {
    openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj "/CN=$1" -addext "subjectAltName=DNS:$1" \
        -keyout "$LAB_DIR/$2.key" -out "$LAB_DIR/$2.crt" >"$LAB_DIR/openssl.out" 2>&1
}

start_servers() {
    local n=$1
    mkdir -p "$LAB_DIR/checks-b$n"
    echo 'all is well' >"$LAB_DIR/checks-b$n/health"
    echo SERVING >"$LAB_DIR/checks-b$n/grpc"
    cp "$LAB_DIR/good.crt" "$LAB_DIR/checks-b$n.crt"
    cp "$LAB_DIR/good.key" "$LAB_DIR/checks-b$n.key"
    cat >"$LAB_DIR/checks-b$n.conf" <<NGINX
daemon off;
pid $LAB_DIR/checks-b$n.nginx-pid;
error_log stderr error;
events { worker_connections 256; }
http {
    access_log off;
    client_body_temp_path $LAB_DIR/tmp; proxy_temp_path $LAB_DIR/tmp; fastcgi_temp_path $LAB_DIR/tmp;
    uwsgi_temp_path $LAB_DIR/tmp; scgi_temp_path $LAB_DIR/tmp;
    root $LAB_DIR/checks-b$n;
    default_type text/plain;
    server { listen 8080 default_server; listen [::]:8080 default_server; return 421; }
    server { listen 8080; listen [::]:8080; server_name www.example.org; }
    server {
        listen 8443 ssl; listen [::]:8443 ssl;
        ssl_certificate $LAB_DIR/checks-b$n.crt; ssl_certificate_key $LAB_DIR/checks-b$n.key;
    }
}
NGINX
    launch "checks-b$n" ip netns exec "$LAB-b$n" nginx -c "$LAB_DIR/checks-b$n.conf"
    launch "udp-own-b$n" ip netns exec "$LAB-b$n" "$LAB_TRAFFIC" serve --name "b$n" \
        --address "$(backend_address "$n")" --port 9000
    launch "grpc-b$n" ip netns exec "$LAB-b$n" "$LAB_SOURCE/grpc_server.py" 8090 "$LAB_DIR/checks-b$n/grpc"
    start_grpcs "$n" good
}

# start_grpcs N CERTIFICATE: gRPC over TLS
start_grpcs() {
    launch "grpcs-b$1" ip netns exec "$LAB-b$1" "$LAB_SOURCE/grpc_server.py" 8490 "$LAB_DIR/checks-b$1/grpc" \
        "$LAB_DIR/$2.crt" "$LAB_DIR/$2.key"
}

exec_check() {
    cat >"$LAB_DIR/check" <<'SCRIPT'
#!/bin/sh
# check FOLDER: well unless FOLDER has a file of the target's address
[ ! -e "$1/slow-$HALBACH_ADDRESS" ] || exec sleep 60
[ ! -e "$1/bad-$HALBACH_ADDRESS" ] || { echo "there is a file for $HALBACH_ADDRESS"; exit 2; }
SCRIPT
    chmod 755 "$LAB_DIR/check"
}

needed lab_up health 1 2
needed certificate www.example.org good
needed certificate elsewhere.example.org bad
exec_check
for n in 1 2; do
    start_servers $n
done

EXTRA_POOL='' EXTRA_SERVICE=''
pool http 1 "type: http, port: 8080, path: /health, host: www.example.org, status: 200, body: all is well"
pool https 2 "type: https, port: 8443, path: /health, host: www.example.org, ca: $LAB_DIR/good.crt"
pool insecure 3 "type: https, port: 8443, path: /health, verify: false"
pool udp 4 "type: udp, port: 9000, send: question, expect: b"
pool send-only 5 "type: udp, port: 9000, send: question"
pool icmp 6 "type: icmp"
pool grpc 7 "type: grpc, port: 8090, grpc_service: shop.Cart"
pool exec 8 "type: exec, command: $LAB_DIR/check $LAB_DIR"
pool grpcs 9 "type: grpcs, port: 8490, host: www.example.org, ca: $LAB_DIR/good.crt"
# BL-94: (e) an address of the balancer's own link that nobody has; (f) one to which the router knows no way, and says so,
# once a second. (By default Linux counts such an error twice, and a prober that asks more often than every 2 s hears next
# to none: BL-94 (d), where silence is all there is.)
in_ns router sysctl -qw net.ipv4.icmp_ratelimit=0
for name in nobody/198.51.100.14 nowhere/198.51.100.200; do
    EXTRA_POOL+="  - name: ${name%/*}
    table_size: 251
    health: { type: udp, port: 9000, send: question, $RHYTHM }
    backends:
      - { name: b1, address: ${name#*/} }
"
done
needed start_balancer 1 2

for kind in http https insecure udp icmp grpc grpcs exec; do
    check "$kind: both are up" wait_for 10 "b1 and b2 of $kind are up" eval "is $kind b1 up && is $kind b2 up"
done
check "BL-94 (b): who need not answer is assumed, not up" \
    wait_for 10 "both are assumed" eval "is send-only b1 assumed && is send-only b2 assumed"
check "BL-94 (e): who is not there is down although silence is enough" wait_for 15 "nobody is down" is nobody b1 down
note "nobody: $(last_failure nobody b1)"
check "BL-94 (f): ICMP from the way counts where silence is enough" wait_for 10 "nowhere is down" is nowhere b1 down
check "BL-94 (d): and silence between two such errors does not" is nowhere b1 down
note "nowhere: $(last_failure nowhere b1)"

echo 'all is lost' >"$LAB_DIR/checks-b1/health"
found http b1 "expected text is not in the body" "another body"
rm "$LAB_DIR/checks-b1/health"
check "http: the reason follows" wait_for 5 "404 is the reason" eval "last_failure http b1 | grep -q 'status 404, expected 200'"
echo 'all is well' >"$LAB_DIR/checks-b1/health"
mended http b1
mended https b1

cp "$LAB_DIR/bad.crt" "$LAB_DIR/checks-b2.crt"
cp "$LAB_DIR/bad.key" "$LAB_DIR/checks-b2.key"
kill -HUP "$(<"$LAB_DIR/checks-b2.nginx-pid")"
found https b2 "certificate" "a certificate of somebody else"
check "insecure: nobody looks at the certificate" is insecure b2 up
cp "$LAB_DIR/good.crt" "$LAB_DIR/checks-b2.crt"
cp "$LAB_DIR/good.key" "$LAB_DIR/checks-b2.key"
kill -HUP "$(<"$LAB_DIR/checks-b2.nginx-pid")"
mended https b2

kill -STOP "$(<"$LAB_DIR/udp-own-b1.pid")"
found udp b1 "did not answer in time" "a server that is silent"
check "BL-94 (b): silence does not take it down where it need not answer" is send-only b1 assumed
kill -CONT "$(<"$LAB_DIR/udp-own-b1.pid")"
mended udp b1
stop udp-own-b2 KILL
found udp b2 "port is closed" "a closed port"
check "BL-94 (c): nor is a closed port taken for silence" wait_for 10 "b2 is down" is send-only b2 down
launch udp-own-b2 ip netns exec "$LAB-b2" "$LAB_TRAFFIC" serve --name b2 --address "$(backend_address 2)" --port 9000
mended udp b2
mended send-only b2 assumed

in_ns b1 sysctl -qw net.ipv4.icmp_echo_ignore_all=1
found icmp b1 "did not answer in time" "a host that ignores echo requests"
in_ns b1 sysctl -qw net.ipv4.icmp_echo_ignore_all=0
mended icmp b1
in_ns b2 sysctl -qw net.ipv6.icmp.echo_ignore_all=1
found icmp b2 "did not answer in time" "the same over IPv6"
in_ns b2 sysctl -qw net.ipv6.icmp.echo_ignore_all=0
mended icmp b2

echo NOT_SERVING >"$LAB_DIR/checks-b2/grpc"
found grpc b2 "says NOT_SERVING" "a service that does not serve"
found grpcs b2 "says NOT_SERVING" "a service that does not serve, over TLS"
rm "$LAB_DIR/checks-b2/grpc"
check "grpc: the reason follows" wait_for 5 "a gRPC status is the reason" eval "last_failure grpc b2 | grep -q 'gRPC status 5'"
echo SERVING >"$LAB_DIR/checks-b2/grpc"
mended grpc b2
mended grpcs b2
stop grpcs-b2
needed start_grpcs 2 bad
check "grpcs: a certificate of another is found" wait_for 10 "b2 is down for its certificate" \
    eval "is grpcs b2 down && last_failure grpcs b2 | grep -q certificate"
stop grpcs-b2
needed start_grpcs 2 good
mended grpcs b2

touch "$LAB_DIR/bad-$(backend_address 1)"
found exec b1 "there is a file for 198.51.100.18" "a command that fails"
rm "$LAB_DIR/bad-$(backend_address 1)"
mended exec b1
touch "$LAB_DIR/slow-$(backend_address 1)"
found exec b1 "killed at the time limit" "a command that hangs"
none_sleeps() { ! pgrep -f "^sleep 60$" --ns "$(<"$LAB_DIR/control.pid")" --nslist net; }
rm "$LAB_DIR/slow-$(backend_address 1)"
mended exec b1
check "exec: nothing is left of the commands that hung" wait_for 5 "no command is left" none_sleeps

in_ns router ip route add prohibit "$(backend_address 1)/32"
check "http: no way there is found" wait_for 10 "b1 of http is down" is http b1 down
# At once: the others take the errors away from it, and after 5 s without any, silence is all there is.
check "nowhere is still down, with every error limited" is nowhere b1 down
for kind in https udp icmp grpc; do
    check "$kind: no way there is found" wait_for 10 "b1 of $kind is down" is $kind b1 down
done
check "exec: a check that does not go there does not know" is exec b1 up
in_ns router ip route del prohibit "$(backend_address 1)/32"
mended http b1

# A reload keeps what is known, and a bad one changes nothing.
reloads() { ctl reload >/dev/null; }
check "a reload with the same checks is taken" reloads
check "after it nobody is unknown" is http b1 up
EXTRA_POOL=${EXTRA_POOL/path: \/health, host: www.example.org, status: 200/path: \/none, host: www.example.org, status: 404}
write_config 1 2
EXTRA_POOL=${EXTRA_POOL/, body: all is well/}
write_config 1 2
check "BL-76: another path and status is another check" reloads
check "BL-76: nobody falls for it" wait_for 5 "404 is what is wanted" eval \
    "is http b1 up && api GET backends | is_true 'any(.backends[]; .pool == \"http\" and (.reason | test(\"status 404\")))'"

# BL-76 (d): the pool `web` gets another type of check while b1 is down, and later one that b2 cannot pass.
web_check() {
    write_config 1 2
    sed -i "0,/health: { type: tcp, port: 80, /s||health: { $1, |" "$LAB_DIR/halbach.yaml"
    reloads
}
since_of() { api GET backends | jq "[.backends[] | select(.pool == \"web\" and .name == \"$1\")][0].since_s"; }
checked_by() { api GET backends | is_true "[.backends[] | select(.pool == \"web\") | .check.type] | unique == [\"$1\"]"; }
needed kill_nginx 1
needed wait_for 10 "b1 of web is down" is web b1 down
down_for_a_second() { is web b1 down && [ "$(since_of b1)" -ge 1 ]; }
still_there() { down_for_a_second && is web b2 up && checked_by http; }
needed wait_for 10 "it is down for a second" down_for_a_second
check "BL-76: a check of another type is taken" web_check "type: http, port: 80, path: /echo"
check "BL-76: it begins where the old one was" still_there
needed start_nginx 1
mended web b1
check "BL-76: a check that must fail is taken" web_check "type: http, port: 80, path: /echo, status: 404"
found_both() { is web b1 down && is web b2 down; }
check "BL-76: nobody stays up by what the old one found" wait_for 10 "both are down" found_both
check "BL-76: and back" web_check "type: tcp, port: 80"
mended web b1
mended web b2
finish
