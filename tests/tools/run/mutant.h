// SPDX-License-Identifier: Apache-2.0
// Ways to break a model file that keep it a model in most respects: a document is cut into its
// parts (values of JSON, fields of protobuf), and one part is left out, said again, swapped for
// another of its kind or for something that has no business there. The same numbers give the same
// mutant.
#ifndef INF_TESTS_TOOLS_RUN_MUTANT_H
#define INF_TESTS_TOOLS_RUN_MUTANT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MUTANT_NO_PART UINT32_MAX

// A value of JSON, or a field of protobuf with its tag.
struct mutant_part {
    size_t begin, end;
    size_t body;     // where a field's content begins; a value's is `begin`
    uint32_t parent; // MUTANT_NO_PART at the top
    uint32_t key;    // parts of one kind have one key: what they are called, or a message's field
    char type; // JSON: { [ " 0 (number) l (literal); protobuf: v (number) b (bytes) m (message)
};

struct mutant_parts {
    struct mutant_part *items;
    uint32_t count, capacity;
    uint32_t *by_key; // indices, parts of one key side by side
};

struct mutant {
    char *data;
    size_t size;
};

// What differs between the formats.
struct mutant_format {
    // Adds the parts of a well-formed document, parents before their children.
    void (*cut)(struct mutant_parts *parts, const struct mutant *document);
    // Replaces [begin, end) in `part`, or all of it where it is left out or said again, and puts
    // right whatever counts bytes.
    void (*replace)(struct mutant *mutant, const struct mutant_parts *parts, uint32_t part,
                    const char *text, size_t size);
    // Leaves the part out, with what separates it from the next.
    void (*drop)(struct mutant *mutant, const struct mutant_parts *parts, uint32_t part);
    // Says the part `times` times more.
    void (*repeat)(struct mutant *mutant, const struct mutant_parts *parts, uint32_t part,
                   unsigned times);
    // Puts something strange in the part's place; returns what it was.
    const char *(*estrange)(struct mutant *mutant, const struct mutant_parts *parts, uint32_t part,
                            uint64_t *state);
};

extern const struct mutant_format mutant_json, mutant_onnx;

// Cuts a document. To be freed with mutant_parts_free().
void mutant_parts_cut(struct mutant_parts *parts, const struct mutant_format *format,
                      const struct mutant *document);
void mutant_parts_free(struct mutant_parts *parts);
// Adds a part; for the formats. Returns its index.
uint32_t mutant_parts_add(struct mutant_parts *parts, const struct mutant_part *part);

// Changes one thing that the numbers choose, and returns what was done.
const char *mutant_change(struct mutant *mutant, const struct mutant_format *format,
                          const struct mutant_parts *parts, uint64_t *state);

// Changes bytes without regard for what they are: some flipped, the end cut off, a stretch copied
// over another.
const char *mutant_change_bytes(struct mutant *mutant, uint64_t *state);

// Replaces bytes [begin, end).
void mutant_splice(struct mutant *mutant, size_t begin, size_t end, const char *text, size_t size);

#endif
