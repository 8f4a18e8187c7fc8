// SPDX-License-Identifier: Apache-2.0
// One recorded call of a TensorFlow.js kernel. The recorded inputs become constants or inputs of a
// graph, and the recorded attributes become attributes of a node.
#include "tests/tools/run/kernel_case.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backends/graph/shape/infer.h"

// --- reading attributes and tensors of the recorded call ---

double kernel_number(const json_t *json)
{
    const char *text = json_string_value(json);
    if (text == NULL)
        return json_is_boolean(json) ? json_is_true(json) : json_number_value(json);
    if (strcmp(text, "nan") == 0)
        return NAN;
    return strcmp(text, "-inf") == 0 ? -INFINITY : INFINITY;
}

static void put_element(struct inf_blob *blob, enum inf_dtype dtype, size_t i, double value)
{
    if (dtype == INF_DTYPE_F32)
        ((float *)blob->data)[i] = (float)value;
    else if (dtype == INF_DTYPE_I32)
        ((int32_t *)blob->data)[i] = (int32_t)value;
    else
        ((uint8_t *)blob->data)[i] = value != 0;
}

static enum inf_dtype parse_dtype(const char *name)
{
    if (name != NULL && strcmp(name, "float32") == 0)
        return INF_DTYPE_F32;
    if (name != NULL && strcmp(name, "int32") == 0)
        return INF_DTYPE_I32;
    return name != NULL && strcmp(name, "bool") == 0 ? INF_DTYPE_BOOL : INF_DTYPE_NONE;
}

struct inf_blob *kernel_tensor(const json_t *tensor, enum inf_dtype *dtype, struct inf_shape *shape)
{
    const json_t *dims = json_object_get(tensor, "shape"), *data = json_object_get(tensor, "data");
    *dtype = parse_dtype(json_string_value(json_object_get(tensor, "dtype")));
    *shape = (struct inf_shape){.rank = (int32_t)json_array_size(dims)};
    size_t size_bytes;
    if (shape->rank > INF_LIMIT_RANK)
        return NULL;
    for (int32_t i = 0; i < shape->rank; i++)
        shape->dims[i] = json_integer_value(json_array_get(dims, (size_t)i));
    if (!inf_shape_bytes(shape, *dtype, &size_bytes) ||
        inf_shape_elements(shape) != json_array_size(data))
        return NULL;
    struct inf_blob *blob = inf_blob_create(size_bytes);
    for (size_t i = 0; blob != NULL && i < json_array_size(data); i++)
        put_element(blob, *dtype, i, kernel_number(json_array_get(data, i)));
    return blob;
}

double kernel_attr(const struct kernel_case *call, const char *name)
{
    return kernel_number(json_object_get(call->attrs, name));
}

const char *kernel_text(const struct kernel_case *call, const char *name)
{
    const char *text = json_string_value(json_object_get(call->attrs, name));
    return text != NULL ? text : "";
}

bool kernel_flag(const struct kernel_case *call, const char *name)
{
    return json_is_true(json_object_get(call->attrs, name));
}

// Appends all numbers in nested JSON arrays to a list.
static int flatten_json(const json_t *json, int64_t *elements, int count, int capacity)
{
    if (!json_is_array(json)) {
        if (count < capacity)
            elements[count] = (int64_t)kernel_number(json);
        return count + 1;
    }
    for (size_t i = 0; i < json_array_size(json); i++)
        count = flatten_json(json_array_get(json, i), elements, count, capacity);
    return count;
}

int kernel_list(const struct kernel_case *call, const char *name, int64_t *elements, int capacity)
{
    const json_t *json = json_object_get(call->attrs, name);
    if (json == NULL || json_is_null(json))
        return -1;
    int count = flatten_json(json, elements, 0, capacity);
    return INF_MIN(count, capacity);
}

// --- adding inputs, constants and nodes to the graph ---

static bool check_code(struct kernel_case *call, enum inf_code code)
{
    if (call->code == INF_OK)
        call->code = code;
    return call->code == INF_OK;
}

bool kernel_has(const struct kernel_case *call, const char *name)
{
    const json_t *input = json_object_get(call->inputs, name);
    return input != NULL && !json_is_null(input);
}

uint32_t kernel_input_count(const struct kernel_case *call)
{
    return (uint32_t)json_object_size(call->inputs);
}

uint32_t kernel_input(struct kernel_case *call, const char *name)
{
    enum inf_dtype dtype;
    struct inf_shape shape;
    uint32_t value = 0;
    if (call->code != INF_OK)
        return value;
    struct inf_blob *blob = call->given_count < KERNEL_TENSORS
                                ? kernel_tensor(json_object_get(call->inputs, name), &dtype, &shape)
                                : NULL;
    if (blob == NULL) {
        check_code(call, inf_fail(&call->err, INF_INVALID, "input '%s' is no tensor", name));
        return value;
    }
    call->data[call->given_count] = blob;
    if (check_code(call,
                   inf_graph_add_value(call->graph, name, dtype, &shape, &value, &call->err)) &&
        check_code(call, inf_graph_add_input(call->graph, name, value, &call->err)))
        call->given[call->given_count] = value;
    call->given_count++;
    return value;
}

uint32_t kernel_input_at(struct kernel_case *call, uint32_t index)
{
    char name[16];
    snprintf(name, sizeof(name), "%u", index);
    return kernel_input(call, name);
}

// Adds a constant and returns its elements, which the caller fills in; NULL after a failure.
static void *add_const(struct kernel_case *call, enum inf_dtype dtype, struct inf_shape shape,
                       uint32_t *value)
{
    size_t size_bytes;
    *value = 0;
    if (call->code != INF_OK)
        return NULL;
    if (!inf_shape_bytes(&shape, dtype, &size_bytes)) {
        check_code(call, inf_fail(&call->err, INF_INVALID, "a constant is too large"));
        return NULL;
    }
    struct inf_blob *blob = inf_blob_create(size_bytes);
    void *data = blob == NULL ? NULL : blob->data;
    if (data == NULL || !check_code(call, inf_graph_add_const(call->graph, "", dtype, &shape, blob,
                                                              value, &call->err)))
        return NULL;
    return data;
}

uint32_t kernel_ints(struct kernel_case *call, const int64_t *elements, int count)
{
    return kernel_matrix(call, elements, count, 0);
}

uint32_t kernel_matrix(struct kernel_case *call, const int64_t *elements, int rows, int columns)
{
    uint32_t value;
    struct inf_shape shape = columns == 0 ? INF_SHAPE(rows) : INF_SHAPE(rows, columns);
    int32_t *data = add_const(call, INF_DTYPE_I32, shape, &value);
    int count = columns == 0 ? rows : rows * columns;
    for (int i = 0; data != NULL && i < count; i++)
        data[i] = (int32_t)elements[i];
    return value;
}

uint32_t kernel_scalar(struct kernel_case *call, enum inf_dtype dtype, double number)
{
    uint32_t value;
    void *data = add_const(call, dtype, (struct inf_shape){0}, &value);
    struct inf_blob view = {.data = data};
    if (data != NULL)
        put_element(&view, dtype, 0, number);
    return value;
}

uint32_t kernel_floats(struct kernel_case *call, const float *elements, struct inf_shape shape)
{
    uint32_t value;
    float *data = add_const(call, INF_DTYPE_F32, shape, &value);
    if (data != NULL)
        memcpy(data, elements, inf_shape_elements(&shape) * sizeof(*data));
    return value;
}

union inf_attrs kernel_attrs(enum inf_op op)
{
    union inf_attrs attrs;
    inf_attrs_init(&attrs, op);
    return attrs;
}

uint32_t kernel_node(struct kernel_case *call, enum inf_op op, const union inf_attrs *attrs,
                     const uint32_t *inputs, uint32_t input_count, uint32_t outputs)
{
    uint32_t node;
    char name[24];
    snprintf(name, sizeof(name), "n%u", call->graph->node_count);
    if (call->code != INF_OK ||
        !check_code(call, inf_graph_add_node(call->graph, op, name, "", inputs, input_count,
                                             outputs, &node, &call->err)))
        return 0;
    if (attrs != NULL)
        call->graph->nodes[node].attrs = *attrs;
    if (!check_code(call, inf_shape_infer_node(call->graph, node, &call->err)))
        return 0;
    return call->graph->nodes[node].outputs[0];
}

const struct inf_shape *kernel_shape(const struct kernel_case *call, uint32_t value)
{
    static const struct inf_shape none = {0};
    return call->code == INF_OK ? &call->graph->values[value].shape : &none;
}

enum inf_dtype kernel_dtype(const struct kernel_case *call, uint32_t value)
{
    return call->code == INF_OK ? call->graph->values[value].dtype : INF_DTYPE_F32;
}

uint32_t kernel_cast(struct kernel_case *call, uint32_t value, enum inf_dtype dtype)
{
    union inf_attrs attrs = kernel_attrs(INF_OP_CAST);
    attrs.cast.dtype = dtype;
    return kernel_dtype(call, value) == dtype ? value
                                              : kernel_add(call, INF_OP_CAST, &attrs, value);
}

uint32_t kernel_reshape(struct kernel_case *call, uint32_t value, const int64_t *dims, int rank)
{
    return kernel_add(call, INF_OP_RESHAPE, NULL, value, kernel_ints(call, dims, rank));
}

uint32_t kernel_transpose(struct kernel_case *call, uint32_t value, const int64_t *perm, int rank)
{
    union inf_attrs attrs = kernel_attrs(INF_OP_TRANSPOSE);
    attrs.transpose.perm.count = rank;
    memcpy(attrs.transpose.perm.values, perm, sizeof(*perm) * (size_t)rank);
    return kernel_add(call, INF_OP_TRANSPOSE, &attrs, value);
}

uint32_t kernel_fill(struct kernel_case *call, const int64_t *dims, int rank, enum inf_dtype dtype,
                     double value)
{
    return kernel_add(call, INF_OP_FILL, NULL, kernel_ints(call, dims, rank),
                      kernel_scalar(call, dtype, value));
}

uint32_t kernel_binary(struct kernel_case *call, enum inf_binary_kind kind, uint32_t a, uint32_t b)
{
    union inf_attrs attrs = kernel_attrs(INF_OP_BINARY);
    attrs.binary.kind = kind;
    return kernel_add(call, INF_OP_BINARY, &attrs, a, b);
}

uint32_t kernel_unary(struct kernel_case *call, enum inf_unary_kind kind, uint32_t x)
{
    union inf_attrs attrs = kernel_attrs(INF_OP_UNARY);
    attrs.unary.kind = kind;
    return kernel_add(call, INF_OP_UNARY, &attrs, x);
}

void kernel_result(struct kernel_case *call, uint32_t value)
{
    char name[24];
    snprintf(name, sizeof(name), "y%u", call->result_count);
    if (call->code == INF_OK &&
        check_code(call, inf_graph_add_output(call->graph, name, value, &call->err)))
        call->results[call->result_count++] = value;
}

void kernel_refuse(struct kernel_case *call, const char *why)
{
    check_code(call, inf_fail_reason(&call->err, INF_UNSUPPORTED, INF_REASON_OPERATOR, "%s", why));
}

bool kernel_map(struct kernel_case *call, const char *kernel)
{
    static const struct kernel_row *const families[] = {kernel_rows_eltwise, kernel_rows_reduce,
                                                        kernel_rows_move,    kernel_rows_pick,
                                                        kernel_rows_nn,      kernel_rows_picture};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(families); i++) {
        for (const struct kernel_row *row = families[i]; row->name != NULL; row++) {
            if (strcmp(row->name, kernel) == 0) {
                row->map(call, row->argument);
                return true;
            }
        }
    }
    return false;
}
