// SPDX-License-Identifier: Apache-2.0
// Records of measurements: lines of text that end with a checksum, for the files that store the
// records; hashes, which are the keys of records; and the places of records in an array of fixed
// capacity.
#ifndef INF_BACKENDS_STORAGE_RECORD_H
#define INF_BACKENDS_STORAGE_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/core/hash.h"
#include "proto/core/shape.h"

// Initial value of the hashes of records (proto/core/hash.h). They detect damage, not forgery,
// because a forger could write the whole file.
#define INF_RECORD_HASH_INIT INF_HASH_INIT

// Returns the FNV-1a hash `hash` extended by the `size` bytes at `data`.
uint64_t inf_record_hash(uint64_t hash, const void *data, size_t size);

// Returns the FNV-1a hash `hash` extended by a text and its final NUL.
uint64_t inf_record_hash_text(uint64_t hash, const char *text);

// Returns the FNV-1a hash `hash` extended by the ranks and dimensions of `count` shapes.
uint64_t inf_record_hash_shapes(uint64_t hash, const struct inf_shape *shapes, uint32_t count);

// The used places of an array of records. When all places are used, a new record replaces the
// oldest record. Zero-initialise for an empty array.
struct inf_record_places {
    uint32_t count; // number of records in the array
    uint32_t next;  // if all places are used: index of the oldest record
};

// Returns the index for a new record in an array of `capacity` places, and updates *places: a free
// place, or the place of the oldest record if no place is free.
uint32_t inf_record_place(struct inf_record_places *places, uint32_t capacity);

// Appends " CHECKSUM\n" to the `size` characters of `line`. Returns the new length; 0 if it exceeds
// `capacity`.
size_t inf_record_seal(char *line, size_t size, size_t capacity);

// Removes the checksum from `line`, which has no line end. Returns false if the checksum is missing
// or wrong.
bool inf_record_open(char *line);

#endif
