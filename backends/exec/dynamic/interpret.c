// SPDX-License-Identifier: Apache-2.0
// Runs a graph node by node. A frame holds the values of a running graph. Its nodes are those of
// the source graph; shapes and data are filled in as nodes are computed. For each node, infer
// shapes from the actual inputs, ask the evaluator for sizes that depend on values, allocate,
// compute, and drop the inputs that no later node reads. Branches and loops run their subgraphs in
// the same way; the verifier bounds the depth of this recursion.
#include "backends/exec/dynamic/interpret.h"

#include <stdlib.h>
#include <string.h>

#include "backends/base/cancel.h"
#include "backends/exec/dynamic/node_programs.h"
#include "backends/exec/dynamic/subgraph_programs.h"
#include "backends/graph/shape/infer.h"
#include "proto/core/limits.h"

// A graph that is being run: the nodes of the source graph, and a copy of its values whose shapes
// and data are filled in as nodes are computed.
struct frame {
    struct inf_graph graph; // shares everything with `source` except its values
    const struct inf_graph *source;
    // uses[v]: how often later nodes and the graph's outputs will still read value v
    uint32_t *uses;
};

static enum inf_code no_memory(struct inf_error *err, size_t size_bytes)
{
    return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "no memory for %zu bytes",
                           size_bytes);
}

// Drops a value's data, unless it is a constant of the source graph.
static void release_value(struct inf_interpreter *interpreter, struct frame *frame, uint32_t value)
{
    struct inf_blob **data = &frame->graph.values[value].data;
    if (*data != frame->source->values[value].data)
        inf_tensor_memory_drop(&interpreter->memory, data);
}

static void drop_use(struct inf_interpreter *interpreter, struct frame *frame, uint32_t value)
{
    if (value != INF_VALUE_NONE && --frame->uses[value] == 0)
        release_value(interpreter, frame, value);
}

static enum inf_code create_blob(struct inf_interpreter *interpreter, const struct inf_value *value,
                                 struct inf_blob **out_blob, struct inf_error *err)
{
    size_t size_bytes;
    char text[INF_SHAPE_TEXT_SIZE];
    if (!inf_shape_bytes(&value->shape, value->dtype, &size_bytes))
        return inf_fail(err, INF_EXHAUSTED,
                        "'%s' of shape %s is no tensor, or larger than one may be", value->name,
                        inf_shape_print(&value->shape, text));
    return inf_tensor_memory_alloc(&interpreter->memory, value->name, size_bytes, out_blob, err);
}

// --- nodes that are neither branches nor loops ---

// Returns true if the output has the bytes of the first input with another shape.
static bool is_renaming(const struct inf_node *node)
{
    return node->op == INF_OP_IDENTITY || node->op == INF_OP_RESHAPE ||
           node->op == INF_OP_EXPAND_DIMS || node->op == INF_OP_SQUEEZE;
}

// Asks the evaluator for the sizes that inference could not determine.
static enum inf_code measure_shapes(struct inf_interpreter *interpreter, struct frame *frame,
                                    uint32_t index, struct inf_error *err)
{
    const struct inf_node *node = &frame->graph.nodes[index];
    struct inf_value *values = frame->graph.values;
    struct inf_shape shapes[4] = {0};
    bool known = true;
    for (uint32_t i = 0; i < node->output_count; i++)
        known &= inf_shape_known(&values[node->outputs[i]].shape);
    if (known)
        return INF_OK;
    if (node->output_count > INF_ARRAY_LENGTH(shapes) || interpreter->evaluator->measure == NULL)
        return inf_fail(err, INF_UNSUPPORTED, "node '%s': its shapes stay unknown", node->name);
    for (uint32_t i = 0; i < node->output_count; i++)
        shapes[i] = values[node->outputs[i]].shape;
    INF_TRY(interpreter->evaluator->measure(interpreter->evaluator->context, &frame->graph, index,
                                            shapes, err));
    for (uint32_t i = 0; i < node->output_count; i++)
        values[node->outputs[i]].shape = shapes[i];
    return INF_OK;
}

// Writes the dimensions of a shape as the elements of a value, the result of a SHAPE node.
static void write_shape(const struct inf_shape *shape, struct inf_blob *blob)
{
    int32_t *elements = blob->data;
    for (int32_t i = 0; i < shape->rank; i++)
        elements[i] = (int32_t)shape->dims[i];
}

// Computes a node: by a compiled program if there is one, otherwise by the evaluator.
static enum inf_code evaluate_node(struct inf_interpreter *interpreter, const struct frame *frame,
                                   uint32_t index, struct inf_blob **blobs, struct inf_error *err)
{
    const struct inf_node_run run = {.graph = &frame->graph,
                                     .source = frame->source,
                                     .node = index,
                                     .slot = interpreter->slot,
                                     .outputs = blobs,
                                     .cancelled = interpreter->cancelled,
                                     .core_use = interpreter->core_use};
    bool done = false;
    if (interpreter->programs != NULL)
        INF_TRY(inf_node_programs_run(interpreter->programs, &run, &done, err));
    if (done)
        return INF_OK;
    return interpreter->evaluator->run(interpreter->evaluator->context, &frame->graph, index, blobs,
                                       interpreter->cancelled, err);
}

static enum inf_code compute_node(struct inf_interpreter *interpreter, struct frame *frame,
                                  uint32_t index, struct inf_blob **blobs, struct inf_error *err)
{
    const struct inf_node *node = &frame->graph.nodes[index];
    for (uint32_t i = 0; i < node->output_count; i++)
        INF_TRY(create_blob(interpreter, &frame->graph.values[node->outputs[i]], &blobs[i], err));
    if (node->op == INF_OP_SHAPE)
        write_shape(&frame->graph.values[node->inputs[0]].shape, blobs[0]);
    else
        INF_TRY(evaluate_node(interpreter, frame, index, blobs, err));
    for (uint32_t i = 0; i < node->output_count; i++) {
        frame->graph.values[node->outputs[i]].data = blobs[i];
        blobs[i] = NULL;
    }
    return INF_OK;
}

static enum inf_code run_node(struct inf_interpreter *interpreter, struct frame *frame,
                              uint32_t index, struct inf_error *err)
{
    const struct inf_node *node = &frame->graph.nodes[index];
    struct inf_value *values = frame->graph.values;
    INF_TRY(inf_shape_infer_node(&frame->graph, index, err));
    INF_TRY(measure_shapes(interpreter, frame, index, err));
    if (is_renaming(node)) {
        values[node->outputs[0]].data = inf_blob_ref(values[node->inputs[0]].data);
        return INF_OK;
    }
    struct inf_blob **blobs = calloc(node->output_count, sizeof *blobs);
    if (blobs == NULL)
        return no_memory(err, node->output_count * sizeof *blobs);
    enum inf_code code = compute_node(interpreter, frame, index, blobs, err);
    for (uint32_t i = 0; i < node->output_count; i++)
        inf_blob_unref(&blobs[i]);
    free(blobs);
    return code;
}

// --- branches and loops ---

// The tensors that a branch or loop node passes to its subgraph, and those that the subgraph
// returns.
struct exchange {
    struct inf_tensor *inputs, *outputs;
    uint32_t input_count, output_count;
};

static void end_exchange(struct inf_interpreter *interpreter, struct exchange *exchange)
{
    for (uint32_t i = 0; exchange->inputs != NULL && i < exchange->input_count; i++)
        inf_tensor_memory_drop(&interpreter->memory, &exchange->inputs[i].data);
    for (uint32_t i = 0; exchange->outputs != NULL && i < exchange->output_count; i++)
        inf_tensor_memory_drop(&interpreter->memory, &exchange->outputs[i].data);
    free(exchange->inputs);
    free(exchange->outputs);
}

// Collects the node's inputs from index `first` on, to pass them to a subgraph of the node.
static enum inf_code begin_exchange(struct exchange *exchange, const struct frame *frame,
                                    const struct inf_node *node, uint32_t first,
                                    struct inf_error *err)
{
    *exchange = (struct exchange){
        .input_count = node->input_count - first,
        .output_count = node->output_count,
        .inputs = calloc((size_t)node->input_count + 1, sizeof *exchange->inputs),
        .outputs = calloc((size_t)node->output_count + 1, sizeof *exchange->outputs),
    };
    if (exchange->inputs == NULL || exchange->outputs == NULL)
        return no_memory(err, node->input_count * sizeof *exchange->inputs);
    for (uint32_t i = 0; i < exchange->input_count; i++) {
        const struct inf_value *value = &frame->graph.values[node->inputs[first + i]];
        exchange->inputs[i] = (struct inf_tensor){
            .dtype = value->dtype, .shape = value->shape, .data = inf_blob_ref(value->data)};
    }
    return INF_OK;
}

// Makes the tensors that a subgraph returned the outputs of the branch or loop node.
static void set_outputs(struct frame *frame, const struct inf_node *node,
                        struct inf_tensor *tensors)
{
    for (uint32_t i = 0; i < node->output_count; i++) {
        struct inf_value *value = &frame->graph.values[node->outputs[i]];
        value->dtype = tensors[i].dtype;
        value->shape = tensors[i].shape;
        value->data = tensors[i].data;
        tensors[i].data = NULL;
    }
}

static enum inf_code read_condition(const struct inf_tensor *tensor, bool *condition,
                                    struct inf_error *err)
{
    if (tensor->dtype != INF_DTYPE_BOOL || tensor->data->size_bytes != 1)
        return inf_fail(err, INF_INVALID, "the condition is %s of %zu bytes, wanted one bool",
                        inf_dtype_name(tensor->dtype), tensor->data->size_bytes);
    *condition = *(const uint8_t *)tensor->data->data != 0;
    return INF_OK;
}

static enum inf_code run_branch(struct inf_interpreter *interpreter, struct frame *frame,
                                const struct inf_node *node, struct exchange *exchange,
                                struct inf_error *err)
{
    const struct inf_value *value = &frame->graph.values[node->inputs[0]];
    struct inf_tensor tensor = {.dtype = value->dtype, .data = value->data};
    bool condition = false;
    INF_TRY(read_condition(&tensor, &condition, err));
    int32_t index = condition ? node->attrs.branch.then_graph : node->attrs.branch.else_graph;
    INF_TRY(inf_interpret(interpreter, frame->graph.subgraphs[index], exchange->inputs,
                          exchange->outputs, err));
    set_outputs(frame, node, exchange->outputs);
    return INF_OK;
}

static enum inf_code test_loop(struct inf_interpreter *interpreter, const struct frame *frame,
                               const struct inf_node *node, const struct exchange *exchange,
                               bool *condition, struct inf_error *err)
{
    struct inf_tensor tensor = {0};
    enum inf_code code =
        inf_interpret(interpreter, frame->graph.subgraphs[node->attrs.loop.condition_graph],
                      exchange->inputs, &tensor, err);
    if (code == INF_OK)
        code = read_condition(&tensor, condition, err);
    inf_tensor_memory_drop(&interpreter->memory, &tensor.data);
    return code;
}

static enum inf_code run_loop(struct inf_interpreter *interpreter, struct frame *frame,
                              const struct inf_node *node, struct exchange *exchange,
                              struct inf_error *err)
{
    const struct inf_graph *body = frame->graph.subgraphs[node->attrs.loop.body_graph];
    for (uint32_t iteration = 0;; iteration++) {
        bool condition = false;
        INF_TRY(test_loop(interpreter, frame, node, exchange, &condition, err));
        if (!condition)
            break;
        if (iteration == INF_LIMIT_LOOP_ITERATIONS)
            return inf_fail(err, INF_EXHAUSTED, "it goes on after %u iterations",
                            INF_LIMIT_LOOP_ITERATIONS);
        INF_TRY(inf_interpret(interpreter, body, exchange->inputs, exchange->outputs, err));
        for (uint32_t i = 0; i < node->output_count; i++) {
            inf_tensor_memory_drop(&interpreter->memory, &exchange->inputs[i].data);
            exchange->inputs[i] = exchange->outputs[i];
            exchange->outputs[i] = (struct inf_tensor){0};
        }
    }
    set_outputs(frame, node, exchange->inputs);
    return INF_OK;
}

static enum inf_code run_control(struct inf_interpreter *interpreter, struct frame *frame,
                                 const struct inf_node *node, struct inf_error *err)
{
    struct exchange exchange;
    bool is_branch = node->op == INF_OP_BRANCH;
    enum inf_code code = begin_exchange(&exchange, frame, node, is_branch, err);
    if (code == INF_OK)
        code = is_branch ? run_branch(interpreter, frame, node, &exchange, err)
                         : run_loop(interpreter, frame, node, &exchange, err);
    end_exchange(interpreter, &exchange);
    if (code != INF_OK)
        return inf_error_prefix(err, code, "node '%s' (%s)", node->name,
                                inf_op_info(node->op)->name);
    return INF_OK;
}

// --- running a whole graph or subgraph ---

static enum inf_code begin_frame(const struct inf_interpreter *interpreter, struct frame *frame,
                                 const struct inf_graph *source, struct inf_error *err)
{
    size_t count = (size_t)source->value_count + 1;
    *frame = (struct frame){.source = source};
    inf_graph_view(&frame->graph, source);
    frame->graph.run_strings = interpreter->strings;
    frame->graph.values = calloc(count, sizeof *frame->graph.values);
    frame->uses = calloc(count, sizeof *frame->uses);
    if (frame->graph.values == NULL || frame->uses == NULL)
        return no_memory(err, count * sizeof *frame->graph.values);
    if (source->value_count > 0)
        memcpy(frame->graph.values, source->values, source->value_count * sizeof *source->values);
    for (uint32_t i = 0; i < source->node_count; i++)
        for (uint32_t k = 0; k < source->nodes[i].input_count; k++)
            if (source->nodes[i].inputs[k] != INF_VALUE_NONE)
                frame->uses[source->nodes[i].inputs[k]]++;
    for (uint32_t i = 0; i < source->output_count; i++)
        frame->uses[source->outputs[i].value]++;
    for (uint32_t i = 0; i < source->value_count; i++)
        // Skip a constant that compiled programs hold in packed form. No node reads its bytes, so
        // the bytes may be evicted during the run.
        if (source->values[i].data != NULL &&
            !inf_node_programs_hold(interpreter->programs, source, i) &&
            source->values[i].data->data == NULL)
            return inf_fail_reason(err, INF_INTERNAL, INF_REASON_BUG,
                                   "'%s' is interpreted, but only its compiled form is there",
                                   source->values[i].name);
    return INF_OK;
}

static void end_frame(struct inf_interpreter *interpreter, struct frame *frame)
{
    for (uint32_t i = 0; frame->graph.values != NULL && i < frame->source->value_count; i++)
        release_value(interpreter, frame, i);
    free(frame->graph.values);
    free(frame->uses);
}

static enum inf_code bind_inputs(struct frame *frame, const struct inf_tensor *inputs,
                                 struct inf_error *err)
{
    for (uint32_t i = 0; i < frame->graph.input_count; i++) {
        const struct inf_port *port = &frame->graph.inputs[i];
        struct inf_value *value = &frame->graph.values[port->value];
        if (value->dtype != inputs[i].dtype)
            return inf_fail_reason(err, INF_INVALID, INF_REASON_DTYPE_MISMATCH,
                                   "input '%s' is %s, wanted %s", port->name,
                                   inf_dtype_name(inputs[i].dtype), inf_dtype_name(value->dtype));
        value->shape = inputs[i].shape;
        if (frame->uses[port->value] > 0)
            value->data = inf_blob_ref(inputs[i].data);
    }
    return INF_OK;
}

static enum inf_code run_nodes(struct inf_interpreter *interpreter, struct frame *frame,
                               struct inf_error *err)
{
    for (uint32_t i = 0; i < frame->graph.node_count; i++) {
        const struct inf_node *node = &frame->graph.nodes[i];
        if (inf_is_cancelled(interpreter->cancelled))
            return inf_fail(err, INF_CANCELLED, "cancelled before node '%s'", node->name);
        inf_run_step_set(interpreter->step, node->name);
        if (node->op == INF_OP_BRANCH || node->op == INF_OP_LOOP)
            INF_TRY(run_control(interpreter, frame, node, err));
        else
            INF_TRY(run_node(interpreter, frame, i, err));
        for (uint32_t k = 0; k < node->input_count; k++)
            drop_use(interpreter, frame, node->inputs[k]);
        for (uint32_t k = 0; k < node->output_count; k++)
            if (frame->uses[node->outputs[k]] == 0)
                release_value(interpreter, frame, node->outputs[k]);
    }
    return INF_OK;
}

enum inf_code inf_interpret(struct inf_interpreter *interpreter, const struct inf_graph *graph,
                            const struct inf_tensor *inputs, struct inf_tensor *outputs,
                            struct inf_error *err)
{
    struct frame frame;
    if (interpreter->subgraphs != NULL &&
        inf_subgraph_programs_fit(interpreter->subgraphs, graph, inputs)) {
        const struct inf_subgraph_run run = {.subgraph = graph,
                                             .inputs = inputs,
                                             .outputs = outputs,
                                             .slot = interpreter->slot,
                                             .cancelled = interpreter->cancelled,
                                             .step = interpreter->step,
                                             .strings = interpreter->strings,
                                             .core_use = interpreter->core_use,
                                             .memory = &interpreter->memory};
        return inf_subgraph_programs_run(interpreter->subgraphs, &run, err);
    }
    enum inf_code code = begin_frame(interpreter, &frame, graph, err);
    if (code == INF_OK)
        code = bind_inputs(&frame, inputs, err);
    if (code == INF_OK)
        code = run_nodes(interpreter, &frame, err);
    for (uint32_t i = 0; code == INF_OK && i < graph->output_count; i++) {
        const struct inf_value *value = &frame.graph.values[graph->outputs[i].value];
        outputs[i] = (struct inf_tensor){
            .dtype = value->dtype, .shape = value->shape, .data = inf_blob_ref(value->data)};
    }
    end_frame(interpreter, &frame);
    return code;
}
