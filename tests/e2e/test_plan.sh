#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A plan tells what a reload will do, with live flows counted, and does nothing; then the reload does just that.
source "$(dirname "$0")/tap.sh"

needed lab_up plan 1 2 3
needed start_balancer 1 2 3
needed traffic hold hold "$URL4/echo" "$URL6/echo" --count 30 --rate 10
flows_live() { api GET backends | is_true '[.backends[] | select(.pool == "web").flows] | add >= 30'; }
needed wait_for 20 "30 live flows" flows_live

config=$LAB_DIR/halbach.yaml
cp "$config" "$LAB_DIR/same.yaml"
write_config 1 3
mv "$config" "$LAB_DIR/without_b2.yaml"
cp "$LAB_DIR/same.yaml" "$config"
status() { api GET status | jq -S 'del(.uptime_s, .dataplane.flows, .maintenance)'; }
before=$(status)

plan=$(ctl plan -f "$LAB_DIR/same.yaml" --json)
check_json "the same file changes nothing" "$plan" \
    '.changed == false and .breaks == "no" and .flows.kept >= 30 and ([.pools[].moved] | add == 0)'

plan=$(ctl plan -f "$LAB_DIR/without_b2.yaml" --json)
note "plan without b2: $(jq -c '{breaks, flows, backends}' <<<"$plan")"
check_json "removing a backend breaks the flows that it has, and no other" "$plan" \
    '.breaks == "yes" and .flows.unsure == 0 and .flows.broken > 0 and
     .flows.broken == ([.pools[].backends[] | select(.name == "b2").flows.live] | add)'
check "a person reads it, too" grep -q 'live flows break' <(ctl plan -f "$LAB_DIR/without_b2.yaml")
check_json "a bad file is refused with complaints" \
    "$(api POST 'plan?file=bad.yaml' --data-binary 'seed: x')" '.error.complaints[0] | startswith("bad.yaml:1: ")'
check "plans leave everything as it is" [ "$(status)" = "$before" ]

cp "$LAB_DIR/without_b2.yaml" "$config"
check_json "the reload moves what the plan said" "$(ctl reload --json)" \
    "[.pools[] | {name, moved, ideal}] == $(jq -c '[.pools[] | select(.moved > 0) | {name, moved, ideal}]' <<<"$plan")"
check_json "and ends with the table that the plan named" "$(api GET status)" \
    "[.pools[].digest] == $(jq -c '[.pools[].digest.after]' <<<"$plan")"
hold=$(traffic_end hold)
note "established: $hold"
check_json "just the connections of b2 broke, as many as the plan counted at most" "$hold" \
    ".failed > 0 and .failed == .backends.b2 and .failed <= $(jq .flows.broken <<<"$plan")"
finish
