#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A drained backend keeps its established flows to their end, byte for byte, and gets no new one.
source "$(dirname "$0")/tap.sh"

needed lab_up drain 1 2 3
head -c 12000000 /dev/urandom >"$LAB_DIR/www/file"
needed start_balancer 1 2 3
needed traffic hold hold "$URL4/echo" "$URL6/echo" --count 30 --rate 10
needed traffic open open "$URL4/echo" "$URL6/echo" --rate 50
needed traffic udp udp "$UDP4" "$UDP6" --count 30 --rate 10

needed start_download "$URL4/file"
victim=$(download_backend)
note "the download runs through $victim"

answer=$(ctl drain "$victim" --json)
drained_at=$(now)
note "drain: $answer"
check_json "drain is applied at once" "$answer" '.applied'
check_json "only the backend's own slots move, and a small remainder" "$answer" \
    '.backends[] | select(.pool == "web") | .moved >= .ideal and .collateral <= .ideal / 10'
check "it is shown as draining" backend_is "$victim" draining
check_json "it has no slots left" "$(api GET backends)" "[.backends[] | select(.name == \"$victim\") | .slots] == [0, 0]"
check "the download was still running when it was drained" is_running download
take_download

new_requests_done() { [ "$(outage open "$drained_at" | jq .requests)" -ge 100 ]; }
needed wait_for 20 "100 new connections after the drain" new_requests_done
result=$(outage open "$drained_at")
note "new connections after the drain: $result"
check_json "no new connection goes to it" "$result" ".backends.$victim == null and .failed == 0"

wait_for 30 "the download ends" has_ended taker
check "the download is complete, byte for byte" cmp "$LAB_DIR/www/file" "$LAB_DIR/downloaded"

check "undrain" ctl undrain "$victim"
check "it is up again" backend_is "$victim" up
hold=$(traffic_end hold) open=$(traffic_end open) udp=$(traffic_end udp)
note "established: $hold"
check_json "no established connection broke or moved" "$hold" '.failed == 0 and .moved == 0'
check_json "no new connection failed" "$open" '.failed == 0'
check_json "no datagram was lost or doubled, no UDP flow moved" "$udp" '.failed == 0 and .moved == 0'
check_json "draining an unknown backend is refused by name" "$(api POST backends/web9/drain)" '.error.message | contains("web9")'
finish
