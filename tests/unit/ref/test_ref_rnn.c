// SPDX-License-Identifier: Apache-2.0
// Recurrent networks on the reference device. The expected literals are worked out by hand or with
// Python's math module, or are the examples of ONNX's documentation.
#include "tests/unit/ref/ref_case.h"

static void run_lstm(const float *x)
{
    begin_case(INF_OP_RNN);
    one.output_count = 3;
    add_input(INF_DTYPE_F32, SHAPE(3, 1, 1), x);
    add_input(INF_DTYPE_F32, SHAPE(1, 4, 1), F32(0.5f, 0.25f, -0.5f, 1));
    add_input(INF_DTYPE_F32, SHAPE(1, 4, 1), F32(0.1f, 0.2f, 0.3f, 0.4f));
    add_input(INF_DTYPE_F32, SHAPE(1, 8), F32(0.1f, 0, 0.1f, 0, 0, 0, 0.1f, 0));
}

Test(ref, runs_an_lstm)
{
    run_lstm(F32(1, -2, 3));
    expect_output(INF_DTYPE_F32, SHAPE(3, 1, 1, 1), F32(0.25612025f, 0.04002688f, 0.47087488f));
    one_node_expect(&one, 1, INF_DTYPE_F32, SHAPE(1, 1, 1), F32(0.47087488f));
    one_node_expect(&one, 2, INF_DTYPE_F32, SHAPE(1, 1, 1), F32(0.85087619f));
    run_lstm(F32(1, -2, 3)); // backwards, over two of the three steps
    one.attrs.rnn.direction = INF_DIRECTION_REVERSE;
    add_input(INF_DTYPE_I32, SHAPE(1), I32(2));
    expect_output(INF_DTYPE_F32, SHAPE(3, 1, 1, 1), F32(0.19331281f, -0.1025618f, 0));
    one_node_expect(&one, 1, INF_DTYPE_F32, SHAPE(1, 1, 1), F32(0.19331281f));
    one_node_expect(&one, 2, INF_DTYPE_F32, SHAPE(1, 1, 1), F32(0.36201203f));
    run_lstm(F32(1, -2, 3)); // without any step, the final states are the initial states
    add_input(INF_DTYPE_I32, SHAPE(1), I32(-4));
    add_input(INF_DTYPE_F32, SHAPE(1, 1, 1), F32(7));
    add_input(INF_DTYPE_F32, SHAPE(1, 1, 1), F32(8));
    expect_output(INF_DTYPE_F32, SHAPE(3, 1, 1, 1), F32(0, 0, 0));
    one_node_expect(&one, 1, INF_DTYPE_F32, SHAPE(1, 1, 1), F32(7));
    one_node_expect(&one, 2, INF_DTYPE_F32, SHAPE(1, 1, 1), F32(8));
}

Test(ref, runs_a_gru)
{
    begin_case(INF_OP_RNN);
    one.output_count = 2;
    one.attrs.rnn.kind = INF_RNN_GRU;
    add_input(INF_DTYPE_F32, SHAPE(2, 1, 1), F32(1, 2));
    add_input(INF_DTYPE_F32, SHAPE(1, 6, 1), F32(0.5f, -0.5f, 0.25f, 1, 1, -1));
    add_input(INF_DTYPE_F32, SHAPE(1, 6, 2),
              F32(0.1f, 0.2f, 0.3f, 0.4f, 0.5f, 0.6f, -0.1f, -0.2f, 0.7f, -0.7f, 0.8f, 0.9f));
    add_input(INF_DTYPE_F32, SHAPE(1, 12),
              F32(0.1f, 0.1f, 0.1f, 0.1f, 0.1f, 0.1f, 0.2f, 0.2f, 0.2f, 0.2f, 0.2f, 0.2f));
    one_node_absent(&one);
    add_input(INF_DTYPE_F32, SHAPE(1, 1, 2), F32(0.5f, -0.5f));
    expect_output(INF_DTYPE_F32, SHAPE(2, 1, 1, 2),
                  F32(0.643205f, -0.59483503f, 0.72181749f, -0.83606263f));
    one_node_expect(&one, 1, INF_DTYPE_F32, SHAPE(1, 1, 2), F32(0.72181749f, -0.83606263f));
    one.attrs.rnn.linear_before_reset = true;
    expect_output(INF_DTYPE_F32, SHAPE(2, 1, 1, 2),
                  F32(0.63803206f, -0.58613209f, 0.71728172f, -0.82553186f));
}

Test(ref, runs_a_simple_network_both_ways)
{
    begin_case(INF_OP_RNN);
    one.output_count = 2;
    one.attrs.rnn.kind = INF_RNN_SIMPLE;
    one.attrs.rnn.direction = INF_DIRECTION_BIDIRECTIONAL;
    one.attrs.rnn.activations = AXES(INF_UNARY_RELU, INF_UNARY_NEG);
    one.attrs.rnn.clip = 100;
    add_input(INF_DTYPE_F32, SHAPE(3, 1, 1), F32(1, -5, 60));
    add_input(INF_DTYPE_F32, SHAPE(2, 1, 1), F32(2, 1));
    add_input(INF_DTYPE_F32, SHAPE(2, 1, 1), F32(3, 1));
    // forward: 2, max(-10 + 6, 0) = 0, and 120 clipped to 100; backward: -60, -(-5 - 60), -(1 + 65)
    expect_output(INF_DTYPE_F32, SHAPE(3, 2, 1, 1), F32(2, -66, 0, 65, 100, -60));
    one_node_expect(&one, 1, INF_DTYPE_F32, SHAPE(2, 1, 1), F32(100, -66));
}
