// SPDX-License-Identifier: Apache-2.0
// A checksum for files with many bytes. It detects damage, not forgery.
#ifndef INF_BACKENDS_STORAGE_CHECKSUM_H
#define INF_BACKENDS_STORAGE_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

// Returns the checksum of `size` bytes. A change of up to 8 neighbouring aligned bytes always
// changes the checksum; another change does with a probability of about 1 - 2^-64. The value is the
// same on all machines with the same byte order.
uint64_t inf_checksum(const void *data, size_t size);

#endif
