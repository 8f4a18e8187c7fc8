// SPDX-License-Identifier: Apache-2.0
// The table of the daemon's flags, and parsing and printing of flags of any list.
#include "daemon/config/flag.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "proto/core/span.h"

enum reach {
    REACH_START,
    REACH_LIVE
};
enum stability {
    STABILITY_PUBLIC,
    STABILITY_INTERNAL
};

const struct inf_flag inf_flags[INF_FLAG_COUNT] = {
#define INF_FLAG(field, kind, initial, least, most, reach, stability, argument_name, help_text,    \
                 word_list)                                                                        \
    [INF_FLAG_ID_##field] = {                                                                      \
        .name = #field,                                                                            \
        .type = INF_FLAG_##kind,                                                                   \
        .offset = offsetof(struct inf_config, field),                                              \
        .fallback = (initial),                                                                     \
        .min = (double)(least),                                                                    \
        .max = (double)(most),                                                                     \
        .live = REACH_##reach == REACH_LIVE,                                                       \
        .internal = STABILITY_##stability == STABILITY_INTERNAL,                                   \
        .argument = (argument_name),                                                               \
        .help = (help_text),                                                                       \
        .words = (word_list),                                                                      \
    },
#include "daemon/config/flags.def"
};

const struct inf_flag_list inf_daemon_flags = {
    .flags = inf_flags,
    .count = INF_FLAG_COUNT,
    .origins_offset = offsetof(struct inf_config, origins),
};

// --- comparing the names of flags ---

// Returns true if two names are equal; '-' equals '_'.
static bool same_name(const char *a, const char *b)
{
    while (*a != '\0' && (*a == '-' ? '_' : *a) == (*b == '-' ? '_' : *b))
        a++, b++;
    return *a == '\0' && *b == '\0';
}

// Returns the Levenshtein distance of two names. For a name longer than INF_FLAG_NAME_CHARS
// returns UINT32_MAX.
static uint32_t edit_distance(const char *a, const char *b)
{
    size_t width = strlen(b);
    if (strlen(a) > INF_FLAG_NAME_CHARS || width > INF_FLAG_NAME_CHARS)
        return UINT32_MAX;
    uint32_t row[INF_FLAG_NAME_CHARS + 1];
    for (uint32_t i = 0; i <= width; i++)
        row[i] = i;
    for (uint32_t i = 0; a[i] != '\0'; i++) {
        uint32_t diagonal = row[0];
        row[0] = i + 1;
        for (uint32_t j = 0; j < width; j++) {
            uint32_t above = row[j + 1];
            uint32_t swapped = diagonal + (a[i] != b[j]);
            row[j + 1] = INF_MIN(swapped, INF_MIN(row[j], above) + 1);
            diagonal = above;
        }
    }
    return row[width];
}

const struct inf_flag *inf_flag_list_find(const struct inf_flag_list *list, const char *name,
                                          const char **nearest)
{
    uint32_t least = UINT32_MAX;
    *nearest = list->flags[0].name;
    for (uint32_t i = 0; i < list->count; i++) {
        if (same_name(name, list->flags[i].name))
            return &list->flags[i];
        uint32_t distance = edit_distance(name, list->flags[i].name);
        if (distance < least) {
            least = distance;
            *nearest = list->flags[i].name;
        }
    }
    return NULL;
}

const struct inf_flag *inf_flag_find(const char *name, const char **nearest)
{
    return inf_flag_list_find(&inf_daemon_flags, name, nearest);
}

// --- parsing and printing the values of flags ---

// Parses decimal digits and at most one suffix K, M or G, which multiplies by a power of 1024.
static bool parse_whole(const char *text, uint64_t *out_number)
{
    if (*text < '0' || *text > '9')
        return false;
    char *end;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    if (errno != 0)
        return false;
    const char *units = "KMG";
    const char *unit = *end != '\0' ? strchr(units, *end) : NULL;
    uint32_t shift = unit != NULL ? (uint32_t)(unit - units + 1) * 10 : 0;
    if (end[unit != NULL] != '\0' || number > UINT64_MAX >> shift)
        return false;
    *out_number = (uint64_t)number << shift;
    return true;
}

static bool parse_real(const char *text, double *out_number)
{
    char *end;
    errno = 0;
    *out_number = strtod(text, &end);
    // Check the characters first, because strtod() also accepts hexadecimal numbers, "inf" and
    // leading space.
    bool plain = text[0] != '\0' && strspn(text, "0123456789.eE+-") == strlen(text);
    return plain && errno == 0 && *end == '\0' && isfinite(*out_number);
}

static bool parse_bool(const char *text, bool *out_value)
{
    static const char *const words[][2] = {
        {"no", "yes"}, {"false", "true"}, {"off", "on"}, {"0", "1"}};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(words); i++) {
        for (int value = 0; value < 2; value++) {
            if (strcmp(text, words[i][value]) == 0) {
                *out_value = value != 0;
                return true;
            }
        }
    }
    return false;
}

static bool is_word(const char *const *words, const char *value)
{
    for (; *words != NULL; words++)
        if (strcmp(*words, value) == 0)
            return true;
    return false;
}

void inf_flag_wanted(const struct inf_flag *flag, char wanted[INF_FLAG_WANTED_SIZE])
{
    switch (flag->type) {
    case INF_FLAG_TEXT:
    case INF_FLAG_LIST:
        snprintf(wanted, INF_FLAG_WANTED_SIZE, "at most %d characters", INF_CONFIG_TEXT - 1);
        break;
    case INF_FLAG_PATH:
        snprintf(wanted, INF_FLAG_WANTED_SIZE, "an absolute path");
        break;
    case INF_FLAG_U32:
    case INF_FLAG_U64:
        snprintf(wanted, INF_FLAG_WANTED_SIZE, "a number from %" PRIu64 " to %" PRIu64,
                 (uint64_t)flag->min, (uint64_t)flag->max);
        break;
    case INF_FLAG_REAL:
        snprintf(wanted, INF_FLAG_WANTED_SIZE, "a number from %g to %g", flag->min, flag->max);
        break;
    case INF_FLAG_BOOL:
    case INF_FLAG_ASK:
        snprintf(wanted, INF_FLAG_WANTED_SIZE, "yes or no");
        break;
    case INF_FLAG_WORD:
        snprintf(wanted, INF_FLAG_WANTED_SIZE, "%s", flag->help);
        break;
    case INF_FLAG_LEVELS:
        snprintf(wanted, INF_FLAG_WANTED_SIZE, "PART:LEVEL,... with the parts " INF_LOG_PART_NAMES);
        break;
    }
}

static bool set_number(void *field, const struct inf_flag *flag, const char *text)
{
    uint64_t number;
    if (!parse_whole(text, &number) || number < (uint64_t)flag->min || number > (uint64_t)flag->max)
        return false;
    if (flag->type == INF_FLAG_U32)
        *(uint32_t *)field = (uint32_t)number;
    else
        *(uint64_t *)field = number;
    return true;
}

static bool set_real(void *field, const struct inf_flag *flag, const char *text)
{
    double number;
    if (!parse_real(text, &number) || number < flag->min || number > flag->max)
        return false;
    *(double *)field = number;
    return true;
}

static bool set_text(void *field, const struct inf_flag *flag, const char *text)
{
    size_t length = strlen(text);
    enum inf_log_level levels[INF_LOG_PARTS];
    if ((flag->type == INF_FLAG_WORD && !is_word(flag->words, text)) || length >= INF_CONFIG_TEXT ||
        (flag->type == INF_FLAG_LEVELS && !inf_log_levels_parse(text, INF_LOG_INFO, levels)) ||
        (flag->type == INF_FLAG_PATH && length > 0 && text[0] != '/'))
        return false;
    memcpy(field, text, length + 1);
    return true;
}

// Appends a text to the value of a list flag if the old value has the same origin (the same file,
// for example); otherwise replaces the list.
static bool add_text(char *field, const char *text, bool same_origin)
{
    size_t used = same_origin ? strlen(field) : 0, length = strlen(text);
    const char *between = used > 0 ? "; " : "";
    if (used + strlen(between) + length >= INF_CONFIG_TEXT)
        return false;
    snprintf(field + used, INF_CONFIG_TEXT - used, "%s%s", between, text);
    return true;
}

static bool set_value(void *field, const struct inf_flag *flag, const char *text, bool same_origin)
{
    switch (flag->type) {
    case INF_FLAG_TEXT:
    case INF_FLAG_PATH:
    case INF_FLAG_WORD:
    case INF_FLAG_LEVELS:
        return set_text(field, flag, text);
    case INF_FLAG_LIST:
        return add_text(field, text, same_origin);
    case INF_FLAG_U32:
    case INF_FLAG_U64:
        return set_number(field, flag, text);
    case INF_FLAG_REAL:
        return set_real(field, flag, text);
    case INF_FLAG_BOOL:
        return parse_bool(text, field);
    case INF_FLAG_ASK:
        *(bool *)field = true;
        return true;
    }
    return false;
}

bool inf_flag_list_set(const struct inf_flag_list *list, void *settings,
                       const struct inf_flag *flag, const char *text, enum inf_origin origin,
                       char wanted[INF_FLAG_WANTED_SIZE])
{
    uint8_t *known = (uint8_t *)settings + list->origins_offset + (flag - list->flags);
    if (flag->check != NULL && !flag->check(text, wanted, INF_FLAG_WANTED_SIZE))
        return false;
    bool sound = set_value((char *)settings + flag->offset, flag, text, *known == origin);
    if (sound)
        *known = (uint8_t)origin;
    else if (flag->type == INF_FLAG_PATH && strlen(text) >= INF_CONFIG_TEXT)
        snprintf(wanted, INF_FLAG_WANTED_SIZE, "at most %d characters", INF_CONFIG_TEXT - 1);
    else
        inf_flag_wanted(flag, wanted);
    return sound;
}

void inf_flag_list_reset(const struct inf_flag_list *list, void *settings)
{
    char wanted[INF_FLAG_WANTED_SIZE];
    for (uint32_t i = 0; i < list->count; i++)
        if (list->flags[i].fallback != NULL &&
            !inf_flag_list_set(list, settings, &list->flags[i], list->flags[i].fallback,
                               INF_ORIGIN_DEFAULT, wanted))
            abort(); // a default in the list of flags is not valid, which is a bug
}

bool inf_flag_parse(struct inf_config *config, const struct inf_flag *flag, const char *text,
                    enum inf_origin origin, char wanted[INF_FLAG_WANTED_SIZE])
{
    return inf_flag_list_set(&inf_daemon_flags, config, flag, text, origin, wanted);
}

const char *inf_flag_print(const void *settings, const struct inf_flag *flag,
                           char text[INF_CONFIG_TEXT])
{
    const void *field = (const char *)settings + flag->offset;
    switch (flag->type) {
    case INF_FLAG_TEXT:
    case INF_FLAG_PATH:
    case INF_FLAG_WORD:
    case INF_FLAG_LEVELS:
    case INF_FLAG_LIST:
        snprintf(text, INF_CONFIG_TEXT, "%s", (const char *)field);
        break;
    case INF_FLAG_U32:
        snprintf(text, INF_CONFIG_TEXT, "%" PRIu32, *(const uint32_t *)field);
        break;
    case INF_FLAG_U64:
        snprintf(text, INF_CONFIG_TEXT, "%" PRIu64, *(const uint64_t *)field);
        break;
    case INF_FLAG_REAL:
        snprintf(text, INF_CONFIG_TEXT, "%g", *(const double *)field);
        break;
    case INF_FLAG_BOOL:
    case INF_FLAG_ASK:
        snprintf(text, INF_CONFIG_TEXT, "%s", *(const bool *)field ? "yes" : "no");
        break;
    }
    return text;
}

// --- describing where a value comes from and what is allowed ---

enum inf_origin inf_flag_list_origin(const struct inf_flag_list *list, const void *settings,
                                     const struct inf_flag *flag)
{
    const uint8_t *origins = (const uint8_t *)settings + list->origins_offset;
    return (enum inf_origin)origins[flag - list->flags];
}

enum inf_origin inf_flag_origin(const struct inf_config *config, const struct inf_flag *flag)
{
    return inf_flag_list_origin(&inf_daemon_flags, config, flag);
}

const char *inf_origin_name(enum inf_origin origin)
{
    static const char *const names[] = {
        [INF_ORIGIN_DEFAULT] = "default",     [INF_ORIGIN_HOST] = "facts",
        [INF_ORIGIN_DERIVED] = "derived",     [INF_ORIGIN_FILE] = "file",
        [INF_ORIGIN_DROP_IN] = "drop-in",     [INF_ORIGIN_ENVIRONMENT] = "environment",
        [INF_ORIGIN_ARGUMENT] = "argument",   [INF_ORIGIN_MODEL] = "model",
        [INF_ORIGIN_PERSISTED] = "persisted", [INF_ORIGIN_ADMIN] = "admin",
    };
    return (size_t)origin < INF_ARRAY_LENGTH(names) ? names[origin] : "unknown";
}

const char *inf_flag_type_name(enum inf_flag_type type)
{
    static const char *const names[] = {
        [INF_FLAG_TEXT] = "string",   [INF_FLAG_PATH] = "string", [INF_FLAG_U32] = "int",
        [INF_FLAG_U64] = "int",       [INF_FLAG_REAL] = "real",   [INF_FLAG_BOOL] = "bool",
        [INF_FLAG_WORD] = "enum",     [INF_FLAG_ASK] = "bool",    [INF_FLAG_LIST] = "string",
        [INF_FLAG_LEVELS] = "string",
    };
    return (size_t)type < INF_ARRAY_LENGTH(names) ? names[type] : "unknown";
}
