#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# supervise.sh: runs a command and starts it again 100 ms after it ends, as systemd does for a unit with
# Restart=always. The tests kill daemons with it in place, so "comes back by itself" means what it means on
# a server.
#
#   supervise.sh PIDFILE LOG COMMAND...
#
# PIDFILE holds the pid of the running command. SIGTERM ends the command, then this.
set -u

pidfile=$1 log=$2
shift 2
child=
stop=0

end() {
    stop=1
    [ -z "$child" ] || kill -TERM "$child" 2>/dev/null
}
trap end TERM INT

while [ $stop -eq 0 ]; do
    "$@" >>"$log" 2>&1 </dev/null &
    child=$!
    echo $child >"$pidfile.new" && mv "$pidfile.new" "$pidfile"
    # A signal to this shell ends `wait` early; the child is waited for all the same.
    status=0
    wait $child || status=$?
    while kill -0 $child 2>/dev/null; do
        wait $child || status=$?
    done
    [ $stop -eq 1 ] || {
        echo "supervise: $(basename "$pidfile" .pid) ended with status $status; starting it again" >>"$log"
        sleep 0.1
    }
done
rm -f "$pidfile"
