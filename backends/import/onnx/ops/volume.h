// SPDX-License-Identifier: Apache-2.0
// GridSample of volumes.
#ifndef INF_BACKENDS_IMPORT_ONNX_OPS_VOLUME_H
#define INF_BACKENDS_IMPORT_ONNX_OPS_VOLUME_H

#include "backends/import/onnx/scope.h"

// How a volume is sampled.
struct inf_onnx_volume {
    bool is_linear; // true: eight elements by distance; false: the nearest one
    bool clamps;    // true: positions outside are moved to the border; false: outside is 0
    bool align_corners;
};

// Adds nodes that sample x [n, c, d, h, w] at the positions grid [n, d', h', w', 3], which run from
// -1 to 1. Returns the result [n, c, d', h', w'].
uint32_t inf_onnx_sample_volume(struct inf_onnx_scope *s, uint32_t x, uint32_t grid,
                                const struct inf_onnx_volume *what);

#endif
