// SPDX-License-Identifier: Apache-2.0
// Selection of boxes: non-maximum suppression, and the custom operator that ends SSD networks.
//
// TFLite_Detection_PostProcess decodes boxes from anchors, and selects the best of them. The fast
// way suppresses once, by the best score of each box. The regular way suppresses for each class,
// and then takes the best of all classes.
#include <math.h>

#include "backends/graph/build/operators.h"
#include "backends/import/tflite/flexbuffer.h"
#include "backends/import/tflite/op_table.h"
#include "backends/import/tflite/quantize.h"
#include "backends/import/tflite/tensor.h"

// The most classes of regular suppression, which makes nodes for each of them.
#define CLASSES_MAX 512
// The most boxes of a result.
#define DETECTIONS_MAX 10000

// Results of a suppression: positions [k] (i32), scores [k] and how many are valid (i32 scalar).
struct selection {
    uint32_t indices, scores, valid;
};

static struct selection add_suppression(struct inf_builder *b, uint32_t boxes, uint32_t scores,
                                        const uint32_t limits[4], bool has_sigma)
{
    uint32_t results[3];
    const uint32_t inputs[] = {boxes, scores, limits[0], limits[1], limits[2], limits[3]};
    struct inf_build_node node = inf_build_describe_list(INF_OP_NMS, inputs, has_sigma ? 6 : 5);
    node.attrs.nms.pad = true;
    node.attrs.nms.strict = true;
    node.output_count = 3;
    inf_build_emit(b, &node, results);
    return (struct selection){results[0], results[1], results[2]};
}

static void lower_suppression(struct inf_tflite_scope *s)
{
    bool has_sigma = s->row->kind == INF_TFLITE_NON_MAX_SUPPRESSION_V5;
    uint32_t limits[4] = {inf_build_reshape(&s->b, inf_tflite_list(s, 2), NULL, 0)};
    for (uint32_t i = 1; i < (has_sigma ? 4 : 3); i++)
        limits[i] = inf_build_reshape(&s->b, inf_tflite_real(s, 2 + i), NULL, 0);
    struct selection selection =
        add_suppression(&s->b, inf_tflite_real(s, 0), inf_tflite_real(s, 1), limits, has_sigma);
    s->outputs[0] = selection.indices;
    s->outputs[1] = has_sigma ? selection.scores : selection.valid;
    s->outputs[2] = selection.valid;
}

// --- the end of SSD networks ---

struct detection {
    double max_detections, classes_per_detection, detections_per_class, regular;
    double score_threshold, overlap_threshold, classes;
    double scales[4]; // of y, x, height and width
};

static struct detection read_detection(struct inf_tflite_scope *s)
{
    struct detection d = {.detections_per_class = 100};
    const struct {
        const char *name;
        double *number;
        double min, max;
    } options[] = {
        {"max_detections", &d.max_detections, 1, DETECTIONS_MAX},
        {"max_classes_per_detection", &d.classes_per_detection, 1, CLASSES_MAX},
        {"detections_per_class", &d.detections_per_class, 1, DETECTIONS_MAX},
        {"use_regular_nms", &d.regular, 0, 1},
        {"nms_score_threshold", &d.score_threshold, -1e30, 1e30},
        {"nms_iou_threshold", &d.overlap_threshold, 0, 1},
        {"num_classes", &d.classes, 1, 1 << 20},
        {"y_scale", &d.scales[0], 1e-30, 1e30},
        {"x_scale", &d.scales[1], 1e-30, 1e30},
        {"h_scale", &d.scales[2], 1e-30, 1e30},
        {"w_scale", &d.scales[3], 1e-30, 1e30},
    };
    for (size_t i = 0; i < INF_ARRAY_LENGTH(options); i++) {
        (void)inf_flexbuffer_number(s->op->custom_options, options[i].name, options[i].number);
        if (!(*options[i].number >= options[i].min && *options[i].number <= options[i].max))
            inf_build_fail(&s->b, INF_INVALID, "option %s is %g, wanted %g to %g", options[i].name,
                           *options[i].number, options[i].min, options[i].max);
    }
    d.classes_per_detection = fmin(d.classes_per_detection, d.classes);
    return d;
}

// Adds a slice of the anchors [n, 4]: two columns, from column `first` on. If the anchors are
// quantised, slices their bytes and dequantises the slice, so that the constant can stay bytes.
static uint32_t slice_anchors(struct inf_tflite_scope *s, int64_t first)
{
    const struct inf_tflite_tensor *tensor = inf_tflite_input_tensor(s, 2);
    bool has_bytes =
        tensor != NULL && inf_tflite_tensor_is_quantized(tensor) && tensor->quantization.count == 1;
    uint32_t anchors = has_bytes ? inf_tflite_stored(s, 2) : inf_tflite_real(s, 2);
    uint32_t part = inf_build_slice(&s->b, anchors, 1, first, first + 2, 1);
    return has_bytes ? inf_tflite_dequantize(&s->b, part, tensor, 0) : part;
}

// Adds the corners [n, 4] of boxes from codes [1, n, 4] and anchors [n, 4] (middle y, middle x,
// height, width).
static uint32_t add_boxes(struct inf_tflite_scope *s, const struct detection *d)
{
    struct inf_builder *b = &s->b;
    float factors[4];
    for (int i = 0; i < 4; i++)
        factors[i] = (float)(1 / d->scales[i]);
    uint32_t codes = inf_build_reshape(b, inf_tflite_real(s, 0), (int64_t[]){-1, 4}, 2);
    codes = inf_build_mul(b, codes, inf_build_floats(b, factors, 4));
    uint32_t middle = inf_build_slice(b, codes, 1, 0, 2, 1);
    uint32_t size = inf_build_slice(b, codes, 1, 2, 4, 1);
    uint32_t anchor_size = slice_anchors(s, 2);
    middle = inf_build_add(b, inf_build_mul(b, middle, anchor_size), slice_anchors(s, 0));
    size = inf_build_mul(b, inf_build_unary(b, INF_UNARY_EXP, size), anchor_size);
    size = inf_build_binary_number(b, INF_BINARY_MUL, size, 0.5);
    return inf_build_concat(
        b, (uint32_t[]){inf_build_sub(b, middle, size), inf_build_add(b, middle, size)}, 2, 1);
}

// Adds the k largest elements of the last axis, and their positions.
static void add_largest(struct inf_builder *b, uint32_t x, int64_t k, uint32_t results[2])
{
    struct inf_build_node node = inf_build_describe(
        INF_OP_TOPK, x, inf_build_scalar(b, INF_DTYPE_I32, (double)k), INF_VALUE_NONE);
    node.output_count = 2;
    inf_build_emit(b, &node, results);
}

// Adds the limits of a suppression of at most `count` boxes.
static void add_limits(struct inf_builder *b, const struct detection *d, double count,
                       uint32_t limits[4])
{
    limits[0] = inf_build_scalar(b, INF_DTYPE_I32, count);
    limits[1] = inf_build_scalar(b, INF_DTYPE_F32, d->overlap_threshold);
    // A score at the threshold counts here; for the node it must be above.
    limits[2] =
        inf_build_scalar(b, INF_DTYPE_F32, nextafterf((float)d->score_threshold, -INFINITY));
    limits[3] = INF_VALUE_NONE;
}

// Adds 1 for the positions [count] below `valid`, and 0 for the others.
static uint32_t add_mask(struct inf_builder *b, int64_t count, uint32_t valid)
{
    uint32_t below =
        inf_build_compare(b, INF_COMPARE_LESS, inf_build_iota(b, INF_DTYPE_I32, count), valid);
    return inf_build_cast(b, below, INF_DTYPE_F32);
}

// Sets the outputs. `boxes` is [k, 4], `classes` and `scores` are [k], `valid` is a scalar. What
// `mask` [k] sets to 0 is not valid.
static void set_outputs(struct inf_tflite_scope *s, uint32_t boxes, uint32_t classes,
                        uint32_t scores, uint32_t mask, uint32_t valid)
{
    struct inf_builder *b = &s->b;
    uint32_t column = inf_build_expand_dims(b, mask, (int64_t[]){1}, 1);
    uint32_t lists[] = {inf_build_mul(b, boxes, column),
                        inf_build_mul(b, inf_build_cast(b, classes, INF_DTYPE_F32), mask),
                        inf_build_mul(b, scores, mask)};
    for (uint32_t i = 0; i < 3; i++)
        s->outputs[i] = inf_build_expand_dims(b, lists[i], (int64_t[]){0}, 1);
    valid = inf_build_cast(b, valid, INF_DTYPE_F32);
    s->outputs[3] = inf_build_reshape(b, valid, (int64_t[]){1}, 1);
}

// One suppression for all classes. Each selected box has its best `classes_per_detection` classes.
static void select_fast(struct inf_tflite_scope *s, const struct detection *d, uint32_t boxes,
                        uint32_t scores)
{
    struct inf_builder *b = &s->b;
    int64_t count = (int64_t)d->max_detections, each = (int64_t)d->classes_per_detection;
    uint32_t best[2], limits[4];
    add_largest(b, scores, each, best);
    uint32_t largest =
        inf_build_squeeze(b, inf_build_slice(b, best[0], 1, 0, 1, 1), (int64_t[]){1}, 1);
    add_limits(b, d, d->max_detections, limits);
    struct selection selection = add_suppression(b, boxes, largest, limits, false);
    boxes = inf_build_gather(b, boxes, selection.indices, 0);
    uint32_t shape = inf_build_list(b, (int64_t[]){count, each, 4}, 3);
    boxes = inf_build_broadcast(b, inf_build_expand_dims(b, boxes, (int64_t[]){1}, 1), shape);
    boxes = inf_build_reshape(b, boxes, (int64_t[]){-1, 4}, 2);
    for (int i = 0; i < 2; i++) {
        best[i] = inf_build_gather(b, best[i], selection.indices, 0);
        best[i] = inf_build_reshape(b, best[i], (int64_t[]){-1}, 1);
    }
    uint32_t mask =
        inf_build_expand_dims(b, add_mask(b, count, selection.valid), (int64_t[]){1}, 1);
    mask = inf_build_broadcast(b, mask, inf_build_list(b, (int64_t[]){count, each}, 2));
    mask = inf_build_reshape(b, mask, (int64_t[]){-1}, 1);
    set_outputs(s, boxes, best[1], best[0], mask, selection.valid);
}

// One suppression for each class; then the best results of all classes.
static void select_regular(struct inf_tflite_scope *s, const struct detection *d, uint32_t boxes,
                           uint32_t scores)
{
    struct inf_builder *b = &s->b;
    int64_t each = (int64_t)d->detections_per_class, classes = (int64_t)d->classes;
    int64_t count = (int64_t)d->max_detections;
    uint32_t limits[4], lists[CLASSES_MAX], indices[CLASSES_MAX], best[2], valid = INF_VALUE_NONE;
    if (classes > CLASSES_MAX || each * classes < count) {
        inf_build_fail(b, INF_UNSUPPORTED, "%lld classes with %lld boxes each, for %lld results",
                       (long long)classes, (long long)each, (long long)count);
        return;
    }
    add_limits(b, d, d->detections_per_class, limits);
    for (int64_t i = 0; inf_build_ok(b) && i < classes; i++) {
        uint32_t column =
            inf_build_squeeze(b, inf_build_slice(b, scores, 1, i, i + 1, 1), (int64_t[]){1}, 1);
        struct selection selection = add_suppression(b, boxes, column, limits, false);
        // Positions that are not valid sort behind all others.
        uint32_t mask = inf_build_compare(b, INF_COMPARE_LESS,
                                          inf_build_iota(b, INF_DTYPE_I32, each), selection.valid);
        lists[i] = inf_build_select(b, mask, selection.scores,
                                    inf_build_scalar(b, INF_DTYPE_F32, -INFINITY));
        indices[i] = selection.indices;
        valid = i == 0 ? selection.valid : inf_build_add(b, valid, selection.valid);
    }
    if (!inf_build_ok(b))
        return;
    add_largest(b, inf_build_concat(b, lists, (uint32_t)classes, 0), count, best);
    uint32_t chosen =
        inf_build_gather(b, inf_build_concat(b, indices, (uint32_t)classes, 0), best[1], 0);
    valid = inf_build_binary_number(b, INF_BINARY_MIN, valid, d->max_detections);
    uint32_t mask = add_mask(b, count, valid);
    uint32_t class_of = inf_build_binary_number(b, INF_BINARY_DIV, best[1], (double)each);
    // A score of a position that is not valid is infinite, and infinity times 0 is NaN.
    uint32_t finite = inf_build_binary_number(b, INF_BINARY_MAX, best[0], -0x1p100);
    set_outputs(s, inf_build_gather(b, boxes, chosen, 0), class_of, finite, mask, valid);
}

static void lower_detection(struct inf_tflite_scope *s)
{
    struct inf_builder *b = &s->b;
    struct detection d = read_detection(s);
    uint32_t scores = inf_tflite_real(s, 1);
    int64_t columns = inf_build_known_dim(b, scores, -1);
    if (inf_build_ok(b) && (inf_build_rank(b, scores) != 3 || columns < d.classes))
        inf_build_fail(b, INF_INVALID, "has scores for %lld classes in %d axes, wanted %g in 3",
                       (long long)columns, inf_build_rank(b, scores), d.classes);
    if (!inf_build_ok(b))
        return;
    scores = inf_build_reshape(b, scores, (int64_t[]){-1, columns}, 2);
    // The first columns that are not classes are the background.
    scores = inf_build_slice(b, scores, 1, columns - (int64_t)d.classes, columns, 1);
    uint32_t boxes = add_boxes(s, &d);
    if (d.regular != 0)
        select_regular(s, &d, boxes, scores);
    else
        select_fast(s, &d, boxes, scores);
}

static const struct inf_tflite_op ops[] = {
    {INF_TFLITE_NON_MAX_SUPPRESSION_V4, NULL, lower_suppression, 5, 5, 2, INF_TFLITE_MODE_REAL, 0,
     INF_TFLITE_NON_MAX_SUPPRESSION_V4},
    {INF_TFLITE_NON_MAX_SUPPRESSION_V5, NULL, lower_suppression, 6, 6, 3, INF_TFLITE_MODE_REAL, 0,
     INF_TFLITE_NON_MAX_SUPPRESSION_V5},
    {INF_TFLITE_CUSTOM, "TFLite_Detection_PostProcess", lower_detection, 3, 3, 4,
     INF_TFLITE_MODE_REAL, 0, 0},
};

const struct inf_tflite_op_table inf_tflite_ops_detect = {ops, INF_ARRAY_LENGTH(ops)};
