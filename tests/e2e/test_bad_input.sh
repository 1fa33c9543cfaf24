#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Bad input of every kind: a clear error with file and line where there is one, a status that is not zero or a
# refused reload, and what was running goes on unchanged.
source "$(dirname "$0")/tap.sh"

needed lab_up bad 1 2
needed start_balancer 1 2
cp "$LAB_DIR/halbach.yaml" "$LAB_DIR/good.yaml"
needed traffic hold hold "$URL4/echo" "$URL6/echo" --count 10 --rate 10
before=$(api GET status | jq -c '[.generation.serving, .pools, .config.loaded_unix]')

# bad TITLE SED EXPECTED: the good file, changed by SED, must be refused with a message that has EXPECTED, and, for
# what stands in a line, file and line.
bad() {
    local title=$1 change=$2 expected=$3 status=0 message
    sed -E "$change" "$LAB_DIR/good.yaml" >"$LAB_DIR/halbach.yaml"
    if cmp -s "$LAB_DIR/good.yaml" "$LAB_DIR/halbach.yaml"; then
        not_ok "$title: the change '$change' changes nothing" && return
    fi
    message=$(ctl config check "$LAB_DIR/halbach.yaml" 2>&1) || status=$?
    note "$title: $(head -n 1 <<<"$message")"
    check "$title: 'config check' fails with status 1" test $status -eq 1
    check "$title: the message names file and line" grep -Eq "halbach\.yaml:[0-9]+(:[0-9]+)?: " <<<"$message"
    check "$title: the message says '$expected'" grep -Eqi "$expected" <<<"$message"
    status=0
    message=$(ctl reload 2>&1) || status=$?
    check "$title: reload is refused" test $status -eq 1
    check "$title: what was running goes on unchanged" \
        test "$before" = "$(api GET status | jq -c '[.generation.serving, .pools, .config.loaded_unix]')"
}

bad "unknown key" 's/^( +)algorithm:/\1colour: blue\n&/' 'colour'
bad "wrong type" '0,/table_size: [0-9]+/s//table_size: [1, 2]/' 'table_size'
bad "not a number" '0,/table_size: [0-9]+/s//table_size: many/' 'table_size'
bad "table size not prime" '0,/table_size: [0-9]+/s//table_size: 65536/' 'prime'
bad "duplicate VIP" 's/name: www6, vip: "[^"]+"/name: www6, vip: "192.0.2.10"/' '192\.0\.2\.10'
bad "address that does not parse" 's/name: b1, address: "[^"]+"/name: b1, address: "198.51.100.300"/' '198\.51\.100\.300'
bad "VIP that does not parse" 's/name: www, vip: [0-9.]+/name: www, vip: 192.0.2/' '192\.0\.2'
bad "empty pool" '/name: b[12],/d' 'backends'
bad "unknown pool" 's/port: 80, pool: web/port: 80, pool: wob/' 'wob'
bad "tunnel source of the wrong family" 's/source: [0-9.]+/source: "2001:db8::1"/' 'source'
bad "duplicate backend" 's/name: b2, address: "[^"]+"/name: b1, address: "198.51.100.18"/' 'b1|198\.51\.100\.18'
bad "not YAML" 's/^services:/services: ]/' ''

rm "$LAB_DIR/halbach.yaml"
message=$(ctl reload 2>&1)
check "missing file: reload is refused" test $? -eq 1
note "missing file: $message"
check "missing file: the message names it" grep -q 'halbach.yaml' <<<"$message"
ctl config check "$LAB_DIR/nothing.yaml" >/dev/null 2>&1
check "missing file: 'config check' fails" test $? -eq 1
timeout 5 "$(program halbach-control)" --config "$LAB_DIR/nothing.yaml" --socket "$LAB_DIR/x.sock" \
    --dataplane "$LAB_DIR/dataplane.sock" --state "$LAB_DIR/x.json" >"$LAB_DIR/x.log" 2>&1
status=$?
note "control without a file: $(head -n 1 "$LAB_DIR/x.log")"
check "missing file: control does not start" test $status -ne 0 -a $status -ne 124
check "missing file: control names it" grep -q 'nothing.yaml' "$LAB_DIR/x.log"
cp "$LAB_DIR/good.yaml" "$LAB_DIR/halbach.yaml"

# a second daemon on the same socket
status=0
in_ns lb timeout 10 "$(program halbach-control)" --config "$LAB_DIR/halbach.yaml" \
    --dataplane "$LAB_DIR/dataplane.sock" --socket "$LAB_DIR/control.sock" --state "$LAB_DIR/state2.json" \
    >"$LAB_DIR/second-control.txt" 2>&1 || status=$?
note "second control: $(tail -n 1 "$LAB_DIR/second-control.txt")"
check "a second control on the same socket ends with an error" test $status -ne 0 -a $status -ne 124
check "the second control names the socket" grep -q 'control.sock' "$LAB_DIR/second-control.txt"
status=0
in_ns lb timeout 20 "$(program halbach-dataplane)" --lcores '0@0,1@0' --no-huge -m 256 --no-telemetry \
    --file-prefix "$LAB-2" -- --interface eth0 --socket "$LAB_DIR/dataplane.sock" --flows 65536 --idle-sleep 50 \
    >"$LAB_DIR/second-dataplane.txt" 2>&1 || status=$?
note "second dataplane: $(tail -n 1 "$LAB_DIR/second-dataplane.txt")"
check "a second dataplane on the same socket ends with an error" test $status -ne 0 -a $status -ne 124
check "the second dataplane names the socket" grep -q 'dataplane.sock' "$LAB_DIR/second-dataplane.txt"

# a socket that may not be used: root may use any, so the command runs as another user
chmod 755 "$LAB_DIR"
message=$(setpriv --reuid 65534 --regid 65534 --clear-groups "$(program halbachctl)" --socket "$LAB_DIR/control.sock" status 2>&1)
status=$?
note "unreadable socket: $message"
check "unreadable socket: halbachctl fails with status 1" test $status -eq 1
check "unreadable socket: the message names it" grep -q 'control.sock' <<<"$message"
message=$("$(program halbachctl)" --socket "$LAB_DIR/no.sock" status 2>&1)
check "no socket: halbachctl fails with status 1" test $? -eq 1
note "no socket: $message"
ctl frobnicate >/dev/null 2>&1
check "an unknown command ends with status 2" test $? -eq 2
ctl drain >/dev/null 2>&1
check "a command without its argument ends with status 2" test $? -eq 2
ctl drain b9 >/dev/null 2>&1
check "a command that fails ends with status 1" test $? -eq 1

check "at the end the same generation serves" \
    test "$before" = "$(api GET status | jq -c '[.generation.serving, .pools, .config.loaded_unix]')"
check_json "no connection noticed any of this" "$(traffic_end hold)" '.failed == 0 and .moved == 0'
check "control was not restarted" test "$(grep -c 'starting it again' "$LAB_DIR/control.log")" = 0
check "the dataplane was not restarted" test "$(grep -c 'starting it again' "$LAB_DIR/dataplane.log")" = 0
finish
