// SPDX-License-Identifier: Apache-2.0
// run_contrib CASES.jsonl --backend NAME [--constants] [--open] [--list FILE] [--only TEXT]
//
// Runs every case of shared/contrib-ops: writes it as an ONNX model of one node, imports the model,
// runs it with the recorded inputs, and compares the outputs with the recorded outputs by the
// tolerance of the case. If the model is refused, the case is tried again with small inputs bound,
// which means that they are constants of the model: first integers, then also floats. With
// --constants all inputs except the first are bound, as weights are, and nothing is tried again.
// With --open the model does not give the sizes of its inputs and outputs.
//
// Prints for each case "ID ok", "ID ok bound" (it passed with bound inputs), "ID FAIL reason"
// (wrong outputs) or "ID unsupported reason" (refused), then the counts. --list FILE names the
// cases that are expected not to pass, one "ID reason" per line. --only selects the cases whose id
// contains TEXT. Exit status: 0 if exactly the listed cases do not pass; 1 otherwise; 2 if an
// argument is wrong, a file cannot be read, or no case was run.
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/import/onnx/onnx.h"
#include "backends/registry.h"
#include "tests/tools/run/compare.h"
#include "tests/tools/run/contrib_case.h"
#include "tests/tools/run/engine.h"

// The most elements of an input that bind_inputs() marks.
#define SMALL_COUNT 64
// The longest list of cases that do not pass, in bytes.
#define LIST_SIZE ((size_t)1 << 20)

struct judge {
    struct tool_engine engine;
    const char *only;
    bool constants, open;
    char *known; // text of the list; "": every case is expected to pass
    unsigned cases, ok, bound, unsupported, failed, unexpected;
};

// --- running one case ---

static enum inf_code load_model(const struct judge *judge, const struct contrib_case *subject,
                                const bool *is_bound, struct inf_model **out_model,
                                struct inf_error *err)
{
    struct inf_bound_input bound[CONTRIB_TENSORS];
    char names[CONTRIB_TENSORS][16], producer[64];
    struct inf_tally tally = INF_TALLY_INIT;
    const struct inf_onnx_files files = {.place.directory_fd = -1, .tally = &tally};
    struct inf_import_options options = {.evaluator = inf_registry_evaluator(), .bound = bound};
    struct inf_pass_options passes = {.evaluator = inf_registry_evaluator()};
    struct inf_graph *graph = NULL;
    for (uint32_t i = 0; i < subject->input_count; i++) {
        const struct contrib_tensor *tensor = &subject->inputs[i];
        snprintf(names[i], sizeof names[i], "i%d", tensor->index);
        if (is_bound[i])
            bound[options.bound_count++] =
                (struct inf_bound_input){names[i], tensor->dtype, tensor->shape, tensor->data};
    }
    // The importer gives pages of the model's bytes back to the system, so it gets a copy.
    INF_CLEANUP(inf_blob_unref)
    struct inf_blob *bytes = inf_blob_create(subject->model.size);
    if (bytes == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory");
    memcpy(bytes->data, subject->model.data, subject->model.size);
    INF_TRY(inf_onnx_import(&graph, producer, (struct inf_span){bytes->data, subject->model.size},
                            &files, &options, err));
    return inf_model_create(out_model, &graph, judge->engine.hosts, judge->engine.host_count,
                            &passes, err);
}

// One output that a run computed, with its actual shape.
struct made {
    enum inf_dtype dtype;
    struct inf_shape shape;
    const void *data;
};

static enum inf_code compare_output(const struct made *made, const struct contrib_tensor *wanted,
                                    const struct inf_strings *strings,
                                    const struct tool_tolerance *tolerance, struct inf_error *err)
{
    char has[INF_SHAPE_TEXT_SIZE], wants[INF_SHAPE_TEXT_SIZE];
    if (wanted->dtype == INF_DTYPE_NONE)
        return inf_fail(err, INF_UNSUPPORTED, "output %d has a type that is not built",
                        wanted->index);
    if (wanted->dtype != made->dtype || !inf_shape_equal(&wanted->shape, &made->shape))
        return inf_fail(err, INF_INTERNAL, "output %d is %s %s, wanted %s %s", wanted->index,
                        inf_dtype_name(made->dtype), inf_shape_print(&made->shape, has),
                        inf_dtype_name(wanted->dtype), inf_shape_print(&wanted->shape, wants));
    const struct inf_npy reference = {
        .dtype = wanted->dtype, .shape = wanted->shape, .data = wanted->data->data};
    struct tool_difference difference =
        made->dtype == INF_DTYPE_BYTES
            ? tool_compare_strings(strings, made->data, wanted->data->data,
                                   inf_shape_elements(&made->shape))
            : tool_compare(made->data, &reference, tolerance);
    if (!difference.ok)
        return inf_fail(err, INF_INTERNAL, "output %d differs by up to %.3g in %zu of %zu elements",
                        wanted->index, difference.max_abs, difference.outside, difference.count);
    return INF_OK;
}

// Compares all outputs with the recorded ones. Outputs of known size are in `blobs`. Outputs of
// unknown size were allocated by the executable.
static enum inf_code compare_outputs(struct inf_executable *executable,
                                     struct contrib_case *subject, struct inf_blob **blobs,
                                     const struct tool_tolerance *tolerance, struct inf_error *err)
{
    const struct inf_graph *graph = inf_executable_graph(executable);
    const struct inf_strings strings = {.constants = inf_shared_strings_pool(graph->strings),
                                        .run = &subject->strings};
    for (uint32_t i = 0; i < graph->output_count; i++) {
        const struct inf_value *value = &graph->values[graph->outputs[i].value];
        struct made made = {value->dtype, value->shape, blobs[i] != NULL ? blobs[i]->data : NULL};
        struct inf_result result;
        if (inf_executable_result(executable, 0, i, &result))
            made = (struct made){result.dtype, result.shape, result.data};
        if (made.data == NULL)
            return inf_fail(err, INF_INTERNAL, "output %u has no known size", i);
        INF_TRY(compare_output(&made, &subject->outputs[i], &strings, tolerance, err));
    }
    return INF_OK;
}

static enum inf_code run_executable(struct inf_executable *executable, struct contrib_case *subject,
                                    const bool *is_bound, const struct tool_tolerance *tolerance,
                                    struct inf_error *err)
{
    const struct inf_graph *graph = inf_executable_graph(executable);
    struct inf_blob *blobs[CONTRIB_TENSORS] = {0};
    const void *inputs[CONTRIB_TENSORS];
    void *outputs[CONTRIB_TENSORS] = {0};
    uint32_t given = 0;
    if (graph->output_count != subject->output_count)
        return inf_fail(err, INF_INTERNAL, "%u outputs, wanted %u", graph->output_count,
                        subject->output_count);
    for (uint32_t i = 0; i < subject->input_count; i++)
        if (!is_bound[i])
            inputs[given++] = subject->inputs[i].data->data;
    for (uint32_t i = 0; i < graph->output_count; i++) {
        const struct inf_value *value = &graph->values[graph->outputs[i].value];
        size_t size_bytes;
        if (inf_shape_bytes(&value->shape, value->dtype, &size_bytes))
            blobs[i] = inf_blob_create(size_bytes);
        outputs[i] = blobs[i] != NULL ? blobs[i]->data : NULL;
    }
    struct inf_execution execution = {
        .inputs = inputs, .outputs = outputs, .strings = &subject->strings};
    enum inf_code code = inf_executable_run(executable, &execution, err);
    if (code == INF_OK)
        code = compare_outputs(executable, subject, blobs, tolerance, err);
    inf_executable_drop_results(executable, 0);
    for (uint32_t i = 0; i < CONTRIB_TENSORS; i++)
        inf_blob_unref(&blobs[i]);
    return code;
}

// Runs the case once. Inputs i with is_bound[i] become constants of the model.
static enum inf_code try_case(const struct judge *judge, struct contrib_case *subject,
                              const bool *is_bound, const struct tool_tolerance *tolerance,
                              struct inf_error *err)
{
    struct inf_model *model = NULL;
    struct inf_executable *executable = NULL;
    struct inf_shape shapes[CONTRIB_TENSORS];
    uint32_t count = 0;
    INF_TRY(load_model(judge, subject, is_bound, &model, err));
    enum inf_code code = INF_OK;
    for (uint32_t i = 0; i < subject->input_count; i++) {
        if (subject->inputs[i].dtype == INF_DTYPE_NONE)
            code = inf_fail(err, INF_UNSUPPORTED, "input %d has a type that is not built",
                            subject->inputs[i].index);
        if (!is_bound[i])
            shapes[count++] = subject->inputs[i].shape;
    }
    if (code == INF_OK)
        code = inf_model_acquire(model, judge->engine.device, shapes, &executable, err);
    if (executable != NULL) {
        code = run_executable(executable, subject, is_bound, tolerance, err);
        inf_model_release(model, &executable);
    }
    inf_model_unref(&model);
    return code;
}

// Returns true if the case was refused rather than computed wrongly.
static bool is_refused(enum inf_code code)
{
    return code != INF_OK && code != INF_INTERNAL;
}

// Sets is_bound[i] for the inputs that can determine shapes: integers and, if `floats` is true,
// also floats, such as the scales of a resize. They have rank 0 or 1 and at most SMALL_COUNT
// elements.
static void bind_inputs(const struct contrib_case *subject, bool *is_bound, bool floats)
{
    for (uint32_t i = 0; i < subject->input_count; i++) {
        const struct contrib_tensor *tensor = &subject->inputs[i];
        is_bound[i] = tensor->dtype != INF_DTYPE_NONE && tensor->dtype != INF_DTYPE_BYTES &&
                      tensor->shape.rank <= 1 && (floats || !inf_dtype_is_float(tensor->dtype)) &&
                      inf_shape_elements(&tensor->shape) <= SMALL_COUNT;
    }
}

static enum inf_code run_case(const struct judge *judge, struct contrib_case *subject,
                              const struct tool_tolerance *tolerance, bool *bound,
                              struct inf_error *err)
{
    bool is_bound[CONTRIB_TENSORS] = {false};
    for (uint32_t i = 1; judge->constants && i < subject->input_count; i++)
        is_bound[i] = subject->inputs[i].dtype != INF_DTYPE_NONE &&
                      subject->inputs[i].dtype != INF_DTYPE_BYTES;
    enum inf_code code = try_case(judge, subject, is_bound, tolerance, err);
    for (int floats = 0; floats < 2 && is_refused(code) && !judge->constants; floats++) {
        struct inf_error again = {0};
        bind_inputs(subject, is_bound, floats != 0);
        enum inf_code second = try_case(judge, subject, is_bound, tolerance, &again);
        // If this try is refused too, keep the error of the first try, which is more informative.
        if (!is_refused(second)) {
            *err = again;
            code = second;
        }
        *bound |= second == INF_OK;
    }
    return code;
}

// --- comparing results with the list ---

static bool is_known(const struct judge *judge, const char *id)
{
    size_t length = strlen(id);
    for (const char *at = judge->known; (at = strstr(at, id)) != NULL; at += length)
        if ((at == judge->known || at[-1] == '\n') && at[length] == ' ')
            return true;
    return false;
}

static struct tool_tolerance read_tolerance(const json_t *line)
{
    const json_t *given = json_object_get(line, "tolerance");
    return (struct tool_tolerance){.atol = json_number_value(json_object_get(given, "atol")),
                                   .rtol = json_number_value(json_object_get(given, "rtol")),
                                   .lsb = json_number_value(json_object_get(given, "lsb"))};
}

static void judge_line(struct judge *judge, const json_t *line)
{
    const char *id = json_string_value(json_object_get(line, "id"));
    const struct tool_tolerance tolerance = read_tolerance(line);
    struct inf_error err = {0};
    struct contrib_case subject;
    bool bound = false;
    if (id == NULL || (judge->only != NULL && strstr(id, judge->only) == NULL))
        return;
    enum inf_code code = contrib_case_init(&subject, line, judge->open, &err);
    if (code == INF_OK)
        code = run_case(judge, &subject, &tolerance, &bound, &err);
    contrib_case_fini(&subject);
    judge->cases++;
    judge->ok += code == INF_OK;
    judge->bound += bound;
    judge->unsupported += is_refused(code);
    judge->failed += code == INF_INTERNAL;
    if (code == INF_OK)
        printf("%s ok%s\n", id, bound ? " bound" : "");
    else
        printf("%s %s %s\n", id, is_refused(code) ? "unsupported" : "FAIL", err.text);
    if (is_known(judge, id) == (code == INF_OK)) {
        judge->unexpected++;
        if (*judge->known != '\0')
            printf("%s is %s the list\n", id, code == INF_OK ? "on" : "not on");
    }
    fflush(stdout);
}

static int judge_file(struct judge *judge, const char *path)
{
    FILE *file = fopen(path, "r");
    char *text = NULL;
    size_t capacity = 0;
    ssize_t length;
    if (file == NULL) {
        fprintf(stderr, "run_contrib: cannot read '%s'\n", path);
        return 2;
    }
    while ((length = getline(&text, &capacity, file)) > 0) {
        json_t *line = json_loadb(text, (size_t)length, 0, NULL);
        judge_line(judge, line);
        json_decref(line);
    }
    free(text);
    fclose(file);
    printf("%u cases: %u ok (%u of them bound), %u unsupported, %u FAIL\n", judge->cases, judge->ok,
           judge->bound, judge->unsupported, judge->failed);
    return judge->cases == 0 ? 2 : judge->unexpected > 0;
}

static char *read_list(const char *path)
{
    FILE *file = path != NULL ? fopen(path, "r") : NULL;
    char *text = calloc(1, LIST_SIZE);
    if (text == NULL || (path != NULL && file == NULL)) {
        fprintf(stderr, "run_contrib: cannot read the list\n");
        exit(2);
    }
    if (file != NULL) {
        text[fread(text, 1, LIST_SIZE - 1, file)] = '\0';
        fclose(file);
    }
    return text;
}

static int print_usage(void)
{
    fputs(
        "usage: run_contrib CASES.jsonl --backend NAME [--constants] [--open] [--list FILE] "
        "[--only TEXT]\n",
        stderr);
    return 2;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"backend", required_argument, NULL, 'b'}, {"list", required_argument, NULL, 'l'},
        {"only", required_argument, NULL, 'o'},    {"constants", no_argument, NULL, 'c'},
        {"open", no_argument, NULL, 'p'},          {0}};
    struct judge judge = {0};
    struct inf_error err = {0};
    const char *backend = NULL, *list = NULL;
    int option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'b')
            backend = optarg;
        else if (option == 'l')
            list = optarg;
        else if (option == 'o')
            judge.only = optarg;
        else if (option == 'c')
            judge.constants = true;
        else if (option == 'p')
            judge.open = true;
        else
            return print_usage();
    }
    if (backend == NULL || argc - optind != 1)
        return print_usage();
    if (tool_engine_open(&judge.engine, backend, 0, &err) != INF_OK) {
        fprintf(stderr, "run_contrib: %s\n", err.text);
        return 2;
    }
    judge.known = read_list(list);
    int status = judge_file(&judge, argv[optind]);
    tool_engine_close(&judge.engine);
    free(judge.known);
    return status;
}
