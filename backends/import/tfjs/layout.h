// SPDX-License-Identifier: Apache-2.0
// Operators whose data_format has channels first: their picture is turned around before and their
// result behind. Most of these transposes meet their inverse in a pass.
#ifndef INF_BACKENDS_IMPORT_TFJS_LAYOUT_H
#define INF_BACKENDS_IMPORT_TFJS_LAYOUT_H

#include "backends/import/tfjs/lower.h"

// Sees to the node's data_format, if it has one. Where that has channels first, input `input` of
// `rank` dimensions gets them last by a transpose, and inf_tfjs_result() will put them first again.
// `rank` 0 means whatever rank the input has.
//
// INF_UNSUPPORTED  no format that is known, or an input of unknown rank that needs one.
enum inf_code inf_tfjs_channels_last(struct inf_tfjs_scope *scope, uint32_t input, int32_t rank,
                                     struct inf_error *err) INF_NODISCARD;

// Where spatial axis `axis` stands in lists of the node that have an element for each of `rank`
// dimensions: inf_tfjs_channels_last() has been called.
uint32_t inf_tfjs_spatial(const struct inf_tfjs_scope *scope, uint32_t axis);

// Where the channels stand in such lists.
uint32_t inf_tfjs_channel(const struct inf_tfjs_scope *scope, uint32_t rank);

// *value = a list with an element for each dimension, as the node has it, in the order of channels
// last.
enum inf_code inf_tfjs_list_channels_last(struct inf_tfjs_scope *scope, uint32_t *value,
                                          struct inf_error *err) INF_NODISCARD;

// Puts the channels of *value, a result of the scope's node, first again.
enum inf_code inf_tfjs_channels_first(struct inf_tfjs_scope *scope, uint32_t *value,
                                      struct inf_error *err) INF_NODISCARD;

#endif
