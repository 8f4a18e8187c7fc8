// SPDX-License-Identifier: Apache-2.0
#include "client/inferctl/progress.h"

#include <stdio.h>
#include <unistd.h>

void progress_show(const char *what, const char *stage, unsigned percent)
{
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r\033[K%s: %s %u %%", what, stage, percent);
}

void progress_clear(void)
{
    if (isatty(STDERR_FILENO))
        fputs("\r\033[K", stderr);
}
