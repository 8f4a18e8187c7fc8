// SPDX-License-Identifier: Apache-2.0
// The verifier of graphs: the graphs that it accepts, each kind of graph that it refuses, and
// random graphs.
#include "backends/graph/shape/verify.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "backends/graph/shape/infer.h"
#include "tests/unit/graph/graph_kit.h"

// A valid graph, x -> conv -> relu -> y. Tests damage it and expect that the verifier refuses it.
struct sound {
    struct inf_graph *graph;
    uint32_t x, filter, conv, relu;
};

static struct sound sound_graph(void)
{
    struct sound sound = {.graph = new_graph()};
    sound.x = add_input(sound.graph, "x", INF_DTYPE_F32, INF_SHAPE(1, 4, 4, 3));
    sound.filter = add_constant(sound.graph, INF_DTYPE_F32, INF_SHAPE(3, 3, 3, 8), NULL);
    sound.conv = node(sound.graph, INF_OP_CONV2D, "conv", sound.x, sound.filter);
    sound.relu = node(sound.graph, INF_OP_UNARY, "relu", sound.conv);
    last_attrs(sound.graph)->unary.kind = INF_UNARY_RELU;
    add_output(sound.graph, "y", sound.relu);
    cr_assert_eq(inf_shape_infer(sound.graph, NULL), INF_OK);
    return sound;
}

// Asserts that the verifier returns INF_INVALID with `text` in the error. Destroys the graph.
static void expect_refused(struct sound *sound, const char *text)
{
    struct inf_error err = {0};
    cr_assert_eq(inf_graph_verify(sound->graph, &err), INF_INVALID, "wanted a fault: %s", text);
    cr_assert_not_null(strstr(err.text, text), "'%s' is not in '%s'", text, err.text);
    inf_graph_destroy(&sound->graph);
}

Test(verify, accepts_a_sound_graph)
{
    struct sound sound = sound_graph();
    struct inf_error err = {0};
    cr_assert_eq(inf_graph_verify(sound.graph, &err), INF_OK, "%s", err.text);
    inf_graph_destroy(&sound.graph);
    sound.graph = new_graph();
    cr_assert_eq(inf_graph_verify(sound.graph, &err), INF_OK, "an empty one too");
    inf_graph_destroy(&sound.graph);
}

Test(verify, accepts_outputs_that_no_node_makes)
{
    struct inf_graph *graph = new_graph();
    add_output(graph, "in", add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(2)));
    add_output(graph, "const", floats(graph, INF_SHAPE(1), 3));
    cr_assert_eq(inf_graph_verify(graph, NULL), INF_OK);
    inf_graph_destroy(&graph);
}

Test(verify, accepts_values_that_no_node_uses)
{
    struct sound sound = sound_graph();
    uint32_t orphan;
    cr_assert_eq(inf_graph_add_value(sound.graph, "orphan", INF_DTYPE_NONE, &ANY, &orphan, NULL),
                 INF_OK);
    cr_assert_eq(inf_graph_verify(sound.graph, NULL), INF_OK);
    inf_graph_destroy(&sound.graph);
}

Test(verify, refuses_indices_out_of_range)
{
    struct sound sound = sound_graph();
    sound.graph->nodes[0].inputs[1] = sound.graph->value_count;
    expect_refused(&sound, "'conv'");
    sound = sound_graph();
    sound.graph->nodes[1].outputs[0] = UINT32_MAX;
    expect_refused(&sound, "'relu'");
    sound = sound_graph();
    sound.graph->outputs[0].value = 4711;
    expect_refused(&sound, "output 'y' is value 4711");
    sound = sound_graph();
    sound.graph->inputs[0].value = 4711;
    expect_refused(&sound, "input 'x' is value 4711");
    sound = sound_graph();
    sound.graph->values[sound.relu].producer = 99;
    expect_refused(&sound, "node 99 of 2");
    sound = sound_graph();
    sound.graph->nodes[1].op = (enum inf_op)INF_OP_COUNT;
    expect_refused(&sound, "'relu'");
}

Test(verify, refuses_values_used_before_they_are_made)
{
    struct sound sound = sound_graph();
    struct inf_node first = sound.graph->nodes[0];
    sound.graph->nodes[0] = sound.graph->nodes[1];
    sound.graph->nodes[1] = first;
    sound.graph->values[sound.relu].producer = 0;
    sound.graph->values[sound.conv].producer = 1;
    expect_refused(&sound, "not made before it");
    sound = sound_graph();
    sound.graph->nodes[1].inputs[0] = sound.relu;
    expect_refused(&sound, "not made before it");
    sound = sound_graph();
    cr_assert_eq(
        inf_graph_add_value(sound.graph, "air", INF_DTYPE_F32, &INF_SHAPE(1), &sound.x, NULL),
        INF_OK);
    sound.graph->outputs[0].value = sound.x;
    expect_refused(&sound, "which nothing makes");
}

Test(verify, refuses_values_made_twice)
{
    struct sound sound = sound_graph();
    sound.graph->nodes[1].outputs[0] = sound.conv;
    expect_refused(&sound, "made already");
    sound = sound_graph();
    sound.graph->nodes[1].outputs[0] = sound.x;
    expect_refused(&sound, "made already");
    sound = sound_graph();
    sound.graph->nodes[1].outputs[0] = sound.filter;
    expect_refused(&sound, "made already");
    sound = sound_graph();
    sound.graph->values[sound.filter].producer = 0;
    expect_refused(&sound, "is also the output of node 0");
    sound = sound_graph();
    sound.graph->inputs[0].value = sound.filter;
    expect_refused(&sound, "input 'x' is a constant");
    sound = sound_graph();
    sound.graph->inputs[0].value = sound.conv;
    expect_refused(&sound, "input 'x' is the output of a node");
}

Test(verify, refuses_producers_that_are_wrong)
{
    struct sound sound = sound_graph();
    sound.graph->values[sound.relu].producer = 0;
    expect_refused(&sound, "'relu'");
    sound = sound_graph();
    uint32_t orphan;
    cr_assert_eq(
        inf_graph_add_value(sound.graph, "orphan", INF_DTYPE_F32, &INF_SHAPE(1), &orphan, NULL),
        INF_OK);
    sound.graph->values[orphan].producer = 1;
    expect_refused(&sound, "'orphan'");
}

Test(verify, refuses_wrong_operand_counts)
{
    struct sound sound = sound_graph();
    sound.graph->nodes[0].input_count = 1;
    expect_refused(&sound, "conv2d has 1 inputs");
    sound = sound_graph();
    sound.graph->nodes[0].inputs[1] = INF_VALUE_NONE;
    expect_refused(&sound, "lacks input 1");
    sound = sound_graph();
    sound.graph->nodes[1].output_count = 0;
    expect_refused(&sound, "unary has 0 outputs");
}

Test(verify, refuses_attributes_out_of_range)
{
    static const int32_t bad[] = {0, -1, INT32_MIN, INT32_MAX};
    for (int op = 0; op < INF_OP_COUNT; op++) {
        const struct inf_op_info *info = inf_op_info((enum inf_op)op);
        for (size_t i = 0; i < info->attr_count; i++) {
            const struct inf_attr_info *attr = &info->attrs[i];
            bool ranged = attr->type == INF_ATTR_TYPE_INT || attr->type == INF_ATTR_TYPE_ENUM;
            for (size_t j = 0; ranged && j < INF_ARRAY_LENGTH(bad); j++) {
                if (bad[j] >= attr->min && bad[j] <= attr->max)
                    continue;
                struct inf_graph *graph = new_graph();
                uint32_t inputs[8];
                for (uint32_t k = 0; k < info->inputs_min; k++)
                    inputs[k] = add_input(graph, (char[]){(char)('a' + k), 0}, INF_DTYPE_F32,
                                          INF_SHAPE(1, 4, 4, 4));
                uint32_t outputs = info->outputs == INF_VARIADIC ? 2 : info->outputs;
                add_node(graph, (enum inf_op)op, "victim", inputs, info->inputs_min, outputs);
                memcpy((char *)last_attrs(graph) + attr->offset, &bad[j], sizeof bad[j]);
                struct inf_error err = {0};
                cr_assert_eq(inf_graph_verify(graph, &err), INF_INVALID, "%s.%s = %d", info->name,
                             attr->name, bad[j]);
                cr_assert_not_null(strstr(err.text, attr->name), "%s", err.text);
                inf_graph_destroy(&graph);
            }
        }
    }
}

Test(verify, refuses_attributes_that_are_nan)
{
    struct sound sound = sound_graph();
    sound.graph->nodes[0].attrs.conv2d.activation_min = NAN;
    expect_refused(&sound, "activation_min is not a number");
    sound = sound_graph();
    const unsigned char seven = 7;
    sound.graph->nodes[1].op = INF_OP_SOFTMAX;
    inf_attrs_init(&sound.graph->nodes[1].attrs, INF_OP_SOFTMAX);
    memcpy(&sound.graph->nodes[1].attrs.softmax.log, &seven, 1);
    expect_refused(&sound, "log is 7");
    sound = sound_graph();
    sound.graph->nodes[1].op = INF_OP_SQUEEZE;
    inf_attrs_init(&sound.graph->nodes[1].attrs, INF_OP_SQUEEZE);
    sound.graph->nodes[1].attrs.squeeze.axes.count = 9;
    expect_refused(&sound, "axes has 9 elements");
    sound = sound_graph();
    sound.graph->nodes[1].op = INF_OP_SQUEEZE;
    inf_attrs_init(&sound.graph->nodes[1].attrs, INF_OP_SQUEEZE);
    sound.graph->nodes[1].attrs.squeeze.axes = (struct inf_ints){.count = 1, .values = {4}};
    expect_refused(&sound, "axis 4 is out of range");
    sound = sound_graph();
    sound.graph->nodes[1].op = INF_OP_TRANSPOSE;
    inf_attrs_init(&sound.graph->nodes[1].attrs, INF_OP_TRANSPOSE);
    sound.graph->nodes[1].attrs.transpose.perm =
        (struct inf_ints){.count = 4, .values = {0, 1, 1, 3}};
    expect_refused(&sound, "axis 1 is named twice");
}

Test(verify, refuses_constants_of_another_size)
{
    struct sound sound = sound_graph();
    sound.graph->values[sound.filter].shape.dims[3] = 16;
    expect_refused(&sound, "has 864 bytes");
    sound = sound_graph();
    sound.graph->values[sound.filter].dtype = INF_DTYPE_F64;
    expect_refused(&sound, "has 864 bytes");
    sound = sound_graph();
    sound.graph->values[sound.filter].shape.dims[0] = INF_DIM_UNKNOWN;
    expect_refused(&sound, "has 864 bytes");
}

Test(verify, refuses_shapes_and_types_that_do_not_follow)
{
    struct sound sound = sound_graph();
    sound.graph->values[sound.relu].shape.dims[1] = 3;
    expect_refused(&sound, "output 0 is FP32 [1,3,2,8], wanted FP32 [1,2,2,8]");
    sound = sound_graph();
    sound.graph->values[sound.relu].dtype = INF_DTYPE_F16;
    expect_refused(&sound, "output 0 is FP16");
    sound = sound_graph();
    sound.graph->values[sound.x].shape.rank = 9;
    expect_refused(&sound, "no valid shape");
    sound = sound_graph();
    sound.graph->values[sound.x].shape.dims[0] = INF_LIMIT_DIM;
    expect_refused(&sound, "no valid shape");
    sound = sound_graph();
    sound.graph->values[sound.x].shape = INF_SHAPE(1 << 30, 1 << 30, 4, 3);
    expect_refused(&sound, "larger than a tensor may be");
    sound = sound_graph();
    sound.graph->values[sound.x].dtype = INF_DTYPE_NONE;
    expect_refused(&sound, "input 'x' has no element type");
    sound = sound_graph();
    sound.graph->values[sound.x].dtype = INF_DTYPE_COUNT;
    expect_refused(&sound, "no valid shape and type");
}

Test(verify, refuses_ports_of_one_name_or_value)
{
    struct sound sound = sound_graph();
    add_output(sound.graph, "z", sound.conv);
    sound.graph->outputs[1].name = "y";
    expect_refused(&sound, "two outputs named 'y'");
    sound = sound_graph();
    add_input(sound.graph, "w", INF_DTYPE_F32, INF_SHAPE(1));
    sound.graph->inputs[1].name = "x";
    expect_refused(&sound, "two inputs named 'x'");
    sound = sound_graph();
    cr_assert_eq(inf_graph_add_input(sound.graph, "w", sound.x, NULL), INF_OK);
    expect_refused(&sound, "input 'w' is value");
}

// --- verifying random graphs ---

struct random {
    uint64_t state;
};

// Returns the next 64 bits of the SplitMix64 generator.
static uint64_t draw_u64(struct random *random)
{
    uint64_t z = random->state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static int64_t draw_between(struct random *random, int64_t low, int64_t high)
{
    return low + (int64_t)(draw_u64(random) % (uint64_t)(high - low + 1));
}

static int64_t random_dim(struct random *random)
{
    static const int64_t odd[] = {0, INF_DIM_UNKNOWN, 65536, INT32_MAX, 1 << 30};
    return draw_between(random, 0, 9) == 0 ? odd[draw_between(random, 0, 4)]
                                           : draw_between(random, 1, 6);
}

static struct inf_shape random_shape(struct random *random)
{
    struct inf_shape shape = {
        .rank = draw_between(random, 0, 2) == 0 ? (int32_t)draw_between(random, -1, 8) : 4};
    for (int32_t i = 0; i < shape.rank; i++)
        shape.dims[i] = random_dim(random);
    return shape;
}

// Returns a small number in most cases, and an extreme one sometimes.
static int32_t random_int(struct random *random)
{
    static const int32_t odd[] = {INT32_MIN, INT32_MAX, -1, 65535, 1 << 24};
    return draw_between(random, 0, 7) == 0 ? odd[draw_between(random, 0, 4)]
                                           : (int32_t)draw_between(random, -2, 5);
}

static uint32_t random_const(struct random *random, struct inf_graph *graph)
{
    int32_t elements[8];
    for (int i = 0; i < 8; i++)
        elements[i] = random_int(random);
    if (draw_between(random, 0, 3) == 0)
        return add_constant(graph, INF_DTYPE_I32, INF_SHAPE(4, 2), elements);
    if (draw_between(random, 0, 3) == 0)
        return add_constant(graph, INF_DTYPE_I32, SCALAR, elements);
    return add_constant(graph, INF_DTYPE_I32, INF_SHAPE(draw_between(random, 0, 8)), elements);
}

static void random_attrs(struct random *random, struct inf_node *node)
{
    const struct inf_op_info *info = inf_op_info(node->op);
    for (size_t i = 0; i < info->attr_count; i++) {
        const struct inf_attr_info *attr = &info->attrs[i];
        unsigned char *at = (unsigned char *)&node->attrs + attr->offset;
        int32_t integer =
            draw_between(random, 0, 15) == 0
                ? random_int(random)
                : (int32_t)draw_between(random, attr->min, INF_MIN(attr->max, attr->min + 8));
        float real = (float)random_int(random);
        struct inf_ints list = {.count = (int32_t)draw_between(random, 0, 4)};
        for (int32_t j = 0; j < list.count; j++)
            list.values[j] = draw_between(random, -4, 4);
        if (draw_between(random, 0, 1) == 0)
            continue; // keep the default attribute
        if (attr->type == INF_ATTR_TYPE_INT || attr->type == INF_ATTR_TYPE_ENUM)
            memcpy(at, &integer, sizeof integer);
        else if (attr->type == INF_ATTR_TYPE_FLOAT)
            memcpy(at, &real, sizeof real);
        else if (attr->type == INF_ATTR_TYPE_INTS)
            memcpy(at, &list, sizeof list);
        else
            *at = (unsigned char)draw_between(random, 0, 1);
    }
}

static uint32_t random_operand(struct random *random, struct inf_graph *graph, uint32_t index)
{
    if (index > 0 && draw_between(random, 0, 1) == 0)
        return random_const(random, graph);
    if (draw_between(random, 0, 30) == 0)
        return INF_VALUE_NONE;
    return (uint32_t)draw_between(random, 0, graph->value_count - 1);
}

static void random_node(struct random *random, struct inf_graph *graph)
{
    // Draw the operators before INF_OP_REVERSE more often, because each of them must be accepted
    // with random operands at least once.
    int64_t last_op = draw_between(random, 0, 3) > 0 ? INF_OP_REVERSE - 1 : INF_OP_COUNT - 1;
    enum inf_op op = (enum inf_op)draw_between(random, 0, last_op);
    const struct inf_op_info *info = inf_op_info(op);
    uint32_t most = info->inputs_max == INF_VARIADIC ? 5 : info->inputs_max;
    uint32_t inputs[8];
    uint32_t count = (uint32_t)draw_between(random, info->inputs_min, most);
    for (uint32_t i = 0; i < count; i++)
        inputs[i] = random_operand(random, graph, i);
    uint32_t outputs =
        info->outputs == INF_VARIADIC ? (uint32_t)draw_between(random, 1, 5) : info->outputs;
    add_node(graph, op, "random", inputs, count, outputs);
    random_attrs(random, &graph->nodes[graph->node_count - 1]);
}

// Given any random graph, expect that neither inference nor the verifier crashes (run under
// sanitizers), and that the verifier accepts every graph that inference accepts.
Test(verify, survives_random_graphs, .timeout = 100)
{
    uint64_t accepted[INF_OP_COUNT] = {0};
    for (uint64_t seed = 1; seed <= 200000; seed++) {
        struct random random = {.state = seed};
        struct inf_graph *graph = new_graph();
        struct inf_error err = {0};
        add_input(graph, "a", INF_DTYPE_F32, random_shape(&random));
        add_input(graph, "b", INF_DTYPE_F32, random_shape(&random));
        add_input(graph, "c", draw_between(&random, 0, 1) ? INF_DTYPE_I32 : INF_DTYPE_BOOL,
                  random_shape(&random));
        for (int64_t i = draw_between(&random, 1, 3); i > 0; i--) {
            random_node(&random, graph);
            // Keep only nodes that inference accepts, so that graphs become deep. Remove the other
            // nodes.
            if (inf_shape_infer_node(graph, graph->node_count - 1, &err) != INF_OK) {
                const uint32_t *outputs = graph->nodes[graph->node_count - 1].outputs;
                for (uint32_t j = 0; j < graph->nodes[graph->node_count - 1].output_count; j++)
                    graph->values[outputs[j]].producer = INF_NODE_NONE;
                graph->node_count--;
                continue;
            }
            accepted[graph->nodes[graph->node_count - 1].op]++;
            struct inf_window height;
            struct inf_window width;
            struct inf_slice_plan plan;
            const struct inf_node *last = &graph->nodes[graph->node_count - 1];
            if (last->op >= INF_OP_CONV2D && last->op <= INF_OP_CONV2D_TRANSPOSE &&
                inf_shape_known(&graph->values[last->inputs[0]].shape) &&
                inf_shape_known(&graph->values[last->inputs[1]].shape) &&
                inf_shape_known(&graph->values[last->outputs[0]].shape))
                inf_node_windows(graph, last, &height, &width);
            if (last->op == INF_OP_SLICE && inf_node_slice_plan(graph, last, &plan))
                cr_assert(inf_shape_known(&graph->values[last->outputs[0]].shape));
        }
        // The only remaining error is an input that is larger than a tensor may be.
        enum inf_code code = inf_graph_verify(graph, &err);
        cr_assert(code == INF_OK || strstr(err.text, "larger than a tensor") != NULL,
                  "seed %llu: %s", (unsigned long long)seed, err.text);
        inf_graph_destroy(&graph);
    }
    // Operators from reverse on, and batch_norm with its five operands, are exempt because random
    // operands rarely fit them.
    for (int op = 0; op < INF_OP_REVERSE; op++)
        cr_assert(inf_op_info((enum inf_op)op)->inputs_min >= 5 || accepted[op] > 0,
                  "the generator makes no sound %s", inf_op_info((enum inf_op)op)->name);
}
