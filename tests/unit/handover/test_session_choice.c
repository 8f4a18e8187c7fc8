// SPDX-License-Identifier: Apache-2.0
// Which sessions a restart keeps if not all of them fit.
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/resource/session_choice.h"
#include "daemon/resource/session_image.h"

#define USERS 3

static struct inf_counters counters;
static struct inf_quota *quota;
static struct inf_quota_user *users[USERS];
static struct inf_session_table tables[USERS];

static void start_test(void)
{
    uint64_t most[INF_QUOTA_KIND_COUNT];
    memset(most, 255, sizeof most);
    inf_role_enter_loop();
    cr_assert_eq(inf_quota_create(&quota, most, NULL), INF_OK);
    for (uid_t i = 0; i < USERS; i++) {
        users[i] = inf_quota_open(quota, i);
        cr_assert_not_null(users[i]);
        inf_session_table_init(&tables[i], &counters, users[i]);
    }
}

static void end_test(void)
{
    inf_role_enter_loop();
    for (int i = 0; i < USERS; i++) {
        inf_session_table_fini(&tables[i]);
        inf_quota_unref(&users[i]);
    }
    inf_quota_destroy(&quota);
}

TestSuite(session_choice, .init = start_test, .fini = end_test);

// Opens a session with one tensor of `bytes` bytes, and returns it.
static struct inf_session *open_session(struct inf_session_table *table, uint64_t id,
                                        int64_t bytes) INF_ON_LOOP
{
    static struct inf_session_message message;
    struct inf_session *session = NULL;
    uint32_t index;
    void *data = calloc(1, (size_t)bytes);
    message.session_id = id;
    cr_assert_eq(inf_session_open(table, &message, NULL), INF_OK);
    cr_assert_eq(inf_session_find(table, id, &session, NULL), INF_OK);
    cr_assert_eq(inf_session_obtain_tensor(session, "h", &index, NULL), INF_OK);
    cr_assert_eq(inf_session_set_tensor(session, index, INF_DTYPE_U8, &INF_SHAPE(bytes), data,
                                        (size_t)bytes, NULL),
                 INF_OK);
    free(data);
    return session;
}

// The bytes of an image beside those of the tensor.
static uint64_t count_overhead(void) INF_ON_LOOP
{
    const struct inf_session *session = open_session(&tables[0], 999, 8);
    uint64_t bytes = inf_session_image_bytes(session) - 8;
    cr_assert_eq(inf_session_close(&tables[0], 999, NULL), INF_OK);
    return bytes;
}

static struct inf_session_choice_result decide_all(uint64_t bytes_max,
                                                   uint64_t table_bytes_max) INF_ON_LOOP
{
    struct inf_session_choice choice = {0};
    for (int i = 0; i < USERS; i++)
        cr_assert(inf_session_choice_add(&choice, &tables[i]));
    const struct inf_session_choice_result result =
        inf_session_choice_decide(&choice, bytes_max, table_bytes_max);
    inf_session_choice_fini(&choice);
    return result;
}

Test(session_choice, keeps_all_that_fit)
{
    inf_role_enter_loop();
    const struct inf_session *a = open_session(&tables[0], 1, 1000);
    const struct inf_session *b = open_session(&tables[1], 1, 3000);
    uint64_t bytes = inf_session_image_bytes(a) + inf_session_image_bytes(b);
    cr_assert_geq(bytes, 4000);
    struct inf_session_choice_result result = decide_all(bytes, bytes);
    cr_expect_eq(result.kept, 2);
    cr_expect_eq(result.lost, 0);
    cr_expect_eq(result.kept_bytes, bytes);
    cr_expect(a->is_kept && b->is_kept);
    cr_expect_eq(tables[1].kept_bytes, inf_session_image_bytes(b));
    // One byte less, and the larger one, which was used last, goes: the users share the bytes.
    result = decide_all(bytes - 1, bytes);
    cr_expect(a->is_kept && !b->is_kept);
    cr_expect_eq(result.lost, 1);
    cr_expect_eq(result.lost_bytes, inf_session_image_bytes(b));
    cr_expect_eq(tables[1].kept_bytes, 0);
}

Test(session_choice, loses_the_one_used_least_recently)
{
    inf_role_enter_loop();
    struct inf_session *sessions[4];
    for (uint64_t i = 0; i < 4; i++)
        sessions[i] = open_session(&tables[0], i + 1, 800);
    inf_session_note_use(sessions[0]);
    sessions[3]->last_use = -5; // in an earlier process
    const uint64_t bytes = inf_session_image_bytes(sessions[0]);
    cr_expect_eq(decide_all(3 * bytes, UINT64_MAX).kept, 3);
    cr_expect(sessions[0]->is_kept && sessions[1]->is_kept && sessions[2]->is_kept);
    cr_expect_eq(decide_all(2 * bytes, UINT64_MAX).kept, 2);
    cr_expect(sessions[0]->is_kept && sessions[2]->is_kept);
    cr_expect_eq(decide_all(2 * bytes - 1, UINT64_MAX).kept, 1);
    cr_expect(sessions[0]->is_kept);
    cr_expect_eq(decide_all(bytes - 1, UINT64_MAX).kept, 0);
}

Test(session_choice, a_session_that_does_not_fit_leaves_room_for_smaller_ones)
{
    inf_role_enter_loop();
    const struct inf_session *old = open_session(&tables[0], 1, 800);
    const struct inf_session *large = open_session(&tables[0], 2, 80000);
    const struct inf_session_choice_result result = decide_all(10000, UINT64_MAX);
    cr_expect_eq(result.kept, 1);
    cr_expect(old->is_kept && !large->is_kept);
}

// The example of the source file, in kilobytes.
Test(session_choice, users_share_the_bytes)
{
    inf_role_enter_loop();
    const int64_t kb = 1000, more = (int64_t)count_overhead();
    const struct inf_session *b1 = open_session(&tables[1], 1, 4 * kb - more);
    const struct inf_session *a3 = open_session(&tables[0], 3, 5 * kb - more);
    const struct inf_session *a2 = open_session(&tables[0], 2, 3 * kb - more);
    const struct inf_session *a1 = open_session(&tables[0], 1, 3 * kb - more);
    const struct inf_session_choice_result result = decide_all(10 * kb, UINT64_MAX);
    cr_expect_eq(result.kept_bytes, 10 * kb);
    cr_expect_eq(result.lost_bytes, 5 * kb);
    cr_expect(a1->is_kept && a2->is_kept && b1->is_kept && !a3->is_kept);
}

// Many sessions of one user, all used later, take nothing from a user with one.
Test(session_choice, many_sessions_of_a_user_leave_those_of_others)
{
    inf_role_enter_loop();
    const struct inf_session *single = open_session(&tables[2], 1, 8000);
    for (uint64_t i = 0; i < 200; i++)
        open_session(&tables[0], i + 1, 1000);
    const uint64_t small = inf_session_image_bytes(tables[0].sessions);
    const struct inf_session_choice_result result = decide_all(20 * small, UINT64_MAX);
    cr_expect(single->is_kept);
    cr_expect_geq(result.kept, 10);
    cr_expect_leq(result.kept_bytes, 20 * small);
    cr_expect_eq(result.kept + result.lost, 201);
}

Test(session_choice, one_table_is_bounded_too)
{
    inf_role_enter_loop();
    const struct inf_session *a1 = open_session(&tables[0], 1, 1000);
    const struct inf_session *a2 = open_session(&tables[0], 2, 1000);
    const struct inf_session *b = open_session(&tables[1], 1, 1000);
    const uint64_t bytes = inf_session_image_bytes(b);
    struct inf_session_choice_result result = decide_all(3 * bytes, 2 * bytes - 1);
    cr_expect(!a1->is_kept && a2->is_kept && b->is_kept);
    cr_expect_eq(result.lost, 1);
    cr_expect_eq(tables[0].kept_bytes, bytes);
    result = decide_all(3 * bytes, 2 * bytes);
    cr_expect_eq(result.lost, 0);
}

Test(session_choice, nothing_to_choose_from)
{
    inf_role_enter_loop();
    const struct inf_session_choice_result result = decide_all(1000, 1000);
    cr_expect_eq(result.kept + result.lost, 0);
}
