// SPDX-License-Identifier: Apache-2.0
// Matrix products: fully connected layers and batches of products.
#include "backends/graph/build/operators.h"
#include "backends/import/tflite/block_weights.h"
#include "backends/import/tflite/op_table.h"

// Brings x to a matrix with `width` columns, or keeps its leading axes if that is allowed.
static uint32_t shape_rows(struct inf_tflite_scope *s, uint32_t x, int64_t width, bool keep_axes)
{
    int32_t rank = inf_build_rank(&s->b, x);
    if (!inf_build_ok(&s->b))
        return x;
    if (rank >= 2 && (rank == 2 || keep_axes) && inf_build_dim(&s->b, x, rank - 1) == width)
        return x;
    if (keep_axes && rank > 2)
        inf_build_fail(&s->b, INF_INVALID,
                       "the last axis of x has size %lld, the weights want %lld",
                       (long long)inf_build_dim(&s->b, x, rank - 1), (long long)width);
    return inf_build_reshape(&s->b, x, (int64_t[]){-1, width}, 2);
}

static void lower_fully_connected(struct inf_tflite_scope *s)
{
    static const struct inf_tflite_layout layout = {2, {0, 1}};
    bool keep_axes = inf_tflite_option_bool(s, 2, "keep_num_dims");
    if (inf_tflite_option(s, INF_FB_I8, 1, "weights_format", 0) != 0)
        inf_build_fail(&s->b, INF_UNSUPPORTED, "its weights are shuffled");
    struct inf_tflite_block_weights blocks;
    bool packed = inf_tflite_block_weights_add(s, 1, 0, &blocks);
    uint32_t weights = packed ? blocks.weights : inf_tflite_weights(s, 1, 0, &layout);
    uint32_t bias = inf_tflite_bias(s, 2, 0, 1);
    uint32_t x = inf_tflite_real(s, 0);
    if (!inf_build_ok(&s->b))
        return;
    if (bias != INF_VALUE_NONE && inf_build_rank(&s->b, bias) != 1)
        bias = inf_build_reshape(&s->b, bias, (int64_t[]){-1}, 1);
    int64_t width = packed ? blocks.inputs : inf_build_known_dim(&s->b, weights, 1);
    x = shape_rows(s, x, width, keep_axes);
    if (packed) {
        const uint32_t inputs[] = {x, blocks.weights, blocks.scales, blocks.zeros, bias};
        // TFLite's kernels round x to 8 bits.
        uint32_t y = inf_build_matmul_blocks(&s->b, inputs, blocks.bits, blocks.block, true);
        s->outputs[0] = inf_tflite_activate(s, y, 0);
        return;
    }
    struct inf_build_node node = inf_build_describe(INF_OP_MATMUL, x, weights, bias);
    node.attrs.matmul.transpose_b = true;
    s->outputs[0] = inf_tflite_activate(s, inf_build_value(&s->b, &node), 0);
}

static void lower_batch_matmul(struct inf_tflite_scope *s)
{
    struct inf_build_node node = inf_build_describe(INF_OP_MATMUL, inf_tflite_real(s, 0),
                                                    inf_tflite_real(s, 1), INF_VALUE_NONE);
    node.attrs.matmul.transpose_a = inf_tflite_option_bool(s, 0, "adj_x");
    node.attrs.matmul.transpose_b = inf_tflite_option_bool(s, 1, "adj_y");
    s->outputs[0] = inf_build_value(&s->b, &node);
}

static const struct inf_tflite_op ops[] = {
    {INF_TFLITE_FULLY_CONNECTED, NULL, lower_fully_connected, 2, 3, 1, INF_TFLITE_MODE_REAL,
     INF_TFLITE_OPTIONS_FULLY_CONNECTED, 0},
    {INF_TFLITE_BATCH_MATMUL, NULL, lower_batch_matmul, 2, 2, 1, INF_TFLITE_MODE_REAL,
     INF_TFLITE_OPTIONS_BATCH_MATMUL, 0},
};

const struct inf_tflite_op_table inf_tflite_ops_matmul = {ops, INF_ARRAY_LENGTH(ops)};
