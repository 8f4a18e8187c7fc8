// SPDX-License-Identifier: Apache-2.0
// Counts log lines by kind in a table of fixed size. A kind is the beginning of a text of the
// daemon, which no client can choose, and only warnings and errors are counted. So there are few
// kinds, and a linear search is fast enough.
#include "daemon/system/log_limit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

// Copies the kind of a line: its words before the first one that contains '=', or up to and
// including the first one that ends with ':'.
static void copy_kind(const char *line, char kind[INF_LOG_LIMIT_KIND_CHARS + 1])
{
    size_t length = 0;
    for (const char *at = line; *at != '\0';) {
        size_t word = strcspn(at, " ");
        if (memchr(at, '=', word) != NULL || (size_t)(at - line) + word > INF_LOG_LIMIT_KIND_CHARS)
            break;
        length = (size_t)(at - line) + word;
        if (at[word - (word > 0)] == ':')
            break;
        at += word + strspn(at + word, " ");
    }
    memcpy(kind, line, length);
    kind[length] = '\0';
}

// Returns the entry of the kind, which is added if it is new; NULL if the table is full.
static struct inf_log_kind *find_kind(struct inf_log_limit *limit, const char *name)
{
    for (uint32_t i = 0; i < limit->used; i++)
        if (strcmp(limit->kinds[i].name, name) == 0)
            return &limit->kinds[i];
    if (limit->used == INF_LOG_LIMIT_KINDS)
        return NULL;
    struct inf_log_kind *kind = &limit->kinds[limit->used++];
    snprintf(kind->name, sizeof kind->name, "%s", name);
    return kind;
}

bool inf_log_limit_admit(struct inf_log_limit *limit, const char *line, uint32_t lines_max,
                         uint64_t now_ns)
{
    char name[INF_LOG_LIMIT_KIND_CHARS + 1];
    copy_kind(line, name);
    if (lines_max == 0 || name[0] == '\0')
        return true;
    struct inf_log_kind *kind = find_kind(limit, name);
    if (kind == NULL)
        return true;
    if (kind->lines == 0 || now_ns - kind->window_ns >= INF_LOG_LIMIT_WINDOW_NS) {
        kind->window_ns = now_ns;
        kind->lines = 0;
    }
    if (kind->lines < lines_max) {
        kind->lines++;
        return true;
    }
    kind->left_out++;
    limit->left_out++;
    return false;
}

bool inf_log_limit_next_report(struct inf_log_limit *limit, bool all, uint64_t now_ns, char *report,
                               size_t size)
{
    for (uint32_t i = 0; i < limit->used && limit->left_out > 0; i++) {
        struct inf_log_kind *kind = &limit->kinds[i];
        bool over = now_ns - kind->window_ns >= INF_LOG_LIMIT_WINDOW_NS;
        if (kind->left_out == 0 || !(over || all))
            continue;
        snprintf(report, size, "log lines left out count=%" PRIu64 " kind=\"%s\"", kind->left_out,
                 kind->name);
        limit->left_out -= kind->left_out;
        kind->left_out = 0;
        return true;
    }
    return false;
}
