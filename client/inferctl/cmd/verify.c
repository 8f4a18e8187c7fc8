// SPDX-License-Identifier: Apache-2.0
// inferctl verify: runs the same input on every device in every precision, and compares the answers
// with the answer of the reference device `ref`.
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/inferctl/cli/command.h"
#include "client/inferctl/tensor/compare.h"
#include "client/inferctl/tensor/device_answers.h"
#include "client/inferctl/tensor/request_options.h"
#include "client/inferctl/tensor/text.h"
#include "client/inferctl/text/table.h"

struct options {
    struct request_options request;
    double tolerance; // accepted difference; negative: the default of the precision
};

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

// Prints a row for each output of each answer. Returns whether all differences are within the
// tolerance. If an answer has another precision than requested, it was computed again in fp32, or
// the model has no operator for that precision.
static bool print_comparison(const struct device_answers *answers, double tolerance,
                             enum output_format format)
{
    static const char *const columns[] = {"device",  "asked",  "precision", "output", "max_abs",
                                          "max_rel", "cosine", "top_1",     "verdict"};
    struct table *table = table_create(columns, sizeof columns / sizeof columns[0]);
    const inferd_result *reference = device_answers_reference(answers)->result;
    bool ok = true;
    for (size_t i = 0; i < answers->count; i++) {
        const struct device_answer *answer = &answers->answers[i];
        const inferd_result *result = answer->result;
        for (size_t k = 0; k < inferd_result_output_count(reference); k++) {
            const inferd_tensor *wanted = inferd_result_output(reference, k);
            table_text(table, answer->device);
            table_text(table, answer->precision);
            table_text(table, result != NULL ? inferd_result_precision(result) : "-");
            table_text(table, wanted->name);
            if (result != NULL) {
                ok &= add_difference(table, inferd_result_find(result, wanted->name), wanted,
                                     tolerance >= 0 ? tolerance : device_answer_tolerance(answer));
                continue;
            }
            for (int c = 0; c < 4; c++)
                table_value(table, json_null(), "-");
            table_text(table, answer->error.text);
            ok = false;
        }
    }
    table_print(table, format, false);
    return ok;
}

static int request_answers(struct device_answers *answers, inferd_client *client,
                           const inferd_request *request)
{
    device_answers_request(answers, client, request);
    const struct device_answer *reference = device_answers_reference(answers);
    // Without the reference there is nothing to compare the others with.
    return reference->result != NULL ? EXIT_OK : command_failed(&reference->error);
}

static int verify_model(const struct context *context, inferd_client *client, const char *model,
                        const struct options *options)
{
    inferd_model_info *info;
    int code = command_describe(client, model, options->request.version, &info);
    if (code != EXIT_OK)
        return code;
    struct tensor_inputs inputs = {0};
    struct device_answers answers = {0};
    code = request_options_load(&inputs, &options->request, client, model, info);
    if (code == EXIT_OK)
        code = tensor_inputs_complete(&inputs, info, TENSOR_RANDOM);
    if (code == EXIT_OK)
        code = device_answers_list(&answers, client, options->request.device,
                                   options->request.precision);
    if (code == EXIT_OK)
        code = request_answers(&answers, client,
                               &(inferd_request){.model = model,
                                                 .version = options->request.version,
                                                 .inputs = inputs.tensors,
                                                 .input_count = inputs.count});
    if (code == EXIT_OK && !print_comparison(&answers, options->tolerance, context->format))
        code = EXIT_FAILED;
    device_answers_fini(&answers);
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

static int run_verify(const struct context *context, const struct arguments *arguments)
{
    struct options options = {.tolerance = -1};
    int code = EXIT_OK;
    for (size_t i = 0; i < arguments->option_count && code == EXIT_OK; i++)
        code = take_option(&options, &arguments->options[i]);
    inferd_client *client;
    if (code == EXIT_OK)
        code = command_connect(context, false, &client);
    if (code != EXIT_OK)
        return code;
    code = verify_model(context, client, arguments->names[0], &options);
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
    .summary = "compare MODEL's results on every device in every precision with reference results",
    .help =
        "Runs the same input on every device (or on that of -d) in every precision that it offers\n"
        "(or in that of -P). The reference is the last of inferctl devices in fp32. Inputs that\n"
        "are not given are random, the same each time. Fails if a result differs.\n\n"
        "  -e, --tolerance T      accepted difference of elements, absolute or relative to the\n"
        "                         element, whichever is larger (default: 0.001 for fp32, 0.03\n"
        "                         for bf16, 0.01 for other precisions)\n" REQUEST_HELP,
    .short_options = REQUEST_SHORT_OPTIONS "e:",
    .long_options = long_options,
    .run = run_verify,
};
