// SPDX-License-Identifier: Apache-2.0
// Caches of a fixed size in a session. A request writes a few rows over such a tensor, so that its
// next value is the present one but for these rows. Called by the worker that runs the request.
#ifndef INF_DAEMON_SCHEDULE_CACHE_ROWS_H
#define INF_DAEMON_SCHEDULE_CACHE_ROWS_H

#include "daemon/resource/session.h"

// Where the rows of a cache [outer][room][row_bytes] are.
struct inf_cache_layout {
    size_t outer, row_bytes;
    uint32_t room;
    bool ring; // row 0 follows the last row
};

// Makes tensor->next a copy of the tensor's value, to which the run writes its rows. If
// tensor->next lags by some rows of this layout, copies these only.
//
// INF_EXHAUSTED  as inf_session_buffer_reserve().
enum inf_code inf_cache_rows_begin(struct inf_session_tensor *tensor,
                                   const struct inf_cache_layout *layout,
                                   struct inf_error *err) INF_NODISCARD;

// Notes that the run wrote `rows` rows at each of `count` positions. The first outer / count
// sequences of rows have the first position, and so on. Returns true if the rows are noted in
// tensor->lag. Returns false if there are too many positions or rows, or if a position is outside
// the cache: a client that changes a region during the run can cause that.
bool inf_cache_rows_note(struct inf_session_tensor *tensor, const struct inf_cache_layout *layout,
                         const int64_t *positions, size_t count, uint32_t rows) INF_NODISCARD;

// Returns true if all rows behind those that inf_cache_rows_note() has noted are zeros. Compares
// them if the runs before do not tell. Returns false if there are several positions.
bool inf_cache_rows_check_zeros(struct inf_session_tensor *tensor,
                                const struct inf_cache_layout *layout) INF_NODISCARD;

#endif
