// SPDX-License-Identifier: Apache-2.0
// Records what the daemon does, for a picture of it on a time axis: requests with the times of
// their phases, and what the loop was busy with. One reader starts the recording and takes the
// entries; without a reader nothing is recorded and no memory is held. Only the loop uses it.
#ifndef INF_DAEMON_OBSERVE_TIMELINE_H
#define INF_DAEMON_OBSERVE_TIMELINE_H

#include "backends/base/role.h"
#include "daemon/observe/request_record.h"

// The most entries that wait for the reader; later ones are counted as lost.
#define INF_TIMELINE_ENTRIES 16384u
// The recording ends if the reader takes no entries for this time.
#define INF_TIMELINE_LEASE_NS ((uint64_t)2 * 1000000000)

// What the loop does in a slice of time.
enum inf_timeline_slice {
    INF_TIMELINE_READ,   // reads from a client and handles its requests
    INF_TIMELINE_FINISH, // takes requests that workers have finished, and answers them
};

struct inf_timeline_entry {
    bool request; // false: a slice of the loop, of which `slice`, client_id and the first two times
                  // are set
    enum inf_timeline_slice slice;
    bool ran;
    enum inf_code code;
    uint32_t uid, device_index, worker, rows, batch_rows;
    uint64_t client_id, stream_id;
    uint64_t begin_ns, end_ns; // of the slice; or when the request was accepted, and ended
    uint64_t start_ns, run_begin_ns, run_end_ns, done_ns;
    char model[INF_LIMIT_MODEL_NAME + 1];
};

struct inf_timeline {
    uint64_t reader;    // number of the reader's connection; 0: nothing is recorded
    uint64_t expiry_ns; // end of the recording, unless the reader takes entries before
    uint64_t lost;      // entries that found no room since the reader took some
    uint32_t first, count;
    struct inf_timeline_entry *entries; // ring of INF_TIMELINE_ENTRIES; NULL: nothing is recorded
};

// Frees the memory. The timeline can be used again.
void inf_timeline_stop(struct inf_timeline *timeline);

// Starts the recording for this reader, or continues it.
//
// INF_EXISTS     another reader records; the text names its connection.
// INF_EXHAUSTED  no memory.
enum inf_code inf_timeline_start(struct inf_timeline *timeline, uint64_t reader, uint64_t now_ns,
                                 struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Returns whether entries are recorded. Called for every request, so it is cheap.
static inline bool inf_timeline_is_on(const struct inf_timeline *timeline)
{
    return timeline->reader != 0;
}

// Adds an entry. If the reader has not come back in time, ends the recording instead.
void inf_timeline_add(struct inf_timeline *timeline, const struct inf_timeline_entry *entry,
                      uint64_t now_ns) INF_ON_LOOP;

// Takes the oldest entry, which stays valid until the next one is added; NULL if there is none.
const struct inf_timeline_entry *inf_timeline_take(struct inf_timeline *timeline) INF_ON_LOOP;

#endif
