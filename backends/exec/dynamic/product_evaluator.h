// SPDX-License-Identifier: Apache-2.0
// Computes large products on a host device in fp32, and all other nodes by another evaluator. The
// reference kernels take more than a second for each 10^9 multiply-adds.
#ifndef INF_BACKENDS_EXEC_DYNAMIC_PRODUCT_EVALUATOR_H
#define INF_BACKENDS_EXEC_DYNAMIC_PRODUCT_EVALUATOR_H

#include "backends/device/device.h"
#include "backends/graph/pass/pass.h"

// Embedded in its owner. The devices must stay open as long as it is used.
struct inf_product_evaluator {
    struct inf_evaluator evaluator;    // its `context` is this struct, which must not move
    const struct inf_evaluator *other; // computes all other nodes
    struct inf_device *const *hosts;
    uint32_t host_count;
};

// Fills `products` for devices that compute in host memory, of which the last one is `ref`. With
// `ref` alone `other`, which must stay valid, computes all nodes.
void inf_product_evaluator_init(struct inf_product_evaluator *products,
                                const struct inf_evaluator *other, struct inf_device *const *hosts,
                                uint32_t host_count);

#endif
