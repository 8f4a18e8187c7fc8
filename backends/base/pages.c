// SPDX-License-Identifier: Apache-2.0
// Allocates aligned memory and asks the kernel for large pages in it (madvise(2), MADV_HUGEPAGE).
// Maps memory that is given back at once. Counts the references to blocks that several owners
// share.
#include "backends/base/pages.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "backends/base/reference.h"

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

void *inf_pages_map(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory != MAP_FAILED ? memory : NULL;
}

void inf_pages_unmap(void *memory, size_t size)
{
    if (memory == NULL || munmap(memory, size) == 0)
        return;
    // The process has as many mappings as it may, and this one is the middle of a larger one. The
    // kernel takes the memory back, and the addresses stay reserved.
    assert(errno == ENOMEM);
    (void)madvise(memory, size, MADV_DONTNEED);
}

struct inf_shared_pages *inf_shared_pages_create(size_t size)
{
    struct inf_shared_pages *pages = calloc(1, sizeof *pages);
    if (pages == NULL)
        return NULL;
    pages->memory =
        inf_pages_alloc(size < LARGE_PAGE ? 64 : LARGE_PAGE, size + INF_PAGES_SLACK_BYTES);
    if (pages->memory == NULL) {
        free(pages);
        return NULL;
    }
    atomic_init(&pages->references, 1);
    return pages;
}

struct inf_shared_pages *inf_shared_pages_ref(struct inf_shared_pages *pages)
{
    inf_reference_take(&pages->references);
    return pages;
}

void inf_shared_pages_unref(struct inf_shared_pages **pages)
{
    struct inf_shared_pages *gone = *pages;
    *pages = NULL;
    if (gone == NULL || !inf_reference_drop(&gone->references))
        return;
    free(gone->memory);
    free(gone);
}
