// SPDX-License-Identifier: Apache-2.0
// A pool of buffers for the data segments of frames that the daemon sends.
#ifndef INF_CLIENT_LIB_IO_DATA_POOL_H
#define INF_CLIENT_LIB_IO_DATA_POOL_H

#include <stddef.h>

// Number of size classes. Buffers of 512 bytes, 1 KiB, ... 1 MiB are kept for reuse.
#define INF_CLIENT_DATA_CLASSES 12u
// The most unused bytes in the pool; buffers beyond it are freed. The same limit applies to the
// pool of outgoing frames.
#define INF_CLIENT_POOL_BYTES ((size_t)8 << 20)

// Unused buffers, kept for reuse. Zero-initialise.
struct inf_client_data_pool {
    void *unused[INF_CLIENT_DATA_CLASSES]; // one linked list for each size class
    size_t unused_bytes;
};

// Returns `size` bytes aligned to 64, or NULL if there is no memory. `pool` is a struct
// inf_client_data_pool; the signature is that of struct inf_assembler_memory.
void *inf_client_data_pool_alloc(void *pool, size_t size);

// Gives back a buffer of `size` bytes, the size it was allocated with. NULL data is allowed.
void inf_client_data_pool_free(void *pool, void *data, size_t size);

// Frees the unused buffers in the pool.
void inf_client_data_pool_fini(struct inf_client_data_pool *pool);

#endif
