// SPDX-License-Identifier: Apache-2.0
// Non-maximum suppression, hard and soft (Bodla et al., "Soft-NMS", 2017), with the tie rules of
// TensorFlow.js: among equal scores, the first box wins. Each class of each picture is a pass of
// its own.
#include <math.h>
#include <stdlib.h>

#include "backends/ref/dynamic.h"

struct candidate {
    double score;
    uint32_t box;
    uint32_t seen; // number of selected boxes with which this candidate was compared
};

// The pictures and classes of a node; one of each if the boxes have rank 2.
struct extent {
    size_t pictures, classes, boxes;
};

// One pass: one class of one picture.
struct nms {
    const struct inf_ref_tensor *boxes;
    size_t first; // index of the picture's first box in `boxes`
    // scale: factor of the exponent by which soft suppression lowers scores; 0 for hard suppression
    double overlap_threshold, score_threshold, scale;
    bool strict;
    // candidates that are not yet selected or suppressed, sorted by score, lowest first
    struct candidate *candidates;
    size_t candidate_count;
    uint32_t *selected; // indices of the selected boxes
    double *scores;     // scores of the selected boxes
    size_t selected_count, selected_max;
};

static int compare_scores(const struct candidate *a, const struct candidate *b)
{
    if (a->score != b->score)
        return a->score < b->score ? -1 : 1;
    return a->box < b->box ? 1 : a->box > b->box ? -1 : 0;
}

static int worst_first(const void *a, const void *b)
{
    return compare_scores(a, b);
}

// Returns intersection over union; 0 if a box has no area.
static double box_overlap(const struct nms *nms, size_t i, size_t j)
{
    double low[2], high[2], areas[2] = {1, 1}, both = 1;
    for (size_t axis = 0; axis < 2; axis++) {
        size_t at[2] = {(nms->first + i) * 4 + axis, (nms->first + j) * 4 + axis};
        for (int k = 0; k < 2; k++) {
            double a = inf_ref_get(nms->boxes, at[k]), b = inf_ref_get(nms->boxes, at[k] + 2);
            low[k] = fmin(a, b);
            high[k] = fmax(a, b);
            areas[k] *= high[k] - low[k];
        }
        both *= fmax(fmin(high[0], high[1]) - fmax(low[0], low[1]), 0);
    }
    return areas[0] <= 0 || areas[1] <= 0 ? 0 : both / (areas[0] + areas[1] - both);
}

// Lowers the candidate's score by the selected boxes with which it was not compared before. Returns
// false if one of these boxes suppresses the candidate.
static bool box_survives(const struct nms *nms, struct candidate *candidate)
{
    for (size_t i = nms->selected_count; i-- > candidate->seen;) {
        double shared = box_overlap(nms, candidate->box, nms->selected[i]);
        bool above =
            nms->strict ? shared > nms->overlap_threshold : shared >= nms->overlap_threshold;
        if (above)
            return false;
        candidate->score *= exp(nms->scale * shared * shared);
        if (candidate->score <= nms->score_threshold)
            break;
    }
    candidate->seen = (uint32_t)nms->selected_count;
    return true;
}

// Puts a candidate whose score was lowered back into the sorted list of candidates.
static void put_back(struct nms *nms, const struct candidate *candidate)
{
    size_t low = 0, high = nms->candidate_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare_scores(&nms->candidates[middle], candidate) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    memmove(&nms->candidates[low + 1], &nms->candidates[low],
            (nms->candidate_count - low) * sizeof *nms->candidates);
    nms->candidates[low] = *candidate;
    nms->candidate_count++;
}

static enum inf_code select_boxes(struct nms *nms, const struct inf_ref_call *call,
                                  struct inf_error *err)
{
    while (nms->selected_count < nms->selected_max && nms->candidate_count > 0) {
        INF_TRY(inf_ref_check_cancelled(call, err));
        struct candidate candidate = nms->candidates[--nms->candidate_count];
        double score = candidate.score;
        if (score < nms->score_threshold)
            break;
        if (!box_survives(nms, &candidate))
            continue;
        if (candidate.score == score) {
            nms->selected[nms->selected_count] = candidate.box;
            nms->scores[nms->selected_count++] = score;
        } else if (candidate.score > nms->score_threshold) {
            put_back(nms, &candidate);
        }
    }
    return INF_OK;
}

static double read_scalar(const struct inf_ref_call *call, uint32_t input)
{
    return inf_ref_has_input(call, input) ? inf_ref_get(&call->inputs[input], 0) : 0;
}

static struct extent find_extent(const struct inf_ref_call *call)
{
    const struct inf_shape *scores = call->inputs[1].shape;
    if (scores->rank < 3)
        return (struct extent){1, 1, call->inputs[1].count};
    return (struct extent){(size_t)scores->dims[0], (size_t)scores->dims[1],
                           (size_t)scores->dims[2]};
}

// Selects the boxes of one class of one picture. The caller calls end_nms(), also after a failure.
static enum inf_code run_pass(struct nms *nms, const struct inf_ref_call *call,
                              const struct extent *extent, size_t picture, size_t class,
                              struct inf_error *err)
{
    const struct inf_ref_tensor *scores = &call->inputs[1];
    size_t first = (picture * extent->classes + class) * extent->boxes;
    int64_t most = (int64_t)inf_ref_load_int(&call->inputs[2], 0);
    double sigma = read_scalar(call, 5);
    *nms = (struct nms){
        .boxes = &call->inputs[0],
        .first = picture * extent->boxes,
        .overlap_threshold = read_scalar(call, 3),
        .score_threshold = read_scalar(call, 4),
        .scale = sigma > 0 ? -0.5 / sigma : 0,
        .strict = call->node->attrs.nms.strict,
        .candidates = calloc(extent->boxes + 1, sizeof *nms->candidates),
        .selected_max = most < 0 ? 0 : INF_MIN((size_t)most, extent->boxes),
    };
    nms->selected = calloc(nms->selected_max + 1, sizeof *nms->selected);
    nms->scores = calloc(nms->selected_max + 1, sizeof *nms->scores);
    if (nms->candidates == NULL || nms->selected == NULL || nms->scores == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "no memory for %zu boxes",
                               extent->boxes);
    for (size_t i = 0; i < extent->boxes; i++) {
        double score = inf_ref_get(scores, first + i);
        if (score > nms->score_threshold)
            nms->candidates[nms->candidate_count++] =
                (struct candidate){.score = score, .box = (uint32_t)i};
    }
    INF_TRY(inf_ref_check_cancelled(call, err));
    qsort(nms->candidates, nms->candidate_count, sizeof *nms->candidates, worst_first);
    return select_boxes(nms, call, err);
}

static void end_nms(struct nms *nms)
{
    free(nms->candidates);
    free(nms->selected);
    free(nms->scores);
}

// Stores the boxes of a pass from row `row` on, as far as the outputs have rows. Returns the row
// behind them.
static size_t store_pass(const struct nms *nms, const struct inf_ref_call *call, size_t row,
                         size_t picture, size_t class)
{
    const struct inf_ref_tensor *places = &call->outputs[0], *scores = &call->outputs[1];
    for (size_t i = 0; i < nms->selected_count && row < scores->count; i++, row++) {
        inf_ref_put(scores, row, nms->scores[i]);
        if (places->shape->rank == 1) {
            inf_ref_store_int(places, row, (int64_t)nms->selected[i]);
            continue;
        }
        inf_ref_store_int(places, 3 * row, (int64_t)picture);
        inf_ref_store_int(places, 3 * row + 1, (int64_t) class);
        inf_ref_store_int(places, 3 * row + 2, (int64_t)nms->selected[i]);
    }
    return row;
}

// Runs all passes. Counts the selected boxes in *rows, and stores them if `is_stored` is true.
static enum inf_code run_passes(const struct inf_ref_call *call, bool is_stored, size_t *rows,
                                struct inf_error *err)
{
    struct extent extent = find_extent(call);
    enum inf_code code = INF_OK;
    *rows = 0;
    if (extent.boxes == 0)
        return INF_OK;
    for (size_t picture = 0; code == INF_OK && picture < extent.pictures; picture++)
        for (size_t class = 0; code == INF_OK && class < extent.classes; class ++) {
            struct nms nms;
            code = run_pass(&nms, call, &extent, picture, class, err);
            *rows = is_stored ? store_pass(&nms, call, *rows, picture, class)
                              : *rows + nms.selected_count;
            end_nms(&nms);
        }
    return code;
}

enum inf_code inf_ref_nms_rows(const struct inf_ref_call *call, int64_t *rows,
                               struct inf_error *err)
{
    int64_t most = (int64_t)inf_ref_load_int(&call->inputs[2], 0);
    struct extent extent = find_extent(call);
    size_t count = 0;
    *rows = INF_MAX(most, 0) * (int64_t)extent.pictures * (int64_t)extent.classes;
    if (call->node->attrs.nms.pad)
        return INF_OK;
    enum inf_code code = run_passes(call, false, &count, err);
    *rows = (int64_t)count;
    return code;
}

enum inf_code inf_ref_nms(const struct inf_ref_call *call, struct inf_error *err)
{
    const struct inf_ref_tensor *places = &call->outputs[0], *scores = &call->outputs[1];
    size_t valid = 0;
    for (size_t i = 0; i < places->count; i++)
        inf_ref_store_int(places, i, 0);
    for (size_t i = 0; i < scores->count; i++)
        inf_ref_put(scores, i, 0);
    enum inf_code code = run_passes(call, true, &valid, err);
    inf_ref_store_int(&call->outputs[2], 0, (int64_t)valid);
    return code;
}
