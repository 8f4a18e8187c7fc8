// SPDX-License-Identifier: Apache-2.0
// Checks whether a model may run in a precision below fp32. The check inspects the weights, runs
// the model once in fp32 to find the range of its values, and runs the model again with values
// rounded, to find how much the outputs change: in fp16 every value when it is stored, in bf16 the
// operands of products. Both runs sum in fp32. The result holds for all devices.
#ifndef INF_BACKENDS_PRECISION_PRECISION_CHECK_H
#define INF_BACKENDS_PRECISION_PRECISION_CHECK_H

#include "backends/base/precision.h"
#include "backends/base/role.h"
#include "backends/graph/pass/pass.h"

// The range of half precision: the largest number, and the smallest number above 0 (from
// TensorFlow.js, "Platform and environment").
#define INF_HALF_LARGEST  65504.0
#define INF_HALF_SMALLEST 5.9604644775390625e-8

// Values within this factor of the largest number stay in fp32, because later inputs may be larger
// than the inputs of the check.
#define INF_HALF_HEADROOM 4.0

// The accepted change of outputs, relative to max(1, |fp32|). fp16 has 11 significant bits and bf16
// has 8.
#define INF_HALF_ERROR_MAX 0.01
#define INF_BF16_ERROR_MAX 0.03

// If more nodes than this have to stay in fp32, the model must not use the lower precision.
#define INF_PRECISION_PINS_MAX 64u

// A model with more multiply-adds is not checked with plain loops, because that would take too
// long, and one with more than the second number not with an evaluator that computes products on a
// device.
#define INF_PRECISION_MACS_MAX        ((uint64_t)4000000000)
#define INF_PRECISION_DEVICE_MACS_MAX ((uint64_t)200000000000)

// A check that takes longer ends without a result, and the model stays in fp32, because clients of
// a slow or busy machine must not wait long for the first answer. Two runs of the largest model
// that is checked end in this time if the device computes 20 GMAC/s.
#define INF_PRECISION_TIME_MAX_NS ((uint64_t)20000000000)

// What a check may cost.
struct inf_precision_limits {
    uint64_t macs;    // most multiply-adds of the graph
    uint64_t time_ns; // longest time of the check
};

struct inf_precision_report {
    enum inf_precision precision; // the precision that was checked
    uint32_t values;              // number of float tensors that nodes compute
    uint32_t pinned;              // number of these tensors that have to stay in fp32
    char pinned_node[64];         // name of the node that computes the first pinned value
    double pinned_magnitude;      // the largest magnitude of the first pinned value
    uint32_t weights;             // number of float constants
    uint32_t weights_pinned; // number of float constants with elements that half cannot represent
    char pinned_weight[64];
    double weight_magnitude;
    // number of float elements that rounding turns into 0, because they are below the smallest
    // number of the type
    uint64_t lost;
    // change of the outputs if no value is pinned; infinity if a value overflows
    double error_unguarded;
    double error;                          // change of the outputs if pinned values stay in fp32
    char output[64];                       // name of the output that changes most
    double magnitude;                      // the largest magnitude of the outputs in fp32
    uint32_t nodes;                        // number of nodes of the graph
    uint32_t pinned_nodes;                 // number of nodes that compute or read a pinned value
    uint64_t pins[INF_PRECISION_PINS_MAX]; // inf_node_hash() of the pinned nodes, as many as fit
    bool admissible; // the error is accepted, all pins fit, and some nodes are not pinned
};

// Returns the accepted change of outputs in `precision`; 0 for precisions that need no check.
double inf_precision_error_max(enum inf_precision precision);

// Checks `graph` in fp16 or bf16. All shapes must be known and independent of values. inputs[i] is
// the data of input i. `evaluator` computes nodes. The time is compared with its limit between
// nodes.
//
// INF_CANCELLED    *cancelled was set (NULL: the check cannot be cancelled).
// INF_UNSUPPORTED  sizes depend on values, the graph needs too much work or time, or the precision
// is neither fp16 nor bf16; the text names the reason.
// INF_EXHAUSTED    memory.
enum inf_code inf_precision_check(struct inf_precision_report *report, enum inf_precision precision,
                                  const struct inf_graph *graph,
                                  const struct inf_evaluator *evaluator,
                                  const struct inf_precision_limits *limits,
                                  struct inf_blob *const *inputs, const atomic_bool *cancelled,
                                  struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Returns true if the outputs were so small that they could hardly change. In this case the check
// says nothing about the model.
bool inf_precision_is_inconclusive(const struct inf_precision_report *report);

// Writes the report as one line: "2 of 30 values would stay fp32 ('mul' reaches 80000), ...".
void inf_precision_print(const struct inf_precision_report *report, char *text, size_t size);

#endif
