// SPDX-License-Identifier: Apache-2.0
// Limits how many log lines of one kind are written in a minute, and counts the lines that were
// left out. The kind of a line is its beginning: the words before the first "key=value", or up to
// the first word that ends with ':'.
#ifndef INF_DAEMON_SYSTEM_LOG_LIMIT_H
#define INF_DAEMON_SYSTEM_LOG_LIMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The most kinds that are counted at the same time; the daemon has fewer. Lines of further kinds
// are not limited.
#define INF_LOG_LIMIT_KINDS 128u
// The most characters of a kind that are compared.
#define INF_LOG_LIMIT_KIND_CHARS 47u
// The length of a window, in which the lines of a kind are counted before the count starts again.
#define INF_LOG_LIMIT_WINDOW_NS ((uint64_t)60 * 1000000000)

struct inf_log_kind {
    char name[INF_LOG_LIMIT_KIND_CHARS + 1]; // "": the entry is free
    uint64_t window_ns;                      // time of the first line of the present window
    uint32_t lines;                          // lines of the window that were admitted
    uint64_t left_out;                       // lines that were left out and not reported yet
};

// Zero-initialised by the owner, who also serialises all calls.
struct inf_log_limit {
    uint32_t used;     // entries of `kinds` that have a name
    uint64_t left_out; // sum of `left_out` over all elements of `kinds`
    struct inf_log_kind kinds[INF_LOG_LIMIT_KINDS];
};

// Returns whether a line may be written: true for the first `lines_max` lines of its kind in a
// window. If `lines_max` is 0, there is no limit.
bool inf_log_limit_admit(struct inf_log_limit *limit, const char *line, uint32_t lines_max,
                         uint64_t now_ns);

// Writes to `report` a line about a kind of which lines were left out and whose window is over, and
// resets its count. With `all`, the window need not be over. Returns false if there is none. The
// caller repeats the call until it returns false.
bool inf_log_limit_next_report(struct inf_log_limit *limit, bool all, uint64_t now_ns, char *report,
                               size_t size);

#endif
