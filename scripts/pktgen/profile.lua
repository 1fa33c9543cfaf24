-- SPDX-License-Identifier: BSD-3-Clause
--
-- profile.lua: what the other Pktgen-DPDK scripts of this folder share. Settings come from the environment:
--
--     DST_MAC   the balancer's port, or the router before it; no default
--     VIP       default 192.0.2.10
--     VIP_PORT  default 80
--     PROTO     tcp or udp; default tcp
--     SIZE      bytes of a frame, CRC included; default 64
--     RATE      percent of the link; default 100
--     SECONDS   of a measurement; default 10
--     TX, RX    port that sends, port on which packets come back (default: both 0)
--     REPLAY    1: the port has a capture (-s 0:FILE): many flows, IMIX; SIZE and the range below do not matter then
--
-- Range mode builds each packet once, in one of Pktgen's buffers, and sends those again and again: at most some
-- 24,000 flows are on the wire, whatever the range says, and source address and port step together. For more flows
-- write a capture (scripts/pktgen/capture) and replay it.

package.path = package.path .. ";?.lua;test/?.lua;app/?.lua;"
require "Pktgen"

local profile = {}

local function setting(name, default)
    local value = os.getenv(name)
    if value == nil or value == "" then
        return default
    end
    return value
end

profile.tx = tonumber(setting("TX", "0"))
profile.rx = tonumber(setting("RX", tostring(profile.tx)))
profile.size = tonumber(setting("SIZE", "64"))
profile.rate = tonumber(setting("RATE", "100"))
profile.seconds = tonumber(setting("SECONDS", "10"))
profile.replay = setting("REPLAY", "0") == "1"

-- A range that stands still unless `inc` says otherwise.
local function range(set, first, last, inc)
    set(profile.tx, "start", first)
    set(profile.tx, "min", first)
    set(profile.tx, "max", last)
    set(profile.tx, "inc", inc)
end

function profile.set_size(size)
    profile.size = size
    pktgen.set(profile.tx, "size", size)
    range(pktgen.range.pkt_size, size, size, 0)
end

-- Clients 11.0.0.0 and up, ports 1024 and up, one VIP.
function profile.prepare()
    local mac = setting("DST_MAC", nil)
    local vip = setting("VIP", "192.0.2.10")
    local port = tonumber(setting("VIP_PORT", "80"))

    pktgen.screen("off")
    pktgen.stop("all")
    pktgen.clr()
    pktgen.set(profile.tx, "count", 0)
    pktgen.set(profile.tx, "rate", profile.rate)
    if profile.replay then
        pktgen.pcap(profile.tx, "on")
        return
    end
    if mac == nil then
        print("DST_MAC is not set: the MAC address of the balancer's port, or of the router before it")
        pktgen.quit()
        return
    end
    pktgen.set_mac(profile.tx, "dst", mac)
    pktgen.range.dst_mac(profile.tx, "start", mac)
    pktgen.range.dst_mac(profile.tx, "inc", "00:00:00:00:00:00")
    pktgen.range.ip_proto(tostring(profile.tx), setting("PROTO", "tcp"))
    range(pktgen.range.src_ip, "11.0.0.0", "11.0.96.0", "0.0.0.1")
    range(pktgen.range.src_port, 1024, 60000, 1)
    range(pktgen.range.dst_ip, vip, vip, "0.0.0.0")
    range(pktgen.range.dst_port, port, port, 0)
    profile.set_size(profile.size)
    pktgen.set_range(profile.tx, "on")
end

-- Sends for `seconds` at `rate` percent; returns packets sent and received, and the seconds.
function profile.trial(rate, seconds)
    pktgen.set(profile.tx, "rate", rate)
    pktgen.clear("all")
    pktgen.delay(500)
    pktgen.start(profile.tx)
    pktgen.delay(seconds * 1000)
    pktgen.stop(profile.tx)
    pktgen.delay(1000) -- what is on its way arrives
    local sent = pktgen.portStats(profile.tx, "port")[profile.tx].opackets
    local received = pktgen.portStats(profile.rx, "port")[profile.rx].ipackets
    return sent, received, seconds
end

return profile
