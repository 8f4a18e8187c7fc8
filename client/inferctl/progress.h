// SPDX-License-Identifier: Apache-2.0
// A line on the terminal that tells how far something is; nothing where stderr is no terminal.
#ifndef INF_CLIENT_INFERCTL_PROGRESS_H
#define INF_CLIENT_INFERCTL_PROGRESS_H

// Shows "WHAT: STAGE 40 %" in place of what was shown before.
void progress_show(const char *what, const char *stage, unsigned percent);

// Clears the line.
void progress_clear(void);

#endif
