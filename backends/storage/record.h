// SPDX-License-Identifier: Apache-2.0
// Lines of text that end with a checksum, for files that store measurements.
#ifndef INF_BACKENDS_STORAGE_RECORD_H
#define INF_BACKENDS_STORAGE_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Initial value of FNV-1a (Fowler, Noll, Vo). The hash detects damage, not forgery, because a
// forger could write the whole file.
#define INF_RECORD_HASH_INIT UINT64_C(0xcbf29ce484222325)

// Returns `hash` extended by `size` bytes.
uint64_t inf_record_hash(uint64_t hash, const void *data, size_t size);

// Returns `hash` extended by a text and its final NUL.
uint64_t inf_record_hash_text(uint64_t hash, const char *text);

// Appends " CHECKSUM\n" to the `size` characters of `line`. Returns the new length; 0 if it exceeds
// `capacity`.
size_t inf_record_seal(char *line, size_t size, size_t capacity);

// Removes the checksum from `line`, which has no line end. Returns false if the checksum is missing
// or wrong.
bool inf_record_open(char *line);

#endif
