// SPDX-License-Identifier: Apache-2.0
// Tensors of strings (BYTES) as bytes of a message: for each element a length in 4 bytes
// (little-endian) and then that many bytes, without padding, as in the Open Inference Protocol.
#ifndef INF_PROTO_CORE_BYTES_TENSOR_H
#define INF_PROTO_CORE_BYTES_TENSOR_H

#include <string.h>

#include "proto/core/limits.h"
#include "proto/core/span.h"

// The size in bytes of the length before each string.
#define INF_BYTES_LENGTH_SIZE 4u

// Sets *element to the first string of *rest, and removes it from *rest. The string lies in the
// memory of *rest. Returns false if *rest is empty or ends within the string.
static inline INF_NODISCARD bool inf_bytes_tensor_next(struct inf_span *rest,
                                                       struct inf_span *element)
{
    if (rest->size < INF_BYTES_LENGTH_SIZE)
        return false;
    // The client may change the memory at any time, so each byte of the length is read once.
    const volatile uint8_t *from = rest->data;
    uint32_t length = from[0];
    length |= (uint32_t)from[1] << 8;
    length |= (uint32_t)from[2] << 16;
    length |= (uint32_t)from[3] << 24;
    if (length > rest->size - INF_BYTES_LENGTH_SIZE)
        return false;
    *element = (struct inf_span){.data = rest->data + INF_BYTES_LENGTH_SIZE, .size = length};
    rest->data += INF_BYTES_LENGTH_SIZE + length;
    rest->size -= INF_BYTES_LENGTH_SIZE + length;
    return true;
}

// Writes a string of less than 4 GiB to `to`, which has room for it and its length. Returns the
// address after it.
static inline uint8_t *inf_bytes_tensor_put(uint8_t *to, struct inf_span element)
{
    for (unsigned i = 0; i < INF_BYTES_LENGTH_SIZE; i++)
        *to++ = (uint8_t)(element.size >> (8 * i));
    if (element.size > 0)
        memcpy(to, element.data, element.size);
    return to + element.size;
}

#endif
