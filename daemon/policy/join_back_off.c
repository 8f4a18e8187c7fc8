// SPDX-License-Identifier: Apache-2.0
// Counts steps, not time: otherwise a client that waits could make the next joined run fail too.
#include "daemon/policy/join_back_off.h"

#include "proto/core/attributes.h"

bool inf_join_back_off_may_join(const struct inf_join_back_off *back_off)
{
    return back_off->alone == 0;
}

void inf_join_back_off_note(struct inf_join_back_off *back_off, enum inf_join_outcome outcome)
{
    if (outcome == INF_JOIN_SPOILED) {
        uint32_t next = back_off->last == 0 ? INF_JOIN_ALONE_FIRST : back_off->last * 2;
        back_off->alone = back_off->last = INF_MIN(next, INF_JOIN_ALONE_MAX);
    } else if (outcome == INF_JOIN_SHARED) {
        *back_off = (struct inf_join_back_off){.alone = 0};
    } else if (back_off->alone > 0) {
        back_off->alone--;
    }
}
