// SPDX-License-Identifier: Apache-2.0
// Initialises XNNPACK with the counting allocator, and converts its status codes to errors.
#include "backends/cpu/xnnpack/library.h"

#include "backends/cpu/core/counted_memory.h"

static void *allocate_counted(void *context, size_t size)
{
    (void)context;
    return inf_counted_allocate(size);
}

static void *reallocate_counted(void *context, void *memory, size_t size)
{
    (void)context;
    return inf_counted_reallocate(memory, size);
}

static void deallocate_counted(void *context, void *memory)
{
    (void)context;
    inf_counted_free(memory);
}

static void *allocate_aligned_counted(void *context, size_t alignment, size_t size)
{
    (void)context;
    return inf_counted_allocate_aligned(alignment, size);
}

enum inf_code inf_xnn_init(struct inf_error *err)
{
    static const struct xnn_allocator allocator = {
        .allocate = allocate_counted,
        .reallocate = reallocate_counted,
        .deallocate = deallocate_counted,
        .aligned_allocate = allocate_aligned_counted,
        .aligned_deallocate = deallocate_counted,
    };
    switch (xnn_initialize(&allocator)) {
    case xnn_status_success:
        return INF_OK;
    case xnn_status_out_of_memory:
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "cpu: no memory to start XNNPACK");
    default:
        return inf_fail_reason(err, INF_UNAVAILABLE, INF_REASON_NO_DEVICE,
                               "cpu: XNNPACK does not work on this processor");
    }
}

enum inf_code inf_xnn_check(enum xnn_status status, const struct inf_node *node, const char *what,
                            struct inf_error *err)
{
    switch (status) {
    case xnn_status_success:
        return INF_OK;
    case xnn_status_out_of_memory:
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "node '%s': no memory for %s", node->name, what);
    case xnn_status_unsupported_parameter:
    case xnn_status_unsupported_hardware:
        return inf_fail(err, INF_UNSUPPORTED, "node '%s': %s cannot do this", node->name, what);
    default:
        return inf_fail(err, INF_INTERNAL, "node '%s': %s failed with status %d", node->name, what,
                        (int)status);
    }
}
