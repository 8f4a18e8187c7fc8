// SPDX-License-Identifier: Apache-2.0
// The public element types, whose numeric values are the same as those of the internal types, and
// the form of tensors of strings.
#include <stddef.h>

#include "client/inferd.h"
#include "proto/core/bytes_tensor.h"
#include "proto/core/dtype.h"
#include "proto/core/limits.h"

_Static_assert((int)INFERD_BOOL == (int)INF_DTYPE_BOOL &&
                   (int)INFERD_UINT64 == (int)INF_DTYPE_U64 &&
                   (int)INFERD_INT8 == (int)INF_DTYPE_I8 &&
                   (int)INFERD_FP16 == (int)INF_DTYPE_F16 &&
                   (int)INFERD_FP64 == (int)INF_DTYPE_F64 &&
                   (int)INFERD_BYTES == (int)INF_DTYPE_BYTES,
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

size_t inferd_strings_write(const inferd_string *strings, size_t count, void *buffer, size_t size)
{
    size_t needed = 0;
    for (size_t i = 0; i < count; i++)
        if (strings[i].size > UINT32_MAX || !inf_size_add(needed, INF_BYTES_LENGTH_SIZE, &needed) ||
            !inf_size_add(needed, strings[i].size, &needed))
            return SIZE_MAX;
    uint8_t *to = buffer;
    for (size_t i = 0; needed <= size && i < count; i++)
        to = inf_bytes_tensor_put(
            to, (struct inf_span){.data = strings[i].data, .size = strings[i].size});
    return needed;
}

int inferd_string_next(const inferd_tensor *tensor, size_t *offset, inferd_string *string)
{
    struct inf_span element;
    if (*offset > tensor->size)
        return 0;
    struct inf_span rest = {(const uint8_t *)tensor->data + *offset, tensor->size - *offset};
    if (!inf_bytes_tensor_next(&rest, &element))
        return 0;
    *string = (inferd_string){.data = element.data, .size = element.size};
    *offset = tensor->size - rest.size;
    return 1;
}
