// SPDX-License-Identifier: Apache-2.0
// Immutable bytes shared by reference: the data of a constant. The reference count is atomic, so
// graphs that share weights may be used by different threads.
//
// If a device holds the bytes in a form from which they can be computed again, such as a packed
// weight, the blob's own bytes may be evicted. The weight is then in memory once, not twice.
#ifndef INF_BACKENDS_BASE_BLOB_H
#define INF_BACKENDS_BASE_BLOB_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/base/pages.h"
#include "proto/core/attributes.h"

// The number of readable bytes after the end of every blob. XNNPACK reads up to 16 bytes beyond the
// end of its operands.
#define INF_BLOB_SLACK_BYTES 64

// Smaller blobs are never evicted: passes and shape inference read them.
#define INF_BLOB_EVICTED_BYTES_MIN 512u

// The most separate memory blocks that a form has.
#define INF_FORM_PARTS 2

// A form as it is kept in a file (backends/saved/plan_file.h): what its device must know to use it
// again, and its bytes.
struct inf_form_record {
    char device[32];         // name of the device that made the form
    uint8_t description[80]; // a struct of the device; unused bytes are 0
    // The blocks of the form, aligned to 64. NULL, size 0: there is no such block.
    void *parts[INF_FORM_PARTS];
    size_t part_bytes[INF_FORM_PARTS];
    // The memory that the parts are in, one reference, if the record was read. NULL if a form was
    // described: the parts are borrowed from it.
    struct inf_shared_pages *pages;
};

// The bytes of a blob in another form, such as weights packed for a device. This is the first
// member of the owner's struct.
struct inf_blob_form {
    _Atomic size_t references;
    size_t size_bytes; // size of the form
    // What the bytes are in. Forms with the same memory share it, so it counts once. NULL: it is
    // not shared.
    const void *memory;
    uint64_t made_ns; // time to make the form; 0: not known
    // Writes the blob's bytes to `data`. Any thread. NULL: the form does not determine them.
    void (*restore)(const struct inf_blob_form *form, void *data);
    // Describes the form, so that it can be kept in a file. Any thread. NULL: it cannot be kept.
    void (*describe)(const struct inf_blob_form *form, struct inf_form_record *record);
    // Frees the form after its last reference was dropped. Any thread.
    void (*destroy)(struct inf_blob_form *form);
};

struct inf_blob {
    _Atomic size_t references;
    size_t size_bytes;
    void *data; // aligned to 64, followed by INF_BLOB_SLACK_BYTES zero bytes; NULL: evicted
    struct inf_blob_form *form; // a counted reference while the bytes are evicted; otherwise NULL
};

// Returns a blob of `size_bytes` zeroed bytes with one reference. Fill it before sharing it.
// Returns NULL if there is no memory.
struct inf_blob *inf_blob_create(size_t size_bytes) INF_NODISCARD;

// Returns a blob of `size_bytes` uninitialised bytes with one reference, followed by zeroed slack.
// Returns NULL if there is no memory.
struct inf_blob *inf_blob_create_unset(size_t size_bytes) INF_NODISCARD;

// Returns a blob of `size_bytes` bytes that are evicted, with one reference. The caller gives it
// the form from which they are restored with inf_blob_set_form(). Returns NULL if there is no
// memory.
struct inf_blob *inf_blob_create_evicted(size_t size_bytes) INF_NODISCARD;

// Takes a reference to `form`, which can restore the blob. Does nothing if the blob has its bytes
// or a form. Only before the blob is shared with other threads.
void inf_blob_set_form(struct inf_blob *blob, struct inf_blob_form *form);

// Takes another reference to the blob and returns it.
struct inf_blob *inf_blob_ref(struct inf_blob *blob) INF_NODISCARD;

// Drops a reference and sets the pointer to NULL. Dropping the last reference frees the blob. NULL
// is allowed.
void inf_blob_unref(struct inf_blob **blob);

// Frees the blob's bytes and takes a reference to `form`, from which inf_blob_restore() recomputes
// them. No thread may read the bytes after this call. Does nothing if the blob has no bytes.
void inf_blob_evict(struct inf_blob *blob, struct inf_blob_form *form);

// Recomputes evicted bytes and drops the reference to the form. Does nothing if the bytes are
// present. Only one thread at a time may call it. Returns false, without changing anything, if
// there is no memory.
bool inf_blob_restore(struct inf_blob *blob) INF_NODISCARD;

// Takes another reference to the form and returns it.
struct inf_blob_form *inf_blob_form_ref(struct inf_blob_form *form) INF_NODISCARD;

// Drops a reference and sets the pointer to NULL. Dropping the last reference frees the form. NULL
// is allowed.
void inf_blob_form_unref(struct inf_blob_form **form);

#endif
