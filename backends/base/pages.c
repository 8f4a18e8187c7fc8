// SPDX-License-Identifier: Apache-2.0
// Allocates aligned memory and asks the kernel for large pages in it (madvise(2), MADV_HUGEPAGE).
#include "backends/base/pages.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#define LARGE_PAGE ((size_t)2 << 20)

void *inf_pages_alloc(size_t alignment, size_t size)
{
    void *memory = NULL;
    if (posix_memalign(&memory, alignment, size) != 0)
        return NULL;
    // Request only large pages that lie entirely inside the block, because others would use more
    // memory than the caller asked for.
    uintptr_t first = ((uintptr_t)memory + LARGE_PAGE - 1) & ~(uintptr_t)(LARGE_PAGE - 1);
    uintptr_t end = ((uintptr_t)memory + size) & ~(uintptr_t)(LARGE_PAGE - 1);
    if (first < end)
        (void)madvise((void *)first, end - first, MADV_HUGEPAGE);
    return memory;
}
