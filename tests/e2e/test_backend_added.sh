#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A backend added by reload takes its share of new flows; one removed gives its share up. Nothing established moves.
source "$(dirname "$0")/tap.sh"

needed lab_up added 1 2 3
needed start_balancer 1 2 3
needed start_backend 4
needed traffic hold hold "$URL4/echo" "$URL6/echo" --count 60 --rate 10
needed traffic open open "$URL4/echo" "$URL6/echo" --rate 100
needed traffic udp udp "$UDP4" "$UDP6" --count 30 --rate 10

write_config 1 2 3 4
answer=$(ctl reload --json)
note "reload: $answer"
check_json "reload tells what was added" "$answer" '.applied and .backends.added == 2 and .services.added == 0'
check "the new backend comes up" wait_for 5 "b4 is up" backend_is b4 up
needed wait_for 5 "the dataplane has it" in_sync
change=$(api GET status | jq -c '.pools[] | select(.name == "web").last_change')
note "moved: $change"
check_json "moved slots: its share and a small remainder" "$change" \
    '.moved >= .ideal and .moved <= .ideal * 1.2 and .ideal > 16000 and .ideal < 16800'
added_at=$(now)
new_requests_done() { [ "$(outage open "$1" | jq .requests)" -ge 150 ]; }
needed wait_for 20 "150 new connections" new_requests_done "$added_at"
check_json "the new backend gets new flows" "$(outage open "$added_at")" '.failed == 0 and .backends.b4 > 0'

udp=$(traffic_end udp) hold=$(traffic_end hold)
note "established: $hold"
note "udp: $udp"
check_json "no established connection broke or moved" "$hold" '.failed == 0 and .moved == 0 and .requests > 500'
check_json "no datagram was lost or doubled, no UDP flow moved" "$udp" '.failed == 0 and .moved == 0'

# Who takes a backend out of the file without draining it ends what it serves: requests under way to b4 just now may
# fail, no other may.
check_json "no new connection failed before that" "$(outage open 0)" '.failed == 0'
write_config 1 2 3
kill -HUP "$(<"$LAB_DIR/control.pid")"
three_left() { api GET status | is_true '.backends.total == 6 and .generation.in_sync'; }
check "SIGHUP reloads as well: the backend is gone" wait_for 5 "b4 is gone" three_left
removed_at=$(now)
needed wait_for 20 "150 new connections" new_requests_done "$removed_at"
check_json "it gets no new flow" "$(outage open "$removed_at")" '.failed == 0 and .backends.b4 == null'
note "new connections: $(traffic_end open)"
check_json "those that failed were under way when it left" "$(outage open 0)" "$CUT_AT_MOST"
finish
