// SPDX-License-Identifier: Apache-2.0
// Workers charge for the next values of session tensors before they allocate the memory, so that
// requests that run at the same time cannot exceed a limit together.
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/thread.h"
#include "daemon/resource/session.h"

#define MIB (UINT64_C(1) << 20)
// More than the sessions of a test and their names.
#define FIXED_MOST (UINT64_C(64) << 10)

static struct inf_counters counters;
static struct inf_quota *quota;
static struct inf_quota_user *user;
static struct inf_session_table table;

static void start_test(void)
{
    uint64_t most[INF_QUOTA_KIND_COUNT];
    memset(most, 255, sizeof most);
    most[INF_QUOTA_SESSION_BYTES] = 10 * MIB + FIXED_MOST;
    inf_role_enter_loop();
    cr_assert_eq(inf_quota_create(&quota, most, NULL), INF_OK);
    user = inf_quota_open(quota, 7);
    cr_assert_not_null(user);
    inf_session_table_init(&table, &counters, user);
}

static uint64_t count_held(void) INF_ON_LOOP
{
    return inf_quota_held(user, INF_QUOTA_SESSION_BYTES);
}

static uint64_t count_sessions(void)
{
    return atomic_load(&counters.session_bytes);
}

static void end_test(void)
{
    inf_role_enter_loop();
    inf_session_table_fini(&table);
    cr_expect_eq(count_held(), 0u);
    cr_expect_eq(inf_quota_total(quota, INF_QUOTA_SESSION_BYTES), 0u);
    cr_expect_eq(count_sessions(), 0u);
    inf_quota_unref(&user);
    inf_quota_destroy(&quota);
}

TestSuite(session_bytes, .init = start_test, .fini = end_test, .timeout = 60);

static struct inf_session *open_session(uint64_t id) INF_ON_LOOP
{
    static struct inf_session_message message;
    struct inf_session *session = NULL;
    uint32_t index;
    message.session_id = id;
    cr_assert_eq(inf_session_open(&table, &message, NULL), INF_OK);
    cr_assert_eq(inf_session_find(&table, id, &session, NULL), INF_OK);
    cr_assert_eq(inf_session_obtain_tensor(session, "h", &index, NULL), INF_OK);
    cr_assert_eq(index, 0u);
    return session;
}

// Reserves the next value as a worker does.
static enum inf_code reserve_next(struct inf_session *session, size_t bytes, struct inf_error *err)
{
    struct inf_session_tensor *tensor = session->tensors[0];
    INF_TRY(inf_session_reserve_bytes(session, tensor, bytes, err));
    return inf_session_buffer_reserve(&tensor->next, bytes, NULL, err);
}

static void commit_next(struct inf_session *session, int64_t bytes) INF_ON_LOOP
{
    const struct inf_session_kept kept = {.dtype = INF_DTYPE_U8, .shape = INF_SHAPE(bytes)};
    cr_assert_eq(inf_session_commit(session, &kept, 1, NULL), INF_OK);
    inf_session_charge_next(session, 0);
}

Test(session_bytes, are_charged_before_they_are_reserved)
{
    inf_role_enter_loop();
    struct inf_session *one = open_session(1), *two = open_session(2);
    struct inf_error err = {0};
    uint64_t fixed = count_held();
    cr_assert_lt(fixed, FIXED_MOST);
    cr_assert_eq(reserve_next(one, 6 * MIB, &err), INF_OK, "%s", err.text);
    cr_expect_eq(count_held(), fixed + 6 * MIB);
    cr_expect_eq(count_sessions(), 6 * MIB, "the budget sees it while the request runs");
    cr_assert_eq(reserve_next(two, 6 * MIB, &err), INF_EXHAUSTED);
    cr_expect_eq(err.reason, INF_REASON_QUOTA_BYTES);
    cr_expect_null(two->tensors[0]->next.data, "no memory");
    cr_expect_eq(count_held(), fixed + 6 * MIB);
    // A smaller value is charged nothing more. A larger value is charged the difference.
    cr_assert_eq(reserve_next(one, 5 * MIB, &err), INF_OK);
    cr_expect_eq(count_held(), fixed + 6 * MIB);
    cr_assert_eq(reserve_next(one, 7 * MIB, &err), INF_OK);
    cr_expect_eq(count_held(), fixed + 7 * MIB);
    commit_next(one, 7 << 20);
    cr_expect_eq(count_held(), fixed + 7 * MIB);
    cr_expect_eq(count_sessions(), 7 * MIB);
    cr_expect_eq(one->charged_bytes, 7 * MIB);
    // A value and the next one are charged together.
    cr_assert_eq(reserve_next(one, 4 * MIB, &err), INF_EXHAUSTED);
    cr_assert_eq(reserve_next(one, 2 * MIB, &err), INF_OK);
    cr_expect_eq(count_held(), fixed + 9 * MIB);
    inf_session_charge_next(one, 0);
    cr_expect_eq(count_held(), fixed + 9 * MIB);
}

Test(session_bytes, of_a_failed_request_are_what_it_has_reserved)
{
    inf_role_enter_loop();
    struct inf_session *one = open_session(1);
    struct inf_error err = {0};
    uint64_t fixed = count_held();
    // The worker was cancelled before it reserved the memory.
    cr_assert_eq(inf_session_reserve_bytes(one, one->tensors[0], 6 * MIB, &err), INF_OK);
    cr_expect_eq(count_held(), fixed + 6 * MIB);
    inf_session_charge_next(one, 0);
    cr_expect_eq(count_held(), fixed);
    cr_expect_eq(count_sessions(), 0u);
    // The memory stays for the next request.
    cr_assert_eq(reserve_next(one, 6 * MIB, &err), INF_OK);
    inf_session_charge_next(one, 0);
    cr_expect_eq(count_held(), fixed + 6 * MIB);
    cr_expect_eq(one->charged_bytes, 6 * MIB);
    cr_expect_eq(one->reserved_bytes, 0u);
    cr_assert_eq(reserve_next(one, 6 * MIB, &err), INF_OK);
    cr_expect_eq(one->reserved_bytes, 0u);
}

Test(session_bytes, of_a_model_are_limited_too)
{
    inf_role_enter_loop();
    struct inf_model_quota *model = inf_model_quota_create();
    struct inf_session *one = open_session(1), *two = open_session(2);
    struct inf_error err = {0};
    atomic_store(&model->most[INF_MODEL_QUOTA_SESSION_BYTES], 3 * MIB);
    cr_assert_eq(inf_session_bind_model(one, model, &err), INF_OK);
    cr_assert_eq(inf_session_bind_model(two, model, &err), INF_OK);
    cr_assert_eq(reserve_next(one, 2 * MIB, &err), INF_OK);
    uint64_t held = count_held();
    cr_assert_eq(reserve_next(two, MIB, &err), INF_EXHAUSTED, "the names are charged too");
    cr_expect_eq(count_held(), held, "nothing is charged to the user");
    cr_expect_not_null(strstr(err.text, "session_bytes_max"), "%s", err.text);
    cr_assert_eq(reserve_next(two, MIB / 2, &err), INF_OK);
    inf_session_charge_next(one, 0);
    inf_session_charge_next(two, 0);
    inf_session_table_fini(&table);
    uint64_t rest = atomic_load(&model->held[INF_MODEL_QUOTA_SESSION_BYTES]);
    cr_expect_eq(rest, 0u);
    inf_model_quota_unref(&model);
}

Test(session_bytes, of_one_session_have_a_limit)
{
    inf_role_enter_loop();
    struct inf_error err = {0};
    inf_quota_set_most(quota, INF_QUOTA_SESSION_BYTES, UINT64_MAX);
    struct inf_session *one = open_session(1);
    uint32_t second;
    cr_assert_eq(inf_session_obtain_tensor(one, "c", &second, NULL), INF_OK);
    cr_assert_eq(inf_session_reserve_bytes(one, one->tensors[0], INF_LIMIT_SESSION_BYTES, &err),
                 INF_OK);
    cr_expect_eq(inf_session_reserve_bytes(one, one->tensors[second], 1, &err), INF_EXHAUSTED);
    inf_session_charge_next(one, 0);
    cr_expect_eq(inf_session_reserve_bytes(one, one->tensors[second], 1, &err), INF_OK);
    inf_session_charge_next(one, second);
}

// A first value that does not fit takes no memory, and leaves no charge.
Test(session_bytes, of_a_first_value_are_charged_before_they_are_reserved)
{
    inf_role_enter_loop();
    struct inf_session *one = open_session(1);
    struct inf_error err = {0};
    uint64_t fixed = count_held();
    uint8_t small[64] = {1};
    cr_assert_eq(inf_session_set_tensor(one, 0, INF_DTYPE_U8, &INF_SHAPE(64), small, 64, &err),
                 INF_OK);
    cr_expect_eq(count_held(), fixed + 64);
    uint8_t *large = calloc(1, 11 << 20);
    cr_assert_not_null(large);
    cr_expect_eq(
        inf_session_set_tensor(one, 0, INF_DTYPE_U8, &INF_SHAPE(11 << 20), large, 11 << 20, &err),
        INF_EXHAUSTED);
    free(large);
    cr_expect_eq(count_held(), fixed + 64);
    cr_expect_eq(one->tensors[0]->now.data[0], 1, "the value before stays");
}

// Tries 8 times to reserve 1 MiB more.
static void take_pieces(void *context)
{
    struct inf_session *session = context;
    inf_role_enter_worker();
    for (int i = 0; i < 8; i++)
        (void)!inf_session_reserve_bytes(session, session->tensors[0],
                                         session->reserved_bytes + MIB, NULL);
}

Test(session_bytes, that_workers_reserve_at_once_stay_within_the_limit)
{
    inf_role_enter_loop();
    struct inf_session *sessions[4];
    struct inf_thread threads[4] = {0};
    for (uint32_t i = 0; i < 4; i++)
        sessions[i] = open_session(i + 1);
    uint64_t fixed = count_held();
    for (uint32_t i = 0; i < 4; i++)
        cr_assert_eq(inf_thread_start(&threads[i], "reserve", take_pieces, sessions[i], NULL),
                     INF_OK);
    uint64_t reserved = 0;
    for (uint32_t i = 0; i < 4; i++) {
        inf_thread_join(&threads[i]);
        reserved += sessions[i]->reserved_bytes;
    }
    cr_expect_eq(reserved, 10 * MIB, "all that a user may have");
    cr_expect_eq(count_held(), fixed + 10 * MIB);
    for (uint32_t i = 0; i < 4; i++)
        inf_session_charge_next(sessions[i], 0);
    cr_expect_eq(count_held(), fixed);
}

// A worker charges for the capacity that the buffer will have, so it must know that before.
Test(session_bytes, are_those_that_a_buffer_will_have)
{
    struct inf_session_buffer buffer = {.data = NULL};
    for (int is_shared = 0; is_shared < 2; is_shared++) {
        cr_expect_geq(inf_session_buffer_capacity(&buffer, 4000), 4000u);
        cr_assert_eq(inf_session_buffer_reserve(&buffer, 4000, NULL, NULL), INF_OK);
        size_t large = buffer.capacity;
        struct inf_session_buffer other = {.data = NULL};
        if (is_shared)
            other = inf_session_buffer_share(&buffer);
        size_t wanted = inf_session_buffer_capacity(&buffer, 100);
        cr_expect_eq(wanted < large, is_shared, "a shared buffer is not written");
        cr_assert_eq(inf_session_buffer_reserve(&buffer, 100, NULL, NULL), INF_OK);
        cr_expect_eq(buffer.capacity, wanted);
        inf_session_buffer_drop(&other);
    }
    inf_session_buffer_drop(&buffer);
}
