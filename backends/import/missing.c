// SPDX-License-Identifier: Apache-2.0
#include "backends/import/missing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void inf_missing_print(const char **names, size_t count, const char *unit,
                       char text[INF_MISSING_TEXT_SIZE])
{
    size_t used = 0, left_out = 0;
    text[0] = '\0';
    qsort(names, count, sizeof *names, compare_texts);
    for (size_t i = 0, next; i < count; i = next) {
        for (next = i + 1; next < count && strcmp(names[i], names[next]) == 0;)
            next++;
        char item[128];
        int length = snprintf(item, sizeof item, "%s%.80s (%zu %s%s)", i > 0 ? ", " : "", names[i],
                              next - i, unit, next - i > 1 ? "s" : "");
        // Room stays for the last line of all.
        if (left_out > 0 || used + (size_t)length + 32 > INF_MISSING_TEXT_SIZE) {
            left_out++;
            continue;
        }
        memcpy(text + used, item, (size_t)length + 1);
        used += (size_t)length;
    }
    if (left_out > 0)
        snprintf(text + used, INF_MISSING_TEXT_SIZE - used, " and %zu more", left_out);
}
