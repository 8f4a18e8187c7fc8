// SPDX-License-Identifier: Apache-2.0
// Parses log levels. A list of pairs PART:LEVEL overrides the level of all parts for some of them.
#include "daemon/config/log_level.h"

#include <string.h>

#include "proto/core/span.h"

// The longest name of a part or a level, in bytes, with the final NUL byte.
#define NAME_BYTES 16

static const struct {
    const char *name;
    enum inf_log_level level;
} level_names[] = {
    {"error", INF_LOG_ERROR}, {"warning", INF_LOG_WARNING}, {"notice", INF_LOG_NOTICE},
    {"info", INF_LOG_INFO},   {"debug", INF_LOG_DEBUG},
};

static const char *const part_names[INF_LOG_PARTS] = {
    [INF_LOG_PART_DAEMON] = "daemon",       [INF_LOG_PART_DEVICE] = "device",
    [INF_LOG_PART_MODEL] = "model",         [INF_LOG_PART_SERVICE] = "service",
    [INF_LOG_PART_SCHEDULER] = "scheduler", [INF_LOG_PART_CONNECTION] = "connection",
    [INF_LOG_PART_ACCESS] = "access",
};

bool inf_log_level_parse(const char *name, enum inf_log_level *out_level)
{
    for (size_t i = 0; i < INF_ARRAY_LENGTH(level_names); i++) {
        if (strcmp(name, level_names[i].name) == 0) {
            *out_level = level_names[i].level;
            return true;
        }
    }
    return false;
}

static bool find_part(const char *name, enum inf_log_part *out_part)
{
    for (int part = 0; part < INF_LOG_PARTS; part++) {
        if (strcmp(name, part_names[part]) == 0) {
            *out_part = (enum inf_log_part)part;
            return true;
        }
    }
    return false;
}

// Copies the word from *at to the next of the characters `ends`, without spaces around it, and
// moves *at to that character. Returns false if the word is too long.
static bool take_word(const char **at, const char *ends, char word[NAME_BYTES])
{
    const char *begin = *at + strspn(*at, " ");
    size_t length = strcspn(begin, ends);
    *at = begin + length;
    while (length > 0 && begin[length - 1] == ' ')
        length--;
    if (length >= NAME_BYTES)
        return false;
    memcpy(word, begin, length);
    word[length] = '\0';
    return true;
}

bool inf_log_levels_parse(const char *text, enum inf_log_level base,
                          enum inf_log_level levels[INF_LOG_PARTS])
{
    for (int part = 0; part < INF_LOG_PARTS; part++)
        levels[part] = base;
    const char *at = text + strspn(text, " ");
    while (*at != '\0') {
        char name[NAME_BYTES];
        char level[NAME_BYTES];
        enum inf_log_part part;
        if (!take_word(&at, ":,;", name) || *at != ':' || !find_part(name, &part))
            return false;
        at++;
        if (!take_word(&at, ":,;", level) || !inf_log_level_parse(level, &levels[part]))
            return false;
        if (*at == ':' || (*at != '\0' && at[1] == '\0'))
            return false;
        at += *at != '\0';
    }
    return true;
}
