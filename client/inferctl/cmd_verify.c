// SPDX-License-Identifier: Apache-2.0
// inferctl verify: the same input on every device, judged by what the plainest one answers.
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/inferctl/command.h"
#include "client/inferctl/request_options.h"
#include "client/inferctl/table.h"
#include "client/inferctl/tensor_compare.h"
#include "client/inferctl/tensor_text.h"

// TensorFlow.js judges its own backends by the same figure.
#define TOLERANCE_DEFAULT 1e-3

struct options {
    struct request_options request;
    double tolerance;
};

// The devices' answers, by device; NULL where one refused.
struct answers {
    inferd_device_row *devices; // best first; the last is the reference
    size_t count;
    inferd_result **results;
    struct inferd_error *errors;
};

static void answers_fini(struct answers *answers)
{
    for (size_t i = 0; answers->results != NULL && i < answers->count; i++)
        inferd_result_free(answers->results[i]);
    free(answers->results);
    free(answers->errors);
    free(answers->devices);
}

// Leaves one device and the reference in the list.
static int keep_device(struct answers *answers, const char *name)
{
    for (size_t i = 0; i < answers->count; i++) {
        if (strcmp(answers->devices[i].name, name) != 0)
            continue;
        answers->devices[0] = answers->devices[i];
        answers->devices[1] = answers->devices[answers->count - 1];
        answers->count = i == answers->count - 1 ? 1 : 2;
        return EXIT_OK;
    }
    return command_say(EXIT_NOT_FOUND, "there is no device '%s'", name);
}

static int ask(struct answers *answers, inferd_client *client, const inferd_request *request)
{
    struct inferd_error err;
    if (inferd_devices(client, &answers->devices, &answers->count, &err) != 0)
        return command_failed(&err);
    if (request->device != NULL) {
        int code = keep_device(answers, request->device);
        if (code != EXIT_OK)
            return code;
    }
    answers->results = calloc(answers->count, sizeof(*answers->results));
    answers->errors = calloc(answers->count, sizeof *answers->errors);
    if (answers->results == NULL || answers->errors == NULL)
        return command_say(EXIT_FAILED, "no memory for %zu answers", answers->count);
    for (size_t i = answers->count; i-- > 0;) {
        inferd_request pinned = *request;
        pinned.device = answers->devices[i].name;
        if (inferd_infer(client, &pinned, &answers->results[i], &answers->errors[i]) == 0)
            continue;
        answers->results[i] = NULL;
        if (i == answers->count - 1) // nothing to judge by
            return command_failed(&answers->errors[i]);
    }
    return EXIT_OK;
}

static bool add_difference(struct table *table, const inferd_tensor *got,
                           const inferd_tensor *wanted, double tolerance)
{
    bool same_size = got != NULL && got->dtype == wanted->dtype && got->size == wanted->size;
    if (!same_size) {
        for (int i = 0; i < 4; i++)
            table_value(table, json_null(), "-");
        table_text(table, "DIFFERS in shape");
        return false;
    }
    struct tensor_difference difference = tensor_compare(got, wanted, tolerance);
    const double numbers[] = {difference.max_abs, difference.max_rel, difference.cosine};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        char text[32];
        snprintf(text, sizeof text, i == 2 ? "%.6f" : "%.3g", numbers[i]);
        table_real(table, numbers[i], text);
    }
    table_text(table, !tensor_is_class_vector(wanted) ? "-"
                      : difference.same_top           ? "same"
                                                      : "other");
    table_text(table, difference.within ? "ok" : "DIFFERS");
    return difference.within;
}

// Prints a row for each output on each device; whether all are near enough.
static bool print(const struct answers *answers, double tolerance, enum output_format format)
{
    static const char *const columns[] = {"device",  "precision", "output", "max_abs",
                                          "max_rel", "cosine",    "top_1",  "verdict"};
    struct table *table = table_create(columns, sizeof columns / sizeof columns[0]);
    const inferd_result *reference = answers->results[answers->count - 1];
    bool ok = true;
    for (size_t i = 0; i < answers->count; i++) {
        const inferd_result *result = answers->results[i];
        for (size_t k = 0; k < inferd_result_output_count(reference); k++) {
            const inferd_tensor *wanted = inferd_result_output(reference, k);
            table_text(table, answers->devices[i].name);
            table_text(table, result != NULL ? inferd_result_precision(result) : "-");
            table_text(table, wanted->name);
            if (result != NULL) {
                ok &= add_difference(table, inferd_result_find(result, wanted->name), wanted,
                                     tolerance);
                continue;
            }
            for (int c = 0; c < 4; c++)
                table_value(table, json_null(), "-");
            table_text(table, answers->errors[i].text);
            ok = false;
        }
    }
    table_print(table, format, false);
    return ok;
}

static int verify(const struct context *context, inferd_client *client, const char *model,
                  const struct options *options)
{
    inferd_model_info *info;
    int code = command_describe(client, model, options->request.version, &info);
    if (code != EXIT_OK)
        return code;
    struct tensor_inputs inputs = {0};
    struct answers answers = {0};
    code = request_options_load(&inputs, &options->request, info);
    if (code == EXIT_OK)
        code = tensor_inputs_complete(&inputs, info, TENSOR_RANDOM);
    if (code == EXIT_OK)
        code = ask(&answers, client,
                   &(inferd_request){.model = model,
                                     .version = options->request.version,
                                     .device = options->request.device,
                                     .inputs = inputs.tensors,
                                     .input_count = inputs.count});
    if (code == EXIT_OK && !print(&answers, options->tolerance, context->format))
        code = EXIT_FAILED;
    answers_fini(&answers);
    tensor_inputs_fini(&inputs);
    inferd_model_info_free(info);
    return code;
}

static bool read_tolerance(const char *text, double *tolerance)
{
    char *end;
    errno = 0;
    *tolerance = strtod(text, &end);
    if (errno == 0 && end != text && *end == '\0' && isfinite(*tolerance) && *tolerance >= 0)
        return true;
    command_say(EXIT_USAGE, "--tolerance '%s': wanted a number of 0 or more", text);
    return false;
}

static int take_option(struct options *options, const struct option_given *given)
{
    int code;
    if (request_options_take(&options->request, given, &code))
        return code;
    return read_tolerance(given->value, &options->tolerance) ? EXIT_OK : EXIT_USAGE;
}

static int run(const struct context *context, const struct arguments *arguments)
{
    struct options options = {.tolerance = TOLERANCE_DEFAULT};
    int code = EXIT_OK;
    for (size_t i = 0; i < arguments->option_count && code == EXIT_OK; i++)
        code = take_option(&options, &arguments->options[i]);
    inferd_client *client;
    if (code == EXIT_OK)
        code = command_connect(context, false, &client);
    if (code != EXIT_OK)
        return code;
    code = verify(context, client, arguments->names[0], &options);
    inferd_close(client);
    return code;
}

static const struct option long_options[] = {
    REQUEST_LONG_OPTIONS, {"tolerance", required_argument, NULL, 'e'}, {0}};

const struct command command_verify = {
    .name = "verify",
    .names = "MODEL",
    .names_least = 1,
    .names_most = 1,
    .summary = "compare MODEL's answers on every device with the plainest one's",
    .help =
        "The same input on every device (with -d: on that one), judged by the last of inferctl\n"
        "devices. Inputs that are not given are random, the same each time. Fails where an answer\n"
        "differs.\n\n"
        "  -e, --tolerance T      how far elements may be apart, in units or, where that is more,\n"
        "                         as a part of the element (default 0.001)\n" REQUEST_HELP,
    .short_options = REQUEST_SHORT_OPTIONS "e:",
    .long_options = long_options,
    .run = run,
};
