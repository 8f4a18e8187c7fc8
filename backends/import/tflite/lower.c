// SPDX-License-Identifier: Apache-2.0
// Lowers operators one after the other: checks the operands against the operator's row, calls its
// function, and binds the results to the output tensors. Quantised results are quantised here, so
// that lowering functions need not know about it.
//
// An operator from 8 bits that treats each element alone becomes a table: its function is called
// with the 256 possible numbers as input, and the result is quantised and looked up. Folding makes
// the table a constant.
#include "backends/import/tflite/lower.h"

#include <assert.h>

#include "backends/graph/build/operators.h"
#include "backends/import/tflite/quantize.h"
#include "backends/import/tflite/tensor.h"
#include "proto/core/limits.h"

// The largest number of operators lowered in one import. The limit is needed because a subgraph
// that runs another one twice doubles the work at every level.
#define LOWERED_MAX (1u << 18)
// Number of values of 8 bits.
#define TABLE_SIZE 256

const char *inf_tflite_code_name(const struct inf_tflite_code *code)
{
    const char *name = inf_tflite_builtin_name(code->builtin);
    if (code->builtin == INF_TFLITE_CUSTOM)
        return code->custom;
    return name != NULL ? name : "?";
}

// --- frames ---

static uint32_t *make_values(struct inf_tflite_import *import, uint32_t count)
{
    uint32_t *values = inf_arena_alloc(import->arena, ((size_t)count + 1) * sizeof *values);
    for (uint32_t i = 0; values != NULL && i < count; i++)
        values[i] = INF_VALUE_NONE;
    return values;
}

enum inf_code inf_tflite_frame_init(struct inf_tflite_frame *frame,
                                    struct inf_tflite_import *import,
                                    const struct inf_tflite_frame *outer,
                                    const struct inf_tflite_subgraph *subgraph,
                                    struct inf_error *err)
{
    uint32_t count = subgraph->tensor_count;
    for (const struct inf_tflite_frame *at = outer; at != NULL; at = at->outer)
        if (at->subgraph == subgraph)
            return inf_fail(err, INF_INVALID, "subgraph '%.200s' runs itself", subgraph->name);
    *frame = (struct inf_tflite_frame){.outer = outer,
                                       .subgraph = subgraph,
                                       .values = make_values(import, count),
                                       .reals = make_values(import, count),
                                       .imaginary = make_values(import, count),
                                       .handles = make_values(import, count),
                                       .depth = outer != NULL ? outer->depth + 1 : 0};
    if (frame->depth > INF_LIMIT_GRAPH_DEPTH)
        return inf_fail(err, INF_EXHAUSTED, "subgraphs nest more than %u deep",
                        INF_LIMIT_GRAPH_DEPTH);
    if (frame->values == NULL || frame->reals == NULL || frame->imaginary == NULL ||
        frame->handles == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "no memory for %u tensors",
                               count);
    return INF_OK;
}

// Returns the name of an operator's nodes: that of its first output.
static const char *name_operator(const struct inf_tflite_frame *frame,
                                 const struct inf_tflite_operator *op)
{
    const char *name = "";
    if (op->outputs.count > 0)
        name = frame->subgraph->tensors[op->outputs.items[0]].name;
    return *name != '\0' ? name : inf_tflite_code_name(op->code);
}

struct inf_tflite_scope inf_tflite_scope_make(struct inf_tflite_import *import,
                                              struct inf_tflite_frame *frame,
                                              struct inf_graph *graph,
                                              const struct inf_tflite_operator *op,
                                              struct inf_error *err)
{
    struct inf_tflite_scope s = {.b = {.graph = graph,
                                       .noun = "operator",
                                       .name = name_operator(frame, op),
                                       .source = inf_tflite_code_name(op->code),
                                       .fold = &import->fold,
                                       .cancelled = import->cancelled,
                                       .node_total = &import->node_total,
                                       .err = err},
                                 .import = import,
                                 .frame = frame,
                                 .op = op,
                                 .replace = INF_VALUE_NONE};
    for (uint32_t i = 0; i < INF_ARRAY_LENGTH(s.outputs); i++)
        s.outputs[i] = INF_VALUE_NONE;
    return s;
}

// --- checks ---

static void check_counts(struct inf_tflite_scope *s)
{
    const struct inf_tflite_op *row = s->row;
    uint32_t count = s->op->inputs.count;
    while (count > 0 && s->op->inputs.items[count - 1] == INF_TFLITE_ABSENT)
        count--;
    if (count < row->inputs_min || count > row->inputs_max)
        inf_build_fail(&s->b, INF_INVALID, "has %u inputs, wanted %u to %u", count, row->inputs_min,
                       row->inputs_max);
    uint32_t needed = row->has_gaps ? 1 : row->inputs_min;
    for (uint32_t i = 0; inf_build_ok(&s->b) && i < needed; i++)
        if (!inf_tflite_has_input(s, i))
            inf_build_fail(&s->b, INF_INVALID, "lacks input %u", i);
    if (s->op->outputs.count < 1 && row->outputs_max > 0)
        inf_build_fail(&s->b, INF_INVALID, "has no output");
    if (s->op->outputs.count > row->outputs_max)
        inf_build_fail(&s->b, INF_INVALID, "has %u outputs, wanted at most %u",
                       s->op->outputs.count, row->outputs_max);
}

static void check_options(struct inf_tflite_scope *s)
{
    enum inf_tflite_options wanted = s->row->options;
    if (wanted != INF_TFLITE_OPTIONS_NONE && inf_fb_exists(&s->op->options) &&
        s->op->options_type != (int32_t)wanted)
        inf_build_fail(&s->b, INF_INVALID, "has builtin options of type %d, wanted %d",
                       s->op->options_type, (int)wanted);
}

// --- modes ---

// Returns true if all quantised inputs and outputs have the same scale.
static bool same_scales(const struct inf_tflite_scope *s)
{
    const struct inf_tflite_tensor *first = NULL;
    for (uint32_t i = 0; i < s->op->inputs.count + s->op->outputs.count; i++) {
        const struct inf_tflite_tensor *tensor =
            i < s->op->inputs.count ? inf_tflite_input_tensor(s, i)
                                    : inf_tflite_output_tensor(s, i - s->op->inputs.count);
        if (tensor == NULL || !inf_tflite_tensor_is_quantized(tensor))
            continue;
        if (first != NULL && !inf_tflite_tensor_same_scale(first, tensor))
            return false;
        first = tensor;
    }
    return true;
}

// Returns true if the operator becomes a table.
static bool wants_table(const struct inf_tflite_scope *s)
{
    // Only an operator of the table mode is known to have an input: test the mode before input 0
    // is read.
    if (s->row->mode != INF_TFLITE_MODE_TABLE || s->import->fold.evaluator == NULL)
        return false;
    const struct inf_tflite_tensor *x = inf_tflite_input_tensor(s, 0);
    const struct inf_tflite_tensor *y = inf_tflite_output_tensor(s, 0);
    enum inf_dtype dtype = inf_tflite_type_info(x->type).dtype;
    return (dtype == INF_DTYPE_I8 || dtype == INF_DTYPE_U8) && x->quantization.count == 1 &&
           !inf_tflite_tensor_is_const(x) && inf_tflite_tensor_is_quantized(y);
}

// Adds the real numbers of all bytes, in the order in which a lookup node numbers them.
static uint32_t add_byte_values(struct inf_tflite_scope *s, const struct inf_tflite_tensor *x)
{
    float *numbers;
    bool is_signed = inf_tflite_type_info(x->type).dtype == INF_DTYPE_I8;
    uint32_t value = inf_build_const(&s->b, INF_DTYPE_F32, &INF_SHAPE(TABLE_SIZE), &numbers);
    for (int32_t i = 0; numbers != NULL && i < TABLE_SIZE; i++) {
        int32_t stored = is_signed ? (int8_t)i : i;
        numbers[i] = (float)(stored - x->quantization.zeros[0]) * x->quantization.scales[0];
    }
    return value;
}

// --- results ---

// Brings a result to the type of the tensor that it becomes.
static uint32_t finish_output(struct inf_tflite_scope *s, uint32_t value,
                              const struct inf_tflite_tensor *tensor)
{
    enum inf_dtype wanted = inf_tflite_type_info(tensor->type).dtype;
    enum inf_dtype dtype = inf_build_dtype(&s->b, value);
    if (!inf_build_ok(&s->b) || value == INF_VALUE_NONE || wanted == INF_DTYPE_NONE ||
        dtype == wanted)
        return value;
    bool is_wide = wanted == INF_DTYPE_I32 && tensor->quantization.count == 1;
    if (dtype == INF_DTYPE_F32 && (is_wide || inf_tflite_tensor_is_quantized(tensor)))
        return inf_tflite_quantize(&s->b, value, tensor);
    bool is_index = dtype == INF_DTYPE_I32 && wanted == INF_DTYPE_I64;
    bool is_half = dtype == INF_DTYPE_F32 && inf_dtype_is_float(wanted);
    if (!is_index && !is_half)
        inf_build_fail(&s->b, INF_INVALID, "makes %s, tensor '%.80s' is %s", inf_dtype_name(dtype),
                       tensor->name, inf_dtype_name(wanted));
    return inf_build_cast(&s->b, value, wanted);
}

static void bind_outputs(struct inf_tflite_scope *s, uint32_t bytes)
{
    for (uint32_t i = 0; inf_build_ok(&s->b) && i < s->op->outputs.count; i++) {
        uint32_t value = s->outputs[i];
        if (value == INF_VALUE_NONE && s->row->mode != INF_TFLITE_MODE_STORED) {
            inf_build_fail(&s->b, INF_UNSUPPORTED, "its output %u is not built", i);
            return;
        }
        if (value == INF_VALUE_NONE)
            continue;
        value = finish_output(s, value, inf_tflite_output_tensor(s, i));
        if (bytes != INF_VALUE_NONE) {
            struct inf_build_node lookup =
                inf_build_describe(INF_OP_LOOKUP, bytes, value, INF_VALUE_NONE);
            value = inf_build_value(&s->b, &lookup);
        }
        inf_tflite_bind(s, s->op->outputs.items[i], value);
    }
}

// --- one operator ---

static void lower_operator(struct inf_tflite_scope *s)
{
    uint32_t bytes = INF_VALUE_NONE;
    s->row = s->import->find_op(s->op->code);
    if (s->row == NULL) {
        inf_build_fail(&s->b, INF_UNSUPPORTED, "is not supported");
        return;
    }
    check_counts(s);
    check_options(s);
    if (!inf_build_ok(&s->b))
        return;
    s->as_stored = s->row->mode == INF_TFLITE_MODE_STORED ||
                   (s->row->mode == INF_TFLITE_MODE_MOVE && same_scales(s));
    if (wants_table(s)) {
        bytes = inf_tflite_stored(s, 0);
        s->replace = add_byte_values(s, inf_tflite_input_tensor(s, 0));
    }
    if (inf_build_ok(&s->b))
        s->row->lower(s);
    bind_outputs(s, bytes);
}

enum inf_code inf_tflite_lower_subgraph(struct inf_tflite_import *import,
                                        struct inf_tflite_frame *frame, struct inf_graph *graph,
                                        struct inf_error *err)
{
    for (uint32_t i = 0; i < frame->subgraph->operator_count; i++) {
        struct inf_tflite_scope s =
            inf_tflite_scope_make(import, frame, graph, &frame->subgraph->operators[i], err);
        if (++import->lowered > LOWERED_MAX)
            return inf_fail(err, INF_EXHAUSTED,
                            "more than %u operators, those of subgraphs included", LOWERED_MAX);
        lower_operator(&s);
        INF_TRY(s.b.code);
    }
    return INF_OK;
}

// --- subgraphs in place ---

void inf_tflite_lower_inline(struct inf_tflite_scope *s, int32_t number, const uint32_t *inputs,
                             uint32_t input_count, uint32_t *outputs, uint32_t output_count)
{
    struct inf_tflite_frame frame;
    const struct inf_tflite_model *model = s->import->model;
    if (!inf_build_ok(&s->b))
        return;
    if (number < 0 || (uint32_t)number >= model->subgraph_count) {
        inf_build_fail(&s->b, INF_INVALID, "names subgraph %d, there are %u", number,
                       model->subgraph_count);
        return;
    }
    const struct inf_tflite_subgraph *subgraph = &model->subgraphs[number];
    if (subgraph->inputs.count != input_count || subgraph->outputs.count != output_count)
        inf_build_fail(&s->b, INF_INVALID,
                       "gives subgraph %d %u inputs and wants %u outputs, it has %u and %u", number,
                       input_count, output_count, subgraph->inputs.count, subgraph->outputs.count);
    if (inf_build_ok(&s->b))
        s->b.code = inf_tflite_frame_init(&frame, s->import, s->frame, subgraph, s->b.err);
    struct inf_tflite_scope inner = *s;
    inner.frame = &frame;
    inner.replace = INF_VALUE_NONE;
    for (uint32_t i = 0; inf_build_ok(&inner.b) && i < input_count; i++)
        inf_tflite_bind(&inner, subgraph->inputs.items[i], inputs[i]);
    if (inf_build_ok(&inner.b))
        inner.b.code = inf_tflite_lower_subgraph(s->import, &frame, s->b.graph, s->b.err);
    for (uint32_t i = 0; inf_build_ok(&inner.b) && i < output_count; i++)
        outputs[i] = inf_tflite_tensor_value(&inner, subgraph->outputs.items[i]);
    s->b.code = inner.b.code;
}
