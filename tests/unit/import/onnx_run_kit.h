// SPDX-License-Identifier: Apache-2.0
// Loads an ONNX model that a test has written, and runs it on the reference device `ref`. Loading a
// model frees the model that was loaded before.
#ifndef INF_TESTS_UNIT_IMPORT_ONNX_RUN_KIT_H
#define INF_TESTS_UNIT_IMPORT_ONNX_RUN_KIT_H

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "backends/exec/model/model.h"
#include "backends/import/import.h"
#include "backends/registry.h"
#include "tests/support/models/onnx_writer.h"

// The values of TensorProto.DataType that tests use.
enum {
    FLOAT = 1,
    UINT8 = 2,
    INT8 = 3,
    UINT16 = 4,
    INT32 = 6,
    INT64 = 7,
    STRING = 8,
    BOOL = 9,
    FLOAT16 = 10,
    DOUBLE = 11,
    E4M3FN = 17,
    FLOAT8E5M2 = 19,
    UINT4 = 21,
    INT4 = 22,
    E8M0 = 24,
    UINT2 = 25,
    INT2 = 26
};

static char folder[] = "/tmp/inf-control-XXXXXX";
static int folder_fd;
static struct inf_device *device;
static struct inf_model *model;
static struct inf_executable *executable;
static struct inf_error err;
static float buffers[2][64]; // memory for outputs 0 and 1 if their size is known
// Lengths of inputs that are sequences, for the next import.
static struct inf_sequence_length sequence_lengths[2];
static uint32_t sequence_count;

static inline void set_up(void)
{
    const struct inf_device_options options = {.slots = 1};
    cr_assert_not_null(mkdtemp(folder));
    folder_fd = open(folder, O_RDONLY | O_DIRECTORY);
    cr_assert_geq(folder_fd, 0);
    cr_assert_eq(inf_device_open(&device, inf_registry_find("ref"), 0, &options, &err), INF_OK);
}

static inline void drop_model(void)
{
    if (executable != NULL)
        inf_model_release(model, &executable);
    inf_model_unref(&model);
}

static inline void tear_down(void)
{
    drop_model();
    inf_device_unref(&device);
    unlinkat(folder_fd, "model.onnx", 0);
    close(folder_fd);
    rmdir(folder);
}

// Imports the model that the test has written to the writer, then empties the writer.
static inline enum inf_code import_model(struct inf_pb_writer *writer, struct inf_graph **graph)
{
    const struct inf_import_options options = {.evaluator = inf_registry_evaluator(),
                                               .lengths = sequence_lengths,
                                               .length_count = sequence_count};
    int fd = openat(folder_fd, "model.onnx", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    cr_assert_eq(write(fd, writer->data, writer->size), (ssize_t)writer->size);
    close(fd);
    inf_pb_writer_fini(writer);
    drop_model();
    return inf_model_import_with(graph, NULL, folder_fd, "model.onnx", &options, &err);
}

// Loads the model that the test has written to the writer, then empties the writer.
static inline void load_model(struct inf_pb_writer *writer)
{
    const struct inf_pass_options passes = {.evaluator = inf_registry_evaluator()};
    struct inf_graph *graph = NULL;
    cr_assert_eq(import_model(writer, &graph), INF_OK, "%s", err.text);
    cr_assert_eq(inf_model_create(&model, &graph, &device, 1, &passes, &err), INF_OK, "%s",
                 err.text);
}

// Runs the model with inputs of these shapes.
static inline enum inf_code run_model(const struct inf_shape *shapes, const void *const *inputs)
{
    void *outputs[] = {buffers[0], buffers[1]};
    const struct inf_execution execution = {.inputs = inputs, .outputs = outputs};
    if (executable != NULL)
        inf_model_release(model, &executable);
    INF_TRY(inf_model_acquire(model, device, shapes, &executable, &err));
    return inf_executable_run(executable, &execution, &err);
}

// Asserts the shape and the elements of output `index` of the last run.
static inline void expect_output(uint32_t index, const struct inf_shape *shape, const float *wanted)
{
    const struct inf_graph *graph = inf_executable_graph(executable);
    const struct inf_value *value = &graph->values[graph->outputs[index].value];
    struct inf_result result = {
        .dtype = value->dtype, .shape = value->shape, .data = buffers[index]};
    char text[INF_SHAPE_TEXT_SIZE];
    // A result of unknown shape is read from the executable. A result of known shape was written to
    // `buffers`.
    bool is_left = inf_executable_result(executable, 0, index, &result);
    cr_assert_neq(is_left, inf_shape_known(&value->shape));
    cr_assert(inf_shape_equal(&result.shape, shape), "%s", inf_shape_print(&result.shape, text));
    cr_assert_eq(result.dtype, INF_DTYPE_F32);
    for (size_t i = 0; i < inf_shape_elements(shape); i++)
        cr_assert_eq(((const float *)result.data)[i], wanted[i]);
}

#endif
