// SPDX-License-Identifier: Apache-2.0
// A line on the terminal that tells how far something is; nothing where stderr is no terminal.
#ifndef INF_CLIENT_INFERCTL_TEXT_PROGRESS_H
#define INF_CLIENT_INFERCTL_TEXT_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

// One thing under way.
struct progress {
    const char *what;
    bool wanted;       // stderr is a terminal
    uint64_t shown_ns; // when the line was last written; 0: never
};

// Starts to tell about `what`.
struct progress progress_start(const char *what);

// Shows "WHAT: STAGE 40 %" in place of what was shown before.
void progress_show(struct progress *progress, const char *stage, unsigned percent);

// The same, unless something was shown less than a tenth of a second ago: for what changes fast.
void progress_tick(struct progress *progress, const char *stage, unsigned percent);

// Clears the line.
void progress_end(struct progress *progress);

#endif
