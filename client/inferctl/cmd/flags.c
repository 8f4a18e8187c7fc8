// SPDX-License-Identifier: Apache-2.0
// inferctl env prints what the daemon found out about the machine. inferctl flags prints or changes
// the daemon's flags.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/inferctl/cli/command.h"
#include "client/inferctl/text/fact.h"
#include "client/inferctl/text/table.h"

// Number of columns of the short form: name, value, origin and change.
#define SHORT_COLUMNS 4

static void print_facts(const inferd_environment *environment, enum output_format format)
{
    static const char *const columns[] = {"fact", "value"};
    struct table *table = table_create(columns, sizeof columns / sizeof columns[0]);
    for (size_t i = 0; i < environment->fact_count; i++) {
        table_text(table, environment->facts[i].name);
        table_text(table, environment->facts[i].value);
    }
    table_print(table, format, false);
}

// Prints all flags of the daemon. If `name` is not NULL, prints only the flag with this name. Lines
// for people have the first columns only, so that they fit a terminal; --long shows all.
static void print_flags(const inferd_environment *environment, const char *name, bool all_columns,
                        enum output_format format)
{
    static const char *const columns[] = {"name", "value",     "origin", "change", "default",
                                          "type", "stability", "wanted", "help"};
    bool every = all_columns || format == OUTPUT_JSON;
    struct table *table =
        table_create(columns, every ? sizeof columns / sizeof columns[0] : SHORT_COLUMNS);
    for (size_t i = 0; i < environment->flag_count; i++) {
        const inferd_flag *flag = &environment->flags[i];
        if (name != NULL && strcmp(name, flag->name) != 0)
            continue;
        table_text(table, flag->name);
        table_text(table, flag->value);
        table_text(table, flag->origin);
        table_text(table, flag->live ? "live" : "restart");
        if (!every)
            continue;
        table_text(table, flag->default_value);
        table_text(table, flag->type);
        table_text(table, flag->stability);
        table_text(table, flag->allowed);
        table_text(table, flag->help);
    }
    table_print(table, format, false);
}

static void print_short_flags(const inferd_environment *environment, enum output_format format)
{
    print_flags(environment, NULL, false, format);
}

static void print_long_flags(const inferd_environment *environment, enum output_format format)
{
    print_flags(environment, NULL, true, format);
}

static void print_settings(const inferd_placement *placement, enum output_format format)
{
    static const char *const columns[] = {"name", "value", "default", "origin", "wanted"};
    struct table *table = table_create(columns, sizeof columns / sizeof columns[0]);
    for (size_t i = 0; i < placement->setting_count; i++) {
        const inferd_setting *setting = &placement->settings[i];
        table_text(table, setting->name);
        table_text(table, setting->value);
        table_text(table, setting->default_value);
        table_text(table, setting->origin);
        table_text(table, setting->allowed);
    }
    table_print(table, format, false);
}

static int show_model(const struct context *context, const char *model)
{
    inferd_client *client;
    int code = command_connect(context, false, &client);
    if (code != EXIT_OK)
        return code;
    struct inferd_error err;
    inferd_placement *placement = NULL;
    if (inferd_explain(client, model, NULL, &placement, &err) != 0)
        code = command_failed(&err);
    else
        print_settings(placement, context->format);
    inferd_placement_free(placement);
    inferd_close(client);
    return code;
}

static int run_env(const struct context *context, const struct arguments *arguments)
{
    (void)arguments;
    return fact_show(context, print_facts);
}

enum {
    OPTION_PERSIST = 0x100
};

// Changes a flag. If `persist` is set, the value also holds after a restart; `value` NULL: the flag
// gets its configured value again.
static int set_flag(const struct context *context, const char *name, const char *value,
                    bool persist)
{
    inferd_client *client;
    int code = command_connect(context, true, &client);
    if (code != EXIT_OK)
        return code;
    struct inferd_error err;
    inferd_environment *environment = NULL;
    if ((persist ? inferd_flag_persist : inferd_flag_set)(client, name, value, &err) != 0 ||
        inferd_environment_read(client, &environment, &err) != 0)
        code = command_failed(&err);
    else
        print_flags(environment, name, false, context->format);
    inferd_environment_free(environment);
    inferd_close(client);
    return code;
}

static int run_flags(const struct context *context, const struct arguments *arguments)
{
    const char *const *names = arguments->names;
    const char *model = NULL;
    bool all_columns = false, persist = false;
    for (size_t i = 0; i < arguments->option_count; i++) {
        if (arguments->options[i].option == 'M')
            model = arguments->options[i].value;
        else if (arguments->options[i].option == OPTION_PERSIST)
            persist = true;
        else
            all_columns = true;
    }
    if (model != NULL && names[0] != NULL)
        return command_say(EXIT_USAGE, "flags --model: a model's settings are in its model.conf");
    if (model != NULL)
        return show_model(context, model);
    if (names[0] == NULL)
        return fact_show(context, all_columns ? print_long_flags : print_short_flags);
    if (strcmp(names[0], "reset") == 0 && names[1] != NULL && names[2] == NULL)
        return set_flag(context, names[1], NULL, true);
    if (strcmp(names[0], "set") != 0)
        return command_say(EXIT_USAGE, "flags '%s': wanted nothing, set NAME VALUE, or reset NAME",
                           names[0]);
    if (names[2] == NULL)
        return command_say(EXIT_USAGE, "flags set wants NAME VALUE");
    return set_flag(context, names[1], names[2], persist);
}

const struct command command_env = {
    .name = "env",
    .names = "",
    .summary =
        "show the hardware that the daemon found: processor, memory, devices and their speed",
    .help = "",
    .run = run_env,
};

static const struct option flags_options[] = {{"model", required_argument, NULL, 'M'},
                                              {"long", no_argument, NULL, 'l'},
                                              {"persist", no_argument, NULL, OPTION_PERSIST},
                                              {0}};

const struct command command_flags = {
    .name = "flags",
    .names = "[set NAME VALUE | reset NAME]",
    .names_least = 0,
    .names_most = 3,
    .summary = "show the flags of the daemon or of a model with their origin, or change a flag",
    .help =
        "A live flag changes immediately, until the daemon ends; other flags are read at start.\n"
        "reset NAME gives a flag the value of the configuration again, also after --persist.\n"
        "To change a flag, the admin socket is needed.\n\n"
        "  -M, --model MODEL      the settings of MODEL instead, from its model.conf and from\n"
        "                         inferctl place\n"
        "  -l, --long             also default, type, stability, allowed values and meaning\n"
        "      --persist          set: also after a restart of the daemon\n",
    .short_options = "M:l",
    .long_options = flags_options,
    .run = run_flags,
};
