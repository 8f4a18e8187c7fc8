// SPDX-License-Identifier: Apache-2.0
// inferctl wait: waits until a model can answer requests, for scripts that need the model in their
// next step. Reads the list of models every INTERVAL_MS. Ends with an error if the load of the
// model fails.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/inferctl/cli/command.h"
#include "client/inferctl/text/json_value.h"

#define INTERVAL_MS 50 // between two reads of the list of models

struct awaited {
    const char *name;
    const char *version; // a version or a label; NULL: any version
    // 0: waits as long as the model is loading, and fails at once if the model is not listed.
    unsigned long timeout_ms;
};

static double now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

// Returns true if `label` is one of the labels in `labels`, which commas separate.
static bool has_label(const char *labels, const char *label)
{
    size_t length = strlen(label);
    for (const char *at = labels; (at = strstr(at, label)) != NULL; at += length)
        if ((at == labels || at[-1] == ',') && (at[length] == '\0' || at[length] == ','))
            return true;
    return false;
}

static bool is_awaited(const inferd_model_row *row, const struct awaited *awaited)
{
    return strcmp(row->name, awaited->name) == 0 &&
           (awaited->version == NULL || strcmp(row->version, awaited->version) == 0 ||
            has_label(row->labels, awaited->version));
}

// Returns the rank of a state: 5 for READY, less for states from which a model may become ready, 0
// for a failed load, and -1 for an unknown state.
static int rank_state(const char *state)
{
    static const char *const states[] = {"UNAVAILABLE", "UNLOADING", "LOADING",
                                         "WARMING",     "IDLE",      "READY"};
    int rank = (int)(sizeof states / sizeof states[0]) - 1;
    while (rank >= 0 && strcmp(states[rank], state) != 0)
        rank--;
    return rank;
}

// Copies the row of the awaited model to *found. If several versions match, prefers the one whose
// state has the highest rank. If the model is not listed, the name of *found is empty.
static int find_row(inferd_client *client, const struct awaited *awaited, inferd_model_row *found)
{
    struct inferd_error err;
    inferd_model_row *rows;
    size_t count;
    if (inferd_models(client, &rows, &count, &err) != 0)
        return command_failed(&err);
    *found = (inferd_model_row){0};
    for (size_t i = 0; i < count; i++)
        if (is_awaited(&rows[i], awaited) &&
            (found->name[0] == '\0' || rank_state(rows[i].state) > rank_state(found->state)))
            *found = rows[i];
    free(rows);
    return EXIT_OK;
}

static void print_ready(const struct context *context, const inferd_model_row *row)
{
    if (context->format == OUTPUT_TABLE) {
        printf("%s version %s is ready\n", row->name, row->version);
        return;
    }
    json_t *answer = json_value_must(json_object());
    json_object_set_new(answer, "model", json_value_text(row->name));
    json_object_set_new(answer, "version", json_value_text(row->version));
    json_object_set_new(answer, "state", json_value_text(row->state));
    json_value_print(answer);
}

// Returns EXIT_OK, or the exit code of a client that may not use the awaited model, which is not
// listed for it.
static int check_allowed(inferd_client *client, const struct awaited *awaited)
{
    bool ready;
    struct inferd_error err;
    int code = inferd_model_ready(client, awaited->name, awaited->version, &ready, &err);
    return code == INFERD_PERMISSION_DENIED ? command_failed(&err) : EXIT_OK;
}

// Waits until the awaited model is ready or idle. If the model is not listed, waits for it only if
// there is a timeout, and fails otherwise.
static int wait_for_row(inferd_client *client, const struct awaited *awaited, inferd_model_row *row)
{
    double end_ms = now_ms() + (double)awaited->timeout_ms;
    for (;;) {
        int code = find_row(client, awaited, row);
        if (code != EXIT_OK)
            return code;
        bool listed = row->name[0] != '\0';
        // An idle model counts as ready: the next request makes the daemon load it, and waits
        // meanwhile.
        if (strcmp(row->state, "READY") == 0 || strcmp(row->state, "IDLE") == 0)
            return EXIT_OK;
        if (strcmp(row->state, "UNAVAILABLE") == 0)
            return command_say(EXIT_FAILED, "%s did not load: %s", row->name, row->reason);
        if (!listed)
            code = check_allowed(client, awaited);
        if (code != EXIT_OK)
            return code;
        if (!listed && awaited->timeout_ms == 0)
            return command_say(EXIT_NOT_FOUND, "%s%s%s is not loaded and not loading",
                               awaited->name, awaited->version != NULL ? " version " : "",
                               awaited->version != NULL ? awaited->version : "");
        if (awaited->timeout_ms > 0 && now_ms() >= end_ms)
            return command_say(EXIT_DEADLINE, "%s is not ready after %lu ms: %s", awaited->name,
                               awaited->timeout_ms, listed ? row->state : "not listed");
        nanosleep(&(struct timespec){.tv_nsec = INTERVAL_MS * 1000000L}, NULL);
    }
}

static int run_wait(const struct context *context, const struct arguments *arguments)
{
    struct awaited awaited = {.name = arguments->names[0]};
    for (size_t i = 0; i < arguments->option_count; i++) {
        const char *value = arguments->options[i].value;
        if (arguments->options[i].option == 'v')
            awaited.version = value;
        else if (!command_number("--timeout", value, 1, 86400000, &awaited.timeout_ms))
            return EXIT_USAGE;
    }
    inferd_client *client;
    inferd_model_row row;
    int code = command_connect(context, false, &client);
    if (code != EXIT_OK)
        return code;
    code = wait_for_row(client, &awaited, &row);
    if (code == EXIT_OK)
        print_ready(context, &row);
    inferd_close(client);
    return code;
}

static const struct option long_options[] = {
    {"version", required_argument, NULL, 'v'}, {"timeout", required_argument, NULL, 't'}, {0}};

const struct command command_wait = {
    .name = "wait",
    .names = "MODEL",
    .names_least = 1,
    .names_most = 1,
    .summary = "wait until MODEL is ready",
    .help =
        "Ends with exit code 1 if the load fails, and 6 after the timeout.\n\n"
        "  -v, --version V        this version or label\n"
        "  -t, --timeout MS       at most so long; a MODEL that is not listed is waited for, too\n",
    .short_options = "v:t:",
    .long_options = long_options,
    .run = run_wait,
};
