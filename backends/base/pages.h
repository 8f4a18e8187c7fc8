// SPDX-License-Identifier: Apache-2.0
// Memory for data that is read in bulk: weights, tensors, scratch memory. Large pages avoid most
// misses of the address-translation cache (TLB), which are expensive in virtual machines.
#ifndef INF_BACKENDS_BASE_PAGES_H
#define INF_BACKENDS_BASE_PAGES_H

#include <stddef.h>

#include "proto/core/attributes.h"

// Returns `size` uninitialised bytes aligned to `alignment`, a power of two that is at least the
// size of a pointer; NULL if there is no memory. Requests large pages if whole ones fit; the kernel
// may refuse. The caller frees the memory with free().
void *inf_pages_alloc(size_t alignment, size_t size) INF_NODISCARD;

#endif
