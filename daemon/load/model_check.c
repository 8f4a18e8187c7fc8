// SPDX-License-Identifier: Apache-2.0
// Runs the check of a model on the device and in the precision with which the model will be served.
// Arrays are read from .npy files. Every input of the model needs a file. An output without a file
// is not compared.
#include "daemon/load/model_check.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "backends/exec/trial_run.h"
#include "backends/storage/file.h"
#include "daemon/model/directory.h"
#include "proto/npy/npy.h"

#define FOLDER INF_MODEL_CHECK_FOLDER
// The most bytes of one array, which bounds the memory of a check.
#define ARRAY_BYTES_MAX (256u << 20)
// The tolerance if the check folder has no file `tolerance`. It covers the differences between
// fp32 kernels that add in different orders.
#define TOLERANCE 1e-3

struct array {
    struct inf_npy npy; // npy.data points into `file`
    char *file;         // contents of the .npy file; NULL: the file does not exist
};

struct check {
    struct inf_served *served;
    int directory_fd;
    double tolerance;
    uint32_t input_count, output_count;
    struct array *inputs, *outputs;
};

static void free_arrays(struct array *arrays, uint32_t count)
{
    for (uint32_t i = 0; arrays != NULL && i < count; i++)
        free(arrays[i].file);
    free(arrays);
}

// Reads the array of one input or output from KIND.INDEX.npy. If that file does not exist,
// array->file stays NULL.
static enum inf_code read_array(const struct check *check, const char *kind, uint32_t index,
                                struct array *array, struct inf_error *err) INF_MAY_BLOCK
{
    char name[64];
    size_t size, offset;
    struct inf_error why = {0};
    snprintf(name, sizeof name, FOLDER "/%s.%u.npy", kind, index);
    enum inf_code code =
        inf_file_read_all(&array->file, &size, check->directory_fd, name, ARRAY_BYTES_MAX, &why);
    if (code == INF_NOT_FOUND)
        return INF_OK;
    if (code != INF_OK) {
        if (err != NULL)
            *err = why;
        return code;
    }
    const struct inf_span bytes = {(const uint8_t *)array->file, size};
    code = inf_npy_parse_header(&array->npy, &offset, bytes, err);
    if (code != INF_OK)
        return inf_error_prefix(err, INF_INVALID, "%s", name);
    if (size - offset != array->npy.size_bytes)
        return inf_fail(err, INF_INVALID, "%s: %zu bytes of data, wanted %zu", name, size - offset,
                        array->npy.size_bytes);
    array->npy.data = array->file + offset;
    return INF_OK;
}

static enum inf_code read_tolerance(struct check *check, struct inf_error *err) INF_MAY_BLOCK
{
    char *text, *end;
    size_t size;
    struct inf_error why = {0};
    check->tolerance = TOLERANCE;
    enum inf_code code =
        inf_file_read_all(&text, &size, check->directory_fd, FOLDER "/tolerance", 64, &why);
    if (code == INF_NOT_FOUND)
        return INF_OK;
    if (code != INF_OK) {
        if (err != NULL)
            *err = why;
        return code;
    }
    check->tolerance = strtod(text, &end);
    bool sound = end != text && end[strspn(end, " \t\r\n")] == '\0' && check->tolerance >= 0 &&
                 isfinite(check->tolerance);
    free(text);
    return sound ? INF_OK
                 : inf_fail(err, INF_INVALID, FOLDER "/tolerance: wanted a number from 0 on");
}

static enum inf_code read_check(struct check *check, const struct inf_graph *graph,
                                struct inf_error *err) INF_MAY_BLOCK
{
    uint32_t found = 0;
    check->input_count = graph->input_count;
    check->output_count = graph->output_count;
    check->inputs = calloc(graph->input_count + 1u, sizeof *check->inputs);
    check->outputs = calloc(graph->output_count + 1u, sizeof *check->outputs);
    if (check->inputs == NULL || check->outputs == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "no memory for a check");
    INF_TRY(read_tolerance(check, err));
    for (uint32_t i = 0; i < graph->input_count; i++) {
        INF_TRY(read_array(check, "input", i, &check->inputs[i], err));
        if (check->inputs[i].file == NULL)
            return inf_fail(err, INF_INVALID, FOLDER "/input.%u.npy: does not exist", i);
        const struct inf_value *value = &graph->values[graph->inputs[i].value];
        if (check->inputs[i].npy.dtype != value->dtype)
            return inf_fail(err, INF_INVALID, FOLDER "/input.%u.npy: is %s, wanted %s", i,
                            inf_dtype_name(check->inputs[i].npy.dtype),
                            inf_dtype_name(value->dtype));
    }
    for (uint32_t i = 0; i < graph->output_count; i++) {
        INF_TRY(read_array(check, "output", i, &check->outputs[i], err));
        found += check->outputs[i].file != NULL;
    }
    return found > 0 ? INF_OK
                     : inf_fail(err, INF_INVALID, FOLDER ": holds no output.N.npy to compare with");
}

static enum inf_code compare_output(const struct check *check, const struct inf_graph *graph,
                                    uint32_t index, const void *got, struct inf_error *err)
{
    char is[INF_SHAPE_TEXT_SIZE], wanted[INF_SHAPE_TEXT_SIZE];
    const struct inf_npy *npy = &check->outputs[index].npy;
    const struct inf_value *value = &graph->values[graph->outputs[index].value];
    if (value->dtype != npy->dtype || !inf_shape_equal(&value->shape, &npy->shape))
        return inf_fail_reason(err, INF_PRECONDITION, INF_REASON_MODEL_FAILED,
                               "the check failed: output %u is %s %s, wanted %s %s", index,
                               inf_dtype_name(value->dtype), inf_shape_print(&value->shape, is),
                               inf_dtype_name(npy->dtype), inf_shape_print(&npy->shape, wanted));
    size_t element = inf_trial_run_find_difference(got, npy->data, npy->size_bytes, npy->dtype,
                                                   check->tolerance);
    if (element == SIZE_MAX)
        return INF_OK;
    if (npy->dtype != INF_DTYPE_F32)
        return inf_fail_reason(err, INF_PRECONDITION, INF_REASON_MODEL_FAILED,
                               "the check failed: element %zu of output %u differs", element,
                               index);
    float values[2];
    memcpy(&values[0], (const char *)got + element * sizeof(float), sizeof(float));
    memcpy(&values[1], (const char *)npy->data + element * sizeof(float), sizeof(float));
    return inf_fail_reason(err, INF_PRECONDITION, INF_REASON_MODEL_FAILED,
                           "the check failed: element %zu of output %u is %g, wanted %g, with a "
                           "tolerance of %g",
                           element, index, (double)values[0], (double)values[1], check->tolerance);
}

// Runs the model on the inputs of the check and compares the outputs.
static enum inf_code run_check(const struct check *check, struct inf_executable *executable,
                               const atomic_bool *cancelled, struct inf_trial_run *trial,
                               struct inf_error *err) INF_MAY_BLOCK
{
    const struct inf_graph *graph = inf_executable_graph(executable);
    INF_TRY(inf_trial_run_init(trial, graph, err));
    for (uint32_t i = 0; i < check->input_count; i++)
        memcpy(trial->pointers[i], check->inputs[i].npy.data, check->inputs[i].npy.size_bytes);
    INF_TRY(inf_trial_run_execute_cancellable(trial, executable, cancelled, NULL, err));
    for (uint32_t i = 0; i < check->output_count; i++)
        if (check->outputs[i].file != NULL)
            INF_TRY(compare_output(check, graph, i, trial->pointers[check->input_count + i], err));
    return INF_OK;
}

static enum inf_code acquire_and_run(const struct check *check, const atomic_bool *cancelled,
                                     struct inf_error *err) INF_MAY_BLOCK
{
    struct inf_served *served = check->served;
    struct inf_executable *executable;
    struct inf_trial_run trial = {0};
    struct inf_shape *shapes = calloc(check->input_count + 1u, sizeof *shapes);
    if (shapes == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "no memory for a check");
    for (uint32_t i = 0; i < check->input_count; i++)
        shapes[i] = check->inputs[i].npy.shape;
    enum inf_code code = inf_model_acquire(served->model, served->device, shapes, &executable, err);
    free(shapes);
    if (code != INF_OK)
        return code;
    code = run_check(check, executable, cancelled, &trial, err);
    inf_trial_run_fini(&trial);
    inf_model_release(served->model, &executable);
    return code;
}

enum inf_code inf_model_check_run(struct inf_served *served, int directory_fd,
                                  const atomic_bool *cancelled, const struct inf_log *log,
                                  struct inf_error *err)
{
    struct check check = {.served = served, .directory_fd = directory_fd};
    struct stat status;
    inf_role_check_may_block();
    if (fstatat(directory_fd, FOLDER, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return INF_OK;
    enum inf_code code = read_check(&check, inf_model_graph(served->model), err);
    if (code == INF_OK)
        code = acquire_and_run(&check, cancelled, err);
    free_arrays(check.inputs, check.input_count);
    free_arrays(check.outputs, check.output_count);
    if (code == INF_OK)
        inf_log(log, INF_LOG_INFO, "model passed its check name=%s version=%s tolerance=%g",
                served->name, served->version, check.tolerance);
    return code;
}
