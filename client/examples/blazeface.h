// SPDX-License-Identifier: Apache-2.0
// What BlazeFace's raw outputs mean: anchors, decoding, non-maximum suppression. The daemon runs
// networks; meaning is the application's, so it lives here.
#ifndef INF_CLIENT_EXAMPLES_BLAZEFACE_H
#define INF_CLIENT_EXAMPLES_BLAZEFACE_H

#include <stddef.h>

#define BLAZEFACE_FACES_MAX 64

// A face, in pixels of the network's input.
struct face {
    float score; // 0..1
    float x0, y0, x1, y1;
};

// One grid of anchors: `scores` [rows * columns * anchors] and `boxes` [the same, 16] as the network
// gives them. The grid is square.
struct blazeface_grid {
    const float *scores; // logits
    const float *boxes;  // x and y of the centre relative to the anchor, width, height, 6 points
    size_t anchor_count; // rows * columns * anchors_per_cell
    size_t anchors_per_cell;
};

// Decodes the grids of a network with input `side` x `side` and keeps, best first, faces that score
// at least `score_min` and overlap no better one by more than `overlap_max` (intersection over
// union). Returns how many there are, at most BLAZEFACE_FACES_MAX.
size_t blazeface_decode(const struct blazeface_grid *grids, size_t grid_count, float side,
                        float score_min, float overlap_max, struct face faces[BLAZEFACE_FACES_MAX]);

#endif
