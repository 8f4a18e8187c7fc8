// SPDX-License-Identifier: Apache-2.0
// Memory that ends where a page begins that nobody may touch: what reads behind a tensor dies there.
#ifndef INF_TESTS_SUPPORT_DEVICE_FENCE_H
#define INF_TESTS_SUPPORT_DEVICE_FENCE_H

#include <stddef.h>

// Starts zeroed. What it holds is used again and again.
struct fence {
    unsigned char *memory;
    size_t open_size; // bytes before the page that nobody may touch
};

// `size` bytes, the last of them the last before the fence; they and the `before` bytes in front of them
// are `fill`. What the fence gave before is gone. Dies where there is no memory.
void *fence_bytes(struct fence *fence, size_t size, size_t before, int fill);

// Frees the memory.
void fence_fini(struct fence *fence);

#endif
