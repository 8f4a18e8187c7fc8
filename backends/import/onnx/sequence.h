// SPDX-License-Identifier: Apache-2.0
// Sequences of tensors. They exist only during the import, so their lengths and positions must be
// known then. A sequence is identified by a number larger than any value, and never becomes part of
// the graph. An optional without element has such a number too; an optional with an element is
// represented by the element.
#ifndef INF_BACKENDS_IMPORT_ONNX_SEQUENCE_H
#define INF_BACKENDS_IMPORT_ONNX_SEQUENCE_H

#include <stdbool.h>
#include <stdint.h>

// Limits on the sequences of one model, and on their tensors in total.
#define INF_ONNX_SEQUENCES_MAX      (1u << 16)
#define INF_ONNX_SEQUENCE_ITEMS_MAX (1u << 20)

struct inf_onnx_sequence {
    const uint32_t *values; // the tensors of the sequence, in the import's arena
    uint32_t count;
    bool is_absent; // true: no sequence, but an optional without element
};

struct inf_onnx_sequences {
    struct inf_onnx_sequence *items;
    uint32_t count, capacity;
    uint32_t item_count; // tensors of all sequences, and of lists made from them
};

// The number of the first sequence. No graph has that many values.
#define INF_ONNX_SEQUENCE_FIRST 0x80000000u

// Returns true if a number identifies a sequence; false for INF_VALUE_NONE.
static inline bool inf_onnx_is_sequence(uint32_t value)
{
    return value >= INF_ONNX_SEQUENCE_FIRST &&
           value < INF_ONNX_SEQUENCE_FIRST + INF_ONNX_SEQUENCES_MAX;
}

#endif
