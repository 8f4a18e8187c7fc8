// SPDX-License-Identifier: Apache-2.0
#include "client/lib/client.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

_Static_assert((int)INFERD_BOOL == (int)INF_DTYPE_BOOL &&
                   (int)INFERD_UINT64 == (int)INF_DTYPE_U64 &&
                   (int)INFERD_INT8 == (int)INF_DTYPE_I8 &&
                   (int)INFERD_FP16 == (int)INF_DTYPE_F16 && (int)INFERD_FP64 == (int)INF_DTYPE_F64,
               "the public element types are the internal ones");
_Static_assert(INFERD_RANK_MAX == INF_LIMIT_RANK, "the public rank limit is the internal one");

uint64_t inf_client_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

int inf_client_report(struct inferd_error *err, const struct inf_error *error)
{
    if (err != NULL) {
        err->code = (int)error->code;
        err->retry_after_ms = 0;
        snprintf(err->reason, sizeof err->reason, "%s", inf_reason_name(error->reason));
        snprintf(err->text, sizeof err->text, "%s", error->text);
    }
    return (int)error->code;
}

const char *inferd_dtype_name(inferd_dtype dtype)
{
    return inf_dtype_name((enum inf_dtype)dtype);
}

size_t inferd_dtype_size(inferd_dtype dtype)
{
    return inf_dtype_size((enum inf_dtype)dtype);
}

inferd_dtype inferd_dtype_parse(const char *name)
{
    return name == NULL ? (inferd_dtype)0 : (inferd_dtype)inf_dtype_parse(name);
}
