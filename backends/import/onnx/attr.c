// SPDX-License-Identifier: Apache-2.0
// Reads the attributes of a node from their protobuf bytes. In the body of a function, an attribute
// may refer to an attribute of the call; such references are followed. Every attribute that is read
// is marked as used. lower.c refuses a node with unused attributes, because ignoring an attribute
// would give wrong results.
#include "backends/import/onnx/attr.h"

#include <string.h>

#include "backends/import/onnx/narrow.h"

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

// Finds attribute `name` of the node that calls the function whose body is `frame`. If that node is
// itself in a function, its attribute may refer to the outer call, and so on.
static const struct inf_onnx_attr *resolve_reference(const struct inf_onnx_frame *frame,
                                                     const char *name)
{
    for (;;) {
        // Skip frames (sets of names) of branches, because a branch within a function belongs to
        // the same call.
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

const struct inf_onnx_attr *inf_onnx_find_attr(struct inf_onnx_scope *s, const char *name)
{
    if (!inf_build_ok(&s->b))
        return NULL;
    struct inf_onnx_attr *attr = find_attr(s->node->attrs, s->node->attr_count, name);
    if (attr == NULL || attr->reference == NULL)
        return attr;
    return resolve_reference(s->frame, attr->reference);
}

bool inf_onnx_has_attr(struct inf_onnx_scope *s, const char *name)
{
    return inf_onnx_find_attr(s, name) != NULL;
}

// Finds an attribute of one type. Returns NULL if it is absent. If it has another type, records a
// failure.
static const struct inf_onnx_attr *find_typed_attr(struct inf_onnx_scope *s, const char *name,
                                                   enum inf_onnx_attr_type type, const char *wanted)
{
    const struct inf_onnx_attr *attr = inf_onnx_find_attr(s, name);
    if (attr == NULL || attr->type == type)
        return attr;
    // Accept an attribute without a type, because an empty list has no field that shows its type.
    if (attr->type == INF_ONNX_ATTR_NONE && type >= INF_ONNX_ATTR_FLOATS)
        return attr;
    inf_build_fail(&s->b, INF_INVALID, "attribute '%s' is of type %d, wanted %s", name,
                   (int)attr->type, wanted);
    return NULL;
}

int32_t inf_onnx_attr_int(struct inf_onnx_scope *s, const char *name, int32_t fallback)
{
    const struct inf_onnx_attr *attr = find_typed_attr(s, name, INF_ONNX_ATTR_INT, "an integer");
    struct inf_pb_field field;
    if (attr == NULL)
        return fallback;
    inf_onnx_field(attr->body, 3, &field);
    int64_t value = (int64_t)field.value;
    return (int32_t)INF_MAX(INF_MIN(value, INT32_MAX), INT32_MIN);
}

float inf_onnx_attr_float(struct inf_onnx_scope *s, const char *name, float fallback)
{
    const struct inf_onnx_attr *attr = find_typed_attr(s, name, INF_ONNX_ATTR_FLOAT, "a float");
    struct inf_pb_field field;
    float value;
    if (attr == NULL)
        return fallback;
    inf_onnx_field(attr->body, 2, &field);
    memcpy(&value, &field.value, sizeof value);
    return value;
}

const char *inf_onnx_attr_text(struct inf_onnx_scope *s, const char *name, const char *fallback)
{
    const struct inf_onnx_attr *attr = find_typed_attr(s, name, INF_ONNX_ATTR_STRING, "a string");
    struct inf_pb_field field;
    const char *text = fallback;
    if (attr == NULL)
        return fallback;
    inf_onnx_field(attr->body, 4, &field);
    s->b.code = inf_onnx_text(&text, s->import->arena, field.bytes, s->b.err);
    return inf_build_ok(&s->b) ? text : fallback;
}

// Appends one integer to the list that is the value of attribute `name`. Fails if the list is full.
static void append_int(struct inf_onnx_scope *s, const char *name, struct inf_build_ints *out,
                       uint64_t value)
{
    if (out->count == INF_BUILD_INTS_MAX)
        inf_build_fail(&s->b, INF_UNSUPPORTED, "attribute '%s' has more than %d numbers", name,
                       INF_BUILD_INTS_MAX);
    else
        out->values[out->count++] = (int64_t)value;
}

bool inf_onnx_attr_ints(struct inf_onnx_scope *s, const char *name, struct inf_build_ints *out)
{
    const struct inf_onnx_attr *attr = find_typed_attr(s, name, INF_ONNX_ATTR_INTS, "integers");
    *out = (struct inf_build_ints){.count = 0};
    if (attr == NULL)
        return false;
    struct inf_pb pb = {attr->body};
    struct inf_pb_field field;
    bool more;
    while (inf_build_ok(&s->b) && inf_pb_next(&pb, &field, &more, NULL) == INF_OK && more) {
        uint64_t value;
        if (field.number != 8)
            continue;
        if (field.type != INF_PB_BYTES)
            append_int(s, name, out, field.value);
        while (inf_build_ok(&s->b) && field.bytes.size > 0) {
            if (inf_pb_varint(&field.bytes, &value))
                append_int(s, name, out, value);
            else
                inf_build_fail(&s->b, INF_INVALID, "the numbers of attribute '%s' do not end",
                               name);
        }
    }
    return inf_build_ok(&s->b);
}

// Returns the number of integers of a list attribute. Stores them in `out` unless `out` is NULL.
static uint32_t read_long_ints(const struct inf_onnx_attr *attr, int64_t *out)
{
    struct inf_pb_field field;
    uint32_t count = 0;
    bool more;
    for (struct inf_pb pb = {attr->body};
         inf_pb_next(&pb, &field, &more, NULL) == INF_OK && more;) {
        uint64_t value = field.value;
        if (field.number != 8)
            continue;
        bool packed = field.type == INF_PB_BYTES;
        while (packed ? inf_pb_varint(&field.bytes, &value) : true) {
            if (out != NULL)
                out[count] = (int64_t)value;
            count++;
            if (!packed)
                break;
        }
    }
    return count;
}

uint32_t inf_onnx_attr_long_ints(struct inf_onnx_scope *s, const char *name)
{
    const struct inf_onnx_attr *attr = find_typed_attr(s, name, INF_ONNX_ATTR_INTS, "integers");
    int64_t *data;
    if (attr == NULL)
        return INF_VALUE_NONE;
    uint32_t count = read_long_ints(attr, NULL);
    uint32_t value = inf_build_const(&s->b, INF_DTYPE_I64, &INF_SHAPE(count), &data);
    if (data != NULL)
        read_long_ints(attr, data);
    return value;
}

uint32_t inf_onnx_attr_texts(struct inf_onnx_scope *s, const char *name, const char *const **out)
{
    const struct inf_onnx_attr *attr = find_typed_attr(s, name, INF_ONNX_ATTR_STRINGS, "strings");
    struct inf_pb_field field;
    uint32_t count = 0, at = 0;
    bool more;
    *out = NULL;
    if (attr == NULL)
        return 0;
    for (struct inf_pb pb = {attr->body}; inf_pb_next(&pb, &field, &more, NULL) == INF_OK && more;)
        count += field.number == 9 && field.type == INF_PB_BYTES;
    const char **texts = inf_arena_alloc(s->import->arena, ((size_t)count + 1) * sizeof *texts);
    if (texts == NULL)
        inf_build_fail(&s->b, INF_EXHAUSTED, "no memory");
    for (struct inf_pb pb = {attr->body};
         inf_build_ok(&s->b) && inf_pb_next(&pb, &field, &more, NULL) == INF_OK && more;)
        if (field.number == 9 && field.type == INF_PB_BYTES)
            s->b.code = inf_onnx_text(&texts[at++], s->import->arena, field.bytes, s->b.err);
    *out = texts;
    return inf_build_ok(&s->b) ? count : 0;
}

uint32_t inf_onnx_attr_floats(struct inf_onnx_scope *s, const char *name)
{
    const struct inf_onnx_attr *attr = find_typed_attr(s, name, INF_ONNX_ATTR_FLOATS, "floats");
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
    uint32_t value = inf_build_const(&s->b, INF_DTYPE_F32, &INF_SHAPE(count), &data);
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

uint32_t inf_onnx_attr_tensor(struct inf_onnx_scope *s, const char *name)
{
    const struct inf_onnx_attr *attr = find_typed_attr(s, name, INF_ONNX_ATTR_TENSOR, "a tensor");
    struct inf_onnx_tensor tensor;
    struct inf_pb_field field;
    uint32_t value = INF_VALUE_NONE;
    if (attr == NULL)
        return INF_VALUE_NONE;
    inf_onnx_field(attr->body, 5, &field);
    s->b.code = inf_onnx_tensor_read(&tensor, s->import->arena, s->import->files, field.bytes,
                                     inf_shared_strings_pool(s->b.graph->strings), s->b.err);
    if (!inf_build_ok(&s->b)) {
        inf_error_prefix(s->b.err, s->b.code, "node '%.200s' (%.80s)", s->node->name, s->node->op);
        return INF_VALUE_NONE;
    }
    s->b.code = inf_graph_add_const(s->b.graph, s->node->name, tensor.dtype, &tensor.shape,
                                    tensor.data, &value, s->b.err);
    if (!inf_build_ok(&s->b))
        return INF_VALUE_NONE;
    return tensor.narrow != 0 ? inf_onnx_narrow_wrap(s, value, tensor.narrow) : value;
}

bool inf_onnx_attr_graph(struct inf_onnx_scope *s, const char *name, struct inf_span *out)
{
    const struct inf_onnx_attr *attr = find_typed_attr(s, name, INF_ONNX_ATTR_GRAPH, "a graph");
    struct inf_pb_field field;
    if (attr == NULL)
        return false;
    inf_onnx_field(attr->body, 6, &field);
    *out = field.bytes;
    return true;
}
