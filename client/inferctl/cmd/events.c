// SPDX-License-Identifier: Apache-2.0
// inferctl events: prints the events that the daemon remembers, one line for each event. With
// --follow, also prints each later event when it occurs.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/inferctl/cli/command.h"
#include "client/inferctl/text/json_value.h"

static const char *text_of(const json_t *event, const char *key)
{
    const char *text = json_string_value(json_object_get(event, key));
    return text != NULL ? text : "";
}

static uint64_t number_of(const json_t *event, const char *key)
{
    return (uint64_t)json_integer_value(json_object_get(event, key));
}

// Prints " KEY=VALUE" if the event has a text under the key.
static void print_field(const json_t *event, const char *key)
{
    if (text_of(event, key)[0] != '\0')
        printf(" %s=%s", key, text_of(event, key));
}

static void print_event(const json_t *event)
{
    char clock[32];
    struct tm day;
    time_t at = time(NULL) - (time_t)(number_of(event, "age_ns") / 1000000000u);
    strftime(clock, sizeof clock, "%H:%M:%S", localtime_r(&at, &day));
    printf("%" PRIu64 " %s %s", number_of(event, "number"), clock, text_of(event, "kind"));
    print_field(event, "model");
    print_field(event, "version");
    print_field(event, "device");
    print_field(event, "text");
    putchar('\n');
}

// Prints the events of a report. Returns false if the report has no list of events.
static bool print_report(const struct context *context, const json_t *report)
{
    size_t i;
    const json_t *event;
    const json_t *events = json_object_get(report, "events");
    if (!json_is_array(events))
        return false;
    if (number_of(report, "lost") > 0)
        command_say(EXIT_OK, "%" PRIu64 " events are lost", number_of(report, "lost"));
    json_array_foreach(events, i, event)
    {
        if (context->format == OUTPUT_TABLE)
            print_event(event);
        else if (json_dumpf(event, stdout, JSON_COMPACT) == 0)
            putchar('\n');
    }
    fflush(stdout);
    return true;
}

// Reads and prints the events after the event number `after`. Returns when all events are printed
// or, if `follow` is true, only after an error.
static int print_events(const struct context *context, inferd_client *client, uint64_t after,
                        bool follow)
{
    for (bool wait = false;; wait = follow) {
        struct inferd_error err;
        char *text;
        if (inferd_event_log(client, after, wait, &text, &err) != 0)
            return command_failed(&err);
        json_t *report = json_loads(text, 0, NULL);
        free(text);
        bool ok = print_report(context, report);
        bool more = number_of(report, "last") != after;
        after = number_of(report, "last");
        json_decref(report);
        if (!ok)
            return command_say(EXIT_FAILED, "the daemon's report has no events");
        if (ferror(stdout) || (!follow && !more))
            return EXIT_OK;
    }
}

static int run_events(const struct context *context, const struct arguments *arguments)
{
    unsigned long after = 0;
    bool follow = false;
    bool all = false;
    for (size_t i = 0; i < arguments->option_count; i++) {
        if (arguments->options[i].option == 'n' &&
            !command_number("--after", arguments->options[i].value, 0, INT64_MAX, &after))
            return EXIT_USAGE;
        follow |= arguments->options[i].option == 'f';
        all |= arguments->options[i].option == 'A';
    }
    inferd_client *client;
    int code = command_connect(context, all, &client);
    if (code != EXIT_OK)
        return code;
    code = print_events(context, client, after, follow);
    inferd_close(client);
    return code;
}

static const struct option long_options[] = {{"all", no_argument, NULL, 'A'},
                                             {"follow", no_argument, NULL, 'f'},
                                             {"after", required_argument, NULL, 'n'},
                                             {0}};

const struct command command_events = {
    .name = "events",
    .names = "",
    .summary = "print what happened to models and to the daemon",
    .help =
        "  -A, --all              acts of admins too; needs the admin socket\n"
        "  -f, --follow           wait for further events\n"
        "  -n, --after NUMBER     begin after the event with this number\n"
        "With -o json each event is an object in a line of its own.\n",
    .short_options = "Afn:",
    .long_options = long_options,
    .run = run_events,
};
