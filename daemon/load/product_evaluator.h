// SPDX-License-Identifier: Apache-2.0
// An evaluator for the precision check that computes large products on a host device in fp32, and
// all other nodes with the reference kernels. These take a second for each 10^9 multiply-adds.
#ifndef INF_DAEMON_LOAD_PRODUCT_EVALUATOR_H
#define INF_DAEMON_LOAD_PRODUCT_EVALUATOR_H

#include "backends/registry.h"

// Embedded in its owner. The devices must stay open as long as it is used.
struct inf_product_evaluator {
    struct inf_evaluator evaluator; // for inf_precision_check()
    struct inf_device *const *hosts;
    uint32_t host_count;
};

// Fills `products` for devices that compute in host memory, of which the last one is `ref`. With
// `ref` alone all nodes are computed with the reference kernels.
void inf_product_evaluator_init(struct inf_product_evaluator *products,
                                struct inf_device *const *hosts, uint32_t host_count);

#endif
