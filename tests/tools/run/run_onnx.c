// SPDX-License-Identifier: Apache-2.0
// run_onnx DIR --backend NAME [--list FILE] [--label TEXT] [--only TEST] [--threads N] [--counts]
//
// Runs every test below DIR in the layout of ONNX's backend test data (TEST/model.onnx with
// TEST/test_data_set_N/input_K.pb and output_K.pb, or NAME.onnx with NAME_output_0.pb for the input
// arange(n) / n). Compares as ONNX does: equal types and shapes, rtol 1e-3, atol 1e-7; but FP32 may
// differ by half a unit in the last place of the output's largest element, too.
//
// Prints "TEST ok", "TEST ok bound", "TEST FAIL reason" or "TEST unsupported reason" for each test,
// then the counts. A sequence is as many inputs or outputs as it has tensors in the data set.
// "bound" means that inputs that determine shapes were given as constants when the model was
// imported. --list names the tests that are expected to fail, one "TEST reason" per line,
// or "LABEL:TEST reason" for tests that fail only in the data with that label. Exit status: 0 if
// exactly the listed tests fail, 1 otherwise, 2 usage.
#include <dirent.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/graph/pass/pass.h"
#include "backends/import/onnx/proto.h"
#include "backends/import/onnx/tensor.h"
#include "backends/registry.h"
#include "backends/storage/file.h"
#include "tests/tools/run/compare.h"
#include "tests/tools/run/engine.h"
#include "tests/tools/run/onnx_case.h"

#define DEPTH_MAX 4
// Only float inputs of at most this many elements may determine shapes, such as scales or regions.
#define SMALL_COUNT 64
// Half the distance of FP32 numbers around 1. Recorded sums of FP32 numbers, such as Fourier
// transforms, have rounding errors in proportion to their largest terms where the exact sum is 0.
#define ROUNDING 0x1p-24

struct judge {
    struct tool_engine engine;
    const char *only;
    bool counts;       // print the number of nodes and transposes that were run
    const char *label; // label of the test data in the list of expected failures; "": none
    char *known;       // text of the list of expected failures; "": no test is expected to fail
    unsigned tests, ok, bound, unsupported, failed, unexpected;
};

// --- running a test ---

static enum inf_code load_model(const struct judge *judge, const struct onnx_case *test,
                                struct inf_model **out_model, struct inf_error *err)
{
    struct inf_bound_input bound[INF_LIMIT_TENSORS];
    struct inf_import_options options = {.evaluator = inf_registry_evaluator(),
                                         .bound = bound,
                                         .lengths = test->lengths,
                                         .length_count = test->length_count};
    struct inf_pass_options passes = {.evaluator = inf_registry_evaluator()};
    struct inf_graph *graph = NULL;
    int fd;
    for (uint32_t i = 0; i < test->input_count; i++)
        if (test->is_bound[i])
            bound[options.bound_count++] = (struct inf_bound_input){
                test->inputs[i], test->given[i].dtype, test->given[i].shape, test->given[i].data};
    INF_TRY(inf_directory_open(&fd, test->directory, err));
    enum inf_code code = inf_model_import_with(&graph, NULL, fd, test->model, &options, err);
    close(fd);
    INF_TRY(code);
    return inf_model_create(out_model, &graph, judge->engine.hosts, judge->engine.host_count,
                            &passes, err);
}

// One output of a run, with the shape that it has after the run.
struct made {
    enum inf_dtype dtype;
    struct inf_shape shape;
    const void *data;
};

static enum inf_code compare_output(struct onnx_case *test, const struct made *made,
                                    const struct inf_graph *graph, uint32_t index,
                                    struct inf_onnx_tensor *wanted, struct inf_error *err)
{
    static const struct tool_tolerance tolerance = {
        .atol = 1e-7, .rtol = 1e-3, .of_largest = ROUNDING};
    char has[INF_SHAPE_TEXT_SIZE], wants[INF_SHAPE_TEXT_SIZE];
    onnx_case_correct_type(wanted, made->dtype);
    struct inf_npy reference = {
        .dtype = wanted->dtype, .shape = wanted->shape, .data = wanted->data->data};
    if (wanted->dtype != made->dtype || !inf_shape_equal(&wanted->shape, &made->shape))
        return inf_fail(err, INF_INTERNAL, "output %u is %s %s, wanted %s %s", index,
                        inf_dtype_name(made->dtype), inf_shape_print(&made->shape, has),
                        inf_dtype_name(wanted->dtype), inf_shape_print(&wanted->shape, wants));
    const struct inf_strings strings = {.constants = inf_shared_strings_pool(graph->strings),
                                        .run = &test->strings};
    struct tool_difference difference =
        made->dtype == INF_DTYPE_BYTES
            ? tool_compare_strings(&strings, made->data, wanted->data->data,
                                   inf_shape_elements(&made->shape))
            : tool_compare(made->data, &reference, &tolerance);
    return difference.ok
               ? INF_OK
               : inf_fail(err, INF_INTERNAL, "output %u differs by up to %.3g (%.3g of the value)",
                          index, difference.max_abs, difference.max_rel);
}

// Compares all outputs. Outputs of known size are in `outputs`; the run allocated the others.
static enum inf_code compare_all(struct onnx_case *test, struct inf_executable *executable,
                                 void *const *outputs, struct onnx_items *wanted,
                                 struct inf_error *err)
{
    const struct inf_graph *graph = inf_executable_graph(executable);
    if (wanted->count != graph->output_count)
        return inf_fail(err, INF_INTERNAL, "there are %u outputs, wanted %u", graph->output_count,
                        wanted->count);
    for (uint32_t i = 0; i < graph->output_count; i++) {
        const struct inf_value *value = &graph->values[graph->outputs[i].value];
        struct made made = {value->dtype, value->shape, outputs[i]};
        struct inf_result result;
        if (inf_executable_result(executable, 0, i, &result))
            made = (struct made){result.dtype, result.shape, result.data};
        if (made.data == NULL)
            return inf_fail(err, INF_UNSUPPORTED, "output '%s' has no known size",
                            graph->outputs[i].name);
        INF_TRY(compare_output(test, &made, graph, i, &wanted->tensors[i], err));
    }
    return INF_OK;
}

static enum inf_code compare_outputs(struct onnx_case *test, struct inf_executable *executable,
                                     void *const *outputs, unsigned set, struct inf_error *err)
{
    struct inf_onnx_tensor tensors[INF_LIMIT_TENSORS];
    struct onnx_items wanted = {tensors, 0, INF_LIMIT_TENSORS};
    enum inf_code code = onnx_case_read_wanted(test, set, &wanted, err);
    if (code == INF_OK)
        code = compare_all(test, executable, outputs, &wanted, err);
    for (uint32_t i = 0; i < wanted.count; i++)
        inf_blob_unref(&tensors[i].data);
    return code;
}

static enum inf_code run_executable(struct onnx_case *test, struct inf_executable *executable,
                                    unsigned set, struct inf_error *err)
{
    const struct inf_graph *graph = inf_executable_graph(executable);
    struct inf_blob *blobs[INF_LIMIT_TENSORS] = {0};
    const void *inputs[INF_LIMIT_TENSORS];
    void *outputs[INF_LIMIT_TENSORS];
    enum inf_code code = INF_OK;
    uint32_t at = 0;
    if (graph->output_count > INF_LIMIT_TENSORS)
        return inf_fail(err, INF_UNSUPPORTED, "has %u outputs", graph->output_count);
    test->nodes = graph->node_count;
    test->transposes = 0;
    for (uint32_t i = 0; i < graph->node_count; i++)
        test->transposes += graph->nodes[i].op == INF_OP_TRANSPOSE;
    for (uint32_t i = 0; i < test->input_count; i++)
        if (!test->is_bound[i])
            inputs[at++] = test->given[i].data->data;
    for (uint32_t i = 0; code == INF_OK && i < graph->output_count; i++) {
        const struct inf_value *value = &graph->values[graph->outputs[i].value];
        size_t size;
        outputs[i] = NULL;
        if (!inf_shape_bytes(&value->shape, value->dtype, &size))
            continue;
        if ((blobs[i] = inf_blob_create(size)) == NULL)
            code = inf_fail(err, INF_EXHAUSTED, "no memory for %zu bytes", size);
        else
            outputs[i] = blobs[i]->data;
    }
    struct inf_execution execution = {
        .inputs = inputs, .outputs = outputs, .strings = &test->strings};
    if (code == INF_OK)
        code = inf_executable_run(executable, &execution, err);
    if (code == INF_OK)
        code = compare_outputs(test, executable, outputs, set, err);
    inf_executable_drop_results(executable, 0);
    for (uint32_t i = 0; i < INF_LIMIT_TENSORS; i++)
        inf_blob_unref(&blobs[i]);
    return code;
}

// Runs one data set. Inputs that are marked as bound become constants of the model.
static enum inf_code try_set(const struct judge *judge, struct onnx_case *test, unsigned set,
                             struct inf_error *err)
{
    struct inf_model *model = NULL;
    struct inf_executable *executable = NULL;
    struct inf_shape shapes[INF_LIMIT_TENSORS];
    uint32_t count = 0;
    INF_TRY(load_model(judge, test, &model, err));
    for (uint32_t i = 0; i < test->input_count; i++)
        if (!test->is_bound[i])
            shapes[count++] = test->given[i].shape;
    enum inf_code code = inf_model_acquire(model, judge->engine.device, shapes, &executable, err);
    if (code == INF_OK) {
        code = run_executable(test, executable, set, err);
        inf_model_release(model, &executable);
    }
    inf_model_unref(&model);
    return code;
}

// Marks inputs that may determine shapes as bound: integers, and with `floats` also small float
// inputs. Returns false if no input is newly marked.
static bool bind_more(struct onnx_case *test, bool floats)
{
    bool changed = false;
    for (uint32_t i = 0; i < test->input_count; i++) {
        const struct inf_onnx_tensor *given = &test->given[i];
        bool binds = given->shape.rank <= 1 && given->dtype != INF_DTYPE_BYTES &&
                     (floats || !inf_dtype_is_float(given->dtype)) &&
                     inf_shape_elements(&given->shape) <= SMALL_COUNT;
        changed |= binds && !test->is_bound[i];
        test->is_bound[i] |= binds;
    }
    return changed;
}

// Returns true if the model was refused, so that another try with bound inputs may help. A wrong
// result does not qualify.
static bool is_refused(enum inf_code code)
{
    return code != INF_OK && code != INF_INTERNAL;
}

static enum inf_code run_set(const struct judge *judge, struct onnx_case *test, unsigned set,
                             bool *bound, struct inf_error *err)
{
    memset(test->is_bound, 0, sizeof test->is_bound);
    enum inf_code code = onnx_case_read_set(test, set, err);
    bool readable = code == INF_OK;
    if (readable)
        code = try_set(judge, test, set, err);
    for (int floats = 0; floats < 2 && readable && is_refused(code); floats++) {
        struct inf_error again = {0};
        if (!bind_more(test, floats != 0))
            continue;
        enum inf_code second = try_set(judge, test, set, &again);
        // Keep the first error, which is more informative, unless the second try was not refused.
        if (!is_refused(second)) {
            *err = again;
            code = second;
        }
        *bound |= second == INF_OK;
    }
    onnx_case_drop_set(test);
    return code;
}

static bool has_set(const struct onnx_case *test, unsigned set)
{
    char path[ONNX_CASE_PATH_SIZE + 64];
    snprintf(path, sizeof path, "%s/test_data_set_%u", test->directory, set);
    return test->is_light ? set == 0 : access(path, R_OK) == 0;
}

// --- comparing results with the list of expected failures ---

// Returns true if a line of the list begins with `word`.
static bool is_listed(const struct judge *judge, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = judge->known; (at = strstr(at, word)) != NULL; at += length)
        if ((at == judge->known || at[-1] == '\n') && (at[length] == ' ' || at[length] == '\n'))
            return true;
    return false;
}

static bool is_known(const struct judge *judge, const char *name)
{
    char labelled[512];
    snprintf(labelled, sizeof labelled, "%s:%s", judge->label, name);
    return is_listed(judge, name) || is_listed(judge, labelled);
}

static void judge_test(struct judge *judge, struct onnx_case *test)
{
    struct inf_error err = {0};
    bool bound = false;
    unsigned set = 0;
    if (judge->only != NULL && strcmp(judge->only, test->name) != 0)
        return;
    enum inf_code code = onnx_case_read_ports(test, &err);
    for (; code == INF_OK && has_set(test, set); set++)
        code = run_set(judge, test, set, &bound, &err);
    if (code == INF_OK && set == 0)
        code = inf_fail(&err, INF_UNSUPPORTED, "has no data");
    judge->tests++;
    if (code == INF_OK) {
        printf("%s ok%s", test->name, bound ? " bound" : "");
        if (judge->counts)
            printf(" nodes %u transposes %u", test->nodes, test->transposes);
        printf("\n");
        judge->ok++;
        judge->bound += bound;
    } else if (is_refused(code)) {
        printf("%s unsupported %s\n", test->name, err.text);
        judge->unsupported++;
    } else {
        printf("%s FAIL %s\n", test->name, err.text);
        judge->failed++;
    }
    if (is_known(judge, test->name) == (code == INF_OK)) {
        judge->unexpected++;
        if (*judge->known != '\0')
            printf("%s is %s the list\n", test->name, code == INF_OK ? "on" : "not on");
    }
    inf_arena_fini(&test->arena);
    fflush(stdout);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

static void judge_file(struct judge *judge, const char *directory, const char *name)
{
    struct onnx_case *test = calloc(1, sizeof *test);
    const char *slash = strrchr(directory, '/');
    bool is_light = strcmp(name, "model.onnx") != 0;
    char stem[256];
    if (test == NULL)
        abort();
    snprintf(stem, sizeof stem, "%.*s", (int)INF_MIN(strlen(name) - 5, 250u), name);
    test->name = is_light ? stem : slash != NULL ? slash + 1 : directory;
    test->is_light = is_light;
    snprintf(test->directory, sizeof test->directory, "%s", directory);
    snprintf(test->model, sizeof test->model, "%s", name);
    judge_test(judge, test);
    free(test);
}

// Runs all tests below a directory, in the order of names.
static void judge_directory(struct judge *judge, const char *directory, int depth)
{
    struct dirent **entries = NULL;
    int count = depth < DEPTH_MAX ? scandir(directory, &entries, NULL, by_name) : 0;
    for (int i = 0; i < count; i++) {
        const char *name = entries[i]->d_name;
        char path[ONNX_CASE_PATH_SIZE];
        snprintf(path, sizeof path, "%s/%s", directory, name);
        if (ends_with(name, ".onnx"))
            judge_file(judge, directory, name);
        else if (name[0] != '.' && strncmp(name, "test_data_set", 13) != 0 &&
                 entries[i]->d_type == DT_DIR)
            judge_directory(judge, path, depth + 1);
        free(entries[i]);
    }
    free(entries);
}

static char *read_list(const char *path)
{
    FILE *file = path != NULL ? fopen(path, "r") : NULL;
    char *text = calloc(1, 1 << 20);
    if (text == NULL || (path != NULL && file == NULL)) {
        fprintf(stderr, "run_onnx: cannot read the list\n");
        exit(2);
    }
    if (file != NULL) {
        text[fread(text, 1, (1 << 20) - 1, file)] = '\0';
        fclose(file);
    }
    return text;
}

static int print_usage(void)
{
    fputs(
        "usage: run_onnx DIR --backend NAME [--list FILE] [--label TEXT] [--only TEST] "
        "[--threads N] [--counts]\n",
        stderr);
    return 2;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"backend", required_argument, NULL, 'b'},
                                            {"list", required_argument, NULL, 'l'},
                                            {"only", required_argument, NULL, 'o'},
                                            {"threads", required_argument, NULL, 't'},
                                            {"counts", no_argument, NULL, 'c'},
                                            {"label", required_argument, NULL, 'L'},
                                            {0}};
    struct judge judge = {.label = ""};
    struct inf_error err = {0};
    const char *backend = NULL, *list = NULL;
    uint32_t threads = 0;
    int option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'b')
            backend = optarg;
        else if (option == 'l')
            list = optarg;
        else if (option == 'o')
            judge.only = optarg;
        else if (option == 'L')
            judge.label = optarg;
        else if (option == 'c')
            judge.counts = true;
        else if (option == 't')
            threads = (uint32_t)strtoul(optarg, NULL, 10);
        else
            return print_usage();
    }
    if (backend == NULL || argc - optind != 1)
        return print_usage();
    judge.known = read_list(list);
    if (tool_engine_open(&judge.engine, backend, threads, &err) != INF_OK) {
        fprintf(stderr, "run_onnx: %s\n", err.text);
        return 2;
    }
    judge_directory(&judge, argv[optind], 0);
    printf("%u tests: %u ok (%u of them bound), %u unsupported, %u FAIL\n", judge.tests, judge.ok,
           judge.bound, judge.unsupported, judge.failed);
    tool_engine_close(&judge.engine);
    free(judge.known);
    return judge.tests == 0 ? 2 : judge.unexpected > 0;
}
