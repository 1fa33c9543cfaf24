#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# scripts/bench as a whole: it refuses what is no result, measures two sections shortly, writes and compares results,
# and leaves nothing behind. No figure is judged but those that may never be anything else than 0.
#
#     test_bench.sh BUILD
#
# Without root or hugepages only what needs neither is measured. Prints TAP.
set -u
cd "$(dirname "$(realpath "$0")")/../.." || exit 1
build=$(realpath "$1")
folder=$(mktemp -d /tmp/hb-test-bench-XXXXXX)
trap 'rm -rf "$folder"' EXIT
failed=0

# check DESCRIPTION COMMAND...
check() {
    local text=$1
    shift
    if "$@" >"$folder/log" 2>&1; then
        echo "ok - $text"
    else
        echo "not ok - $text"
        tail -n 20 "$folder/log" "$folder/out"
        failed=1
    fi
}

bench() { TMPDIR=$folder timeout 120 scripts/bench "$@" >"$folder/out" 2>&1 </dev/null; }
says() { grep -q -- "$1" "$folder/out"; }
refuses() { ! bench "$@"; }
json() { python3 -c "import json, sys; result = json.load(open('$folder/a.json')); sys.exit(0 if $1 else 1)"; }

# A folder that meson might have made for debugging.
mkdir -p "$folder/debug/meson-info"
echo '[{"name": "buildtype", "value": "debug"}, {"name": "optimization", "value": "0"}]' \
    >"$folder/debug/meson-info/intro-buildoptions.json"
HB_BUILD=$folder/debug check "an unoptimised build is refused" refuses --quick cache
check "and the reason is said" says "refused, because the build is not optimised"
check "an unknown section is refused" refuses nosuch
check "and those that there are, are named" says "endtoend"

export HB_BUILD=$build
sections=(cache)
free=$(awk '/^HugePages_Free/ { print $2 }' /proc/meminfo)
if [ "$(id -u)" -eq 0 ] && [ "${free:-0}" -ge 350 ] && [ "$(nproc)" -ge 2 ]; then
    sections+=(flood)
else
    echo "ok - flood # skip needs root, two CPUs and 700 MB of hugepages"
fi
check "it measures ${sections[*]}" bench --quick --any-build --json "$folder/a.json" "${sections[@]}"
check "the result has rows" json "len(result['rows']) > 10 and result['machine']['cpu']"
check "no established flow was lost in a flood" \
    json "all(r['median'] == 0 for r in result['rows'] if r['metric'] == 'established lost')"
check "a result does not differ from itself" bench compare "$folder/a.json" "$folder/a.json"
check "and says so" says "^0 slower, 0 faster"
check "nothing is left mounted" bash -c "! grep -q '$folder' /proc/mounts"
check "no folder is left" bash -c "! ls -d '$folder'/hb-bench-*"
check "no process is left" bash -c "! grep -lsa '$folder/hb-bench[-]' /proc/[0-9]*/cmdline"
exit $failed
