# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
#
# tap.sh: what every end-to-end test begins with. Sourced; brings lab.sh along, reports in TAP ("ok 1 - ...") so that
# scripts/test can count, removes the lab on any exit, and shows its state when something failed.
#
#   HB_PAUSE=1  wait for Enter at the first failure, with the lab still there (CONTRIBUTING.md, "Looking inside")
set -u

# shellcheck source=tests/e2e/lab.sh
source "$(dirname "$(realpath "${BASH_SOURCE[0]}")")/lab.sh"

tap_count=0
tap_failed=0
tap_finished=0

ok() {
    tap_count=$((tap_count + 1))
    echo "ok $tap_count - $*"
}

# not_ok DESCRIPTION [DETAIL]
not_ok() {
    tap_count=$((tap_count + 1))
    tap_failed=$((tap_failed + 1))
    echo "not ok $tap_count - $1"
    [ -z "${2:-}" ] || printf '# %s\n' "${2//$'\n'/$'\n'# }"
    if [ $tap_failed -eq 1 ]; then
        lab_dump
        if [ "${HB_PAUSE:-0}" != 0 ] && [ -t 0 ]; then
            read -rp "# the lab $LAB is still there (ip netns exec $LAB-lb ...); Enter goes on " </dev/tty
        fi
    fi
}

note() { local text="$*" && printf '# %s\n' "${text//$'\n'/$'\n'# }"; }

# check DESCRIPTION COMMAND...: ok when it succeeds; its output is shown when not.
check() {
    local description=$1 output
    shift
    if output=$("$@" 2>&1); then
        ok "$description"
    else
        not_ok "$description" "'$*' ended with status $?: $output"
    fi
}

# check_json DESCRIPTION JSON FILTER: ok when the jq filter is true of it.
check_json() {
    if is_true "$3" >/dev/null 2>&1 <<<"$2"; then
        ok "$1"
    else
        not_ok "$1" "expected $3"$'\n'"of $2"
    fi
}

# needed COMMAND...: without it nothing that follows makes sense.
needed() {
    "$@" && return 0
    lab_dump
    echo "Bail out! '$*' failed"
    tap_finished=1
    exit 1
}

finish() {
    echo "1..$tap_count"
    tap_finished=1
    [ $tap_failed -eq 0 ]
    exit
}

tap_exit() {
    local status=$?
    trap '' INT TERM # a second signal would leave half of the lab
    [ $tap_finished -eq 1 ] || echo "Bail out! the test ended early, with status $status"
    lab_down ""
    exit $status
}
trap tap_exit EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Ends control without a word and waits for the next one.
kill_control() {
    local pid
    pid=$(<"$LAB_DIR/control.pid")
    kill -KILL "$pid"
    back() { [ "$(<"$LAB_DIR/control.pid")" != "$pid" ] && in_sync; }
    needed wait_for 15 "control is back" back
}

# flood_host SECONDS: datagrams from the router to the balancer itself; "stop flood" ends it before that.
flood_host() { launch flood ip netns exec "$LAB-router" "$LAB_SOURCE/flood.py" "$LB4" "$1"; }

# The router forgot the balancer's MAC address and has it again.
arp_answered() { in_ns router ip neigh show "$LB4" dev lb | grep -q lladdr; }
