// SPDX-License-Identifier: Apache-2.0
// Parses the setting sequence_lengths: splits a copy of the text in place, so that the names need
// no memory of their own.
#include "daemon/model/sequence_lengths.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *trim_text(char *text)
{
    text += strspn(text, " \t");
    size_t length = strlen(text);
    while (length > 0 && (text[length - 1] == ' ' || text[length - 1] == '\t'))
        text[--length] = '\0';
    return text;
}

// Parses one "NAME=COUNT", which is changed.
static bool parse_length(char *item, struct inf_sequence_lengths *out)
{
    char *equals = strrchr(item, '='), *end;
    if (equals == NULL || out->count == INF_LIMIT_TENSORS)
        return false;
    *equals = '\0';
    char *name = trim_text(item), *number = trim_text(equals + 1);
    unsigned long count = strtoul(number, &end, 10);
    if (*name == '\0' || *number < '0' || *number > '9' || *end != '\0' ||
        count > INF_LIMIT_TENSORS)
        return false;
    out->names[out->count] = name;
    out->counts[out->count++] = (uint32_t)count;
    return true;
}

bool inf_sequence_lengths_parse(const char *text, struct inf_sequence_lengths *out)
{
    out->count = 0;
    if (strlen(text) >= sizeof out->text)
        return false;
    snprintf(out->text, sizeof out->text, "%s", text);
    for (char *item = out->text; *trim_text(item) != '\0';) {
        size_t length = strcspn(item, ",;");
        char *next = item + length + (item[length] != '\0');
        item[length] = '\0';
        if (!parse_length(item, out))
            return false;
        item = next;
    }
    return true;
}

bool inf_sequence_lengths_check(const char *text, char *wanted, size_t size)
{
    struct inf_sequence_lengths lengths;
    if (inf_sequence_lengths_parse(text, &lengths))
        return true;
    snprintf(wanted, size, "INPUT=COUNT, and commas between them, each count at most %u",
             INF_LIMIT_TENSORS);
    return false;
}
