// SPDX-License-Identifier: Apache-2.0
// The data of a plan's file: blocks of bytes with a checksum each. The checksum of a block is made
// of those of pieces of it, so that several threads can read and check one large block.
#ifndef INF_BACKENDS_SAVED_PLAN_DATA_H
#define INF_BACKENDS_SAVED_PLAN_DATA_H

#include <stddef.h>
#include <stdint.h>

#include "backends/base/role.h"
#include "proto/core/status.h"

// A block of bytes in a file and in memory.
struct inf_plan_block {
    void *memory; // size_bytes bytes; may be NULL if size_bytes is 0
    size_t size_bytes;
    uint64_t offset; // in the file
    uint64_t sum;    // inf_checksum_pieces() of the bytes
};

// Reads the blocks into their memory, with several threads if there is much to read, and compares
// their checksums. `name` is for error texts.
//
// INF_INVALID    the bytes of a block do not agree with its checksum.
// INF_RANGE      the file is too short.
// INF_EXHAUSTED  memory.
enum inf_code inf_plan_data_read(int fd, const char *name, const struct inf_plan_block *blocks,
                                 size_t count, struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

#endif
