// SPDX-License-Identifier: Apache-2.0
// Decodes the raw outputs of BlazeFace: anchors, boxes, non-maximum suppression. The daemon only
// runs the network; the application interprets the outputs.
#ifndef INF_CLIENT_EXAMPLES_BLAZEFACE_H
#define INF_CLIENT_EXAMPLES_BLAZEFACE_H

#include <stddef.h>

#define BLAZEFACE_FACES_MAX 64

// A face, in pixels of the network's input.
struct face {
    float score; // 0..1
    float x0, y0, x1, y1;
};

// One square grid of anchors, in the form that the network returns: `scores` [rows * columns *
// anchors] and `boxes` [rows * columns * anchors, 16].
struct blazeface_grid {
    const float *scores; // logits
    const float *boxes;  // x and y of the centre relative to the anchor, width, height, 6 points
    size_t anchor_count; // rows * columns * anchors_per_cell
    size_t anchors_per_cell;
};

// Decodes the grids of a network with an input of `side` x `side`. Keeps faces with a score of at
// least `score_min` that overlap no better face by more than `overlap_max` (intersection over
// union), the best first. Returns their number, at most BLAZEFACE_FACES_MAX.
size_t blazeface_decode(const struct blazeface_grid *grids, size_t grid_count, float side,
                        float score_min, float overlap_max, struct face faces[BLAZEFACE_FACES_MAX]);

#endif
