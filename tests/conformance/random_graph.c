// SPDX-License-Identifier: Apache-2.0
// Grows random graphs: chooses the next operator, and the values that its operands read.
#include "tests/conformance/random_node.h"

#include <string.h>

#include "backends/graph/shape/infer.h"
#include "backends/graph/shape/verify.h"

#define DEPTH_MAX 2
// Number of existing values that are tried as operand before nodes are added that convert a value.
#define TRIES_MAX 6

// --- making cases of operators whose output sizes depend on values ---

static void make_nonzero(struct one_node *one, struct random *random, uint32_t number)
{
    (void)number;
    struct operand x = {.dtype = random_dtype(random, DTYPES_ANY),
                        .shape = random_shape(random, random_rank(random, 1, 5)),
                        .extremes = EXTREME_ZERO};
    add_operand(one, random, &x);
}

static void make_unique(struct one_node *one, struct random *random, uint32_t number)
{
    struct operand x = {.dtype = random_dtype(random, DTYPES_NUMBER),
                        .shape = random_shape(random, random_rank(random, 1, 3)),
                        .filling = FILL_POWERS};
    one->output_count = 4;
    one->attrs.unique.axis = (int32_t)random_in(random, 0, INF_MAX(x.shape.rank - 1, 0));
    one->attrs.unique.sorted = number % 2 == 0;
    add_operand(one, random, &x);
}

static void make_list_diff(struct one_node *one, struct random *random, uint32_t number)
{
    (void)number;
    struct operand x = {.dtype = random_dtype(random, DTYPES_NUMBER),
                        .shape = random_shape(random, 1),
                        .filling = FILL_POWERS};
    one->output_count = 2;
    add_operand(one, random, &x);
    x.shape = random_shape(random, 1);
    add_operand(one, random, &x);
}

static void make_list_set(struct one_node *one, struct random *random, uint32_t number)
{
    struct operand list = {.dtype = random_dtype(random, DTYPES_NUMBER),
                           .shape = random_shape(random, random_rank(random, 1, 4))};
    struct operand item = {.dtype = list.dtype, .shape = {.rank = list.shape.rank - 1}};
    if (list.shape.rank > 0)
        memcpy(item.shape.dims, list.shape.dims + 1,
               (size_t)item.shape.rank * sizeof item.shape.dims[0]);
    bool grow = number % 2 == 0 || list.shape.dims[0] == 0;
    one->attrs.list_set.grow = grow;
    int32_t index = (int32_t)random_in(random, 0, list.shape.dims[0] + (grow ? 2 : -1));
    add_operand(one, random, &list);
    one_node_input(one, INF_DTYPE_I32, (struct inf_shape){0}, &index);
    add_operand(one, random, &item);
}

static void make_nms_node(struct one_node *one, struct random *random, uint32_t number)
{
    const float thresholds[] = {0.5f, number % 3 == 0 ? 0.25f : -10.0f};
    int64_t count = random_in(random, 0, 9);
    int32_t most = (int32_t)random_in(random, 0, 9);
    int64_t pictures = random_in(random, 0, 3), classes = random_in(random, 1, 3);
    bool is_one = number % 4 < 2;
    struct operand boxes = {.dtype = INF_DTYPE_F32,
                            .shape = is_one ? INF_SHAPE(count, 4) : INF_SHAPE(pictures, count, 4)};
    struct operand scores = {.dtype = INF_DTYPE_F32,
                             .shape =
                                 is_one ? INF_SHAPE(count) : INF_SHAPE(pictures, classes, count)};
    one->output_count = 3;
    one->attrs.nms.pad = number % 4 == 0;
    add_operand(one, random, &boxes);
    add_operand(one, random, &scores);
    one_node_input(one, INF_DTYPE_I32, (struct inf_shape){0}, &most);
    for (int i = 0; i < 2; i++)
        one_node_const(one, INF_DTYPE_F32, (struct inf_shape){0}, &thresholds[i]);
}

static case_maker *maker_of(enum inf_op op)
{
    switch (op) {
    case INF_OP_NONZERO:
        return make_nonzero;
    case INF_OP_UNIQUE:
        return make_unique;
    case INF_OP_LIST_DIFF:
        return make_list_diff;
    case INF_OP_LIST_SET:
        return make_list_set;
    case INF_OP_NMS:
        return make_nms_node;
    default:
        return case_families[op].make;
    }
}

// Returns a random value that is the result of a node or an input, usually a recent one. Returns
// INF_VALUE_NONE if the graph has no such value.
static uint32_t pick_value(struct random_graph *random)
{
    int64_t count = random->graph->value_count;
    for (int tries = 0; tries < 20 && count > 0; tries++) {
        int64_t back = random_in(&random->random, 0, count - 1);
        if (tries == 0 && !random_once_in(&random->random, 3))
            back = 0;
        else if (!random_once_in(&random->random, 3))
            back = random_in(&random->random, 0, INF_MIN(back, (int64_t)12));
        uint32_t value = (uint32_t)(count - 1 - back);
        if (!random->values[value].constant && random->values[value].worlds[0].data != NULL)
            return value;
    }
    return INF_VALUE_NONE;
}

// --- choosing and adding nodes ---

// Returns true if fusing passes look for patterns that begin with this operator, that is with a
// convolution or matrix product.
static bool is_linear(enum inf_op op)
{
    return op == INF_OP_CONV2D || op == INF_OP_DEPTHWISE_CONV2D || op == INF_OP_CONV2D_TRANSPOSE ||
           op == INF_OP_MATMUL || op == INF_OP_BINARY || op == INF_OP_BATCH_NORM ||
           op == INF_OP_PAD;
}

// Draws an operator. Operators that are frequent in networks are drawn more often, so that passes
// find their patterns.
static enum inf_op pick_op(struct random_graph *graph)
{
    static const enum inf_op behind[] = {INF_OP_UNARY,      INF_OP_UNARY,  INF_OP_CLIP,
                                         INF_OP_BINARY,     INF_OP_BINARY, INF_OP_PRELU,
                                         INF_OP_BATCH_NORM, INF_OP_CONV2D};
    static const enum inf_op usual[] = {
        INF_OP_UNARY,      INF_OP_UNARY,  INF_OP_UNARY, INF_OP_UNARY,   INF_OP_BINARY,
        INF_OP_BINARY,     INF_OP_BINARY, INF_OP_CLIP,  INF_OP_CONV2D,  INF_OP_DEPTHWISE_CONV2D,
        INF_OP_MATMUL,     INF_OP_POOL2D, INF_OP_PAD,   INF_OP_RESHAPE, INF_OP_TRANSPOSE,
        INF_OP_BATCH_NORM, INF_OP_CONCAT, INF_OP_SLICE, INF_OP_REDUCE,  INF_OP_SOFTMAX,
        INF_OP_RESIZE,     INF_OP_SPLIT,  INF_OP_PRELU};
    const struct inf_graph *nodes = graph->graph;
    struct random *random = &graph->random;
    if (nodes->node_count > 0 && is_linear(nodes->nodes[nodes->node_count - 1].op) &&
        !random_once_in(random, 3))
        return behind[random_in(random, 0, (int64_t)INF_ARRAY_LENGTH(behind) - 1)];
    if (random_once_in(random, 25))
        return random_once_in(random, 2) ? INF_OP_BRANCH : INF_OP_LOOP;
    if (random_once_in(random, 2))
        return usual[random_in(random, 0, (int64_t)INF_ARRAY_LENGTH(usual) - 1)];
    return (enum inf_op)random_in(random, 0, INF_OP_COUNT - 1);
}

// Returns a case number. For unary and binary operators, half of the numbers choose a kind that is
// frequent in networks and that passes look for.
static uint32_t pick_case(struct random *random, enum inf_op op)
{
    static const enum inf_unary_kind unary[] = {
        INF_UNARY_RELU, INF_UNARY_RELU6,      INF_UNARY_SIGMOID,   INF_UNARY_TANH,
        INF_UNARY_ELU,  INF_UNARY_LEAKY_RELU, INF_UNARY_HARD_SWISH};
    static const enum inf_binary_kind binary[] = {INF_BINARY_ADD, INF_BINARY_MUL, INF_BINARY_SUB,
                                                  INF_BINARY_MIN, INF_BINARY_MAX};
    bool usual = random_once_in(random, 2);
    if (usual && op == INF_OP_UNARY)
        return unary[random_in(random, 0, (int64_t)INF_ARRAY_LENGTH(unary) - 1)];
    if (usual && op == INF_OP_BINARY)
        return binary[random_in(random, 0, (int64_t)INF_ARRAY_LENGTH(binary) - 1)];
    return (uint32_t)random_in(random, 0, 1 << 20);
}

// Makes operand `index` read `value`, converted to fit. Returns false if the operator restricts
// which values this operand may have.
static bool feed_operand(struct random_graph *random, struct plan *plan, uint32_t index,
                         uint32_t value, const struct random_nature *nature)
{
    const struct inf_tensor *wanted = &plan->sources[index].tensor;
    enum inf_dtype dtype = wanted->dtype;
    struct inf_shape shape = wanted->shape;
    if (value == INF_VALUE_NONE || (nature->open >> INF_MIN(index, 31u) & 1) == 0 ||
        (nature->jumps && !random->values[value].exact))
        return false;
    value = random_graph_fit(random, value, dtype, &shape);
    if (value == INF_VALUE_NONE || (nature->jumps && !random->values[value].exact))
        return false;
    inf_tensor_clear(&plan->sources[index].tensor);
    plan->sources[index].value = value;
    return true;
}

// Makes a case of the operator. The first operand has the type and shape of `value` if the operator
// allows this.
static void make_case(struct random_graph *random, enum inf_op op, uint32_t value,
                      struct one_node *one)
{
    struct random *numbers = &random->random;
    struct wish wish = {.dtype = INF_DTYPE_F32};
    if (value != INF_VALUE_NONE)
        wish = (struct wish){.dtype = random->values[value].worlds[0].dtype,
                             .shape = random->values[value].worlds[0].shape};
    else
        wish.shape = random_shape(numbers, (int32_t)random_in(numbers, 0, INF_LIMIT_RANK));
    wish.shape_granted = inf_shape_elements(&wish.shape) > CASE_ELEMENTS_MAX;
    one_node_init(one, op);
    numbers->tame = !random_once_in(numbers, 4);
    numbers->wish = &wish;
    maker_of(op)(one, numbers, pick_case(numbers, op));
    numbers->wish = NULL;
}

// Returns true if `value` already has the type and shape that the first operand needs.
static bool is_like(const struct random_graph *random, uint32_t value, const struct one_node *one)
{
    const struct inf_tensor *tensor = &random->values[value].worlds[0];
    return one->input_count > 0 && one->inputs[0].dtype == tensor->dtype &&
           inf_shape_equal(&one->inputs[0].shape, &tensor->shape);
}

// Makes a case of the operator and chooses a value for its first operand. Prefers a value that fits
// without conversion, if a few tries find one.
static uint32_t choose_case(struct random_graph *random, enum inf_op op, struct one_node *one)
{
    for (int tries = 1;; tries++) {
        uint32_t value = random_once_in(&random->random, 12) ? INF_VALUE_NONE : pick_value(random);
        make_case(random, op, value, one);
        if (tries == TRIES_MAX || value == INF_VALUE_NONE || is_like(random, value, one))
            return value;
        one_node_fini(one);
    }
}

static void grow_plain(struct random_graph *random, enum inf_op op)
{
    struct one_node one;
    struct plan plan;
    uint32_t value = choose_case(random, op, &one);
    struct random_nature nature =
        random_nature(op, &one.attrs, one.inputs[0].dtype, one.output_count);
    plan_begin(&plan, op);
    plan.attrs = one.attrs;
    plan.output_count = one.output_count;
    plan.nature = nature;
    for (uint32_t i = 0; i < one.input_count; i++) {
        plan_source(&plan, source_operand(&one.inputs[i]));
        struct source *source = &plan.sources[i];
        bool wired =
            !source_is_absent(source) && (!source->constant || random_once_in(&random->random, 5));
        if (i > 0 && wired)
            value = random_once_in(&random->random, 2) ? INF_VALUE_NONE : pick_value(random);
        if (!wired || !feed_operand(random, &plan, i, value, &nature))
            source->constant |= random->closed || random_once_in(&random->random, 4);
    }
    one_node_fini(&one);
    plan_add(random, &plan);
}

static void grow_graph(struct random_graph *random, uint32_t nodes);

// Starts a subgraph (branch or loop body) of the random graph `outer`. Input i of the subgraph has
// the type and shape of values[i] of `outer`.
static void begin_side(struct random_graph *side, struct random_graph *outer,
                       const uint32_t *values, uint32_t count)
{
    *side = (struct random_graph){
        .random.state = random_bits(&outer->random), .closed = true, .depth = outer->depth + 1};
    must_be_ok(inf_graph_create(&side->graph, NULL));
    for (uint32_t i = 0; i < count; i++) {
        const struct random_value *from = &outer->values[values[i]];
        struct random_value known = {.exact = from->exact};
        uint32_t value;
        char name[24];
        snprintf(name, sizeof name, "x%u", i);
        for (int world = 0; world < RANDOM_WORLDS; world++)
            tensor_share(&known.worlds[world], &from->worlds[world]);
        must_be_ok(inf_graph_add_value(side->graph, name, from->worlds[0].dtype,
                                       &from->worlds[0].shape, &value, NULL));
        must_be_ok(inf_graph_add_input(side->graph, name, value, NULL));
        random_graph_keep(side, value, &known);
    }
}

static void end_side(struct random_graph *side, uint32_t index, uint32_t value)
{
    char name[24];
    snprintf(name, sizeof name, "y%u", index);
    must_be_ok(inf_graph_add_output(side->graph, name, value, NULL));
}

// Adds a branch node. Both subgraphs have the same inputs. The outputs of the second subgraph are
// converted to the types and shapes of the first one's outputs.
static void grow_branch(struct random_graph *random)
{
    struct random_graph sides[2];
    uint32_t values[3], count = (uint32_t)random_in(&random->random, 1, 3), ends[2];
    for (uint32_t i = 0; i < count; i++) {
        values[i] = pick_value(random);
        if (values[i] == INF_VALUE_NONE)
            return;
    }
    for (int i = 0; i < 2; i++) {
        begin_side(&sides[i], random, values, count);
        grow_graph(&sides[i], (uint32_t)random_in(&random->random, 1, 4));
        ends[i] = pick_value(&sides[i]);
    }
    struct inf_tensor end = sides[0].values[ends[0]].worlds[0];
    ends[1] = random_graph_fit(&sides[1], ends[1], end.dtype, &end.shape);
    if (ends[1] == INF_VALUE_NONE) {
        random_graph_free(&sides[0]);
        random_graph_free(&sides[1]);
        return;
    }
    struct plan plan;
    bool condition = random_once_in(&random->random, 2);
    plan_begin(&plan, INF_OP_BRANCH);
    plan_source(&plan,
                (struct source){.value = INF_VALUE_NONE,
                                .tensor = {.dtype = INF_DTYPE_BOOL, .data = inf_blob_create(1)},
                                .constant = random->closed || random_once_in(&random->random, 4)});
    *(bool *)plan.sources[0].tensor.data->data = condition;
    for (uint32_t i = 0; i < count; i++)
        plan_source(&plan, source_value(values[i]));
    plan.sides = sides;
    for (int i = 0; i < 2; i++) {
        plan.nature.rounds |= !sides[i].values[ends[i]].exact;
        end_side(&sides[i], 0, ends[i]);
    }
    plan_add(random, &plan);
}

// Adds a loop node: while (i < end) { i += 1; x = body(x); }
static void grow_loop(struct random_graph *random)
{
    struct random_graph sides[2];
    uint32_t values[2] = {INF_VALUE_NONE, pick_value(random)};
    int32_t turns = (int32_t)random_in(&random->random, 0, 4);
    if (values[1] == INF_VALUE_NONE)
        return;
    struct source start = source_list((int32_t[]){0}, 1);
    start.constant = random->closed || random_once_in(&random->random, 2);
    start.tensor.shape = (struct inf_shape){0};
    values[0] = random_graph_settle(random, &start);
    inf_tensor_clear(&start.tensor);
    for (int i = 0; i < 2; i++) {
        begin_side(&sides[i], random, values, 2);
        // From the second iteration on, x is a result of the loop body, which may round. So x is
        // marked as not exact, and operators that amplify rounding errors do not read it.
        sides[i].values[1].exact &= !inf_dtype_is_float(sides[i].values[1].worlds[0].dtype);
    }
    struct plan plan;
    plan_begin(&plan, INF_OP_COMPARE);
    plan.attrs.compare.kind = INF_COMPARE_LESS;
    plan_source(&plan, source_value(0));
    plan_source(&plan, source_list(&turns, 1));
    end_side(&sides[0], 0, plan_add(&sides[0], &plan));
    struct inf_tensor state = sides[1].values[1].worlds[0];
    grow_graph(&sides[1], (uint32_t)random_in(&random->random, 1, 4));
    uint32_t end = random_graph_fit(&sides[1], pick_value(&sides[1]), state.dtype, &state.shape);
    plan_begin(&plan, INF_OP_BINARY);
    plan_source(&plan, source_value(0));
    plan_source(&plan, (struct source){.value = INF_VALUE_NONE,
                                       .constant = true,
                                       .tensor = {.dtype = INF_DTYPE_I32,
                                                  .data = inf_blob_create(sizeof turns)}});
    *(int32_t *)plan.sources[1].tensor.data->data = 1;
    uint32_t next = plan_add(&sides[1], &plan);
    if (end == INF_VALUE_NONE) {
        random_graph_free(&sides[0]);
        random_graph_free(&sides[1]);
        return;
    }
    end_side(&sides[1], 0, next);
    end_side(&sides[1], 1, end);
    plan_begin(&plan, INF_OP_LOOP);
    plan.output_count = 2;
    plan.nature.rounds = true;
    plan.sides = sides;
    for (int i = 0; i < 2; i++)
        plan_source(&plan, source_value(values[i]));
    plan_add(random, &plan);
}

static void grow_graph(struct random_graph *random, uint32_t nodes)
{
    uint32_t grown = 0;
    for (uint32_t tries = 0; grown < nodes && tries < 6 * nodes + 20; tries++) {
        uint32_t before = random->graph->node_count;
        enum inf_op op = pick_op(random);
        bool inner = random->depth < DEPTH_MAX;
        if (op == INF_OP_BRANCH && inner)
            grow_branch(random);
        else if (op == INF_OP_LOOP && inner)
            grow_loop(random);
        else if (maker_of(op) != NULL)
            grow_plain(random, op);
        grown += random->graph->node_count != before;
    }
}

// Marks as graph outputs all values that no node reads, and some of the other values.
static void name_outputs(struct random_graph *random)
{
    struct inf_graph *graph = random->graph;
    for (uint32_t i = 0; i < graph->value_count; i++) {
        const struct random_value *value = &random->values[i];
        char name[24];
        if (value->worlds[0].data == NULL || value->constant ||
            (value->used && !random_once_in(&random->random, 10)))
            continue;
        snprintf(name, sizeof name, "y%u", graph->output_count);
        must_be_ok(inf_graph_add_output(graph, name, i, NULL));
    }
}

void random_graph_make(struct random_graph *random, uint64_t seed, uint32_t nodes)
{
    struct inf_error err = {0};
    *random = (struct random_graph){.random.state = seed};
    // Without mixing, neighbouring seeds would share most of their random numbers.
    random->random.state = random_bits(&random->random);
    must_be_ok(inf_graph_create(&random->graph, &err));
    grow_graph(random, nodes);
    name_outputs(random);
    must((inf_shape_infer(random->graph, &err)) == INF_OK, "%s", err.text);
    must((inf_graph_verify(random->graph, &err)) == INF_OK, "%s", err.text);
    for (uint32_t i = 0; i < random->graph->value_count; i++) {
        const struct inf_value *value = &random->graph->values[i];
        const struct inf_tensor *tensor = &random->values[i].worlds[0];
        if (tensor->data == NULL)
            continue;
        must(value->dtype == tensor->dtype, "the type of '%s'", value->name);
        must(inf_shape_matches(&tensor->shape, &value->shape), "the shape of '%s'", value->name);
    }
}

void random_graph_free(struct random_graph *random)
{
    for (uint32_t i = 0; i < random->value_capacity; i++)
        random_value_free(&random->values[i]);
    free(random->values);
    random->values = NULL;
    random->value_capacity = 0;
    inf_graph_destroy(&random->graph);
}
