// SPDX-License-Identifier: Apache-2.0
// Files in memory that are shared with the daemon.
#ifndef INF_CLIENT_LIB_IO_MEMFD_H
#define INF_CLIENT_LIB_IO_MEMFD_H

#include <stddef.h>
#include <stdint.h>

#include "proto/core/status.h"

// Creates a memfd of `size` bytes, with all of its pages allocated and its size sealed, because the
// daemon accepts no other files. Returns the descriptor, or -1 and fills *err.
int inf_client_memfd_create(size_t size, struct inf_error *err);

// Maps a new memfd into *data.
//
// INF_EXHAUSTED  there is no memory.
enum inf_code inf_client_memfd_map(int fd, size_t size, uint8_t **data,
                                   struct inf_error *err) INF_NODISCARD;

// Creates another memfd with the same contents and maps it at the same address, in place of the old
// one.
//
// INF_EXHAUSTED  there is no memory; the old mapping is not changed.
enum inf_code inf_client_memfd_replace(uint8_t *data, size_t size, int *out_fd,
                                       struct inf_error *err) INF_NODISCARD;

#endif
