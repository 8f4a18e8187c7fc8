// SPDX-License-Identifier: Apache-2.0
// Collects the unsupported operators and classes of a model, for an error text of limited length
// and for a complete report.
#include "backends/import/common/missing.h"

#include <stdlib.h>
#include <string.h>

#include "proto/core/limits.h"

// The end of the text has this many bytes for a note that says how many items were omitted.
#define LAST_WORDS 32

void inf_missing_add(struct inf_missing *missing, const char *item)
{
    size_t room = INF_MISSING_TEXT_SIZE - LAST_WORDS - missing->used;
    if (missing->report != NULL && missing->count < INF_LIMIT_REPORTED_OPERATORS)
        fprintf(missing->report, "%s\n", item);
    missing->count++;
    if (missing->left_out > 0 || strlen(item) + strlen(missing->separator) >= room)
        missing->left_out++;
    else
        missing->used +=
            (size_t)snprintf(missing->text + missing->used, INF_MISSING_TEXT_SIZE - missing->used,
                             "%s%s", missing->used > 0 ? missing->separator : "", item);
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void inf_missing_add_names(struct inf_missing *missing, const char **names, size_t count,
                           const char *unit)
{
    if (count > 0)
        qsort(names, count, sizeof *names, compare_texts);
    for (size_t i = 0, next; i < count; i = next) {
        char item[128];
        for (next = i + 1; next < count && strcmp(names[i], names[next]) == 0;)
            next++;
        snprintf(item, sizeof item, "%.80s (%zu %s%s)", names[i], next - i, unit,
                 next - i > 1 ? "s" : "");
        inf_missing_add(missing, item);
    }
}

enum inf_code inf_missing_check(struct inf_missing *missing, const char *what,
                                struct inf_error *err)
{
    if (missing->count == 0)
        return INF_OK;
    if (missing->report != NULL && missing->count > INF_LIMIT_REPORTED_OPERATORS)
        fprintf(missing->report, "and %u more\n", missing->count - INF_LIMIT_REPORTED_OPERATORS);
    if (missing->left_out > 0)
        snprintf(missing->text + missing->used, INF_MISSING_TEXT_SIZE - missing->used,
                 "%sand %zu more", missing->separator, missing->left_out);
    if (missing->hint != NULL)
        return inf_fail_reason(err, INF_UNSUPPORTED, INF_REASON_OPERATOR,
                               "%s not supported: %s (%s)", what, missing->text, missing->hint);
    return inf_fail_reason(err, INF_UNSUPPORTED, INF_REASON_OPERATOR, "%s not supported: %s", what,
                           missing->text);
}
