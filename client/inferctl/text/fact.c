// SPDX-License-Identifier: Apache-2.0
// Reads facts from the daemon and finds one by its name.
#include "client/inferctl/text/fact.h"

#include <stdio.h>
#include <string.h>

const char *fact_find(const inferd_environment *environment, const char *group, const char *name,
                      const char *what)
{
    char wanted[sizeof environment->facts[0].name];
    snprintf(wanted, sizeof wanted, "%s.%s.%s", group, name, what);
    for (size_t i = 0; i < environment->fact_count; i++)
        if (strcmp(environment->facts[i].name, wanted) == 0)
            return environment->facts[i].value;
    return "";
}

int fact_show(const struct context *context,
              void (*print)(const inferd_environment *environment, enum output_format format))
{
    inferd_client *client;
    int code = command_connect(context, false, &client);
    if (code != EXIT_OK)
        return code;
    struct inferd_error err;
    inferd_environment *environment = NULL;
    if (inferd_environment_read(client, &environment, &err) != 0)
        code = command_failed(&err);
    else
        print(environment, context->format);
    inferd_environment_free(environment);
    inferd_close(client);
    return code;
}
