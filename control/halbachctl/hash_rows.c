/* SPDX-License-Identifier: BSD-3-Clause */
/* hash_rows.c: the commands and options of `halbachctl hash ...`. None of them needs a
 * daemon, but for a plan without --old. */
#include "command_line.h"

#define FIELD(name) offsetof(struct hb_ctl, hash.name)

const struct hb_option hb_hash_option_rows[] = {
    {"backends", "N|FILE", "how many backends, a list of them, or a configuration (.yaml)",
     FIELD(backends), false},
    {"change", "CHANGE", "add:COUNT, add:NAME=WEIGHT, remove:NAME, weight:NAME=WEIGHT; commas",
     FIELD(change), false},
    {"keys", "N|FILE", "how many keys to make up, or a file with a key a line", FIELD(keys), false},
    {"hashes", "LIST", "these hashes in place of keys: modulo, ring and jump", FIELD(hashes),
     false},
    {"algorithms", "LIST", "only these: modulo,ring,ketama,rendezvous,skeleton,jump,maglev",
     FIELD(algorithms), false},
    {"hit", "RATIO", "hit ratio of a cache before the change (default 0.95)", FIELD(hit), false},
    {"seed", "NUMBER", "of keys and tables, so that results repeat (default 16)", FIELD(seed),
     false},
    {"vnodes", "NUMBER", "virtual nodes of rings for each unit of weight (default 400)",
     FIELD(vnodes), false},
    {"table-size", "M", "slots of lookup tables, a prime (default 65537)", FIELD(table_size),
     false},
    {"count", "NUMBER", "how many backends to name (default 3)", FIELD(count), false},
    {"zones", NULL, "distinct zones first", FIELD(zones), false},
    {"tokens", "LIST", "the ring's tokens by hand: A=100,B=200,A=250", FIELD(tokens), false},
    {"space", "SIZE", "positions of that ring (default 2^32)", FIELD(space), false},
    {"positions", "LIST", "who has these positions", FIELD(positions), false},
    {"join", "NAME@TOKEN", "a token that joins; or NAME, with all its virtual nodes", FIELD(join),
     false},
    {"leave", "NAME", "a backend that leaves (after those that join)", FIELD(leave), false},
    {"failures", "N", "how many backends may fail, at most (default half of them)", FIELD(failures),
     false},
    {"kind", "KIND", "moves, shares, failures, balance or ring (default shares)", FIELD(kind),
     false},
    {"out", "FILE", "what to write: .svg, .png, or .gp for gnuplot's commands", FIELD(out), false},
    {0},
};

#define BACKENDS_HELP                                                                              \
    "--backends takes a number (S0, S1, ... of weight 1), a file with a line a\n"                  \
    "backend (NAME [WEIGHT [ZONE]]), or a configuration that ends in .yaml: one\n"                 \
    "pool of it, with its addresses, weights, zones, seed and table size."

const struct hb_command hb_hash_commands[] = {
    {"hash compare", "", 0, 0,
     "backends pool change keys hashes algorithms hit seed vnodes table-size",
     "what a change of backends moves, by each hashing method",
     BACKENDS_HELP
     "\nKeys are made up unless a file has them. HIT RATIO and MISSES show caches\n"
     "behind the backends: a key that moved is not where it is looked for. SD is the\n"
     "standard deviation of the keys for each backend. Only methods with 0 BETWEEN\n"
     "OLD never move a key from one backend that stays to another.",
     "halbachctl hash compare --backends 4 --change add:1 --keys 10000 --vnodes 100",
     "a fifth backend joins four", hb_ctl_hash_compare},
    {"hash balance", "", 0, 0, "backends pool keys vnodes seed",
     "how evenly a ring spreads keys, by virtual nodes",
     "--vnodes takes a list here (default 1,10,100,1000).\n" BACKENDS_HELP,
     "halbachctl hash balance --vnodes 1,10,100,1000 --backends 10 --keys 100000",
     "how many virtual nodes are enough", hb_ctl_hash_balance},
    {"hash owner", "KEY", 1, 1, "backends pool algorithms seed vnodes table-size",
     "which backend has a key, by each method", BACKENDS_HELP,
     "halbachctl hash owner user:42 --backends 4", "where user:42 lives", hb_ctl_hash_owner},
    {"hash prefer", "KEY", 1, 1, "backends pool count zones algorithms seed vnodes table-size",
     "which backends a key prefers, in order",
     "The first is its owner; the next take over when those before are gone, full,\n"
     "or should have a copy. With --zones as many distinct zones as there are come\n"
     "first.\n" BACKENDS_HELP,
     "halbachctl hash prefer user:42 --count 3 --zones --backends backends.txt",
     "three places for copies of user:42", hb_ctl_hash_prefer},
    {"hash affected", "", 0, 0, "join leave tokens space backends pool vnodes seed",
     "what changes hands on a ring when a backend joins or leaves",
     "An interval (200, 260] has the positions after 200 up to and including 260.\n" BACKENDS_HELP,
     "halbachctl hash affected --join D@260 --tokens A=100,B=200,C=300 --space 360",
     "D takes a part of C's interval", hb_ctl_hash_affected},
    {"hash ring", "", 0, 0, "tokens space positions join leave backends pool vnodes seed",
     "a ring token by token, and who has which position",
     "A position belongs to the first token at or after it, around the end of the\n"
     "ring. Without --tokens the ring has the virtual nodes of --backends (default\n"
     "4, of 8 each).",
     "halbachctl hash ring --tokens A=100,B=200,C=300 --space 360 --positions 150,250,350",
     "a small ring, worked by hand", hb_ctl_hash_ring},
    {"hash plot", "", 0, 0,
     "out kind backends pool change keys algorithms vnodes table-size failures tokens space seed",
     "draw a picture (needs gnuplot)",
     "moves     a few keys one by one, before and after a change\n"
     "shares    keys for each backend, by each method\n"
     "failures  keys that move when so many backends fail, by each method\n"
     "balance   spread of a ring's shares by virtual nodes, beside the theory\n"
     "ring      a ring with its tokens, coloured by owner\n" BACKENDS_HELP,
     "halbachctl hash plot --kind failures --backends 100 --out failures.svg",
     "a picture for a talk", hb_ctl_hash_plot},
    {"hash plan", "", 0, 0, "file old", "what a configuration would change: the same as 'plan'",
     "Of two files with --old; without it, of the running configuration. See\n"
     "'halbachctl help plan'.",
     "halbachctl hash plan -f new.yaml --old /etc/halbach/halbach.yaml",
     "compare two files, wherever they are", hb_ctl_plan},
    {0},
};
