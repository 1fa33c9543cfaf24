-- SPDX-License-Identifier: BSD-3-Clause
--
-- throughput.lua: sends at RATE percent for SECONDS, in every size of RFC 2544 or in the one that SIZE names.
--
--     DST_MAC=... pktgen -l 1-3 -a 0000:3b:00.0 -- -P -m "[2:3].0" -f scripts/pktgen/throughput.lua
--
-- What counts is what the balancer forwarded: read `halbachctl stats` on it, or let packets come back on port RX.
-- Other settings: profile.lua.

package.path = (debug.getinfo(1, "S").source:match("^@(.*/)") or "./") .. "?.lua;" .. package.path
local profile = require "profile"

profile.run(function()
    local sizes = { 64, 128, 256, 512, 1024, 1280, 1518 }
    if os.getenv("SIZE") ~= nil or profile.replay then
        sizes = { profile.size }
    end
    print("size       sent/s   received/s  (millions)")
    for _, size in ipairs(sizes) do
        if not profile.replay then
            profile.set_size(size)
        end
        local trial = profile.trial(profile.rate, profile.seconds)
        local sent = trial.per_second / 1e6
        print(string.format("%4s   %10.3f   %10.3f", profile.replay and "file" or size, sent,
            sent * trial.received / trial.sent))
    end
end)
