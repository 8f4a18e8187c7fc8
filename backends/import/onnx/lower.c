// SPDX-License-Identifier: Apache-2.0
// Nodes one after the other: their inputs looked up by name, their operator's function called, its
// outputs named; functions of the model are lowered in their place.
#include "backends/import/onnx/lower.h"

#include <stdlib.h>
#include <string.h>

#include "backends/import/onnx/capture.h"

// Functions within functions, and branches within branches.
#define FRAME_DEPTH_MAX 24u
// Nodes lowered in all: a function that calls others twice each doubles the work at every level.
#define LOWERED_MAX (1u << 18)
// Nodes asked about narrow initialisers, each about each.
#define NARROW_CHECKS_MAX (1u << 24)

static const struct inf_onnx_op_table *const tables[] = {
    &inf_onnx_ops_unary,  &inf_onnx_ops_math,      &inf_onnx_ops_reduce,   &inf_onnx_ops_norm,
    &inf_onnx_ops_conv,   &inf_onnx_ops_pool,      &inf_onnx_ops_shape,    &inf_onnx_ops_move,
    &inf_onnx_ops_gather, &inf_onnx_ops_resize,    &inf_onnx_ops_source,   &inf_onnx_ops_quant,
    &inf_onnx_ops_rnn,    &inf_onnx_ops_attention, &inf_onnx_ops_sample,   &inf_onnx_ops_loss,
    &inf_onnx_ops_branch, &inf_onnx_ops_loop,      &inf_onnx_ops_unconv,   &inf_onnx_ops_sequence,
    &inf_onnx_ops_patch,  &inf_onnx_ops_feature,   &inf_onnx_ops_spectral,
};

const struct inf_onnx_op *inf_onnx_op_find(const char *domain, const char *name)
{
    size_t length = strlen(domain);
    const struct inf_onnx_op *op;
    for (size_t i = 0; (op = inf_onnx_op_at(i)) != NULL; i++) {
        if (length > 0 &&
            (strncmp(op->name, domain, length) != 0 || strncmp(op->name + length, "::", 2) != 0))
            continue;
        if (strcmp(length > 0 ? op->name + length + 2 : op->name, name) == 0)
            return op;
    }
    return NULL;
}

const struct inf_onnx_op *inf_onnx_op_at(size_t index)
{
    for (size_t i = 0; i < INF_ARRAY_LENGTH(tables); i++) {
        if (index < tables[i]->count)
            return &tables[i]->ops[index];
        index -= tables[i]->count;
    }
    return NULL;
}

static const struct inf_onnx_function *find_function(const struct inf_onnx_model *model,
                                                     const struct inf_onnx_node *node)
{
    for (uint32_t i = 0; i < model->function_count; i++) {
        const struct inf_onnx_function *function = &model->functions[i];
        if (strcmp(function->name, node->op) == 0 && strcmp(function->domain, node->domain) == 0 &&
            strcmp(function->overload, node->overload) == 0)
            return function;
    }
    return NULL;
}

uint32_t inf_onnx_lookup(struct inf_onnx_scope *s, const struct inf_onnx_frame *frame,
                         const char *name)
{
    uint32_t value;
    if (inf_onnx_names_find(&frame->names, name, &value))
        return value;
    if (frame->outer == NULL) {
        inf_ox_fail(s, INF_INVALID, "takes '%.200s', which nothing before it makes", name);
        return INF_VALUE_NONE;
    }
    // No deeper than frames nest.
    value = inf_onnx_lookup(s, frame->outer, name);
    if (frame->capture != NULL && inf_onnx_is_sequence(value)) {
        inf_ox_fail(s, INF_UNSUPPORTED, "takes the sequence '%.200s' into a branch or loop", name);
        return INF_VALUE_NONE;
    }
    return frame->capture != NULL && value != INF_VALUE_NONE
               ? inf_onnx_capture(s, frame->capture, value)
               : value;
}

const char *const *inf_onnx_port_names(struct inf_onnx_scope *s, const struct inf_onnx_port *ports,
                                       uint32_t count)
{
    const char **names = inf_arena_alloc(s->import->arena, ((size_t)count + 1) * sizeof *names);
    if (names == NULL)
        inf_ox_fail(s, INF_EXHAUSTED, "no memory");
    for (uint32_t i = 0; names != NULL && i < count; i++)
        names[i] = ports[i].name;
    return names;
}

static void name_value(struct inf_onnx_scope *s, struct inf_onnx_frame *frame, const char *name,
                       uint32_t value)
{
    bool known = false;
    if (!inf_ox_ok(s))
        return;
    if (!inf_onnx_names_add(&frame->names, name, value, &known))
        inf_ox_fail(s, INF_EXHAUSTED, "no memory for names");
    else if (known)
        inf_ox_fail(s, INF_INVALID, "makes '%.200s', which is there already", name);
}

// Integers of less than 8 bits have 8 in the graph, which only DequantizeLinear may not notice: anything
// else, or a body that could take them from outside, would go by another range.
static void check_narrow(struct inf_onnx_scope *s, const struct inf_onnx_graph *graph,
                         const struct inf_onnx_tensor *tensor)
{
    s->import->narrow_checks += graph->node_count;
    if (s->import->narrow_checks > NARROW_CHECKS_MAX)
        inf_ox_fail(s, INF_EXHAUSTED, "initialiser '%.200s' is one of too many of %s", tensor->name,
                    tensor->narrow);
    for (uint32_t i = 0; inf_ox_ok(s) && i < graph->node_count; i++) {
        const struct inf_onnx_node *node = &graph->nodes[i];
        bool takes = false;
        for (uint32_t k = 0; k < node->input_count; k++)
            takes |= strcmp(node->inputs[k], tensor->name) == 0;
        for (uint32_t k = 0; k < node->attr_count; k++)
            takes |= node->attrs[k].type == INF_ONNX_ATTR_GRAPH;
        if (takes && (node->domain[0] != '\0' || strcmp(node->op, "DequantizeLinear") != 0))
            inf_ox_fail(s, INF_UNSUPPORTED,
                        "initialiser '%.120s' is %s and node '%.120s' (%.60s) may take it, wanted "
                        "DequantizeLinear alone",
                        tensor->name, tensor->narrow, node->name, node->op);
    }
    for (uint32_t i = 0; inf_ox_ok(s) && i < graph->output_count; i++)
        if (strcmp(graph->outputs[i].name, tensor->name) == 0)
            inf_ox_fail(s, INF_UNSUPPORTED, "output '%.200s' is %s", tensor->name, tensor->narrow);
}

void inf_onnx_lower_initializers(struct inf_onnx_scope *s, struct inf_onnx_frame *frame,
                                 const struct inf_onnx_graph *graph)
{
    // Branches may be lowered more than once, the model's own graph is not.
    bool is_model = frame->outer == NULL && frame->call == NULL;
    if (graph->sparse_count > 0)
        inf_ox_fail(s, INF_UNSUPPORTED, "%u sparse initialisers", graph->sparse_count);
    for (uint32_t i = 0; inf_ox_ok(s) && i < graph->initializer_count; i++) {
        struct inf_onnx_tensor tensor;
        uint32_t value;
        s->code = (is_model ? inf_onnx_tensor_take : inf_onnx_tensor_read)(
            &tensor, s->import->arena, s->import->files, graph->initializers[i], s->err);
        if (inf_ox_ok(s) && tensor.narrow != NULL)
            check_narrow(s, graph, &tensor);
        if (!inf_ox_ok(s))
            inf_blob_unref(&tensor.data);
        else
            s->code = inf_graph_add_const(s->graph, tensor.name, tensor.dtype, &tensor.shape,
                                          tensor.data, &value, s->err);
        if (inf_ox_ok(s))
            name_value(s, frame, tensor.name, value);
    }
}

// --- functions of the model ---

static void lower_call(struct inf_onnx_scope *s, const struct inf_onnx_function *function)
{
    struct inf_onnx_frame frame = {.caller = s->frame,
                                   .call = s->node,
                                   .function = function,
                                   .opsets = &function->opsets,
                                   .outputs = function->outputs,
                                   .output_count = function->output_count,
                                   .depth = s->frame->depth + 1};
    if (s->node->input_count > function->input_count ||
        s->node->output_count > function->output_count)
        inf_ox_fail(s, INF_INVALID, "has %u inputs and %u outputs, its function %u and %u",
                    s->node->input_count, s->node->output_count, function->input_count,
                    function->output_count);
    for (uint32_t i = 0; inf_ox_ok(s) && i < function->input_count; i++)
        name_value(s, &frame, function->inputs[i], inf_ox_in(s, i));
    inf_onnx_lower_nodes(s, &frame, function->nodes, function->node_count);
    for (uint32_t i = 0; inf_ox_ok(s) && i < s->output_count; i++)
        s->outputs[i] = inf_onnx_lookup(s, &frame, function->outputs[i]);
    // What the body does not ask for means nothing: that is how functions work.
    for (uint32_t i = 0; i < s->node->attr_count; i++)
        s->node->attrs[i].used = true;
    inf_onnx_names_fini(&frame.names);
}

// --- one node ---

static int64_t find_opset(const struct inf_onnx_frame *frame, const char *domain)
{
    for (uint32_t i = 0; i < frame->opsets->count; i++)
        if (strcmp(frame->opsets->items[i].domain, domain) == 0)
            return frame->opsets->items[i].version;
    return 1;
}

static void check_counts(struct inf_onnx_scope *s)
{
    uint32_t present = s->input_count;
    while (present > 0 && s->inputs[present - 1] == INF_VALUE_NONE)
        present--;
    if (present > s->op->inputs_max || s->input_count < s->op->inputs_min)
        inf_ox_fail(s, INF_INVALID, "has %u inputs, wanted %u to %u", s->input_count,
                    s->op->inputs_min, s->op->inputs_max);
    for (uint32_t i = 0; inf_ox_ok(s) && i < s->op->inputs_min; i++)
        if (s->inputs[i] == INF_VALUE_NONE)
            inf_ox_fail(s, INF_INVALID, "lacks input %u", i);
    for (uint32_t i = s->op->outputs_max; inf_ox_ok(s) && i < s->output_count; i++)
        if (inf_ox_wants(s, i))
            inf_ox_fail(s, INF_UNSUPPORTED, "its output %u is not built", i);
}

// Sequences are for their own operators.
static void check_sequences(struct inf_onnx_scope *s)
{
    const struct inf_onnx_op *first = inf_onnx_ops_sequence.ops;
    bool takes_them = s->op >= first && s->op < first + inf_onnx_ops_sequence.count;
    for (uint32_t i = 0; inf_ox_ok(s) && !takes_them && i < s->input_count; i++)
        if (inf_onnx_is_sequence(s->inputs[i]))
            inf_ox_fail(s, INF_UNSUPPORTED, "input %u is a sequence, wanted a tensor", i);
}

static void check_attrs(struct inf_onnx_scope *s)
{
    for (uint32_t i = 0; inf_ox_ok(s) && i < s->node->attr_count; i++)
        if (!s->node->attrs[i].used)
            inf_ox_fail(s, INF_UNSUPPORTED, "attribute '%.80s' is not supported in opset %lld",
                        s->node->attrs[i].name, (long long)s->opset);
}

static void lower_op(struct inf_onnx_scope *s)
{
    check_counts(s);
    check_sequences(s);
    // Old versions let a node say which of its inputs it may overwrite; means nothing.
    (void)inf_ox_attr(s, "consumed_inputs");
    if (inf_ox_ok(s))
        s->op->lower(s);
    check_attrs(s);
}

// Finds a node's operands, lowers it and names what it made.
static void lower_node(struct inf_onnx_scope *s, struct inf_onnx_frame *frame)
{
    struct inf_onnx_node *node = s->node;
    for (uint32_t i = 0; inf_ox_ok(s) && i < node->input_count; i++)
        if (*node->inputs[i] != '\0')
            s->inputs[i] = inf_onnx_lookup(s, frame, node->inputs[i]);
    const struct inf_onnx_function *function = find_function(s->import->model, node);
    s->op = inf_onnx_op_find(node->domain, node->op);
    if (function != NULL)
        lower_call(s, function);
    else if (s->op != NULL)
        lower_op(s);
    else
        inf_ox_fail(s, INF_UNSUPPORTED, "operator %.80s%s%.80s is not built", node->domain,
                    *node->domain != '\0' ? "::" : "", node->op);
    for (uint32_t i = 0; inf_ox_ok(s) && !s->diverges && i < node->output_count; i++) {
        if (!inf_ox_wants(s, i))
            continue;
        if (s->outputs[i] == INF_VALUE_NONE)
            inf_ox_fail(s, INF_UNSUPPORTED, "its output %u is not built", i);
        name_value(s, frame, node->outputs[i], s->outputs[i]);
    }
}

// Room for the operands of a node.
static bool make_operands(struct inf_onnx_scope *s)
{
    // Lowering functions read inputs they can have, whether the node names them or not.
    size_t count = (size_t)s->input_count + s->output_count + 1;
    s->inputs = malloc(count * sizeof *s->inputs);
    if (s->inputs == NULL) {
        inf_ox_fail(s, INF_EXHAUSTED, "no memory for its operands");
        return false;
    }
    s->outputs = s->inputs + s->input_count;
    for (size_t i = 0; i < count; i++)
        s->inputs[i] = INF_VALUE_NONE;
    return true;
}

void inf_onnx_lower_nodes(struct inf_onnx_scope *s, struct inf_onnx_frame *frame,
                          struct inf_onnx_node *nodes, uint32_t count)
{
    if (frame->depth > FRAME_DEPTH_MAX)
        inf_ox_fail(s, INF_EXHAUSTED, "functions and branches nest more than %u deep",
                    FRAME_DEPTH_MAX);
    for (uint32_t i = 0; inf_ox_ok(s) && i < count; i++) {
        struct inf_onnx_scope inner = {.import = s->import,
                                       .graph = s->graph,
                                       .frame = frame,
                                       .node = &nodes[i],
                                       .opset = find_opset(frame, nodes[i].domain),
                                       .input_count = nodes[i].input_count,
                                       .output_count = nodes[i].output_count,
                                       .err = s->err};
        if (++s->import->lowered > LOWERED_MAX)
            inf_ox_fail(&inner, INF_EXHAUSTED, "more than %u nodes, those of functions included",
                        LOWERED_MAX);
        if (make_operands(&inner))
            lower_node(&inner, frame);
        bool diverges = inner.diverges && inf_ox_ok(&inner);
        if (diverges)
            inf_onnx_lower_diverging(&inner, frame, &nodes[i + 1], count - i - 1);
        free(inner.inputs);
        s->code = inner.code;
        if (diverges)
            return;
    }
}
