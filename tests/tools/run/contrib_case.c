// SPDX-License-Identifier: Apache-2.0
// Reads a case of shared/contrib-ops. The README of that folder describes the format of a line. The
// recorded inputs become inputs of the model, except for 4-bit integers. These become initialisers,
// because a tensor in a request cannot have 4-bit elements.
#include "tests/tools/run/contrib_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/half.h"

// The opset of ai.onnx that the model imports if the operator of the case is of another domain, and
// the opset if the case also has inputs of 4-bit integers, which need a later version.
#define OPSET_BESIDE      17
#define OPSET_BESIDE_FOUR 21

// An element type: its name in the file, its number in TensorProto, and the inf_dtype;
// INF_DTYPE_NONE if a tensor cannot have this type.
static const struct type {
    const char *name;
    int32_t number;
    enum inf_dtype dtype;
} types[] = {
    {"float32", 1, INF_DTYPE_F32},  {"uint8", 2, INF_DTYPE_U8},     {"int8", 3, INF_DTYPE_I8},
    {"uint16", 4, INF_DTYPE_U16},   {"int16", 5, INF_DTYPE_I16},    {"int32", 6, INF_DTYPE_I32},
    {"int64", 7, INF_DTYPE_I64},    {"string", 8, INF_DTYPE_BYTES}, {"bool", 9, INF_DTYPE_BOOL},
    {"float16", 10, INF_DTYPE_F16}, {"float64", 11, INF_DTYPE_F64}, {"uint32", 12, INF_DTYPE_U32},
    {"uint64", 13, INF_DTYPE_U64},  {"uint4", 21, INF_DTYPE_NONE},  {"int4", 22, INF_DTYPE_NONE},
};

static const struct type *find_type(const json_t *tensor)
{
    const char *name = json_string_value(json_object_get(tensor, "dtype"));
    for (size_t i = 0; name != NULL && i < INF_ARRAY_LENGTH(types); i++)
        if (strcmp(types[i].name, name) == 0)
            return &types[i];
    return NULL;
}

static bool is_four_bits(const struct type *type)
{
    return type->number == 21 || type->number == 22;
}

// --- tensors ---

static double read_float(const json_t *json)
{
    const char *text = json_string_value(json);
    if (json_is_boolean(json))
        return json_is_true(json);
    return text != NULL ? strtod(text, NULL) : json_number_value(json);
}

static int64_t read_int(const json_t *json)
{
    const char *text = json_string_value(json);
    if (text != NULL)
        return text[0] == '-' ? strtoll(text, NULL, 10) : (int64_t)strtoull(text, NULL, 10);
    if (json_is_boolean(json))
        return json_is_true(json);
    return json_is_real(json) ? (int64_t)json_real_value(json) : json_integer_value(json);
}

static void put_element(struct contrib_tensor *tensor, size_t index, const json_t *json)
{
    size_t size = inf_dtype_size(tensor->dtype);
    char *to = (char *)tensor->data->data + index * size;
    int64_t integer = 0;
    if (tensor->dtype == INF_DTYPE_F64) {
        memcpy(to, &(double){read_float(json)}, size);
    } else if (tensor->dtype == INF_DTYPE_F32) {
        memcpy(to, &(float){(float)read_float(json)}, size);
    } else if (tensor->dtype == INF_DTYPE_F16) {
        memcpy(to, &(uint16_t){inf_half_from_float((float)read_float(json))}, size);
    } else {
        integer = read_int(json);
        memcpy(to, &integer, size); // little-endian: the low bytes come first
    }
}

static enum inf_code read_shape(struct inf_shape *shape, const json_t *tensor,
                                struct inf_error *err)
{
    const json_t *dims = json_object_get(tensor, "dims");
    *shape = (struct inf_shape){.rank = (int32_t)json_array_size(dims)};
    if (shape->rank > INF_LIMIT_RANK)
        return inf_fail(err, INF_UNSUPPORTED, "a tensor has %d dimensions", shape->rank);
    for (int32_t i = 0; i < shape->rank; i++)
        shape->dims[i] = json_integer_value(json_array_get(dims, (size_t)i));
    return INF_OK;
}

static enum inf_code put_string(struct contrib_tensor *tensor, struct inf_string_pool *strings,
                                size_t index, const json_t *json, struct inf_error *err)
{
    const struct inf_span text = {(const uint8_t *)json_string_value(json),
                                  json_string_length(json)};
    return inf_string_pool_add(strings, text, &((uint64_t *)tensor->data->data)[index], err);
}

static enum inf_code read_tensor(struct contrib_tensor *tensor, struct inf_string_pool *strings,
                                 const json_t *json, int index, struct inf_error *err)
{
    const struct type *type = find_type(json);
    const json_t *data = json_object_get(json, "data");
    size_t size_bytes;
    if (type == NULL)
        return inf_fail(err, INF_INVALID, "tensor %d has an unknown type", index);
    *tensor = (struct contrib_tensor){.index = index, .dtype = type->dtype};
    INF_TRY(read_shape(&tensor->shape, json, err));
    if (tensor->dtype == INF_DTYPE_NONE)
        return INF_OK;
    if (!inf_shape_bytes(&tensor->shape, tensor->dtype, &size_bytes) ||
        inf_shape_elements(&tensor->shape) != json_array_size(data))
        return inf_fail(err, INF_INVALID, "tensor %d has %zu elements", index,
                        json_array_size(data));
    tensor->data = inf_blob_create(size_bytes);
    if (tensor->data == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory");
    for (size_t i = 0; i < json_array_size(data); i++) {
        const json_t *element = json_array_get(data, i);
        if (tensor->dtype == INF_DTYPE_BYTES)
            INF_TRY(put_string(tensor, strings, i, element, err));
        else
            put_element(tensor, i, element);
    }
    return INF_OK;
}

// --- the model ---

// Writes one value of an attribute to field `field` of AttributeProto. `kind` is 'i' for an
// integer, 'f' for a float, 's' for a text.
static void write_value(struct inf_pb_writer *to, uint32_t field, const json_t *value, char kind)
{
    if (kind == 'i')
        inf_pb_put_int(to, field, read_int(value));
    else if (kind == 'f')
        inf_pb_put_float(to, field, (float)read_float(value));
    else
        inf_pb_put_text(to, field, json_string_value(value));
}

// Writes the tensor of a case (FP32, FP64 or integers) as the value of an attribute, in a
// TensorProto.
static void write_tensor(struct inf_pb_writer *to, const json_t *tensor)
{
    const struct type *type = find_type(tensor);
    json_t *item;
    size_t index;
    inf_pb_open(to, 5);
    json_array_foreach(json_object_get(tensor, "dims"), index, item)
    {
        inf_pb_put_int(to, 1, json_integer_value(item));
    }
    inf_pb_put_int(to, 2, type->number);
    json_array_foreach(json_object_get(tensor, "data"), index, item)
    {
        if (type->dtype == INF_DTYPE_F32)
            inf_pb_put_float(to, 4, (float)read_float(item));
        else if (type->dtype == INF_DTYPE_F64)
            inf_pb_put_double(to, 10, read_float(item));
        else
            inf_pb_put_int(to, type->dtype == INF_DTYPE_I64 ? 7 : 5, read_int(item));
    }
    inf_pb_close(to);
}

static void write_attribute(struct inf_pb_writer *to, const char *name, const json_t *attribute)
{
    // For each type of attribute: its name in the file, the field of AttributeProto that holds its
    // values, and the number of the type in AttributeProto.
    static const struct {
        const char *type;
        uint32_t field;
        int64_t number;
    } kinds[] = {{"float", 2, 1},  {"int", 3, 2},  {"string", 4, 3}, {"tensor", 5, 4},
                 {"floats", 7, 6}, {"ints", 8, 7}, {"strings", 9, 8}};
    const char *type = json_string_value(json_object_get(attribute, "type"));
    const json_t *value = json_object_get(attribute, "value"), *item;
    size_t index;
    for (size_t i = 0; type != NULL && i < INF_ARRAY_LENGTH(kinds); i++) {
        if (strcmp(kinds[i].type, type) != 0)
            continue;
        inf_pb_open(to, 5);
        inf_pb_put_text(to, 1, name);
        inf_pb_put_int(to, 20, kinds[i].number);
        if (strcmp(type, "tensor") == 0)
            write_tensor(to, value);
        else if (json_is_array(value))
            json_array_foreach(value, index, item)
            {
                write_value(to, kinds[i].field, item, type[0]);
            }
        else
            write_value(to, kinds[i].field, value, type[0]);
        inf_pb_close(to);
    }
}

static void write_initializer(struct inf_pb_writer *to, const char *name,
                              const struct inf_shape *shape, const json_t *tensor)
{
    const json_t *data = json_object_get(tensor, "data");
    size_t count = json_array_size(data);
    uint8_t *bytes = calloc(count / 2 + 1, 1);
    if (bytes == NULL)
        abort();
    for (size_t i = 0; i < count; i++)
        bytes[i / 2] |= (uint8_t)((read_int(json_array_get(data, i)) & 15) << (i % 2 * 4));
    inf_pb_open(to, 5);
    for (int32_t i = 0; i < shape->rank; i++)
        inf_pb_put_int(to, 1, shape->dims[i]);
    inf_pb_put_int(to, 2, find_type(tensor)->number);
    inf_pb_put_text(to, 8, name);
    inf_pb_put_bytes(to, 9, bytes, (count + 1) / 2);
    inf_pb_close(to);
    free(bytes);
}

static void write_opset(struct inf_pb_writer *to, const char *domain, int64_t version)
{
    inf_pb_open(to, 8);
    inf_pb_put_text(to, 1, domain);
    inf_pb_put_int(to, 2, version);
    inf_pb_close(to);
}

// Writes the names of a node's inputs (side 'i') or outputs (side 'o'), such as "i2". An absent
// tensor has an empty name. Absent inputs at the end are omitted.
static void write_names(struct inf_pb_writer *to, const json_t *tensors, char side)
{
    size_t count = json_array_size(tensors);
    while (side == 'i' && count > 0 && json_is_null(json_array_get(tensors, count - 1)))
        count--;
    for (size_t i = 0; i < count; i++) {
        char name[32] = "";
        if (!json_is_null(json_array_get(tensors, i)))
            snprintf(name, sizeof name, "%c%zu", side, i);
        inf_pb_put_text(to, side == 'i' ? 1 : 2, name);
    }
}

static void write_node(struct inf_pb_writer *to, const json_t *line, const char *domain)
{
    const char *name;
    json_t *attribute;
    inf_pb_open(to, 1);
    write_names(to, json_object_get(line, "inputs"), 'i');
    write_names(to, json_object_get(line, "outputs"), 'o');
    inf_pb_put_text(to, 4, json_string_value(json_object_get(line, "op")));
    inf_pb_put_text(to, 7, domain);
    json_object_foreach(json_object_get(line, "attributes"), name, attribute)
    {
        write_attribute(to, name, attribute);
    }
    inf_pb_close(to);
}

// Writes the inputs (side 'i') or outputs (side 'o') of the graph; inputs with 4-bit elements are
// written as initialisers. If `open` is true, sizes of ports of rank 2 and more are not given;
// those of lists are, because they decide ranks. Returns true if a tensor has 4-bit elements.
static bool write_ports(struct inf_pb_writer *to, const json_t *tensors, char side, bool open)
{
    bool four = false;
    json_t *tensor;
    size_t i;
    json_array_foreach(tensors, i, tensor)
    {
        char name[32];
        struct inf_shape shape;
        if (json_is_null(tensor) || read_shape(&shape, tensor, NULL) != INF_OK)
            continue;
        snprintf(name, sizeof name, "%c%zu", side, i);
        bool is_initializer = side == 'i' && is_four_bits(find_type(tensor));
        for (int32_t k = 0; open && !is_initializer && shape.rank > 1 && k < shape.rank; k++)
            shape.dims[k] = -1;
        if (is_initializer)
            write_initializer(to, name, &shape, tensor);
        else
            inf_onnx_put_port(to, side == 'i' ? 11 : 12, name, find_type(tensor)->number,
                              shape.dims, (uint32_t)shape.rank);
        four |= is_four_bits(find_type(tensor));
    }
    return four;
}

static void write_model(struct inf_pb_writer *to, const json_t *line, bool open)
{
    const char *domain = json_string_value(json_object_get(line, "domain"));
    int64_t opset = json_integer_value(json_object_get(line, "opset"));
    inf_pb_open(to, 7);
    inf_pb_put_text(to, 2, "case");
    write_node(to, line, domain);
    bool four = write_ports(to, json_object_get(line, "inputs"), 'i', open);
    write_ports(to, json_object_get(line, "outputs"), 'o', open);
    inf_pb_close(to);
    inf_pb_put_int(to, 1, four || opset >= 21 ? 10 : 8);
    write_opset(to, domain, opset);
    if (*domain != '\0')
        write_opset(to, "", four ? OPSET_BESIDE_FOUR : OPSET_BESIDE);
}

// Appends the tensors of the list that are not absent to the inputs or outputs. If `inputs` is
// true, tensors with 4-bit elements are omitted, because they are initialisers.
static enum inf_code read_tensors(struct contrib_case *subject, const json_t *list, bool inputs,
                                  struct inf_error *err)
{
    struct contrib_tensor *tensors = inputs ? subject->inputs : subject->outputs;
    uint32_t *count = inputs ? &subject->input_count : &subject->output_count;
    json_t *tensor;
    size_t i;
    json_array_foreach(list, i, tensor)
    {
        if (json_is_null(tensor))
            continue;
        if (*count == CONTRIB_TENSORS)
            return inf_fail(err, INF_UNSUPPORTED, "more than %d tensors", CONTRIB_TENSORS);
        INF_TRY(read_tensor(&tensors[*count], &subject->strings, tensor, (int)i, err));
        *count += !inputs || !is_four_bits(find_type(tensor));
    }
    return INF_OK;
}

enum inf_code contrib_case_init(struct contrib_case *subject, const json_t *line, bool open,
                                struct inf_error *err)
{
    *subject = (struct contrib_case){0};
    if (!json_is_string(json_object_get(line, "op")) ||
        !json_is_string(json_object_get(line, "domain")))
        return inf_fail(err, INF_INVALID, "a line is no case");
    INF_TRY(read_tensors(subject, json_object_get(line, "inputs"), true, err));
    INF_TRY(read_tensors(subject, json_object_get(line, "outputs"), false, err));
    write_model(&subject->model, line, open);
    return INF_OK;
}

void contrib_case_fini(struct contrib_case *subject)
{
    for (uint32_t i = 0; i < CONTRIB_TENSORS; i++) {
        inf_blob_unref(&subject->inputs[i].data);
        inf_blob_unref(&subject->outputs[i].data);
    }
    inf_string_pool_fini(&subject->strings);
    inf_pb_writer_fini(&subject->model);
}
