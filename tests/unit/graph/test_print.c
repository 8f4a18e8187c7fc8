// SPDX-License-Identifier: Apache-2.0
// The text form of a graph.
#include "backends/graph/print.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#include "backends/graph/shape/infer.h"
#include "tests/unit/graph/graph_kit.h"

// Returns the text form of the graph, which the caller frees. Destroys the graph.
static char *print_graph(struct inf_graph *graph)
{
    char *text = print_to_text(graph);
    inf_graph_destroy(&graph);
    return text;
}

Test(print, is_one_line_for_each_thing)
{
    struct inf_graph *graph = new_graph();
    uint32_t x = add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(1, 4, 4, 3));
    uint32_t filter = add_constant(graph, INF_DTYPE_F32, INF_SHAPE(3, 3, 3, 8), NULL);
    floats(graph, INF_SHAPE(1), 4); // no node reads this constant
    uint32_t alpha = add_constant(graph, INF_DTYPE_F32, INF_SHAPE(8), NULL);
    uint32_t conv = node(graph, INF_OP_CONV2D, "conv", x, filter, INF_VALUE_NONE, alpha);
    last_attrs(graph)->conv2d.stride_h = 2;
    last_attrs(graph)->conv2d.padding = INF_PADDING_SAME;
    last_attrs(graph)->conv2d.activation = INF_ACTIVATION_PRELU;
    add_node(graph, INF_OP_SPLIT, "cut", &conv, 1, 2);
    last_attrs(graph)->split.axis = -1;
    uint32_t part = graph->nodes[1].outputs[1];
    uint32_t mean = node(graph, INF_OP_REDUCE, "mean", part);
    last_attrs(graph)->reduce.kind = INF_REDUCE_MEAN;
    last_attrs(graph)->reduce.axes = (struct inf_ints){.count = 2, .values = {1, -2}};
    last_attrs(graph)->reduce.keep_dims = true;
    uint32_t clip = node(graph, INF_OP_CLIP, "clip", mean);
    last_attrs(graph)->clip.min = 0.1f;
    add_output(graph, "y", clip);
    cr_assert_eq(inf_shape_infer(graph, NULL), INF_OK);
    char *text = print_graph(graph);
    cr_assert_str_eq(
        text,
        "input  %0 \"x\" FP32 [1,4,4,3]\n"
        "const  %1 \"const\" FP32 [3,3,3,8]\n"
        "const  %3 \"const\" FP32 [8]\n"
        "%4 = conv2d(%0, %1, _, %3) {stride_h=2, padding=same, activation=prelu} FP32 [1,2,4,8] "
        "\"conv\"\n"
        "%5, %6 = split(%4) {axis=-1} FP32 [1,2,4,4], FP32 [1,2,4,4] \"cut\"\n"
        "%7 = reduce(%6) {kind=mean, axes=[1,-2], keep_dims=true} FP32 [1,1,1,4] \"mean\"\n"
        "%8 = clip(%7) {min=0.100000001} FP32 [1,1,1,4] \"clip\"\n"
        "output %8 \"y\"\n");
    free(text);
}

Test(print, keeps_strange_names_on_their_line)
{
    struct inf_graph *graph = new_graph();
    add_output(graph, "a\"b\\c", add_input(graph, "x\ny\x7f", INF_DTYPE_F32, ANY));
    char *text = print_graph(graph);
    cr_assert_str_eq(text, "input  %0 \"x\\x0ay\\x7f\" FP32 [*]\noutput %0 \"a\\\"b\\\\c\"\n");
    free(text);
}
