#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# New connections spread over the backends as the lookup table's shares say; weights count; weight 0 gets nothing.
source "$(dirname "$0")/tap.sh"

needed lab_up spread 1 2 3
needed start_balancer 1 2 3

# spread URL COUNT: how many connections each backend got, as JSON
spread() {
    in_ns client curl -s --no-keepalive --max-time 60 -H 'Connection: close' "$1/?[1-$2]" | sort | uniq -c |
        awk '{ printf "%s\"%s\": %s", (NR > 1 ? ", " : "{"), $2, $1 } END { print "}" }'
}

# With n requests and share p the count has a standard deviation of sqrt(n p (1-p)); five of them are one in a
# million, so this does not fail by chance.
within_shares() {
    jq -en --argjson counts "$1" --argjson backends "$2" '
        ($counts | add) as $n | [$backends.backends[] | select(.pool == "web")] |
        all(.[]; .share as $p | (($counts[.name] // 0) - $n * $p) | (if . < 0 then -. else . end)
            <= 5 * ($n * $p * (1 - $p) | sqrt) + 1)'
}

for family in 4 6; do
    url=URL$family
    counts=$(spread "${!url}" 1500)
    note "IPv$family: $counts"
    check_json "IPv$family: no request failed" "$counts" 'add == 1500'
    check "IPv$family: requests follow the table's shares" within_shares "$counts" "$(api GET backends)"
done

# weights 1, 3, 0
sed -i -E '/name: b2/s/ \}$/, weight: 3 }/; /name: b3/s/ \}$/, weight: 0 }/' "$LAB_DIR/halbach.yaml"
check "reload with weights" ctl reload
backends=$(api GET backends)
check_json "shares are 1/4, 3/4 and 0" "$backends" \
    '[.backends[] | select(.pool == "web")] | sort_by(.name) | map(.share * 100 | round) == [25, 75, 0]'
counts=$(spread "$URL4" 1500)
note "weights 1, 3, 0: $counts"
check "requests follow the weights" within_shares "$counts" "$backends"
check_json "weight 0 gets no new flow" "$counts" '.b3 == null'

before=$(api GET status | jq -r '.pools[0].digest')
awk '/name: b1/ { held = held $0 "\n"; next } { print } /name: b2/ { printf "%s", held; held = "" }' \
    "$LAB_DIR/halbach.yaml" >"$LAB_DIR/turned.yaml" && mv "$LAB_DIR/turned.yaml" "$LAB_DIR/halbach.yaml"
check "reload with the backends in another order" ctl reload
after=$(api GET status | jq -r '.pools[0].digest')
check "the order of the file does not change the table ($before)" test "$before" = "$after"
finish
