// SPDX-License-Identifier: Apache-2.0
// Finds samples in the Prometheus text format, which has one sample in each line.
#include "tests/support/daemon/metrics_text.h"

#include <stdlib.h>
#include <string.h>

double inf_metrics_text_sum(const char *text, const char *name, const char *part)
{
    double total = 0;
    size_t length = strlen(name);
    for (const char *line = text; *line != '\0'; line = strchr(line, '\n') + 1) {
        const char *end = strchr(line, '\n');
        const char *found = strstr(line, part);
        if (strncmp(line, name, length) != 0 || (line[length] != '{' && line[length] != ' ') ||
            found == NULL || found > end)
            continue;
        while (end[-1] != ' ')
            end--;
        total += atof(end);
    }
    return total;
}
