// SPDX-License-Identifier: Apache-2.0
// inferctl selftest: loads a small model whose answer is known, runs it on every device in every
// precision, and compares the answers. The model goes the way of every model: through the importer,
// the compiler and the kernels. Signals that would end the program wait until the model is
// unloaded.
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/inferctl/cli/command.h"
#include "client/inferctl/selftest/known_model.h"
#include "client/inferctl/tensor/compare.h"
#include "client/inferctl/tensor/device_answers.h"
#include "client/inferctl/text/table.h"

// The folder of the model's files, and the name under which the model is loaded.
struct place {
    char folder[PATH_MAX];
    char model[64];
};

// Makes a folder that the daemon's user can read, with the files of the model. Returns an exit
// code, and prints a message on failure. The caller calls remove_place() in any case.
static int make_place(struct place *place)
{
    const char *parent = getenv("TMPDIR");
    snprintf(place->folder, sizeof place->folder, "%s/inferctl-XXXXXX",
             parent != NULL && parent[0] == '/' ? parent : "/tmp");
    snprintf(place->model, sizeof place->model, "inferctl-selftest-%ld", (long)getpid());
    if (mkdtemp(place->folder) == NULL) {
        command_say(EXIT_FILE, "cannot make the folder %s: %m", place->folder);
        place->folder[0] = '\0';
        return EXIT_FILE;
    }
    if (chmod(place->folder, 0755) != 0)
        return command_say(EXIT_FILE, "cannot make %s readable: %m", place->folder);
    mode_t mask = umask(022);
    int code = known_model_write(place->folder);
    umask(mask);
    return code;
}

static void remove_place(const struct place *place)
{
    // No folder was made.
    if (place->folder[0] == '\0')
        return;
    known_model_remove(place->folder);
    rmdir(place->folder);
}

// Returns the worst verdict on the outputs of an answer: "ok", or what is wrong. Stores the largest
// difference of an element in *difference.
static const char *judge_answer(const struct device_answer *answer, double *difference)
{
    const char *verdict = "ok";
    for (unsigned i = 0; i < KNOWN_MODEL_OUTPUTS; i++) {
        const inferd_tensor *wanted = known_model_output(i);
        const inferd_tensor *got = inferd_result_find(answer->result, wanted->name);
        if (got == NULL || got->dtype != wanted->dtype || got->size != wanted->size)
            return "DIFFERS in shape";
        struct tensor_difference apart =
            tensor_compare(got, wanted, device_answer_tolerance(answer));
        *difference = apart.max_abs > *difference ? apart.max_abs : *difference;
        if (!apart.within)
            verdict = "DIFFERS";
    }
    return verdict;
}

// Prints a row for each device and precision. Returns whether all answers are right.
static bool print_answers(const struct device_answers *answers, enum output_format format)
{
    static const char *const columns[] = {"device", "precision", "max_abs", "verdict"};
    struct table *table = table_create(columns, sizeof columns / sizeof columns[0]);
    bool ok = true;
    for (size_t i = 0; i < answers->count; i++) {
        const struct device_answer *answer = &answers->answers[i];
        table_text(table, answer->device);
        table_text(table, answer->precision);
        if (answer->result == NULL) {
            table_value(table, json_null(), "-");
            table_text(table, answer->error.text);
            ok = false;
            continue;
        }
        double difference = 0;
        const char *verdict = judge_answer(answer, &difference);
        char text[32];
        snprintf(text, sizeof text, "%.3g", difference);
        table_real(table, difference, text);
        table_text(table, verdict);
        ok &= strcmp(verdict, "ok") == 0;
    }
    table_print(table, format, false);
    return ok;
}

static int test_devices(const struct context *context, inferd_client *client, const char *model,
                        const char *device)
{
    float values[KNOWN_MODEL_INPUTS];
    known_model_fill_input(values);
    const inferd_tensor input = {.name = "x",
                                 .dtype = INFERD_FP32,
                                 .rank = 4,
                                 .shape = {1, 8, 8, 3},
                                 .data = values,
                                 .size = sizeof values};
    const inferd_request request = {.model = model, .inputs = &input, .input_count = 1};
    struct device_answers answers = {0};
    int code = device_answers_list(&answers, client, device, NULL);
    if (code == EXIT_OK) {
        device_answers_request(&answers, client, &request);
        code = print_answers(&answers, context->format) ? EXIT_OK : EXIT_FAILED;
    }
    device_answers_fini(&answers);
    return code;
}

// Loads the model, tests the devices, and unloads the model.
static int run_test(const struct context *context, inferd_client *client, const struct place *place,
                    const char *device)
{
    struct inferd_error err;
    if (inferd_load(client, place->model, place->folder, NULL, NULL, NULL, &err) != 0)
        return command_failed(&err);
    int code = test_devices(context, client, place->model, device);
    if (inferd_unload(client, place->model, NULL, &err) != 0)
        code = command_failed(&err);
    return code;
}

static int run_selftest(const struct context *context, const struct arguments *arguments)
{
    const char *device = NULL;
    for (size_t i = 0; i < arguments->option_count; i++)
        device = arguments->options[i].value;
    inferd_client *client;
    int code = command_connect(context, true, &client);
    if (code != EXIT_OK)
        return code;
    sigset_t ending, before;
    sigemptyset(&ending);
    sigaddset(&ending, SIGINT);
    sigaddset(&ending, SIGTERM);
    sigaddset(&ending, SIGHUP);
    sigprocmask(SIG_BLOCK, &ending, &before);
    struct place place;
    code = make_place(&place);
    if (code == EXIT_OK)
        code = run_test(context, client, &place, device);
    remove_place(&place);
    inferd_close(client);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return code;
}

static const struct option long_options[] = {{"device", required_argument, NULL, 'd'}, {0}};

const struct command command_selftest = {
    .name = "selftest",
    .names = "",
    .summary = "have every device compute a small model whose answer is known",
    .help =
        "Loads the model, runs it on every device in every precision that it offers, and\n"
        "unloads it. Fails if an answer differs from the known one. Needs the admin socket.\n\n"
        "  -d, --device NAME      only this device and the reference device\n",
    .short_options = "d:",
    .long_options = long_options,
    .run = run_selftest,
};
