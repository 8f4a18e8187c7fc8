// SPDX-License-Identifier: Apache-2.0
// What the linear models, the support vector machines and the tree ensembles of ai.onnx.ml share.
#ifndef INF_BACKENDS_IMPORT_ONNX_CLASSIC_CLASSES_H
#define INF_BACKENDS_IMPORT_ONNX_CLASSIC_CLASSES_H

#include "backends/import/onnx/scope.h"

// Adds nodes that apply the function which the attribute post_transform names to the scores x
// [rows, scores]: SOFTMAX, SOFTMAX_ZERO, LOGISTIC or PROBIT. Returns x if the attribute is NONE or
// absent. Latches a failure for other names.
uint32_t inf_onnx_post_transform(struct inf_onnx_scope *s, uint32_t x);

// Applies the function like inf_onnx_post_transform(), but takes its name.
uint32_t inf_onnx_apply_transform(struct inf_onnx_scope *s, uint32_t x, const char *name);

// The classes of a classifier.
struct inf_onnx_classes {
    uint32_t labels; // constant [count], I64 or BYTES
    int64_t count;
};

// Sets the first output of a classifier: the label of the largest element of each row of y
// [rows, count], the first one if several are largest.
void inf_onnx_choose_label(struct inf_onnx_scope *s, const struct inf_onnx_classes *classes,
                           uint32_t y);

// Sets the outputs of a classifier: the label of the largest score of each row of y [rows, count],
// and the transformed scores.
void inf_onnx_choose_class(struct inf_onnx_scope *s, const struct inf_onnx_classes *classes,
                           uint32_t y);

// Sets the first output of a classifier of two classes that has one score for each row, y
// [rows, 1]: the second label if the score is above `border`, else the first.
void inf_onnx_choose_of_two(struct inf_onnx_scope *s, const struct inf_onnx_classes *classes,
                            uint32_t y, double border);

// Returns the scores [rows, 2] of two classes from y [rows, 1], the score of the second class, as
// ONNX Runtime computes them. If post_transform is LOGISTIC, they are the logistic function of -y
// and y. Latches a failure if it is PROBIT. For all other values they are y and, before it, 1 - y
// (`from_one`) or -y.
uint32_t inf_onnx_pair_scores(struct inf_onnx_scope *s, uint32_t y, bool from_one);

// Sets the second output of a classifier, if the node has it.
void inf_onnx_set_scores(struct inf_onnx_scope *s, uint32_t scores);

#endif
