-- SPDX-License-Identifier: BSD-3-Clause
--
-- The profiles of scripts/pktgen in a Pktgen of our own, which knows only names and numbers of arguments that
-- Pktgen-DPDK 23.06.1 has, and sends on a wire of 10 Gbit/s through something that forwards so many packets a second.
-- Time is the script's: a delay takes no time here, but lasts longer than it should, as Pktgen's do. Prints TAP.
--
--     lua5.3 test_pktgen.lua FOLDER-OF-THE-PROFILES

local folder = arg[1]
local ARGUMENTS = { clear = 1, delay = 1, linkState = 1, pcap = 2, portCount = 0, portStats = 2, quit = 0, screen = 1,
    set = 3, set_mac = 3, set_range = 2, start = 1, stop = 1 }
local RANGE = { dst_mac = 3, dst_ip = 3, dst_port = 3, ip_proto = 2, pkt_size = 3, src_ip = 3, src_port = 3 }

local world

-- A world in which `forwards` packets a second come back. Counters are read once a second, as Pktgen's timer does.
local function new_world(forwards, settings)
    world = { forwards = forwards, settings = settings, now = 0, calls = {}, printed = {}, rate = 0, size = 64,
        sent = 0, received = 0, shown = { 0, 0 }, command = "pktgen\0--\0-P\0", link = "<UP-10000-FD>" }
end

local actions = {
    portCount = function() return 2 end,
    linkState = function(port) return { [port] = world.link } end,
    clear = function() world.sent, world.received, world.shown = 0, 0, { 0, 0 } end,
    start = function()
        world.sending = true
        -- Packets are built at the start; what could not be sent meanwhile comes at once, and is lost.
        world.sent = world.sent + (world.rate > 0.1 and 1000 or 0)
    end,
    stop = function() world.sending = false end,
    set = function(_, what, value) world[what] = value end,
    portStats = function(port)
        return { [port] = { opackets = world.shown[1], ipackets = world.shown[2] } }
    end,
    delay = function(milliseconds)
        for _ = 1, milliseconds * 1.1 do
            world.now = world.now + 1
            if world.sending then
                local packets = 1e10 / 8 / (world.size + 20) * world.rate / 100 / 1000
                world.sent = world.sent + packets
                world.received = world.received + math.min(packets, world.forwards / 1000)
            end
            if world.now % 1000 == 0 then
                world.shown = { math.floor(world.sent), math.floor(world.received) }
            end
        end
    end,
}

local function stub(names, prefix)
    local functions = {}
    for name, count in pairs(names) do
        functions[name] = function(...)
            assert(select("#", ...) == count, "wrong number of arguments: " .. name)
            table.insert(world.calls, prefix .. name .. " " .. table.concat({ ... }, " "))
            return actions[name] and actions[name](...)
        end
    end
    return functions
end

pktgen = stub(ARGUMENTS, "")
pktgen.range = stub(RANGE, "range.")
os.getenv = function(name) return world.settings[name] end
os.exit = function(status) world.status = status end
print = function(text) table.insert(world.printed, text) end
io.open = function(name)
    local text = name == "/proc/uptime" and world.now / 1000 or name == "/proc/self/cmdline" and world.command
    return { read = function() return assert(text, name) end, close = function() end }
end

local function run(script)
    package.loaded.profile = nil
    dofile(folder .. "/" .. script)
end

local function called(call)
    for _, made in ipairs(world.calls) do
        if made:find(call, 1, true) == 1 then
            return true
        end
    end
    return false
end

local function said(pattern)
    return table.concat(world.printed, "\n"):match(pattern)
end

local failed = false
local function check(text, holds)
    failed = failed or not holds
    io.write(holds and "ok - " or "not ok - ", text, "\n")
    if not holds then
        io.write("# ", table.concat(world.printed, "\n# "), "\n")
    end
end

local MAC = "02:00:00:00:00:10"

new_world(1e9, { DST_MAC = MAC, RX = "1", VIP = "192.0.2.77", PROTO = "udp", VIP_PORT = "443" })
run("throughput.lua")
check("throughput sends at line rate, in each size", said("  64       14.88%d       14.88%d\n") and
    said("1518        0.813        0.813$"))
check("it ends Pktgen", called("quit") and world.status == nil)
check("packets go to the balancer and the VIP", called("range.dst_mac 0 start " .. MAC) and
    called("range.dst_ip 0 max 192.0.2.77") and called("range.ip_proto 0 udp") and called("range.dst_port 0 min 443"))
check("each start sends the same 24,576 flows", called("range.src_ip 0 max 11.0.95.255") and
    called("range.src_port 0 start 1024") and called("range.src_port 0 max " .. 1023 + 96 * 256))

new_world(6e6, { DST_MAC = MAC, RX = "1" })
run("search.lua")
local found = tonumber(said("highest rate without loss: ([%d.]+) million"))
check("search finds what is forwarded", found and found <= 6 and found > 6 - 14.88 / 200)

new_world(1e9, { DST_MAC = MAC, RATE = "40" })
run("search.lua")
check("search tries no more than RATE", said("highest rate without loss: 5.952 million packets/s, 40.000 %%"))

new_world(0, { DST_MAC = MAC })
run("search.lua")
check("search says when all is lost", said("no rate without loss") and called("quit"))

new_world(1e9, {})
run("throughput.lua")
check("without DST_MAC nothing is sent, and the exit status is 1", world.status == 1 and not called("start") and
    said("failed: DST_MAC is not set"))

new_world(1e9, { REPLAY = "1" })
run("throughput.lua")
check("nor with REPLAY and no capture", world.status == 1 and not called("start") and said("%-s 0:FILE"))

new_world(1e9, { REPLAY = "1" })
world.command = "pktgen\0-l\0000-2\0--\0-P\0-s\0000:flows.pcap\0"
run("throughput.lua")
check("a capture is sent as it is", called("pcap 0 on") and not called("range.") and said("file       14.88"))

new_world(1e9, { DST_MAC = MAC, SIZE = "tiny" })
run("throughput.lua")
check("a setting that is no number is named", world.status == 1 and said("SIZE is 'tiny'"))

new_world(1e9, { DST_MAC = MAC })
world.link = "<--Down-->"
run("throughput.lua")
check("no link is said", world.status == 1 and said("port 0 has no link"))

new_world(1e9, { DST_MAC = MAC })
actions.set_mac = function() error("no such thing") end
run("throughput.lua")
check("an error of Pktgen ends it", world.status == 1 and said("no such thing"))

if failed then
    error("not all as expected", 0)
end
