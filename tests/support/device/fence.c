// SPDX-License-Identifier: Apache-2.0
// Maps memory in front of a page that cannot be accessed.
#include "tests/support/device/fence.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static size_t page_size(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static void map_pages(struct fence *fence, size_t size)
{
    size_t page = page_size();
    fence_fini(fence);
    fence->open_size = (size + page - 1) / page * page;
    fence->memory = mmap(NULL, fence->open_size + page, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fence->memory == MAP_FAILED ||
        mprotect(fence->memory + fence->open_size, page, PROT_NONE) != 0) {
        perror("fence");
        abort();
    }
}

void *fence_bytes(struct fence *fence, size_t size, size_t before, int fill)
{
    if (fence->memory == NULL || before + size > fence->open_size)
        map_pages(fence, before + size);
    unsigned char *data = fence->memory + fence->open_size - size;
    memset(data - before, fill, before + size);
    return data;
}

void fence_fini(struct fence *fence)
{
    if (fence->memory != NULL)
        munmap(fence->memory, fence->open_size + page_size());
    *fence = (struct fence){0};
}
