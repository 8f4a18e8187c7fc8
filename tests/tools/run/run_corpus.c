// SPDX-License-Identifier: Apache-2.0
// run_corpus --backend NAME [--dim N] [--threads N] [--runs N] [--rank NAME=N] [--fill NAME=X]
//            MODEL...
//
// Imports each model and runs it on zeros and on random input. There is no reference to compare
// with, so the runs only have to succeed. Prints a line for each model:
//     NAME ok|FAIL nodes=N interpreted=N outputs=N nonfinite=N load_ms=X load_cpu_ms=X run_ms=X
// followed by the reason of a failure. load_ms is the time of importing, folding and compiling.
// load_cpu_ms is the processor time of the same steps, which is comparable on a busy machine.
// `nodes` counts the nodes after the passes. `interpreted` counts the nodes that are in no plan,
// because they depend on values. An unknown batch dimension of an input becomes 1, and other
// unknown dimensions become --dim (224). An unknown rank becomes 4 with dimensions of 1, unless
// --rank names the input. --fill gives an input one value in both runs, for models in which 0 makes
// no sense. Exit status: 0 if all models ran, 1 if one did not, 2 for a usage error.
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backends/base/blob.h"
#include "backends/base/clock.h"
#include "tests/tools/run/engine.h"

struct corpus {
    struct tool_engine engine;
    int64_t dim;
    unsigned runs; // number of runs on random input
    // names of the inputs of --rank and --fill; NULL: the option was not given
    const char *rank_input, *fill_input;
    int32_t rank;
    float fill;
    unsigned models, failed;
};

// The model that is being tested, with its tensors and measurements.
struct subject {
    struct inf_model *model;
    struct inf_executable *executable;
    const struct inf_graph *graph;
    struct inf_blob *inputs[INF_LIMIT_TENSORS], *outputs[INF_LIMIT_TENSORS];
    uint32_t interpreted;
    size_t nonfinite; // number of non-finite elements in the outputs of the last run
    double load_ms, load_cpu_ms, run_ms;
};

static double ms_since(uint64_t start_ns)
{
    return (double)(inf_clock_ns() - start_ns) / 1e6;
}

// Returns the processor time of the process so far.
static double cpu_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void choose_shapes(const struct corpus *corpus, const struct inf_graph *graph,
                          struct inf_shape *shapes)
{
    for (uint32_t i = 0; i < graph->input_count; i++) {
        shapes[i] = graph->values[graph->inputs[i].value].shape;
        if (shapes[i].rank < 0) {
            shapes[i] = INF_SHAPE(1, 1, 1, 1);
            if (corpus->rank_input != NULL &&
                strcmp(corpus->rank_input, graph->inputs[i].name) == 0)
                shapes[i] = (struct inf_shape){.rank = corpus->rank, .dims = {1}};
        }
        for (int32_t axis = 0; axis < shapes[i].rank; axis++)
            if (shapes[i].dims[axis] == INF_DIM_UNKNOWN)
                shapes[i].dims[axis] = axis == 0 ? 1 : corpus->dim;
    }
}

static enum inf_code load_model(struct corpus *corpus, struct subject *subject, const char *path,
                                struct inf_error *err)
{
    struct inf_shape shapes[INF_LIMIT_TENSORS];
    uint64_t start_ns = inf_clock_ns();
    double start_cpu_ms = cpu_ms();
    INF_TRY(tool_engine_load(&corpus->engine, path, &subject->model, err));
    inf_model_allow_eviction(subject->model); // the daemon allows it too
    choose_shapes(corpus, inf_model_graph(subject->model), shapes);
    INF_TRY(inf_model_acquire(subject->model, corpus->engine.device, shapes, &subject->executable,
                              err));
    subject->load_ms = ms_since(start_ns);
    subject->load_cpu_ms = cpu_ms() - start_cpu_ms;
    subject->graph = inf_executable_graph(subject->executable);
    subject->interpreted = inf_executable_interpreted_nodes(subject->executable);
    return INF_OK;
}

static enum inf_code make_blob(struct inf_blob **out_blob, size_t size, struct inf_error *err)
{
    inf_blob_unref(out_blob);
    *out_blob = inf_blob_create(size);
    return *out_blob != NULL ? INF_OK : inf_fail(err, INF_EXHAUSTED, "no memory for %zu", size);
}

// Fills element `i`: floats with numbers in [0,1), integers with pixel values, bools with true or
// false.
static void fill_random(struct inf_blob *blob, enum inf_dtype dtype, uint64_t *state)
{
    size_t count = blob->size_bytes / inf_dtype_size(dtype);
    for (size_t i = 0; i < count; i++) {
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        uint32_t bits = (uint32_t)(*state >> 33);
        if (dtype == INF_DTYPE_F32)
            ((float *)blob->data)[i] = (float)(bits & 0xffff) / 65536;
        else if (dtype == INF_DTYPE_I32)
            ((int32_t *)blob->data)[i] = (int32_t)(bits & 255);
        else if (dtype == INF_DTYPE_BOOL)
            ((uint8_t *)blob->data)[i] = bits & 1;
    }
}

static void count_nonfinite(struct subject *subject, enum inf_dtype dtype, const float *data,
                            size_t size_bytes)
{
    for (size_t i = 0; dtype == INF_DTYPE_F32 && i < size_bytes / sizeof *data; i++)
        subject->nonfinite += !isfinite(data[i]);
}

static void fill_input(const struct corpus *corpus, const char *name, struct inf_blob *blob)
{
    if (corpus->fill_input == NULL || strcmp(corpus->fill_input, name) != 0)
        return;
    for (size_t i = 0; i < blob->size_bytes / sizeof(float); i++)
        ((float *)blob->data)[i] = corpus->fill;
}

static enum inf_code run_model(const struct corpus *corpus, struct subject *subject, uint64_t seed,
                               struct inf_error *err)
{
    const struct inf_graph *graph = subject->graph;
    const void *inputs[INF_LIMIT_TENSORS];
    void *outputs[INF_LIMIT_TENSORS];
    size_t size;
    for (uint32_t i = 0; i < graph->input_count; i++) {
        const struct inf_value *value = &graph->values[graph->inputs[i].value];
        if (!inf_shape_bytes(&value->shape, value->dtype, &size))
            return inf_fail(err, INF_INTERNAL, "input '%s' has no size", graph->inputs[i].name);
        INF_TRY(make_blob(&subject->inputs[i], size, err));
        if (seed != 0)
            fill_random(subject->inputs[i], value->dtype, &seed);
        fill_input(corpus, graph->inputs[i].name, subject->inputs[i]);
        inputs[i] = subject->inputs[i]->data;
    }
    for (uint32_t i = 0; i < graph->output_count; i++) {
        const struct inf_value *value = &graph->values[graph->outputs[i].value];
        outputs[i] = NULL;
        if (!inf_shape_bytes(&value->shape, value->dtype, &size))
            continue;
        INF_TRY(make_blob(&subject->outputs[i], size, err));
        outputs[i] = subject->outputs[i]->data;
    }
    uint64_t start_ns = inf_clock_ns();
    struct inf_execution execution = {.inputs = inputs, .outputs = outputs};
    INF_TRY(inf_executable_run(subject->executable, &execution, err));
    subject->run_ms = ms_since(start_ns);
    subject->nonfinite = 0;
    for (uint32_t i = 0; i < graph->output_count; i++) {
        struct inf_result result;
        if (outputs[i] != NULL)
            count_nonfinite(subject, graph->values[graph->outputs[i].value].dtype, outputs[i],
                            subject->outputs[i]->size_bytes);
        else if (inf_executable_result(subject->executable, 0, i, &result))
            count_nonfinite(subject, result.dtype, result.data, result.size_bytes);
        else
            return inf_fail(err, INF_INTERNAL, "output '%s' is missing", graph->outputs[i].name);
    }
    return INF_OK;
}

static enum inf_code check_model(struct corpus *corpus, struct subject *subject, const char *path,
                                 struct inf_error *err)
{
    INF_TRY(load_model(corpus, subject, path, err));
    for (unsigned i = 0; i <= corpus->runs; i++) {
        enum inf_code code = run_model(corpus, subject, i, err);
        if (code != INF_OK)
            return inf_error_prefix(err, code, i == 0 ? "zeros" : "random");
    }
    return INF_OK;
}

static void judge_model(struct corpus *corpus, const char *path)
{
    struct subject subject = {0};
    struct inf_error err = {0};
    const char *slash = strrchr(path, '/');
    enum inf_code code = check_model(corpus, &subject, path, &err);
    corpus->models++;
    corpus->failed += code != INF_OK;
    printf("%s %s", slash != NULL ? slash + 1 : path, code == INF_OK ? "ok" : "FAIL");
    if (subject.graph != NULL)
        printf(
            " nodes=%u interpreted=%u outputs=%u nonfinite=%zu load_ms=%.1f load_cpu_ms=%.1f "
            "run_ms=%.1f",
            subject.graph->node_count, subject.interpreted, subject.graph->output_count,
            subject.nonfinite, subject.load_ms, subject.load_cpu_ms, subject.run_ms);
    printf("%s%s\n", code == INF_OK ? "" : " ", code == INF_OK ? "" : err.text);
    fflush(stdout);
    if (subject.executable != NULL)
        inf_model_release(subject.model, &subject.executable);
    inf_model_unref(&subject.model);
    for (uint32_t i = 0; i < INF_LIMIT_TENSORS; i++) {
        inf_blob_unref(&subject.inputs[i]);
        inf_blob_unref(&subject.outputs[i]);
    }
}

// Splits "NAME=VALUE" and returns the value; NULL if there is no "=".
static char *cut_line(char *text)
{
    char *equals = strrchr(text, '=');
    if (equals == NULL)
        return NULL;
    *equals = '\0';
    return equals + 1;
}

static int print_usage(void)
{
    fputs(
        "usage: run_corpus --backend NAME [--dim N] [--threads N] [--runs N] [--rank NAME=N]\n"
        "                  [--fill NAME=X] MODEL...\n",
        stderr);
    return 2;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"backend", required_argument, NULL, 'b'},
        {"dim", required_argument, NULL, 'd'},
        {"threads", required_argument, NULL, 't'},
        {"runs", required_argument, NULL, 'r'},
        {"rank", required_argument, NULL, 'R'},
        {"fill", required_argument, NULL, 'f'},
        {0},
    };
    struct corpus corpus = {.dim = 224, .runs = 1};
    const char *backend = NULL;
    uint32_t threads = 0;
    const char *value;
    int option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'b')
            backend = optarg;
        else if (option == 'd')
            corpus.dim = strtol(optarg, NULL, 10);
        else if (option == 't')
            threads = (uint32_t)strtoul(optarg, NULL, 10);
        else if (option == 'r')
            corpus.runs = (unsigned)strtoul(optarg, NULL, 10);
        else if (option == 'R' && (value = cut_line(optarg)) != NULL) {
            corpus.rank_input = optarg;
            corpus.rank = (int32_t)(strtoul(value, NULL, 10) % (INF_LIMIT_RANK + 1));
        } else if (option == 'f' && (value = cut_line(optarg)) != NULL) {
            corpus.fill_input = optarg;
            corpus.fill = strtof(value, NULL);
        } else
            return print_usage();
    }
    if (backend == NULL || optind == argc)
        return print_usage();
    struct inf_error err = {0};
    if (tool_engine_open(&corpus.engine, backend, threads, &err) != INF_OK) {
        fprintf(stderr, "run_corpus: %s\n", err.text);
        return 2;
    }
    for (int i = optind; i < argc; i++)
        judge_model(&corpus, argv[i]);
    tool_engine_close(&corpus.engine);
    printf("%u models, %u FAIL\n", corpus.models, corpus.failed);
    return corpus.failed > 0;
}
