// SPDX-License-Identifier: Apache-2.0
// Finds samples in the Prometheus text format, which has one sample in each line. AddressSanitizer
// with strict_string_checks reads a whole string at each call of strchr() or strncmp(), so lines
// are found and compared by their lengths.
#include "tests/support/daemon/metrics_text.h"

#include <stdlib.h>
#include <string.h>

const char *inf_metrics_text_next(const char *line)
{
    while (*line != '\n' && *line != '\0')
        line++;
    return *line == '\n' ? line + 1 : line;
}

bool inf_metrics_text_begins(const char *line, const char *start)
{
    while (*start != '\0' && *line == *start) {
        line++;
        start++;
    }
    return *start == '\0';
}

double inf_metrics_text_value(const char *next)
{
    const char *value = next - 1;
    while (value[-1] != ' ')
        value--;
    char number[64] = "";
    for (size_t i = 0; i + 1 < sizeof number && value + i < next - 1; i++)
        number[i] = value[i];
    return atof(number);
}

double inf_metrics_text_sum(const char *text, const char *name, const char *part)
{
    double total = 0;
    size_t length = strlen(name), part_length = strlen(part);
    for (const char *line = text, *next; *line != '\0'; line = next) {
        next = inf_metrics_text_next(line);
        if (inf_metrics_text_begins(line, name) && (line[length] == '{' || line[length] == ' ') &&
            memmem(line, (size_t)(next - line), part, part_length) != NULL)
            total += inf_metrics_text_value(next);
    }
    return total;
}
