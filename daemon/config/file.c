// SPDX-License-Identifier: Apache-2.0
// The parser of configuration files.
#include "daemon/config/file.h"

#include <errno.h>
#include <string.h>

// The highest number of lines in a file; a longer file is refused.
#define LINES_MAX 10000

static enum inf_code refuse_setting(struct inf_error *err, const struct inf_setting_place *place,
                                    const char *key, const char *value, const char *wanted)
{
    if (place->file == NULL)
        return inf_fail(err, INF_INVALID, "--%s=%s: wanted %s", key, value, wanted);
    if (place->origin == INF_ORIGIN_ENVIRONMENT)
        return inf_fail(err, INF_INVALID, "%s: %s=%s: wanted %s", place->file, key, value, wanted);
    return inf_fail(err, INF_INVALID, "%s:%u: %s = %s: wanted %s", place->file, place->line, key,
                    value, wanted);
}

enum inf_code inf_setting_find(const struct inf_flag_list *list, const struct inf_flag **out_flag,
                               const char *key, const struct inf_setting_place *place,
                               struct inf_error *err)
{
    const char *nearest;
    const struct inf_flag *flag = inf_flag_list_find(list, key, &nearest);
    if (flag != NULL && flag->type == INF_FLAG_ASK && place->file != NULL) {
        nearest = flag->name;
        flag = NULL; // this flag is allowed on the command line only, not in a file
    }
    *out_flag = flag;
    if (flag != NULL)
        return INF_OK;
    if (place->file == NULL)
        return inf_fail(err, INF_INVALID, "--%s: no such option; did you mean --%s?", key, nearest);
    if (place->origin == INF_ORIGIN_ENVIRONMENT)
        return inf_fail(err, INF_INVALID, "%s: '%s' is no setting; did you mean '%s'?", place->file,
                        key, nearest);
    return inf_fail(err, INF_INVALID, "%s:%u: '%s' is no setting; did you mean '%s'?", place->file,
                    place->line, key, nearest);
}

enum inf_code inf_setting_set(const struct inf_flag_list *list, void *settings,
                              const struct inf_flag *flag, const char *value,
                              const struct inf_setting_place *place, struct inf_error *err)
{
    char wanted[INF_FLAG_WANTED_SIZE];
    if (inf_flag_list_set(list, settings, flag, value, place->origin, wanted))
        return INF_OK;
    return refuse_setting(err, place, flag->name, value, wanted);
}

// --- reading the lines of a configuration file ---

char *inf_setting_trim(char *text)
{
    text += strspn(text, " \t\r\n");
    size_t length = strlen(text);
    while (length > 0 && strchr(" \t\r\n", text[length - 1]) != NULL)
        length--;
    text[length] = '\0';
    return text;
}

static enum inf_code read_line(const struct inf_flag_list *list, void *settings, char *line,
                               const struct inf_setting_place *place, struct inf_error *err)
{
    char *key = inf_setting_trim(line);
    if (key[0] == '\0' || key[0] == '#')
        return INF_OK;
    char *equals = strchr(key, '=');
    if (equals == NULL)
        return inf_fail(err, INF_INVALID, "%s:%u: '%s': wanted key = value", place->file,
                        place->line, key);
    *equals = '\0';
    key = inf_setting_trim(key);
    const struct inf_flag *flag = NULL;
    INF_TRY(inf_setting_find(list, &flag, key, place, err));
    return inf_setting_set(list, settings, flag, inf_setting_trim(equals + 1), place, err);
}

enum inf_code inf_settings_read(const struct inf_flag_list *list, void *settings, FILE *stream,
                                struct inf_setting_place place, struct inf_error *err)
{
    char line[INF_SETTING_LINE_CHARS];
    while (fgets(line, sizeof line, stream) != NULL) {
        place.line++;
        size_t length = strlen(line);
        bool whole = length > 0 && line[length - 1] == '\n';
        if (place.line > LINES_MAX)
            return inf_fail(err, INF_INVALID, "%s: more than %d lines", place.file, LINES_MAX);
        // fgets() reads past a NUL byte, but strlen() stops there, so a line with a NUL byte looks
        // like a line that is too long for the buffer.
        if (!whole && !feof(stream))
            return inf_fail(err, INF_INVALID,
                            "%s:%u: longer than %d characters, or with a NUL byte", place.file,
                            place.line, INF_SETTING_LINE_CHARS - 2);
        INF_TRY(read_line(list, settings, line, &place, err));
    }
    if (ferror(stream))
        return inf_fail(err, INF_INVALID, "%s: %s", place.file, strerror(errno));
    return INF_OK;
}
