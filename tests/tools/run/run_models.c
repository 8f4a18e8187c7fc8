// SPDX-License-Identifier: Apache-2.0
// run_models MANIFEST.json --backend NAME[:PRECISION] [--isa-max SET] [--only ID] [--threads N]
//            [--race] [--write DIR]
//
// Runs every case of a manifest in the form of shared/models/manifest.json in process and compares
// each output with its reference. Exit status: 0 all outputs are within tolerance, 1 an output is
// not, 2 usage.
//
// --race chooses kernels by races, as the daemon does. Without --race, rules choose them. --write
// writes every output of 8-bit integers to DIR/ID.CASE.POSITION.npy, to compare devices.
//
// For a precision below fp32, each model is checked first, as the daemon does
// (daemon/load/precision.h). Nodes that need fp32 stay in fp32. A model that must not use the
// precision is refused, and a run that overflows is repeated in fp32. Neither counts as a failure,
// but both are counted and printed.
#include <getopt.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/blob.h"
#include "daemon/load/precision.h"
#include "proto/core/tensor_name.h"
#include "proto/npy/npy.h"
#include "tests/tools/run/compare.h"
#include "tests/tools/run/engine.h"

// The accepted error of outputs in fp16, equal to INF_HALF_ERROR_MAX of the precision check.
#define FP16_ERROR_MAX 0.01

struct judge {
    struct tool_engine engine;
    const char *directory; // directory of the manifest
    const char *written;   // directory to which outputs of 8-bit integers are written; NULL: none
    unsigned models, unsupported, refused, recomputed, ok, failed, informative;
    bool tried; // true: it was checked whether the current model may use the precision
    struct inf_string_pool strings; // the strings of the current case
};

// --- running one test case of a model ---

struct run {
    const char *id, *name;
    struct inf_executable *executable;
    const struct inf_graph *graph;
    struct inf_npy inputs[INF_LIMIT_TENSORS]; // one for each input of the graph, in its order
    struct inf_blob *outputs[INF_LIMIT_TENSORS];
};

static const char *read_text(const json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));
    return value != NULL ? value : "";
}

// Reads a tensor of strings: {"shape": [...], "data": ["...", ...]}. Its elements become handles.
static enum inf_code load_strings(struct judge *judge, const char *path, struct inf_npy *npy,
                                  struct inf_error *err)
{
    json_t *file = json_load_file(path, 0, NULL);
    const json_t *shape = json_object_get(file, "shape"), *data = json_object_get(file, "data");
    *npy =
        (struct inf_npy){.dtype = INF_DTYPE_BYTES, .shape.rank = (int32_t)json_array_size(shape)};
    for (int32_t i = 0; i < npy->shape.rank && i < INF_LIMIT_RANK; i++)
        npy->shape.dims[i] = json_integer_value(json_array_get(shape, (size_t)i));
    enum inf_code code = INF_OK;
    if (file == NULL || npy->shape.rank > INF_LIMIT_RANK ||
        !inf_shape_bytes(&npy->shape, INF_DTYPE_BYTES, &npy->size_bytes) ||
        npy->size_bytes != json_array_size(data) * sizeof(uint64_t))
        code = inf_fail(err, INF_INVALID, "'%s' is no tensor of strings", path);
    if (code == INF_OK)
        npy->data = aligned_alloc(64, (npy->size_bytes + 127) / 64 * 64);
    for (size_t i = 0; code == INF_OK && i < json_array_size(data); i++) {
        const json_t *text = json_array_get(data, i);
        const struct inf_span string = {(const uint8_t *)json_string_value(text),
                                        json_string_length(text)};
        code = inf_string_pool_add(&judge->strings, string, &((uint64_t *)npy->data)[i], err);
    }
    json_decref(file);
    return code;
}

static enum inf_code load_tensor(struct judge *judge, const json_t *tensor, struct inf_npy *npy,
                                 struct inf_error *err)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/%s", judge->directory, read_text(tensor, "file"));
    if (strcmp(read_text(tensor, "dtype"), "string") == 0)
        return load_strings(judge, path, npy, err);
    return inf_npy_load(npy, path, err);
}

// Returns the index of the port called `name`. TFLite tensors may have no name, or one that is too
// long for a port; such a tensor is found by `position`, and so is one whose port is called
// otherwise.
static uint32_t find_port(const struct inf_port *ports, uint32_t count, const char *name,
                          size_t position)
{
    if (*name == '\0' || strlen(name) >= INF_LIMIT_TENSOR_NAME)
        return (uint32_t)INF_MIN(position, (size_t)count);
    uint32_t found = inf_tensor_names_find(INF_TENSOR_NAMES(ports, count), name, strlen(name));
    // A manifest names a tensor of TensorFlow; the port may have the name of the signature.
    bool is_tensor = strlen(name) > 2 && strcmp(name + strlen(name) - 2, ":0") == 0;
    return found == count && is_tensor ? (uint32_t)INF_MIN(position, (size_t)count) : found;
}

// Sets an input that a case does not give to zeros, if it is the state of a model: an output has
// the same name with the ending "_out" instead of "_in".
static enum inf_code clear_state(const struct inf_graph *graph, uint32_t port, struct inf_npy *npy,
                                 struct inf_error *err)
{
    const char *name = graph->inputs[port].name;
    const struct inf_value *value = &graph->values[graph->inputs[port].value];
    size_t stem = strlen(name) > 3 ? strlen(name) - 3 : 0, size;
    char output[INF_LIMIT_TENSOR_NAME + 1];
    snprintf(output, sizeof output, "%.*s_out", (int)stem, name);
    if (stem == 0 || strcmp(name + stem, "_in") != 0 ||
        find_port(graph->outputs, graph->output_count, output, 0) == graph->output_count ||
        !inf_shape_bytes(&value->shape, value->dtype, &size))
        return inf_fail(err, INF_INVALID, "the case has no input '%s'", name);
    npy->dtype = value->dtype;
    npy->shape = value->shape;
    npy->size_bytes = size;
    npy->data = aligned_alloc(64, (size + 127) / 64 * 64);
    if (npy->data != NULL)
        memset(npy->data, 0, size);
    return npy->data != NULL ? INF_OK : inf_fail(err, INF_EXHAUSTED, "no memory");
}

static enum inf_code load_inputs(struct judge *judge, const struct inf_graph *graph,
                                 const json_t *inputs, struct inf_npy *npys, struct inf_error *err)
{
    size_t index;
    json_t *input;
    json_array_foreach(inputs, index, input)
    {
        const char *name = read_text(input, "name");
        uint32_t port = find_port(graph->inputs, graph->input_count, name, index);
        if (port == graph->input_count || npys[port].data != NULL)
            return inf_fail(err, INF_NOT_FOUND, "the model has no input '%s'", name);
        INF_TRY(load_tensor(judge, input, &npys[port], err));
        const struct inf_value *value = &graph->values[graph->inputs[port].value];
        if (npys[port].dtype != value->dtype)
            return inf_fail(err, INF_INVALID, "input '%s' is %s, the file holds %s", name,
                            inf_dtype_name(value->dtype), inf_dtype_name(npys[port].dtype));
    }
    for (uint32_t port = 0; port < graph->input_count; port++)
        if (npys[port].data == NULL)
            INF_TRY(clear_state(graph, port, &npys[port], err));
    return INF_OK;
}

static enum inf_code run_executable(struct judge *judge, struct run *run, atomic_bool *overflowed,
                                    struct inf_error *err)
{
    const void *inputs[INF_LIMIT_TENSORS];
    void *outputs[INF_LIMIT_TENSORS];
    for (uint32_t i = 0; i < run->graph->input_count; i++)
        inputs[i] = run->inputs[i].data;
    for (uint32_t i = 0; i < run->graph->output_count; i++) {
        const struct inf_value *value = &run->graph->values[run->graph->outputs[i].value];
        size_t size;
        outputs[i] = NULL;
        if (!inf_shape_bytes(&value->shape, value->dtype, &size))
            continue; // the size is known only after the run
        run->outputs[i] = inf_blob_create(size);
        if (run->outputs[i] == NULL)
            return inf_fail(err, INF_EXHAUSTED, "no memory for %zu bytes", size);
        outputs[i] = run->outputs[i]->data;
    }
    struct inf_execution execution = {
        .inputs = inputs, .outputs = outputs, .overflowed = overflowed, .strings = &judge->strings};
    return inf_executable_run(run->executable, &execution, err);
}

static struct tool_tolerance read_tolerance(const json_t *output)
{
    const json_t *from = json_object_get(output, "tolerance");
    struct tool_tolerance tolerance = {
        .atol = json_number_value(json_object_get(from, "atol")),
        .rtol = json_number_value(json_object_get(from, "rtol")),
        .lsb = json_number_value(json_object_get(from, "lsb")),
        .mean_lsb = json_number_value(json_object_get(from, "mean_lsb")),
        .mismatch_fraction = json_number_value(json_object_get(from, "max_mismatch_frac")),
        .top1 = json_is_true(json_object_get(from, "top1")),
        .informative = json_is_true(json_object_get(from, "informative")),
    };
    return tolerance;
}

static enum inf_code judge_output(struct judge *judge, const struct run *run, const json_t *output,
                                  size_t position, struct inf_error *err)
{
    const char *name = read_text(output, "name");
    uint32_t port = find_port(run->graph->outputs, run->graph->output_count, name, position);
    if (port == run->graph->output_count)
        return inf_fail(err, INF_NOT_FOUND, "the model has no output '%s'", name);
    const struct inf_value *value = &run->graph->values[run->graph->outputs[port].value];
    struct tool_tolerance tolerance = read_tolerance(output);
    // Below fp32, use the tolerance of the precision check, because the tolerances of the manifest
    // are for fp32.
    if (judge->engine.options.precision > INF_PRECISION_FP32)
        tolerance.of_larger = FP16_ERROR_MAX;
    struct inf_npy reference;
    struct inf_result result = {.dtype = value->dtype, .shape = value->shape};
    if (run->outputs[port] != NULL)
        result.data = run->outputs[port]->data;
    else if (!inf_executable_result(run->executable, 0, port, &result))
        return inf_fail(err, INF_INTERNAL, "output '%s' has no result", name);
    INF_TRY(load_tensor(judge, output, &reference, err));
    if (reference.dtype != result.dtype || !inf_shape_equal(&reference.shape, &result.shape)) {
        char has[INF_SHAPE_TEXT_SIZE];
        char wants[INF_SHAPE_TEXT_SIZE];
        enum inf_code code =
            inf_fail(err, INF_INVALID, "output '%s' is %s %s, the reference %s %s", name,
                     inf_dtype_name(result.dtype), inf_shape_print(&result.shape, has),
                     inf_dtype_name(reference.dtype), inf_shape_print(&reference.shape, wants));
        inf_npy_unload(&reference);
        return code;
    }
    const struct inf_strings strings = {.constants = inf_shared_strings_pool(run->graph->strings),
                                        .run = &judge->strings};
    struct tool_difference difference =
        result.dtype == INF_DTYPE_BYTES
            ? tool_compare_strings(&strings, result.data, reference.data,
                                   inf_shape_elements(&result.shape))
            : tool_compare(result.data, &reference, &tolerance);
    inf_npy_unload(&reference);
    bool is_byte = result.dtype == INF_DTYPE_I8 || result.dtype == INF_DTYPE_U8;
    if (judge->written != NULL && is_byte) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s.%s.%zu.npy", judge->written, run->id, run->name,
                 position);
        INF_TRY(inf_npy_save(path, result.dtype, &result.shape, result.data, err));
    }
    const char *verdict = tolerance.informative ? "informative" : difference.ok ? "ok" : "FAIL";
    printf("%s %s %s %.3g %.3g %s\n", run->id, run->name, name, difference.max_abs,
           difference.max_rel, verdict);
    if (tolerance.informative)
        judge->informative++;
    else if (difference.ok)
        judge->ok++;
    else
        judge->failed++;
    return INF_OK;
}

// Checks whether the model may use the requested precision, and pins the nodes that must stay in
// fp32.
//
// INF_PRECONDITION  the model must not use it; the text says why.
static enum inf_code try_precision(struct judge *judge, struct inf_model *model,
                                   const struct inf_shape *shapes, struct inf_error *err)
{
    struct inf_precision_report report;
    enum inf_precision wanted = judge->engine.options.precision;
    if (wanted <= INF_PRECISION_FP32 || judge->tried)
        return INF_OK;
    enum inf_code code = inf_precision_evaluate(&report, wanted, model, shapes, judge->engine.hosts,
                                                judge->engine.host_count, NULL, err);
    if (code == INF_UNSUPPORTED)
        err->code = INF_PRECONDITION;
    if (code != INF_OK)
        return code == INF_UNSUPPORTED ? INF_PRECONDITION : code;
    char text[INF_PRECISION_REASON];
    inf_precision_print(&report, text, sizeof text);
    if (!report.admissible)
        return inf_fail(err, INF_PRECONDITION, "%.200s", text);
    printf("# %s: %s\n", inf_precision_name(wanted), text);
    judge->tried = true;
    return inf_model_pin(model, wanted, report.pins, report.pinned_nodes, err);
}

// Runs the model, and repeats the run in fp32 if a value overflowed.
static enum inf_code run_guarded(struct judge *judge, struct inf_model *model, struct run *run,
                                 const struct inf_shape *shapes, struct inf_error *err)
{
    atomic_bool overflowed = false;
    INF_TRY(run_executable(judge, run, &overflowed, err));
    if (!atomic_load(&overflowed))
        return INF_OK;
    const struct inf_run_options fp32 = {.precision = INF_PRECISION_FP32};
    judge->recomputed++;
    printf("# %s %s overflowed\n", run->id, run->name);
    inf_model_release(model, &run->executable);
    for (uint32_t i = 0; i < INF_LIMIT_TENSORS; i++)
        inf_blob_unref(&run->outputs[i]);
    INF_TRY(
        inf_model_acquire_with(model, judge->engine.device, &fp32, shapes, &run->executable, err));
    run->graph = inf_executable_graph(run->executable);
    return run_executable(judge, run, NULL, err);
}

static enum inf_code run_case(struct judge *judge, struct inf_model *model, struct run *run,
                              const json_t *entry, struct inf_error *err)
{
    INF_TRY(load_inputs(judge, inf_model_graph(model), json_object_get(entry, "inputs"),
                        run->inputs, err));
    struct inf_shape shapes[INF_LIMIT_TENSORS];
    for (uint32_t i = 0; i < inf_model_graph(model)->input_count; i++)
        shapes[i] = run->inputs[i].shape;
    INF_TRY(try_precision(judge, model, shapes, err));
    INF_TRY(inf_model_acquire_with(model, judge->engine.device, &judge->engine.options, shapes,
                                   &run->executable, err));
    run->graph = inf_executable_graph(run->executable);
    INF_TRY(run_guarded(judge, model, run, shapes, err));
    size_t index;
    json_t *output;
    json_array_foreach(json_object_get(entry, "outputs"), index, output)
    {
        INF_TRY(judge_output(judge, run, output, index, err));
    }
    return INF_OK;
}

// --- running all models of the manifest ---

static void judge_case(struct judge *judge, struct inf_model *model, const char *id,
                       const json_t *entry)
{
    struct inf_error err = {0};
    struct run *run = calloc(1, sizeof(*run));
    if (run == NULL)
        abort();
    run->id = id;
    run->name = read_text(entry, "case");
    enum inf_code code = run_case(judge, model, run, entry, &err);
    if (code == INF_PRECONDITION) {
        printf("%s %s refused: %s\n", run->id, run->name, err.text);
        judge->refused++;
    } else if (code != INF_OK) {
        printf("%s %s - - - FAIL %s\n", run->id, run->name, err.text);
        judge->failed++;
    }
    if (run->executable != NULL)
        inf_model_release(model, &run->executable);
    for (uint32_t i = 0; i < INF_LIMIT_TENSORS; i++) {
        inf_npy_unload(&run->inputs[i]);
        inf_blob_unref(&run->outputs[i]);
    }
    inf_string_pool_fini(&judge->strings);
    free(run);
}

// Runs the cases of one signature. `signature` is NULL for the default one.
static void judge_signature(struct judge *judge, const json_t *entry, const char *signature,
                            const json_t *cases)
{
    const char *id = read_text(entry, "id");
    char path[4096];
    snprintf(path, sizeof(path), "%s/%s", judge->directory, read_text(entry, "model"));
    struct inf_error err = {0};
    struct inf_model *model = NULL;
    judge->tried = false;
    judge->engine.signature = signature;
    enum inf_code code = tool_engine_load(&judge->engine, path, &model, &err);
    judge->engine.signature = NULL;
    if (code == INF_UNSUPPORTED) {
        printf("%s unsupported: %s\n", id, err.text);
        judge->unsupported++;
        return;
    }
    if (code != INF_OK) {
        printf("%s - - - - FAIL %s\n", id, err.text);
        judge->failed++;
        return;
    }
    // Allow eviction, as the daemon does: cases with other shapes then recreate the weights. Below
    // fp32 this is not allowed, because the precision check reads the original weights.
    if (judge->engine.options.precision <= INF_PRECISION_FP32)
        inf_model_allow_eviction(model);
    size_t index;
    json_t *item;
    json_array_foreach(cases, index, item)
    {
        judge_case(judge, model, id, item);
        fflush(stdout);
    }
    inf_model_unref(&model);
}

static void judge_model(struct judge *judge, const json_t *entry)
{
    const char *signature;
    json_t *cases;
    judge->models++;
    judge_signature(judge, entry, NULL, json_object_get(entry, "cases"));
    json_object_foreach(json_object_get(entry, "other_signatures"), signature, cases)
    {
        judge_signature(judge, entry, signature, cases);
    }
}

static int judge_manifest(struct judge *judge, const char *manifest, const char *only)
{
    json_error_t error;
    json_t *root = json_load_file(manifest, 0, &error);
    if (root == NULL) {
        fprintf(stderr, "run_models: %s:%d: %s\n", manifest, error.line, error.text);
        return 2;
    }
    size_t index;
    json_t *entry;
    json_array_foreach(json_object_get(root, "models"), index, entry)
    {
        if (only == NULL || strcmp(only, read_text(entry, "id")) == 0)
            judge_model(judge, entry);
    }
    json_decref(root);
    printf("%u models, %u unsupported; outputs: %u ok, %u FAIL, %u informative\n", judge->models,
           judge->unsupported, judge->ok, judge->failed, judge->informative);
    if (judge->engine.options.precision > INF_PRECISION_FP32)
        printf("%u cases refused, %u computed again in fp32\n", judge->refused, judge->recomputed);
    if (judge->models == 0) {
        fprintf(stderr, "run_models: %s: no model%s%s\n", manifest, only != NULL ? " " : "",
                only != NULL ? only : "s");
        return 2;
    }
    return judge->failed > 0 ? 1 : 0;
}

static int print_usage(void)
{
    fputs(
        "usage: run_models MANIFEST.json --backend NAME[:PRECISION] [--isa-max SET] [--only ID] "
        "[--threads N] [--race] [--write DIR]\n",
        stderr);
    return 2;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"backend", required_argument, NULL, 'b'},
                                            {"isa-max", required_argument, NULL, 'i'},
                                            {"race", no_argument, NULL, 'r'},
                                            {"only", required_argument, NULL, 'o'},
                                            {"threads", required_argument, NULL, 't'},
                                            {"write", required_argument, NULL, 'w'},
                                            {0}};
    const char *backend = NULL;
    const char *only = NULL;
    const char *written = NULL;
    struct inf_device_options wanted = {.slots = 1};
    int option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'b')
            backend = optarg;
        else if (option == 'i')
            wanted.isa_max = optarg;
        else if (option == 'r')
            wanted.kernel_races = true;
        else if (option == 'o')
            only = optarg;
        else if (option == 'w')
            written = optarg;
        else if (option == 't')
            wanted.threads = (uint32_t)strtoul(optarg, NULL, 10);
        else
            return print_usage();
    }
    if (backend == NULL || argc - optind != 1)
        return print_usage();
    const char *manifest = argv[optind];
    const char *slash = strrchr(manifest, '/');
    char directory[4096] = ".";
    if (slash != NULL)
        snprintf(directory, sizeof(directory), "%.*s", (int)(slash - manifest) + 1, manifest);
    struct judge judge = {.directory = directory, .written = written};
    struct inf_error err = {0};
    if (tool_engine_open_with(&judge.engine, backend, &wanted, &err) != INF_OK) {
        fprintf(stderr, "run_models: %s\n", err.text);
        return 2;
    }
    judge.engine.report = stderr;
    printf("%s\n", inf_device_info(judge.engine.device)->description);
    int status = judge_manifest(&judge, manifest, only);
    tool_engine_close(&judge.engine);
    return status;
}
