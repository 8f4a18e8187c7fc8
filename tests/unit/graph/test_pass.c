// SPDX-License-Identifier: Apache-2.0
// The graphs that passes produce. tests/conformance checks that passes do not change results.
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/graph/pass_kit.h"

Test(pass, names_lead_back_to_passes)
{
    for (int pass = 0; pass < INF_PASS_COUNT; pass++)
        cr_assert_eq(inf_pass_parse(inf_pass_name((enum inf_pass)pass)), (enum inf_pass)pass);
    cr_assert_str_eq(inf_pass_name(INF_PASS_FOLD_BATCH_NORM), "fold_batch_norm");
    cr_assert_str_eq(inf_pass_name(INF_PASS_FOLD_OPERAND), "fold_operand");
    cr_assert_str_eq(inf_pass_name(INF_PASS_COUNT), "?");
    cr_assert_eq(inf_pass_parse("inlined"), INF_PASS_COUNT);
}

Test(pass, a_wrong_graph_is_refused_before_anything_is_done)
{
    struct inf_graph *graph = new_graph();
    struct inf_error err = {0};
    uint32_t x = add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(2));
    add_output(graph, "y",
               node(graph, INF_OP_BINARY, "sum", x, floats(graph, INF_SHAPE(3), 1, 2, 3)));
    cr_assert_eq(inf_passes_run(graph, &(struct inf_pass_options){0}, &err), INF_INVALID);
    cr_assert_not_null(strstr(err.text, "'sum'"));
    inf_graph_destroy(&graph);
}

// --- the pass drop_identities ---

Test(drop_identities, an_output_may_become_an_input)
{
    struct inf_graph *graph = new_graph();
    uint32_t x = add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(2, 3));
    uint32_t y = node(graph, INF_OP_IDENTITY, "identity", x);
    y = node(graph, INF_OP_RESHAPE, "reshape", y, ints(graph, -1, 3));
    y = node(graph, INF_OP_CAST, "cast", y);
    y = node(graph, INF_OP_CLIP, "clip", y);
    y = node(graph, INF_OP_SQUEEZE, "squeeze", y);
    y = node(graph, INF_OP_EXPAND_DIMS, "expand", y);
    y = node(graph, INF_OP_CONCAT, "concat", y);
    y = node(graph, INF_OP_TRANSPOSE, "transpose", y);
    last_attrs(graph)->transpose.perm = (struct inf_ints){.count = 2, .values = {0, -1}};
    y = node(graph, INF_OP_PAD, "pad", y,
             add_constant(graph, INF_DTYPE_I32, INF_SHAPE(2, 2), NULL));
    y = node(graph, INF_OP_TILE, "tile", y, ints(graph, 1, 1));
    y = node(graph, INF_OP_BROADCAST, "broadcast", y, ints(graph, 2, 3));
    add_output(graph, "y", y);
    add_output(graph, "z", node(graph, INF_OP_IDENTITY, "again", floats(graph, INF_SHAPE(1), 5)));
    run_only(graph, INF_PASS_DROP_IDENTITIES);
    cr_assert_eq(graph->node_count, 0);
    cr_assert_eq(graph->output_count, 2);
    cr_assert_str_eq(graph->outputs[0].name, "y");
    cr_assert_eq(graph->outputs[0].value, x);
    cr_assert_eq(data_of(graph, graph->outputs[1].value)[0], 5.0f);
    inf_graph_destroy(&graph);
}

Test(drop_identities, what_does_something_stays)
{
    struct inf_graph *graph = new_graph();
    uint32_t x = add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(3, 3));
    uint32_t y = node(graph, INF_OP_RESHAPE, "reshape", x, ints(graph, 9));
    y = node(graph, INF_OP_CLIP, "clip", y);
    last_attrs(graph)->clip.max = 1;
    y = node(graph, INF_OP_CAST, "cast", y);
    last_attrs(graph)->cast.dtype = INF_DTYPE_I32;
    add_output(graph, "y", y);
    add_output(graph, "t", node(graph, INF_OP_TRANSPOSE, "transpose", x));
    uint32_t flip =
        node(graph, INF_OP_SLICE, "flip", x, ints(graph, 0), ints(graph, 0), ints(graph, -1));
    last_attrs(graph)->slice.begin_mask = 1;
    last_attrs(graph)->slice.end_mask = 1;
    add_output(graph, "f", flip);
    run_only(graph, INF_PASS_DROP_IDENTITIES);
    cr_assert_eq(graph->node_count, 5);
    inf_graph_destroy(&graph);
}

Test(drop_identities, a_reshape_of_unknown_sizes_stays)
{
    struct inf_graph *graph = new_graph();
    uint32_t x = add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(-1, -1));
    uint32_t s = add_input(graph, "s", INF_DTYPE_I32, INF_SHAPE(2));
    add_output(graph, "y", node(graph, INF_OP_RESHAPE, "reshape", x, s));
    run_only(graph, INF_PASS_DROP_IDENTITIES);
    cr_assert_eq(graph->node_count, 1);
    inf_graph_destroy(&graph);
}

// --- the pass layout ---

static uint32_t add_transpose(struct inf_graph *graph, uint32_t x, int64_t a, int64_t b, int64_t c)
{
    uint32_t y = node(graph, INF_OP_TRANSPOSE, "t", x);
    last_attrs(graph)->transpose.perm = (struct inf_ints){.count = 4, .values = {0, a, b, c}};
    return y;
}

static uint32_t transposes_left(const struct inf_graph *graph)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < graph->node_count; i++)
        count += graph->nodes[i].op == INF_OP_TRANSPOSE;
    return count;
}

// The graph is x (channels last) -> transpose to channels first -> relu -> add a constant -> mean
// over rows -> transpose back.
Test(layout, transposes_meet_their_inverse_through_other_nodes)
{
    struct inf_graph *graph = new_graph();
    uint32_t x = add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(1, 5, 6, 3));
    uint32_t y = add_transpose(graph, x, 3, 1, 2);
    y = node(graph, INF_OP_UNARY, "relu", y);
    y = node(graph, INF_OP_BINARY, "add", y, floats(graph, INF_SHAPE(1, 1), 2));
    y = node(graph, INF_OP_REDUCE, "mean", y);
    last_attrs(graph)->reduce.keep_dims = true;
    last_attrs(graph)->reduce.axes = (struct inf_ints){.count = 1, .values = {2}};
    add_output(graph, "y", add_transpose(graph, y, 2, 3, 1));
    run_only(graph, INF_PASS_LAYOUT);
    cr_assert_eq(transposes_left(graph), 0);
    cr_assert_eq(graph->node_count, 3);
    // Rows are axis 2 if channels are first. In the remaining graph channels are last, and rows are
    // axis 1.
    cr_assert_eq(graph->nodes[2].attrs.reduce.axes.values[0], 1);
    cr_assert(
        inf_shape_equal(&graph->values[graph->outputs[0].value].shape, &INF_SHAPE(1, 1, 6, 3)));
    inf_graph_destroy(&graph);
}

Test(layout, what_is_read_twice_may_stay_for_one)
{
    struct inf_graph *graph = new_graph();
    uint32_t x = add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(1, 5, 6, 3));
    uint32_t y = add_transpose(graph, x, 3, 1, 2);
    add_output(graph, "first", y);
    add_output(graph, "last", node(graph, INF_OP_UNARY, "neg", add_transpose(graph, y, 2, 3, 1)));
    run_only(graph, INF_PASS_LAYOUT);
    cr_assert_eq(transposes_left(graph), 1);
    cr_assert(
        inf_shape_equal(&graph->values[graph->outputs[0].value].shape, &INF_SHAPE(1, 3, 5, 6)));
    cr_assert(
        inf_shape_equal(&graph->values[graph->outputs[1].value].shape, &INF_SHAPE(1, 5, 6, 3)));
    inf_graph_destroy(&graph);
}

Test(layout, moving_axes_of_size_one_is_a_reshape)
{
    struct inf_graph *graph = new_graph();
    uint32_t x = add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(1, 1, 1, 3));
    uint32_t y = add_transpose(graph, x, 3, 1, 2);
    add_output(graph, "y", node(graph, INF_OP_POOL2D, "pool", y));
    run_only(graph, INF_PASS_LAYOUT);
    cr_assert_eq(transposes_left(graph), 0);
    cr_assert_eq(graph->nodes[0].op, INF_OP_RESHAPE);
    inf_graph_destroy(&graph);
}

// --- the pass drop_dead, and all passes together ---

Test(drop_dead, nodes_and_data_nobody_uses_go)
{
    struct inf_graph *graph = new_graph();
    uint32_t x = add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(4));
    uint32_t c = floats(graph, INF_SHAPE(1), 1);
    uint32_t lonely = floats(graph, INF_SHAPE(1), 2);
    uint32_t dead = node(graph, INF_OP_BINARY, "dead", x, c);
    node(graph, INF_OP_UNARY, "deader", dead);
    add_node(graph, INF_OP_SPLIT, "half", &x, 1, 2);
    add_output(graph, "y", graph->nodes[2].outputs[1]);
    run_only(graph, INF_PASS_DROP_DEAD);
    cr_assert_eq(graph->node_count, 1);
    cr_assert_str_eq(graph->nodes[0].name, "half");
    cr_assert_null(graph->values[c].data);
    cr_assert_null(graph->values[lonely].data);
    cr_assert_eq(graph->input_count, 1, "inputs stay, used or not");
    inf_graph_destroy(&graph);
}

// Makes pad, conv, mul, add, min(max(...)), which exporters write for a single convolution.
static struct inf_graph *exported_graph(void)
{
    struct inf_graph *graph = new_graph();
    uint32_t x = add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(1, 8, 8, 2));
    uint32_t p = add_constant(graph, INF_DTYPE_I32, INF_SHAPE(4, 2), image_pads);
    x = node(graph, INF_OP_PAD, "pad", x, p);
    x = node(graph, INF_OP_CONV2D, "conv", x, floats(graph, INF_SHAPE(1, 1, 2, 2), 1, 2, 3, 4));
    x = node(graph, INF_OP_IDENTITY, "identity", x);
    x = node(graph, INF_OP_BINARY, "mul", x, floats(graph, INF_SHAPE(2), 2, 3));
    last_attrs(graph)->binary.kind = INF_BINARY_MUL;
    x = node(graph, INF_OP_BINARY, "add", x, floats(graph, INF_SHAPE(1, 2), 5, 6));
    x = node(graph, INF_OP_BINARY, "max", x, floats(graph, SCALAR, 0));
    last_attrs(graph)->binary.kind = INF_BINARY_MAX;
    x = node(graph, INF_OP_BINARY, "min", x, floats(graph, SCALAR, 6));
    last_attrs(graph)->binary.kind = INF_BINARY_MIN;
    add_output(graph, "y", x);
    return graph;
}

Test(pass, all_together_make_one_node_of_seven)
{
    struct inf_graph *graph = exported_graph();
    uint32_t y = graph->outputs[0].value;
    cr_assert_eq(inf_passes_run(graph, &(struct inf_pass_options){0}, NULL), INF_OK);
    cr_assert_eq(graph->node_count, 1);
    const struct inf_node *only = &graph->nodes[0];
    cr_assert_str_eq(only->name, "conv");
    cr_assert_eq(only->outputs[0], y);
    cr_assert_eq(only->attrs.conv2d.activation, INF_ACTIVATION_RELU6);
    cr_assert_eq(only->attrs.conv2d.pad_right, 4);
    cr_assert_eq(data_of(graph, only->inputs[1])[3], 12.0f);
    cr_assert_eq(data_of(graph, only->inputs[2])[0], 5.0f);
    cr_assert(inf_shape_equal(&graph->values[y].shape, &INF_SHAPE(1, 11, 15, 2)));
    inf_graph_destroy(&graph);
}

Test(pass, each_can_be_switched_off)
{
    for (int pass = 0; pass < INF_PASS_COUNT; pass++) {
        struct inf_graph *graph = exported_graph();
        const struct inf_pass_options options = {.disabled = 1u << pass};
        cr_assert_eq(inf_passes_run(graph, &options, NULL), INF_OK);
        // The other passes have no work here: the graph has no transpose, space_to_batch, subgraph,
        // bytes, 16-bit floats, dead node, constant to fold or scale before a convolution.
        bool needed = pass != INF_PASS_DROP_DEAD && pass != INF_PASS_FOLD_CONSTANTS &&
                      pass != INF_PASS_LAYOUT && pass != INF_PASS_INLINE &&
                      pass != INF_PASS_QUANTIZE && pass != INF_PASS_WIDEN &&
                      pass != INF_PASS_FUSE_TRANSPOSE && pass != INF_PASS_FUSE_DILATION &&
                      pass != INF_PASS_RECOGNIZE && pass != INF_PASS_SHARE_HEADS &&
                      pass != INF_PASS_FOLD_OPERAND;
        cr_assert_eq(graph->node_count > 1, needed, "%s", inf_pass_name((enum inf_pass)pass));
        inf_graph_destroy(&graph);
    }
    struct inf_graph *graph = exported_graph();
    const struct inf_pass_options none = {.disabled = UINT32_MAX};
    cr_assert_eq(inf_passes_run(graph, &none, NULL), INF_OK);
    cr_assert_eq(graph->node_count, 7);
    inf_graph_destroy(&graph);
}

Test(pass, the_graph_is_dumped_after_each)
{
    struct inf_graph *graph = exported_graph();
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);
    const struct inf_pass_options options = {.dump = file};
    cr_assert_eq(inf_passes_run(graph, &options, NULL), INF_OK);
    fclose(file);
    cr_assert_not_null(strstr(text, "# round 1, after drop_identities\ninput  %0 \"x\""));
    cr_assert_not_null(strstr(text, "# round 1, after fold_constants: no change\n"));
    cr_assert_not_null(strstr(text, "activation=relu6"));
    free(text);
    inf_graph_destroy(&graph);
}

Test(pass, the_original_of_a_clone_stays_as_it_is)
{
    struct inf_graph *graph = exported_graph();
    struct inf_graph *copy;
    cr_assert_eq(inf_graph_clone(&copy, graph, NULL), INF_OK);
    cr_assert_eq(inf_passes_run(copy, &(struct inf_pass_options){0}, NULL), INF_OK);
    inf_graph_destroy(&copy);
    cr_assert_eq(graph->node_count, 7);
    cr_assert_eq(data_of(graph, graph->nodes[1].inputs[1])[3], 4.0f,
                 "shared weights are not written");
    inf_graph_destroy(&graph);
}
