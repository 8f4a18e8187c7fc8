// SPDX-License-Identifier: Apache-2.0
// run_kernels CASES.jsonl --backend NAME [--only KERNEL]
//
// Maps every recorded TensorFlow.js kernel call of shared/tfjs-kernels to a graph, runs the graph
// on a device, and compares by the rules of that folder's README: type and shape equal, integers
// and booleans equal, floats within 1e-5 + 1e-4 * |wanted|. Prints failures by id, refusals by
// kernel, and counts. Exit status: 0 no result is wrong, 1 a result is wrong, 2 usage.
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/registry.h"
#include "tests/tools/run/engine.h"
#include "tests/tools/run/kernel_case.h"

#define KERNELS_MAX 256

// How many recorded calls of one kernel passed, gave wrong results, or were refused.
struct kernel_tally {
    char name[48];
    unsigned passed, wrong, refused;
    char reason[160]; // the reason of a refusal
};

struct judge {
    struct tool_engine engine;
    struct kernel_tally kernels[KERNELS_MAX];
    unsigned kernel_count;
};

static struct kernel_tally *tally_of(struct judge *judge, const char *kernel)
{
    for (unsigned i = 0; i < judge->kernel_count; i++)
        if (strcmp(judge->kernels[i].name, kernel) == 0)
            return &judge->kernels[i];
    if (judge->kernel_count == KERNELS_MAX)
        return NULL;
    struct kernel_tally *tally = &judge->kernels[judge->kernel_count++];
    snprintf(tally->name, sizeof(tally->name), "%s", kernel);
    return tally;
}

// --- comparing outputs with the recorded ones ---

// One output of a run, with the shape that it has after the run.
struct answer {
    enum inf_dtype dtype;
    struct inf_shape shape;
    const void *data;
};

static bool float_ok(double got, double wanted)
{
    if (isnan(wanted) || isinf(wanted))
        return isnan(wanted) ? isnan(got) : got == wanted;
    return fabs(got - wanted) <= 1e-5 + 1e-4 * fabs(wanted);
}

static enum inf_code compare_output(const struct answer *answer, const json_t *recorded,
                                    size_t index, struct inf_error *err)
{
    enum inf_dtype dtype;
    struct inf_shape shape;
    char has[INF_SHAPE_TEXT_SIZE], wants[INF_SHAPE_TEXT_SIZE];
    INF_CLEANUP(inf_blob_unref) struct inf_blob *wanted = kernel_tensor(recorded, &dtype, &shape);
    if (wanted == NULL)
        return inf_fail(err, INF_INVALID, "recorded output %zu is no tensor", index);
    if (answer->dtype != dtype || !inf_shape_equal(&answer->shape, &shape))
        return inf_fail(err, INF_INVALID, "output %zu is %s %s, wanted %s %s", index,
                        inf_dtype_name(answer->dtype), inf_shape_print(&answer->shape, has),
                        inf_dtype_name(dtype), inf_shape_print(&shape, wants));
    const unsigned char *got = answer->data, *want = wanted->data;
    for (size_t i = 0; i < inf_shape_elements(&shape); i++) {
        if (dtype == INF_DTYPE_F32) {
            float a = ((const float *)answer->data)[i], b = ((const float *)wanted->data)[i];
            if (!float_ok((double)a, (double)b))
                return inf_fail(err, INF_INVALID, "output %zu, element %zu is %.9g, wanted %.9g",
                                index, i, (double)a, (double)b);
        } else if (dtype == INF_DTYPE_I32) {
            int32_t a = ((const int32_t *)answer->data)[i], b = ((const int32_t *)wanted->data)[i];
            if (a != b)
                return inf_fail(err, INF_INVALID, "output %zu, element %zu is %d, wanted %d", index,
                                i, a, b);
        } else if (got[i] != want[i]) {
            return inf_fail(err, INF_INVALID, "output %zu, element %zu is %d, wanted %d", index, i,
                            got[i], want[i]);
        }
    }
    return INF_OK;
}

// --- running the graph of a recorded call ---

static enum inf_code judge_outputs(const struct inf_executable *executable,
                                   const struct inf_graph *graph, struct inf_blob *const *blobs,
                                   const json_t *recorded, struct inf_error *err)
{
    if (json_array_size(recorded) != graph->output_count)
        return inf_fail(err, INF_INVALID, "%u outputs, wanted %zu", graph->output_count,
                        json_array_size(recorded));
    for (uint32_t i = 0; i < graph->output_count; i++) {
        const struct inf_value *value = &graph->values[graph->outputs[i].value];
        struct answer answer = {.dtype = value->dtype, .shape = value->shape};
        struct inf_result result;
        if (inf_executable_result(executable, 0, i, &result))
            answer = (struct answer){result.dtype, result.shape, result.data};
        else if (blobs[i] != NULL)
            answer.data = blobs[i]->data;
        else
            return inf_fail(err, INF_INVALID, "output %u was not made", i);
        INF_TRY(compare_output(&answer, json_array_get(recorded, i), i, err));
    }
    return INF_OK;
}

static enum inf_code run_executable(struct inf_executable *executable,
                                    const struct kernel_case *call, struct inf_error *err)
{
    const struct inf_graph *graph = inf_executable_graph(executable);
    const void *inputs[KERNEL_TENSORS] = {0};
    void *outputs[KERNEL_TENSORS] = {0};
    struct inf_blob *blobs[KERNEL_TENSORS] = {0};
    for (uint32_t i = 0; i < graph->input_count; i++)
        inputs[i] = call->data[i]->data;
    for (uint32_t i = 0; i < graph->output_count; i++) {
        const struct inf_value *value = &graph->values[graph->outputs[i].value];
        size_t size_bytes;
        if (inf_shape_bytes(&value->shape, value->dtype, &size_bytes))
            blobs[i] = inf_blob_create(size_bytes);
        outputs[i] = blobs[i] != NULL ? blobs[i]->data : NULL;
    }
    struct inf_execution execution = {.inputs = inputs, .outputs = outputs};
    enum inf_code code = inf_executable_run(executable, &execution, err);
    if (code == INF_OK)
        code = judge_outputs(executable, graph, blobs, call->outputs, err);
    for (uint32_t i = 0; i < KERNEL_TENSORS; i++)
        inf_blob_unref(&blobs[i]);
    return code;
}

// Compiles and runs the graph of a call, and takes ownership of the graph.
static enum inf_code run_graph(const struct judge *judge, struct kernel_case *call,
                               struct inf_error *err)
{
    struct inf_pass_options options = {.evaluator = inf_registry_evaluator()};
    struct inf_shape shapes[KERNEL_TENSORS];
    for (uint32_t i = 0; i < call->given_count; i++)
        shapes[i] = call->graph->values[call->given[i]].shape;
    struct inf_model *model = NULL;
    struct inf_executable *executable = NULL;
    INF_TRY(inf_model_create(&model, &call->graph, judge->engine.hosts, judge->engine.host_count,
                             &options, err));
    enum inf_code code = inf_model_acquire(model, judge->engine.device, shapes, &executable, err);
    if (code == INF_OK)
        code = run_executable(executable, call, err);
    if (executable != NULL)
        inf_model_release(model, &executable);
    inf_model_unref(&model);
    return code;
}

static enum inf_code judge_call(const struct judge *judge, const char *kernel,
                                struct kernel_case *call, struct inf_error *err)
{
    INF_TRY(inf_graph_create(&call->graph, err));
    if (!kernel_map(call, kernel))
        return inf_fail(err, INF_INVALID, "no mapping for this kernel");
    if (call->code != INF_OK) {
        *err = call->err;
        return call->code;
    }
    return run_graph(judge, call, err);
}

static void judge_line(struct judge *judge, const json_t *line)
{
    const char *kernel = json_string_value(json_object_get(line, "kernel"));
    const char *id = json_string_value(json_object_get(line, "id"));
    struct kernel_tally *tally = tally_of(judge, kernel);
    if (tally == NULL || id == NULL)
        return;
    struct kernel_case call = {.attrs = json_object_get(line, "attrs"),
                               .inputs = json_object_get(line, "inputs"),
                               .outputs = json_object_get(line, "outputs")};
    struct inf_error err = {0};
    enum inf_code code = judge_call(judge, kernel, &call, &err);
    inf_graph_destroy(&call.graph);
    for (uint32_t i = 0; i < call.given_count; i++)
        inf_blob_unref(&call.data[i]);
    if (code == INF_OK) {
        tally->passed++;
    } else if (code == INF_UNSUPPORTED) {
        tally->refused++;
        snprintf(tally->reason, sizeof(tally->reason), "%.150s", err.text);
    } else {
        tally->wrong++;
        printf("WRONG %s %s (%s): %s\n", id, kernel,
               json_string_value(json_object_get(line, "from")), err.text);
    }
}

// --- reading the file of calls ---

static int print_report(const struct judge *judge)
{
    unsigned passed = 0, wrong = 0, refused = 0, kernels = 0;
    for (unsigned i = 0; i < judge->kernel_count; i++) {
        const struct kernel_tally *tally = &judge->kernels[i];
        passed += tally->passed;
        wrong += tally->wrong;
        refused += tally->refused;
        kernels += tally->wrong == 0 && tally->refused == 0;
        if (tally->refused != 0)
            printf("refused %s, %u calls: %s\n", tally->name, tally->refused, tally->reason);
    }
    printf("%u of %u kernels pass whole; %u calls passed, %u wrong, %u refused\n", kernels,
           judge->kernel_count, passed, wrong, refused);
    return wrong != 0 || judge->kernel_count == 0 ? 1 : 0;
}

static int judge_file(struct judge *judge, const char *path, const char *only)
{
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        fprintf(stderr, "run_kernels: %s cannot be opened\n", path);
        return 2;
    }
    char *text = NULL;
    size_t capacity = 0;
    unsigned number = 0;
    bool readable = true;
    while (readable && getline(&text, &capacity, file) > 0) {
        json_error_t error;
        json_t *line = json_loads(text, JSON_DECODE_ANY, &error);
        const char *kernel = json_string_value(json_object_get(line, "kernel"));
        number++;
        readable = kernel != NULL;
        if (!readable)
            fprintf(stderr, "run_kernels: %s:%u is no kernel call\n", path, number);
        else if (only == NULL || strcmp(only, kernel) == 0)
            judge_line(judge, line);
        json_decref(line);
    }
    free(text);
    fclose(file);
    return readable ? print_report(judge) : 2;
}

static int print_usage(void)
{
    fputs("usage: run_kernels CASES.jsonl --backend NAME [--only KERNEL]\n", stderr);
    return 2;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"backend", required_argument, NULL, 'b'}, {"only", required_argument, NULL, 'o'}, {0}};
    const char *backend = NULL;
    const char *only = NULL;
    int option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'b')
            backend = optarg;
        else if (option == 'o')
            only = optarg;
        else
            return print_usage();
    }
    if (backend == NULL || argc - optind != 1)
        return print_usage();
    struct judge *judge = calloc(1, sizeof(*judge));
    struct inf_error err = {0};
    if (judge == NULL || tool_engine_open(&judge->engine, backend, 1, &err) != INF_OK) {
        fprintf(stderr, "run_kernels: %s\n", err.text);
        free(judge);
        return 2;
    }
    int status = judge_file(judge, argv[optind], only);
    tool_engine_close(&judge->engine);
    free(judge);
    return status;
}
