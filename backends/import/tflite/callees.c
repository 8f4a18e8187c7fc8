// SPDX-License-Identifier: Apache-2.0
// Reads the numbers of subgraphs from the options of control flow operators and composites.
#include "backends/import/tflite/callees.h"

uint32_t inf_tflite_callees(const struct inf_tflite_operator *op,
                            int32_t callees[INF_TFLITE_CALLEES_MAX])
{
    const struct inf_fb_table *options = &op->options;
    switch (op->code->builtin) {
    case INF_TFLITE_IF:
        callees[0] = (int32_t)inf_fb_int(options, INF_FB_I32, 0, "then_subgraph_index", 0);
        callees[1] = (int32_t)inf_fb_int(options, INF_FB_I32, 1, "else_subgraph_index", 0);
        return 2;
    case INF_TFLITE_WHILE:
        callees[0] = (int32_t)inf_fb_int(options, INF_FB_I32, 0, "cond_subgraph_index", 0);
        callees[1] = (int32_t)inf_fb_int(options, INF_FB_I32, 1, "body_subgraph_index", 0);
        return 2;
    case INF_TFLITE_STABLEHLO_WHILE:
        callees[0] = (int32_t)inf_fb_int(&op->options_2, INF_FB_I32, 0, "cond_subgraph_index", 0);
        callees[1] = (int32_t)inf_fb_int(&op->options_2, INF_FB_I32, 1, "body_subgraph_index", 0);
        return 2;
    case INF_TFLITE_CALL:
        callees[0] = (int32_t)inf_fb_int(options, INF_FB_I32, 0, "subgraph", 0);
        return 1;
    case INF_TFLITE_CALL_ONCE:
        callees[0] = (int32_t)inf_fb_int(options, INF_FB_I32, 0, "init_subgraph_index", 0);
        return 1;
    case INF_TFLITE_STABLEHLO_COMPOSITE:
        callees[0] =
            (int32_t)inf_fb_int(&op->options_2, INF_FB_I32, 1, "decomposition_subgraph_index", 0);
        return 1;
    default:
        return 0;
    }
}
