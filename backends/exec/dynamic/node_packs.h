// SPDX-License-Identifier: Apache-2.0
// Constant matrices of products whose number of rows is known only during a run. The device packs
// each matrix once, and all programs of single nodes (node_programs.h) share it, for all shapes and
// slots.
#ifndef INF_BACKENDS_EXEC_DYNAMIC_NODE_PACKS_H
#define INF_BACKENDS_EXEC_DYNAMIC_NODE_PACKS_H

#include "backends/base/role.h"
#include "backends/device/device.h"

struct inf_node_packs;

// Packs the values of `graph` that are used only as constant matrices. `graph` must outlive the
// result and have the bytes of its constants. Matrices that the device declines, or for which it
// has no packed form, are left out. If `graph` is NULL, nothing is packed.
//
// INF_EXHAUSTED  no memory.
enum inf_code inf_node_packs_create(struct inf_node_packs **out_packs,
                                    const struct inf_graph *graph, struct inf_device *device,
                                    struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Frees the packs. NULL is allowed.
void inf_node_packs_destroy(struct inf_node_packs **packs);

// Returns the packed form of the value of `graph`, borrowed; NULL if the value is not packed. Any
// thread.
struct inf_blob_form *inf_node_packs_form(const struct inf_node_packs *packs,
                                          const struct inf_graph *graph, uint32_t value);

// Returns true if the node of `graph` is a product with a packed matrix. Any thread.
bool inf_node_packs_has(const struct inf_node_packs *packs, const struct inf_graph *graph,
                        uint32_t node);

#endif
