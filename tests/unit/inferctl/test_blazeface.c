// SPDX-License-Identifier: Apache-2.0
// Tests of decoding the outputs of BlazeFace.
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "client/examples/blazeface.h"

// The outputs of a small network with input 8 x 8: a grid of 2 x 2 cells with one anchor each. The
// coordinates of the anchors are 2 and 6.
struct small {
    float scores[4], boxes[4][16];
    struct blazeface_grid grid;
};

static struct blazeface_grid *small_grid(struct small *small)
{
    memset(small, 0, sizeof *small);
    for (int i = 0; i < 4; i++)
        small->scores[i] = -100;
    small->grid = (struct blazeface_grid){.scores = small->scores,
                                          .boxes = small->boxes[0],
                                          .anchor_count = 4,
                                          .anchors_per_cell = 1};
    return &small->grid;
}

static void set_anchor(struct small *small, int anchor, float score, float x, float y, float width,
                       float height)
{
    small->scores[anchor] = score;
    small->boxes[anchor][0] = x;
    small->boxes[anchor][1] = y;
    small->boxes[anchor][2] = width;
    small->boxes[anchor][3] = height;
}

static void check_box(const struct face *face, float x0, float y0, float x1, float y1)
{
    cr_expect_float_eq(face->x0, x0, 1e-4f, "x0 is %f", (double)face->x0);
    cr_expect_float_eq(face->y0, y0, 1e-4f, "y0 is %f", (double)face->y0);
    cr_expect_float_eq(face->x1, x1, 1e-4f, "x1 is %f", (double)face->x1);
    cr_expect_float_eq(face->y1, y1, 1e-4f, "y1 is %f", (double)face->y1);
}

Test(blazeface, boxes_are_relative_to_their_anchors)
{
    struct small small;
    struct face faces[BLAZEFACE_FACES_MAX];
    struct blazeface_grid *grid = small_grid(&small);
    set_anchor(&small, 0, 0, 0, 0, 2, 4);     // the anchor at (2,2)
    set_anchor(&small, 3, 2, 0.5f, -1, 1, 1); // the anchor at (6,6)
    cr_assert_eq(blazeface_decode(grid, 1, 8, 0.5f, 0.3f, faces), 2u);
    // The best face comes first: the logits 2 and 0 give the scores 0.880797 and 0.5.
    cr_expect_float_eq(faces[0].score, 0.880797f, 1e-5f);
    check_box(&faces[0], 6, 4.5f, 7, 5.5f);
    cr_expect_float_eq(faces[1].score, 0.5f, 1e-6f);
    check_box(&faces[1], 1, 0, 3, 4);
}

Test(blazeface, columns_run_faster_than_rows)
{
    struct small small;
    struct face faces[BLAZEFACE_FACES_MAX];
    struct blazeface_grid *grid = small_grid(&small);
    set_anchor(&small, 1, 5, 0, 0, 2, 2);
    cr_assert_eq(blazeface_decode(grid, 1, 8, 0.5f, 0.3f, faces), 1u);
    check_box(&faces[0], 5, 1, 7, 3);
}

Test(blazeface, low_scores_and_nans_are_no_faces)
{
    struct small small;
    struct face faces[BLAZEFACE_FACES_MAX];
    struct blazeface_grid *grid = small_grid(&small);
    set_anchor(&small, 0, -0.01f, 0, 0, 2, 2);
    set_anchor(&small, 1, NAN, 0, 0, 2, 2);
    set_anchor(&small, 2, -INFINITY, 0, 0, 2, 2);
    cr_assert_eq(blazeface_decode(grid, 1, 8, 0.5f, 0.3f, faces), 0u);
    set_anchor(&small, 3, INFINITY, 0, 0, 2, 2);
    cr_assert_eq(blazeface_decode(grid, 1, 8, 0.5f, 0.3f, faces), 1u);
    cr_assert_eq(faces[0].score, 1.0f);
}

Test(blazeface, of_overlapping_boxes_the_best_stays)
{
    struct small small;
    struct face faces[BLAZEFACE_FACES_MAX];
    struct blazeface_grid *grid = small_grid(&small);
    // The boxes span [0,4] and [1,5] horizontally, and both are 4 high. They share 12 of 20 pixels,
    // an overlap of 0.6.
    set_anchor(&small, 0, 1, 0, 0, 4, 4);
    set_anchor(&small, 1, 3, -3, 0, 4, 4);
    cr_assert_eq(blazeface_decode(grid, 1, 8, 0.5f, 0.59f, faces), 1u);
    check_box(&faces[0], 1, 0, 5, 4);
    cr_assert_eq(blazeface_decode(grid, 1, 8, 0.5f, 0.61f, faces), 2u);
    // Two boxes that touch but do not overlap are both kept.
    set_anchor(&small, 1, 3, 0, 0, 4, 4);
    cr_assert_eq(blazeface_decode(grid, 1, 8, 0.5f, 0, faces), 2u);
}

Test(blazeface, grids_of_the_real_network_are_16_and_8_wide)
{
    static float scores[2][512];
    static float boxes[2][512 * 16];
    for (int g = 0; g < 2; g++)
        for (int i = 0; i < 512; i++)
            scores[g][i] = -50;
    struct blazeface_grid grids[] = {{scores[0], boxes[0], 512, 2}, {scores[1], boxes[1], 384, 6}};
    // Anchor 511 is the second anchor of cell 255, the last cell of 16 x 16, so it is at 15.5 * 16
    // = 248. Anchor 70 of the other grid is the fifth anchor of cell 11 (row 1, column 3 of 8 x 8),
    // so it is at 3.5 * 32 and 1.5 * 32.
    scores[0][511] = 4;
    boxes[0][511 * 16 + 2] = boxes[0][511 * 16 + 3] = 10;
    scores[1][70] = 5;
    boxes[1][70 * 16 + 2] = boxes[1][70 * 16 + 3] = 20;
    struct face faces[BLAZEFACE_FACES_MAX];
    cr_assert_eq(blazeface_decode(grids, 2, 256, 0.5f, 0.3f, faces), 2u);
    check_box(&faces[0], 102, 38, 122, 58);
    check_box(&faces[1], 243, 243, 253, 253);
}

Test(blazeface, keeps_the_best_of_too_many)
{
    static float scores[256];
    static float boxes[256 * 16];
    // Every anchor is a face, no faces overlap, and the logits increase with the anchor.
    for (int i = 0; i < 256; i++) {
        scores[i] = 0.01f * (float)i;
        boxes[i * 16 + 2] = boxes[i * 16 + 3] = 1;
    }
    struct blazeface_grid grid = {scores, boxes, 256, 1};
    struct face faces[BLAZEFACE_FACES_MAX];
    cr_assert_eq(blazeface_decode(&grid, 1, 256, 0.5f, 0.3f, faces), 64u);
    check_box(&faces[0], 247.5f, 247.5f, 248.5f, 248.5f); // anchor 255
    check_box(&faces[63], 7.5f, 199.5f, 8.5f, 200.5f);    // anchor 192: row 12, column 0
    for (int i = 1; i < 64; i++)
        cr_assert_lt(faces[i].score, faces[i - 1].score);
}
