// SPDX-License-Identifier: Apache-2.0
// Tensors of interpreted runs, and the memory limit of one run.
#ifndef INF_BACKENDS_EXEC_DYNAMIC_TENSOR_H
#define INF_BACKENDS_EXEC_DYNAMIC_TENSOR_H

#include "backends/graph/graph.h"

struct inf_scratch_cache;

// A tensor with its bytes. A zeroed struct is no tensor.
struct inf_tensor {
    enum inf_dtype dtype;
    struct inf_shape shape;
    struct inf_blob *data; // the tensor holds one reference
};

// Drops the reference to the bytes and zeroes the tensor.
void inf_tensor_clear(struct inf_tensor *tensor);

// The memory of one run's tensors. Used by one thread at a time.
struct inf_tensor_memory {
    // Cache of the slot; NULL: no memory is kept between runs.
    struct inf_scratch_cache *scratch_cache;
    uint64_t bytes; // bytes in use; 0 when the run begins
};

// Sets *out_blob to uninitialised memory of `size_bytes` for a tensor of the run. `name` is used in
// error texts.
//
// INF_EXHAUSTED  INF_LIMIT_DYNAMIC_BYTES, or no memory.
enum inf_code inf_tensor_memory_alloc(struct inf_tensor_memory *memory, const char *name,
                                      size_t size_bytes, struct inf_blob **out_blob,
                                      struct inf_error *err) INF_NODISCARD;

// Drops a reference to a blob and sets the pointer to NULL. If it was the last reference, the run
// uses `size_bytes` less, and the blob may go to the scratch cache. NULL is allowed.
void inf_tensor_memory_drop(struct inf_tensor_memory *memory, struct inf_blob **data);

#endif
