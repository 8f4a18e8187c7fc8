// SPDX-License-Identifier: Apache-2.0
// Immutable bytes shared by reference: the data of a constant. Counted atomically, so graphs that
// share weights may live on different threads.
//
// Once a device has the bytes in a form of its own, from which they can be made again, the blob may
// give them up: weights are in memory once, not twice.
#ifndef INF_BACKENDS_BASE_BLOB_H
#define INF_BACKENDS_BASE_BLOB_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/core/attributes.h"

// Readable bytes behind every blob: XNNPACK reads up to 16 past the end of its operands.
#define INF_BLOB_SLACK_BYTES 64

// The bytes of a blob in another form: weights packed for a device. First member of what the owner of
// the form knows about it.
struct inf_blob_form {
    _Atomic size_t references;
    size_t size_bytes; // that the form takes
    uint64_t made_ns;  // what making it took; 0: not known
    // Writes the blob's bytes to `data`. Any thread.
    void (*restore)(const struct inf_blob_form *form, void *data);
    // Frees the form: nobody has a reference any more. Any thread.
    void (*destroy)(struct inf_blob_form *form);
};

struct inf_blob {
    _Atomic size_t references;
    size_t size_bytes;
    void *data; // aligned to 64, followed by INF_BLOB_SLACK_BYTES zero bytes; NULL: given up
    struct inf_blob_form *form; // a reference to what stands in for the bytes given up; else NULL
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

// Frees the blob's bytes, for which `form` stands in from now on; the blob takes a reference to it.
// Nobody may be reading them, nor until inf_blob_restore(). Of no effect on a blob without bytes.
void inf_blob_evict(struct inf_blob *blob, struct inf_blob_form *form);

// Makes the bytes again that were given up, and drops the reference to the form. Fine where they never
// were. One thread at a time. False without memory: the blob is as it was.
bool inf_blob_restore(struct inf_blob *blob) INF_NODISCARD;

// Another reference to the same form.
struct inf_blob_form *inf_blob_form_ref(struct inf_blob_form *form) INF_NODISCARD;

// Drops a reference, sets the pointer NULL, and frees the form with its last one. NULL is fine.
void inf_blob_form_unref(struct inf_blob_form **form);

#endif
