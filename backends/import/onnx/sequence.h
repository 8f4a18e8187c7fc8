// SPDX-License-Identifier: Apache-2.0
// Sequences of tensors while a model is imported: lists whose length and positions are settled then.
// They are named like values, by numbers that no value has, and never reach the graph.
#ifndef INF_BACKENDS_IMPORT_ONNX_SEQUENCE_H
#define INF_BACKENDS_IMPORT_ONNX_SEQUENCE_H

#include <stdbool.h>
#include <stdint.h>

// Sequences that one model may make, and tensors in all of them.
#define INF_ONNX_SEQUENCES_MAX      (1u << 16)
#define INF_ONNX_SEQUENCE_ITEMS_MAX (1u << 20)

struct inf_onnx_sequence {
    const uint32_t *values; // in the import's arena
    uint32_t count;
};

struct inf_onnx_sequences {
    struct inf_onnx_sequence *items;
    uint32_t count, capacity;
    uint32_t item_count; // of all of them, and of what they were joined to
};

// Numbers of sequences begin here: no graph has as many values.
#define INF_ONNX_SEQUENCE_FIRST 0x80000000u

// Whether what a name means is a sequence (INF_VALUE_NONE is not).
static inline bool inf_onnx_is_sequence(uint32_t value)
{
    return value >= INF_ONNX_SEQUENCE_FIRST &&
           value < INF_ONNX_SEQUENCE_FIRST + INF_ONNX_SEQUENCES_MAX;
}

#endif
