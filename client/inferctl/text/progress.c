// SPDX-License-Identifier: Apache-2.0
// A progress line that is rewritten in place with terminal escape sequences.
#include "client/inferctl/text/progress.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define TICK_NS 100000000u

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

struct progress progress_start(const char *what)
{
    return (struct progress){.what = what, .wanted = isatty(STDERR_FILENO) == 1};
}

void progress_show(struct progress *progress, const char *stage, unsigned percent)
{
    if (!progress->wanted)
        return;
    // Truncate the text so that it never wraps, because only one line can be cleared.
    fprintf(stderr, "\r\033[K%.40s: %.20s %u %%", progress->what, stage, percent);
    progress->shown_ns = now_ns();
}

void progress_tick(struct progress *progress, const char *stage, unsigned percent)
{
    if (progress->wanted && now_ns() - progress->shown_ns >= TICK_NS)
        progress_show(progress, stage, percent);
}

void progress_end(struct progress *progress)
{
    if (progress->shown_ns != 0)
        fputs("\r\033[K", stderr);
    progress->shown_ns = 0;
}
