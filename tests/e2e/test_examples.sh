#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Each example of docs/api.md is run, and its answer has the members, or the error, that the page shows.
source "$(dirname "$0")/tap.sh"

# Commands of maintenance, a minimum that can be in the way, and a former configuration to roll back to.
adorn() {
    sed -i -e '1a maintenance: { on_withdraw: "true", on_announce: "true" }' -e '0,/^    backends:/s//    failure: { minimum: 2 }\n    backends:/' \
        "$LAB_DIR/halbach.yaml"
}
needed lab_up examples 1 2 3 4
needed start_balancer 1 2 3 4
adorn
needed ctl reload >/dev/null
sed 's/{ name: b2,/{ name: b2, weight: 2,/' "$LAB_DIR/halbach.yaml" >"$LAB_DIR/new.yaml"
cp "$LAB_DIR/new.yaml" "$LAB_DIR/halbach.yaml"
needed ctl reload >/dev/null
needed traffic open open "$URL4/echo" "$URL6/echo" --rate 50
talks() { api GET talkers | is_true '.talkers != []'; }
needed wait_for 10 "a talker" talks
needed wait_for 10 "all are up" backends_up 4
while IFS=$'\t' read -r what wrong; do
    if [ -z "$wrong" ]; then ok "$what"; else not_ok "$what" "$wrong"; fi
done < <("$LAB_SOURCE/examples.py" "$LAB_ROOT/docs/api.md" "$LAB_DIR/control.sock" "$LAB_DIR" 2>&1)
check "all examples were run" test "$tap_count" -ge 28
finish
