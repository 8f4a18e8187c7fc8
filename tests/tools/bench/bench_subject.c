// SPDX-License-Identifier: Apache-2.0
// Loads, compiles and runs a model in process, for the benchmarks.
#include "tests/tools/bench/bench_subject.h"

#include <string.h>
#include <unistd.h>

#define PATH_SIZE 4096

// Finds the model file that `model` names.
static void find_file(char path[PATH_SIZE], const char *model)
{
    static const char *const suffixes[] = {"", ".tfjs/model.json", ".json", "/model.json", ".onnx"};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(suffixes); i++) {
        snprintf(path, PATH_SIZE, "%s%s", model, suffixes[i]);
        const char *end = strrchr(path, '.');
        if (end != NULL && (strcmp(end, ".json") == 0 || strcmp(end, ".onnx") == 0) &&
            access(path, R_OK) == 0)
            return;
    }
    snprintf(path, PATH_SIZE, "%s", model);
}

static void find_name(char *name, size_t size, const char *model)
{
    char path[PATH_SIZE];
    snprintf(path, sizeof(path), "%s", model);
    for (;;) {
        char *slash = strrchr(path, '/');
        snprintf(name, size, "%.*s", (int)size - 1, slash != NULL ? slash + 1 : path);
        char *dot = strrchr(name, '.');
        if (dot != NULL && (strcmp(dot, ".json") == 0 || strcmp(dot, ".tfjs") == 0))
            *dot = '\0';
        if (slash == NULL || strcmp(name, "model") != 0)
            return;
        *slash = '\0';
    }
}

// --- making the model's inputs and outputs ---

static enum inf_code make_tensor(struct inf_blob **out_blob, const struct inf_value *value,
                                 struct inf_error *err)
{
    size_t size;
    if (!inf_shape_bytes(&value->shape, value->dtype, &size))
        return inf_fail(err, INF_UNSUPPORTED, "'%s' has no known size", value->name);
    *out_blob = inf_blob_create(size);
    if (*out_blob == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for %zu bytes", size);
    return INF_OK;
}

static enum inf_code make_input(struct bench_subject *subject, uint32_t index,
                                struct inf_error *err)
{
    const struct inf_value *value = &subject->graph->values[subject->graph->inputs[index].value];
    subject->input_data[index] = subject->files[index].data;
    if (subject->input_data[index] != NULL)
        return INF_OK;
    INF_TRY(make_tensor(&subject->inputs[index], value, err));
    subject->input_data[index] = subject->inputs[index]->data;
    float *data = subject->inputs[index]->data;
    size_t count = value->dtype == INF_DTYPE_F32 ? inf_shape_elements(&value->shape) : 0;
    for (size_t k = 0; k < count; k++)
        data[k] = (float)(k * 7919 % 255) / 255;
    return INF_OK;
}

static enum inf_code make_tensors(struct bench_subject *subject, struct inf_error *err)
{
    const struct inf_graph *graph = subject->graph;
    for (uint32_t i = 0; i < graph->input_count; i++)
        INF_TRY(make_input(subject, i, err));
    for (uint32_t i = 0; i < graph->output_count; i++) {
        const struct inf_value *value = &graph->values[graph->outputs[i].value];
        size_t count;
        if (!inf_shape_count(&value->shape, &count))
            continue;
        INF_TRY(make_tensor(&subject->outputs[i], value, err));
        subject->output_data[i] = subject->outputs[i]->data;
    }
    return INF_OK;
}

// --- loading, compiling and running a model ---

static enum inf_code read_files(struct bench_subject *subject, const struct inf_graph *graph,
                                const struct bench_inputs *inputs, struct inf_error *err)
{
    if (inputs->file_count > graph->input_count)
        return inf_fail(err, INF_INVALID, "%u files for %u inputs", inputs->file_count,
                        graph->input_count);
    for (uint32_t i = 0; i < inputs->file_count; i++) {
        const struct inf_value *value = &graph->values[graph->inputs[i].value];
        INF_TRY(inf_npy_load(&subject->files[i], inputs->files[i], err));
        if (subject->files[i].dtype != value->dtype)
            return inf_fail(err, INF_INVALID, "%s is %s, input '%s' is %s", inputs->files[i],
                            inf_dtype_name(subject->files[i].dtype), value->name,
                            inf_dtype_name(value->dtype));
    }
    return INF_OK;
}

enum inf_code bench_subject_load(struct bench_subject *subject, const struct tool_engine *engine,
                                 const char *model, const struct bench_inputs *inputs,
                                 struct inf_error *err)
{
    char path[PATH_SIZE];
    struct inf_shape shapes[INF_LIMIT_TENSORS];
    find_file(path, model);
    find_name(subject->name, sizeof(subject->name), model);
    INF_TRY(tool_engine_load(engine, path, &subject->model, err));
    const struct inf_graph *graph = inf_model_graph(subject->model);
    INF_TRY(read_files(subject, graph, inputs, err));
    for (uint32_t i = 0; i < graph->input_count; i++) {
        bool read = subject->files[i].data != NULL;
        shapes[i] = read ? subject->files[i].shape : graph->values[graph->inputs[i].value].shape;
        for (int32_t axis = 0; axis < shapes[i].rank; axis++)
            if (shapes[i].dims[axis] == INF_DIM_UNKNOWN)
                shapes[i].dims[axis] = axis == 0 ? 1 : inputs->dim;
    }
    INF_TRY(inf_model_acquire_with(subject->model, engine->device, &engine->options, shapes,
                                   &subject->executable, err));
    subject->graph = inf_executable_graph(subject->executable);
    return make_tensors(subject, err);
}

void bench_subject_unload(struct bench_subject *subject)
{
    for (uint32_t i = 0; i < INF_LIMIT_TENSORS; i++) {
        inf_npy_unload(&subject->files[i]);
        inf_blob_unref(&subject->inputs[i]);
        inf_blob_unref(&subject->outputs[i]);
    }
    if (subject->executable != NULL)
        inf_model_release(subject->model, &subject->executable);
    inf_model_unref(&subject->model);
}

enum inf_code bench_subject_run(const struct bench_subject *subject, bool profile,
                                struct inf_error *err)
{
    struct inf_execution execution = {
        .inputs = subject->input_data, .outputs = subject->output_data, .profile = profile};
    enum inf_code code = inf_executable_run(subject->executable, &execution, err);
    inf_executable_drop_results(subject->executable, 0);
    return code;
}
