// SPDX-License-Identifier: Apache-2.0
// Operators whose data_format is channels-first: their input is transposed to channels-last, and
// their result is transposed back. The layout pass removes most of these transposes.
#ifndef INF_BACKENDS_IMPORT_TFJS_LAYOUT_H
#define INF_BACKENDS_IMPORT_TFJS_LAYOUT_H

#include "backends/import/tfjs/lower.h"

// Converts a channels-first node: transposes input `input` of rank `rank` to channels-last, and
// makes inf_tfjs_result() transpose the result back. Does nothing for other nodes. If `rank` is 0,
// the rank of the input is used.
//
// INF_UNSUPPORTED  an unknown format, or an input of unknown rank that must be transposed.
enum inf_code inf_tfjs_channels_last(struct inf_tfjs_scope *scope, uint32_t input, int32_t rank,
                                     struct inf_error *err) INF_NODISCARD;

// Returns the index of spatial axis `axis` in lists of the node that have one element for each
// dimension. inf_tfjs_channels_last() must have been called before.
uint32_t inf_tfjs_spatial(const struct inf_tfjs_scope *scope, uint32_t axis);

// Returns the index of the channels in lists that have one element for each dimension.
uint32_t inf_tfjs_channel(const struct inf_tfjs_scope *scope, uint32_t rank);

// Reorders *value, a list with one element for each dimension, to channels-last.
enum inf_code inf_tfjs_list_channels_last(struct inf_tfjs_scope *scope, uint32_t *value,
                                          struct inf_error *err) INF_NODISCARD;

// Transposes *value, a result of the scope's node, back to channels-first.
enum inf_code inf_tfjs_channels_first(struct inf_tfjs_scope *scope, uint32_t *value,
                                      struct inf_error *err) INF_NODISCARD;

#endif
