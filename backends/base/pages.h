// SPDX-License-Identifier: Apache-2.0
// Memory of which much is read in one go: weights, tensors, scratch. Large pages spare the processor most of
// its look-ups of where a page lies, which are dear in virtual machines.
#ifndef INF_BACKENDS_BASE_PAGES_H
#define INF_BACKENDS_BASE_PAGES_H

#include <stddef.h>

#include "proto/core/attributes.h"

// Memory of `size` bytes, not set, at a multiple of `alignment`, which is a power of two and at least that of
// a pointer; NULL without memory. Of the kernel it asks large pages where whole ones lie in it, which may be
// given or not. Whoever takes it frees it with free().
void *inf_pages_alloc(size_t alignment, size_t size) INF_NODISCARD;

#endif
