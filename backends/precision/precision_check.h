// SPDX-License-Identifier: Apache-2.0
// Whether a model may run in less than fp32: its weights are looked at, it is run once in fp32 to
// see how far its values reach, and once with every value rounded as it is stored, to see how far
// the outputs move. Sums are in fp32 in either case. Knows no device: what it says holds for all.
#ifndef INF_BACKENDS_PRECISION_PRECISION_CHECK_H
#define INF_BACKENDS_PRECISION_PRECISION_CHECK_H

#include "backends/base/precision.h"
#include "backends/base/role.h"
#include "backends/graph/pass/pass.h"

// What half precision can hold: the largest number, and the smallest above 0 ("Platform and
// environment", TensorFlow.js).
#define INF_HALF_LARGEST  65504.0
#define INF_HALF_SMALLEST 5.9604644775390625e-8

// Values within this factor of the largest number stay fp32: inputs may be larger than
// those of the check.
#define INF_HALF_HEADROOM 4.0

// How far outputs may move, relative to max(1, |fp32|): half has 11 bits, bfloat16 8.
#define INF_HALF_ERROR_MAX 0.01
#define INF_BF16_ERROR_MAX 0.03

// Nodes that may have to stay fp32 before the rest is not worth it.
#define INF_PRECISION_PINS_MAX 64u

// A model with more multiply-adds is not judged: plain loops would take too long.
#define INF_PRECISION_MACS_MAX ((uint64_t)4000000000)

struct inf_precision_report {
    enum inf_precision precision; // that was checked
    uint32_t values;              // tensors of floats that nodes make
    uint32_t pinned;              // of them: they would have to stay fp32
    char pinned_node[64];         // the first of their nodes
    double pinned_magnitude;      // and how far it reaches
    uint32_t weights;             // tensors of float constants
    uint32_t weights_pinned;      // of them: with elements that half cannot hold
    char pinned_weight[64];
    double weight_magnitude;
    uint64_t lost;          // elements that are not 0, but would be: below the smallest
    double error_unguarded; // how far the outputs move with everything in half; infinity: overflow
    double error;           // with what is pinned in fp32
    char output[64];        // the one that moves most
    double magnitude;       // how far outputs reach in fp32
    uint32_t nodes;         // of the graph
    uint32_t pinned_nodes;  // that touch what has to stay fp32
    uint64_t
        pins[INF_PRECISION_PINS_MAX]; // of those, inf_node_hash() each, as far as there is room
    bool admissible; // the error is bearable, there is room for the pins, and nodes are left
};

// How far outputs may move in `precision`; 0 for those that are not judged.
double inf_precision_error_max(enum inf_precision precision);

// Judges what `graph` would do in fp16 or bf16. Its shapes are known and no shape depends on
// values; inputs[i] is the data of its input i. `evaluator` computes nodes.
//
// INF_UNSUPPORTED  sizes depend on values, there is too much to compute, or it is another
//                  precision; the text says which.
// INF_EXHAUSTED    memory.
enum inf_code inf_precision_check(struct inf_precision_report *report, enum inf_precision precision,
                                  const struct inf_graph *graph,
                                  const struct inf_evaluator *evaluator,
                                  struct inf_blob *const *inputs,
                                  struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Whether the outputs were so small that they could hardly have moved: nothing is known of the
// model then.
bool inf_precision_is_inconclusive(const struct inf_precision_report *report);

// Says in a line what the report means: "2 of 30 values would stay fp32 ('mul' reaches 80000),
// ...".
void inf_precision_print(const struct inf_precision_report *report, char *text, size_t size);

#endif
