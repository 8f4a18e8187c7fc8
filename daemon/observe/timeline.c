// SPDX-License-Identifier: Apache-2.0
// A ring of entries, which is allocated only while a reader takes entries from it. The reader asks
// repeatedly, and the recording ends when the reader stops asking.
#include "daemon/observe/timeline.h"

#include <inttypes.h>
#include <stdlib.h>

void inf_timeline_stop(struct inf_timeline *timeline)
{
    free(timeline->entries);
    *timeline = (struct inf_timeline){.reader = 0};
}

enum inf_code inf_timeline_start(struct inf_timeline *timeline, uint64_t reader, uint64_t now_ns,
                                 struct inf_error *err)
{
    if (timeline->reader != 0 && timeline->reader != reader && now_ns < timeline->expiry_ns)
        return inf_fail(err, INF_EXISTS, "client %" PRIu64 " records the timeline: one can",
                        timeline->reader);
    if (timeline->reader != reader)
        inf_timeline_stop(timeline);
    if (timeline->entries == NULL)
        timeline->entries = calloc(INF_TIMELINE_ENTRIES, sizeof *timeline->entries);
    if (timeline->entries == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "no memory for the timeline");
    timeline->reader = reader;
    timeline->expiry_ns = now_ns + INF_TIMELINE_LEASE_NS;
    return INF_OK;
}

void inf_timeline_add(struct inf_timeline *timeline, const struct inf_timeline_entry *entry,
                      uint64_t now_ns)
{
    if (timeline->reader == 0)
        return;
    if (now_ns >= timeline->expiry_ns) {
        inf_timeline_stop(timeline);
        return;
    }
    if (timeline->count == INF_TIMELINE_ENTRIES) {
        timeline->lost++;
        return;
    }
    timeline->entries[(timeline->first + timeline->count++) % INF_TIMELINE_ENTRIES] = *entry;
}

const struct inf_timeline_entry *inf_timeline_take(struct inf_timeline *timeline)
{
    if (timeline->count == 0)
        return NULL;
    const struct inf_timeline_entry *entry = &timeline->entries[timeline->first];
    timeline->first = (timeline->first + 1) % INF_TIMELINE_ENTRIES;
    timeline->count--;
    return entry;
}
