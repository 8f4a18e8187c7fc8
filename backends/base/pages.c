// SPDX-License-Identifier: Apache-2.0
#include "backends/base/pages.h"

#include <stdlib.h>
#include <sys/mman.h>

#define LARGE_PAGE ((size_t)2 << 20)

void *inf_pages_alloc(size_t alignment, size_t size)
{
    void *memory = NULL;
    size_t whole = size & ~(LARGE_PAGE - 1);
    if (whole > 0 && alignment < LARGE_PAGE)
        alignment = LARGE_PAGE;
    if (posix_memalign(&memory, alignment, size) != 0)
        return NULL;
    // What is left over stays in small pages: it would take memory that nobody asked for.
    if (whole > 0)
        (void)madvise(memory, whole, MADV_HUGEPAGE);
    return memory;
}
