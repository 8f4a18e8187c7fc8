// SPDX-License-Identifier: Apache-2.0
// Checks whether a model may run in less than fp32. It inspects the weights, runs the model once in
// fp32 to see the range of its values, and once with every value rounded when it is stored, to see
// by how much the outputs change. Both runs sum in fp32. The result holds for all devices.
#ifndef INF_BACKENDS_PRECISION_PRECISION_CHECK_H
#define INF_BACKENDS_PRECISION_PRECISION_CHECK_H

#include "backends/base/precision.h"
#include "backends/base/role.h"
#include "backends/graph/pass/pass.h"

// The range of half precision: the largest number, and the smallest above 0 ("Platform and
// environment", TensorFlow.js).
#define INF_HALF_LARGEST  65504.0
#define INF_HALF_SMALLEST 5.9604644775390625e-8

// Values within this factor of the largest number stay in fp32, because inputs may be larger than
// those of the check.
#define INF_HALF_HEADROOM 4.0

// The accepted change of outputs, relative to max(1, |fp32|). half has 11 bits, bfloat16 has 8.
#define INF_HALF_ERROR_MAX 0.01
#define INF_BF16_ERROR_MAX 0.03

// If more nodes have to stay in fp32, the model is not admitted.
#define INF_PRECISION_PINS_MAX 64u

// A model with more multiply-adds is not checked: plain loops would take too long.
#define INF_PRECISION_MACS_MAX ((uint64_t)4000000000)

struct inf_precision_report {
    enum inf_precision precision; // the precision that was checked
    uint32_t values;              // float tensors that nodes make
    uint32_t pinned;              // those of `values` that have to stay in fp32
    char pinned_node[64];         // the node that makes the first pinned value
    double pinned_magnitude;      // the largest magnitude of that value
    uint32_t weights;             // float constants
    uint32_t weights_pinned;      // those of `weights` with elements that half cannot hold
    char pinned_weight[64];
    double weight_magnitude;
    uint64_t lost;          // elements below the smallest number, which rounding turns into 0
    double error_unguarded; // change of the outputs with no pinned value; infinity: overflow
    double error;           // change of the outputs with pinned values in fp32
    char output[64];        // the output that changes most
    double magnitude;       // the largest magnitude of the outputs in fp32
    uint32_t nodes;         // nodes of the graph
    uint32_t pinned_nodes;  // nodes that make or read a pinned value
    uint64_t pins[INF_PRECISION_PINS_MAX]; // inf_node_hash() of the pinned nodes, as many as fit
    bool admissible; // the error is accepted, all pins fit, and some nodes are not pinned
};

// Returns the accepted change of outputs in `precision`; 0 for precisions that are not checked.
double inf_precision_error_max(enum inf_precision precision);

// Checks `graph` in fp16 or bf16. All shapes must be known and independent of values. inputs[i] is
// the data of input i. `evaluator` computes nodes.
//
// INF_UNSUPPORTED  sizes depend on values, the graph needs too much work, or the precision is
//                  another one; the text says which.
// INF_EXHAUSTED    memory.
enum inf_code inf_precision_check(struct inf_precision_report *report, enum inf_precision precision,
                                  const struct inf_graph *graph,
                                  const struct inf_evaluator *evaluator,
                                  struct inf_blob *const *inputs,
                                  struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Returns true if the outputs were so small that they could hardly change: then the check says
// nothing about the model.
bool inf_precision_is_inconclusive(const struct inf_precision_report *report);

// Writes the report as one line: "2 of 30 values would stay fp32 ('mul' reaches 80000), ...".
void inf_precision_print(const struct inf_precision_report *report, char *text, size_t size);

#endif
