// SPDX-License-Identifier: Apache-2.0
// Attributes and values of a node that is being lowered.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backends/base/half.h"
#include "backends/import/onnx/lower.h"

void inf_ox_fail(struct inf_onnx_scope *s, enum inf_code code, const char *format, ...)
{
    if (!inf_ox_ok(s))
        return;
    va_list arguments;
    va_start(arguments, format);
    inf_error_vset(s->err, code, code == INF_UNSUPPORTED ? INF_REASON_OPERATOR : INF_REASON_NONE,
                   __FILE__, __LINE__, format, arguments);
    va_end(arguments);
    s->code = inf_error_prefix(s->err, code, "node '%.200s' (%.80s)", s->node->name, s->node->op);
}

// --- attributes ---

static struct inf_onnx_attr *find_attr(struct inf_onnx_attr *attrs, uint32_t count,
                                       const char *name)
{
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(attrs[i].name, name) == 0) {
            attrs[i].used = true;
            return &attrs[i];
        }
    return NULL;
}

// What attribute `name` of the call that a function's frame is for means, through any number of
// functions within functions.
static const struct inf_onnx_attr *resolve(const struct inf_onnx_frame *frame, const char *name)
{
    for (;;) {
        // A branch in a function's body stands in the function.
        while (frame != NULL && frame->call == NULL)
            frame = frame->outer;
        if (frame == NULL)
            return NULL;
        struct inf_onnx_attr *attr = find_attr(frame->call->attrs, frame->call->attr_count, name);
        if (attr == NULL)
            return find_attr(frame->function->defaults, frame->function->default_count, name);
        if (attr->reference == NULL)
            return attr;
        name = attr->reference;
        frame = frame->caller;
    }
}

const struct inf_onnx_attr *inf_ox_attr(struct inf_onnx_scope *s, const char *name)
{
    if (!inf_ox_ok(s))
        return NULL;
    struct inf_onnx_attr *attr = find_attr(s->node->attrs, s->node->attr_count, name);
    if (attr == NULL || attr->reference == NULL)
        return attr;
    return resolve(s->frame, attr->reference);
}

bool inf_ox_has_attr(struct inf_onnx_scope *s, const char *name)
{
    return inf_ox_attr(s, name) != NULL;
}

// The attribute where it is there and of the type wanted.
static const struct inf_onnx_attr *typed_attr(struct inf_onnx_scope *s, const char *name,
                                              enum inf_onnx_attr_type type, const char *wanted)
{
    const struct inf_onnx_attr *attr = inf_ox_attr(s, name);
    if (attr == NULL || attr->type == type)
        return attr;
    // An empty list has no field that tells its type.
    if (attr->type == INF_ONNX_ATTR_NONE && type >= INF_ONNX_ATTR_FLOATS)
        return attr;
    inf_ox_fail(s, INF_INVALID, "attribute '%s' is of type %d, wanted %s", name, (int)attr->type,
                wanted);
    return NULL;
}

int32_t inf_ox_attr_int(struct inf_onnx_scope *s, const char *name, int32_t fallback)
{
    const struct inf_onnx_attr *attr = typed_attr(s, name, INF_ONNX_ATTR_INT, "an integer");
    struct inf_pb_field field;
    if (attr == NULL)
        return fallback;
    inf_onnx_field(attr->body, 3, &field);
    int64_t value = (int64_t)field.value;
    return (int32_t)INF_MAX(INF_MIN(value, INT32_MAX), INT32_MIN);
}

float inf_ox_attr_float(struct inf_onnx_scope *s, const char *name, float fallback)
{
    const struct inf_onnx_attr *attr = typed_attr(s, name, INF_ONNX_ATTR_FLOAT, "a float");
    struct inf_pb_field field;
    float value;
    if (attr == NULL)
        return fallback;
    inf_onnx_field(attr->body, 2, &field);
    memcpy(&value, &field.value, sizeof value);
    return value;
}

const char *inf_ox_attr_text(struct inf_onnx_scope *s, const char *name, const char *fallback)
{
    const struct inf_onnx_attr *attr = typed_attr(s, name, INF_ONNX_ATTR_STRING, "a string");
    struct inf_pb_field field;
    const char *text = fallback;
    if (attr == NULL)
        return fallback;
    inf_onnx_field(attr->body, 4, &field);
    s->code = inf_onnx_text(&text, s->import->arena, field.bytes, s->err);
    return inf_ox_ok(s) ? text : fallback;
}

static void add_int(struct inf_onnx_scope *s, const char *name, struct inf_ox_ints *out,
                    uint64_t value)
{
    if (out->count == INF_OX_INTS_MAX)
        inf_ox_fail(s, INF_UNSUPPORTED, "attribute '%s' has more than %d numbers", name,
                    INF_OX_INTS_MAX);
    else
        out->values[out->count++] = (int64_t)value;
}

bool inf_ox_attr_ints(struct inf_onnx_scope *s, const char *name, struct inf_ox_ints *out)
{
    const struct inf_onnx_attr *attr = typed_attr(s, name, INF_ONNX_ATTR_INTS, "integers");
    *out = (struct inf_ox_ints){.count = 0};
    if (attr == NULL)
        return false;
    struct inf_pb pb = {attr->body};
    struct inf_pb_field field;
    bool more;
    while (inf_ox_ok(s) && inf_pb_next(&pb, &field, &more, NULL) == INF_OK && more) {
        uint64_t value;
        if (field.number != 8)
            continue;
        if (field.type != INF_PB_BYTES)
            add_int(s, name, out, field.value);
        while (inf_ox_ok(s) && field.bytes.size > 0) {
            if (inf_pb_varint(&field.bytes, &value))
                add_int(s, name, out, value);
            else
                inf_ox_fail(s, INF_INVALID, "the numbers of attribute '%s' do not end", name);
        }
    }
    return inf_ox_ok(s);
}

uint32_t inf_ox_attr_floats(struct inf_onnx_scope *s, const char *name)
{
    const struct inf_onnx_attr *attr = typed_attr(s, name, INF_ONNX_ATTR_FLOATS, "floats");
    struct inf_pb_field field;
    struct inf_span packed = {0};
    bool more;
    uint32_t count = 0, at = 0;
    float *data;
    if (attr == NULL)
        return INF_VALUE_NONE;
    for (struct inf_pb pb = {attr->body};
         inf_pb_next(&pb, &field, &more, NULL) == INF_OK && more;) {
        count += field.number == 7 && field.type == INF_PB_FIXED32;
        if (field.number == 7 && field.type == INF_PB_BYTES)
            packed = field.bytes;
    }
    if (count == 0)
        count = (uint32_t)(packed.size / sizeof(float));
    else
        packed.size = 0;
    uint32_t value = inf_ox_const(s, INF_DTYPE_F32, &INF_SHAPE(count), &data);
    if (data == NULL || count == 0)
        return value;
    if (packed.size > 0)
        memcpy(data, packed.data, count * sizeof(float));
    for (struct inf_pb pb = {attr->body};
         packed.size == 0 && at < count && inf_pb_next(&pb, &field, &more, NULL) == INF_OK && more;)
        if (field.number == 7 && field.type == INF_PB_FIXED32)
            memcpy(&data[at++], &field.value, sizeof *data);
    return value;
}

uint32_t inf_ox_attr_tensor(struct inf_onnx_scope *s, const char *name)
{
    const struct inf_onnx_attr *attr = typed_attr(s, name, INF_ONNX_ATTR_TENSOR, "a tensor");
    struct inf_onnx_tensor tensor;
    struct inf_pb_field field;
    uint32_t value = INF_VALUE_NONE;
    if (attr == NULL)
        return INF_VALUE_NONE;
    inf_onnx_field(attr->body, 5, &field);
    s->code =
        inf_onnx_tensor_read(&tensor, s->import->arena, s->import->files, field.bytes, s->err);
    if (inf_ox_ok(s) && tensor.narrow != NULL) {
        inf_blob_unref(&tensor.data);
        inf_ox_fail(s, INF_UNSUPPORTED, "attribute '%s' is %s, which only initialisers may be",
                    name, tensor.narrow);
        return INF_VALUE_NONE;
    }
    if (!inf_ox_ok(s)) {
        inf_error_prefix(s->err, s->code, "node '%.200s' (%.80s)", s->node->name, s->node->op);
        return INF_VALUE_NONE;
    }
    s->code = inf_graph_add_const(s->graph, s->node->name, tensor.dtype, &tensor.shape, tensor.data,
                                  &value, s->err);
    return inf_ox_ok(s) ? value : INF_VALUE_NONE;
}

bool inf_ox_attr_graph(struct inf_onnx_scope *s, const char *name, struct inf_span *out)
{
    const struct inf_onnx_attr *attr = typed_attr(s, name, INF_ONNX_ATTR_GRAPH, "a graph");
    struct inf_pb_field field;
    if (attr == NULL)
        return false;
    inf_onnx_field(attr->body, 6, &field);
    *out = field.bytes;
    return true;
}

// --- values ---

uint32_t inf_ox_in(const struct inf_onnx_scope *s, uint32_t index)
{
    return index < s->input_count ? s->inputs[index] : INF_VALUE_NONE;
}

bool inf_ox_wants(const struct inf_onnx_scope *s, uint32_t index)
{
    return index < s->node->output_count && *s->node->outputs[index] != '\0';
}

static const struct inf_value *look(const struct inf_onnx_scope *s, uint32_t value)
{
    return value < s->graph->value_count ? &s->graph->values[value] : NULL;
}

enum inf_dtype inf_ox_dtype(const struct inf_onnx_scope *s, uint32_t value)
{
    const struct inf_value *looked = look(s, value);
    return looked != NULL ? looked->dtype : INF_DTYPE_NONE;
}

int32_t inf_ox_rank(struct inf_onnx_scope *s, uint32_t value)
{
    const struct inf_value *looked = look(s, value);
    if (looked == NULL || looked->shape.rank < 0) {
        inf_ox_fail(s, INF_UNSUPPORTED, "the rank of '%.100s' is not known",
                    looked != NULL ? looked->name : "");
        return 0;
    }
    return looked->shape.rank;
}

int32_t inf_ox_axis(struct inf_onnx_scope *s, int64_t axis, int32_t rank)
{
    if (axis >= -rank && axis < rank)
        return (int32_t)(axis < 0 ? axis + rank : axis);
    inf_ox_fail(s, INF_INVALID, "axis %lld is out of range for rank %d", (long long)axis, rank);
    return 0;
}

int64_t inf_ox_dim(struct inf_onnx_scope *s, uint32_t value, int32_t axis)
{
    int32_t rank = inf_ox_rank(s, value);
    axis = inf_ox_axis(s, axis, rank);
    return inf_ox_ok(s) ? s->graph->values[value].shape.dims[axis] : 1;
}

int64_t inf_ox_known_dim(struct inf_onnx_scope *s, uint32_t value, int32_t axis)
{
    int64_t dim = inf_ox_dim(s, value, axis);
    if (dim != INF_DIM_UNKNOWN)
        return dim;
    inf_ox_fail(s, INF_UNSUPPORTED, "dimension %d of '%.100s' must be known when it is imported",
                axis, s->graph->values[value].name);
    return 1;
}

struct inf_shape inf_ox_known_shape(struct inf_onnx_scope *s, uint32_t value)
{
    struct inf_shape shape = {.rank = inf_ox_rank(s, value)};
    for (int32_t i = 0; i < shape.rank; i++)
        shape.dims[i] = inf_ox_known_dim(s, value, i);
    return shape;
}

bool inf_ox_is_const(const struct inf_onnx_scope *s, uint32_t value)
{
    return inf_graph_is_const(s->graph, value);
}

struct inf_ox_ints inf_ox_const_ints(struct inf_onnx_scope *s, uint32_t value, const char *what)
{
    struct inf_ox_ints ints = {.count = 0};
    if (!inf_ox_ok(s))
        return ints;
    if (!inf_ox_is_const(s, value)) {
        inf_ox_fail(s, INF_UNSUPPORTED, "%s is not constant", what);
        return ints;
    }
    if (!inf_graph_const_ints(s->graph, value, ints.values, INF_OX_INTS_MAX, &ints.count)) {
        ints.count = 0;
        inf_ox_fail(s, INF_INVALID, "%s is %s, wanted at most %d integers", what,
                    inf_dtype_name(inf_ox_dtype(s, value)), INF_OX_INTS_MAX);
    }
    return ints;
}

int64_t inf_ox_const_int(struct inf_onnx_scope *s, uint32_t value, const char *what)
{
    struct inf_ox_ints ints = inf_ox_const_ints(s, value, what);
    if (ints.count == 1)
        return ints.values[0];
    inf_ox_fail(s, INF_INVALID, "%s has %u elements, wanted 1", what, ints.count);
    return 0;
}

bool inf_ox_const_number(const struct inf_onnx_scope *s, uint32_t value, double *out)
{
    size_t count;
    if (!inf_ox_is_const(s, value))
        return false;
    const struct inf_value *constant = &s->graph->values[value];
    const void *data = constant->data->data;
    if (!inf_shape_count(&constant->shape, &count) || count != 1)
        return false;
    int64_t ints[1];
    uint32_t one;
    switch (constant->dtype) {
    case INF_DTYPE_F32:
        *out = *(const float *)data;
        return true;
    case INF_DTYPE_F64:
        *out = *(const double *)data;
        return true;
    case INF_DTYPE_F16:
        *out = (double)inf_half_to_float(*(const uint16_t *)data);
        return true;
    case INF_DTYPE_BF16:
        *out = (double)inf_bf16_to_float(*(const uint16_t *)data);
        return true;
    case INF_DTYPE_BOOL:
    case INF_DTYPE_U8:
        *out = *(const uint8_t *)data;
        return true;
    case INF_DTYPE_I8:
        *out = *(const int8_t *)data;
        return true;
    default:
        if (!inf_graph_const_ints(s->graph, value, ints, 1, &one))
            return false;
        *out = (double)ints[0];
        return true;
    }
}
