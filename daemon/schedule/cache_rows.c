// SPDX-License-Identifier: Apache-2.0
// The problem: a step writes one row to each cache of a decoder, and a request that fails must
// leave the caches as they were. A copy of each cache for each step would cost more than the step.
//
// The idea: a session tensor has two buffers, and the next value differs from the present one by
// the rows of one request. The buffer that a commit replaces lags behind by exactly these rows. The
// next request copies them, and then writes its own rows. Step 3 writes row 3:
//
//                    now            next
//   before step 3    a b c .        a b . .     `next` lags by row 2
//   copy             a b c .        a b c .     the rows of the lag only
//   run              a b c .        a b c d
//   commit           a b c d        a b c .     the buffers are swapped; `next` lags by row 3
//
// Some graphs set the rows behind the new ones to zero (GroupQueryAttention). A run in place does
// not, because that would write the whole cache. In most runs they are zeros already: the new rows
// end where those of the run before did, or behind. If not, or if that is not known, as in the
// first run, they are compared with zero. If they differ, the results of the run must not be used:
// unused rows count with the factor 0, and 0 * NaN is NaN.
//
// The tensor is copied whole if a run of another kind, or one that failed, has written to `next`,
// or if another model of the session has written rows along another axis.
#include "daemon/schedule/cache_rows.h"

#include <string.h>

// Copies `count` rows of the sequence of rows `outer` from row `first` on.
static void copy_rows(const struct inf_session_tensor *tensor,
                      const struct inf_cache_layout *layout, size_t outer, size_t first,
                      size_t count)
{
    size_t offset = (outer * layout->room + first) * layout->row_bytes;
    memcpy(tensor->next.data + offset, tensor->now.data + offset, count * layout->row_bytes);
}

// Returns true if tensor->next has all but some rows of this layout.
static bool lags_by_rows(const struct inf_session_tensor *tensor,
                         const struct inf_cache_layout *layout)
{
    const struct inf_session_lag *lag = &tensor->lag;
    return tensor->next.lags && !inf_session_buffer_is_shared(&tensor->next) &&
           lag->outer == layout->outer && lag->room == layout->room &&
           lag->row_bytes == layout->row_bytes;
}

static void copy_lag(const struct inf_session_tensor *tensor, const struct inf_cache_layout *layout)
{
    const struct inf_session_lag *lag = &tensor->lag;
    for (size_t i = 0; i < layout->outer; i++) {
        size_t first = lag->positions[i / (layout->outer / lag->count)];
        size_t behind = INF_MIN(lag->rows, layout->room - first);
        copy_rows(tensor, layout, i, first, behind);
        copy_rows(tensor, layout, i, 0, lag->rows - behind);
    }
}

enum inf_code inf_cache_rows_begin(struct inf_session_tensor *tensor,
                                   const struct inf_cache_layout *layout, struct inf_error *err)
{
    size_t size_bytes = layout->outer * layout->room * layout->row_bytes;
    bool lags = lags_by_rows(tensor, layout);
    INF_TRY(inf_session_buffer_reserve(&tensor->next, size_bytes, NULL, err));
    if (!lags)
        tensor->lag.zeros_from = 0;
    if (lags)
        copy_lag(tensor, layout);
    else
        memcpy(tensor->next.data, tensor->now.data, size_bytes);
    return INF_OK;
}

bool inf_cache_rows_note(struct inf_session_tensor *tensor, const struct inf_cache_layout *layout,
                         const int64_t *positions, size_t count, uint32_t rows)
{
    struct inf_session_lag *lag = &tensor->lag;
    if (count < 1 || count > INF_SESSION_LAG_MAX || layout->outer % count != 0 ||
        rows > layout->room)
        return false;
    *lag = (struct inf_session_lag){.outer = layout->outer,
                                    .row_bytes = layout->row_bytes,
                                    .room = layout->room,
                                    .count = (uint32_t)count,
                                    .rows = rows,
                                    .zeros_from = lag->zeros_from};
    for (size_t i = 0; i < count; i++) {
        int64_t room = layout->room, at = positions[i];
        if (layout->ring)
            at = (at % room + room) % room;
        else if (at < 0 || at > room - rows)
            return false;
        lag->positions[i] = (uint32_t)at;
    }
    return true;
}

// Returns true if all rows of the next value from row `first` on are zeros.
static bool are_zeros(const struct inf_session_tensor *tensor,
                      const struct inf_cache_layout *layout, size_t first)
{
    size_t bytes = (layout->room - first) * layout->row_bytes;
    for (size_t i = 0; i < layout->outer; i++) {
        const uint8_t *rows = tensor->next.data + (i * layout->room + first) * layout->row_bytes;
        if (bytes > 0 && (rows[0] != 0 || memcmp(rows, rows + 1, bytes - 1) != 0))
            return false;
    }
    return true;
}

bool inf_cache_rows_check_zeros(struct inf_session_tensor *tensor,
                                const struct inf_cache_layout *layout)
{
    struct inf_session_lag *lag = &tensor->lag;
    uint32_t end = lag->positions[0] + lag->rows;
    if (lag->count != 1 || layout->ring)
        return false;
    if ((lag->zeros_from == 0 || end < lag->zeros_from) && !are_zeros(tensor, layout, end))
        return false;
    lag->zeros_from = end;
    return true;
}
