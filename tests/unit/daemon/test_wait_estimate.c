// SPDX-License-Identifier: Apache-2.0
// How long jobs wait for slots that limits and reservations divide. All times are in nanoseconds
// from 0, and the expected values are computed by hand from the rules of wait_estimate.c.
#include <criterion/criterion.h>

#include "backends/base/clock.h"
#include "daemon/policy/wait_estimate.h"

#define NOW 1000u

enum model {
    A = 1,
    B,
    C
};

static void set_limits(struct inf_slot_share *share, uint64_t model, uint32_t runs_max,
                       uint32_t reserved)
{
    const struct inf_slot_limits limits = {.runs_max = runs_max, .reserved = reserved};
    inf_slot_share_note(share, model, &limits, NOW);
}

// Starts a run of one job that is expected to take `left_ns` from NOW.
static void start_run(struct inf_slot_share *share, uint64_t model, uint64_t left_ns)
{
    inf_slot_share_begin(share, model);
    inf_slot_share_begin_job(share, model, NOW + left_ns);
}

static uint64_t predict_wait(const struct inf_slot_share *share, uint64_t model, uint32_t queued,
                             uint64_t waiting_ns, uint64_t running_ns)
{
    const struct inf_wait_work work = {.queued = queued,
                                       .ahead_ns = waiting_ns,
                                       .waiting_ns = waiting_ns,
                                       .running_ns = running_ns};
    return inf_wait_estimate_start_ns(share, model, &work, NOW);
}

Test(wait_estimate, divides_the_work_by_the_slots_without_limits)
{
    struct inf_slot_share share = {.slots = 2};
    cr_expect_eq(predict_wait(&share, A, 1, 70, 0), 0u, "two slots are free, and one job waits");
    cr_expect_eq(predict_wait(&share, A, 2, 140, 0), 70u);
    start_run(&share, B, 30);
    cr_expect_eq(predict_wait(&share, A, 0, 0, 30), 0u, "one slot is free");
    cr_expect_eq(predict_wait(&share, A, 1, 70, 30), 50u);
    start_run(&share, B, 10);
    cr_expect_eq(predict_wait(&share, A, 0, 0, 40), 20u);
}

Test(wait_estimate, a_batch_is_one_run)
{
    struct inf_slot_share share = {.slots = 2};
    inf_slot_share_begin(&share, B);
    for (int i = 0; i < 4; i++)
        inf_slot_share_begin_job(&share, B, NOW + 25);
    cr_expect(inf_wait_estimate_starts_at_once(&share, A, 0, NOW), "the other slot is free");
    cr_expect_not(inf_wait_estimate_starts_at_once(&share, A, 1, NOW));
}

// The example of wait_estimate.c: A may have one run, of which 100 ns are left, and nine jobs of
// 100 ns wait; B runs for another 20 ns.
Test(wait_estimate, a_limit_of_runs_delays_its_own_model_only)
{
    struct inf_slot_share share = {.slots = 2};
    set_limits(&share, A, 1, 0);
    start_run(&share, A, 100);
    for (int i = 0; i < 9; i++)
        inf_slot_share_add_waiting(&share, A, 100);
    cr_expect(inf_wait_estimate_starts_at_once(&share, B, 9, NOW), "jobs of A may not start");
    cr_expect_eq(predict_wait(&share, B, 9, 900, 100), 0u);
    start_run(&share, B, 20);
    cr_expect_eq(predict_wait(&share, B, 9, 900, 120), 20u);
    cr_expect_eq(predict_wait(&share, A, 9, 900, 120), 1000u);
    const struct inf_wait_work work = {.queued = 9, .waiting_ns = 900, .running_ns = 120};
    cr_expect_eq(inf_wait_estimate_drain_ns(&share, &work, NOW), 1000u, "A takes longest");
    // Jobs of A that are less urgent than the new one do not go first.
    const struct inf_wait_work urgent = {
        .queued = 9, .ahead_ns = 0, .waiting_ns = 900, .running_ns = 120};
    cr_expect_eq(inf_wait_estimate_start_ns(&share, A, &urgent, NOW), 100u);
}

Test(wait_estimate, work_of_a_limited_model_is_left_out_only_if_its_limit_delays_it)
{
    struct inf_slot_share share = {.slots = 2};
    set_limits(&share, A, 1, 0);
    start_run(&share, A, 10);
    start_run(&share, B, 90);
    inf_slot_share_add_waiting(&share, A, 20);
    // All work takes 60 ns on two slots, and that of A 30 ns on one.
    cr_expect_eq(predict_wait(&share, B, 1, 20, 100), 60u);
    // The waiting jobs of other users are not ahead of the first job of a user.
    const struct inf_wait_work first = {
        .queued = 1, .ahead_ns = 0, .waiting_ns = 20, .running_ns = 100};
    cr_expect_eq(inf_wait_estimate_start_ns(&share, B, &first, NOW), 50u);
    // With ten times as much work, A is delayed by its limit. 80 ns of B are ahead.
    inf_slot_share_add_waiting(&share, A, 300);
    const struct inf_wait_work heavy = {
        .queued = 3, .ahead_ns = 160, .waiting_ns = 400, .running_ns = 100};
    cr_expect_eq(inf_wait_estimate_start_ns(&share, B, &heavy, NOW), 170u,
                 "80 ns wait and 90 ns run on one slot");
}

Test(wait_estimate, a_reservation_serves_its_model_at_once)
{
    struct inf_slot_share share = {.slots = 3};
    set_limits(&share, A, 0, 1);
    start_run(&share, B, 50);
    start_run(&share, B, 70);
    for (int i = 0; i < 4; i++)
        cr_expect(inf_wait_estimate_starts_at_once(&share, A, (uint32_t)i, NOW),
                  "%d jobs of B wait, which leave the slot of A free", i);
    // Two slots serve B: (200 + 120) / 2.
    cr_expect_eq(predict_wait(&share, B, 2, 200, 120), 160u);
    start_run(&share, A, 40);
    // A stays within its reservation, so B still has two slots.
    cr_expect_eq(predict_wait(&share, B, 2, 200, 160), 160u);
    // A waits for its own run at most.
    cr_expect_eq(predict_wait(&share, A, 2, 200, 160), 40u);
    inf_slot_share_add_waiting(&share, A, 30);
    cr_expect_eq(predict_wait(&share, A, 3, 230, 160), 70u);
    // After a minute without a request, the reservation has ended: (200 + 120) / 3.
    inf_slot_share_remove_waiting(&share, A, 30);
    inf_slot_share_end_job(&share, A, NOW + 40);
    inf_slot_share_end(&share, A);
    start_run(&share, C, 0);
    const uint64_t later_ns = NOW + INF_SLOT_SHARE_IDLE_MS * INF_NS_PER_MS + 1;
    const struct inf_wait_work work = {
        .queued = 2, .ahead_ns = 200, .waiting_ns = 200, .running_ns = 120};
    cr_expect_eq(inf_wait_estimate_start_ns(&share, B, &work, later_ns), 106u);
}

Test(wait_estimate, a_busy_reserved_model_shares_all_slots)
{
    struct inf_slot_share share = {.slots = 2};
    set_limits(&share, A, 0, 1);
    start_run(&share, A, 100);
    start_run(&share, A, 100);
    for (int i = 0; i < 4; i++)
        inf_slot_share_add_waiting(&share, A, 100);
    // A needs 600 ns on its one slot, and all work takes 350 ns on both.
    cr_expect_eq(predict_wait(&share, B, 5, 500, 200), 350u);
    cr_expect_eq(predict_wait(&share, A, 5, 500, 200), 350u, "A may have both slots");
}

Test(wait_estimate, one_slot_always_serves_the_other_models)
{
    struct inf_slot_share share = {.slots = 2};
    for (uint64_t model = A; model <= B; model++) {
        set_limits(&share, model, 1, 0);
        start_run(&share, model, 100);
        for (int i = 0; i < 9; i++)
            inf_slot_share_add_waiting(&share, model, 100);
    }
    // Both models have work for 1000 ns on one slot each, and 40 ns of C are ahead. The slot
    // and the work of one of the two models are left out, but not those of both.
    const struct inf_wait_work work = {
        .queued = 19, .ahead_ns = 40, .waiting_ns = 1840, .running_ns = 200};
    cr_expect_eq(inf_wait_estimate_start_ns(&share, C, &work, NOW), 140u);
}

Test(wait_estimate, ends_at_zero_for_jobs_that_were_not_counted)
{
    struct inf_slot_share share = {.slots = 2};
    inf_slot_share_add_waiting(&share, A, 10);
    inf_slot_share_begin_job(&share, A, NOW + 10);
    set_limits(&share, A, 1, 0);
    inf_slot_share_remove_waiting(&share, A, 10);
    inf_slot_share_end_job(&share, A, NOW + 10);
    cr_expect_eq(share.models[0].jobs.waiting, 0u);
    cr_expect_eq(share.models[0].jobs.waiting_ns, 0u);
    cr_expect_eq(share.models[0].jobs.running, 0u);
    cr_expect_eq(share.models[0].jobs.ends_sum_ns, 0u);
    inf_slot_share_add_waiting(&share, A, 10);
    inf_slot_share_remove_waiting(&share, A, 20);
    cr_expect_eq(share.models[0].jobs.waiting_ns, 0u);
}

Test(wait_estimate, a_model_whose_jobs_wait_is_not_forgotten)
{
    struct inf_slot_share share = {.slots = 1};
    for (uint64_t model = 1; model <= INF_SLOT_SHARE_MODELS; model++)
        set_limits(&share, model, 1, 0);
    inf_slot_share_add_waiting(&share, 1, 10);
    inf_slot_share_begin_job(&share, 2, NOW + 10);
    set_limits(&share, INF_SLOT_SHARE_MODELS + 1, 1, 0);
    cr_expect_eq(share.models[0].model, 1u);
    cr_expect_eq(share.models[1].model, 2u);
    cr_expect_eq(share.models[2].model, INF_SLOT_SHARE_MODELS + 1u);
}
