// SPDX-License-Identifier: Apache-2.0
// inferctl profile, inferctl debug, inferctl diff: report about each node of a served model.
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/inferctl/cli/command.h"
#include "client/inferctl/tensor/request_options.h"
#include "client/inferctl/text/json_value.h"
#include "client/inferctl/text/node_list.h"
#include "client/inferctl/text/table.h"

struct options {
    struct request_options request;
    const char *trace, *against;
    double tolerance;
    bool all; // profile: also nodes that take no time, in the order of the graph
};

static double ms_of(uint64_t ns)
{
    return (double)ns / 1e6;
}

static void add_number(struct table *table, double number)
{
    char text[32];
    snprintf(text, sizeof text, "%.4g", number);
    table_real(table, number, text);
}

// --- the verb profile: the time of each node ---

// Orders nodes by time, the slowest first; nodes of equal time by their address in the list, that
// is, in the order of the graph.
static int compare_times(const void *a, const void *b)
{
    const inferd_node *left = *(const inferd_node *const *)a;
    const inferd_node *right = *(const inferd_node *const *)b;
    if (left->time_ns != right->time_ns)
        return left->time_ns > right->time_ns ? -1 : 1;
    return left < right ? -1 : left > right;
}

// Returns an array of the nodes to print, which the caller frees, and sets *count. For people the
// array has the nodes that took time, the slowest first; with `all` or as JSON it has all nodes in
// the order of the graph.
static const inferd_node **select_nodes(const struct node_list *list, bool all, size_t *count)
{
    const inferd_node **nodes = json_value_must(calloc(list->count + 1, sizeof(inferd_node *)));
    *count = 0;
    for (size_t i = 0; i < list->count; i++)
        if (all || list->nodes[i].time_ns > 0)
            nodes[(*count)++] = &list->nodes[i];
    if (!all)
        qsort(nodes, *count, sizeof(inferd_node *), compare_times);
    return nodes;
}

static void print_profile(const struct node_list *list, bool all, enum output_format format)
{
    static const char *const columns[] = {"node",        "operator", "device", "kernel",
                                          "threads",     "ms",       "share",  "gmacs_s",
                                          "of_dot_peak", "output",   "inputs", "bytes"};
    struct table *table = table_create(columns, sizeof columns / sizeof columns[0]);
    uint64_t total_ns = node_list_total_ns(list);
    size_t count;
    const inferd_node **nodes = select_nodes(list, all || format == OUTPUT_JSON, &count);
    for (size_t i = 0; i < count; i++) {
        const inferd_node *node = nodes[i];
        char share[16], dot_share[16] = "";
        double part = total_ns > 0 ? (double)node->time_ns / (double)total_ns : 0;
        snprintf(share, sizeof share, "%.1f %%", part * 100);
        if (node->dot_share > 0)
            snprintf(dot_share, sizeof dot_share, "%.0f %%", node->dot_share * 100);
        table_text(table, node->name);
        table_text(table, node->op);
        table_text(table, node->device);
        table_text(table, node->kernel[0] != '\0' ? node->kernel : "(in another step)");
        table_whole(table, node->threads, NULL);
        add_number(table, ms_of(node->time_ns));
        table_real(table, part, share);
        add_number(table, node->time_ns > 0 ? (double)node->macs / (double)node->time_ns : 0);
        table_real(table, node->dot_share, dot_share);
        table_text(table, node->shape);
        table_text(table, node->inputs);
        table_whole(table, (int64_t)node->bytes, NULL);
    }
    free(nodes);
    table_print(table, format, false);
    if (format == OUTPUT_TABLE)
        printf("\n%.3f ms in %zu nodes\n", ms_of(total_ns), list->count);
    if (format == OUTPUT_TABLE && count < list->count)
        printf(
            "%zu nodes took no time of their own, because another node's step computes them or "
            "they are constant; --all shows them\n",
            list->count - count);
}

static int show_profile(const struct node_list *list, const struct options *options,
                        enum output_format format)
{
    print_profile(list, options->all, format);
    return EXIT_OK;
}

// --- the verb debug: non-finite values of each node ---

static int show_debug(const struct node_list *list, const struct options *options,
                      enum output_format format)
{
    (void)options;
    static const char *const columns[] = {"node",   "operator", "device", "kernel", "ms",
                                          "output", "inputs",   "bytes",  "least",  "largest",
                                          "nan",    "inf",      "verdict"};
    struct table *table = table_create(columns, sizeof columns / sizeof columns[0]);
    const inferd_node *culprit = NULL;
    for (size_t i = 0; i < list->count; i++) {
        const inferd_node *node = &list->nodes[i];
        if (culprit == NULL && strcmp(node->verdict, "made here") == 0)
            culprit = node;
        table_text(table, node->name);
        table_text(table, node->op);
        table_text(table, node->device);
        table_text(table, node->kernel);
        add_number(table, ms_of(node->time_ns));
        table_text(table, node->shape);
        table_text(table, node->inputs);
        table_whole(table, (int64_t)node->bytes, NULL);
        add_number(table, node->min);
        add_number(table, node->max);
        table_whole(table, (int64_t)node->nan_count, NULL);
        table_whole(table, (int64_t)node->inf_count, NULL);
        table_text(table, node->verdict);
    }
    table_print(table, format, false);
    if (culprit != NULL)
        return command_say(EXIT_FAILED,
                           "node '%s' (%s) makes numbers that are not finite: %llu NaN, %llu "
                           "infinite",
                           culprit->name, culprit->op, (unsigned long long)culprit->nan_count,
                           (unsigned long long)culprit->inf_count);
    return EXIT_OK;
}

// --- the verb diff: each node on two devices ---

static int show_diff(const struct node_list *list, const struct options *options,
                     enum output_format format)
{
    (void)options;
    static const char *const columns[] = {"node",    "operator", "device", "kernel",
                                          "max_abs", "max_rel",  "output", "verdict"};
    struct table *table = table_create(columns, sizeof columns / sizeof columns[0]);
    const inferd_node *first = NULL;
    for (size_t i = 0; i < list->count; i++) {
        const inferd_node *node = &list->nodes[i];
        if (strcmp(node->verdict, "first") == 0)
            first = node;
        table_text(table, node->name);
        table_text(table, node->op);
        table_text(table, node->device);
        table_text(table, node->kernel);
        add_number(table, node->max_abs);
        add_number(table, node->max_rel);
        table_text(table, node->shape);
        table_text(table, node->verdict[0] != '\0' ? node->verdict : "-");
    }
    table_print(table, format, false);
    if (first != NULL)
        return command_say(EXIT_FAILED, "the devices part at node '%s' (%s): %g apart", first->name,
                           first->op, first->max_abs);
    return EXIT_OK;
}

// --- running the three verbs ---

struct verb {
    const char *mode;
    int (*show)(const struct node_list *list, const struct options *options,
                enum output_format format);
};

// Loads the inputs that the options name. The names of the inputs are in *info, which the caller
// frees after the inputs; NULL after some failures.
static int load_inputs(inferd_client *client, const char *model, const struct options *options,
                       struct tensor_inputs *inputs, inferd_model_info **info)
{
    int code = command_describe(client, model, options->request.version, info);
    // Without inputs, the daemon generates the values.
    if (code == EXIT_OK && options->request.input_count > 0) {
        code = request_options_load(inputs, &options->request, client, model, *info);
        if (code == EXIT_OK)
            code = tensor_inputs_complete(inputs, *info, TENSOR_RANDOM);
    }
    return code;
}

static int inspect_model(const struct context *context, inferd_client *client, const char *model,
                         const struct options *options, const struct verb *verb)
{
    struct tensor_inputs inputs = {0};
    struct node_list list = {0};
    inferd_model_info *info = NULL;
    int code = load_inputs(client, model, options, &inputs, &info);
    if (code == EXIT_OK)
        code = node_list_collect(&list, client,
                                 &(inferd_inspect_request){.model = model,
                                                           .version = options->request.version,
                                                           .device = options->request.device,
                                                           .precision = options->request.precision,
                                                           .mode = verb->mode,
                                                           .against = options->against,
                                                           .tolerance = options->tolerance,
                                                           .inputs = inputs.tensors,
                                                           .input_count = inputs.count});
    if (code == EXIT_OK && options->trace != NULL)
        code = node_list_trace(&list, model, options->trace);
    if (code == EXIT_OK)
        code = verb->show(&list, options, context->format);
    node_list_fini(&list);
    tensor_inputs_fini(&inputs);
    inferd_model_info_free(info);
    return code;
}

static int take_option(struct options *options, const struct option_given *given)
{
    int code;
    char *end;
    if (request_options_take(&options->request, given, &code))
        return code;
    if (given->option == 'T')
        options->trace = given->value;
    else if (given->option == 'A')
        options->all = true;
    else if (given->option == 'a')
        options->against = given->value;
    else {
        errno = 0;
        options->tolerance = strtod(given->value, &end);
        if (errno != 0 || end == given->value || *end != '\0' || !isfinite(options->tolerance) ||
            options->tolerance <= 0)
            return command_say(EXIT_USAGE, "--tolerance '%s': wanted a number above 0",
                               given->value);
    }
    return EXIT_OK;
}

static int run_inspect(const struct context *context, const struct arguments *arguments,
                       const struct verb *verb)
{
    struct options options = {0};
    inferd_client *client;
    int code = EXIT_OK;
    for (size_t i = 0; i < arguments->option_count && code == EXIT_OK; i++)
        code = take_option(&options, &arguments->options[i]);
    if (code == EXIT_OK)
        code = command_connect(context, true, &client);
    if (code != EXIT_OK)
        return code;
    code = inspect_model(context, client, arguments->names[0], &options, verb);
    inferd_close(client);
    return code;
}

static int run_profile(const struct context *context, const struct arguments *arguments)
{
    return run_inspect(context, arguments, &(struct verb){"profile", show_profile});
}

static int run_debug(const struct context *context, const struct arguments *arguments)
{
    return run_inspect(context, arguments, &(struct verb){"debug", show_debug});
}

static int run_diff(const struct context *context, const struct arguments *arguments)
{
    return run_inspect(context, arguments, &(struct verb){"diff", show_diff});
}

#define TRACE_HELP                                                                                 \
    "  -T, --trace FILE       write a trace for Perfetto or chrome://tracing to FILE\n"

static const struct option profile_options[] = {REQUEST_LONG_OPTIONS,
                                                {"trace", required_argument, NULL, 'T'},
                                                {"all", no_argument, NULL, 'A'},
                                                {0}};
static const struct option trace_options[] = {
    REQUEST_LONG_OPTIONS, {"trace", required_argument, NULL, 'T'}, {0}};
static const struct option diff_options[] = {REQUEST_LONG_OPTIONS,
                                             {"against", required_argument, NULL, 'a'},
                                             {"tolerance", required_argument, NULL, 'e'},
                                             {0}};

const struct command command_profile = {
    .name = "profile",
    .names = "MODEL",
    .names_least = 1,
    .names_most = 1,
    .summary = "show how long each node of MODEL takes",
    .help =
        "Shows the fastest of five runs, which do not serve requests. Inputs that are not\n"
        "given are random.\n"
        "Needs the admin socket.\n\n"
        "  -A, --all              every node, in the order of the graph; without it, the nodes\n"
        "                         that take time of their own, the slowest first\n" TRACE_HELP
            REQUEST_HELP,
    .short_options = REQUEST_SHORT_OPTIONS "T:A",
    .long_options = profile_options,
    .run = run_profile,
};

const struct command command_debug = {
    .name = "debug",
    .names = "MODEL",
    .names_least = 1,
    .names_most = 1,
    .summary = "run MODEL once and find the first node whose results are not finite",
    .help =
        "Keeps every value, so that no nodes are fused. Fails if a node makes NaN or infinity\n"
        "from finite numbers. Inputs that are not given are random. Needs the admin\n"
        "socket.\n\n" TRACE_HELP REQUEST_HELP,
    .short_options = REQUEST_SHORT_OPTIONS "T:",
    .long_options = trace_options,
    .run = run_debug,
};

const struct command command_diff = {
    .name = "diff",
    .names = "MODEL",
    .names_least = 1,
    .names_most = 1,
    .summary = "compare every value of MODEL on two devices and find the first that differs",
    .help =
        "Keeps every value, so that no nodes are fused. Fails if the devices differ. Inputs that\n"
        "are not given are random. Needs the admin socket.\n\n"
        "  -a, --against NAME     the other device (default: the last of inferctl devices)\n"
        "  -e, --tolerance T      accepted difference of elements, absolute or relative to the\n"
        "                         element, whichever is larger (default 0.001)\n" REQUEST_HELP,
    .short_options = REQUEST_SHORT_OPTIONS "a:e:",
    .long_options = diff_options,
    .run = run_diff,
};
