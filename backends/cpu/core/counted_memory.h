// SPDX-License-Identifier: Apache-2.0
// Memory of steps, and of XNNPACK, that is counted.
#ifndef INF_BACKENDS_CPU_CORE_COUNTED_MEMORY_H
#define INF_BACKENDS_CPU_CORE_COUNTED_MEMORY_H

#include <stddef.h>
#include <stdint.h>

// Memory of kernels of our own, counted as XNNPACK's. A list of blocks.
struct inf_cpu_memory;

// `size` bytes, not cleared, aligned to a cache line, that are put into the list; NULL where there are
// none.
void *inf_cpu_memory_alloc(struct inf_cpu_memory **list, size_t size);

// Frees the list.
void inf_cpu_memory_free(struct inf_cpu_memory **list);

// Bytes that XNNPACK and inf_cpu_memory_alloc() hold in this process. Any thread.
uint64_t inf_cpu_memory_live_bytes(void);

// Bytes that they allocated less those it freed on the calling thread: the difference of two
// calls is what happened between them, whatever other threads do.
int64_t inf_cpu_memory_thread_bytes(void);

// The entries of XNNPACK's allocator, which count what they allocate. `memory` may be NULL.
void *inf_counted_allocate(size_t size);
void *inf_counted_reallocate(void *memory, size_t size);
void *inf_counted_allocate_aligned(size_t alignment, size_t size);
void inf_counted_free(void *memory);

#endif
