// SPDX-License-Identifier: Apache-2.0
// Resolves and compares run options. Executables of a model are looked up by this comparison,
// because two executables with equal options and shapes are the same executable.
#include "backends/exec/run_options.h"

struct inf_run_options inf_run_options_resolve(struct inf_run_options options)
{
    if (options.precision == INF_PRECISION_AUTO)
        options.precision = INF_PRECISION_FP32;
    return options;
}

bool inf_run_options_equal(const struct inf_run_options *a, const struct inf_run_options *b)
{
    return a->precision == b->precision && a->threads == b->threads;
}
