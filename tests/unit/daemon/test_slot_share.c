// SPDX-License-Identifier: Apache-2.0
// Limits of runs, and slots that are reserved for a model.
#include <criterion/criterion.h>

#include "backends/base/clock.h"
#include "daemon/policy/slot_share.h"

#define IDLE_NS (INF_SLOT_SHARE_IDLE_MS * INF_NS_PER_MS)

enum model {
    A = 1,
    B,
    C
};

static void note_model(struct inf_slot_share *share, uint64_t model, uint32_t runs_max,
                       uint32_t reserved, uint64_t now_ns)
{
    const struct inf_slot_limits limits = {.runs_max = runs_max, .reserved = reserved};
    inf_slot_share_note(share, model, &limits, now_ns);
}

Test(slot_share, without_limits_every_slot_is_free_for_all)
{
    struct inf_slot_share share = {.slots = 2};
    note_model(&share, A, 0, 0, 1);
    cr_expect_eq(share.count, 0u);
    for (int i = 0; i < 2; i++) {
        cr_expect(inf_slot_share_may_begin(&share, A, 1));
        inf_slot_share_begin(&share, A);
    }
    cr_expect_not(inf_slot_share_may_begin(&share, A, 1), "there is no third slot");
    inf_slot_share_end(&share, A);
    cr_expect(inf_slot_share_may_begin(&share, B, 1));
}

Test(slot_share, limits_the_runs_of_a_model)
{
    struct inf_slot_share share = {.slots = 4};
    note_model(&share, A, 2, 0, 1);
    inf_slot_share_begin(&share, A);
    cr_expect(inf_slot_share_may_begin(&share, A, 1));
    inf_slot_share_begin(&share, A);
    cr_expect_not(inf_slot_share_may_begin(&share, A, 1));
    cr_expect(inf_slot_share_may_begin(&share, B, 1));
    inf_slot_share_end(&share, A);
    cr_expect(inf_slot_share_may_begin(&share, A, 1));
    // A limit counts however old the last request is, and can be changed.
    inf_slot_share_begin(&share, A);
    cr_expect_not(inf_slot_share_may_begin(&share, A, 2 * IDLE_NS));
    note_model(&share, A, 0, 0, 2);
    cr_expect(inf_slot_share_may_begin(&share, A, 2));
}

Test(slot_share, keeps_reserved_slots_free)
{
    struct inf_slot_share share = {.slots = 4};
    note_model(&share, A, 0, 2, 1);
    // The example of slot_share.c.
    cr_expect(inf_slot_share_may_begin(&share, B, 1));
    inf_slot_share_begin(&share, B);
    cr_expect(inf_slot_share_may_begin(&share, B, 1));
    inf_slot_share_begin(&share, B);
    cr_expect_not(inf_slot_share_may_begin(&share, B, 1));
    cr_expect(inf_slot_share_may_begin(&share, A, 1));
    inf_slot_share_begin(&share, A);
    cr_expect_not(inf_slot_share_may_begin(&share, B, 1));
    inf_slot_share_end(&share, B);
    inf_slot_share_begin(&share, A);
    cr_expect(inf_slot_share_may_begin(&share, B, 1), "A has its two slots");
    inf_slot_share_end(&share, A);
    inf_slot_share_begin(&share, B);
    cr_expect_not(inf_slot_share_may_begin(&share, B, 1));
}

Test(slot_share, counts_the_runs_that_may_start)
{
    struct inf_slot_share share = {.slots = 4};
    note_model(&share, A, 3, 2, 1);
    cr_expect_eq(inf_slot_share_count_startable(&share, A, 1), 3u, "as many as its limit");
    cr_expect_eq(inf_slot_share_count_startable(&share, B, 1), 2u, "A keeps two slots");
    inf_slot_share_begin(&share, A);
    cr_expect_eq(inf_slot_share_count_startable(&share, A, 1), 2u);
    cr_expect_eq(inf_slot_share_count_startable(&share, B, 1), 2u);
    note_model(&share, C, 0, 2, 1);
    cr_expect_eq(inf_slot_share_count_startable(&share, A, 1), 1u, "C keeps two of three slots");
    cr_expect_eq(inf_slot_share_count_startable(&share, B, 1), 0u);
    inf_slot_share_begin(&share, C);
    inf_slot_share_begin(&share, C);
    cr_expect_eq(inf_slot_share_count_startable(&share, A, 1), 1u, "its second reserved slot");
    inf_slot_share_begin(&share, C);
    cr_expect_eq(inf_slot_share_count_startable(&share, A, 1), 0u, "no slot is free");
}

Test(slot_share, leaves_a_slot_for_other_models)
{
    struct inf_slot_share share = {.slots = 2};
    note_model(&share, A, 0, UINT32_MAX, 1);
    note_model(&share, B, 0, UINT32_MAX, 1);
    cr_expect(inf_slot_share_may_begin(&share, C, 1));
    inf_slot_share_begin(&share, C);
    cr_expect_not(inf_slot_share_may_begin(&share, C, 1));
    // A and B reserve more than there is: the first one gets the slot.
    cr_expect(inf_slot_share_may_begin(&share, A, 1));
    inf_slot_share_begin(&share, A);
    cr_expect_not(inf_slot_share_may_begin(&share, B, 1));
    inf_slot_share_end(&share, C);
    cr_expect_not(inf_slot_share_may_begin(&share, C, 1));
    cr_expect(inf_slot_share_may_begin(&share, B, 1));
    // One slot cannot be reserved.
    share = (struct inf_slot_share){.slots = 1};
    note_model(&share, A, 0, 1, 1);
    cr_expect(inf_slot_share_may_begin(&share, B, 1));
}

Test(slot_share, forgets_a_reservation_that_is_not_used)
{
    struct inf_slot_share share = {.slots = 2};
    note_model(&share, A, 0, 1, 5);
    inf_slot_share_begin(&share, B);
    cr_expect_not(inf_slot_share_may_begin(&share, B, 5 + IDLE_NS));
    cr_expect(inf_slot_share_may_begin(&share, B, 6 + IDLE_NS));
    note_model(&share, A, 0, 1, 6 + IDLE_NS);
    cr_expect_not(inf_slot_share_may_begin(&share, B, 6 + IDLE_NS));
}

Test(slot_share, remembers_the_models_that_were_used_last)
{
    struct inf_slot_share share = {.slots = 4};
    for (uint64_t model = 1; model <= INF_SLOT_SHARE_MODELS; model++)
        note_model(&share, model, 1, 0, model);
    // Model 1 runs, so model 2 is the oldest that can be forgotten.
    inf_slot_share_begin(&share, 1);
    note_model(&share, 1000, 1, 0, 1000);
    cr_expect_eq(share.count, INF_SLOT_SHARE_MODELS);
    inf_slot_share_begin(&share, 2);
    inf_slot_share_begin(&share, 3);
    cr_expect_not(inf_slot_share_may_begin(&share, 1, 1000));
    cr_expect(inf_slot_share_may_begin(&share, 2, 1000), "its limit is forgotten");
    cr_expect_not(inf_slot_share_may_begin(&share, 3, 1000));
    cr_expect(inf_slot_share_may_begin(&share, 1000, 1000));
    // A run that began before its model was remembered ends.
    note_model(&share, 2, 1, 0, 1001);
    inf_slot_share_end(&share, 2);
    cr_expect_eq(share.running, 2u);
    cr_expect(inf_slot_share_may_begin(&share, 2, 1001));
    // If all of them run, a further model is not remembered.
    share = (struct inf_slot_share){.slots = INF_SLOT_SHARE_MODELS + 1};
    for (uint64_t model = 1; model <= INF_SLOT_SHARE_MODELS; model++) {
        note_model(&share, model, 1, 0, model);
        inf_slot_share_begin(&share, model);
    }
    note_model(&share, 1000, 1, 0, 1000);
    cr_expect_eq(share.count, INF_SLOT_SHARE_MODELS);
    cr_expect(inf_slot_share_may_begin(&share, 1000, 1000));
}
