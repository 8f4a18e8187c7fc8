// SPDX-License-Identifier: Apache-2.0
// The length of a range, computed from its three constant operands.
#include <math.h>

#include "backends/graph/shape/rules.h"

static enum inf_code float_length(struct inf_infer *infer, const double ends[3], int64_t *length)
{
    double steps = ends[2] == 0 ? NAN : ceil((ends[1] - ends[0]) / ends[2]);
    if (isnan(steps) || steps >= (double)INF_LIMIT_DIM)
        return inf_shape_fault(infer, "%g to %g by %g is no range", ends[0], ends[1], ends[2]);
    *length = steps > 0 ? (int64_t)steps : 0;
    return INF_OK;
}

static enum inf_code int_length(struct inf_infer *infer, const int64_t ends[3], int64_t *length)
{
    // Subtract as unsigned, because the difference of two int64 values may not fit into int64.
    bool up = ends[2] > 0;
    uint64_t distance = 0;
    uint64_t step = up ? (uint64_t)ends[2] : -(uint64_t)ends[2];
    if (up && ends[1] > ends[0])
        distance = (uint64_t)ends[1] - (uint64_t)ends[0];
    else if (!up && ends[1] < ends[0])
        distance = (uint64_t)ends[0] - (uint64_t)ends[1];
    uint64_t count = step == 0 || distance == 0 ? 0 : (distance - 1) / step + 1;
    if (step == 0 || count >= (uint64_t)INF_LIMIT_DIM)
        return inf_shape_fault(infer, "%lld to %lld by %lld is no range", (long long)ends[0],
                               (long long)ends[1], (long long)ends[2]);
    *length = (int64_t)count;
    return INF_OK;
}

// Returns true if start, limit and step of the range are all constants of one element.
static bool ends_known(const struct inf_infer *infer)
{
    for (uint32_t i = 0; i < 3; i++) {
        size_t count;
        if (!inf_graph_is_const(infer->graph, infer->node->inputs[i]) ||
            !inf_shape_count(inf_infer_input(infer, i), &count) || count != 1)
            return false;
    }
    return true;
}

enum inf_code inf_infer_range(struct inf_infer *infer)
{
    int64_t length = INF_DIM_UNKNOWN;
    for (uint32_t i = 0; i < 3; i++)
        if (inf_infer_input(infer, i)->rank > 0)
            return inf_shape_fault(infer, "input %u has rank %d, wanted a scalar", i,
                                   inf_infer_input(infer, i)->rank);
    if (infer->dtype != INF_DTYPE_F32 && infer->dtype != INF_DTYPE_I32 &&
        infer->dtype != INF_DTYPE_I64)
        return inf_fail_reason(infer->err, INF_UNSUPPORTED, INF_REASON_DTYPE_MISMATCH,
                               "it is not defined for %s, wanted FP32, INT32 or INT64",
                               inf_dtype_name(infer->dtype));
    if (ends_known(infer)) {
        double reals[3];
        int64_t integers[3];
        uint32_t count;
        for (uint32_t i = 0; i < 3; i++) {
            uint32_t value = infer->node->inputs[i];
            if (infer->dtype == INF_DTYPE_F32)
                reals[i] = *(const float *)infer->graph->values[value].data->data;
            else if (!inf_graph_const_ints(infer->graph, value, &integers[i], 1, &count))
                return inf_shape_fault(infer, "input %u is no scalar", i);
        }
        INF_TRY(infer->dtype == INF_DTYPE_F32 ? float_length(infer, reals, &length)
                                              : int_length(infer, integers, &length));
    }
    return inf_infer_output(infer, 0, &INF_SHAPE(length));
}
