// SPDX-License-Identifier: Apache-2.0
// Counted memory: counts the bytes that XNNPACK and the native kernels allocate.
#ifndef INF_BACKENDS_CPU_CORE_COUNTED_MEMORY_H
#define INF_BACKENDS_CPU_CORE_COUNTED_MEMORY_H

#include <stddef.h>
#include <stdint.h>

// A list of counted blocks that are freed together.
struct inf_cpu_memory;

// Allocates `size` bytes, uninitialised and aligned to a cache line, and adds the block to the
// list. Returns NULL if memory is exhausted.
void *inf_cpu_memory_alloc(struct inf_cpu_memory **list, size_t size);

// Frees all blocks of the list and empties it.
void inf_cpu_memory_free(struct inf_cpu_memory **list);

// Returns how many counted bytes this process holds. Any thread.
uint64_t inf_cpu_memory_live_bytes(void);

// Returns the counted bytes that the calling thread has allocated, minus the bytes that it has
// freed. To measure the memory that some code keeps, subtract the value before the code from the
// value after it. Allocations of other threads do not change the value.
int64_t inf_cpu_memory_thread_bytes(void);

// Allocator functions for XNNPACK that count the bytes they allocate and free. `memory` may be
// NULL.
void *inf_counted_allocate(size_t size);
void *inf_counted_reallocate(void *memory, size_t size);
void *inf_counted_allocate_aligned(size_t alignment, size_t size);
void inf_counted_free(void *memory);

#endif
