// SPDX-License-Identifier: Apache-2.0
// Operands that have elements for each axis of a tensor, such as paddings, the positions of a
// slice, the sizes of a broadcast, and the scale of a normalisation. If a node works on the source
// of a view, these elements take the order of the source's axes.
#ifndef INF_BACKENDS_GRAPH_PASS_LAYOUT_LISTS_H
#define INF_BACKENDS_GRAPH_PASS_LAYOUT_LISTS_H

#include "backends/graph/pass/layout/writer.h"

// Returns true if operand `input` of the node is a constant list with `each` elements for each axis
// of the view.
bool inf_layout_has_list(const struct inf_layout *layout, const struct inf_node *node,
                         uint32_t input, const struct inf_layout_view *view, uint32_t each);

// Replaces operand `input` of the node, for which inf_layout_has_list() is true, by the same list
// in the order of the source's axes.
enum inf_code inf_layout_permute_list(struct inf_layout *layout, struct inf_node *node,
                                      uint32_t input, const struct inf_layout_view *view,
                                      uint32_t each) INF_NODISCARD;

// Returns true if all operands of the slice node that say what it takes are constants, and if it
// neither drops nor inserts axes.
bool inf_layout_can_permute_slice(const struct inf_layout *layout, const struct inf_node *node,
                                  const struct inf_layout_view *view);

// Changes the operands and masks of a slice node, for which inf_layout_can_permute_slice() is true,
// from axes of the view to axes of its source.
enum inf_code inf_layout_permute_slice(struct inf_layout *layout, struct inf_node *node,
                                       const struct inf_layout_view *view) INF_NODISCARD;

// Returns true if devices have a kernel for the normalize node on the source of the view. The axes
// must be neighbours, and scale and offset may differ along them only if they are the last axes.
bool inf_layout_can_normalize(const struct inf_layout *layout, const struct inf_node *node,
                              const struct inf_layout_view *view);

#endif
