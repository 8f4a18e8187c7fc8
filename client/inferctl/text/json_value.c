// SPDX-License-Identifier: Apache-2.0
// Makes valid JSON values from any input: text of the daemon may not be UTF-8, and numbers may not
// be finite.
#include "client/inferctl/text/json_value.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/inferctl/cli/command.h"

void *json_value_must(void *memory)
{
    if (memory == NULL)
        exit(command_say(EXIT_FAILED, "no memory"));
    return memory;
}

json_t *json_value_real(double number)
{
    return json_value_must(isfinite(number) ? json_real(number) : json_null());
}

json_t *json_value_whole(int64_t number)
{
    return json_value_must(json_integer(number));
}

json_t *json_value_text(const char *text)
{
    json_t *json = json_string(text);
    if (json != NULL)
        return json;
    // The text is not UTF-8, so replace all bytes that are not ASCII.
    char *plain = json_value_must(strdup(text));
    for (char *at = plain; *at != '\0'; at++)
        *at = (*at & 0x80) != 0 ? '?' : *at;
    json = json_value_must(json_string(plain));
    free(plain);
    return json;
}

void json_value_print(json_t *value)
{
    json_dumpf(value, stdout, JSON_INDENT(2) | JSON_ENCODE_ANY);
    putchar('\n');
    json_decref(value);
}
