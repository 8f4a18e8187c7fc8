// SPDX-License-Identifier: Apache-2.0
// Adds nodes to a random graph. When a node is added, it is computed several times, each time with
// other rounding errors (in every world). A node is removed again if later nodes could not use its
// outputs.
#include "tests/conformance/random_node.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "backends/graph/shape/infer.h"
#include "backends/graph/shape/verify.h"

// --- storing the values of a random graph ---

void random_graph_keep(struct random_graph *random, uint32_t index, struct random_value *value)
{
    if (index >= random->value_capacity) {
        uint32_t capacity = index * 2 + 64;
        random->values = realloc(random->values, capacity * sizeof *random->values);
        must((random->values) != NULL, "no memory");
        memset(random->values + random->value_capacity, 0,
               (capacity - random->value_capacity) * sizeof *random->values);
        random->value_capacity = capacity;
    }
    random->values[index] = *value;
    *value = (struct random_value){0};
}

struct source source_value(uint32_t value)
{
    return (struct source){.value = value};
}

struct source source_list(const int32_t *elements, uint32_t count)
{
    struct source source = {.value = INF_VALUE_NONE, .constant = true};
    source.tensor = (struct inf_tensor){.dtype = INF_DTYPE_I32,
                                        .shape = INF_SHAPE(count),
                                        .data = inf_blob_create(count * sizeof *elements)};
    must((source.tensor.data) != NULL, "no memory");
    if (count != 0)
        memcpy(source.tensor.data->data, elements, count * sizeof *elements);
    return source;
}

struct source source_operand(const struct one_tensor *operand)
{
    struct source source = {.value = INF_VALUE_NONE, .constant = operand->constant};
    if (operand->absent)
        return source;
    source.tensor = (struct inf_tensor){.dtype = operand->dtype,
                                        .shape = operand->shape,
                                        .data = inf_blob_create(operand->size_bytes)};
    must((source.tensor.data) != NULL, "no memory");
    if (operand->size_bytes != 0)
        memcpy(source.tensor.data->data, operand->data, operand->size_bytes);
    return source;
}

bool source_is_absent(const struct source *source)
{
    return source->value == INF_VALUE_NONE && source->tensor.data == NULL;
}

static const struct inf_tensor *source_tensor(const struct random_graph *random,
                                              const struct source *source, int world)
{
    return source->value != INF_VALUE_NONE ? &random->values[source->value].worlds[world]
                                           : &source->tensor;
}

uint32_t random_graph_settle(struct random_graph *random, struct source *source)
{
    uint32_t value = source->value;
    struct inf_tensor *tensor = &source->tensor;
    if (source_is_absent(source) || value != INF_VALUE_NONE)
        return value;
    struct random_value known = {.exact = true, .constant = source->constant};
    for (int world = 0; world < RANDOM_WORLDS; world++)
        tensor_share(&known.worlds[world], tensor);
    if (source->constant) {
        must_be_ok(inf_graph_add_const(random->graph, "c", tensor->dtype, &tensor->shape,
                                       inf_blob_ref(tensor->data), &value, NULL));
    } else {
        char name[24];
        snprintf(name, sizeof name, "x%u", random->graph->input_count);
        must_be_ok(
            inf_graph_add_value(random->graph, name, tensor->dtype, &tensor->shape, &value, NULL));
        must_be_ok(inf_graph_add_input(random->graph, name, value, NULL));
    }
    random_graph_keep(random, value, &known);
    return value;
}

// --- adding a node to a random graph ---

void plan_begin(struct plan *plan, enum inf_op op)
{
    memset(plan, 0, sizeof *plan);
    plan->op = op;
    plan->output_count = 1;
    inf_attrs_init(&plan->attrs, op);
}

static void plan_end(struct plan *plan)
{
    for (uint32_t i = 0; i < plan->source_count; i++)
        inf_tensor_clear(&plan->sources[i].tensor);
    for (int i = 0; i < 2 && plan->sides != NULL; i++)
        random_graph_free(&plan->sides[i]);
}

void plan_source(struct plan *plan, struct source source)
{
    must(plan->source_count < PLAN_SOURCES_MAX, "too many operands");
    plan->sources[plan->source_count++] = source;
}

static void set_sides(struct inf_graph *graph, struct inf_node *node, struct inf_graph *sides[2])
{
    int32_t *indices[2];
    must(inf_node_subgraphs(node, indices), "a node without subgraphs");
    for (int i = 0; i < 2; i++) {
        uint32_t index;
        must_be_ok(inf_graph_add_subgraph(graph, &sides[i], &index, NULL));
        *indices[i] = (int32_t)index;
    }
}

// Makes a graph that contains only the planned node, with all operands as constants, so that the
// node can be computed alone.
static enum inf_code fill_alone(const struct random_graph *random, const struct plan *plan,
                                int world, struct inf_graph *graph, struct inf_error *err)
{
    uint32_t operands[PLAN_SOURCES_MAX], index;
    for (uint32_t i = 0; i < plan->source_count; i++) {
        operands[i] = INF_VALUE_NONE;
        if (source_is_absent(&plan->sources[i]))
            continue;
        const struct inf_tensor *tensor = source_tensor(random, &plan->sources[i], world);
        INF_TRY(inf_graph_add_const(graph, "c", tensor->dtype, &tensor->shape,
                                    inf_blob_ref(tensor->data), &operands[i], err));
    }
    INF_TRY(inf_graph_add_node(graph, plan->op, "node", "", operands, plan->source_count,
                               plan->output_count, &index, err));
    graph->nodes[index].attrs = plan->attrs;
    if (plan->sides != NULL) {
        struct inf_graph *sides[2] = {NULL, NULL};
        for (int i = 0; i < 2; i++)
            INF_TRY(inf_graph_clone(&sides[i], plan->sides[i].graph, err));
        set_sides(graph, &graph->nodes[index], sides);
    }
    for (uint32_t i = 0; i < plan->output_count; i++) {
        char name[24];
        snprintf(name, sizeof name, "y%u", i);
        INF_TRY(inf_graph_add_output(graph, name, graph->nodes[index].outputs[i], err));
    }
    INF_TRY(inf_shape_infer(graph, err));
    return inf_graph_verify(graph, err);
}

static enum inf_code compute_outputs(const struct random_graph *random, const struct plan *plan,
                                     int world, struct inf_tensor *outputs, struct inf_error *err)
{
    INF_CLEANUP(inf_graph_destroy) struct inf_graph *graph = NULL;
    INF_TRY(inf_graph_create(&graph, err));
    INF_TRY(fill_alone(random, plan, world, graph, err));
    struct world here = {.random.state = random->random.state + (uint64_t)world,
                         .disturbed = world != 0};
    struct inf_evaluator evaluator = world_evaluator(&here);
    struct inf_interpreter interpreter = {.evaluator = &evaluator};
    return inf_interpret(&interpreter, graph, NULL, outputs, err);
}

// Returns true if every operand is exact, that is no operand was rounded.
static bool has_exact_operands(const struct random_graph *random, const struct plan *plan)
{
    for (uint32_t i = 0; i < plan->source_count; i++)
        if (plan->sources[i].value != INF_VALUE_NONE &&
            !random->values[plan->sources[i].value].exact)
            return false;
    return true;
}

// Returns true if an operand has a NaN although the operator has no rule for NaN, a float so large
// that sums may overflow, or a float so small that flushing it to 0 would change the result.
static bool has_odd_operands(const struct random_graph *random, const struct plan *plan)
{
    for (uint32_t i = 0; i < plan->source_count; i++) {
        if (source_is_absent(&plan->sources[i]))
            continue;
        const struct inf_tensor *tensor = source_tensor(random, &plan->sources[i], 0);
        size_t count = inf_shape_elements(&tensor->shape);
        for (size_t k = 0; inf_dtype_is_float(tensor->dtype) && k < count; k++) {
            double value = tensor_element(tensor, k);
            if ((plan->nature.ordered && isnan(value)) ||
                (plan->nature.rounds && !(fabs(value) <= RANDOM_LARGEST_MAX)) ||
                (plan->nature.jumps && value != 0 && fabs(value) < (double)FLT_MIN))
                return true;
        }
    }
    return false;
}

static bool compute_all(const struct random_graph *random, const struct plan *plan,
                        struct random_value *outputs)
{
    if (has_odd_operands(random, plan))
        return false;
    for (int world = 0; world < RANDOM_WORLDS; world++) {
        struct inf_tensor tensors[ONE_NODE_OUTPUTS] = {0};
        enum inf_code code = compute_outputs(random, plan, world, tensors, NULL);
        for (uint32_t i = 0; i < plan->output_count; i++)
            outputs[i].worlds[world] = tensors[i];
        if (code != INF_OK)
            return false;
    }
    bool exact = has_exact_operands(random, plan) || plan->op == INF_OP_SHAPE;
    for (uint32_t i = 0; i < plan->output_count; i++) {
        outputs[i].exact =
            exact && (!plan->nature.rounds || !inf_dtype_is_float(outputs[i].worlds[0].dtype));
        if (!random_value_is_sound(plan->op, &outputs[i]))
            return false;
    }
    return true;
}

uint32_t plan_add(struct random_graph *random, struct plan *plan)
{
    struct random_value outputs[ONE_NODE_OUTPUTS] = {0};
    uint32_t operands[PLAN_SOURCES_MAX], index, first = INF_VALUE_NONE;
    must(plan->output_count <= ONE_NODE_OUTPUTS, "too many outputs");
    if (compute_all(random, plan, outputs)) {
        for (uint32_t i = 0; i < plan->source_count; i++) {
            operands[i] = random_graph_settle(random, &plan->sources[i]);
            if (operands[i] != INF_VALUE_NONE)
                random->values[operands[i]].used = true;
        }
        char name[24];
        snprintf(name, sizeof name, "n%u", random->graph->node_count);
        must_be_ok(inf_graph_add_node(random->graph, plan->op, name, "", operands,
                                      plan->source_count, plan->output_count, &index, NULL));
        struct inf_node *node = &random->graph->nodes[index];
        node->attrs = plan->attrs;
        if (plan->sides != NULL) {
            struct inf_graph *sides[2] = {plan->sides[0].graph, plan->sides[1].graph};
            plan->sides[0].graph = plan->sides[1].graph = NULL;
            set_sides(random->graph, node, sides);
        }
        first = node->outputs[0];
        for (uint32_t i = 0; i < plan->output_count; i++)
            random_graph_keep(random, node->outputs[i], &outputs[i]);
    }
    for (uint32_t i = 0; i < plan->output_count; i++)
        random_value_free(&outputs[i]);
    plan_end(plan);
    return first;
}

// --- adding nodes that convert a value to fit an operand ---

static uint32_t add_reshape(struct random_graph *random, uint32_t value,
                            const struct inf_shape *shape)
{
    int32_t sizes[INF_LIMIT_RANK];
    struct plan plan;
    for (int32_t i = 0; i < shape->rank; i++)
        sizes[i] = (int32_t)shape->dims[i];
    plan_begin(&plan, INF_OP_RESHAPE);
    plan_source(&plan, source_value(value));
    plan_source(&plan, source_list(sizes, (uint32_t)shape->rank));
    return plan_add(random, &plan);
}

static uint32_t add_cast(struct random_graph *random, uint32_t value, enum inf_dtype dtype)
{
    struct plan plan;
    plan_begin(&plan, INF_OP_CAST);
    plan.attrs.cast.dtype = dtype;
    struct random_nature nature =
        random_nature(INF_OP_CAST, &plan.attrs, random->values[value].worlds[0].dtype, 1);
    if (nature.open == 0 || (nature.jumps && !random->values[value].exact))
        return INF_VALUE_NONE;
    plan.nature = nature;
    plan_source(&plan, source_value(value));
    return plan_add(random, &plan);
}

// Converts a list of `has` elements to `count` elements: truncates a long list, and repeats a short
// one.
static uint32_t add_resize(struct random_graph *random, uint32_t value, size_t has, size_t count)
{
    struct plan plan;
    if (has < count) {
        plan_begin(&plan, INF_OP_TILE);
        plan_source(&plan, source_value(value));
        plan_source(&plan, source_list((int32_t[]){(int32_t)((count + has - 1) / has)}, 1));
        value = plan_add(random, &plan);
    }
    size_t made = (count + has - 1) / has * has;
    if (value == INF_VALUE_NONE || made == count)
        return value;
    plan_begin(&plan, INF_OP_SLICE);
    plan_source(&plan, source_value(value));
    plan_source(&plan, source_list((int32_t[]){0}, 1));
    plan_source(&plan, source_list((int32_t[]){(int32_t)count}, 1));
    plan_source(&plan, source_list((int32_t[]){1}, 1));
    return plan_add(random, &plan);
}

uint32_t random_graph_fit(struct random_graph *random, uint32_t value, enum inf_dtype dtype,
                          const struct inf_shape *shape)
{
    if (random->values[value].worlds[0].dtype != dtype)
        value = add_cast(random, value, dtype);
    if (value == INF_VALUE_NONE)
        return value;
    struct inf_shape from = random->values[value].worlds[0].shape;
    size_t has = inf_shape_elements(&from), wants = inf_shape_elements(shape);
    if (inf_shape_equal(&from, shape))
        return value;
    if (has != wants) {
        if (has == 0 || !random_once_in(&random->random, 3))
            return INF_VALUE_NONE;
        struct inf_shape flat = INF_SHAPE((int64_t)has);
        value = add_reshape(random, value, &flat);
        if (value != INF_VALUE_NONE)
            value = add_resize(random, value, has, wants);
    }
    return value == INF_VALUE_NONE ? value : add_reshape(random, value, shape);
}
