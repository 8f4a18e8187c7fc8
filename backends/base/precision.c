// SPDX-License-Identifier: Apache-2.0
#include "backends/base/precision.h"

#include <stddef.h>
#include <string.h>

static const char *const names[] = {[INF_PRECISION_AUTO] = "auto",
                                    [INF_PRECISION_FP32] = "fp32",
                                    [INF_PRECISION_FP16] = "fp16",
                                    [INF_PRECISION_BF16] = "bf16",
                                    [INF_PRECISION_INT8] = "int8"};

bool inf_precision_parse(const char *text, enum inf_precision *precision)
{
    for (size_t i = 0; i < INF_PRECISIONS; i++) {
        if (strcmp(text, names[i]) != 0)
            continue;
        *precision = (enum inf_precision)i;
        return true;
    }
    return false;
}

const char *inf_precision_name(enum inf_precision precision)
{
    return (size_t)precision < INF_PRECISIONS ? names[precision] : "unknown";
}
