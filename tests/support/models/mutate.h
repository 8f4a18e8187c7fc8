// SPDX-License-Identifier: Apache-2.0
// Ways to break a JSON document, one after the other and the same on every machine: for tests of
// importers. Each change is handed to `visit`, which tries the document.
#ifndef INF_TESTS_SUPPORT_MODELS_MUTATE_H
#define INF_TESTS_SUPPORT_MODELS_MUTATE_H

#include <stddef.h>
#include <stdint.h>

// Tries a document of `size` bytes.
typedef void inf_mutate_visit(const char *text, size_t size);

// A small generator of numbers: 31 bits.
uint32_t inf_mutate_random(uint64_t *state);

// Every `step`-th beginning of the document.
void inf_mutate_truncate(const char *text, size_t size, size_t step, inf_mutate_visit *visit);

// `rounds` documents with one to three bytes changed, mostly into those that JSON is made of.
void inf_mutate_bytes(const char *text, size_t size, unsigned rounds, inf_mutate_visit *visit);

// `rounds` documents with one to four digits changed.
void inf_mutate_digits(const char *text, size_t size, unsigned rounds, inf_mutate_visit *visit);

// Each value replaced by values of other types, and left out. Returns how many values there are.
size_t inf_mutate_values(const char *text, size_t size, inf_mutate_visit *visit);

#endif
