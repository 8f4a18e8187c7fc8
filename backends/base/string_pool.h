// SPDX-License-Identifier: Apache-2.0
// The bytes of the strings in tensors of strings (BYTES).
//
// An element of such a tensor is a handle of 8 bytes: whether the string is a constant, an offset
// and a length. Operators that only move elements copy handles and never look at the bytes. A
// handle is no address: inf_strings_get() compares it with the size of its pool whenever it is
// used, so whatever 8 bytes a tensor contains, no memory outside of the pool is read. A handle of
// eight zero bytes is the empty string, so a zeroed tensor is a tensor of empty strings.
#ifndef INF_BACKENDS_BASE_STRING_POOL_H
#define INF_BACKENDS_BASE_STRING_POOL_H

#include <stdint.h>

#include "proto/core/span.h"
#include "proto/core/status.h"

// Strings one after another in memory that only grows. A zeroed struct is an empty pool, which
// needs no memory. Used by one thread at a time while strings are added.
struct inf_string_pool {
    uint8_t *bytes;
    size_t size_bytes, capacity_bytes;
    size_t limit_bytes; // 0: INF_LIMIT_STRING_BYTES
    bool is_constant;   // its handles are those of constants
};

// Frees the bytes, and makes the pool empty. All handles of the pool become invalid.
void inf_string_pool_fini(struct inf_string_pool *pool);

// Removes all strings. Keeps a small amount of memory for the next run.
void inf_string_pool_clear(struct inf_string_pool *pool);

// Returns room for a string of `size_bytes`; inf_string_pool_commit() makes it a string. Strings
// that inf_strings_get() returned before may have moved. Returns NULL after an error.
//
// INF_EXHAUSTED  the limit of the pool, or no memory.
uint8_t *inf_string_pool_reserve(struct inf_string_pool *pool, size_t size_bytes,
                                 struct inf_error *err) INF_NODISCARD;

// Returns the handle of a string whose `size_bytes` the caller has written to the room that
// inf_string_pool_reserve() returned last. It may be shorter than that room.
uint64_t inf_string_pool_commit(struct inf_string_pool *pool, size_t size_bytes);

// Adds a copy of a string, which must not lie in the pool, and stores its handle.
//
// INF_EXHAUSTED  the limit of the pool, or no memory.
enum inf_code inf_string_pool_add(struct inf_string_pool *pool, struct inf_span string,
                                  uint64_t *out_handle, struct inf_error *err) INF_NODISCARD;

// The pools that the handles of a run may refer to.
struct inf_strings {
    const struct inf_string_pool *constants; // NULL: none
    struct inf_string_pool *run;             // NULL: none, and no string can be made
};

// Sets *string to the bytes of a handle. They are valid until a string is added to the pool.
//
// INF_INVALID  the handle refers to bytes outside of its pool.
enum inf_code inf_strings_get(const struct inf_strings *strings, uint64_t handle,
                              struct inf_span *string, struct inf_error *err) INF_NODISCARD;

// Returns the length of the handle's string in bytes, without checking the handle.
size_t inf_string_handle_size(uint64_t handle);

// Returns the handle of `size` bytes of a handle's string, from byte `offset` on. The part must be
// inside the string.
uint64_t inf_string_handle_part(uint64_t handle, size_t offset, size_t size);

// Returns a number below 0, 0 or above 0 if `a` is before, equal to or after `b`, byte by byte.
int inf_string_compare(struct inf_span a, struct inf_span b);

// Reads `count` strings of a message (proto/core/bytes_tensor.h), copies them into `pool` and
// writes their handles. The bytes may change meanwhile: a client may share their memory.
//
// INF_INVALID    (SIZE_MISMATCH) a length reaches beyond the bytes, or bytes are left over.
// INF_EXHAUSTED  the limit of the pool, or no memory.
enum inf_code inf_string_pool_decode(struct inf_string_pool *pool, struct inf_span bytes,
                                     size_t count, uint64_t *handles,
                                     struct inf_error *err) INF_NODISCARD;

// Sets *size_bytes to the size of `count` strings in a message.
//
// INF_INVALID  a handle refers to bytes outside of its pool.
enum inf_code inf_strings_measure(const struct inf_strings *strings, const uint64_t *handles,
                                  size_t count, size_t *size_bytes,
                                  struct inf_error *err) INF_NODISCARD;

// Writes `count` strings as in a message to `to`, which has room for the bytes that
// inf_strings_measure() found. The handles must not have changed since.
void inf_strings_encode(const struct inf_strings *strings, const uint64_t *handles, size_t count,
                        uint8_t *to);

// A pool with a reference count: the strings of a model's constants, which all copies of its graph
// share. The count is atomic.
struct inf_shared_strings;

// Creates an empty pool of constants with one reference; NULL if there is no memory.
struct inf_shared_strings *inf_shared_strings_create(void) INF_NODISCARD;

// Takes another reference and returns the pool.
struct inf_shared_strings *inf_shared_strings_ref(struct inf_shared_strings *shared) INF_NODISCARD;

// Drops a reference and sets the pointer to NULL. NULL is allowed.
void inf_shared_strings_unref(struct inf_shared_strings **shared);

// Returns the pool, valid as long as the reference. Strings are added to it only while the model is
// imported.
struct inf_string_pool *inf_shared_strings_pool(struct inf_shared_strings *shared);

#endif
