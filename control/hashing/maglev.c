/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * maglev.c: Maglev hashing with weights.
 *
 * The paper (NSDI 2016, section 3.4). Every backend has its own order of preference over all M
 * slots, offset, offset + skip, offset + 2 * skip, ... modulo M; M is prime, so each slot comes
 * exactly once. Backends take turns; in its turn a backend takes the first slot of its order that
 * is still free. When one backend goes, the others' turns and orders stay, so they mostly take the
 * slots that they had.
 *
 * Weights. The paper gives every backend one turn a round. Here the n-th turn (n from 0) of a
 * backend of weight w is due at time n / w; turns are taken by due time, at equal times the heavier
 * backend first, then by identity. So the order of two backends' turns depends on nothing but these
 * two backends, which keeps changes small, and with equal weights the turns are the paper's rounds.
 *
 * How many turns. A backend of weight w gets M * w / sum of weights slots, rounded to one of the
 * two whole numbers beside it (largest remainders first; at equal remainders the heavier one, then
 * by identity). A backend whose part is below one slot gets one slot all the same, before the rest
 * is divided: being in the pool must mean getting traffic. So shares are exact to one slot.
 *
 * All of that is the same for backends of equal weight, so they are handled as one tier: a tier's
 * turn is one turn for each of its members. Whose turn it is: maglev_turns.h.
 *
 * Cost. A search in a table with f free slots looks at about M / f of them, M * ln(M) in all. Half
 * of these looks are for the last sqrt(M) slots. There the question is turned round: for each free
 * slot, how many steps away is it in the backend's order? The nearest is the one that the search
 * would have found, and f multiplications find it.
 *
 * Measured on one core (tests/bench/bench_tables.c): 0.95 ms for 1,000 backends and 65,537 slots,
 * 12.5 ms for 10,000 and 655,373; with all weights different 1.6 and 23 ms.
 */
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "halbach/generation.h"
#include "hashing/maglev.h"
#include "hashing/maglev_turns.h"
#include "hashing/slot_key.h"
#include "hashing/sort_keys.h"

/* Sets the second hash of an identity apart from the first. */
#define SKIP_SEED UINT64_C(0x9e3779b97f4a7c15)

/* A member on its way through its permutation. */
struct cursor {
    uint32_t slot; /* the next one to look at */
    uint32_t skip;
    uint32_t inverse; /* of skip, modulo the size; 0: not needed yet */
    uint16_t id;
};

/* The members of one weight. */
struct tier {
    uint32_t weight;
    uint32_t first; /* cursor of its first member; the others follow */
    uint32_t count;
    uint32_t quota; /* turns of each member */
    uint32_t extra; /* members, the first ones, that have one turn more */
    uint32_t taken; /* turns so far */
    uint64_t remainder;
};

struct filling {
    uint32_t slots;
    uint64_t reciprocal; /* 2^64 / slots, rounded down */
    uint32_t free;
    uint32_t few; /* so many free slots or fewer are searched as a list */
    uint16_t *owner;
    uint64_t *used;      /* one bit a slot: small enough for the first cache level */
    uint32_t *free_list; /* the free slots, in any order, once they are few */
    struct cursor *cursors;
    struct tier *tiers; /* by weight, heaviest first */
    uint32_t tiers_count;
};

void hb_maglev_permutation(const char *identity, uint32_t slots, uint64_t seed,
                           struct hb_maglev_member *member)
{
    size_t length = strlen(identity);

    member->offset = XXH3_64bits_withSeed(identity, length, seed) % slots;
    member->skip = XXH3_64bits_withSeed(identity, length, seed ^ SKIP_SEED) % (slots - 1) + 1;
}

static unsigned is_used(const struct filling *f, uint32_t slot)
{
    return f->used[slot / 64] >> (slot % 64) & 1;
}

static uint32_t add(uint32_t a, uint32_t b, uint32_t slots)
{
    uint32_t sum = a + b; /* slots are below 2^23 */

    return sum >= slots ? sum - slots : sum;
}

/* One turn, in a table with many free slots. Returns false when the permutation comes round without
 * a free slot, which a prime size rules out.
 *
 * One look after the other on purpose: looking at several slots at once, without a branch for each,
 * was tried and is slower, for the branch that is mispredicted at the end of a search is what lets
 * the processor begin the next one before this one has ended. */
static bool take_by_steps(struct filling *f, struct cursor *cursor)
{
    uint32_t slot = cursor->slot;

    for (uint32_t steps = 0; steps < f->slots; steps++) {
        uint32_t here = slot;

        slot = add(slot, cursor->skip, f->slots);
        if (!is_used(f, here)) {
            f->used[here / 64] |= UINT64_C(1) << (here % 64);
            f->owner[here] = cursor->id;
            f->free--;
            cursor->slot = slot;
            return true;
        }
    }
    return false;
}

/* a * b modulo the size, without a division. Both are below the size, so the product has 46 bits.
 */
static uint32_t multiply(const struct filling *f, uint32_t a, uint32_t b)
{
    uint64_t product = (uint64_t)a * b;
    uint64_t quotient = (uint64_t)(((__uint128_t)product * f->reciprocal) >> 64);
    uint32_t rest = (uint32_t)(product - quotient * f->slots);

    return rest >= f->slots ? rest - f->slots : rest; /* the quotient is right or one too small */
}

/* The number whose product with `skip` is 1 modulo the size (Euclid's algorithm); 0 when there is
 * none, which a prime size rules out. */
static uint32_t invert(uint32_t skip, uint32_t slots)
{
    int32_t above = (int32_t)slots, below = (int32_t)skip; /* below 2^23, as the factors are */
    int32_t factor_above = 0, factor_below = 1;

    while (below != 0) {
        int32_t quotient = above / below, next;

        next = above - quotient * below;
        above = below;
        below = next;
        next = factor_above - quotient * factor_below;
        factor_above = factor_below;
        factor_below = next;
    }
    if (above != 1)
        return 0;
    return (uint32_t)(factor_above < 0 ? factor_above + (int32_t)slots : factor_above);
}

static void list_free_slots(struct filling *f)
{
    uint32_t listed = 0;

    for (uint32_t slot = 0; slot < f->slots && listed < f->free; slot++) {
        if (!is_used(f, slot))
            f->free_list[listed++] = slot;
    }
}

/* One turn, when few slots are free: the one that the fewest steps lead to. */
static bool take_from_list(struct filling *f, struct cursor *cursor)
{
    uint32_t best = 0, fewest = UINT32_MAX, slot;

    if (cursor->inverse == 0)
        cursor->inverse = invert(cursor->skip, f->slots);
    if (cursor->inverse == 0)
        return false;
    for (uint32_t i = 0; i < f->free; i++) {
        uint32_t distance = f->free_list[i] - cursor->slot;
        uint32_t steps;

        distance += f->free_list[i] < cursor->slot ? f->slots : 0;
        steps = multiply(f, distance, cursor->inverse);
        if (steps < fewest) {
            fewest = steps;
            best = i;
        }
    }
    slot = f->free_list[best];
    f->free_list[best] = f->free_list[--f->free];
    f->owner[slot] = cursor->id;
    cursor->slot = add(slot, cursor->skip, f->slots);
    return true;
}

static bool take_slot(struct filling *f, struct cursor *cursor)
{
    if (f->free > f->few) {
        bool taken = take_by_steps(f, cursor);

        if (taken && f->free == f->few)
            list_free_slots(f);
        return taken;
    }
    return take_from_list(f, cursor);
}

/* A tier's turn: one for each of its members, in its last turn only for those that have one more.
 */
static bool take_turn(struct filling *f, struct tier *tier)
{
    uint32_t members = tier->taken++ < tier->quota ? tier->count : tier->extra;

    for (uint32_t i = 0; i < members; i++) {
        if (!take_slot(f, &f->cursors[tier->first + i]))
            return false;
    }
    return true;
}

static uint32_t count_turns(const struct tier *tier)
{
    return tier->quota + (tier->extra > 0);
}

/* Takes turns until every slot has an owner. */
static enum hb_table_error take_turns(struct filling *f)
{
    enum hb_table_error error = HB_TABLE_OK;
    const uint64_t *turns_due;
    struct hb_turns *turns;
    uint64_t all = 0;
    uint32_t count;

    for (uint32_t i = 0; i < f->tiers_count; i++)
        all += count_turns(&f->tiers[i]);
    turns = hb_turns_make(f->tiers_count, all);
    if (turns == NULL)
        return HB_TABLE_NO_MEMORY;
    for (uint32_t i = 0; i < f->tiers_count; i++)
        hb_turns_add(turns, f->tiers[i].weight, count_turns(&f->tiers[i]));
    while (error == HB_TABLE_OK && (count = hb_turns_next(turns, &turns_due)) > 0) {
        for (uint32_t i = 0; i < count; i++) {
            if (!take_turn(f, &f->tiers[hb_turn_tier(turns_due[i])])) {
                error = HB_TABLE_SIZE_NOT_PRIME;
                break;
            }
        }
    }
    hb_turns_free(turns);
    return error;
}

/* Gives the slots that rounding down left over to the first `shared` tiers, largest remainders
 * first; at equal remainders the heavier tier, which has the lower number. */
static void give_rest(struct filling *f, uint32_t shared, uint64_t left, struct hb_key *keys)
{
    for (uint32_t i = 0; i < shared; i++)
        keys[i] = (struct hb_key){~f->tiers[i].remainder, i};
    hb_sort_keys(keys, keys + shared, shared);
    for (uint32_t i = 0; i < shared && left > 0; i++) {
        struct tier *tier = &f->tiers[keys[i].index];

        tier->extra = left < tier->count ? (uint32_t)left : tier->count;
        left -= tier->extra;
    }
}

/* Divides the slots among the tiers; see "how many turns" above. */
static void set_quotas(struct filling *f, struct hb_key *keys)
{
    uint64_t slots = f->slots, weights = 0, left;
    uint32_t shared = f->tiers_count;

    for (uint32_t i = 0; i < f->tiers_count; i++)
        weights += (uint64_t)f->tiers[i].weight * f->tiers[i].count;
    /* From the lightest up. Taking out a backend whose part is below one slot makes the part of
     * each one left smaller, never larger, so one pass finds them all. */
    while (slots * f->tiers[shared - 1].weight < weights) {
        struct tier *light = &f->tiers[--shared];

        light->quota = 1;
        slots -= light->count;
        weights -= (uint64_t)light->weight * light->count;
    }
    left = slots;
    for (uint32_t i = 0; i < shared; i++) {
        struct tier *tier = &f->tiers[i];

        tier->quota = (uint32_t)(slots * tier->weight / weights);
        tier->remainder = slots * tier->weight % weights;
        left -= (uint64_t)tier->quota * tier->count;
    }
    give_rest(f, shared, left, keys);
}

/* Puts members of one weight side by side, heaviest first, otherwise in the order given. */
static void set_tiers(struct filling *f, const struct hb_maglev_member *members, uint32_t count,
                      struct hb_key *keys)
{
    for (uint32_t i = 0; i < count; i++)
        keys[i] = (struct hb_key){UINT32_MAX - members[i].weight, i};
    hb_sort_keys(keys, keys + count, count);
    for (uint32_t i = 0; i < count; i++) {
        const struct hb_maglev_member *member = &members[keys[i].index];

        f->cursors[i] =
            (struct cursor){.slot = member->offset, .skip = member->skip, .id = member->id};
        if (i == 0 || f->tiers[f->tiers_count - 1].weight != member->weight)
            f->tiers[f->tiers_count++] = (struct tier){.weight = member->weight, .first = i};
        f->tiers[f->tiers_count - 1].count++;
    }
}

/* The whole part of the square root. */
static uint32_t root_of(uint32_t n)
{
    uint32_t root = 1;

    while ((root + 1) * (root + 1) <= n)
        root++;
    return root;
}

enum hb_table_error hb_maglev_fill(const struct hb_maglev_member *members, uint32_t count,
                                   uint32_t slots, uint16_t *owner)
{
    struct filling f = {.slots = slots, .free = slots, .few = root_of(slots) / 2, .owner = owner};
    enum hb_table_error error = HB_TABLE_NO_MEMORY;
    struct hb_key *keys;

    if (count == 0)
        return HB_TABLE_NO_MEMBERS;
    if (slots > HB_TABLE_SLOTS_MAX)
        return HB_TABLE_SIZE_NOT_PRIME;
    if (slots < count)
        return HB_TABLE_SIZE_TOO_SMALL;
    f.reciprocal = UINT64_MAX / slots; /* a prime does not divide 2^64 */
    f.free_list = calloc(f.few, sizeof(*f.free_list));
    f.used = calloc((slots + 63) / 64, sizeof(*f.used));
    f.cursors = calloc(count, sizeof(*f.cursors));
    f.tiers = calloc(count, sizeof(*f.tiers));
    keys = calloc(2 * (size_t)count, sizeof(*keys));
    if (f.free_list != NULL && f.used != NULL && f.cursors != NULL && f.tiers != NULL &&
        keys != NULL) {
        set_tiers(&f, members, count, keys);
        set_quotas(&f, keys);
        error = take_turns(&f);
    }
    free(keys);
    free(f.tiers);
    free(f.cursors);
    free(f.used);
    free(f.free_list);
    return error;
}

/* Writes the members that have a weight, in canonical order, and returns how many. */
static uint32_t make_permutations(const struct hb_table_member *members, uint32_t count,
                                  const uint32_t *order, uint32_t slots, uint64_t seed,
                                  struct hb_maglev_member *made)
{
    uint32_t weighted = 0;

    for (uint32_t i = 0; i < count; i++) {
        const struct hb_table_member *member = &members[order[i]];

        if (member->weight == 0)
            continue;
        hb_maglev_permutation(member->identity, slots, seed, &made[weighted]);
        made[weighted].weight = member->weight;
        made[weighted].id = member->id;
        weighted++;
    }
    return weighted;
}

static enum hb_table_error build(const struct hb_table_request *request, uint16_t *owner)
{
    const struct hb_table_member *members = request->members;
    uint32_t count = request->count, slots = request->slots;
    uint32_t *order = calloc(count + 1, sizeof(*order));
    struct hb_maglev_member *made = calloc(count + 1, sizeof(*made));
    enum hb_table_error error = HB_TABLE_NO_MEMORY;

    if (order == NULL || made == NULL)
        goto free_both;
    error = hb_check_request(request, order);
    if (error != HB_TABLE_OK)
        goto free_both;
    count = make_permutations(members, count, order, slots, request->seed, made);
    error = hb_maglev_fill(made, count, slots, owner);
free_both:
    free(made);
    free(order);
    return error;
}

const struct hb_table_builder hb_maglev = {
    .name = "maglev", .algorithm = HB_ALGORITHM_MAGLEV, .build = build};
