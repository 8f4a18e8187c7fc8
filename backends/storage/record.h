// SPDX-License-Identifier: Apache-2.0
// Lines of text with a checksum, as the files of what was measured have them.
#ifndef INF_BACKENDS_STORAGE_RECORD_H
#define INF_BACKENDS_STORAGE_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// FNV-1a (Fowler, Noll, Vo): not against forgers, who could write the files themselves.
#define INF_RECORD_HASH_INIT UINT64_C(0xcbf29ce484222325)

// Goes on with a hash over `size` bytes.
uint64_t inf_record_hash(uint64_t hash, const void *data, size_t size);

// Goes on with a hash over a text, its end included.
uint64_t inf_record_hash_text(uint64_t hash, const char *text);

// Ends the `size` characters of `line` with " CHECKSUM\n" and returns how many there are then; 0 where
// that does not fit `capacity`.
size_t inf_record_seal(char *line, size_t size, size_t capacity);

// Cuts the checksum off a line without its end; false where there is none, or another one.
bool inf_record_open(char *line);

#endif
