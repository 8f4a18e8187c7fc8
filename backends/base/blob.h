// SPDX-License-Identifier: Apache-2.0
// Immutable bytes shared by reference: the data of a constant. Counted atomically, so graphs that
// share weights may live on different threads.
#ifndef INF_BACKENDS_BASE_BLOB_H
#define INF_BACKENDS_BASE_BLOB_H

#include <stdatomic.h>
#include <stddef.h>

#include "proto/core/attributes.h"

// Readable bytes behind every blob: XNNPACK reads up to 16 past the end of its operands.
#define INF_BLOB_SLACK_BYTES 64

struct inf_blob {
    _Atomic size_t references;
    size_t size_bytes;
    void *data; // aligned to 64, followed by INF_BLOB_SLACK_BYTES zero bytes
};

// A blob of `size_bytes` zeroed bytes with one reference, to be filled before it is shared.
// NULL without memory.
struct inf_blob *inf_blob_create(size_t size_bytes) INF_NODISCARD;

// As inf_blob_create(), but the caller sets every byte: only what is behind them is 0.
struct inf_blob *inf_blob_create_unset(size_t size_bytes) INF_NODISCARD;

// Another reference to the same blob.
struct inf_blob *inf_blob_ref(struct inf_blob *blob) INF_NODISCARD;

// Drops a reference, sets the pointer NULL, and frees the blob with its last one. NULL is fine.
void inf_blob_unref(struct inf_blob **blob);

#endif
