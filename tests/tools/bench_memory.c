// SPDX-License-Identifier: Apache-2.0
// bench_memory MANIFEST.json [--backend NAME] [--only ID] [--check]
//
// What each model of a manifest takes when it is loaded and has run once, in a process of its own:
//     ID weights W arena A resident R counted C rss S ratio X
// in KiB: float weights as they are imported, the plan's arena, what the allocator has given out for
// the model, what the devices count as theirs, by how much the process grew, and R / (W + A).
// The first case of each model says its shapes; what that needs for inputs and outputs is left out.
//
// --check makes the exit status 1 where a model takes more than RATIO_MAX allows, beside OVERHEAD_BYTES
// for its graph.
#include <getopt.h>
#include <jansson.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/base/blob.h"
#include "client/inferctl/npy.h"
#include "tests/tools/engine.h"

#define RATIO_MAX      1.3
#define OVERHEAD_BYTES (1u << 20)
#define KIB            1024.0

struct bench {
    const char *backend;
    const char *directory; // of the manifest
    bool check;
    unsigned models, refused, over;
};

struct measured {
    uint64_t weight_bytes, arena_bytes, resident_bytes, counted_bytes, rss_bytes;
};

static const char *text(const json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));
    return value != NULL ? value : "";
}

// --- what a process has ---

// Bytes that malloc() has given out, mapped ones too.
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

// Bytes of the graph's constants, those of subgraphs too: what several share counts as often.
static uint64_t weight_bytes(const struct inf_graph *graph)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < graph->value_count; i++)
        if (graph->values[i].data != NULL)
            bytes += graph->values[i].data->size_bytes;
    for (uint32_t i = 0; i < graph->subgraph_count; i++)
        bytes += weight_bytes(graph->subgraphs[i]);
    return bytes;
}

// --- one model ---

// The shapes of the case's inputs, by input of the graph.
static enum inf_code read_shapes(const struct bench *bench, const json_t *entry,
                                 const struct inf_graph *graph, struct inf_shape *shapes,
                                 struct inf_error *err)
{
    size_t index;
    json_t *input;
    uint32_t found = 0;
    json_array_foreach(json_object_get(entry, "inputs"), index, input)
    {
        for (uint32_t i = 0; i < graph->input_count; i++) {
            char path[4096];
            struct inf_npy npy;
            if (strcmp(graph->inputs[i].name, text(input, "name")) != 0)
                continue;
            snprintf(path, sizeof(path), "%s/%s", bench->directory, text(input, "file"));
            INF_TRY(inf_npy_load(&npy, path, err));
            shapes[i] = npy.shape;
            inf_npy_unload(&npy);
            found++;
        }
    }
    return found == graph->input_count ? INF_OK
                                       : inf_fail(err, INF_INVALID, "the case lacks inputs");
}

// Runs on zeros. Outputs whose size only a run can tell are dropped.
static enum inf_code run_once(struct inf_executable *executable, struct inf_error *err)
{
    const struct inf_graph *graph = inf_executable_graph(executable);
    struct inf_blob *blobs[2 * INF_LIMIT_TENSORS] = {0};
    const void *inputs[INF_LIMIT_TENSORS];
    void *outputs[INF_LIMIT_TENSORS] = {0};
    uint32_t count = graph->input_count + graph->output_count;
    enum inf_code code = INF_OK;
    for (uint32_t i = 0; i < count && code == INF_OK; i++) {
        bool is_input = i < graph->input_count;
        const struct inf_port *port =
            is_input ? &graph->inputs[i] : &graph->outputs[i - graph->input_count];
        const struct inf_value *value = &graph->values[port->value];
        size_t size;
        if (!inf_shape_bytes(&value->shape, value->dtype, &size))
            continue;
        blobs[i] = inf_blob_create(size);
        if (blobs[i] == NULL)
            code = inf_fail(err, INF_EXHAUSTED, "no memory for %zu bytes", size);
        else if (is_input)
            inputs[i] = blobs[i]->data;
        else
            outputs[i - graph->input_count] = blobs[i]->data;
    }
    const struct inf_execution execution = {.inputs = inputs, .outputs = outputs};
    if (code == INF_OK)
        code = inf_executable_run(executable, &execution, err);
    inf_executable_drop_results(executable, 0);
    for (uint32_t i = 0; i < count; i++)
        inf_blob_unref(&blobs[i]);
    return code;
}

static enum inf_code compile_and_run(struct inf_model *model, struct inf_device *device,
                                     const struct inf_shape *shapes, struct measured *measured,
                                     struct inf_error *err)
{
    struct inf_executable *executable = NULL;
    INF_TRY(inf_model_acquire(model, device, shapes, &executable, err));
    measured->arena_bytes = inf_executable_plan(executable)->arena_bytes;
    inf_model_settle(model);
    enum inf_code code = run_once(executable, err);
    inf_model_release(model, &executable);
    return code;
}

static enum inf_code measure(const struct bench *bench, const json_t *entry,
                             struct measured *measured, struct inf_error *err)
{
    struct tool_engine engine;
    struct inf_graph *graph = NULL;
    struct inf_model *model = NULL;
    struct inf_shape shapes[INF_LIMIT_TENSORS];
    char path[4096];
    snprintf(path, sizeof(path), "%s/%s", bench->directory, text(entry, "model"));
    INF_TRY(tool_engine_open(&engine, bench->backend, 1, err));
    uint64_t before = allocated_bytes();
    uint64_t rss_before = rss_bytes();
    INF_TRY(tool_engine_import(&engine, path, &graph, err));
    measured->weight_bytes = weight_bytes(graph);
    INF_TRY(tool_engine_prepare(&engine, &graph, &model, err));
    INF_TRY(read_shapes(bench, json_array_get(json_object_get(entry, "cases"), 0),
                        inf_model_graph(model), shapes, err));
    inf_model_charge(model, engine.device);
    INF_TRY(compile_and_run(model, engine.device, shapes, measured, err));
    measured->resident_bytes = allocated_bytes() - before;
    measured->rss_bytes = rss_bytes() - rss_before;
    measured->counted_bytes = counted_bytes(&engine);
    inf_model_unref(&model);
    tool_engine_close(&engine);
    return INF_OK;
}

// Measures in this process, which is the model's own. Exit status: 0 it keeps to the bound, 1 it does
// not, 2 it does not run.
static int measure_alone(const struct bench *bench, const json_t *entry)
{
    struct measured measured;
    struct inf_error err = {0};
    const char *id = text(entry, "id");
    enum inf_code code = measure(bench, entry, &measured, &err);
    if (code != INF_OK) {
        printf("%s - %s\n", id, err.text);
        return code == INF_UNSUPPORTED ? 2 : 1;
    }
    double wanted = (double)(measured.weight_bytes + measured.arena_bytes);
    double resident = (double)measured.resident_bytes;
    bool over = resident > RATIO_MAX * wanted + OVERHEAD_BYTES;
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
        printf("%s - FAIL it ended in an unusual way\n", text(entry, "id"));
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
        if (only == NULL || strcmp(only, text(entry, "id")) == 0)
            bench_model(bench, entry);
    }
    json_decref(root);
    printf("%u models, %u refused; %u over %.1f times weights and arena, plus %u KiB\n",
           bench->models, bench->refused, bench->over, RATIO_MAX, OVERHEAD_BYTES >> 10);
    if (bench->models == bench->refused)
        return 2;
    return bench->check && bench->over > 0 ? 1 : 0;
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
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'b')
            bench.backend = optarg;
        else if (option == 'o')
            only = optarg;
        else if (option == 'c')
            bench.check = true;
        else
            optind = argc; // usage
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
