// SPDX-License-Identifier: Apache-2.0
// Breaks a model file so that most of it stays valid. A document is cut into its parts (values of
// JSON, fields of protobuf). One part is removed, repeated, swapped for another part of the same
// kind, or replaced by something invalid. The same random state gives the same mutant.
#ifndef INF_TESTS_TOOLS_RUN_MUTANT_H
#define INF_TESTS_TOOLS_RUN_MUTANT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MUTANT_NO_PART UINT32_MAX

// A value of JSON, or a field of protobuf with its tag.
struct mutant_part {
    size_t begin, end;
    size_t body;     // offset of a field's content; for a JSON value, the same as `begin`
    uint32_t parent; // MUTANT_NO_PART if there is no parent
    // the kind of the part: a hash of the name in JSON, or of message and field in protobuf
    uint32_t key;
    char type; // JSON: { [ " 0 (number) l (literal); protobuf: v (number) b (bytes) m (message)
};

struct mutant_parts {
    struct mutant_part *items;
    uint32_t count, capacity;
    uint32_t *by_key; // indices sorted by key, so that parts of one kind are adjacent
};

struct mutant {
    char *data;
    size_t size;
};

// The functions that depend on the file format.
struct mutant_format {
    // Appends the parts of a well-formed document to `parts`, parents before their children.
    void (*cut)(struct mutant_parts *parts, const struct mutant *document);
    // Replaces bytes [begin, end) inside `part`, or the whole part if it is removed or repeated,
    // and corrects all length fields.
    void (*replace)(struct mutant *mutant, const struct mutant_parts *parts, uint32_t part,
                    const char *text, size_t size);
    // Removes the part and its separator.
    void (*drop)(struct mutant *mutant, const struct mutant_parts *parts, uint32_t part);
    // Repeats the part `times` times.
    void (*repeat)(struct mutant *mutant, const struct mutant_parts *parts, uint32_t part,
                   unsigned times);
    // Replaces the part by something unexpected. Returns a text that describes the replacement.
    const char *(*estrange)(struct mutant *mutant, const struct mutant_parts *parts, uint32_t part,
                            uint64_t *state);
};

extern const struct mutant_format mutant_json, mutant_onnx, mutant_tflite;

// Cuts a document into parts. The caller frees them with mutant_parts_free().
void mutant_parts_cut(struct mutant_parts *parts, const struct mutant_format *format,
                      const struct mutant *document);
void mutant_parts_free(struct mutant_parts *parts);
// Adds a part and returns its index. Only the formats call this.
uint32_t mutant_parts_add(struct mutant_parts *parts, const struct mutant_part *part);

// Makes one random change, and returns a text that describes it.
const char *mutant_change(struct mutant *mutant, const struct mutant_format *format,
                          const struct mutant_parts *parts, uint64_t *state);

// Changes bytes without regard for the format: flips some, cuts off the end, or copies one range
// over another.
const char *mutant_change_bytes(struct mutant *mutant, uint64_t *state);

// Replaces bytes [begin, end).
void mutant_splice(struct mutant *mutant, size_t begin, size_t end, const char *text, size_t size);

#endif
