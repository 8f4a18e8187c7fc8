// SPDX-License-Identifier: Apache-2.0
// bench_memory MANIFEST.json [--backend NAME] [--only ID] [--check]
//
// Measures the memory that each model of a manifest needs after loading and one run. Each model
// runs in a separate process. Prints one line per model:
//
//   ID weights W arena A resident R counted C rss S ratio X
//
// All numbers are in KiB: W is the weights, A the arena with scratch memory, R
// the bytes that the allocator has handed out for the model, C the bytes that the devices report, S
// the growth of the process, and X is R / (W + A). Input shapes come from the first case of each
// model. Memory for inputs and outputs is not counted. Weights count as imported; those of a TFLite
// file count as in the file, because the file may store floats in 8 or 16 bits.
//
// --check makes the exit status 1 if a model takes more than RATIO_MAX times the bytes of weights
// and arena. A TFLite model and one with 8-bit constants is allowed SMALL_EXTRA_BYTES more for its
// steps, because its weights are small compared with its steps.
#include <getopt.h>
#include <jansson.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/base/blob.h"
#include "proto/npy/npy.h"
#include "tests/tools/run/engine.h"

#define RATIO_MAX 1.3
// The bytes that the steps of a model whose weights are small may take in addition to weights and
// arena.
#define SMALL_EXTRA_BYTES (128u << 10)
#define KIB               1024.0

struct bench {
    const char *backend;
    const char *directory; // directory of the manifest, in which the model files are
    bool check;
    unsigned models, refused, over;
};

struct measured {
    bool small; // true: at least one constant has 8-bit elements, or the model is a TFLite file
    uint64_t weight_bytes, arena_bytes, resident_bytes, counted_bytes, rss_bytes;
};

static const char *text_of(const json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));
    return value != NULL ? value : "";
}

// --- measuring the memory of this process ---

// Returns the bytes that malloc() has handed out, including mapped ones.
static uint64_t allocated_bytes(void)
{
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

static uint64_t rss_bytes(void)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file != NULL) {
        if (fscanf(file, "%*u %lu", &pages) != 1)
            pages = 0;
        fclose(file);
    }
    return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t counted_bytes(const struct tool_engine *engine)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < engine->host_count; i++) {
        struct inf_device_memory memory = inf_device_memory(engine->hosts[i]);
        bytes += memory.held.bytes + memory.weight_bytes + memory.buffer_bytes;
    }
    return bytes;
}

// Returns the bytes of the graph's constants, including subgraphs. A constant that several nodes
// share counts once.
static enum inf_code count_weights(const struct inf_graph *graph, uint64_t *bytes,
                                   struct inf_error *err)
{
    struct inf_constants constants = {0};
    enum inf_code code = inf_constants_add_graph(&constants, graph, err);
    inf_constants_merge(&constants);
    for (size_t i = 0; i < constants.count; i++)
        *bytes += constants.uses[i].blob->size_bytes;
    inf_constants_fini(&constants);
    return code;
}

// Returns true if the graph has constants with 8-bit elements. Subgraphs are not searched.
static bool has_eight_bit(const struct inf_graph *graph)
{
    for (uint32_t i = 0; i < graph->value_count; i++) {
        const struct inf_value *value = &graph->values[i];
        if (value->data != NULL && (value->dtype == INF_DTYPE_I8 || value->dtype == INF_DTYPE_U8))
            return true;
    }
    return false;
}

// Returns the size of a TFLite file; 0 if the file is none.
static uint64_t tflite_bytes(const char *path)
{
    struct stat status;
    size_t length = strlen(path);
    bool is_tflite = length > 7 && strcmp(path + length - 7, ".tflite") == 0;
    return is_tflite && stat(path, &status) == 0 ? (uint64_t)status.st_size : 0;
}

// --- running and measuring one model ---

// The input tensors of a case, in the order of the graph's inputs.
struct feed {
    struct inf_npy inputs[INF_LIMIT_TENSORS];
    struct inf_shape shapes[INF_LIMIT_TENSORS];
    const void *data[INF_LIMIT_TENSORS];
};

// Reads the inputs of the case. The caller frees them, also on failure.
static enum inf_code read_feed(const struct bench *bench, const json_t *entry,
                               const struct inf_graph *graph, struct feed *feed,
                               struct inf_error *err)
{
    size_t index;
    json_t *input;
    uint32_t found = 0;
    json_array_foreach(json_object_get(entry, "inputs"), index, input)
    {
        for (uint32_t i = 0; i < graph->input_count; i++) {
            char path[4096];
            if (feed->data[i] != NULL || strcmp(graph->inputs[i].name, text_of(input, "name")) != 0)
                continue;
            snprintf(path, sizeof(path), "%s/%s", bench->directory, text_of(input, "file"));
            INF_TRY(inf_npy_load(&feed->inputs[i], path, err));
            feed->shapes[i] = feed->inputs[i].shape;
            feed->data[i] = feed->inputs[i].data;
            found++;
        }
    }
    return found == graph->input_count ? INF_OK
                                       : inf_fail(err, INF_INVALID, "the case lacks inputs");
}

static void drop_feed(struct feed *feed)
{
    for (uint32_t i = 0; i < INF_LIMIT_TENSORS; i++)
        inf_npy_unload(&feed->inputs[i]);
    free(feed);
}

// Runs the model once with the inputs in `feed`, and discards the outputs.
static enum inf_code run_once(struct inf_executable *executable, const struct feed *feed,
                              struct inf_error *err)
{
    const struct inf_graph *graph = inf_executable_graph(executable);
    struct inf_blob *blobs[INF_LIMIT_TENSORS] = {0};
    void *outputs[INF_LIMIT_TENSORS] = {0};
    enum inf_code code = INF_OK;
    for (uint32_t i = 0; i < graph->output_count && code == INF_OK; i++) {
        const struct inf_value *value = &graph->values[graph->outputs[i].value];
        size_t size;
        if (!inf_shape_bytes(&value->shape, value->dtype, &size))
            continue; // the size is known only after the run
        blobs[i] = inf_blob_create(size);
        if (blobs[i] == NULL)
            code = inf_fail(err, INF_EXHAUSTED, "no memory for %zu bytes", size);
        else
            outputs[i] = blobs[i]->data;
    }
    const struct inf_execution execution = {.inputs = feed->data, .outputs = outputs};
    if (code == INF_OK)
        code = inf_executable_run(executable, &execution, err);
    inf_executable_drop_results(executable, 0);
    for (uint32_t i = 0; i < graph->output_count; i++)
        inf_blob_unref(&blobs[i]);
    return code;
}

static enum inf_code compile_and_run(struct inf_model *model, struct inf_device *device,
                                     const struct feed *feed, struct measured *measured,
                                     struct inf_error *err)
{
    struct inf_executable *executable = NULL;
    INF_TRY(inf_model_acquire(model, device, feed->shapes, &executable, err));
    struct inf_executable_memory memory;
    enum inf_code code = inf_executable_memory(executable, &memory, err);
    measured->arena_bytes = memory.buffer_bytes;
    inf_model_allow_eviction(model);
    if (code == INF_OK)
        code = run_once(executable, feed, err);
    inf_model_release(model, &executable);
    return code;
}

static enum inf_code measure_model(const struct bench *bench, const json_t *entry,
                                   struct measured *measured, struct inf_error *err)
{
    struct tool_engine engine;
    struct inf_graph *graph = NULL;
    struct inf_model *model = NULL;
    char path[4096];
    snprintf(path, sizeof(path), "%s/%s", bench->directory, text_of(entry, "model"));
    INF_TRY(tool_engine_open(&engine, bench->backend, 1, err));
    uint64_t before = allocated_bytes();
    uint64_t rss_before = rss_bytes();
    INF_TRY(tool_engine_import(&engine, path, &graph, err));
    INF_TRY(count_weights(graph, &measured->weight_bytes, err));
    uint64_t file_bytes = tflite_bytes(path);
    measured->small = file_bytes > 0 || has_eight_bit(graph);
    if (file_bytes > 0)
        measured->weight_bytes = INF_MIN(measured->weight_bytes, file_bytes);
    INF_TRY(tool_engine_prepare(&engine, &graph, &model, err));
    struct feed *feed = calloc(1, sizeof(*feed));
    enum inf_code code = feed != NULL ? INF_OK : inf_fail(err, INF_EXHAUSTED, "no memory");
    if (code == INF_OK)
        code = read_feed(bench, json_array_get(json_object_get(entry, "cases"), 0),
                         inf_model_graph(model), feed, err);
    inf_model_charge(model, engine.device);
    if (code == INF_OK)
        code = compile_and_run(model, engine.device, feed, measured, err);
    if (feed != NULL)
        drop_feed(feed);
    measured->resident_bytes = allocated_bytes() - before;
    measured->rss_bytes = rss_bytes() - rss_before;
    measured->counted_bytes = counted_bytes(&engine);
    inf_model_unref(&model);
    tool_engine_close(&engine);
    return code;
}

// Measures one model in this process, which runs no other model. Returns the exit status: 0 if the
// memory is within RATIO_MAX, 1 if it is not, 2 if the model does not run.
static int measure_alone(const struct bench *bench, const json_t *entry)
{
    struct measured measured = {0};
    struct inf_error err = {0};
    const char *id = text_of(entry, "id");
    enum inf_code code = measure_model(bench, entry, &measured, &err);
    if (code != INF_OK) {
        printf("%s - %s\n", id, err.text);
        return code == INF_UNSUPPORTED ? 2 : 1;
    }
    double wanted = (double)(measured.weight_bytes + measured.arena_bytes);
    double resident = (double)measured.resident_bytes;
    double allowed = RATIO_MAX * wanted;
    if (measured.small)
        allowed += (double)SMALL_EXTRA_BYTES;
    bool over = resident > allowed;
    printf("%-34s weights %8.0f arena %8.0f resident %8.0f counted %8.0f rss %8.0f ratio %5.2f%s\n",
           id, (double)measured.weight_bytes / KIB, (double)measured.arena_bytes / KIB,
           resident / KIB, (double)measured.counted_bytes / KIB, (double)measured.rss_bytes / KIB,
           resident / wanted, over ? " OVER" : "");
    return over;
}

static void bench_model(struct bench *bench, const json_t *entry)
{
    int status;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        status = measure_alone(bench, entry);
        fflush(stdout);
        _exit(status);
    }
    bench->models++;
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) {
        printf("%s - FAIL it ended in an unusual way\n", text_of(entry, "id"));
        bench->over++;
        return;
    }
    bench->refused += WEXITSTATUS(status) == 2;
    bench->over += WEXITSTATUS(status) == 1;
}

static int bench_manifest(struct bench *bench, const char *manifest, const char *only)
{
    json_error_t error;
    json_t *root = json_load_file(manifest, 0, &error);
    if (root == NULL) {
        fprintf(stderr, "bench_memory: %s:%d: %s\n", manifest, error.line, error.text);
        return 2;
    }
    size_t index;
    json_t *entry;
    json_array_foreach(json_object_get(root, "models"), index, entry)
    {
        if (only == NULL || strcmp(only, text_of(entry, "id")) == 0)
            bench_model(bench, entry);
    }
    json_decref(root);
    printf("%u models, %u refused; %u over %.1f times weights and arena\n", bench->models,
           bench->refused, bench->over, RATIO_MAX);
    if (bench->models == bench->refused)
        return 2;
    return bench->check && bench->over > 0 ? 1 : 0;
}

// Executes this program again with the allocator's thread caches disabled. Freed memory in these
// caches would count as handed out.
static void count_truly(char **argv)
{
    static const char name[] = "GLIBC_TUNABLES";
    if (getenv(name) != NULL || setenv(name, "glibc.malloc.tcache_count=0", 1) != 0)
        return;
    execv("/proc/self/exe", argv);
    perror("bench_memory: cannot start again");
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"backend", required_argument, NULL, 'b'},
                                            {"only", required_argument, NULL, 'o'},
                                            {"check", no_argument, NULL, 'c'},
                                            {0}};
    struct bench bench = {.backend = "cpu", .directory = "."};
    const char *only = NULL;
    int option;
    count_truly(argv);
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'b')
            bench.backend = optarg;
        else if (option == 'o')
            only = optarg;
        else if (option == 'c')
            bench.check = true;
        else
            // an invalid index of arguments, so that the usage message is printed below
            optind = argc;
    }
    if (argc - optind != 1) {
        fputs("usage: bench_memory MANIFEST.json [--backend NAME] [--only ID] [--check]\n", stderr);
        return 2;
    }
    char directory[4096] = ".";
    const char *slash = strrchr(argv[optind], '/');
    if (slash != NULL)
        snprintf(directory, sizeof(directory), "%.*s", (int)(slash - argv[optind]) + 1,
                 argv[optind]);
    bench.directory = directory;
    return bench_manifest(&bench, argv[optind], only);
}
