// SPDX-License-Identifier: Apache-2.0
// Tests of the timeline: a ring of entries for one reader at a time.
#include <criterion/criterion.h>
#include <string.h>

#include "daemon/observe/timeline.h"

#define SECOND ((uint64_t)1000000000)

Test(timeline, records_for_one_reader_until_its_time_is_up)
{
    struct inf_timeline timeline = {.reader = 0};
    struct inf_error err = {0};
    const struct inf_timeline_entry entry = {.begin_ns = 5, .end_ns = 6};
    inf_role_enter_loop();
    cr_expect(!inf_timeline_is_on(&timeline));
    inf_timeline_add(&timeline, &entry, SECOND);
    cr_expect_null(inf_timeline_take(&timeline), "nothing is recorded without a reader");
    cr_assert_eq(inf_timeline_start(&timeline, 7, 10 * SECOND, &err), INF_OK);
    cr_expect(inf_timeline_is_on(&timeline));
    cr_expect_eq(inf_timeline_start(&timeline, 8, 11 * SECOND, &err), INF_EXISTS);
    cr_expect_not_null(strstr(err.text, "client 7"), "%s", err.text);
    inf_timeline_add(&timeline, &entry, 12 * SECOND - 1);
    const struct inf_timeline_entry *found = inf_timeline_take(&timeline);
    cr_assert_not_null(found);
    cr_expect_eq(found->end_ns, 6u);
    cr_expect_null(inf_timeline_take(&timeline));
    // The reader has not called inf_timeline_start() for two seconds, so the recording ends and the
    // memory of its entries is freed.
    inf_timeline_add(&timeline, &entry, 12 * SECOND);
    cr_expect(!inf_timeline_is_on(&timeline));
    cr_expect_null(timeline.entries);
    // Two seconds after reader 7 has started a recording, reader 8 may start one, which is empty.
    cr_assert_eq(inf_timeline_start(&timeline, 7, 20 * SECOND, &err), INF_OK);
    inf_timeline_add(&timeline, &entry, 21 * SECOND);
    cr_expect_eq(inf_timeline_start(&timeline, 8, 22 * SECOND - 1, &err), INF_EXISTS);
    cr_assert_eq(inf_timeline_start(&timeline, 8, 22 * SECOND, &err), INF_OK);
    cr_expect_null(inf_timeline_take(&timeline), "a reader gets no entries of another one");
    inf_timeline_stop(&timeline);
    cr_expect_null(timeline.entries);
    inf_role_leave();
}

Test(timeline, counts_what_finds_no_room)
{
    struct inf_timeline timeline = {.reader = 0};
    struct inf_error err = {0};
    inf_role_enter_loop();
    cr_assert_eq(inf_timeline_start(&timeline, 7, SECOND, &err), INF_OK);
    for (uint64_t i = 0; i < INF_TIMELINE_ENTRIES + 5; i++)
        inf_timeline_add(&timeline, &(struct inf_timeline_entry){.begin_ns = i}, SECOND);
    cr_expect_eq(timeline.lost, 5u);
    for (uint64_t i = 0; i < 3; i++)
        cr_expect_eq(inf_timeline_take(&timeline)->begin_ns, i);
    // The ring accepts entries again when there is room.
    cr_assert_eq(inf_timeline_start(&timeline, 7, 2 * SECOND, &err), INF_OK);
    inf_timeline_add(&timeline, &(struct inf_timeline_entry){.begin_ns = 77}, 2 * SECOND);
    const struct inf_timeline_entry *last = NULL;
    uint64_t count = 0;
    for (const struct inf_timeline_entry *entry; (entry = inf_timeline_take(&timeline)) != NULL;
         count++)
        last = entry;
    cr_expect_eq(count, INF_TIMELINE_ENTRIES - 3 + 1);
    cr_assert_not_null(last);
    cr_expect_eq(last->begin_ns, 77u);
    inf_timeline_stop(&timeline);
    inf_role_leave();
}
