// SPDX-License-Identifier: Apache-2.0
// A progress line on the terminal. If stderr is not a terminal, nothing is printed.
#ifndef INF_CLIENT_INFERCTL_TEXT_PROGRESS_H
#define INF_CLIENT_INFERCTL_TEXT_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

// The progress of one activity, such as loading a model, which is shown as a line on the terminal.
struct progress {
    const char *what;
    bool wanted;       // true: stderr is a terminal, so the line is printed
    uint64_t shown_ns; // when the line was last written; 0: never
};

// Starts to show the progress of the activity `what`.
struct progress progress_start(const char *what);

// Replaces the progress line on the terminal by "WHAT: STAGE 40 %".
void progress_show(struct progress *progress, const char *stage, unsigned percent);

// Replaces the progress line as progress_show() does, but drops calls that come less than 100 ms
// after the last update.
void progress_tick(struct progress *progress, const char *stage, unsigned percent);

// Clears the progress line.
void progress_end(struct progress *progress);

#endif
