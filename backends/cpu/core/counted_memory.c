// SPDX-License-Identifier: Apache-2.0
// Counts allocated bytes for the whole process and for the calling thread. XNNPACK has one
// allocator for the whole process, so there is no count for each device.
#include "backends/cpu/core/counted_memory.h"

#include <malloc.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "backends/base/pages.h"
#include "proto/core/span.h"

// Allocated bytes of the whole process, and of the calling thread.
static _Atomic uint64_t live_bytes;
static _Thread_local int64_t thread_bytes;

static void *count_in(void *memory)
{
    size_t size = memory != NULL ? malloc_usable_size(memory) : 0;
    atomic_fetch_add_explicit(&live_bytes, size, memory_order_relaxed);
    thread_bytes += (int64_t)size;
    return memory;
}

static void count_out(void *memory)
{
    size_t size = memory != NULL ? malloc_usable_size(memory) : 0;
    atomic_fetch_sub_explicit(&live_bytes, size, memory_order_relaxed);
    thread_bytes -= (int64_t)size;
}

void *inf_counted_allocate(size_t size)
{
    return count_in(malloc(size));
}

void *inf_counted_reallocate(void *memory, size_t size)
{
    size_t old = memory != NULL ? malloc_usable_size(memory) : 0;
    void *grown = realloc(memory, size);
    if (grown == NULL)
        return NULL;
    atomic_fetch_sub_explicit(&live_bytes, old, memory_order_relaxed);
    thread_bytes -= (int64_t)old;
    return count_in(grown);
}

void inf_counted_free(void *memory)
{
    count_out(memory);
    free(memory);
}

void *inf_counted_allocate_aligned(size_t alignment, size_t size)
{
    void *memory = inf_pages_alloc(alignment, size);
    return memory != NULL ? count_in(memory) : NULL;
}

struct inf_cpu_memory {
    _Alignas(64) struct inf_cpu_memory *next;
};

void *inf_cpu_memory_alloc(struct inf_cpu_memory **list, size_t size)
{
    size_t whole;
    struct inf_cpu_memory *block = NULL;
    if (inf_size_add(size, sizeof(*block), &whole))
        block = inf_counted_allocate_aligned(_Alignof(struct inf_cpu_memory), whole);
    if (block == NULL)
        return NULL;
    block->next = *list;
    *list = block;
    return block + 1;
}

void inf_cpu_memory_free(struct inf_cpu_memory **list)
{
    while (*list != NULL) {
        struct inf_cpu_memory *block = *list;
        *list = block->next;
        inf_counted_free(block);
    }
}

uint64_t inf_cpu_memory_live_bytes(void)
{
    return atomic_load_explicit(&live_bytes, memory_order_relaxed);
}

int64_t inf_cpu_memory_thread_bytes(void)
{
    return thread_bytes;
}
