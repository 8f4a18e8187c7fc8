// SPDX-License-Identifier: Apache-2.0
// Reads the daemon's report about memory.
#include "client/inferctl/cli/memory_use.h"

#include <jansson.h>
#include <stdlib.h>

static uint64_t read_number(const json_t *report, const char *key)
{
    json_int_t number = json_integer_value(json_object_get(report, key));
    return number > 0 ? (uint64_t)number : 0;
}

struct memory_use memory_use_read(inferd_client *client)
{
    struct inferd_error err;
    struct memory_use use = {0};
    char *text = NULL;
    size_t size = 0;
    if (inferd_report(client, "memory", &text, &size, &err) != 0)
        return use;
    json_t *report = json_loadb(text, size, 0, NULL);
    use.used_bytes = read_number(report, "used_bytes");
    use.limit_bytes = read_number(report, "limit_bytes");
    json_decref(report);
    free(text);
    return use;
}
