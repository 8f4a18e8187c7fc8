// SPDX-License-Identifier: Apache-2.0
// Operators whose data_format is channels-first: their input is transposed to channels-last, and
// their result is transposed back. The layout pass removes most of these transposes.
#ifndef INF_BACKENDS_IMPORT_TFJS_LAYOUT_H
#define INF_BACKENDS_IMPORT_TFJS_LAYOUT_H

#include "backends/import/tfjs/lower.h"

// Converts a channels-first node: transposes input `input` of rank `rank` to channels-last, and
// marks the result to be transposed back by inf_tfjs_result(). Does nothing for other nodes. `rank`
// 0 means the rank of the input.
//
// INF_UNSUPPORTED  no format that is known, or an input of unknown rank that needs one.
enum inf_code inf_tfjs_channels_last(struct inf_tfjs_scope *scope, uint32_t input, int32_t rank,
                                     struct inf_error *err) INF_NODISCARD;

// Returns the index of spatial axis `axis` in lists of the node with one element per dimension.
// inf_tfjs_channels_last() must have been called.
uint32_t inf_tfjs_spatial(const struct inf_tfjs_scope *scope, uint32_t axis);

// Returns the index of the channels in such lists.
uint32_t inf_tfjs_channel(const struct inf_tfjs_scope *scope, uint32_t rank);

// Reorders *value, a list with one element per dimension, to channels-last.
enum inf_code inf_tfjs_list_channels_last(struct inf_tfjs_scope *scope, uint32_t *value,
                                          struct inf_error *err) INF_NODISCARD;

// Transposes *value, a result of the scope's node, back to channels-first.
enum inf_code inf_tfjs_channels_first(struct inf_tfjs_scope *scope, uint32_t *value,
                                      struct inf_error *err) INF_NODISCARD;

#endif
