// SPDX-License-Identifier: Apache-2.0
// Memory that ends at a guard page: a read beyond a tensor crashes.
#ifndef INF_TESTS_SUPPORT_DEVICE_FENCE_H
#define INF_TESTS_SUPPORT_DEVICE_FENCE_H

#include <stddef.h>

// Zero-initialised. Its mapping is used again and again.
struct fence {
    unsigned char *memory;
    size_t open_size; // bytes before the guard page
};

// Returns `size` bytes, the last of which is just before the guard page. They, and the `before`
// bytes in front of them, are set to `fill`. Memory that the fence returned before is no longer
// valid. Aborts if memory is exhausted.
void *fence_bytes(struct fence *fence, size_t size, size_t before, int fill);

// Frees the memory.
void fence_fini(struct fence *fence);

#endif
