// SPDX-License-Identifier: Apache-2.0
// Operator nms with a fixed number of results and hard suppression, of one picture and class or of
// several. It selects the boxes that ref selects, in the same order: overlaps are computed in
// double, from the same sums. Three things make it fast: boxes are taken from a heap, so that those
// behind the last selected one are never sorted; the corners and the area of a box are computed
// once; and those of the selected boxes are stored side by side.
#include <math.h>
#include <string.h>

#include "backends/cpu/native/work.h"

// A box with ordered corners.
struct corners {
    double low[2], high[2], area;
};

// The numbers of one run.
struct nms {
    const float *boxes;
    double overlap;
    bool strict;
    struct corners *selected;
    size_t selected_count;
};

struct sizes {
    size_t pictures, classes, boxes;
    size_t most;     // number of results of each class
    bool is_grouped; // a result is a picture, a class and a box, not only a box
};

// Combines a score and the index of its box to one integer: a larger score gives a larger entry,
// and of equal scores the first box does. Adding 0 makes -0 equal to 0.
static uint64_t make_entry(float score, uint32_t box)
{
    uint32_t bits;
    score += 0.0f;
    memcpy(&bits, &score, sizeof bits);
    bits = bits >> 31 != 0 ? ~bits : bits | 0x80000000u;
    return (uint64_t)bits << 32 | (UINT32_MAX - box);
}

static void sift_down(uint64_t *heap, size_t hole, size_t count, uint64_t value)
{
    for (size_t child; (child = 2 * hole + 1) < count; hole = child) {
        child += child + 1 < count && heap[child + 1] > heap[child];
        if (value >= heap[child])
            break;
        heap[hole] = heap[child];
    }
    heap[hole] = value;
}

static struct corners read_corners(const float *box)
{
    struct corners corners = {.area = 1};
    for (int axis = 0; axis < 2; axis++) {
        corners.low[axis] = fmin((double)box[axis], (double)box[axis + 2]);
        corners.high[axis] = fmax((double)box[axis], (double)box[axis + 2]);
        corners.area *= corners.high[axis] - corners.low[axis];
    }
    return corners;
}

// Returns intersection over union; 0 if a box has no area. A NaN in a corner is in the area too, so
// that the result is NaN whatever the comparisons give.
static double find_overlap(const struct corners *a, const struct corners *b)
{
    double both = 1;
    for (int axis = 0; axis < 2; axis++) {
        double low = a->low[axis] > b->low[axis] ? a->low[axis] : b->low[axis];
        double high = a->high[axis] < b->high[axis] ? a->high[axis] : b->high[axis];
        both *= high - low > 0 ? high - low : 0;
    }
    return a->area <= 0 || b->area <= 0 ? 0 : both / (a->area + b->area - both);
}

// Returns true if no selected box suppresses `box`. An overlap that is NaN, of boxes with infinite
// corners, suppresses too: ref multiplies the score by it.
static bool box_survives(const struct nms *nms, const struct corners *box)
{
    for (size_t i = nms->selected_count; i-- > 0;) {
        double shared = find_overlap(box, &nms->selected[i]);
        bool is_apart = nms->strict ? shared <= nms->overlap : shared < nms->overlap;
        if (!is_apart)
            return false;
    }
    return true;
}

static float read_scalar(const struct inf_cpu_step *step, uint32_t input)
{
    return step->operand_count > input && step->inputs[input] != NULL
               ? *(const float *)step->inputs[input]
               : 0;
}

// Collects the boxes whose score is above the threshold in a heap. Returns their number.
static size_t collect_boxes(const float *scores, size_t boxes, double threshold, uint64_t *heap)
{
    size_t count = 0;
    for (size_t i = 0; i < boxes; i++)
        if ((double)scores[i] > threshold)
            heap[count++] = make_entry(scores[i], (uint32_t)i);
    for (size_t i = count / 2; i-- > 0;)
        sift_down(heap, i, count, heap[i]);
    return count;
}

// Selects the boxes of one class of one picture, and writes their indices to every `stride`-th of
// `indices`. `nms` has no selected box yet.
static void select_boxes(struct nms *nms, const struct sizes *sizes, const float *scores,
                         double threshold, uint64_t *heap, int32_t *indices, float *values)
{
    size_t stride = sizes->is_grouped ? 3 : 1;
    size_t left = collect_boxes(scores, sizes->boxes, threshold, heap);
    while (left > 0 && nms->selected_count < sizes->most) {
        uint32_t box = UINT32_MAX - (uint32_t)heap[0];
        struct corners corners = read_corners(nms->boxes + (size_t)box * 4);
        left--;
        sift_down(heap, 0, left, heap[left]);
        if (!box_survives(nms, &corners))
            continue;
        indices[nms->selected_count * stride] = (int32_t)box;
        values[nms->selected_count] = scores[box];
        nms->selected[nms->selected_count++] = corners;
    }
}

static void nms_run(const struct inf_cpu_step *step)
{
    const struct sizes *sizes = step->state;
    uint64_t *heap = (uint64_t *)(void *)step->scratch;
    int32_t *indices = step->outputs[0];
    float *values = step->outputs[1];
    struct nms nms = {.overlap = (double)read_scalar(step, 3),
                      .strict = step->node->attrs.nms.strict,
                      .selected = (struct corners *)(void *)(heap + sizes->boxes)};
    double threshold = (double)read_scalar(step, 4);
    size_t groups = sizes->pictures * sizes->classes, width = sizes->is_grouped ? 3 : 1, row = 0;
    memset(indices, 0, groups * sizes->most * width * sizeof *indices);
    memset(values, 0, groups * sizes->most * sizeof *values);
    for (size_t group = 0; group < groups; group++) {
        size_t picture = group / sizes->classes;
        int32_t *rows = indices + row * width;
        nms.boxes = (const float *)step->inputs[0] + picture * sizes->boxes * 4;
        nms.selected_count = 0;
        select_boxes(&nms, sizes, (const float *)step->inputs[1] + group * sizes->boxes, threshold,
                     heap, rows + width - 1, values + row);
        for (size_t i = 0; sizes->is_grouped && i < nms.selected_count; i++) {
            rows[i * width] = (int32_t)picture;
            rows[i * width + 1] = (int32_t)(group % sizes->classes);
        }
        row += nms.selected_count;
    }
    *(int32_t *)step->outputs[2] = (int32_t)row;
}

static enum inf_code nms_supports(const struct inf_graph *graph, const struct inf_node *node,
                                  struct inf_error *err)
{
    for (uint32_t i = 0; i < 5; i++)
        if (i != 2 && inf_cpu_has_input(node, i))
            INF_TRY(inf_cpu_need_f32(graph, node, i, err));
    if (!node->attrs.nms.pad || inf_cpu_has_input(node, 5))
        return inf_fail(err, INF_UNSUPPORTED,
                        "cpu: nms with an open number of results, or soft, is not built");
    return INF_OK;
}

static enum inf_code nms_create(struct inf_cpu_step *step, struct inf_error *err)
{
    INF_TRY(inf_cpu_step_alloc_state(step, sizeof(struct sizes), err));
    struct sizes *sizes = step->state;
    const struct inf_shape *scores = inf_cpu_input_shape(step->graph, step->node, 1);
    size_t rows = (size_t)inf_cpu_output_shape(step->graph, step->node)->dims[0];
    sizes->is_grouped = scores->rank == 3;
    sizes->pictures = sizes->is_grouped ? (size_t)scores->dims[0] : 1;
    sizes->classes = sizes->is_grouped ? (size_t)scores->dims[1] : 1;
    sizes->boxes = (size_t)scores->dims[scores->rank - 1];
    sizes->most = rows / INF_MAX(sizes->pictures * sizes->classes, (size_t)1);
    inf_native_need_scratch(
        step,
        (sizes->boxes * sizeof(uint64_t) + sizes->most * sizeof(struct corners)) / sizeof(float));
    step->run = nms_run;
    step->kernel = "nms";
    return INF_OK;
}

const struct inf_cpu_kernel inf_cpu_nms_kernels[] = {
    {INF_OP_NMS, nms_supports, nms_create},
    {0},
};
