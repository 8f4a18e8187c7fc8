// SPDX-License-Identifier: Apache-2.0
// The image of the sessions of a connection: what the next process reads from it.
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/resource/session_choice.h"
#include "daemon/resource/session_image.h"

static struct inf_counters counters;
static struct inf_quota *quota;
static struct inf_quota_user *user;

static void start_test(void)
{
    uint64_t most[INF_QUOTA_KIND_COUNT];
    memset(most, 255, sizeof most);
    inf_role_enter_loop();
    cr_assert_eq(inf_quota_create(&quota, most, NULL), INF_OK);
    user = inf_quota_open(quota, 1);
    cr_assert_not_null(user);
}

static void end_test(void)
{
    inf_role_enter_loop();
    cr_expect_eq(inf_quota_held(user, INF_QUOTA_SESSION_BYTES), 0);
    inf_quota_unref(&user);
    inf_quota_destroy(&quota);
}

TestSuite(session_image, .init = start_test, .fini = end_test);

static struct inf_session *open_session(struct inf_session_table *table, uint64_t id) INF_ON_LOOP
{
    static struct inf_session_message message;
    struct inf_session *session = NULL;
    message.session_id = id;
    cr_assert_eq(inf_session_open(table, &message, NULL), INF_OK);
    cr_assert_eq(inf_session_find(table, id, &session, NULL), INF_OK);
    return session;
}

// Makes `bytes`, all bytes of a buffer with `room` rows along `axis`, the value of a history.
static void keep_history(struct inf_session *session, const char *name, struct inf_shape shape,
                         uint8_t axis, uint32_t room, const char *bytes) INF_ON_LOOP
{
    struct inf_session_kept kept = {
        .dtype = INF_DTYPE_U8, .shape = shape, .room = room, .axis = axis, .is_history = true};
    cr_assert_eq(inf_session_obtain_tensor(session, name, &kept.index, NULL), INF_OK);
    struct inf_session_buffer *next = &session->tensors[kept.index]->next;
    cr_assert_eq(inf_session_buffer_reserve(next, strlen(bytes), NULL, NULL), INF_OK);
    memcpy(next->data, bytes, strlen(bytes));
    cr_assert_eq(inf_session_commit(session, &kept, 1, NULL), INF_OK);
}

// Writes the sessions of a table to an image, ends them, and reads the image. Returns how many of
// them fit.
static uint32_t hand_over(struct inf_session_table *table) INF_ON_LOOP
{
    int fd = -1;
    struct inf_error err = {0};
    struct inf_session_choice choice = {0};
    cr_assert(inf_session_choice_add(&choice, table));
    uint32_t kept =
        inf_session_choice_decide(&choice, UINT64_MAX, INF_LIMIT_KEPT_SESSION_BYTES).kept;
    inf_session_choice_fini(&choice);
    cr_assert_eq(inf_session_image_write(table, &fd, &err), INF_OK, "%s", err.text);
    inf_session_table_fini(table);
    cr_assert_eq(inf_session_image_read(table, fd, &err), INF_OK, "%s", err.text);
    cr_assert_eq(table->count, kept);
    close(fd);
    return kept;
}

// Checks a history of a session after the handover: its shape, and all its bytes.
static void check_history(struct inf_session_table *table, uint64_t id, const char *name,
                          struct inf_shape shape, uint8_t axis, const char *bytes) INF_ON_LOOP
{
    struct inf_session *session = NULL;
    uint32_t index;
    cr_assert_eq(inf_session_find(table, id, &session, NULL), INF_OK);
    uint32_t count = session->tensor_count;
    cr_assert_eq(inf_session_obtain_tensor(session, name, &index, NULL), INF_OK);
    cr_assert_eq(session->tensor_count, count, "there is no '%s'", name);
    const struct inf_session_tensor *tensor = session->tensors[index];
    cr_assert(tensor->present && tensor->is_history);
    cr_expect_eq(tensor->axis, axis);
    cr_expect_eq(tensor->dtype, INF_DTYPE_U8);
    cr_expect(inf_shape_equal(&tensor->shape, &shape));
    cr_expect_eq(tensor->room, 0, "the image has no unused rows");
    cr_expect_eq(memcmp(tensor->now.data, bytes, strlen(bytes)), 0, "%.*s", (int)strlen(bytes),
                 (const char *)tensor->now.data);
}

// The unused rows, which are between those of two sequences, are x.
Test(session_image, has_histories_without_their_unused_rows)
{
    inf_role_enter_loop();
    struct inf_session_table table;
    inf_session_table_init(&table, &counters, user);
    struct inf_session *session = open_session(&table, 3);
    keep_history(session, "middle", INF_SHAPE(2, 3, 2), 1, 5, "aabbccxxxxddeeffxxxx");
    keep_history(session, "first", INF_SHAPE(2, 3), 0, 4, "aaabbbxxxxxx");
    keep_history(session, "last", INF_SHAPE(1, 3, 2), 2, 3, "abxcdxefx");
    keep_history(session, "full", INF_SHAPE(2, 3), 1, 3, "abcdef");
    keep_history(session, "exact", INF_SHAPE(2, 3), 1, 0, "abcdef");
    session->max_length = INF_LIMIT_HISTORY_ROWS;
    keep_history(open_session(&table, 4), "middle", INF_SHAPE(3, 1, 1), 1, 2, "axbxcx");
    hand_over(&table);
    cr_assert_eq(table.count, 2);
    check_history(&table, 3, "middle", INF_SHAPE(2, 3, 2), 1, "aabbccddeeff");
    check_history(&table, 3, "first", INF_SHAPE(2, 3), 0, "aaabbb");
    check_history(&table, 3, "last", INF_SHAPE(1, 3, 2), 2, "abcdef");
    check_history(&table, 3, "full", INF_SHAPE(2, 3), 1, "abcdef");
    check_history(&table, 3, "exact", INF_SHAPE(2, 3), 1, "abcdef");
    check_history(&table, 4, "middle", INF_SHAPE(3, 1, 1), 1, "abc");
    cr_assert_eq(inf_session_find(&table, 3, &session, NULL), INF_OK);
    cr_assert(session->max_length == INF_LIMIT_HISTORY_ROWS && session->tensor_count == 5);
    cr_assert_eq(inf_session_find(&table, 4, &session, NULL), INF_OK);
    cr_assert_eq(session->max_length, 0);
    inf_session_table_fini(&table);
}

Test(session_image, has_what_a_rewind_has_left)
{
    inf_role_enter_loop();
    struct inf_session_table table;
    inf_session_table_init(&table, &counters, user);
    struct inf_session *session = open_session(&table, 1);
    keep_history(session, "h", INF_SHAPE(2, 3, 2), 1, 5, "aabbccxxxxddeeffxxxx");
    cr_assert_eq(inf_session_rewind(session, 2, false, NULL), INF_OK);
    hand_over(&table);
    check_history(&table, 1, "h", INF_SHAPE(2, 2, 2), 1, "aabbddee");
    cr_assert_eq(inf_session_find(&table, 1, &session, NULL), INF_OK);
    cr_assert_eq(inf_session_rewind(session, 0, false, NULL), INF_OK);
    hand_over(&table);
    check_history(&table, 1, "h", INF_SHAPE(2, 0, 2), 1, "");
    inf_session_table_fini(&table);
}

// Strings are in the image with their lengths; their number alone does not tell their size.
Test(session_image, has_strings)
{
    inf_role_enter_loop();
    static const char strings[] = "\2\0\0\0ab\0\0\0\0\1\0\0\0c";
    struct inf_session_table table;
    struct inf_session *session;
    uint32_t index;
    inf_session_table_init(&table, &counters, user);
    session = open_session(&table, 1);
    cr_assert_eq(inf_session_obtain_tensor(session, "s", &index, NULL), INF_OK);
    cr_assert_eq(inf_session_set_tensor(session, index, INF_DTYPE_BYTES, &INF_SHAPE(4), strings,
                                        sizeof strings - 1, NULL),
                 INF_INVALID, "three strings cannot be four");
    cr_assert_eq(inf_session_set_tensor(session, index, INF_DTYPE_BYTES, &INF_SHAPE(3), strings,
                                        sizeof strings - 1, NULL),
                 INF_OK);
    hand_over(&table);
    cr_assert_eq(inf_session_find(&table, 1, &session, NULL), INF_OK);
    cr_assert_eq(inf_session_obtain_tensor(session, "s", &index, NULL), INF_OK);
    const struct inf_session_tensor *tensor = session->tensors[index];
    cr_assert(tensor->present && inf_shape_equal(&tensor->shape, &INF_SHAPE(3)));
    cr_expect_eq(tensor->dtype, INF_DTYPE_BYTES);
    cr_assert_eq(tensor->string_bytes, sizeof strings - 1);
    cr_assert_arr_eq(tensor->now.data, strings, sizeof strings - 1);
    inf_session_table_fini(&table);
}

// Opens a session whose image has `image_bytes`.
static struct inf_session *open_of_size(struct inf_session_table *table, uint64_t id,
                                        int64_t image_bytes) INF_ON_LOOP
{
    struct inf_session *session = open_session(table, id);
    uint32_t index;
    int64_t bytes = 8;
    uint8_t *data = calloc(1, (size_t)image_bytes);
    cr_assert_not_null(data);
    cr_assert_eq(inf_session_obtain_tensor(session, "h", &index, NULL), INF_OK);
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(inf_session_set_tensor(session, index, INF_DTYPE_U8, &INF_SHAPE(bytes), data,
                                            (size_t)bytes, NULL),
                     INF_OK);
        bytes += image_bytes - (int64_t)inf_session_image_bytes(session);
    }
    cr_assert_eq(inf_session_image_bytes(session), (uint64_t)image_bytes);
    free(data);
    return session;
}

Test(session_image, is_bounded)
{
    inf_role_enter_loop();
    struct inf_session_table table;
    inf_session_table_init(&table, &counters, user);
    open_of_size(&table, 1, INF_LIMIT_KEPT_SESSION_BYTES);
    cr_assert_eq(hand_over(&table), 1);
    inf_session_table_fini(&table);
    open_of_size(&table, 1, INF_LIMIT_KEPT_SESSION_BYTES + 8);
    cr_assert_eq(hand_over(&table), 0);
    inf_session_table_fini(&table);
}

// Only sessions that were chosen are in the image, and the order of their last uses stays.
Test(session_image, has_the_sessions_that_were_chosen)
{
    inf_role_enter_loop();
    struct inf_session_table table;
    struct inf_session *sessions[3];
    inf_session_table_init(&table, &counters, user);
    for (uint64_t i = 0; i < 3; i++)
        sessions[i] = open_of_size(&table, i + 1, INF_LIMIT_KEPT_SESSION_BYTES / 2);
    inf_session_note_use(sessions[0]);
    cr_assert_eq(hand_over(&table), 2);
    struct inf_session *first, *third, *second;
    cr_assert_eq(inf_session_find(&table, 1, &first, NULL), INF_OK);
    cr_assert_eq(inf_session_find(&table, 3, &third, NULL), INF_OK);
    cr_assert_eq(inf_session_find(&table, 2, &second, NULL), INF_ABORTED);
    cr_assert_lt(third->last_use, first->last_use);
    cr_assert_leq(first->last_use, 0);
    cr_assert_gt(open_session(&table, 4)->last_use, 0);
    inf_session_table_fini(&table);
}

Test(session_image, a_lost_session_is_explained_by_a_restart)
{
    inf_role_enter_loop();
    struct inf_session_table table;
    struct inf_session *session;
    struct inf_error err = {0};
    inf_session_table_init(&table, &counters, user);
    cr_assert_eq(inf_session_find(&table, 7, &session, &err), INF_ABORTED);
    cr_expect_str_eq(err.text,
                     "session 7: this connection has none of this id; open it, and begin "
                     "the sequence again");
    table.is_restored = true;
    cr_assert_eq(inf_session_find(&table, 7, &session, &err), INF_ABORTED);
    cr_expect_str_eq(err.text,
                     "session 7: this connection has none of this id, or a restart of "
                     "the daemon lost it; open it, and begin the sequence again");
}
