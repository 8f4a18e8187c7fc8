// SPDX-License-Identifier: Apache-2.0
// Compares a tensor with its reference, by the rules of shared/models/README.md.
#ifndef INF_TESTS_TOOLS_RUN_COMPARE_H
#define INF_TESTS_TOOLS_RUN_COMPARE_H

#include "backends/base/string_pool.h"
#include "proto/npy/npy.h"

// The accepted difference between a tensor and its reference. Members that do not apply are 0 or
// false.
struct tool_tolerance {
    double atol, rtol; // floats: |got - ref| <= atol + rtol * |ref|
    // FP32: a difference of at most this much of the largest finite |ref| is accepted too; 0: none
    double of_largest;
    // floats, instead of atol and rtol: |got - ref| <= of_larger * max(1, |ref|); 0: not used
    double of_larger;
    double lsb;               // integers: |got - ref| <= lsb
    double mean_lsb;          // integers: mean of |got - ref|; 0: not checked
    double mismatch_fraction; // fraction of the elements that may be outside the tolerance
    bool top1;                // the largest element must have the same index
    bool informative;         // the difference is reported but never counts as a failure
};

struct tool_difference {
    double max_abs, max_rel, mean_abs;
    size_t outside; // number of elements outside the tolerance
    size_t count;
    bool same_top;
    bool ok;
};

// Compares `count` handles of strings. A handle of `reference`, and one of `got` that is no
// constant, refers to the strings of the run.
struct tool_difference tool_compare_strings(const struct inf_strings *strings, const uint64_t *got,
                                            const uint64_t *reference, size_t count);

// Compares `got` with `reference`. `got` has the element type and shape of `reference`.
struct tool_difference tool_compare(const void *got, const struct inf_npy *reference,
                                    const struct tool_tolerance *tolerance);

#endif
