// SPDX-License-Identifier: Apache-2.0
// Memory that ends at an inaccessible page, so that a read beyond a tensor crashes.
#ifndef INF_TESTS_SUPPORT_DEVICE_FENCE_H
#define INF_TESTS_SUPPORT_DEVICE_FENCE_H

#include <stddef.h>

// A mapping that ends at an inaccessible page (the guard page). Zero-initialise. Later calls reuse
// the mapping.
struct fence {
    unsigned char *memory;
    size_t open_size; // number of accessible bytes, which are directly before the guard page
};

// Returns `size` bytes that end directly before the guard page. These bytes and the `before` bytes
// in front of them are set to `fill`. Memory that the fence returned before becomes invalid. Aborts
// if memory is exhausted.
void *fence_bytes(struct fence *fence, size_t size, size_t before, int fill);

// Frees the memory.
void fence_fini(struct fence *fence);

#endif
