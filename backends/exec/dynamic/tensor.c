// SPDX-License-Identifier: Apache-2.0
// Counts the bytes that the tensors of one interpreted run use, so that a loop that grows a tensor
// ends with an error instead of exhausting the machine.
#include "backends/exec/dynamic/tensor.h"

#include <inttypes.h>

#include "backends/base/blob.h"
#include "backends/exec/dynamic/scratch_cache.h"
#include "proto/core/attributes.h"
#include "proto/core/limits.h"

void inf_tensor_clear(struct inf_tensor *tensor)
{
    inf_blob_unref(&tensor->data);
    *tensor = (struct inf_tensor){0};
}

enum inf_code inf_tensor_memory_alloc(struct inf_tensor_memory *memory, const char *name,
                                      size_t size_bytes, struct inf_blob **out_blob,
                                      struct inf_error *err)
{
    if (memory->bytes + size_bytes > INF_LIMIT_DYNAMIC_BYTES)
        return inf_fail(err, INF_EXHAUSTED,
                        "'%s' of %zu bytes: more than %" PRIu64 " bytes of tensors in one run",
                        name, size_bytes, (uint64_t)INF_LIMIT_DYNAMIC_BYTES);
    *out_blob = inf_scratch_cache_take(memory->scratch_cache, size_bytes);
    if (*out_blob == NULL)
        *out_blob = inf_blob_create_unset(size_bytes);
    if (*out_blob == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "no memory for %zu bytes",
                               size_bytes);
    memory->bytes += size_bytes;
    return INF_OK;
}

void inf_tensor_memory_drop(struct inf_tensor_memory *memory, struct inf_blob **data)
{
    // Relaxed order is enough: only this thread can see a blob with one reference, because
    // constants and inputs have another reference.
    if (*data != NULL && atomic_load_explicit(&(*data)->references, memory_order_relaxed) == 1)
        memory->bytes -= INF_MIN(memory->bytes, (*data)->size_bytes);
    inf_scratch_cache_put(memory->scratch_cache, data);
}
