// SPDX-License-Identifier: Apache-2.0
// FNV-1a (Fowler, Noll, Vo), a hash for tables, keys and checksums. It does not detect forgery.
#ifndef INF_PROTO_CORE_HASH_H
#define INF_PROTO_CORE_HASH_H

#include <stddef.h>
#include <stdint.h>

// The hash of no bytes.
#define INF_HASH_INIT UINT64_C(0xcbf29ce484222325)

// Returns `hash` extended by the `size` bytes at `data`.
static inline uint64_t inf_hash_bytes(uint64_t hash, const void *data, size_t size)
{
    const unsigned char *bytes = data;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    return hash;
}

#endif
