// SPDX-License-Identifier: Apache-2.0
// Constant matrices of products whose rows only a run tells, packed once by the device for all
// programs of single nodes (node_programs.h), whatever their shapes and slots.
#ifndef INF_BACKENDS_EXEC_DYNAMIC_NODE_PACKS_H
#define INF_BACKENDS_EXEC_DYNAMIC_NODE_PACKS_H

#include "backends/base/role.h"
#include "backends/device/device.h"

struct inf_node_packs;

// Packs the matrices that are nothing but that in `graph`, which outlives this and has the bytes of
// its constants; those that the device declines, or has in no form of its own, are left out. NULL
// graph: none.
//
// INF_EXHAUSTED  no memory.
enum inf_code inf_node_packs_create(struct inf_node_packs **out_packs,
                                    const struct inf_graph *graph, struct inf_device *device,
                                    struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Frees them. NULL is fine.
void inf_node_packs_destroy(struct inf_node_packs **packs);

// The form that the value of `graph` is packed in, borrowed; NULL where it is not. Any thread.
struct inf_blob_form *inf_node_packs_form(const struct inf_node_packs *packs,
                                          const struct inf_graph *graph, uint32_t value);

// Whether the node of `graph` is a product with a matrix that is packed. Any thread.
bool inf_node_packs_has(const struct inf_node_packs *packs, const struct inf_graph *graph,
                        uint32_t node);

#endif
