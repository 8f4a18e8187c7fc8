// SPDX-License-Identifier: Apache-2.0
// Sequences and optionals. Lengths and positions must be known when the model is imported.
#include "backends/graph/build/operators.h"
#include "backends/import/onnx/attr.h"
#include "backends/import/onnx/body.h"
#include "backends/import/onnx/list.h"
#include "backends/import/onnx/narrow.h"
#include "backends/import/onnx/op_table.h"

// Returns the sequence of input `index`; an empty one after a failure.
static struct inf_onnx_sequence read_sequence(struct inf_onnx_scope *s, uint32_t index)
{
    uint32_t value = inf_onnx_input(s, index);
    if (inf_build_ok(&s->b) && inf_onnx_is_sequence(value) && !inf_onnx_is_absent(s, value))
        return s->import->sequences.items[value - INF_ONNX_SEQUENCE_FIRST];
    inf_build_fail(&s->b, INF_INVALID, "input %u is no sequence", index);
    return (struct inf_onnx_sequence){0};
}

// Returns the tensor of input `index`.
static uint32_t read_tensor(struct inf_onnx_scope *s, uint32_t index)
{
    uint32_t value = inf_onnx_input(s, index);
    if (value == INF_VALUE_NONE || inf_onnx_is_sequence(value))
        inf_build_fail(&s->b, INF_INVALID, "input %u is no tensor", index);
    return inf_build_ok(&s->b) ? value : INF_VALUE_NONE;
}

// Reads the position given by input `index`, as 0 to limit - 1. Returns the fallback if the input
// is absent.
static uint32_t read_position(struct inf_onnx_scope *s, uint32_t index, uint32_t count,
                              uint32_t limit, int64_t fallback)
{
    int64_t at = fallback;
    if (inf_onnx_input(s, index) != INF_VALUE_NONE)
        at = inf_build_const_int(&s->b, read_tensor(s, index), "position");
    int64_t settled = at < 0 ? at + count : at;
    if (inf_build_ok(&s->b) && (settled < 0 || settled >= limit))
        inf_build_fail(&s->b, INF_INVALID, "position %lld in a sequence of %u", (long long)at,
                       count);
    return inf_build_ok(&s->b) ? (uint32_t)settled : 0;
}

// --- creating sequences and reading items ---

static void lower_empty(struct inf_onnx_scope *s)
{
    (void)inf_onnx_find_attr(s, "dtype");
    s->outputs[0] = inf_onnx_sequence_add(s, NULL, 0);
}

static void lower_construct(struct inf_onnx_scope *s)
{
    uint32_t *values = inf_onnx_list_make(s, s->input_count);
    for (uint32_t i = 0; inf_build_ok(&s->b) && i < s->input_count; i++)
        values[i] = read_tensor(s, i);
    s->outputs[0] = inf_onnx_sequence_add(s, values, s->input_count);
}

static void lower_insert(struct inf_onnx_scope *s)
{
    struct inf_onnx_sequence old = read_sequence(s, 0);
    uint32_t value = read_tensor(s, 1);
    uint32_t at = read_position(s, 2, old.count, old.count + 1, old.count);
    uint32_t *values = inf_onnx_list_make(s, old.count + 1);
    if (!inf_build_ok(&s->b))
        return;
    for (uint32_t i = 0; i < old.count; i++)
        values[i < at ? i : i + 1] = old.values[i];
    values[at] = value;
    s->outputs[0] = inf_onnx_sequence_add(s, values, old.count + 1);
}

static void lower_erase(struct inf_onnx_scope *s)
{
    struct inf_onnx_sequence old = read_sequence(s, 0);
    uint32_t at = read_position(s, 1, old.count, old.count, -1);
    uint32_t *values = inf_onnx_list_make(s, old.count);
    if (!inf_build_ok(&s->b))
        return;
    for (uint32_t i = 0; i < old.count; i++)
        if (i != at)
            values[i < at ? i : i - 1] = old.values[i];
    s->outputs[0] = inf_onnx_sequence_add(s, values, old.count - 1);
}

static void lower_at(struct inf_onnx_scope *s)
{
    struct inf_onnx_sequence sequence = read_sequence(s, 0);
    uint32_t at = read_position(s, 1, sequence.count, sequence.count, -1);
    if (inf_build_ok(&s->b))
        s->outputs[0] = sequence.values[at];
}

static void lower_length(struct inf_onnx_scope *s)
{
    int64_t *data;
    uint32_t count = read_sequence(s, 0).count;
    s->outputs[0] = inf_build_const(&s->b, INF_DTYPE_I64, &(struct inf_shape){0}, &data);
    if (data != NULL)
        *data = count;
}

// --- conversions between tensors and sequences ---

static void lower_concat(struct inf_onnx_scope *s)
{
    struct inf_onnx_sequence sequence = read_sequence(s, 0);
    bool stacks = inf_onnx_attr_int(s, "new_axis", 0) != 0;
    if (sequence.count == 0 || sequence.count > INF_LIMIT_NODE_INPUTS)
        inf_build_fail(&s->b, INF_UNSUPPORTED, "joins %u tensors, wanted 1 to %u", sequence.count,
                       INF_LIMIT_NODE_INPUTS);
    uint32_t *values = inf_onnx_list_make(s, sequence.count);
    if (!inf_build_ok(&s->b))
        return;
    int32_t rank = inf_build_rank(&s->b, sequence.values[0]);
    int64_t axis = inf_build_axis(&s->b, inf_onnx_attr_int(s, "axis", 0), stacks ? rank + 1 : rank);
    for (uint32_t i = 0; i < sequence.count; i++)
        values[i] = stacks ? inf_build_expand_dims(&s->b, sequence.values[i], &axis, 1)
                           : sequence.values[i];
    s->outputs[0] = inf_build_concat(&s->b, values, sequence.count, (int32_t)axis);
}

// Returns the number of parts of a split. If the parts are equal, *part is the size of each part
// except the last.
static uint32_t count_parts(struct inf_onnx_scope *s, uint32_t x, int32_t axis, int64_t *part)
{
    uint32_t split = inf_onnx_input(s, 1);
    int64_t count;
    *part = 1;
    if (split != INF_VALUE_NONE && inf_build_rank(&s->b, split) == 1) {
        *part = 0;
        count = inf_build_known_dim(&s->b, split, 0);
    } else {
        if (split != INF_VALUE_NONE)
            *part = inf_build_const_int(&s->b, split, "split");
        if (*part < 1)
            inf_build_fail(&s->b, INF_INVALID, "split is %lld", (long long)*part);
        int64_t size = inf_build_known_dim(&s->b, x, axis);
        count = inf_build_ok(&s->b) ? size / *part + (size % *part != 0) : 1;
    }
    if (count < 1 || count > INF_LIMIT_NODE_INPUTS)
        inf_build_fail(&s->b, INF_UNSUPPORTED, "makes %lld parts, wanted 1 to %u", (long long)count,
                       INF_LIMIT_NODE_INPUTS);
    return inf_build_ok(&s->b) ? (uint32_t)count : 1;
}

static void lower_split(struct inf_onnx_scope *s)
{
    uint32_t x = read_tensor(s, 0);
    int64_t part,
        axis = inf_build_axis(&s->b, inf_onnx_attr_int(s, "axis", 0), inf_build_rank(&s->b, x));
    bool keeps = inf_onnx_attr_int(s, "keepdims", 1) != 0 || inf_onnx_input(s, 1) != INF_VALUE_NONE;
    uint32_t count = count_parts(s, x, (int32_t)axis, &part);
    uint32_t *values = inf_onnx_list_make(s, count);
    if (!inf_build_ok(&s->b))
        return;
    for (uint32_t i = 0; part > 0 && i < count; i++) {
        int64_t begin = (int64_t)i * part;
        values[i] = inf_build_slice(&s->b, x, (int32_t)axis, begin,
                                    i + 1 < count ? begin + part : INT64_MAX, 1);
        if (!keeps)
            values[i] = inf_build_squeeze(&s->b, values[i], &axis, 1);
    }
    if (part == 0) {
        const uint32_t inputs[] = {x, inf_build_cast(&s->b, s->inputs[1], INF_DTYPE_I32)};
        struct inf_build_node node = inf_build_describe_list(INF_OP_SPLIT, inputs, 2);
        node.attrs.split.axis = (int32_t)axis;
        node.output_count = count;
        inf_build_emit(&s->b, &node, values);
    }
    s->outputs[0] = inf_onnx_sequence_add(s, values, count);
}

// --- operator SequenceMap ---

// Lowers SequenceMap: the body once for each tensor of the first input. Inputs that are no
// sequences are the same for every tensor.
static void lower_map(struct inf_onnx_scope *s)
{
    struct inf_onnx_body body;
    uint32_t count = read_sequence(s, 0).count;
    if (!inf_onnx_body_read(s, &body, "body"))
        return;
    if (body.graph.input_count != s->input_count || body.graph.output_count != s->output_count)
        inf_build_fail(
            &s->b, INF_INVALID, "its body has %u inputs and %u outputs, the node %u and %u",
            body.graph.input_count, body.graph.output_count, s->input_count, s->output_count);
    uint32_t *inputs = inf_onnx_list_make(s, s->input_count);
    uint32_t *outputs = inf_onnx_list_make(s, s->output_count);
    // A product beyond 32 bits is beyond the limit of a list too.
    uint64_t total = (uint64_t)s->output_count * count;
    uint32_t *made = inf_onnx_list_make(s, (uint32_t)INF_MIN(total, UINT32_MAX));
    for (uint32_t i = 0; inf_build_ok(&s->b) && i < count; i++) {
        for (uint32_t j = 0; inf_build_ok(&s->b) && j < s->input_count; j++) {
            inputs[j] = s->inputs[j];
            if (!inf_onnx_is_sequence(inputs[j]))
                continue;
            struct inf_onnx_sequence items = read_sequence(s, j);
            if (items.count < count)
                inf_build_fail(&s->b, INF_INVALID, "input %u has %u tensors, input 0 has %u", j,
                               items.count, count);
            inputs[j] = inf_build_ok(&s->b) ? items.values[i] : INF_VALUE_NONE;
        }
        if (inf_build_ok(&s->b))
            inf_onnx_body_lower(s, &body, inputs, outputs);
        for (uint32_t j = 0; inf_build_ok(&s->b) && j < s->output_count; j++) {
            made[j * count + i] = outputs[j];
            if (inf_onnx_is_sequence(outputs[j]) || inf_onnx_is_narrow(outputs[j]))
                inf_build_fail(&s->b, INF_UNSUPPORTED,
                               "its body makes a sequence or a narrow tensor");
        }
    }
    for (uint32_t j = 0; inf_build_ok(&s->b) && j < s->output_count; j++)
        s->outputs[j] = inf_onnx_sequence_add(s, &made[j * count], count);
}

// --- optionals: a present element is represented by itself ---

static void lower_optional(struct inf_onnx_scope *s)
{
    (void)inf_onnx_find_attr(s, "type");
    s->outputs[0] = inf_onnx_input(s, 0);
    if (s->outputs[0] == INF_VALUE_NONE)
        s->outputs[0] = inf_onnx_absent_add(s);
}

static void lower_get_element(struct inf_onnx_scope *s)
{
    s->outputs[0] = inf_onnx_input(s, 0);
    if (inf_onnx_is_absent(s, s->outputs[0]))
        inf_build_fail(&s->b, INF_INVALID, "takes the element of an empty optional");
}

static void lower_has_element(struct inf_onnx_scope *s)
{
    uint32_t value = inf_onnx_input(s, 0);
    bool has = value != INF_VALUE_NONE && !inf_onnx_is_absent(s, value);
    s->outputs[0] = inf_build_scalar(&s->b, INF_DTYPE_BOOL, has);
}

static const struct inf_onnx_op ops[] = {
    {"SequenceEmpty", lower_empty, 0, 0, 1, 0, true},
    {"SequenceConstruct", lower_construct, 1, INF_LIMIT_NODE_INPUTS, 1, 0, true},
    {"SequenceInsert", lower_insert, 2, 3, 1, 0, true},
    {"SequenceErase", lower_erase, 1, 2, 1, 0, true},
    {"SequenceAt", lower_at, 2, 2, 1, 0, true},
    {"SequenceLength", lower_length, 1, 1, 1, 0, true},
    {"ConcatFromSequence", lower_concat, 1, 1, 1, 0, true},
    {"SplitToSequence", lower_split, 1, 2, 1, 0, true},
    {"SequenceMap", lower_map, 1, INF_LIMIT_NODE_INPUTS, INF_LIMIT_NODE_INPUTS, 0, true},
    {"Optional", lower_optional, 0, 1, 1, 0, true},
    {"OptionalGetElement", lower_get_element, 1, 1, 1, 0, true},
    {"OptionalHasElement", lower_has_element, 0, 1, 1, 0, true},
};

const struct inf_onnx_op_table inf_onnx_ops_sequence = {ops, INF_ARRAY_LENGTH(ops)};
