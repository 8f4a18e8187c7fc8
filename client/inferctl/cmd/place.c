// SPDX-License-Identifier: Apache-2.0
// inferctl place: moves a model to another device.
#include <stdio.h>

#include "client/inferctl/cli/command.h"
#include "client/inferctl/text/json_value.h"
#include "client/inferctl/text/progress.h"

enum {
    OPTION_PERSIST = 0x100,
    OPTION_FORGET
};

static void show_progress(void *context, const char *stage, unsigned percent)
{
    progress_show(context, stage, percent);
}

static int print_outcome(const struct context *context, inferd_client *client, const char *name)
{
    struct inferd_error err;
    inferd_placement *placement;
    if (inferd_explain(client, name, NULL, &placement, &err) != 0)
        return command_failed(&err);
    if (context->format == OUTPUT_TABLE) {
        printf("%s runs on %s in %s (%s: %s)\n", name, placement->device, placement->precision,
               placement->source, placement->reason);
    } else {
        json_t *answer = json_value_must(json_object());
        json_object_set_new(answer, "model", json_value_text(name));
        json_object_set_new(answer, "device", json_value_text(placement->device));
        json_object_set_new(answer, "precision", json_value_text(placement->precision));
        json_object_set_new(answer, "policy", json_value_text(placement->policy));
        json_object_set_new(answer, "source", json_value_text(placement->source));
        json_object_set_new(answer, "reason", json_value_text(placement->reason));
        json_value_print(answer);
    }
    inferd_placement_free(placement);
    return EXIT_OK;
}

static int run_place(const struct context *context, const struct arguments *arguments)
{
    inferd_place_request order = {.model = arguments->names[0], .device = arguments->names[1]};
    bool persist = false, forget = false;
    for (size_t i = 0; i < arguments->option_count; i++) {
        if (arguments->options[i].option == 'p')
            order.policy = arguments->options[i].value;
        else if (arguments->options[i].option == OPTION_PERSIST)
            persist = true;
        else if (arguments->options[i].option == OPTION_FORGET)
            forget = true;
        else if (arguments->options[i].option == 'm')
            order.mode = arguments->options[i].value;
        else
            order.precision = arguments->options[i].value;
    }
    bool empty = order.device == NULL && order.policy == NULL && order.precision == NULL &&
                 order.mode == NULL;
    if (forget && (!empty || persist))
        return command_say(EXIT_USAGE, "place --forget wants a MODEL only");
    if (empty && !forget)
        return command_say(EXIT_USAGE,
                           "place wants a DEVICE, auto, --policy, --precision or --mode");
    inferd_client *client;
    int code = command_connect(context, true, &client);
    if (code != EXIT_OK)
        return code;
    struct inferd_error err;
    struct progress progress = progress_start(order.model);
    int failed = forget ? inferd_place_forget(client, order.model, show_progress, &progress, &err)
                 : persist ? inferd_place_persist(client, &order, show_progress, &progress, &err)
                           : inferd_place(client, &order, show_progress, &progress, &err);
    progress_end(&progress);
    code = failed != 0 ? command_failed(&err) : print_outcome(context, client, order.model);
    inferd_close(client);
    return code;
}

static const struct option long_options[] = {
    {"policy", required_argument, NULL, 'p'},     {"precision", required_argument, NULL, 'P'},
    {"mode", required_argument, NULL, 'm'},       {"persist", no_argument, NULL, OPTION_PERSIST},
    {"forget", no_argument, NULL, OPTION_FORGET}, {0}};

const struct command command_place = {
    .name = "place",
    .names = "MODEL [DEVICE]",
    .names_least = 1,
    .names_most = 2,
    .summary = "run MODEL on DEVICE from now on, or on the best one: auto",
    .help =
        "The old executable serves until the new one is warm: no request fails. Needs the admin\n"
        "socket.\n\n"
        "  -p, --policy POLICY    the criterion for the best device: latency, throughput,\n"
        "                         stability (prefers the processor) or memory\n"
        "  -P, --precision P      auto, fp32, fp16, bf16 or int8: the precisions that it may use;\n"
        "                         its error is measured, and inferctl explain shows it\n"
        "  -m, --mode MODE        normal, debug (the daemon logs each node of each run) or prod\n"
        "                         (results are not checked again)\n"
        "      --persist          also after a restart of the daemon, with all else that was set\n"
        "                         for MODEL by hand\n"
        "      --forget           forget all that was set by hand: MODEL's own settings hold\n",
    .short_options = "p:P:m:",
    .long_options = long_options,
    .run = run_place,
};
