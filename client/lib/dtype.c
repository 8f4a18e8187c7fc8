// SPDX-License-Identifier: Apache-2.0
// The public element types. Their numeric values are the same as those of the internal types.
#include <stddef.h>

#include "client/inferd.h"
#include "proto/core/dtype.h"
#include "proto/core/limits.h"

_Static_assert((int)INFERD_BOOL == (int)INF_DTYPE_BOOL &&
                   (int)INFERD_UINT64 == (int)INF_DTYPE_U64 &&
                   (int)INFERD_INT8 == (int)INF_DTYPE_I8 &&
                   (int)INFERD_FP16 == (int)INF_DTYPE_F16 && (int)INFERD_FP64 == (int)INF_DTYPE_F64,
               "the public element types are the internal ones");

_Static_assert(INFERD_RANK_MAX == INF_LIMIT_RANK, "the public rank limit is the internal one");

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
