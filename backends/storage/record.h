// SPDX-License-Identifier: Apache-2.0
// Lines of text that end with a checksum, for files that keep measurements.
#ifndef INF_BACKENDS_STORAGE_RECORD_H
#define INF_BACKENDS_STORAGE_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// FNV-1a (Fowler, Noll, Vo). Detects damage, not forgery: a forger could write the whole file.
#define INF_RECORD_HASH_INIT UINT64_C(0xcbf29ce484222325)

// Returns `hash` continued over `size` bytes.
uint64_t inf_record_hash(uint64_t hash, const void *data, size_t size);

// Returns `hash` continued over a text and its final NUL.
uint64_t inf_record_hash_text(uint64_t hash, const char *text);

// Appends " CHECKSUM\n" to the `size` characters of `line`. Returns the new length; 0 if it exceeds
// `capacity`.
size_t inf_record_seal(char *line, size_t size, size_t capacity);

// Cuts the checksum off `line`, which has no line end. Returns false if it is missing or wrong.
bool inf_record_open(char *line);

#endif
