-- SPDX-License-Identifier: BSD-3-Clause
--
-- search.lua: the highest rate at which nothing is lost (RFC 2544, section 26.1), by halving, to 0.5 % of the link.
--
--     cd scripts/pktgen && DST_MAC=... TX=0 RX=1 pktgen -l 0-4 -a 0000:3b:00.0 -a 0000:3b:00.1 -- \
--         -P -m "[1:2].0,[3:4].1" -f search.lua
--
-- Packets must come back on port RX: let the balancer's only backend be this machine's second port.
-- TOLERATE is the share in percent that may be lost (default 0).

local profile = require "profile"

local tolerate = tonumber(os.getenv("TOLERATE") or "0")
local low, high, best = 0, 100, 0

profile.prepare()
local rate = high
while high - low > 0.5 do
    local sent, received, seconds = profile.trial(rate, profile.seconds)
    local lost = sent > 0 and 100 * (sent - received) / sent or 100
    print(string.format("%6.2f %% of the link: %.3f million/s, %.4f %% lost", rate, sent / seconds / 1e6, lost))
    if lost <= tolerate then
        low, best = rate, sent / seconds / 1e6
        if rate == 100 then
            break
        end
    else
        high = rate
    end
    rate = (low + high) / 2
end
print(string.format("highest rate without loss: %.3f million packets/s, %.2f %% of the link, %d bytes", best, low,
    profile.size))
pktgen.quit()
