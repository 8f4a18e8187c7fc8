// SPDX-License-Identifier: Apache-2.0
// Memory for data that is read in bulk: weights, tensors, scratch memory. Large pages avoid most
// misses of the address-translation cache (TLB), which are expensive in virtual machines.
#ifndef INF_BACKENDS_BASE_PAGES_H
#define INF_BACKENDS_BASE_PAGES_H

#include <stdatomic.h>
#include <stddef.h>

#include "proto/core/attributes.h"

// Bytes behind packed weights that kernels may read.
#define INF_PAGES_SLACK_BYTES ((size_t)64)

// Returns `size` uninitialised bytes aligned to `alignment`, a power of two that is at least the
// size of a pointer; NULL if there is no memory. Requests large pages if whole ones fit; the kernel
// may refuse. The caller frees the memory with free().
void *inf_pages_alloc(size_t alignment, size_t size) INF_NODISCARD;

// Returns `size` bytes of zeros, aligned to a page; NULL if there is no memory. A page takes memory
// only once it is written. The caller frees the bytes with inf_pages_unmap(), which gives the
// memory back to the kernel at once; free() may keep it.
void *inf_pages_map(size_t size) INF_NODISCARD;

// Frees `size` bytes from inf_pages_map(). NULL is allowed.
void inf_pages_unmap(void *memory, size_t size);

// One block of memory in which several owners have parts. It is freed with its last reference. A
// large block has more large pages than several small blocks of the same total size.
struct inf_shared_pages {
    _Atomic size_t references;
    void *memory; // aligned to 64, and to a large page if it has one
};

// Returns a block of `size` uninitialised bytes, followed by INF_PAGES_SLACK_BYTES readable bytes,
// with one reference; NULL if there is no memory.
struct inf_shared_pages *inf_shared_pages_create(size_t size) INF_NODISCARD;

// Takes another reference and returns the block. Any thread.
struct inf_shared_pages *inf_shared_pages_ref(struct inf_shared_pages *pages) INF_NODISCARD;

// Drops a reference and sets the pointer to NULL. Any thread. NULL is allowed.
void inf_shared_pages_unref(struct inf_shared_pages **pages);

#endif
