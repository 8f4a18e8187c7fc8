// SPDX-License-Identifier: Apache-2.0
// Reads the tests of ONNX's backend test data: TensorProto, SequenceProto and OptionalProto. The
// tensors of a sequence become inputs or outputs of their own, as in the importer.
#include "tests/tools/run/onnx_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/storage/file.h"

#define LIGHT_SUFFIX "_output_0.pb"

static enum inf_code read_file(const struct onnx_case *test, const char *name, char **out_data,
                               size_t *out_size, struct inf_error *err)
{
    int fd;
    INF_TRY(inf_directory_open(&fd, test->directory, err));
    enum inf_code code = inf_file_read_all(out_data, out_size, fd, name, (uint64_t)1 << 31, err);
    close(fd);
    return code;
}

static enum inf_code read_item(struct onnx_case *test, struct inf_span bytes,
                               struct onnx_items *items, struct inf_error *err)
{
    struct inf_tally tally = INF_TALLY_INIT;
    const struct inf_onnx_files files = {.place.directory_fd = -1, .tally = &tally};
    if (items->count == items->room)
        return inf_fail(err, INF_UNSUPPORTED, "has more than %u tensors", INF_LIMIT_TENSORS);
    INF_TRY(inf_onnx_tensor_read(&items->tensors[items->count], &test->arena, &files, bytes,
                                 &test->strings, err));
    items->count++;
    return INF_OK;
}

// Reads the tensors of a file, which holds a SequenceProto or OptionalProto if the port is a
// sequence or an optional.
static enum inf_code read_items(struct onnx_case *test, const char *name,
                                const struct inf_onnx_port *port, struct onnx_items *items,
                                struct inf_error *err)
{
    enum {
        FIELD_TENSOR = 3,  // the tensors of a SequenceProto, and the tensor of an OptionalProto
        FIELD_SEQUENCE = 5 // the sequence of an OptionalProto
    };
    char *data = NULL;
    size_t size;
    INF_TRY(read_file(test, name, &data, &size, err));
    struct inf_span bytes = {(const uint8_t *)data, size};
    struct inf_pb_field field = {0};
    bool more;
    enum inf_code code = INF_OK;
    if (port->is_optional && port->is_sequence) {
        inf_onnx_field(bytes, FIELD_SEQUENCE, &field);
        bytes = field.bytes;
    }
    if (!port->is_optional && !port->is_sequence) {
        code = read_item(test, bytes, items, err);
    } else {
        for (struct inf_pb pb = {bytes};
             code == INF_OK && inf_pb_next(&pb, &field, &more, NULL) == INF_OK && more;)
            if (field.number == FIELD_TENSOR)
                code = read_item(test, field.bytes, items, err);
    }
    free(data);
    return code;
}

static bool is_initializer(const struct inf_onnx_graph *graph, struct inf_arena *arena,
                           const char *name)
{
    for (uint32_t i = 0; i < graph->initializer_count; i++) {
        struct inf_pb_field field;
        const char *own;
        inf_onnx_field(graph->initializers[i], 8, &field);
        if (inf_onnx_text(&own, arena, field.bytes, NULL) == INF_OK && strcmp(own, name) == 0)
            return true;
    }
    return false;
}

enum inf_code onnx_case_read_ports(struct onnx_case *test, struct inf_error *err)
{
    struct inf_onnx_model model;
    char *data = NULL;
    size_t size;
    INF_TRY(read_file(test, test->model, &data, &size, err));
    enum inf_code code =
        inf_onnx_model_read(&model, &test->arena, (struct inf_span){(uint8_t *)data, size}, err);
    for (uint32_t i = 0; code == INF_OK && i < model.graph.input_count; i++) {
        const struct inf_onnx_port *port = &model.graph.inputs[i];
        if (is_initializer(&model.graph, &test->arena, port->name))
            continue;
        if (test->port_count == INF_LIMIT_TENSORS)
            code = inf_fail(err, INF_UNSUPPORTED, "has more than %u inputs", INF_LIMIT_TENSORS);
        else
            test->ports[test->port_count++] = *port;
    }
    if (code == INF_OK) {
        test->outputs = model.graph.outputs;
        test->output_count = model.graph.output_count;
    }
    free(data);
    return code;
}

// Makes the input arange(n) / n in the shape of the model's input.
static enum inf_code make_ramp(struct onnx_case *test, struct inf_error *err)
{
    struct inf_onnx_tensor *tensor = &test->given[0];
    size_t count;
    *tensor = (struct inf_onnx_tensor){
        .name = test->ports[0].name, .dtype = INF_DTYPE_F32, .shape = test->ports[0].shape};
    test->inputs[0] = tensor->name;
    test->dtypes[0] = INF_DTYPE_F32;
    test->input_count = 1;
    if (test->port_count != 1 || !inf_shape_count(&tensor->shape, &count))
        return inf_fail(err, INF_UNSUPPORTED, "its one input has no known shape");
    tensor->data = inf_blob_create(count * sizeof(float));
    if (tensor->data == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory");
    for (size_t i = 0; i < count; i++)
        ((float *)tensor->data->data)[i] = (float)((double)i / (double)count);
    return INF_OK;
}

void onnx_case_correct_type(struct inf_onnx_tensor *tensor, enum inf_dtype wanted)
{
    if (tensor->dtype == INF_DTYPE_U16 && wanted == INF_DTYPE_BF16)
        tensor->dtype = INF_DTYPE_BF16;
}

// Reads the tensors of one input, and names them as the importer does.
static enum inf_code read_port(struct onnx_case *test, unsigned set, uint32_t index,
                               struct inf_error *err)
{
    const struct inf_onnx_port *port = &test->ports[index];
    char file[64];
    struct onnx_items items = {&test->given[test->input_count], 0,
                               INF_LIMIT_TENSORS - test->input_count};
    snprintf(file, sizeof file, "test_data_set_%u/input_%u.pb", set, index);
    enum inf_code code = read_items(test, file, port, &items, err);
    if (port->is_sequence || port->is_optional)
        test->lengths[test->length_count++] = (struct inf_sequence_length){port->name, items.count};
    for (uint32_t i = 0; i < items.count; i++) {
        char *name = inf_arena_alloc(&test->arena, strlen(port->name) + 16);
        if (name == NULL)
            abort();
        snprintf(name, strlen(port->name) + 16, port->is_sequence ? "%s.%u" : "%s", port->name, i);
        test->dtypes[test->input_count] = inf_onnx_dtype(port->type);
        onnx_case_correct_type(&test->given[test->input_count], test->dtypes[test->input_count]);
        test->inputs[test->input_count++] = name;
    }
    return code;
}

enum inf_code onnx_case_read_set(struct onnx_case *test, unsigned set, struct inf_error *err)
{
    test->input_count = test->length_count = 0;
    if (test->is_light)
        return make_ramp(test, err);
    for (uint32_t i = 0; i < test->port_count; i++)
        INF_TRY(read_port(test, set, i, err));
    return INF_OK;
}

void onnx_case_drop_set(struct onnx_case *test)
{
    for (uint32_t i = 0; i < test->input_count; i++)
        inf_blob_unref(&test->given[i].data);
    inf_string_pool_fini(&test->strings);
}

enum inf_code onnx_case_read_wanted(struct onnx_case *test, unsigned set, struct onnx_items *items,
                                    struct inf_error *err)
{
    char name[512];
    for (uint32_t i = 0; i < test->output_count; i++) {
        if (test->is_light)
            snprintf(name, sizeof name, "%.*s" LIGHT_SUFFIX, (int)strlen(test->model) - 5,
                     test->model);
        else
            snprintf(name, sizeof name, "test_data_set_%u/output_%u.pb", set, i);
        INF_TRY(read_items(test, name, &test->outputs[i], items, err));
    }
    return INF_OK;
}
