// SPDX-License-Identifier: Apache-2.0
// Operators that compute the same as an operator of ai.onnx and differ from it only in name or
// domain: operators of com.microsoft, and early experimental operators of ai.onnx.
#include <assert.h>
#include <string.h>

#include "backends/graph/build/operators.h"
#include "backends/import/onnx/attr.h"
#include "backends/import/onnx/contrib/call.h"
#include "backends/import/onnx/op_table.h"

// The operators of ai.onnx that the aliases are lowered as, indexed by enum target. `opset` is the
// version of ai.onnx whose definition the alias has.
static const struct {
    const char *name;
    int64_t opset;
} targets[] = {
    {"Trilu", 14},          {"GridSample", 16},         {"Pad", 13},
    {"QuantizeLinear", 13}, {"DequantizeLinear", 13},   {"RMSNormalization", 23},
    {"Slice", 10},          {"LayerNormalization", 17},
};
enum target {
    TRILU,
    GRID_SAMPLE,
    PAD,
    QUANTIZE,
    DEQUANTIZE,
    RMS_NORM,
    SLICE,
    LAYER_NORM
};

static void lower_alias(struct inf_onnx_scope *s)
{
    assert((size_t)s->op->kind < INF_ARRAY_LENGTH(targets));
    inf_onnx_call(s, targets[s->op->kind].name, targets[s->op->kind].opset, s->inputs,
                  s->input_count, s->outputs, s->output_count);
}

// Lowers SampleOp, whose output is its input.
static void lower_sample(struct inf_onnx_scope *s)
{
    s->outputs[0] = s->inputs[0];
}

static const struct inf_onnx_op ops[] = {
    {"com.microsoft::Trilu", lower_alias, 1, 2, 1, TRILU},
    {"com.microsoft::GridSample", lower_alias, 2, 2, 1, GRID_SAMPLE},
    {"com.microsoft::Pad", lower_alias, 2, 4, 1, PAD},
    {"com.microsoft::QuantizeLinear", lower_alias, 2, 3, 1, QUANTIZE},
    {"com.microsoft::DequantizeLinear", lower_alias, 2, 3, 1, DEQUANTIZE},
    {"com.microsoft::SimplifiedLayerNormalization", lower_alias, 2, 2, 1, RMS_NORM},
    {"SimplifiedLayerNormalization", lower_alias, 2, 2, 1, RMS_NORM},
    {"com.microsoft::LayerNormalization", lower_alias, 2, 3, 3, LAYER_NORM},
    {"DynamicSlice", lower_alias, 3, 4, 1, SLICE},
    {"com.microsoft::SampleOp", lower_sample, 1, 1, 1, 0},
};

const struct inf_onnx_op_table inf_onnx_ops_contrib_alias = {ops, INF_ARRAY_LENGTH(ops)};
