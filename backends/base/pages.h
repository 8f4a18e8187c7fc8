// SPDX-License-Identifier: Apache-2.0
// Memory that is read in bulk: weights, tensors, scratch. Large pages avoid most misses of the
// address-translation cache (TLB), which are expensive in virtual machines.
#ifndef INF_BACKENDS_BASE_PAGES_H
#define INF_BACKENDS_BASE_PAGES_H

#include <stddef.h>

#include "proto/core/attributes.h"

// Returns `size` uninitialised bytes at a multiple of `alignment`, a power of two that is at least
// the size of a pointer; NULL if there is no memory. Asks the kernel for large pages where whole
// ones fit; the kernel may refuse. The caller frees it with free().
void *inf_pages_alloc(size_t alignment, size_t size) INF_NODISCARD;

#endif
