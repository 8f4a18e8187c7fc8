// SPDX-License-Identifier: Apache-2.0
// What a session remembers about its tensors when requests end, when it is rewound, and when
// another session is forked from it. The tests take the place of the worker: they fill the next
// values.
#include <criterion/criterion.h>
#include <string.h>

#include "daemon/resource/session.h"

#define ROW_BYTES 4
#define ROWS      8

static struct inf_counters counters;
static struct inf_quota *quota;
static struct inf_quota_user *user;
static struct inf_session_table table;

static void start_test(void)
{
    uint64_t most[INF_QUOTA_KIND_COUNT];
    memset(most, 255, sizeof most);
    inf_role_enter_loop();
    cr_assert_eq(inf_quota_create(&quota, most, NULL), INF_OK);
    user = inf_quota_open(quota, 7);
    cr_assert_not_null(user);
    inf_session_table_init(&table, &counters, user);
}

static void end_test(void)
{
    inf_role_enter_loop();
    inf_session_table_fini(&table);
    cr_expect_eq(inf_quota_held(user, INF_QUOTA_SESSION_BYTES), 0u);
    inf_quota_unref(&user);
    inf_quota_destroy(&quota);
}

TestSuite(session, .init = start_test, .fini = end_test, .timeout = 60);

static struct inf_session *find_session(uint64_t id) INF_ON_LOOP
{
    struct inf_session *session = NULL;
    cr_assert_eq(inf_session_find(&table, id, &session, NULL), INF_OK);
    return session;
}

// Opens a session, as a copy of the session `fork_of` unless that is 0.
static enum inf_code open_session(uint64_t id, uint64_t fork_of, uint32_t max_length,
                                  struct inf_error *err) INF_ON_LOOP
{
    static struct inf_session_message message;
    message = (struct inf_session_message){
        .session_id = id, .fork_of = fork_of, .max_length = max_length};
    return inf_session_open(&table, &message, err);
}

// Opens session `id` with two tensors that have no value yet.
static struct inf_session *open_pair(uint64_t id) INF_ON_LOOP
{
    uint32_t index;
    cr_assert_eq(open_session(id, 0, 0, NULL), INF_OK);
    struct inf_session *session = find_session(id);
    cr_assert_eq(inf_session_obtain_tensor(session, "a", &index, NULL), INF_OK);
    cr_assert_eq(inf_session_obtain_tensor(session, "b", &index, NULL), INF_OK);
    cr_assert_eq(index, 1u);
    return session;
}

// Gives a tensor a next value with room for ROWS rows, as a worker does.
static void fill_next(struct inf_session *session, uint32_t index, uint8_t byte)
{
    struct inf_session_tensor *tensor = session->tensors[index];
    cr_assert_eq(inf_session_reserve_bytes(session, tensor, ROWS * ROW_BYTES, NULL), INF_OK);
    cr_assert_eq(inf_session_buffer_reserve(&tensor->next, ROWS * ROW_BYTES, NULL, NULL), INF_OK);
    memset(tensor->next.data, byte, ROWS * ROW_BYTES);
}

// Describes a history of `rows` rows with room for ROWS.
static struct inf_session_kept keep_rows(uint32_t index, int64_t rows)
{
    return (struct inf_session_kept){.index = index,
                                     .dtype = INF_DTYPE_U8,
                                     .shape = INF_SHAPE(rows, ROW_BYTES),
                                     .room = ROWS,
                                     .is_history = true};
}

// Makes both tensors histories of `rows` rows. All bytes are 1 in the first one, 2 in the second.
static void commit_rows(struct inf_session *session, int64_t rows) INF_ON_LOOP
{
    const struct inf_session_kept kept[] = {keep_rows(0, rows), keep_rows(1, rows)};
    fill_next(session, 0, 1);
    fill_next(session, 1, 2);
    cr_assert_eq(inf_session_commit(session, kept, 2, NULL), INF_OK);
}

static int64_t count_rows(const struct inf_session *session, uint32_t index)
{
    return session->tensors[index]->shape.dims[0];
}

Test(session, keeps_what_a_request_wrote)
{
    inf_role_enter_loop();
    struct inf_session *session = open_pair(1);
    commit_rows(session, 2);
    commit_rows(session, 3);
    for (uint32_t i = 0; i < 2; i++) {
        const struct inf_session_tensor *tensor = session->tensors[i];
        cr_expect(tensor->present);
        cr_expect(tensor->is_history);
        cr_expect_eq(tensor->dtype, INF_DTYPE_U8);
        cr_expect_eq(tensor->room, ROWS);
        cr_expect_eq(count_rows(session, i), 3);
        cr_expect_eq(tensor->now.data[0], i + 1);
        cr_expect_null(tensor->next.data, "a history is extended in place");
        cr_expect_eq(tensor->charged_bytes, tensor->now.capacity);
    }
}

Test(session, keeps_the_second_buffer_of_a_value_that_is_replaced)
{
    inf_role_enter_loop();
    struct inf_session *session = open_pair(1);
    const struct inf_session_tensor *tensor = session->tensors[0];
    struct inf_session_kept kept = {.dtype = INF_DTYPE_U8, .shape = INF_SHAPE(ROWS, ROW_BYTES)};
    for (uint8_t i = 1; i <= 3; i++) {
        fill_next(session, 0, i);
        kept.lags = i == 2;
        cr_assert_eq(inf_session_commit(session, &kept, 1, NULL), INF_OK);
        cr_expect_eq(tensor->now.data[0], i);
        cr_expect_eq(tensor->next.data != NULL, i > 1);
        cr_expect_eq(tensor->next.lags, i == 2);
        cr_expect_eq(tensor->charged_bytes, tensor->now.capacity + tensor->next.capacity);
    }
}

Test(session, of_a_history_that_became_too_long_changes_no_tensor)
{
    inf_role_enter_loop();
    struct inf_session *session = open_pair(1);
    struct inf_error err = {0};
    commit_rows(session, 3);
    // The job extends both. The second one is too long by a row.
    struct inf_session_kept kept[] = {keep_rows(0, 5), keep_rows(1, 5)};
    kept[0].is_extended = kept[1].is_extended = true;
    kept[1].rows_max = 4;
    cr_expect_eq(inf_session_commit(session, kept, 2, &err), INF_RANGE);
    cr_expect_not_null(strstr(err.text, "'b' would have 5 rows, and max_length is 4"), "%s",
                       err.text);
    for (uint32_t i = 0; i < 2; i++) {
        cr_expect_eq(count_rows(session, i), 3);
        cr_expect(session->tensors[i]->is_stale, "the job may have written unused rows");
    }
    // A history may have as many rows as allowed. The commit clears is_stale.
    kept[1].rows_max = 5;
    session->tensors[0]->shrinks = true;
    cr_expect_eq(inf_session_commit(session, kept, 2, &err), INF_OK);
    for (uint32_t i = 0; i < 2; i++) {
        cr_expect_eq(count_rows(session, i), 5);
        cr_expect_eq(session->tensors[i]->now.data[0], i + 1);
        cr_expect_not(session->tensors[i]->is_stale);
        cr_expect_not(session->tensors[i]->shrinks);
    }
}

Test(session, of_a_failed_request_drops_new_buffers_of_histories)
{
    inf_role_enter_loop();
    struct inf_session *session = open_pair(1);
    commit_rows(session, 3);
    struct inf_session_kept kept[] = {keep_rows(0, 5), keep_rows(1, 5)};
    kept[1].rows_max = 4;
    fill_next(session, 0, 9);
    fill_next(session, 1, 9);
    cr_expect_eq(inf_session_commit(session, kept, 2, NULL), INF_RANGE);
    for (uint32_t i = 0; i < 2; i++) {
        const struct inf_session_tensor *tensor = session->tensors[i];
        cr_expect_eq(tensor->now.data[0], i + 1);
        cr_expect_not(tensor->is_stale, "the job wrote into other buffers");
        cr_expect_null(tensor->next.data);
        cr_expect_eq(tensor->charged_bytes, tensor->now.capacity);
    }
}

Test(session, that_is_rewound_counts_fewer_rows)
{
    inf_role_enter_loop();
    struct inf_session *session = open_pair(1);
    struct inf_error err = {0};
    commit_rows(session, 5);
    cr_assert_eq(inf_session_rewind(session, 5, false, NULL), INF_OK);
    cr_expect_not(session->tensors[0]->is_stale, "no row was forgotten");
    // The first history has exactly its rows, so that the number of these becomes its room.
    session->tensors[0]->room = 0;
    cr_assert_eq(inf_session_rewind(session, 2, false, NULL), INF_OK);
    for (uint32_t i = 0; i < 2; i++) {
        cr_expect_eq(count_rows(session, i), 2);
        cr_expect(session->tensors[i]->is_stale);
        cr_expect_not(session->tensors[i]->shrinks);
    }
    cr_expect_eq(session->tensors[0]->room, 5);
    cr_expect_eq(session->tensors[1]->room, ROWS);
    cr_expect_eq(inf_session_rewind(session, 3, false, &err), INF_INVALID);
    cr_expect_not_null(strstr(err.text, "has 2 rows, wanted 3"), "%s", err.text);
}

Test(session, gives_memory_of_rewound_rows_back)
{
    inf_role_enter_loop();
    struct inf_session *session = open_pair(1);
    commit_rows(session, 5);
    cr_assert_eq(inf_session_rewind(session, 1, true, NULL), INF_OK);
    cr_expect(session->tensors[0]->shrinks);
    cr_expect(session->tensors[0]->present);
    cr_assert_eq(inf_session_rewind(session, 0, true, NULL), INF_OK);
    for (uint32_t i = 0; i < 2; i++) {
        cr_expect_not(session->tensors[i]->present);
        cr_expect_null(session->tensors[i]->now.data);
        cr_expect_eq(session->tensors[i]->charged_bytes, 0u);
    }
}

Test(session, is_neither_rewound_nor_forked_while_a_request_runs)
{
    inf_role_enter_loop();
    struct inf_session *session = open_pair(1);
    struct inf_error err = {0};
    commit_rows(session, 5);
    session->active = (struct inf_job *)&err; // never read
    cr_expect_eq(inf_session_rewind(session, 2, false, &err), INF_PRECONDITION);
    cr_expect_eq(count_rows(session, 0), 5);
    cr_expect_eq(open_session(2, 1, 0, &err), INF_PRECONDITION);
    cr_expect_eq(table.count, 1u);
    session->active = NULL;
    cr_expect_eq(open_session(2, 1, 0, NULL), INF_OK);
}

Test(session, that_is_forked_begins_like_the_other_one)
{
    inf_role_enter_loop();
    struct inf_session *session = open_pair(1);
    session->max_length = 6;
    commit_rows(session, 5);
    cr_assert_eq(inf_session_rewind(session, 4, true, NULL), INF_OK);
    const struct {
        uint32_t asked, wanted;
    } lengths[] = {{0, 6}, {4, 4}, {9, 6}};
    for (uint32_t i = 0; i < INF_ARRAY_LENGTH(lengths); i++) {
        cr_assert_eq(open_session(2 + i, 1, lengths[i].asked, NULL), INF_OK);
        const struct inf_session *fork = find_session(2 + i);
        cr_expect_eq(fork->max_length, lengths[i].wanted, "asked for %u", lengths[i].asked);
        cr_assert_eq(fork->tensor_count, 2u);
        for (uint32_t k = 0; k < 2; k++) {
            const struct inf_session_tensor *tensor = fork->tensors[k];
            cr_expect_str_eq(tensor->name, k == 0 ? "a" : "b");
            cr_expect(tensor->present && tensor->is_history);
            cr_expect_eq(tensor->room, ROWS);
            cr_expect_eq(count_rows(fork, k), 4);
            cr_expect(tensor->is_stale);
            cr_expect(tensor->shrinks);
            cr_expect_eq(tensor->now.data, session->tensors[k]->now.data, "the memory is shared");
            cr_expect_eq(tensor->charged_bytes, tensor->now.capacity, "and charged to both");
        }
    }
}

Test(session, counts_for_the_model_that_used_it_and_so_do_its_forks)
{
    inf_role_enter_loop();
    struct inf_model_quota *model = inf_model_quota_create();
    struct inf_session *session = open_pair(1);
    cr_assert_not_null(model);
    commit_rows(session, 5);
    cr_assert_eq(inf_session_bind_model(session, model, NULL), INF_OK);
    _Atomic uint64_t *held = &model->held[INF_MODEL_QUOTA_SESSION_BYTES];
    uint64_t one = atomic_load(held);
    cr_expect_eq(one, session->charged_bytes + session->fixed_bytes);
    cr_assert_eq(open_session(2, 1, 0, NULL), INF_OK);
    cr_expect_eq(atomic_load(held), 2 * one);
    cr_assert_eq(inf_session_rewind(session, 0, true, NULL), INF_OK);
    uint64_t left = atomic_load(held);
    cr_expect_eq(left, one + session->fixed_bytes);
    // The limit of the model refuses what the limit of the user allows. Then nothing is charged.
    atomic_store(&model->most[INF_MODEL_QUOTA_SESSION_BYTES], left);
    uint64_t of_user = inf_quota_held(user, INF_QUOTA_SESSION_BYTES);
    cr_expect_eq(inf_session_reserve_bytes(session, session->tensors[0], 1, NULL), INF_EXHAUSTED);
    cr_expect_eq(inf_quota_held(user, INF_QUOTA_SESSION_BYTES), of_user);
    cr_assert_eq(inf_session_close(&table, 1, NULL), INF_OK);
    cr_assert_eq(inf_session_close(&table, 2, NULL), INF_OK);
    cr_expect_eq(atomic_load(held), 0u);
    inf_model_quota_unref(&model);
}

Test(session, that_is_unknown_may_be_lost_by_a_restart)
{
    inf_role_enter_loop();
    struct inf_session *session;
    struct inf_error err = {0};
    cr_expect_eq(inf_session_find(&table, 5, &session, &err), INF_ABORTED);
    cr_expect_null(strstr(err.text, "restart"), "%s", err.text);
    table.is_restored = true;
    cr_expect_eq(inf_session_find(&table, 5, &session, &err), INF_ABORTED);
    cr_expect_not_null(strstr(err.text, "a restart of the daemon lost it"), "%s", err.text);
    cr_expect_eq(inf_session_close(&table, 5, &err), INF_ABORTED);
}
