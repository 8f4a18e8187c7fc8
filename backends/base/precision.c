// SPDX-License-Identifier: Apache-2.0
// The names of precisions in settings and replies.
#include "backends/base/precision.h"

#include <stddef.h>

#include "backends/base/name.h"

static const char *const names[] = {[INF_PRECISION_AUTO] = "auto",
                                    [INF_PRECISION_FP32] = "fp32",
                                    [INF_PRECISION_FP16] = "fp16",
                                    [INF_PRECISION_BF16] = "bf16",
                                    [INF_PRECISION_INT8] = "int8"};

bool inf_precision_parse(const char *text, enum inf_precision *precision)
{
    size_t index = inf_name_find(names, INF_PRECISIONS, text);
    if (index < INF_PRECISIONS)
        *precision = (enum inf_precision)index;
    return index < INF_PRECISIONS;
}

const char *inf_precision_name(enum inf_precision precision)
{
    return (size_t)precision < INF_PRECISIONS ? names[precision] : "unknown";
}
