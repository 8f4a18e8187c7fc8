// SPDX-License-Identifier: Apache-2.0
// Reproducible changes of a JSON document, for tests of importers. Each function passes every
// changed document to the callback `visit`.
#ifndef INF_TESTS_SUPPORT_MODELS_MUTATE_H
#define INF_TESTS_SUPPORT_MODELS_MUTATE_H

#include <stddef.h>
#include <stdint.h>

// A callback that tests a document of `size` bytes.
typedef void inf_mutate_visit(const char *text, size_t size);

// Returns a random number of 31 bits.
uint32_t inf_mutate_random(uint64_t *state);

// Visits prefixes of the document whose lengths are multiples of `step` bytes.
void inf_mutate_truncate(const char *text, size_t size, size_t step, inf_mutate_visit *visit);

// Visits `rounds` documents with one to three bytes changed, mostly to bytes that JSON uses.
void inf_mutate_bytes(const char *text, size_t size, unsigned rounds, inf_mutate_visit *visit);

// Visits `rounds` documents with one to four digits changed.
void inf_mutate_digits(const char *text, size_t size, unsigned rounds, inf_mutate_visit *visit);

// For each value in the document, visits one document without the value, and documents in which a
// value of another type replaces it. Returns the number of values.
size_t inf_mutate_values(const char *text, size_t size, inf_mutate_visit *visit);

#endif
