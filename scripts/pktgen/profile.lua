-- SPDX-License-Identifier: BSD-3-Clause
--
-- profile.lua: what the other Pktgen-DPDK scripts of this folder share. Settings come from the environment:
--
--     DST_MAC   the balancer's port, or the router before it; no default
--     VIP       default 192.0.2.10
--     VIP_PORT  default 80
--     PROTO     tcp or udp; default tcp
--     SIZE      bytes of a frame, CRC included; default 64
--     RATE      percent of the link, the most that is tried; default 100
--     SECONDS   of a measurement; default 10
--     TX, RX    port that sends, port on which packets come back (default: both 0)
--     REPLAY    1: the port has a capture (-s 0:FILE): many flows, IMIX; DST_MAC, SIZE and the range below are not
--               used then
--
-- Range mode builds each packet once, in one of Pktgen's buffers, and sends those again and again: at most some
-- 24,000 flows are on the wire, whatever the range says, and source address and port step together. For more flows
-- write a capture (scripts/pktgen/capture) and replay it.
--
-- Everything here is the global `pktgen` that Pktgen gives to a script; its own Pktgen.lua is not needed.

local profile = {}

-- A mistake of the person who measures: the message is all there is to say, without a traceback.
local function refuse(...)
    error({ refused = string.format(...) })
end

local function setting(name, default)
    local value = os.getenv(name)
    if value == nil or value == "" then
        return default
    end
    return value
end

function profile.number(name, default, least, most)
    local text = setting(name, default)
    local value = tonumber(text)
    if value == nil or value < least or value > most then
        refuse("%s is '%s': it wants a number from %s to %s", name, text, least, most)
    end
    return value
end

-- A range that stands still unless `inc` says otherwise.
local function range(set, first, last, inc)
    set(profile.tx, "start", first)
    set(profile.tx, "min", first)
    set(profile.tx, "max", last)
    set(profile.tx, "inc", inc)
end

function profile.set_size(size)
    profile.size = size
    pktgen.set(profile.tx, "size", size) -- of this one the pause between bursts is computed
    range(pktgen.range.pkt_size, size, size, 0)
end

local function read_settings()
    profile.tx = profile.number("TX", 0, 0, pktgen.portCount() - 1)
    profile.rx = profile.number("RX", profile.tx, 0, pktgen.portCount() - 1)
    profile.size = profile.number("SIZE", 64, 64, 1518)
    profile.rate = profile.number("RATE", 100, 0.01, 100)
    profile.seconds = profile.number("SECONDS", 10, 1, 86400)
    profile.replay = setting("REPLAY", "0") == "1"
end

-- A link that has just been started needs seconds; without its speed Pktgen can't tell what 100 percent is.
local function wait_for_link(port)
    for _ = 1, 150 do
        if pktgen.linkState(port)[port]:find("UP") then
            return
        end
        pktgen.delay(100)
    end
    refuse("port %d has no link", port)
end

-- Clients 11.0.0.0 and up, ports 1024 and up, one VIP. Both ranges are as long as Pktgen has buffers, so that each start
-- sends the same flows again.
local function set_range()
    local mac = setting("DST_MAC", nil)
    local vip = setting("VIP", "192.0.2.10")
    local port = profile.number("VIP_PORT", 80, 1, 65535)
    local proto = setting("PROTO", "tcp")

    if mac == nil then
        refuse("DST_MAC is not set: the MAC address of the balancer's port, or of the router before it")
    end
    if proto ~= "tcp" and proto ~= "udp" then
        refuse("PROTO is '%s': it wants tcp or udp", proto)
    end
    pktgen.set_mac(profile.tx, "dst", mac)
    pktgen.range.dst_mac(profile.tx, "start", mac)
    pktgen.range.dst_mac(profile.tx, "inc", "00:00:00:00:00:00")
    pktgen.range.ip_proto(profile.tx, proto)
    range(pktgen.range.src_ip, "11.0.0.0", "11.0.95.255", "0.0.0.1")
    range(pktgen.range.src_port, 1024, 25599, 1)
    range(pktgen.range.dst_ip, vip, vip, "0.0.0.0")
    range(pktgen.range.dst_port, port, port, 0)
    profile.set_size(profile.size)
    pktgen.set_range(profile.tx, "on")
end

-- Without a capture Pktgen takes no notice of "pcap" and would send packets of its own to nobody.
local function need_capture()
    local file = assert(io.open("/proc/self/cmdline"))
    local line = file:read("a")
    file:close()
    if not line:find("\0%-%-\0.*%f[^\0]%-s") then
        refuse("REPLAY is 1 and there is no capture: -s %d:FILE", profile.tx)
    end
end

local function prepare()
    read_settings()
    pktgen.screen("off")
    pktgen.stop("all")
    wait_for_link(profile.tx)
    wait_for_link(profile.rx)
    pktgen.set(profile.tx, "count", 0)
    if profile.replay then
        need_capture()
        pktgen.pcap(profile.tx, "on")
    else
        set_range()
    end
end

-- Seconds since some moment. Delays of Pktgen last longer than they should, by some percent on a busy machine.
local function now()
    local file = assert(io.open("/proc/uptime"))
    local seconds = file:read("n")
    file:close()
    return seconds
end

local function counters()
    return pktgen.portStats(profile.tx, "port")[profile.tx].opackets,
        pktgen.portStats(profile.rx, "port")[profile.rx].ipackets
end

-- Pktgen reads the ports' counters once a second: waits for the next time; returns packets sent by then, and when.
local function next_reading()
    local before = counters()
    for _ = 1, 500 do
        pktgen.delay(10)
        local sent = counters()
        if sent ~= before then
            return sent, now()
        end
    end
    refuse("port %d sends nothing", profile.tx)
end

-- What has been sent and received once the counters stand still: what was on its way has arrived then.
local function settled()
    local sent, received = counters()
    for _ = 1, 10 do
        local sent_before, received_before = sent, received
        pktgen.delay(1100)
        sent, received = counters()
        if sent == sent_before and received == received_before then
            break
        end
    end
    return sent, received
end

-- Sends for `seconds` at `rate` percent: { sent, received: packets; per_second: what was sent in a second }.
-- It begins slowly: a start in range mode builds the packets anew, and Pktgen makes up for lost time, so that at the
-- full rate some 10 ms of packets would come at once, whatever the rate, and be lost.
function profile.trial(rate, seconds)
    pktgen.clear("all")
    pktgen.delay(1100)
    pktgen.set(profile.tx, "rate", 0.01)
    pktgen.start(profile.tx)
    next_reading()
    pktgen.set(profile.tx, "rate", rate)
    local first, began = next_reading()
    pktgen.delay(math.floor(seconds * 1000))
    local last, ended = next_reading()
    pktgen.stop(profile.tx)
    local sent, received = settled()
    return { sent = sent, received = received, per_second = (last - first) / (ended - began) }
end

-- Runs a measurement and ends Pktgen, whatever happens: it would wait at its prompt after an error. Its exit status is
-- 1 then.
function profile.run(measurement)
    local done, problem = xpcall(function()
        prepare()
        measurement()
    end, function(problem)
        return type(problem) == "table" and problem.refused or debug.traceback(problem, 2)
    end)
    pktgen.stop("all")
    if done then
        pktgen.quit()
    else
        print("failed: " .. problem)
        os.exit(1)
    end
end

return profile
