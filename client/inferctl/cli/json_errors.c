// SPDX-License-Identifier: Apache-2.0
// Replaces stderr by a stream in memory while a verb runs. Every message goes through stderr, so
// that no function which prints one needs to know the output format.
#include "client/inferctl/cli/json_errors.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

void json_errors_begin(struct json_errors *errors)
{
    errors->memory = open_memstream(&errors->text, &errors->size);
    if (errors->memory == NULL)
        return;
    errors->before = stderr;
    stderr = errors->memory;
}

// Removes the prefix "inferctl: " of each line and the last line end, in place.
static void strip_prefixes(char *text)
{
    static const char prefix[] = "inferctl: ";
    size_t length = strlen(prefix);
    char *to = text;
    for (const char *from = text; *from != '\0';) {
        if (strncmp(from, prefix, length) == 0)
            from += length;
        size_t line = strcspn(from, "\n");
        line += from[line] == '\n';
        memmove(to, from, line);
        to += line;
        from += line;
    }
    if (to > text && to[-1] == '\n')
        to--;
    *to = '\0';
}

void json_errors_end(struct json_errors *errors, int exit_code)
{
    if (errors->before == NULL)
        return;
    stderr = errors->before;
    if (fclose(errors->memory) == 0 && errors->size > 0) {
        strip_prefixes(errors->text);
        json_t *error = json_pack("{s:s, s:i}", "error", errors->text, "exit_code", exit_code);
        // If the text is not UTF-8, it cannot be JSON.
        if (error == NULL || json_dumpf(error, stderr, JSON_INDENT(2)) != 0)
            fputs(errors->text, stderr);
        fputc('\n', stderr);
        json_decref(error);
    }
    free(errors->text);
    *errors = (struct json_errors){0};
}
