/* SPDX-License-Identifier: BSD-3-Clause */
/* See path_mtu.h. */
#include "path_mtu.h"

bool hb_path_learn(struct hb_path *path, uint32_t mtu, uint32_t in_use, uint32_t floor,
                   uint64_t now_ms)
{
    if (mtu < floor || mtu > in_use)
        return false;
    if (mtu == in_use && path->mtu != mtu) /* the link's own: nothing to remember */
        return false;
    path->learned_ms = now_ms;
    if (path->mtu == mtu)
        return false;
    path->mtu = mtu;
    return true;
}

bool hb_path_age(struct hb_path *path, uint64_t now_ms)
{
    return path->mtu != 0 && hb_path_left_ms(path, now_ms) == 0 && hb_path_forget(path);
}

bool hb_path_forget(struct hb_path *path)
{
    bool known = path->mtu != 0;

    path->mtu = 0;
    return known;
}

uint64_t hb_path_left_ms(const struct hb_path *path, uint64_t now_ms)
{
    uint64_t end_ms = path->learned_ms + HB_PATH_KEEP_MS;

    return path->mtu != 0 && now_ms < end_ms ? end_ms - now_ms : 0;
}
