// SPDX-License-Identifier: Apache-2.0
// The table of kernels: one row per operator of ops.def, in its order.
#include "backends/ref/kernels.h"

#include <assert.h>

static const struct inf_ref_kernel kernels[INF_OP_COUNT] = {
#define INF_OP_BEGIN(NAME, name, inputs_min, inputs_max, outputs, dtypes, doc)                     \
    [INF_OP_##NAME] = {inf_ref_##name, "ref_" #name},
#define INF_ATTR_INT(op, field, initial, min, max, doc)
#define INF_ATTR_BOOL(op, field, initial, doc)
#define INF_ATTR_FLOAT(op, field, initial, doc)
#define INF_ATTR_ENUM(op, field, tag, initial, doc)
#define INF_ATTR_INTS(op, field, doc)
#define INF_OP_END(NAME, name)
#include "backends/graph/ops.def"
};

const struct inf_ref_kernel *inf_ref_kernel_find(enum inf_op op)
{
    assert((uint32_t)op < INF_OP_COUNT);
    return &kernels[op];
}
