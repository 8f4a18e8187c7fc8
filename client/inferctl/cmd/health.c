// SPDX-License-Identifier: Apache-2.0
// inferctl health: says in one line whether the daemon works as it should, for monitoring and for
// systemd. Healthy means: the daemon accepts requests, no device is lost or quarantined, and no
// model failed to load. A model that is still loading is no problem.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/inferctl/cli/command.h"
#include "client/inferctl/text/json_value.h"

// What the daemon reports about itself. The lists are freed by free_report().
struct report {
    inferd_server_status status;
    inferd_device_row *devices;
    inferd_model_row *models;
    size_t device_count, model_count;
};

static int read_report(inferd_client *client, struct report *report, struct inferd_error *err)
{
    int code = inferd_status(client, &report->status, err);
    if (code == 0)
        code = inferd_devices(client, &report->devices, &report->device_count, err);
    if (code == 0)
        code = inferd_models(client, &report->models, &report->model_count, err);
    return code;
}

static void free_report(struct report *report)
{
    free(report->devices);
    free(report->models);
}

static void add_problem(json_t *problems, const char *kind, const char *name, const char *state)
{
    char text[512];
    snprintf(text, sizeof text, "%s%s%s: %s", kind, name[0] != '\0' ? " " : "", name, state);
    json_array_append_new(problems, json_value_text(text));
}

// Returns an array of texts, one for each problem.
static json_t *find_problems(const struct report *report)
{
    json_t *problems = json_value_must(json_array());
    if (strcmp(report->status.state, "ready") != 0)
        add_problem(problems, "the daemon", "", report->status.state);
    for (size_t i = 0; i < report->device_count; i++)
        if (strcmp(report->devices[i].health, "ok") != 0)
            add_problem(problems, "device", report->devices[i].name, report->devices[i].health);
    for (size_t i = 0; i < report->model_count; i++)
        if (strcmp(report->models[i].state, "UNAVAILABLE") == 0)
            add_problem(problems, "model", report->models[i].name, report->models[i].reason);
    return problems;
}

static void print_line(const struct report *report, const json_t *problems)
{
    size_t i;
    const json_t *problem;
    if (json_array_size(problems) == 0)
        printf("healthy: version %s, %zu devices, %u of %zu models ready\n", report->status.version,
               report->device_count, report->status.models_ready, report->model_count);
    else
        printf("not healthy: ");
    json_array_foreach(problems, i, problem)
        printf("%s%s", json_string_value(problem), i + 1 < json_array_size(problems) ? "; " : "\n");
}

static int run_health(const struct context *context, const struct arguments *arguments)
{
    (void)arguments;
    inferd_client *client;
    int code = command_connect(context, false, &client);
    if (code != EXIT_OK)
        return code;
    struct inferd_error err;
    struct report report = {0};
    if (read_report(client, &report, &err) != 0) {
        code = command_failed(&err);
    } else {
        json_t *problems = find_problems(&report);
        bool healthy = json_array_size(problems) == 0;
        code = healthy ? EXIT_OK : EXIT_FAILED;
        if (context->format == OUTPUT_JSON)
            json_value_print(json_value_must(
                json_pack("{s:b, s:O}", "healthy", (int)healthy, "problems", problems)));
        else
            print_line(&report, problems);
        json_decref(problems);
    }
    free_report(&report);
    inferd_close(client);
    return code;
}

const struct command command_health = {
    .name = "health",
    .names = "",
    .summary = "say in one line whether the daemon, its devices and its models work",
    .help = "Exits with 0 if all do, 1 if not, 3 if no daemon answers.\n",
    .run = run_health,
};
