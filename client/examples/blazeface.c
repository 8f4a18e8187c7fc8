// SPDX-License-Identifier: Apache-2.0
// Decodes the outputs of BlazeFace. The anchors are the centres of the cells of a grid, and each
// output is relative to its anchor. If faces overlap, the face with the best score is kept.
#include "client/examples/blazeface.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

static float measure_overlap(const struct face *a, const struct face *b)
{
    float width = fminf(a->x1, b->x1) - fmaxf(a->x0, b->x0);
    float height = fminf(a->y1, b->y1) - fmaxf(a->y0, b->y0);
    if (width <= 0 || height <= 0)
        return 0;
    float shared = width * height;
    float area_a = (a->x1 - a->x0) * (a->y1 - a->y0);
    float area_b = (b->x1 - b->x0) * (b->y1 - b->y0);
    return shared / (area_a + area_b - shared);
}

// Inserts a candidate into the list, which is sorted by score. If the list is full, the worst
// candidate is dropped.
static size_t insert_face(struct face *faces, size_t count, const struct face *face)
{
    size_t at = count < BLAZEFACE_FACES_MAX ? count : BLAZEFACE_FACES_MAX - 1;
    if (count == BLAZEFACE_FACES_MAX && faces[at].score >= face->score)
        return count;
    for (; at > 0 && faces[at - 1].score < face->score; at--)
        faces[at] = faces[at - 1];
    faces[at] = *face;
    return count < BLAZEFACE_FACES_MAX ? count + 1 : count;
}

static size_t decode_grid(const struct blazeface_grid *grid, float side, float score_min,
                          struct face *faces, size_t count)
{
    size_t cells = grid->anchor_count / grid->anchors_per_cell;
    size_t columns = (size_t)lroundf(sqrtf((float)cells));
    float stride = side / (float)columns;
    for (size_t i = 0; i < grid->anchor_count; i++) {
        float score = 1.0f / (1.0f + expf(-grid->scores[i]));
        if (!(score >= score_min))
            continue;
        size_t cell = i / grid->anchors_per_cell;
        const float *box = grid->boxes + i * 16;
        float x = ((float)(cell % columns) + 0.5f) * stride + box[0];
        float y = ((float)(cell / columns) + 0.5f) * stride + box[1];
        struct face face = {.score = score,
                            .x0 = x - box[2] / 2,
                            .y0 = y - box[3] / 2,
                            .x1 = x + box[2] / 2,
                            .y1 = y + box[3] / 2};
        count = insert_face(faces, count, &face);
    }
    return count;
}

size_t blazeface_decode(const struct blazeface_grid *grids, size_t grid_count, float side,
                        float score_min, float overlap_max, struct face faces[BLAZEFACE_FACES_MAX])
{
    struct face candidates[BLAZEFACE_FACES_MAX];
    size_t candidate_count = 0;
    for (size_t i = 0; i < grid_count; i++)
        candidate_count = decode_grid(&grids[i], side, score_min, candidates, candidate_count);

    size_t kept = 0;
    for (size_t i = 0; i < candidate_count; i++) {
        bool covered = false;
        for (size_t k = 0; k < kept && !covered; k++)
            covered = measure_overlap(&candidates[i], &faces[k]) > overlap_max;
        if (!covered)
            faces[kept++] = candidates[i];
    }
    return kept;
}
