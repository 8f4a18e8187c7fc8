// SPDX-License-Identifier: Apache-2.0
// Rows written over a cache in a session: which rows the next buffer lacks, and whether all rows
// behind the new ones are zeros.
#include "daemon/schedule/cache_rows.h"

#include <criterion/criterion.h>
#include <string.h>

enum {
    OUTER = 2,
    ROOM = 6,
    ROW = 3
};

static const struct inf_cache_layout layout = {.outer = OUTER, .row_bytes = ROW, .room = ROOM};
static struct inf_session_tensor tensor;

static void make_tensor(void)
{
    cr_assert_eq(inf_session_buffer_reserve(&tensor.now, OUTER * ROOM * ROW, NULL, NULL), INF_OK);
    memset(tensor.now.data, 0, OUTER * ROOM * ROW);
}

static void free_tensor(void)
{
    inf_session_buffer_drop(&tensor.now);
    inf_session_buffer_drop(&tensor.next);
}

TestSuite(cache_rows, .init = make_tensor, .fini = free_tensor);

// Writes `rows` rows of `byte` at `position`, and returns whether zeros follow. If so, the next
// value becomes the present one, as in a commit.
static bool write_rows(int64_t position, uint32_t rows, int byte)
{
    cr_assert_eq(inf_cache_rows_begin(&tensor, &layout, NULL), INF_OK);
    cr_assert_eq(memcmp(tensor.next.data, tensor.now.data, OUTER * ROOM * ROW), 0);
    for (size_t i = 0; i < OUTER; i++)
        memset(tensor.next.data + (i * ROOM + (size_t)position) * ROW, byte, (size_t)rows * ROW);
    cr_assert(inf_cache_rows_note(&tensor, &layout, &position, 1, rows));
    if (!inf_cache_rows_check_zeros(&tensor, &layout))
        return false;
    struct inf_session_buffer previous = tensor.now;
    tensor.now = tensor.next;
    tensor.next = previous;
    tensor.next.lags = true;
    return true;
}

Test(cache_rows, zeros_follow_rows_that_end_ever_later)
{
    cr_expect(write_rows(0, 2, 1));
    cr_expect(write_rows(2, 1, 2));
    cr_expect(write_rows(2, 1, 3), "the row is written again");
    cr_expect(write_rows(1, 2, 4), "the end stays");
    cr_expect(write_rows(3, 3, 5));
    cr_expect_not(write_rows(0, 5, 6), "row 5 is not 0");
}

Test(cache_rows, rows_behind_the_new_ones_are_compared_if_they_are_not_known)
{
    // The last byte of the last sequence.
    tensor.now.data[OUTER * ROOM * ROW - 1] = 1;
    cr_expect_not(write_rows(0, 5, 1));
    cr_expect(write_rows(0, 6, 1), "no row is behind");
    tensor.next.lags = false;
    memset(tensor.now.data, 0, OUTER * ROOM * ROW);
    tensor.now.data[ROW * 2] = 1;
    cr_expect_not(write_rows(0, 2, 1), "the first byte behind");
    cr_expect(write_rows(0, 3, 1));
}

Test(cache_rows, zeros_are_not_compared_again)
{
    cr_expect(write_rows(0, 2, 1));
    // No run can do this. It shows that the rows are not read.
    tensor.now.data[ROOM * ROW - 1] = tensor.next.data[ROOM * ROW - 1] = 1;
    cr_expect(write_rows(2, 1, 1));
    cr_expect_not(write_rows(0, 1, 1), "an earlier end");
    cr_expect_eq(tensor.now.data[ROOM * ROW - 1], 1);
}

Test(cache_rows, a_cache_that_is_copied_whole_is_compared_again)
{
    cr_expect(write_rows(0, 2, 1));
    tensor.next.lags = false;
    tensor.now.data[ROOM * ROW - 1] = 1;
    cr_expect_not(write_rows(2, 1, 1));
}

Test(cache_rows, several_positions_and_rings_have_no_zeros_behind)
{
    const int64_t positions[] = {0, 1};
    cr_assert_eq(inf_cache_rows_begin(&tensor, &layout, NULL), INF_OK);
    memset(tensor.next.data, 0, OUTER * ROOM * ROW);
    cr_assert(inf_cache_rows_note(&tensor, &layout, positions, 2, 1));
    cr_expect_not(inf_cache_rows_check_zeros(&tensor, &layout));
    struct inf_cache_layout ring = layout;
    ring.ring = true;
    cr_assert(inf_cache_rows_note(&tensor, &ring, positions, 1, 1));
    cr_expect_not(inf_cache_rows_check_zeros(&tensor, &ring));
    cr_assert(inf_cache_rows_note(&tensor, &layout, positions, 1, 1));
    cr_expect(inf_cache_rows_check_zeros(&tensor, &layout));
}

Test(cache_rows, positions_outside_the_cache_are_not_noted)
{
    const struct {
        int64_t position;
        uint32_t rows;
        bool fits, fits_ring;
        uint32_t ring_position;
    } cases[] = {
        {0, ROOM, true, true, 0},
        {ROOM - 2, 2, true, true, ROOM - 2},
        {ROOM - 1, 2, false, true, ROOM - 1},
        {ROOM, 1, false, true, 0},
        {-1, 1, false, true, ROOM - 1},
        {INT64_MIN, 1, false, true, 4}, // -2^63 = 4 modulo 6
        {INT64_MAX, 1, false, true, 1},
        {0, ROOM + 1, false, false, 0},
    };
    struct inf_cache_layout ring = layout;
    ring.ring = true;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const int64_t *position = &cases[i].position;
        cr_expect_eq(inf_cache_rows_note(&tensor, &layout, position, 1, cases[i].rows),
                     cases[i].fits, "case %zu", i);
        cr_expect_eq(inf_cache_rows_note(&tensor, &ring, position, 1, cases[i].rows),
                     cases[i].fits_ring, "case %zu", i);
        if (cases[i].fits_ring)
            cr_expect_eq(tensor.lag.positions[0], cases[i].ring_position, "case %zu", i);
    }
}

Test(cache_rows, a_cache_of_another_layout_is_copied_whole)
{
    const struct inf_cache_layout others[] = {{.outer = OUTER, .row_bytes = ROW - 1, .room = ROOM},
                                              {.outer = OUTER, .row_bytes = ROW, .room = ROOM - 1},
                                              {.outer = 1, .row_bytes = ROW, .room = ROOM}};
    cr_expect(write_rows(0, 2, 1));
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        size_t size = others[i].outer * others[i].room * others[i].row_bytes;
        memset(tensor.now.data, 7, OUTER * ROOM * ROW);
        memset(tensor.next.data, 0, OUTER * ROOM * ROW);
        cr_assert_eq(inf_cache_rows_begin(&tensor, &others[i], NULL), INF_OK);
        cr_expect_eq(memcmp(tensor.next.data, tensor.now.data, size), 0, "layout %zu", i);
    }
}
