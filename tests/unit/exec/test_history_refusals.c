// SPDX-License-Identifier: Apache-2.0
// Tests of the refusals of shapes for which a model could not be built with a history in place.
#include <criterion/criterion.h>

#include "backends/exec/model/history_refusals.h"
#include "proto/core/span.h"

// Notes that the graph is not possible with `room` rows.
static void note_refusal(struct inf_history_refusals *refusals, uint64_t shapes, uint32_t room)
{
    const struct inf_history_buffers buffers = {room, 1};
    inf_history_refusals_note(refusals, shapes, buffers, INF_UNSUPPORTED, 0);
}

// Notes that there was no memory for steps of two sessions.
static void note_lack(struct inf_history_refusals *refusals, uint64_t shapes, uint32_t room,
                      uint64_t now_ns)
{
    const struct inf_history_buffers buffers = {room, 2};
    inf_history_refusals_note(refusals, shapes, buffers, INF_EXHAUSTED, now_ns);
}

// Notes that steps of two sessions were compiled.
static void note_success(struct inf_history_refusals *refusals, uint64_t shapes, uint32_t room)
{
    const struct inf_history_buffers buffers = {room, 2};
    inf_history_refusals_note(refusals, shapes, buffers, INF_OK, 0);
}

Test(history_refusals, are_those_of_shapes_and_of_as_many_rows)
{
    struct inf_history_refusals refusals;
    inf_history_refusals_init(&refusals);
    cr_expect_not(inf_history_refusals_have(&refusals, 7, UINT32_MAX, 0));
    note_refusal(&refusals, 7, 512);
    cr_expect_not(inf_history_refusals_have(&refusals, 7, 511, 0));
    cr_expect(inf_history_refusals_have(&refusals, 7, 512, 0));
    cr_expect_not(inf_history_refusals_have(&refusals, 8, 512, 0));
    note_refusal(&refusals, 7, 256);
    note_refusal(&refusals, 7, 1024);
    cr_expect(inf_history_refusals_have(&refusals, 7, 256, 0));
    // The oldest entry is replaced first.
    for (uint64_t shapes = 100; shapes < 100 + INF_HISTORY_REFUSALS_MAX; shapes++) {
        cr_expect(inf_history_refusals_have(&refusals, 7, 256, 0), "before %d", (int)shapes);
        note_refusal(&refusals, shapes, 256);
    }
    cr_expect_not(inf_history_refusals_have(&refusals, 7, 256, 0));
    cr_expect(inf_history_refusals_have(&refusals, 100, 256, 0));
    const struct inf_shape shapes[] = {INF_SHAPE(1, 2), INF_SHAPE(3)};
    const struct inf_shape others[] = {INF_SHAPE(1), INF_SHAPE(2, 3)};
    cr_expect_eq(inf_history_refusals_hash(shapes, 2, 1), inf_history_refusals_hash(shapes, 2, 1));
    cr_expect_neq(inf_history_refusals_hash(shapes, 2, 1), inf_history_refusals_hash(others, 2, 1));
    cr_expect_neq(inf_history_refusals_hash(shapes, 2, 1), inf_history_refusals_hash(shapes, 2, 4));
    inf_history_refusals_fini(&refusals);
}

// Shapes that lack memory are refused for a time, which doubles until a compilation succeeds.
Test(history_refusals, for_lack_of_memory_expire)
{
    struct inf_history_refusals refusals;
    inf_history_refusals_init(&refusals);
    uint64_t now_ns = 5000;
    for (uint32_t i = 0; i < INF_HISTORY_RETRY_DOUBLINGS + 2; i++) {
        note_lack(&refusals, 7, 512, now_ns);
        uint64_t holds_ns = INF_HISTORY_RETRY_NS << INF_MIN(i, INF_HISTORY_RETRY_DOUBLINGS);
        cr_expect(inf_history_refusals_have(&refusals, 7, 512, now_ns + holds_ns - 1));
        cr_expect_not(inf_history_refusals_have(&refusals, 7, 511, now_ns));
        now_ns += holds_ns;
        cr_expect_not(inf_history_refusals_have(&refusals, 7, 1024, now_ns), "refusal %u", i);
    }
    // A success ends a temporary refusal of as many rows of the same model, and no other one. A
    // refusal for which no memory is lacking does not expire.
    note_refusal(&refusals, 7, 2048);
    note_lack(&refusals, 7, 512, now_ns);
    note_success(&refusals, 7, 511);
    cr_expect(inf_history_refusals_have(&refusals, 7, 512, now_ns));
    note_success(&refusals, 8, 512);
    cr_expect(inf_history_refusals_have(&refusals, 7, 512, now_ns));
    note_success(&refusals, 7, 512);
    cr_expect_not(inf_history_refusals_have(&refusals, 7, 512, now_ns));
    cr_expect(inf_history_refusals_have(&refusals, 7, 2048, UINT64_MAX - 1));
    // The next refusal holds as long as the first one.
    note_lack(&refusals, 7, 512, now_ns);
    cr_expect_not(inf_history_refusals_have(&refusals, 7, 512, now_ns + INF_HISTORY_RETRY_NS));
    inf_history_refusals_fini(&refusals);
}

// Returns true if a compilation for `sessions` sessions that ends with `code` makes a refusal that
// does not expire.
static bool makes_refusal(uint32_t sessions, enum inf_code code)
{
    struct inf_history_refusals refusals;
    inf_history_refusals_init(&refusals);
    const struct inf_history_buffers buffers = {512, sessions};
    inf_history_refusals_note(&refusals, 7, buffers, code, 0);
    bool have = inf_history_refusals_have(&refusals, 7, 512, UINT64_MAX - 1);
    inf_history_refusals_fini(&refusals);
    return have;
}

Test(history_refusals, are_made_by_errors_that_stay)
{
    for (uint32_t sessions = 1; sessions <= 2; sessions++) {
        cr_expect(makes_refusal(sessions, INF_UNSUPPORTED));
        cr_expect(makes_refusal(sessions, INF_INVALID));
        cr_expect_not(makes_refusal(sessions, INF_OK));
        cr_expect_not(makes_refusal(sessions, INF_CANCELLED));
        cr_expect_not(makes_refusal(sessions, INF_EXHAUSTED));
    }
    cr_expect_not(makes_refusal(1, INF_RANGE));
    cr_expect(makes_refusal(2, INF_RANGE));
    cr_expect_not(makes_refusal(1, INF_INTERNAL));
    cr_expect(makes_refusal(2, INF_INTERNAL));
}
