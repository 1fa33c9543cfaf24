-- SPDX-License-Identifier: BSD-3-Clause
--
-- search.lua: the highest rate at which nothing is lost (RFC 2544, section 26.1), by halving, to 0.5 % of RATE.
--
--     DST_MAC=... TX=0 RX=1 pktgen -l 1-5 -a 0000:3b:00.0 -a 0000:3b:00.1 -- -P -m "[2:3].0,[4:5].1" \
--         -f scripts/pktgen/search.lua
--
-- Packets must come back on port RX: let the balancer's only backend be this machine's second port. When less is sent
-- than the percentage says, the generator is the limit. TOLERATE is the share in percent that may be lost (default 0).
-- Other settings: profile.lua.

package.path = (debug.getinfo(1, "S").source:match("^@(.*/)") or "./") .. "?.lua;" .. package.path
local profile = require "profile"

profile.run(function()
    local tolerate = profile.number("TOLERATE", 0, 0, 100)
    local low, high, best = 0, profile.rate, nil
    local rate = high
    while high - low > profile.rate / 200 do
        local trial = profile.trial(rate, profile.seconds)
        local lost = 100 * (trial.sent - trial.received) / trial.sent
        print(string.format("%7.3f %% of the link: %.3f million/s, %.4f %% lost", rate, trial.per_second / 1e6, lost))
        if lost <= tolerate then
            low, best = rate, math.max(best or 0, trial.per_second / 1e6)
            if rate == high then
                break
            end
        else
            high = rate
        end
        rate = (low + high) / 2
    end
    if best == nil then
        print("no rate without loss was found; do packets come back on port " .. profile.rx .. "?")
        return
    end
    print(string.format("highest rate without loss: %.3f million packets/s, %.3f %% of the link, %s", best, low,
        profile.replay and "packets of the capture" or profile.size .. " bytes"))
end)
