// SPDX-License-Identifier: Apache-2.0
// inferctl infer: runs a model with files as inputs; prints a summary of the outputs and writes
// them to files.
#include <stdio.h>
#include <string.h>

#include "client/inferctl/cli/command.h"
#include "client/inferctl/tensor/labels.h"
#include "client/inferctl/tensor/output_files.h"
#include "client/inferctl/tensor/request_options.h"
#include "client/inferctl/tensor/result_text.h"
#include "client/inferctl/text/node_list.h"

struct options {
    struct request_options request;
    unsigned long timeout_ms, queue_timeout_ms;
    const char *mode; // NULL: the mode of the model's placement
    struct result_view view;
    const char *trace; // file to write the trace to; NULL: no trace
    const char *traceparent;
};

// Runs the model again, separately from normal requests, to measure the time of each node, and
// writes the times to the trace file.
static int write_trace(inferd_client *client, const inferd_request *request, const char *precision,
                       const char *path)
{
    struct node_list list = {0};
    int code = node_list_collect(&list, client,
                                 &(inferd_inspect_request){.model = request->model,
                                                           .version = request->version,
                                                           .device = request->device,
                                                           .precision = precision,
                                                           .mode = "profile",
                                                           .inputs = request->inputs,
                                                           .input_count = request->input_count});
    if (code == EXIT_OK)
        code = node_list_trace(&list, request->model, path);
    node_list_fini(&list);
    return code;
}

static int run_inference(inferd_client *client, const char *model, const struct options *options,
                         inferd_result **result)
{
    inferd_model_info *info;
    int code = command_describe(client, model, options->request.version, &info);
    if (code != EXIT_OK)
        return code;
    struct tensor_inputs inputs = {0};
    code = request_options_load(&inputs, &options->request, client, model, info);
    if (code == EXIT_OK) {
        struct inferd_error err;
        inferd_request request = {.model = model,
                                  .version = options->request.version,
                                  .device = options->request.device,
                                  .inputs = inputs.tensors,
                                  .input_count = inputs.count,
                                  .timeout_ms = options->timeout_ms};
        if (inferd_infer(client, &request, result, &err) != 0)
            code = command_failed(&err);
        else if (options->trace != NULL)
            code = write_trace(client, &request, options->request.precision, options->trace);
    }
    tensor_inputs_fini(&inputs);
    inferd_model_info_free(info);
    return code;
}

// Asks for the description of the model if an option does not replace it.
static void load_description(struct description *description, inferd_client *client,
                             const char *model, struct options *options)
{
    if (options->view.labels->text != NULL && options->request.picture.has_range)
        return;
    description_load(description, client, model, options->request.version);
    options->request.picture.description = description;
}

static int infer_and_show(const struct context *context, const char *model, struct options *options)
{
    inferd_client *client;
    inferd_result *result = NULL;
    struct description description = {0};
    bool admin =
        options->trace != NULL || (options->mode != NULL && strcmp(options->mode, "debug") == 0);
    struct context within = *context;
    within.timeout_ms = options->timeout_ms;
    int code = command_connect(&within, admin, &client);
    if (code != EXIT_OK)
        return code;
    code = request_options_apply(&options->request, client, options->mode);
    inferd_set_queue_timeout(client, options->queue_timeout_ms);
    inferd_set_trace_context(client, options->traceparent, NULL);
    load_description(&description, client, model, options);
    options->view.description = &description;
    if (code == EXIT_OK)
        code = run_inference(client, model, options, &result);
    if (code == EXIT_OK)
        code = result_check_labels(result, &options->view);
    if (code == EXIT_OK) {
        if (options->view.directory != NULL)
            code = output_files_save(options->view.directory, result);
        if (code == EXIT_OK)
            result_print(result, &options->view, context->format);
    }
    inferd_result_free(result);
    description_fini(&description);
    inferd_close(client);
    return code;
}

static int take_option(struct options *options, const struct option_given *given,
                       const char **labels)
{
    int code;
    if (request_options_take(&options->request, given, &code))
        return code;
    bool ok = true;
    if (given->option == 'o')
        options->view.directory = given->value;
    else if (given->option == 'l')
        *labels = given->value;
    else if (given->option == 'T')
        options->trace = given->value;
    else if (given->option == 'm')
        options->mode = given->value;
    else if (given->option == 'w')
        options->traceparent = given->value;
    else if (given->option == 'k')
        ok = command_number("--top", given->value, 0, RESULT_TOP_MAX, &options->view.top);
    else if (given->option == 'q')
        ok = command_number("--queue-timeout", given->value, 1, 86400000,
                            &options->queue_timeout_ms);
    else
        ok = command_number("--timeout", given->value, 1, 86400000, &options->timeout_ms);
    return ok ? EXIT_OK : EXIT_USAGE;
}

static int run_infer(const struct context *context, const struct arguments *arguments)
{
    const char *labels_path = NULL;
    struct labels labels = {0};
    struct options options = {.view = {.top = 5, .labels = &labels}};
    int code = EXIT_OK;
    for (size_t i = 0; i < arguments->option_count && code == EXIT_OK; i++)
        code = take_option(&options, &arguments->options[i], &labels_path);
    // Load files and check directories first, so that mistakes are reported before the model runs.
    if (code == EXIT_OK && labels_path != NULL)
        code = labels_load(&labels, labels_path);
    if (code == EXIT_OK && options.view.directory != NULL)
        code = output_files_prepare(options.view.directory);
    if (code == EXIT_OK)
        code = infer_and_show(context, arguments->names[0], &options);
    labels_fini(&labels);
    return code;
}

static const struct option long_options[] = {REQUEST_LONG_OPTIONS,
                                             {"output", required_argument, NULL, 'o'},
                                             {"labels", required_argument, NULL, 'l'},
                                             {"top", required_argument, NULL, 'k'},
                                             {"timeout", required_argument, NULL, 't'},
                                             {"queue-timeout", required_argument, NULL, 'q'},
                                             {"trace", required_argument, NULL, 'T'},
                                             {"mode", required_argument, NULL, 'm'},
                                             {"traceparent", required_argument, NULL, 'w'},
                                             {0}};

const struct command command_infer = {
    .name = "infer",
    .names = "MODEL",
    .names_least = 1,
    .names_most = 1,
    .summary = "run MODEL once on files and show the results",
    .help = REQUEST_HELP
    "  -t, --timeout MS       give up after MS milliseconds\n"
    "  -q, --queue-timeout MS give up if the run has not started after MS\n"
    "  -o, --output DIR       write each output to DIR/NAME.npy, strings to DIR/NAME.json\n"
    "  -k, --top N            show the N best classes of a class vector (default 5)\n"
    "  -l, --labels FILE      the names of the classes, one on each line (default: the\n"
    "                         labels in the model file, if it has some)\n"
    "  -T, --trace FILE       write the times of each node to FILE, for Perfetto or\n"
    "                         chrome://tracing; needs the admin socket\n"
    "  -m, --mode MODE        normal, prod (results are not checked again) or debug (the daemon\n"
    "                         logs each node; needs the admin socket)\n"
    "  -w, --traceparent TEXT W3C Trace Context, for the traces that the daemon writes\n",
    .short_options = REQUEST_SHORT_OPTIONS "o:l:k:t:q:T:m:w:",
    .long_options = long_options,
    .run = run_infer,
};
