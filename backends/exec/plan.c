// SPDX-License-Identifier: Apache-2.0
// Plans a graph in four stages.
//
//  1. Storage classes. Nodes such as reshape give the same bytes another shape. Their output
//     belongs to the class of their input, and they are not steps.
//  2. Devices. Each step goes to the first device that supports it; consecutive steps on one device
//     are a segment. A device may fuse a node into a later step; the values between are not stored.
//  3. Lifetimes. A class is alive from the step that writes it to the last step that reads it:
//
//         step     0   1   2   3
//         a        w---r                   b must not overlap a or c;
//         b            w---r               a and c may share bytes
//         c                w---r
//
//     Graph inputs and constants stay where they are. A class with a graph output is written
//     directly to the caller's memory.
//  4. Offsets. Intermediates are placed greedily, at each step the largest first. Each gets the
//     lowest offset at which it overlaps no class that is alive at the same time (after Pisarchyk
//     and Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020).
//
// No placement can need less than the largest sum of bytes alive at one step. live_max_bytes has
// that bound, so that tests can compare.
#include "backends/exec/plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/cancel.h"
#include "backends/base/sorted.h"
#include "backends/exec/arena_plan.h"
#include "backends/graph/readers.h"
#include "proto/core/limits.h"
#include "proto/core/span.h"

// least alignment of tensors in the arena, in bytes; devices may require more
#define ARENA_ALIGNMENT 64
#define STEP_NONE       UINT32_MAX

// Values that share the same bytes. Their root, the value that a step computes, identifies the
// class.
struct storage_class {
    struct inf_storage storage;
    // The size including slack, and the lifetime: from the step that writes the values of the class
    // (STEP_NONE: no step writes them) to the last step that accesses them.
    struct inf_arena_item item;
};

struct planner {
    const struct inf_graph *graph;
    struct inf_device *const *devices;
    uint32_t device_count;
    const struct inf_run_options *options;
    struct inf_plan *plan;
    uint32_t *root; // root[v]: the value that stands for all values that share bytes with value v
    // Indexed by value; only the entry of a class's root is used, that is, of the value that
    // stands for all values that share its bytes.
    struct storage_class *classes;
    uint32_t *step_devices; // indexed by step: the device that runs it
};

// Returns true if the node's output has the bytes of its first input.
static bool is_rename(const struct inf_graph *graph, const struct inf_node *node)
{
    switch (node->op) {
    case INF_OP_IDENTITY:
    case INF_OP_RESHAPE:
    case INF_OP_EXPAND_DIMS:
    case INF_OP_SQUEEZE:
        return true;
    case INF_OP_CAST:
        return graph->values[node->inputs[0]].dtype == graph->values[node->outputs[0]].dtype;
    default:
        return false;
    }
}

// Returns true if the node changes a part of its first input, memory of the caller, and gives it as
// its output. Such a node is a step, but its output has no bytes of its own.
static bool writes_input(const struct inf_graph *graph, const struct inf_node *node)
{
    const struct inf_value *x = &graph->values[node->inputs[0]];
    return node->op == INF_OP_APPEND && node->attrs.append.in_place &&
           x->producer == INF_NODE_NONE && x->data == NULL;
}

// Finds the root of each value, the value whose bytes it shares, and lists as steps the nodes that
// compute new bytes.
static void find_classes(struct planner *planner)
{
    const struct inf_graph *graph = planner->graph;
    for (uint32_t v = 0; v < graph->value_count; v++)
        planner->root[v] = v;
    for (uint32_t n = 0; n < graph->node_count; n++) {
        const struct inf_node *node = &graph->nodes[n];
        // Nodes are in an order in which the root of the input is already known.
        if (is_rename(graph, node) || writes_input(graph, node))
            planner->root[node->outputs[0]] = planner->root[node->inputs[0]];
        if (!is_rename(graph, node))
            planner->plan->steps[planner->plan->step_count++] = n;
    }
}

// Reports in one error why each unsupported node was refused.
static enum inf_code report_unsupported(struct planner *planner, struct inf_error *err)
{
    char text[900];
    size_t at = 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < planner->plan->step_count; i++) {
        if (planner->step_devices[i] != planner->device_count)
            continue;
        struct inf_error why = {0};
        uint32_t node = planner->plan->steps[i];
        (void)!inf_device_supports(planner->devices[planner->device_count - 1], planner->graph,
                                   node, &why);
        count++;
        if (at < sizeof text - 1)
            at += (size_t)snprintf(text + at, sizeof text - at, "%s'%s': %s", at > 0 ? "; " : "",
                                   planner->graph->nodes[node].name, why.text);
    }
    return inf_fail_reason(err, INF_UNSUPPORTED, INF_REASON_OPERATOR,
                           "%u nodes that no device can run: %s", count, text);
}

// Returns the index of the first step whose node is `node` or a later one. Steps are in the order
// of the graph.
static uint32_t find_step(const struct inf_plan *plan, uint32_t node)
{
    return inf_sorted_find(plan->steps, plan->step_count, node);
}

// Returns the device of the step that computes `value`. Returns NULL if none of the first `steps`
// steps computes it, because the value is then in host memory.
static const struct inf_device_info *find_maker(const struct planner *planner, uint32_t value,
                                                uint32_t steps)
{
    uint32_t producer = planner->graph->values[planner->root[value]].producer;
    if (producer == INF_NODE_NONE)
        return NULL;
    uint32_t step = find_step(planner->plan, producer);
    return step < steps && planner->plan->steps[step] == producer
               ? inf_device_info(planner->devices[planner->step_devices[step]])
               : NULL;
}

// Returns true if a host device should run the step instead of the first device, because all
// operands are in host memory and there is little to compute. TensorFlow.js's GPU backends use the
// same rule, shouldExecuteOnCPU().
static bool is_handed_off(const struct planner *planner, uint32_t step)
{
    const struct inf_device_info *first = inf_device_info(planner->devices[0]);
    const struct inf_node *node = &planner->graph->nodes[planner->plan->steps[step]];
    if (first->handoff_elements == 0 || planner->device_count < 2 || node->input_count == 0)
        return false;
    for (uint32_t i = 0; i < node->input_count; i++) {
        uint32_t value = node->inputs[i];
        if (value == INF_VALUE_NONE)
            continue;
        const struct inf_device_info *maker = find_maker(planner, value, step);
        if ((maker != NULL && !maker->host_memory) ||
            inf_shape_elements(&planner->graph->values[value].shape) >= first->handoff_elements)
            return false;
    }
    return true;
}

// Assigns each step the first device that supports it and should run it.
static enum inf_code assign_devices(struct planner *planner, struct inf_error *err)
{
    bool refused = false;
    for (uint32_t i = 0; i < planner->plan->step_count; i++) {
        uint32_t device = is_handed_off(planner, i) ? 1 : 0;
        while (device < planner->device_count &&
               inf_device_supports(planner->devices[device], planner->graph,
                                   planner->plan->steps[i], NULL) != INF_OK)
            device++;
        planner->step_devices[i] = device;
        refused |= device == planner->device_count;
    }
    return refused ? report_unsupported(planner, err) : INF_OK;
}

static void cut_segments(struct planner *planner)
{
    struct inf_plan *plan = planner->plan;
    for (uint32_t i = 0; i < plan->step_count; i++) {
        uint32_t count = plan->segment_count;
        if (count > 0 && plan->segments[count - 1].device == planner->step_devices[i])
            plan->segments[count - 1].count++;
        else
            plan->segments[plan->segment_count++] = (struct inf_plan_segment){
                .device = planner->step_devices[i], .first = i, .count = 1};
    }
}

struct inf_segment inf_plan_segment(const struct inf_plan *plan, uint32_t index,
                                    const struct inf_graph *graph, const struct inf_device *device,
                                    const struct inf_run_options *options)
{
    const struct inf_plan_segment *segment = &plan->segments[index];
    uint32_t offered = inf_device_info(device)->precisions;
    return (struct inf_segment){
        .graph = graph,
        .nodes = plan->steps + segment->first,
        .node_count = segment->count,
        .readers = plan->readers,
        .slots = 1,
        .precision = (offered & INF_PRECISION_BIT(options->precision)) != 0 ? options->precision
                                                                            : INF_PRECISION_FP32,
        .pinned = plan->pinned,
        .threads = segment->device == 0 ? options->threads : 0,
        .races = options->races,
        .cancelled = options->cancelled,
    };
}

static struct inf_segment segment_at(const struct planner *planner, uint32_t index)
{
    const struct inf_device *device = planner->devices[planner->plan->segments[index].device];
    return inf_plan_segment(planner->plan, index, planner->graph, device, planner->options);
}

static void choose_kernels(const struct planner *planner) INF_MAY_BLOCK
{
    for (uint32_t i = 0; i < planner->plan->segment_count; i++) {
        struct inf_segment segment = segment_at(planner, i);
        inf_device_choose_kernels(planner->devices[planner->plan->segments[i].device], &segment);
    }
}

// Returns the step that computes the node of step `step`. This is a later step if the device fuses
// the node.
static uint32_t computing_step(const struct planner *planner, uint32_t index, uint32_t step)
{
    const struct inf_segment segment = segment_at(planner, index);
    struct inf_device *device = planner->devices[planner->plan->segments[index].device];
    for (;;) {
        uint32_t next = inf_device_fused_into(device, &segment, planner->plan->steps[step]);
        if (next == INF_NODE_NONE)
            return step;
        step = find_step(planner->plan, next);
    }
}

// Extends the lifetime of the class of `value` to step `step`.
static void extend_lifetime(struct planner *planner, uint32_t value, uint32_t step)
{
    if (value == INF_VALUE_NONE)
        return;
    struct storage_class *class = &planner->classes[planner->root[value]];
    if (class->item.first_step == STEP_NONE)
        class->item.first_step = step;
    class->item.last_step = INF_MAX(class->item.last_step, step);
}

// Returns true if the value is an input or constant, or was stored by an earlier step.
static bool is_stored(const struct planner *planner, uint32_t value)
{
    if (value == INF_VALUE_NONE)
        return false;
    uint32_t root = planner->root[value];
    return planner->graph->values[root].producer == INF_NODE_NONE ||
           planner->classes[root].item.first_step != STEP_NONE;
}

static void find_lifetimes(struct planner *planner)
{
    for (uint32_t v = 0; v < planner->graph->value_count; v++)
        planner->classes[v].item.first_step = STEP_NONE;
    const struct inf_plan_segment *segments = planner->plan->segments;
    uint32_t segment = 0;
    for (uint32_t i = 0; i < planner->plan->step_count; i++) {
        const struct inf_node *node = &planner->graph->nodes[planner->plan->steps[i]];
        segment += i == segments[segment].first + segments[segment].count;
        uint32_t step = computing_step(planner, segment, i);
        for (uint32_t k = 0; k < node->input_count; k++)
            if (is_stored(planner, node->inputs[k]))
                extend_lifetime(planner, node->inputs[k], step);
        for (uint32_t k = 0; k < node->output_count && step == i; k++)
            extend_lifetime(planner, node->outputs[k], step);
    }
}

// Decides the storage of each class. Inputs and constants stay where they are, a class with a graph
// output is written to the output's memory, and all other classes are in the arena.
static enum inf_code place_classes(struct planner *planner, struct inf_error *err)
{
    const struct inf_graph *graph = planner->graph;
    for (uint32_t v = 0; v < graph->value_count; v++) {
        const struct inf_value *value = &graph->values[v];
        struct storage_class *class = &planner->classes[v];
        if (planner->root[v] != v)
            continue;
        if (value->data != NULL) {
            class->storage.place = INF_PLACE_CONST;
            class->storage.size_bytes = value->data->size_bytes;
            continue;
        }
        if (value->producer == INF_NODE_NONE)
            continue; // an input, which is handled below, or an unused class
        if (!inf_shape_bytes(&value->shape, value->dtype, &class->storage.size_bytes)) {
            char shape[INF_SHAPE_TEXT_SIZE];
            return inf_fail(err, INF_UNSUPPORTED,
                            "value '%s' has the shape %s of %s, wanted one known before the run",
                            value->name, inf_shape_print(&value->shape, shape),
                            inf_dtype_name(value->dtype));
        }
        // A storage class that is written and read only within one fused step needs no storage.
        if (class->item.first_step != STEP_NONE)
            class->storage.place = INF_PLACE_ARENA;
    }
    for (uint32_t i = 0; i < graph->input_count; i++) {
        uint32_t v = graph->inputs[i].value;
        struct inf_storage *storage = &planner->classes[v].storage;
        storage->place = INF_PLACE_INPUT;
        storage->index = i;
        if (!inf_shape_bytes(&graph->values[v].shape, graph->values[v].dtype, &storage->size_bytes))
            return inf_fail(err, INF_INVALID, "input '%s' has no known shape",
                            graph->inputs[i].name);
    }
    for (uint32_t i = 0; i < graph->output_count; i++) {
        uint32_t v = graph->outputs[i].value;
        struct inf_storage *storage = &planner->classes[planner->root[v]].storage;
        if (storage->place == INF_PLACE_ARENA) {
            storage->place = INF_PLACE_OUTPUT;
            storage->index = i;
        } else {
            planner->plan->copy_values[planner->plan->copy_count] = v;
            planner->plan->copy_outputs[planner->plan->copy_count++] = i;
        }
    }
    return INF_OK;
}

static int larger_first(const void *a, const void *b)
{
    const struct storage_class *const *left = a;
    const struct storage_class *const *right = b;
    if ((*left)->storage.size_bytes != (*right)->storage.size_bytes)
        return (*left)->storage.size_bytes < (*right)->storage.size_bytes ? 1 : -1;
    return (*left)->item.first_step < (*right)->item.first_step ? -1 : 1;
}

static void pad_classes(struct planner *planner)
{
    size_t alignment = ARENA_ALIGNMENT;
    for (uint32_t i = 0; i < planner->device_count; i++)
        alignment = INF_MAX(alignment, inf_device_info(planner->devices[i])->alignment);
    for (uint32_t v = 0; v < planner->graph->value_count; v++)
        planner->classes[v].item.size_bytes = inf_size_align(
            planner->classes[v].storage.size_bytes + INF_BLOB_SLACK_BYTES, alignment);
}

// Finds the largest sum of bytes alive at one step. No placement can need less.
static enum inf_code find_live_max(struct planner *planner, struct storage_class **classes,
                                   uint32_t count, struct inf_error *err)
{
    struct inf_plan *plan = planner->plan;
    // Two arrays in one allocation: born[s] counts the bytes whose lifetime begins at step s, and
    // ended[s] the bytes whose last step is s - 1.
    size_t *born = calloc(2 * ((size_t)plan->step_count + 2), sizeof *born);
    if (born == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory to plan %u steps", plan->step_count);
    size_t *ended = born + plan->step_count + 2;
    for (uint32_t i = 0; i < count; i++) {
        born[classes[i]->item.first_step] += classes[i]->item.size_bytes;
        ended[classes[i]->item.last_step + 1] += classes[i]->item.size_bytes;
    }
    size_t live = 0;
    for (uint32_t step = 0; step < plan->step_count; step++) {
        live += born[step];
        live -= ended[step];
        plan->live_max_bytes = INF_MAX(plan->live_max_bytes, live);
    }
    free(born);
    return INF_OK;
}

// Fails if intermediates or outputs are too large; names the node of the largest one.
static enum inf_code fail_arena(const struct planner *planner, const struct storage_class *largest,
                                struct inf_error *err)
{
    const struct inf_graph *graph = planner->graph;
    const struct inf_value *value = &graph->values[largest - planner->classes];
    char shape[INF_SHAPE_TEXT_SIZE];
    return inf_fail_reason(
        err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
        "node '%s': its output of shape %s is the largest of %s that take more than %llu bytes "
        "together",
        value->producer != INF_NODE_NONE ? graph->nodes[value->producer].name : value->name,
        inf_shape_print(&value->shape, shape),
        largest->storage.place == INF_PLACE_OUTPUT ? "outputs" : "intermediates",
        (unsigned long long)INF_LIMIT_ARENA_BYTES);
}

// Fills `order` with the storage classes that are in memory of kind `place` and that a step writes,
// the largest first. Returns the number of these classes.
static uint32_t list_classes(struct planner *planner, enum inf_place place,
                             struct storage_class **order)
{
    uint32_t count = 0;
    for (uint32_t v = 0; v < planner->graph->value_count; v++)
        if (planner->root[v] == v && planner->classes[v].storage.place == place &&
            planner->classes[v].item.first_step != STEP_NONE)
            order[count++] = &planner->classes[v];
    qsort(order, count, sizeof *order, larger_first);
    return count;
}

// Places `count` storage classes in the arena, and sets *bytes to the size of the arena so far.
static enum inf_code place_some(struct planner *planner, struct inf_arena_plan *arena,
                                struct storage_class **classes, uint32_t count, size_t *bytes,
                                struct inf_error *err)
{
    size_t limit = inf_arena_plan_size(arena) + (size_t)INF_LIMIT_ARENA_BYTES;
    for (uint32_t i = 0; i < count; i++) {
        inf_arena_plan_place(arena, &classes[i]->item);
        classes[i]->storage.offset = classes[i]->item.offset;
        if (inf_arena_plan_size(arena) > limit)
            return fail_arena(planner, classes[0], err);
    }
    *bytes = inf_arena_plan_size(arena);
    return INF_OK;
}

// Places all storage classes in the arena, intermediates first. Outputs get arena space for runs
// in which the caller does not want them.
static enum inf_code place_all(struct planner *planner, struct storage_class **order,
                               struct inf_error *err)
{
    struct inf_plan *plan = planner->plan;
    struct inf_arena_plan *arena = NULL;
    uint32_t count = list_classes(planner, INF_PLACE_ARENA, order);
    uint32_t outputs = list_classes(planner, INF_PLACE_OUTPUT, order + count);
    INF_TRY(inf_arena_plan_create(&arena, count + outputs, plan->step_count, err));
    enum inf_code code = place_some(planner, arena, order, count, &plan->arena_bytes, err);
    if (code == INF_OK)
        code = place_some(planner, arena, order + count, outputs, &plan->memory_bytes, err);
    inf_arena_plan_destroy(&arena);
    return code == INF_OK ? find_live_max(planner, order, count, err) : code;
}

static enum inf_code place_arena(struct planner *planner, struct inf_error *err)
{
    uint32_t value_count = planner->graph->value_count;
    struct storage_class **order = calloc((size_t)value_count + 1, sizeof *order);
    if (order == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory to plan %u values", value_count);
    enum inf_code code = place_all(planner, order, err);
    free(order);
    return code;
}

// Marks in plan->pinned the nodes whose hashes are in the run options. These nodes stay in fp32.
static enum inf_code find_pinned_nodes(struct planner *planner, struct inf_error *err)
{
    const struct inf_graph *graph = planner->graph;
    const struct inf_run_options *options = planner->options;
    if (options->pinned_count == 0)
        return INF_OK;
    bool *pinned = calloc((size_t)graph->node_count + 1, sizeof *pinned);
    if (pinned == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for the pins of %u nodes",
                        graph->node_count);
    planner->plan->pinned = pinned;
    for (uint32_t n = 0; n < graph->node_count; n++) {
        uint64_t hash = inf_node_hash(&graph->nodes[n]);
        for (uint32_t i = 0; i < options->pinned_count && !pinned[n]; i++)
            pinned[n] = options->pinned[i] == hash;
    }
    return INF_OK;
}

static enum inf_code check_cancelled(const struct planner *planner, struct inf_error *err)
{
    if (inf_is_cancelled(planner->options->cancelled))
        return inf_fail(err, INF_CANCELLED, "cancelled while %u nodes were planned",
                        planner->graph->node_count);
    return INF_OK;
}

static enum inf_code build_plan(struct planner *planner, struct inf_error *err) INF_MAY_BLOCK
{
    INF_TRY(find_pinned_nodes(planner, err));
    find_classes(planner);
    inf_graph_list_readers(planner->graph, planner->plan->readers);
    INF_TRY(assign_devices(planner, err));
    cut_segments(planner);
    choose_kernels(planner);
    INF_TRY(check_cancelled(planner, err));
    find_lifetimes(planner);
    INF_TRY(check_cancelled(planner, err));
    INF_TRY(place_classes(planner, err));
    pad_classes(planner);
    INF_TRY(place_arena(planner, err));
    for (uint32_t v = 0; v < planner->graph->value_count; v++)
        planner->plan->storage[v] = planner->classes[planner->root[v]].storage;
    return INF_OK;
}

// Allocates the planner's arrays. The caller frees all of them, even after a failure.
static bool alloc_tables(struct planner *planner)
{
    size_t values = (size_t)planner->graph->value_count + 1;
    size_t nodes = (size_t)planner->graph->node_count + 1;
    size_t outputs = (size_t)planner->graph->output_count + 1;
    struct inf_plan *plan = planner->plan;
    planner->root = calloc(values, sizeof *planner->root);
    planner->classes = calloc(values, sizeof *planner->classes);
    planner->step_devices = calloc(nodes, sizeof *planner->step_devices);
    plan->steps = calloc(nodes, sizeof *plan->steps);
    plan->segments = calloc(nodes, sizeof *plan->segments);
    plan->readers = calloc(nodes, sizeof *plan->readers);
    plan->storage = calloc(values, sizeof *plan->storage);
    plan->copy_values = calloc(outputs, sizeof *plan->copy_values);
    plan->copy_outputs = calloc(outputs, sizeof *plan->copy_outputs);
    plan->value_count = planner->graph->value_count;
    return planner->root != NULL && planner->classes != NULL && planner->step_devices != NULL &&
           plan->readers != NULL && plan->steps != NULL && plan->segments != NULL &&
           plan->storage != NULL && plan->copy_values != NULL && plan->copy_outputs != NULL;
}

enum inf_code inf_plan_build(struct inf_plan **out_plan, const struct inf_graph *graph,
                             struct inf_device *const *devices, uint32_t device_count,
                             const struct inf_run_options *options, struct inf_error *err)
{
    struct inf_plan *plan = calloc(1, sizeof *plan);
    if (plan == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for a plan");
    struct planner planner = {.graph = graph,
                              .devices = devices,
                              .device_count = device_count,
                              .options = options,
                              .plan = plan};
    enum inf_code code =
        alloc_tables(&planner)
            ? build_plan(&planner, err)
            : inf_fail(err, INF_EXHAUSTED, "no memory to plan %u nodes", graph->node_count);
    plan->roots = planner.root;
    free(planner.classes);
    free(planner.step_devices);
    if (code == INF_OK)
        *out_plan = plan;
    else
        inf_plan_destroy(&plan);
    return code;
}

void inf_plan_destroy(struct inf_plan **plan)
{
    if (*plan == NULL)
        return;
    free((*plan)->steps);
    free((*plan)->segments);
    free((*plan)->storage);
    free((*plan)->roots);
    free((*plan)->pinned);
    free((*plan)->readers);
    free((*plan)->copy_values);
    free((*plan)->copy_outputs);
    free(*plan);
    *plan = NULL;
}

enum inf_code inf_plan_check_bytes(const struct inf_plan *plan, uint64_t bytes_max,
                                   struct inf_error *err)
{
    if (bytes_max == 0 || plan->memory_bytes <= bytes_max)
        return INF_OK;
    return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_QUOTA_BYTES,
                           "the intermediate results of this request take %zu bytes, "
                           "request_memory_max is %" PRIu64,
                           plan->memory_bytes, bytes_max);
}

enum inf_code inf_plan_check_room(const struct inf_plan *plan, uint64_t room_bytes,
                                  struct inf_error *err)
{
    if (room_bytes == 0 || plan->memory_bytes <= room_bytes)
        return INF_OK;
    return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                           "the intermediate results of this request take %zu bytes, memory_max "
                           "leaves %" PRIu64 "; inferctl status shows what holds the memory",
                           plan->memory_bytes, room_bytes);
}
