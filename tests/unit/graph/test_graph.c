// SPDX-License-Identifier: Apache-2.0
// The table of operators, and the operations on graphs: adding values and nodes, cloning, replacing
// uses, costs and trimming.
#include "backends/graph/graph.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backends/base/thread.h"
#include "backends/graph/readers.h"
#include "backends/graph/shape/infer.h"
#include "tests/unit/graph/graph_kit.h"

Test(op, table_has_what_ops_def_says)
{
    const struct inf_op_info *conv = inf_op_info(INF_OP_CONV2D);
    cr_assert_str_eq(conv->name, "conv2d");
    cr_assert_eq(conv->inputs_min, 2);
    cr_assert_eq(conv->inputs_max, 4);
    cr_assert_eq(conv->outputs, 1);
    cr_assert_eq(conv->attr_count, 14);
    cr_assert_str_eq(conv->attrs[0].name, "stride_h");
    cr_assert_eq(conv->attrs[0].min, 1);
    cr_assert_eq(conv->attrs[0].max, 65535);
    cr_assert_str_eq(conv->attrs[5].names[1], "same");
    cr_assert_eq(inf_op_info(INF_OP_CONCAT)->inputs_max, INF_VARIADIC);
    cr_assert_eq(inf_op_info(INF_OP_PRELU)->attr_count, 0);
}

Test(op, names_lead_back_to_operators)
{
    for (int op = 0; op < INF_OP_COUNT; op++)
        cr_assert_eq(inf_op_parse(inf_op_info((enum inf_op)op)->name), (enum inf_op)op);
    cr_assert_eq(inf_op_parse("Conv2D"), INF_OP_COUNT);
    cr_assert_eq(inf_op_parse(""), INF_OP_COUNT);
}

Test(op, defaults_are_set)
{
    union inf_attrs attrs;
    memset(&attrs, 0xff, sizeof attrs);
    inf_attrs_init(&attrs, INF_OP_CLIP);
    cr_assert(isinf(attrs.clip.min) && attrs.clip.min < 0);
    cr_assert(isinf(attrs.clip.max) && attrs.clip.max > 0);
    memset(&attrs, 0xff, sizeof attrs);
    inf_attrs_init(&attrs, INF_OP_CONV2D);
    cr_assert_eq(attrs.conv2d.stride_h, 1);
    cr_assert_eq(attrs.conv2d.pad_left, 0);
    cr_assert_eq(attrs.conv2d.padding, INF_PADDING_EXPLICIT);
    memset(&attrs, 0xff, sizeof attrs);
    inf_attrs_init(&attrs, INF_OP_REDUCE);
    cr_assert_eq(attrs.reduce.axes.count, 0);
    cr_assert_not(attrs.reduce.keep_dims);
    inf_attrs_init(&attrs, INF_OP_SOFTMAX);
    cr_assert_eq(attrs.softmax.axis, -1);
    inf_attrs_init(&attrs, INF_OP_BATCH_NORM);
    cr_assert_float_eq(attrs.batch_norm.epsilon, 0.001, 1e-9);
    inf_attrs_init(&attrs, INF_OP_CAST);
    cr_assert_eq(attrs.cast.dtype, INF_DTYPE_F32);
}

Test(op, dtype_names_are_those_of_the_protocol)
{
    const struct inf_attr_info *attr = &inf_op_info(INF_OP_CAST)->attrs[0];
    cr_assert_eq(attr->max, INF_DTYPE_COUNT - 1);
    for (int dtype = 0; dtype < INF_DTYPE_COUNT; dtype++)
        cr_assert_str_eq(attr->names[dtype], inf_dtype_name((enum inf_dtype)dtype));
}

Test(op, names_out_of_range_are_question_marks)
{
    cr_assert_str_eq(inf_unary_name(INF_UNARY_LEAKY_RELU), "leaky_relu");
    cr_assert_str_eq(inf_unary_name(INF_UNARY_COUNT), "?");
    cr_assert_str_eq(inf_binary_name(INF_BINARY_SQUARED_DIFFERENCE), "squared_difference");
    cr_assert_str_eq(inf_binary_name((enum inf_binary_kind)4711), "?");
    cr_assert_str_eq(inf_activation_name(INF_ACTIVATION_PRELU), "prelu");
    cr_assert_str_eq(inf_activation_name((enum inf_activation) - 1), "?");
}

Test(graph, nodes_name_their_outputs)
{
    struct inf_graph *graph = new_graph();
    uint32_t x = add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(4, 6));
    uint32_t y = node(graph, INF_OP_UNARY, "neg", x);
    add_node(graph, INF_OP_SPLIT, "cut", &y, 1, 3);
    cr_assert_str_eq(graph->values[y].name, "neg");
    cr_assert_eq(graph->values[y].producer, 0);
    cr_assert_eq(graph->values[y].dtype, INF_DTYPE_NONE);
    cr_assert_eq(graph->values[y].shape.rank, INF_RANK_UNKNOWN);
    cr_assert_eq(graph->nodes[1].output_count, 3);
    cr_assert_str_eq(graph->values[graph->nodes[1].outputs[2]].name, "cut:2");
    cr_assert_eq(graph->values[x].producer, INF_NODE_NONE);
    inf_graph_destroy(&graph);
    cr_assert_null(graph);
    inf_graph_destroy(&graph);
}

Test(graph, refuses_operands_that_are_not_there)
{
    struct inf_graph *graph = new_graph();
    struct inf_error err;
    uint32_t x = add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(1));
    uint32_t index;
    const uint32_t bad[] = {x, 17};
    cr_assert_eq(inf_graph_add_node(graph, INF_OP_BINARY, "a", "", bad, 2, 1, &index, &err),
                 INF_INVALID);
    cr_assert_not_null(strstr(err.text, "'a'"));
    cr_assert_eq(inf_graph_add_node(graph, INF_OP_BINARY, "b", "", &x, 1, 1, &index, &err),
                 INF_INVALID);
    cr_assert_eq(inf_graph_add_node(graph, INF_OP_UNARY, "c", "", &x, 1, 2, &index, &err),
                 INF_INVALID);
    cr_assert_eq(inf_graph_add_node(graph, INF_OP_SPLIT, "d", "", &x, 1, 0, &index, &err),
                 INF_INVALID);
    cr_assert_eq(inf_graph_add_node(graph, INF_OP_COUNT, "e", "", &x, 1, 1, &index, &err),
                 INF_INVALID);
    cr_assert_eq(graph->node_count, 0);
    cr_assert_eq(inf_graph_add_output(graph, "y", 17, &err), INF_INVALID);
    inf_graph_destroy(&graph);
}

Test(graph, two_ports_of_one_name_are_refused)
{
    struct inf_graph *graph = new_graph();
    struct inf_error err;
    uint32_t x = add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(1));
    cr_assert_eq(inf_graph_add_input(graph, "x", x, &err), INF_EXISTS);
    cr_assert_eq(inf_graph_add_output(graph, "x", x, &err), INF_OK,
                 "sides have names of their own");
    cr_assert_eq(inf_graph_add_output(graph, "x", x, &err), INF_EXISTS);
    cr_assert_not_null(strstr(err.text, "'x'"));
    inf_graph_destroy(&graph);
}

Test(graph, constants_must_have_the_size_of_their_shape)
{
    struct inf_graph *graph = new_graph();
    struct inf_error err;
    uint32_t value;
    struct inf_blob *blob = inf_blob_create(11);
    struct inf_blob *ours = inf_blob_ref(blob);
    cr_assert_eq(inf_graph_add_const(graph, "w", INF_DTYPE_F32, &INF_SHAPE(3), blob, &value, &err),
                 INF_INVALID);
    cr_assert_eq(ours->references, 1u, "the reference is gone on failure too");
    inf_blob_unref(&ours);
    cr_assert_eq(inf_graph_add_const(graph, "w", INF_DTYPE_F32, &INF_SHAPE(3), NULL, &value, &err),
                 INF_EXHAUSTED);
    cr_assert_eq(graph->value_count, 0);
    inf_graph_destroy(&graph);
}

Test(graph, integers_of_constants_are_read)
{
    struct inf_graph *graph = new_graph();
    int64_t elements[3];
    uint32_t count = 99;
    uint32_t small = ints(graph, -7, 0, 2147483647);
    uint32_t wide = add_constant(graph, INF_DTYPE_I64, SCALAR, (const int64_t[]){INT64_MIN});
    cr_assert(inf_graph_const_ints(graph, small, elements, 3, &count));
    cr_assert_eq(count, 3);
    cr_assert_eq(elements[0], -7);
    cr_assert_eq(elements[2], 2147483647);
    cr_assert(inf_graph_const_ints(graph, wide, elements, 3, &count));
    cr_assert_eq(count, 1);
    cr_assert_eq(elements[0], INT64_MIN);
    cr_assert_not(inf_graph_const_ints(graph, small, elements, 2, &count), "no room");
    cr_assert_not(inf_graph_const_ints(graph, floats(graph, INF_SHAPE(1), 1), elements, 3, &count));
    cr_assert_not(inf_graph_const_ints(
        graph, add_constant(graph, INF_DTYPE_F32, INF_SHAPE(0), NULL), elements, 3, &count));
    cr_assert_not(inf_graph_const_ints(graph, INF_VALUE_NONE, elements, 3, &count));
    uint32_t empty;
    cr_assert_eq(inf_graph_add_const_i32(graph, "none", NULL, 0, &empty, NULL), INF_OK);
    cr_assert(inf_graph_const_ints(graph, empty, elements, 3, &count));
    cr_assert_eq(count, 0);
    inf_graph_destroy(&graph);
}

Test(graph, a_clone_lives_without_its_original)
{
    struct inf_graph *graph = new_graph();
    uint32_t x = add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(2));
    uint32_t c = floats(graph, INF_SHAPE(2), 3, 4);
    add_output(graph, "y", node(graph, INF_OP_BINARY, "sum", x, c));
    struct inf_graph *copy;
    cr_assert_eq(inf_graph_clone(&copy, graph, NULL), INF_OK);
    cr_assert_eq(copy->values[c].data, graph->values[c].data, "data is shared");
    inf_graph_destroy(&graph);
    cr_assert_str_eq(copy->inputs[0].name, "x");
    cr_assert_str_eq(copy->nodes[0].name, "sum");
    cr_assert_eq(copy->nodes[0].inputs[1], c);
    cr_assert_eq(((float *)copy->values[c].data->data)[1], 4.0f);
    uint32_t more = node(copy, INF_OP_UNARY, "more", copy->outputs[0].value);
    cr_assert_eq(copy->values[more].producer, 1);
    inf_graph_destroy(&copy);
    graph = new_graph();
    cr_assert_eq(inf_graph_clone(&copy, graph, NULL), INF_OK, "an empty one too");
    inf_graph_destroy(&copy);
    inf_graph_destroy(&graph);
}

Test(graph, uses_are_replaced_in_nodes_and_outputs)
{
    struct inf_graph *graph = new_graph();
    uint32_t x = add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(2));
    uint32_t y = node(graph, INF_OP_IDENTITY, "same", x);
    uint32_t z = node(graph, INF_OP_BINARY, "sum", y, y);
    add_output(graph, "y", y);
    add_output(graph, "z", z);
    inf_graph_replace_uses(graph, y, x);
    cr_assert_eq(graph->nodes[1].inputs[0], x);
    cr_assert_eq(graph->nodes[1].inputs[1], x);
    cr_assert_eq(graph->outputs[0].value, x);
    cr_assert_eq(graph->outputs[1].value, z);
    const uint32_t map[] = {INF_NODE_NONE, 0};
    inf_graph_compact_nodes(graph, map);
    cr_assert_eq(graph->node_count, 1);
    cr_assert_str_eq(graph->nodes[0].name, "sum");
    cr_assert_eq(graph->values[z].producer, 0);
    cr_assert_eq(graph->values[y].producer, INF_NODE_NONE);
    inf_graph_destroy(&graph);
}

Test(graph, grows_far_beyond_its_first_arrays)
{
    struct inf_graph *graph = new_graph();
    uint32_t value = add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(1));
    for (int i = 0; i < 5000; i++)
        value = node(graph, INF_OP_UNARY, "n", value);
    cr_assert_eq(graph->node_count, 5000);
    cr_assert_eq(graph->values[value].producer, 4999);
    cr_assert_eq(graph->nodes[4999].inputs[0], value - 1);
    inf_graph_destroy(&graph);
}

Test(graph, cost_counts_multiply_adds)
{
    struct inf_graph *graph = new_graph();
    uint32_t x = add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(1, 8, 8, 3));
    uint32_t conv = node(graph, INF_OP_CONV2D, "conv", x,
                         add_constant(graph, INF_DTYPE_F32, INF_SHAPE(3, 3, 3, 16), NULL));
    last_attrs(graph)->conv2d.padding = INF_PADDING_SAME;
    uint32_t depthwise = node(graph, INF_OP_DEPTHWISE_CONV2D, "dw", conv,
                              add_constant(graph, INF_DTYPE_F32, INF_SHAPE(3, 3, 16, 1), NULL));
    last_attrs(graph)->depthwise_conv2d.padding = INF_PADDING_SAME;
    uint32_t flat = node(graph, INF_OP_RESHAPE, "flat", depthwise, ints(graph, 1, 1024));
    add_output(graph, "y",
               node(graph, INF_OP_MATMUL, "fc", flat,
                    add_constant(graph, INF_DTYPE_F32, INF_SHAPE(1024, 10), NULL)));
    cr_assert_eq(inf_shape_infer(graph, NULL), INF_OK);
    struct inf_graph_cost cost = inf_graph_cost(graph);
    // Multiply-adds of the convolution, the depthwise convolution and the product: 64 pixels *
    // 3*3*3*16, 64 pixels * 3*3*16, and 10 * 1024.
    cr_assert_eq(cost.macs, 27648u + 9216u + 10240u);
    cr_assert_eq(cost.parameters, 432u + 144u + 10240u);
    cr_assert_eq(cost.const_bytes, 4 * (432u + 144u + 10240u) + 8);
    inf_graph_destroy(&graph);
}

Test(graph, cost_counts_other_axes_and_recurrent_networks)
{
    struct inf_graph *graph = new_graph();
    uint32_t x = add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(1, 10, 3));
    uint32_t conv = node(graph, INF_OP_CONV_ND, "conv", x,
                         add_constant(graph, INF_DTYPE_F32, INF_SHAPE(3, 3, 5), NULL));
    const uint32_t lstm[] = {add_input(graph, "t", INF_DTYPE_F32, INF_SHAPE(7, 2, 4)),
                             add_constant(graph, INF_DTYPE_F32, INF_SHAPE(1, 12, 4), NULL),
                             add_constant(graph, INF_DTYPE_F32, INF_SHAPE(1, 12, 3), NULL)};
    add_output(graph, "y", conv);
    add_output(graph, "h", add_node(graph, INF_OP_RNN, "lstm", lstm, 3, 3));
    cr_assert_eq(inf_shape_infer(graph, NULL), INF_OK);
    // Multiply-adds of the convolution: 8 pixels * 3*3*5. Of the LSTM: 7 steps * 2 rows * 4 gates *
    // 3 units * (4 inputs + 3 states).
    cr_assert_eq(inf_node_macs(graph, &graph->nodes[0]), 360u);
    cr_assert_eq(inf_node_macs(graph, &graph->nodes[1]), 14u * 12 * 7);
    inf_graph_destroy(&graph);
}

Test(graph, trim_drops_what_nothing_uses_and_renumbers_the_rest)
{
    struct inf_graph *graph = new_graph();
    floats(graph, INF_SHAPE(2), 5, 6); // value 0, which no node uses
    uint32_t x = add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(2));
    uint32_t dead = node(graph, INF_OP_UNARY, "dead", x);
    uint32_t two = floats(graph, INF_SHAPE(2), 2, 3);
    uint32_t sum = node(graph, INF_OP_BINARY, "sum", x, two);
    uint32_t product = node(graph, INF_OP_MATMUL, "product", sum, two, INF_VALUE_NONE);
    add_output(graph, "y", product);
    (void)dead;
    inf_graph_compact_nodes(graph, (const uint32_t[]){INF_NODE_NONE, 0, 1});
    cr_assert_eq(graph->value_count, 6u);

    inf_graph_trim(graph);
    cr_assert_eq(graph->value_count, 4u);
    cr_assert_eq(graph->value_capacity, 4u);
    cr_assert_eq(graph->node_capacity, 2u);
    cr_assert_eq(graph->inputs[0].value, 0u);
    cr_assert_eq(graph->nodes[0].inputs[0], 0u);
    cr_assert_eq(graph->nodes[0].inputs[1], 1u);
    cr_assert_eq(((float *)graph->values[1].data->data)[1], 3.0f);
    cr_assert_eq(graph->nodes[0].outputs[0], 2u);
    cr_assert_eq(graph->nodes[1].inputs[0], 2u);
    cr_assert_eq(graph->nodes[1].inputs[1], 1u);
    cr_assert_eq(graph->nodes[1].inputs[2], INF_VALUE_NONE);
    cr_assert_eq(graph->outputs[0].value, 3u);
    cr_assert_str_eq(graph->values[3].name, "product");
    cr_assert_eq(graph->values[2].producer, 0u);
    cr_assert_eq(graph->values[3].producer, 1u);
    // The trimmed graph accepts new nodes.
    node(graph, INF_OP_UNARY, "more", graph->outputs[0].value);
    cr_assert_eq(graph->value_count, 5u);
    inf_graph_destroy(&graph);
}

Test(graph, lists_the_readers_of_a_value)
{
    struct inf_graph *graph = new_graph();
    uint32_t x = add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(2));
    struct inf_readers readers[6];
    uint32_t once = node(graph, INF_OP_UNARY, "once", x);
    uint32_t twice = node(graph, INF_OP_UNARY, "twice", once);
    uint32_t square = node(graph, INF_OP_BINARY, "square", twice, twice);
    uint32_t shared = node(graph, INF_OP_UNARY, "shared", square);
    uint32_t given = node(graph, INF_OP_UNARY, "given", shared);
    (void)!node(graph, INF_OP_BINARY, "last", shared, given);
    add_output(graph, "y", given);
    inf_graph_list_readers(graph, readers);
    cr_expect_eq(inf_readers_sole(&readers[0]), 1u);
    cr_expect_eq(inf_readers_sole(&readers[1]), 2u, "one node that reads it twice");
    cr_expect_eq(inf_readers_sole(&readers[2]), 3u);
    cr_expect_eq(readers[3].count, 2u, "two nodes");
    cr_expect_eq(readers[3].nodes[0], 4u);
    cr_expect_eq(readers[3].nodes[1], 5u);
    cr_expect_eq(inf_readers_sole(&readers[3]), INF_NODE_NONE);
    cr_expect_eq(readers[4].count, INF_READERS_MAX + 1, "a node and the graph's output");
    cr_expect_eq(inf_readers_sole(&readers[4]), INF_NODE_NONE);
    cr_expect_eq(readers[5].count, 0u, "no node");
    inf_graph_destroy(&graph);
}

// Makes a graph of two nodes: y = softmax(x + c), where x has this shape.
static struct inf_graph *make_softmax(struct inf_shape shape)
{
    struct inf_graph *graph = new_graph();
    uint32_t x = add_input(graph, "x", INF_DTYPE_F32, shape);
    uint32_t sum = node(graph, INF_OP_BINARY, "sum", x, floats(graph, INF_SHAPE(2), 3, 4));
    add_output(graph, "y", node(graph, INF_OP_SOFTMAX, "y", sum));
    return graph;
}

Test(graph, is_equal_to_a_clone_until_that_is_changed)
{
    enum {
        OPERATOR,
        ATTRIBUTE,
        OPERAND,
        NODE_NAME,
        SOURCE,
        TYPE,
        SHAPE,
        VALUE_NAME,
        DATA,
        PRODUCER,
        INPUT,
        OUTPUT_NAME,
        MORE_VALUES,
        MORE_NODES,
        MORE_OUTPUTS,
        CHANGES
    };
    struct inf_graph *graph = make_softmax(INF_SHAPE(5, 2));
    for (int change = 0; change <= CHANGES; change++) {
        struct inf_graph *copy;
        struct inf_blob *data = graph->values[1].data;
        cr_assert_eq(inf_graph_clone(&copy, graph, NULL), INF_OK);
        struct inf_node *last = &copy->nodes[1];
        struct inf_value *constant = &copy->values[1];
        switch (change) {
        case OPERATOR:
            last->op = INF_OP_UNARY;
            break;
        case ATTRIBUTE:
            last->attrs.softmax.axis = 0;
            break;
        case OPERAND:
            last->inputs[0] = 0;
            break;
        case NODE_NAME:
            last->name = "z";
            break;
        case SOURCE:
            last->source = "Softmax";
            break;
        case TYPE:
            copy->values[0].dtype = INF_DTYPE_I32;
            break;
        case SHAPE:
            copy->values[0].shape.dims[0] = INF_DIM_UNKNOWN;
            break;
        case VALUE_NAME:
            constant->name = "other";
            break;
        case DATA:
            constant->data = inf_blob_create(8);
            break;
        case PRODUCER:
            copy->values[2].producer = 1;
            break;
        case INPUT:
            copy->inputs[0].value = 1;
            break;
        case OUTPUT_NAME:
            copy->outputs[0].name = "z";
            break;
        case MORE_VALUES:
            floats(copy, SCALAR, 1);
            break;
        case MORE_NODES:
            node(copy, INF_OP_UNARY, "more", 0);
            break;
        case MORE_OUTPUTS:
            add_output(copy, "more", 2);
            break;
        default:
            break;
        }
        cr_expect_eq(inf_graph_equal(graph, copy), change == CHANGES, "change %d", change);
        if (change == DATA)
            inf_blob_unref(&data); // the reference of the clone
        inf_graph_destroy(&copy);
    }
    inf_graph_destroy(&graph);
}

Test(graph, attributes_of_every_type_are_compared)
{
    union inf_attrs a, b;
    inf_attrs_init(&a, INF_OP_REDUCE);
    inf_attrs_init(&b, INF_OP_REDUCE);
    b.reduce.axes.values[0] = 7; // behind the end of the list
    cr_expect(inf_attrs_equal(&a, &b, INF_OP_REDUCE));
    b.reduce.axes.count = 1;
    cr_expect_not(inf_attrs_equal(&a, &b, INF_OP_REDUCE));
    a.reduce.axes.count = 1;
    cr_expect_not(inf_attrs_equal(&a, &b, INF_OP_REDUCE));
    a.reduce.axes.values[0] = 7;
    cr_expect(inf_attrs_equal(&a, &b, INF_OP_REDUCE));
    b.reduce.keep_dims = !a.reduce.keep_dims;
    cr_expect_not(inf_attrs_equal(&a, &b, INF_OP_REDUCE));
    inf_attrs_init(&a, INF_OP_CLIP);
    inf_attrs_init(&b, INF_OP_CLIP);
    b.clip.max = 6;
    cr_expect_not(inf_attrs_equal(&a, &b, INF_OP_CLIP));
}

Test(graph, with_a_subgraph_is_equal_to_no_graph)
{
    struct inf_graph *graph = make_softmax(INF_SHAPE(5, 2));
    struct inf_graph *inner = new_graph();
    struct inf_graph *copy;
    uint32_t index;
    cr_assert_eq(inf_graph_add_subgraph(graph, &inner, &index, NULL), INF_OK);
    cr_assert_eq(inf_graph_clone(&copy, graph, NULL), INF_OK);
    cr_expect_not(inf_graph_equal(graph, copy));
    inf_graph_destroy(&copy);
    inf_graph_destroy(&graph);
}

Test(graph, lives_until_its_last_reference_is_dropped)
{
    struct inf_graph *graph = make_softmax(INF_SHAPE(5, 2));
    struct inf_graph *other = inf_graph_ref(graph);
    inf_graph_destroy(&graph);
    cr_expect_null(graph);
    cr_expect_str_eq(other->nodes[1].name, "y");
    inf_graph_destroy(&other);
}

#define REFERENCES 1000

static void take_references(void *raw)
{
    struct inf_graph *graph = raw;
    for (int i = 0; i < REFERENCES; i++) {
        struct inf_graph *other = inf_graph_ref(graph);
        inf_graph_destroy(&other);
    }
}

// With ThreadSanitizer, this test fails if inf_graph_view() reads the number of references.
Test(graph, is_viewed_while_other_threads_take_references)
{
    struct inf_graph *graph = make_softmax(INF_SHAPE(5, 2));
    struct inf_thread thread;
    cr_assert_eq(inf_thread_start(&thread, "references", take_references, graph, NULL), INF_OK);
    for (int i = 0; i < REFERENCES; i++) {
        struct inf_graph view;
        inf_graph_view(&view, graph);
        cr_assert_eq(atomic_load(&view.references), 0u);
        cr_assert_eq(view.nodes, graph->nodes);
        cr_assert_eq(view.subgraph_capacity, graph->subgraph_capacity);
        cr_assert(inf_graph_equal(&view, graph));
    }
    inf_thread_join(&thread);
    inf_graph_destroy(&graph);
}

Test(graph, compacting_shares_names_and_small_constants_and_changes_nothing_else)
{
    float large[INF_BLOB_EVICTED_BYTES_MIN / sizeof(float)] = {0};
    struct inf_graph *graph = make_softmax(INF_SHAPE(5, 2));
    floats(graph, SCALAR, 1);
    uint32_t same = floats(graph, INF_SHAPE(2), 3, 4);
    uint32_t other = floats(graph, INF_SHAPE(2), 4, 3);
    uint32_t first = add_constant(graph, INF_DTYPE_F32, INF_SHAPE(128), large);
    uint32_t second = add_constant(graph, INF_DTYPE_F32, INF_SHAPE(128), large);
    node(graph, INF_OP_CONCAT, "sum", 1, same, other);
    // So many different constants that some have the same slot in the hash table.
    uint32_t different = graph->value_count;
    for (int i = 0; i < 100; i++)
        floats(graph, SCALAR, (float)i);
    struct inf_graph *inner = make_softmax(INF_SHAPE(2));
    uint32_t index;
    cr_assert_eq(inf_graph_add_subgraph(graph, &inner, &index, NULL), INF_OK);
    char *before = print_to_text(graph);
    inf_graph_compact(graph);
    char *after = print_to_text(graph);
    cr_expect_str_eq(after, before);
    cr_expect_eq(graph->nodes[2].name, graph->nodes[0].name, "one name is in memory twice");
    cr_expect_eq(graph->values[same].data, graph->values[1].data);
    cr_expect_neq(graph->values[other].data, graph->values[1].data);
    cr_expect_neq(graph->values[first].data, graph->values[second].data);
    for (uint32_t i = 0; i < 100; i++)
        cr_expect_eq(*(const float *)graph->values[different + i].data->data, (float)i);
    cr_expect_eq(graph->nodes[1].inputs, graph->nodes[0].outputs + 1, "lists lie together");
    cr_expect_eq(graph->subgraphs[0]->nodes[1].inputs, graph->subgraphs[0]->nodes[0].outputs + 1);
    free(before);
    free(after);
    inf_graph_destroy(&graph);
}
