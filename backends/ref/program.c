// SPDX-License-Identifier: Apache-2.0
// Programs of the reference device: a list of kernel calls in order. Also computes single nodes,
// for constant folding and the interpreter.
#include "backends/ref/program.h"

#include <stdlib.h>

#include "backends/base/cancel.h"
#include "backends/base/clock.h"
#include "backends/ref/dynamic.h"
#include "backends/ref/kernels.h"
#include "backends/ref/ref.h"

// The state of one slot (one concurrent run). Each slot has its own operands, because the runs are
// bound to different memory.
struct slot {
    struct inf_ref_call *calls;     // one for each step
    struct inf_ref_tensor *tensors; // inputs and outputs of all steps, in order
    struct inf_step_profile *steps; // times of the last profiled run
    uint32_t profiled;              // number of valid elements in `steps`
};

struct program {
    struct inf_program base;
    uint32_t step_count, slot_count;
    uint32_t *nodes; // indexed by step: the node's index in the graph
    struct slot *slots;
};

static struct inf_ref_tensor tensor_of(const struct inf_graph *graph, uint32_t index)
{
    if (index == INF_VALUE_NONE)
        return (struct inf_ref_tensor){.bound_value = INF_VALUE_NONE};
    const struct inf_value *value = &graph->values[index];
    bool constant = inf_graph_is_const(graph, index);
    return (struct inf_ref_tensor){
        .data = constant ? value->data->data : NULL,
        .dtype = value->dtype,
        .shape = &value->shape,
        .count = inf_shape_known(&value->shape) ? inf_shape_elements(&value->shape) : 0,
        .element_bytes = inf_dtype_size(value->dtype),
        .bound_value = constant ? INF_VALUE_NONE : index,
    };
}

// Fills in a call and its operands, which are stored at `tensors`. Returns the address after the
// last operand.
static struct inf_ref_tensor *fill_call(struct inf_ref_call *call, struct inf_ref_tensor *tensors,
                                        const struct inf_graph *graph, uint32_t node_index)
{
    const struct inf_node *node = &graph->nodes[node_index];
    *call = (struct inf_ref_call){.graph = graph,
                                  .node = node,
                                  .inputs = tensors,
                                  .outputs = tensors + node->input_count,
                                  .strings = {.constants = inf_shared_strings_pool(graph->strings),
                                              .run = graph->run_strings}};
    for (uint32_t i = 0; i < node->input_count; i++)
        *tensors++ = tensor_of(graph, node->inputs[i]);
    for (uint32_t i = 0; i < node->output_count; i++)
        *tensors++ = tensor_of(graph, node->outputs[i]);
    return tensors;
}

// --- compiling a segment to a list of kernel calls ---

static enum inf_code no_memory(struct inf_error *err)
{
    return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                           "no memory for a program of 'ref'");
}

static enum inf_code fill_slot(struct slot *slot, const struct inf_segment *segment,
                               size_t tensor_count, struct inf_error *err)
{
    size_t steps = INF_MAX(segment->node_count, 1u);
    slot->calls = calloc(steps, sizeof(*slot->calls));
    slot->steps = calloc(steps, sizeof(*slot->steps));
    slot->tensors = calloc(INF_MAX(tensor_count, (size_t)1), sizeof(*slot->tensors));
    if (slot->calls == NULL || slot->steps == NULL || slot->tensors == NULL)
        return no_memory(err);
    struct inf_ref_tensor *next = slot->tensors;
    for (uint32_t i = 0; i < segment->node_count; i++)
        next = fill_call(&slot->calls[i], next, segment->graph, segment->nodes[i]);
    return INF_OK;
}

static enum inf_code fill_program(struct program *program, const struct inf_segment *segment,
                                  struct inf_error *err)
{
    program->slots = calloc(segment->slots, sizeof(*program->slots));
    program->nodes = calloc(INF_MAX(segment->node_count, 1u), sizeof(*program->nodes));
    if (program->slots == NULL || program->nodes == NULL)
        return no_memory(err);
    program->slot_count = segment->slots;
    program->step_count = segment->node_count;
    size_t tensor_count = 0;
    for (uint32_t i = 0; i < segment->node_count; i++) {
        const struct inf_node *node = &segment->graph->nodes[segment->nodes[i]];
        program->nodes[i] = segment->nodes[i];
        tensor_count += (size_t)node->input_count + node->output_count;
    }
    for (uint32_t i = 0; i < segment->slots; i++)
        INF_TRY(fill_slot(&program->slots[i], segment, tensor_count, err));
    return INF_OK;
}

enum inf_code inf_ref_program_compile(struct inf_program **out_program, struct inf_device *device,
                                      const struct inf_segment *segment, uint32_t flags,
                                      struct inf_error *err)
{
    (void)device;
    (void)flags; // unused: weights are read in place, so nothing is uploaded
    struct program *program = calloc(1, sizeof(*program));
    if (program == NULL)
        return no_memory(err);
    enum inf_code code = fill_program(program, segment, err);
    if (code == INF_OK)
        *out_program = &program->base;
    else
        inf_ref_program_destroy(&program->base);
    return code;
}

void inf_ref_program_destroy(struct inf_program *base)
{
    struct program *program = (struct program *)base;
    for (uint32_t i = 0; i < program->slot_count; i++) {
        free(program->slots[i].calls);
        free(program->slots[i].steps);
        free(program->slots[i].tensors);
    }
    free(program->slots);
    free(program->nodes);
    free(program);
}

// --- running the kernel calls of a program ---

static void *bound_data(const struct inf_binding *binding)
{
    if (binding->host != NULL || binding->buffer == NULL)
        return binding->host;
    return (char *)inf_buffer_host(binding->buffer) + binding->offset;
}

// Sets the data pointers of one call's operands from the run's bindings.
static enum inf_code bind_call(struct inf_ref_tensor *tensors, size_t count,
                               const struct inf_run *run, struct inf_error *err)
{
    for (size_t i = 0; i < count; i++) {
        struct inf_ref_tensor *tensor = &tensors[i];
        if (tensor->bound_value == INF_VALUE_NONE)
            continue;
        tensor->data = bound_data(&run->bindings[tensor->bound_value]);
        if (tensor->data == NULL && tensor->count != 0)
            return inf_fail(err, INF_INVALID, "value %u is bound to no memory",
                            tensor->bound_value);
    }
    return INF_OK;
}

static enum inf_code compute_call(const struct inf_ref_call *call, struct inf_error *err)
{
    enum inf_code code = inf_ref_kernel_find(call->node->op)->run(call, err);
    if (code != INF_OK)
        return inf_error_prefix(err, code, "node '%s' (%s)", call->node->name,
                                inf_op_info(call->node->op)->name);
    return INF_OK;
}

static enum inf_code run_step(struct slot *slot, uint32_t step, struct inf_ref_tensor **tensors,
                              const struct inf_run *run, struct inf_error *err)
{
    struct inf_ref_call *call = &slot->calls[step];
    size_t operands = (size_t)call->node->input_count + call->node->output_count;
    INF_TRY(bind_call(*tensors, operands, run, err));
    *tensors += operands;
    call->cancelled = run->cancelled;
    call->strings.run = run->strings;
    return compute_call(call, err);
}

enum inf_code inf_ref_program_run(struct inf_program *base, const struct inf_run *run,
                                  struct inf_ticket *ticket, struct inf_error *err)
{
    struct program *program = (struct program *)base;
    struct slot *slot = &program->slots[run->slot];
    struct inf_ref_tensor *tensors = slot->tensors;
    slot->profiled = 0;
    for (uint32_t i = 0; i < program->step_count; i++) {
        if (inf_is_cancelled(run->cancelled))
            return inf_fail(err, INF_CANCELLED, "cancelled before step %u of %u", i + 1,
                            program->step_count);
        uint64_t start_ns = run->profile ? inf_clock_ns() : 0;
        inf_run_step_set(run->step, slot->calls[i].node->name);
        INF_TRY(run_step(slot, i, &tensors, run, err));
        if (!run->profile)
            continue;
        slot->steps[i] = (struct inf_step_profile){
            .node = program->nodes[i],
            .time_ns = inf_clock_ns() - start_ns,
            .kernel = inf_ref_kernel_find(slot->calls[i].node->op)->name,
        };
        slot->profiled = i + 1;
    }
    ticket->value = 0;
    return INF_OK;
}

uint32_t inf_ref_program_profile(const struct inf_program *base, uint32_t slot,
                                 struct inf_step_profile *steps, uint32_t capacity)
{
    const struct program *program = (const struct program *)base;
    const struct slot *from = &program->slots[slot];
    uint32_t count = INF_MIN(capacity, from->profiled);
    if (count != 0)
        memcpy(steps, from->steps, count * sizeof(*steps));
    return from->profiled;
}

static enum inf_code check_value(const struct inf_graph *graph, const struct inf_node *node,
                                 uint32_t index, struct inf_error *err)
{
    if (index == INF_VALUE_NONE)
        return INF_OK;
    const struct inf_value *value = &graph->values[index];
    if (inf_dtype_size(value->dtype) == 0 || !inf_shape_known(&value->shape)) {
        char text[INF_SHAPE_TEXT_SIZE];
        return inf_fail_reason(err, INF_UNSUPPORTED, INF_REASON_OPERATOR,
                               "node '%s' (%s): value '%s' is %s %s, not of known type and shape",
                               node->name, inf_op_info(node->op)->name, value->name,
                               inf_dtype_name(value->dtype), inf_shape_print(&value->shape, text));
    }
    return INF_OK;
}

enum inf_code inf_ref_program_supports(struct inf_device *device, const struct inf_graph *graph,
                                       uint32_t node_index, struct inf_error *err)
{
    (void)device;
    const struct inf_node *node = &graph->nodes[node_index];
    if (node->op == INF_OP_BRANCH || node->op == INF_OP_LOOP)
        return inf_fail_reason(err, INF_UNSUPPORTED, INF_REASON_OPERATOR,
                               "node '%s' (%s): branches and loops are the executable's to run",
                               node->name, inf_op_info(node->op)->name);
    for (uint32_t i = 0; i < node->input_count; i++)
        INF_TRY(check_value(graph, node, node->inputs[i], err));
    for (uint32_t i = 0; i < node->output_count; i++)
        INF_TRY(check_value(graph, node, node->outputs[i], err));
    return INF_OK;
}

// --- computing single nodes for constant folding and the interpreter ---

// Fills `call` for a node whose inputs are all constants. The caller frees *tensors.
static enum inf_code prepare_call(struct inf_ref_call *call, struct inf_ref_tensor **tensors,
                                  const struct inf_graph *graph, uint32_t node_index,
                                  struct inf_error *err)
{
    const struct inf_node *node = &graph->nodes[node_index];
    for (uint32_t i = 0; i < node->input_count; i++)
        if (node->inputs[i] != INF_VALUE_NONE && !inf_graph_is_const(graph, node->inputs[i]))
            return inf_fail(err, INF_INVALID, "node '%s' (%s): input %u is not constant",
                            node->name, inf_op_info(node->op)->name, i);
    size_t operands = (size_t)node->input_count + node->output_count;
    *tensors = calloc(INF_MAX(operands, (size_t)1), sizeof(**tensors));
    if (*tensors == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "no memory to compute node '%s'", node->name);
    fill_call(call, *tensors, graph, node_index);
    return INF_OK;
}

static enum inf_code measure_node(void *context, const struct inf_graph *graph, uint32_t node_index,
                                  struct inf_shape *shapes, struct inf_error *err)
{
    (void)context;
    const struct inf_node *node = &graph->nodes[node_index];
    struct inf_ref_tensor *tensors = NULL;
    struct inf_ref_call call;
    INF_TRY(prepare_call(&call, &tensors, graph, node_index, err));
    enum inf_code code = inf_ref_measure_shapes(&call, shapes, err);
    free(tensors);
    if (code != INF_OK)
        return inf_error_prefix(err, code, "node '%s' (%s)", node->name,
                                inf_op_info(node->op)->name);
    return INF_OK;
}

static enum inf_code evaluate_node(void *context, const struct inf_graph *graph,
                                   uint32_t node_index, struct inf_blob *const *outputs,
                                   const atomic_bool *cancelled, struct inf_error *err)
{
    (void)context;
    const struct inf_node *node = &graph->nodes[node_index];
    INF_TRY(inf_ref_program_supports(NULL, graph, node_index, err));
    struct inf_ref_tensor *tensors = NULL;
    struct inf_ref_call call;
    INF_TRY(prepare_call(&call, &tensors, graph, node_index, err));
    for (uint32_t i = 0; i < node->output_count; i++)
        tensors[node->input_count + i].data = outputs[i]->data;
    call.cancelled = cancelled;
    enum inf_code code = compute_call(&call, err);
    free(tensors);
    return code;
}

const struct inf_evaluator *inf_ref_evaluator(void)
{
    static const struct inf_evaluator evaluator = {.run = evaluate_node, .measure = measure_node};
    return &evaluator;
}
