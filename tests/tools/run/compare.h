// SPDX-License-Identifier: Apache-2.0
// How far a tensor is from its reference, by the rules of shared/models/README.md.
#ifndef INF_TESTS_TOOLS_RUN_COMPARE_H
#define INF_TESTS_TOOLS_RUN_COMPARE_H

#include "client/inferctl/tensor/npy.h"

// The accepted difference. Members that do not apply are 0 or false.
struct tool_tolerance {
    double atol, rtol; // floats: |got - ref| <= atol + rtol * |ref|
    double of_larger;  // floats, instead: |got - ref| <= of_larger * max(1, |ref|); 0: not used
    double lsb;        // integers: |got - ref| <= lsb
    double mean_lsb;   // integers: mean of |got - ref|; 0: not looked at
    double mismatch_fraction; // part of the elements that may be outside
    bool top1;                // the largest element is the same one
    bool informative;         // not judged
};

struct tool_difference {
    double max_abs, max_rel, mean_abs;
    size_t outside; // elements that are not within the tolerance
    size_t count;
    bool same_top;
    bool ok;
};

// Compares `got`, of the element type and shape of `reference`, with it.
struct tool_difference tool_compare(const void *got, const struct inf_npy *reference,
                                    const struct tool_tolerance *tolerance);

#endif
