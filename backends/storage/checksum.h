// SPDX-License-Identifier: Apache-2.0
// A checksum for files with many bytes. It detects damage, not forgery.
#ifndef INF_BACKENDS_STORAGE_CHECKSUM_H
#define INF_BACKENDS_STORAGE_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

#include "backends/base/role.h"

// Returns the checksum of `size` bytes. A change of up to 8 neighbouring aligned bytes always
// changes the checksum; another change does with a probability of about 1 - 2^-64. The value is the
// same on all machines with the same byte order.
uint64_t inf_checksum(const void *data, size_t size);

// The size of the pieces of which inf_checksum_pieces() is made.
#define INF_CHECKSUM_PIECE_BYTES ((size_t)256 << 10)

// Returns the checksum of data whose checksum without its last piece is `sum`. The checksum without
// any piece is the number of bytes of the data.
uint64_t inf_checksum_add_piece(uint64_t sum, uint64_t piece_sum);

// Returns a checksum of `size` bytes that several cores compute, each for some of the pieces. The
// value does not depend on their number.
uint64_t inf_checksum_pieces(const void *data, size_t size) INF_MAY_BLOCK;

#endif
