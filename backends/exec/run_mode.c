// SPDX-License-Identifier: Apache-2.0
#include "backends/exec/run_mode.h"

struct inf_mode inf_mode_plain(struct inf_mode mode)
{
    if (mode.precision == INF_PRECISION_AUTO)
        mode.precision = INF_PRECISION_FP32;
    return mode;
}

bool inf_mode_equal(const struct inf_mode *a, const struct inf_mode *b)
{
    return a->precision == b->precision && a->threads == b->threads;
}
