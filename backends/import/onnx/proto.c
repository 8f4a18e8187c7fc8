// SPDX-License-Identifier: Apache-2.0
// Reads the messages of an ONNX model into structs. The bytes, including nested messages, are
// checked once for well-formed protobuf. After that, reading fields can fail only for lack of
// memory.
#include "backends/import/onnx/proto.h"

#include <string.h>

#include "proto/core/limits.h"
#include "proto/core/utf8.h"

// The largest number of fields in a model. Each unpacked number is a field too, but programs pack
// long lists.
#define FIELDS_MAX ((uint64_t)1 << 22)

// --- the schema: which protobuf fields contain messages ---

enum message {
    MESSAGE_MODEL,
    MESSAGE_OPSET,
    MESSAGE_GRAPH,
    MESSAGE_NODE,
    MESSAGE_ATTR,
    MESSAGE_TENSOR,
    MESSAGE_SPARSE,
    MESSAGE_ENTRY,
    MESSAGE_SEGMENT,
    MESSAGE_PORT,
    MESSAGE_TYPE,
    MESSAGE_TYPE_TENSOR,
    MESSAGE_TYPE_OTHER, // sequence or optional: field 1 is the type of the element
    MESSAGE_SHAPE,
    MESSAGE_DIM,
    MESSAGE_FUNCTION,
};

static const struct inf_pb_child schema[] = {
    {MESSAGE_MODEL, MESSAGE_GRAPH, 7, false, "the model's graph"},
    {MESSAGE_MODEL, MESSAGE_OPSET, 8, true, "an opset import"},
    {MESSAGE_MODEL, MESSAGE_ENTRY, 14, true, "a metadata entry"},
    {MESSAGE_MODEL, MESSAGE_FUNCTION, 25, true, "a function"},
    {MESSAGE_GRAPH, MESSAGE_NODE, 1, true, "a node"},
    {MESSAGE_GRAPH, MESSAGE_TENSOR, 5, true, "an initialiser"},
    {MESSAGE_GRAPH, MESSAGE_PORT, 11, true, "a graph's input"},
    {MESSAGE_GRAPH, MESSAGE_PORT, 12, true, "a graph's output"},
    {MESSAGE_GRAPH, MESSAGE_PORT, 13, true, "a value_info"},
    {MESSAGE_GRAPH, MESSAGE_SPARSE, 15, true, "a sparse initialiser"},
    {MESSAGE_NODE, MESSAGE_ATTR, 5, true, "an attribute"},
    {MESSAGE_ATTR, MESSAGE_TENSOR, 5, false, "an attribute's tensor"},
    {MESSAGE_ATTR, MESSAGE_GRAPH, 6, false, "an attribute's graph"},
    {MESSAGE_ATTR, MESSAGE_TENSOR, 10, true, "an attribute's tensor"},
    {MESSAGE_ATTR, MESSAGE_GRAPH, 11, true, "an attribute's graph"},
    {MESSAGE_ATTR, MESSAGE_TYPE, 14, false, "an attribute's type"},
    {MESSAGE_ATTR, MESSAGE_TYPE, 15, true, "an attribute's type"},
    {MESSAGE_ATTR, MESSAGE_SPARSE, 22, false, "an attribute's sparse tensor"},
    {MESSAGE_ATTR, MESSAGE_SPARSE, 23, true, "an attribute's sparse tensor"},
    {MESSAGE_TENSOR, MESSAGE_SEGMENT, 3, false, "a tensor's segment"},
    {MESSAGE_TENSOR, MESSAGE_ENTRY, 13, true, "an external data entry"},
    {MESSAGE_SPARSE, MESSAGE_TENSOR, 1, false, "a sparse tensor's values"},
    {MESSAGE_SPARSE, MESSAGE_TENSOR, 2, false, "a sparse tensor's indices"},
    {MESSAGE_PORT, MESSAGE_TYPE, 2, false, "a value's type"},
    {MESSAGE_TYPE, MESSAGE_TYPE_TENSOR, 1, false, "a tensor type"},
    {MESSAGE_TYPE, MESSAGE_TYPE_OTHER, 4, false, "a sequence type"},
    {MESSAGE_TYPE, MESSAGE_TYPE_OTHER, 9, false, "an optional type"},
    {MESSAGE_TYPE_TENSOR, MESSAGE_SHAPE, 2, false, "a type's shape"},
    {MESSAGE_TYPE_OTHER, MESSAGE_TYPE, 1, false, "an element's type"},
    {MESSAGE_SHAPE, MESSAGE_DIM, 1, true, "a dimension"},
    {MESSAGE_FUNCTION, MESSAGE_NODE, 7, true, "a function's node"},
    {MESSAGE_FUNCTION, MESSAGE_OPSET, 9, true, "a function's opset import"},
    {MESSAGE_FUNCTION, MESSAGE_ATTR, 11, true, "a function's attribute"},
    {0},
};

// --- helpers for reading fields ---

// The state of reading: the arena for copies, and the error.
struct reader {
    struct inf_arena *arena;
    struct inf_error *err;
};

static enum inf_code fail_no_memory(const struct reader *reader)
{
    return inf_fail_reason(reader->err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                           "no memory for the parts of the model");
}

// Returns the next field of a message that has been checked.
static bool read_next(struct inf_pb *pb, struct inf_pb_field *field)
{
    bool more;
    return inf_pb_next(pb, field, &more, NULL) == INF_OK && more;
}

void inf_onnx_field(struct inf_span message, uint32_t number, struct inf_pb_field *out)
{
    struct inf_pb pb = {message};
    struct inf_pb_field field;
    *out = (struct inf_pb_field){0};
    while (read_next(&pb, &field))
        if (field.number == number)
            *out = field;
}

enum inf_code inf_onnx_text(const char **out, struct inf_arena *arena, struct inf_span bytes,
                            struct inf_error *err)
{
    if (bytes.size > INF_ONNX_NAME_MAX)
        return inf_fail(err, INF_INVALID, "a name has %zu bytes, at most %u are allowed",
                        bytes.size, INF_ONNX_NAME_MAX);
    if (bytes.size > 0 && memchr(bytes.data, 0, bytes.size) != NULL)
        return inf_fail(err, INF_INVALID, "name '%.200s' goes on after a NUL byte",
                        (const char *)bytes.data);
    if (!inf_utf8_valid(bytes))
        return inf_fail(err, INF_INVALID, "name '%.*s' is no UTF-8",
                        (int)INF_MIN(bytes.size, (size_t)200), (const char *)bytes.data);
    char *text = inf_arena_alloc(arena, bytes.size + 1);
    if (text == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "no memory for a name");
    if (bytes.size > 0)
        memcpy(text, bytes.data, bytes.size);
    *out = text;
    return INF_OK;
}

// Returns how often field `number` occurs.
static uint32_t count_fields(struct inf_span message, uint32_t number)
{
    struct inf_pb pb = {message};
    struct inf_pb_field field;
    uint32_t count = 0;
    while (read_next(&pb, &field))
        count += field.number == number;
    return count;
}

// Allocates a list with one element for each occurrence of field `number`.
static enum inf_code make_list(const struct reader *reader, struct inf_span message,
                               uint32_t number, size_t element_bytes, void *out_list)
{
    size_t bytes;
    uint32_t count = count_fields(message, number);
    void *list = NULL;
    if (inf_size_mul((size_t)count + 1, element_bytes, &bytes))
        list = inf_arena_alloc(reader->arena, bytes);
    if (list == NULL)
        return fail_no_memory(reader);
    memcpy(out_list, &list, sizeof list);
    return INF_OK;
}

// Reads the text of field `number`; "" if it is absent.
static enum inf_code read_text(const struct reader *reader, struct inf_span message,
                               uint32_t number, const char **out)
{
    struct inf_pb_field field;
    inf_onnx_field(message, number, &field);
    return inf_onnx_text(out, reader->arena, field.bytes, reader->err);
}

// Reads the strings in all occurrences of field `number`.
static enum inf_code read_texts(const struct reader *reader, struct inf_span message,
                                uint32_t number, const char ***out, uint32_t *out_count)
{
    struct inf_pb pb = {message};
    struct inf_pb_field field;
    INF_TRY(make_list(reader, message, number, sizeof **out, out));
    *out_count = 0;
    while (read_next(&pb, &field))
        if (field.number == number)
            INF_TRY(
                inf_onnx_text(&(*out)[(*out_count)++], reader->arena, field.bytes, reader->err));
    return INF_OK;
}

// Replaces the name "ai.onnx" of the default domain by its other name, "".
static void normalize_domain(const char **domain)
{
    if (strcmp(*domain, "ai.onnx") == 0)
        *domain = "";
}

// --- reading nodes and their attributes ---

static enum inf_code read_attr(const struct reader *reader, struct inf_span body,
                               struct inf_onnx_attr *attr)
{
    // Attributes in old files have no type. The first field with a value determines it.
    static const uint8_t types[] = {
        [2] = INF_ONNX_ATTR_FLOAT,  [3] = INF_ONNX_ATTR_INT,     [4] = INF_ONNX_ATTR_STRING,
        [5] = INF_ONNX_ATTR_TENSOR, [6] = INF_ONNX_ATTR_GRAPH,   [7] = INF_ONNX_ATTR_FLOATS,
        [8] = INF_ONNX_ATTR_INTS,   [9] = INF_ONNX_ATTR_STRINGS,
    };
    struct inf_pb pb = {body};
    struct inf_pb_field field;
    struct inf_span name = {0};
    uint64_t stated = 0, seen = 0;
    *attr = (struct inf_onnx_attr){.body = body};
    while (read_next(&pb, &field)) {
        if (field.number == 1)
            name = field.bytes;
        else if (field.number == 20)
            stated = field.value;
        else if (field.number == 21)
            INF_TRY(inf_onnx_text(&attr->reference, reader->arena, field.bytes, reader->err));
        else if (field.number < INF_ARRAY_LENGTH(types) && types[field.number] != 0 && seen == 0)
            seen = types[field.number];
    }
    attr->type = (enum inf_onnx_attr_type)(stated != 0 ? INF_MIN(stated, 100) : seen);
    if (attr->reference != NULL && *attr->reference == '\0')
        attr->reference = NULL;
    return inf_onnx_text(&attr->name, reader->arena, name, reader->err);
}

static enum inf_code read_attrs(const struct reader *reader, struct inf_span message,
                                uint32_t number, struct inf_onnx_attr **out, uint32_t *out_count)
{
    struct inf_pb pb = {message};
    struct inf_pb_field field;
    INF_TRY(make_list(reader, message, number, sizeof **out, out));
    *out_count = 0;
    while (read_next(&pb, &field))
        if (field.number == number)
            INF_TRY(read_attr(reader, field.bytes, &(*out)[(*out_count)++]));
    return INF_OK;
}

static enum inf_code read_node(const struct reader *reader, struct inf_span message,
                               struct inf_onnx_node *node)
{
    *node = (struct inf_onnx_node){0};
    INF_TRY(read_text(reader, message, 3, &node->name));
    INF_TRY(read_text(reader, message, 4, &node->op));
    INF_TRY(read_text(reader, message, 7, &node->domain));
    INF_TRY(read_text(reader, message, 8, &node->overload));
    INF_TRY(read_texts(reader, message, 1, &node->inputs, &node->input_count));
    INF_TRY(read_texts(reader, message, 2, &node->outputs, &node->output_count));
    normalize_domain(&node->domain);
    if (*node->name == '\0' && node->output_count > 0)
        node->name = node->outputs[0];
    if (node->input_count > INF_LIMIT_NODE_INPUTS || node->output_count > INF_LIMIT_NODE_INPUTS)
        return inf_fail(reader->err, INF_EXHAUSTED,
                        "node '%.200s': has %u inputs and %u outputs, at most %u are allowed",
                        node->name, node->input_count, node->output_count, INF_LIMIT_NODE_INPUTS);
    return read_attrs(reader, message, 5, &node->attrs, &node->attr_count);
}

static enum inf_code read_nodes(const struct reader *reader, struct inf_span message,
                                uint32_t number, struct inf_onnx_node **out, uint32_t *out_count)
{
    struct inf_pb pb = {message};
    struct inf_pb_field field;
    uint32_t count = count_fields(message, number);
    if (count > INF_LIMIT_GRAPH_NODES)
        return inf_fail(reader->err, INF_EXHAUSTED, "a graph has %u nodes, at most %u are allowed",
                        count, INF_LIMIT_GRAPH_NODES);
    INF_TRY(make_list(reader, message, number, sizeof **out, out));
    *out_count = 0;
    while (read_next(&pb, &field))
        if (field.number == number)
            INF_TRY(read_node(reader, field.bytes, &(*out)[(*out_count)++]));
    return INF_OK;
}

// --- reading graphs ---

static enum inf_code read_dim(const struct reader *reader, const struct inf_onnx_port *port,
                              struct inf_span message, int64_t *dim)
{
    struct inf_pb_field value;
    inf_onnx_field(message, 1, &value);
    *dim = INF_DIM_UNKNOWN;
    if (value.number == 0)
        return INF_OK;
    *dim = (int64_t)value.value;
    if (*dim == INF_DIM_UNKNOWN || (*dim >= 0 && *dim < INF_LIMIT_DIM))
        return INF_OK;
    return inf_fail(reader->err, INF_INVALID, "'%.200s': a dimension is %lld, wanted 0 to %lld",
                    port->name, (long long)*dim, (long long)INF_LIMIT_DIM - 1);
}

static enum inf_code read_shape(const struct reader *reader, struct inf_onnx_port *port,
                                struct inf_span message)
{
    struct inf_pb pb = {message};
    struct inf_pb_field field;
    port->shape = (struct inf_shape){.rank = 0};
    while (read_next(&pb, &field)) {
        if (field.number != 1)
            continue;
        if (port->shape.rank == INF_LIMIT_RANK)
            return inf_fail(reader->err, INF_UNSUPPORTED, "'%.200s': has more than %d dimensions",
                            port->name, INF_LIMIT_RANK);
        INF_TRY(read_dim(reader, port, field.bytes, &port->shape.dims[port->shape.rank++]));
    }
    return INF_OK;
}

// If a TypeProto is of kind `kind` (4: sequence, 9: optional), replaces it by the type of its
// elements and returns true.
static bool enter_type(struct inf_pb_field *type, uint32_t kind)
{
    struct inf_pb_field field;
    inf_onnx_field(type->bytes, kind, &field);
    if (field.number == 0)
        return false;
    inf_onnx_field(field.bytes, 1, type);
    return true;
}

static enum inf_code read_port(const struct reader *reader, struct inf_span message,
                               struct inf_onnx_port *port)
{
    static const struct {
        uint32_t field;
        const char *name;
    } others[] = {{4, "a sequence of sequences"},
                  {5, "a map"},
                  {7, "opaque"},
                  {8, "a sparse tensor"},
                  {9, "an optional inside another type"}};
    struct inf_pb_field type, field;
    *port = (struct inf_onnx_port){.shape.rank = INF_RANK_UNKNOWN};
    INF_TRY(read_text(reader, message, 1, &port->name));
    inf_onnx_field(message, 2, &type);
    port->is_optional = enter_type(&type, 9);
    port->is_sequence = enter_type(&type, 4);
    for (size_t i = 0; i < INF_ARRAY_LENGTH(others); i++) {
        inf_onnx_field(type.bytes, others[i].field, &field);
        if (field.number != 0)
            port->not_tensor = others[i].name;
    }
    inf_onnx_field(type.bytes, 1, &type);
    inf_onnx_field(type.bytes, 1, &field);
    port->type = (int32_t)INF_MIN(field.value, INT32_MAX);
    inf_onnx_field(type.bytes, 2, &field);
    return field.number == 0 ? INF_OK : read_shape(reader, port, field.bytes);
}

static enum inf_code read_ports(const struct reader *reader, struct inf_span message,
                                uint32_t number, struct inf_onnx_port **out, uint32_t *out_count)
{
    struct inf_pb pb = {message};
    struct inf_pb_field field;
    INF_TRY(make_list(reader, message, number, sizeof **out, out));
    *out_count = 0;
    while (read_next(&pb, &field))
        if (field.number == number)
            INF_TRY(read_port(reader, field.bytes, &(*out)[(*out_count)++]));
    return INF_OK;
}

enum inf_code inf_onnx_graph_read(struct inf_onnx_graph *graph, struct inf_arena *arena,
                                  struct inf_span bytes, struct inf_error *err)
{
    const struct reader reader = {arena, err};
    struct inf_pb pb = {bytes};
    struct inf_pb_field field;
    *graph = (struct inf_onnx_graph){.sparse_count = count_fields(bytes, 15)};
    INF_TRY(read_text(&reader, bytes, 2, &graph->name));
    INF_TRY(read_nodes(&reader, bytes, 1, &graph->nodes, &graph->node_count));
    INF_TRY(read_ports(&reader, bytes, 11, &graph->inputs, &graph->input_count));
    INF_TRY(read_ports(&reader, bytes, 12, &graph->outputs, &graph->output_count));
    if (count_fields(bytes, 5) > INF_LIMIT_GRAPH_VALUES)
        return inf_fail(err, INF_EXHAUSTED, "a graph has more than %u initialisers",
                        INF_LIMIT_GRAPH_VALUES);
    INF_TRY(make_list(&reader, bytes, 5, sizeof *graph->initializers, &graph->initializers));
    while (read_next(&pb, &field))
        if (field.number == 5)
            graph->initializers[graph->initializer_count++] = field.bytes;
    return INF_OK;
}

// --- reading the model ---

static enum inf_code read_opsets(const struct reader *reader, struct inf_span message,
                                 uint32_t number, struct inf_onnx_opsets *opsets)
{
    struct inf_pb pb = {message};
    struct inf_pb_field field, version;
    struct inf_onnx_opset *items = NULL;
    uint32_t count = count_fields(message, number);
    if (count > INF_ONNX_OPSETS_MAX)
        return inf_fail(reader->err, INF_EXHAUSTED,
                        "there are %u opset imports, at most %u are allowed", count,
                        INF_ONNX_OPSETS_MAX);
    INF_TRY(make_list(reader, message, number, sizeof *items, &items));
    *opsets = (struct inf_onnx_opsets){.items = items};
    while (read_next(&pb, &field)) {
        if (field.number != number)
            continue;
        struct inf_onnx_opset *item = &items[opsets->count++];
        INF_TRY(read_text(reader, field.bytes, 1, &item->domain));
        normalize_domain(&item->domain);
        inf_onnx_field(field.bytes, 2, &version);
        item->version = (int64_t)version.value;
    }
    return INF_OK;
}

static enum inf_code read_function(const struct reader *reader, struct inf_span message,
                                   struct inf_onnx_function *function)
{
    INF_TRY(read_text(reader, message, 1, &function->name));
    INF_TRY(read_text(reader, message, 10, &function->domain));
    INF_TRY(read_text(reader, message, 13, &function->overload));
    normalize_domain(&function->domain);
    INF_TRY(read_texts(reader, message, 4, &function->inputs, &function->input_count));
    INF_TRY(read_texts(reader, message, 5, &function->outputs, &function->output_count));
    INF_TRY(read_attrs(reader, message, 11, &function->defaults, &function->default_count));
    INF_TRY(read_nodes(reader, message, 7, &function->nodes, &function->node_count));
    return read_opsets(reader, message, 9, &function->opsets);
}

static enum inf_code read_functions(const struct reader *reader, struct inf_span message,
                                    struct inf_onnx_model *model)
{
    struct inf_pb pb = {message};
    struct inf_pb_field field;
    INF_TRY(make_list(reader, message, 25, sizeof *model->functions, &model->functions));
    while (read_next(&pb, &field))
        if (field.number == 25)
            INF_TRY(read_function(reader, field.bytes, &model->functions[model->function_count++]));
    return INF_OK;
}

bool inf_onnx_looks_like(struct inf_span bytes)
{
    // Programs write fields in order, so ir_version comes first. Its values up to now are 1 to 13.
    return bytes.size >= 4 && bytes.data[0] == 0x08 && bytes.data[1] >= 1 && bytes.data[1] <= 32;
}

enum inf_code inf_onnx_model_read(struct inf_onnx_model *model, struct inf_arena *arena,
                                  struct inf_span bytes, struct inf_error *err)
{
    const struct reader reader = {arena, err};
    struct inf_pb_field field;
    *model = (struct inf_onnx_model){0};
    INF_TRY(inf_pb_check(bytes, schema, MESSAGE_MODEL, FIELDS_MAX, err));
    inf_onnx_field(bytes, 1, &field);
    model->ir_version = (int64_t)field.value;
    INF_TRY(read_text(&reader, bytes, 2, &model->producer));
    INF_TRY(read_opsets(&reader, bytes, 8, &model->opsets));
    INF_TRY(read_functions(&reader, bytes, model));
    inf_onnx_field(bytes, 7, &field);
    if (field.number == 0)
        return inf_fail(err, INF_INVALID, "there is no graph in it");
    return inf_onnx_graph_read(&model->graph, arena, field.bytes, err);
}
