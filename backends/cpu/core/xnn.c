// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/core/xnn.h"

#include <malloc.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "backends/base/pages.h"
#include "proto/core/span.h"

// --- memory ---

// XNNPACK has one allocator for the whole process, so what it counts is the process's too.
static _Atomic uint64_t live_bytes;
static _Thread_local int64_t thread_bytes;

static void *count_in(void *memory)
{
    size_t size = memory != NULL ? malloc_usable_size(memory) : 0;
    atomic_fetch_add_explicit(&live_bytes, size, memory_order_relaxed);
    thread_bytes += (int64_t)size;
    return memory;
}

static void count_out(void *memory)
{
    size_t size = memory != NULL ? malloc_usable_size(memory) : 0;
    atomic_fetch_sub_explicit(&live_bytes, size, memory_order_relaxed);
    thread_bytes -= (int64_t)size;
}

static void *allocate(void *context, size_t size)
{
    (void)context;
    return count_in(malloc(size));
}

static void *reallocate(void *context, void *memory, size_t size)
{
    (void)context;
    size_t old = memory != NULL ? malloc_usable_size(memory) : 0;
    void *grown = realloc(memory, size);
    if (grown == NULL)
        return NULL;
    atomic_fetch_sub_explicit(&live_bytes, old, memory_order_relaxed);
    thread_bytes -= (int64_t)old;
    return count_in(grown);
}

static void deallocate(void *context, void *memory)
{
    (void)context;
    count_out(memory);
    free(memory);
}

static void *aligned_allocate(void *context, size_t alignment, size_t size)
{
    (void)context;
    void *memory = inf_pages_alloc(alignment, size);
    return memory != NULL ? count_in(memory) : NULL;
}

struct inf_xnn_memory {
    _Alignas(64) struct inf_xnn_memory *next;
};

void *inf_xnn_alloc(struct inf_xnn_memory **list, size_t size)
{
    size_t whole;
    struct inf_xnn_memory *block = NULL;
    if (inf_size_add(size, sizeof(*block), &whole))
        block = aligned_allocate(NULL, _Alignof(struct inf_xnn_memory), whole);
    if (block == NULL)
        return NULL;
    block->next = *list;
    *list = block;
    return block + 1;
}

void inf_xnn_free(struct inf_xnn_memory **list)
{
    while (*list != NULL) {
        struct inf_xnn_memory *block = *list;
        *list = block->next;
        deallocate(NULL, block);
    }
}

enum inf_code inf_xnn_init(struct inf_error *err)
{
    static const struct xnn_allocator allocator = {
        .allocate = allocate,
        .reallocate = reallocate,
        .deallocate = deallocate,
        .aligned_allocate = aligned_allocate,
        .aligned_deallocate = deallocate,
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

uint64_t inf_xnn_live_bytes(void)
{
    return atomic_load_explicit(&live_bytes, memory_order_relaxed);
}

int64_t inf_xnn_thread_bytes(void)
{
    return thread_bytes;
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

// --- unary operators ---

typedef enum xnn_status create_fn(size_t channels, size_t input_stride, size_t output_stride,
                                  uint32_t flags, xnn_operator_t *op);
typedef enum xnn_status create_alpha_fn(size_t channels, size_t input_stride, size_t output_stride,
                                        float alpha, uint32_t flags, xnn_operator_t *op);
typedef enum xnn_status setup_fn(xnn_operator_t op, size_t batch, const float *input, float *output,
                                 pthreadpool_t pool);

struct unary_row {
    const char *name;
    create_fn *create;
    create_alpha_fn *create_alpha; // instead of create, for kinds with alpha
    setup_fn *setup;
};

static const struct unary_row unary_rows[INF_UNARY_COUNT] = {
    [INF_UNARY_NEG] = {"xnn_negate", xnn_create_negate_nc_f32, NULL, xnn_setup_negate_nc_f32},
    [INF_UNARY_ABS] = {"xnn_abs", xnn_create_abs_nc_f32, NULL, xnn_setup_abs_nc_f32},
    [INF_UNARY_FLOOR] = {"xnn_floor", xnn_create_floor_nc_f32, NULL, xnn_setup_floor_nc_f32},
    [INF_UNARY_CEIL] = {"xnn_ceiling", xnn_create_ceiling_nc_f32, NULL, xnn_setup_ceiling_nc_f32},
    [INF_UNARY_ROUND] = {"xnn_bankers_rounding", xnn_create_bankers_rounding_nc_f32, NULL,
                         xnn_setup_bankers_rounding_nc_f32},
    [INF_UNARY_TRUNC] = {"xnn_truncation", xnn_create_truncation_nc_f32, NULL,
                         xnn_setup_truncation_nc_f32},
    [INF_UNARY_SQUARE] = {"xnn_square", xnn_create_square_nc_f32, NULL, xnn_setup_square_nc_f32},
    [INF_UNARY_SQRT] = {"xnn_square_root", xnn_create_square_root_nc_f32, NULL,
                        xnn_setup_square_root_nc_f32},
    [INF_UNARY_HARD_SWISH] = {"xnn_hardswish", xnn_create_hardswish_nc_f32, NULL,
                              xnn_setup_hardswish_nc_f32},
    [INF_UNARY_ELU] = {"xnn_elu", NULL, xnn_create_elu_nc_f32, xnn_setup_elu_nc_f32},
    [INF_UNARY_LEAKY_RELU] = {"xnn_leaky_relu", NULL, xnn_create_leaky_relu_nc_f32,
                              xnn_setup_leaky_relu_nc_f32},
};

const char *inf_xnn_unary_name(enum inf_unary_kind kind)
{
    return unary_rows[kind].name;
}

bool inf_xnn_unary_alpha_ok(enum inf_unary_kind kind, float alpha)
{
    if (kind == INF_UNARY_ELU)
        return isnormal(alpha) && alpha > 0.0f;
    if (kind == INF_UNARY_LEAKY_RELU)
        return isfinite(alpha);
    return true;
}

enum xnn_status inf_xnn_unary_create(struct inf_xnn_unary *unary, enum inf_unary_kind kind,
                                     float alpha, size_t count)
{
    const struct unary_row *row = &unary_rows[kind];
    unary->setup = row->setup;
    unary->batch = count;
    if (row->create_alpha != NULL)
        return row->create_alpha(1, 1, 1, alpha, INF_XNN_FLAGS, &unary->op);
    return row->create(1, 1, 1, INF_XNN_FLAGS, &unary->op);
}

// --- activations ---

// The unary kind that an activation is, where XNNPACK has it; INF_UNARY_COUNT for the others.
static enum inf_unary_kind activation_unary(enum inf_activation activation)
{
    switch (activation) {
    case INF_ACTIVATION_ELU:
        return INF_UNARY_ELU;
    case INF_ACTIVATION_LEAKY_RELU:
        return INF_UNARY_LEAKY_RELU;
    case INF_ACTIVATION_HARD_SWISH:
        return INF_UNARY_HARD_SWISH;
    default:
        return INF_UNARY_COUNT;
    }
}

enum inf_code inf_xnn_activation_check(const struct inf_graph *graph, const struct inf_node *node,
                                       const struct inf_xnn_activation *activation, uint32_t prelu,
                                       size_t channels, struct inf_error *err)
{
    const char *op = inf_op_info(node->op)->name;
    // XNNPACK wants an interval of some length; this also declines bounds that are not numbers.
    if (activation->kind == INF_ACTIVATION_CLIP && !(activation->min < activation->max))
        return inf_fail(err, INF_UNSUPPORTED, "cpu: %s: clip from %g to %g is no interval", op,
                        (double)activation->min, (double)activation->max);
    if (activation->kind == INF_ACTIVATION_PRELU) {
        if (prelu == UINT32_MAX || !inf_cpu_has_input(node, prelu))
            return inf_fail(err, INF_UNSUPPORTED, "cpu: %s: prelu without slopes", op);
        return inf_cpu_need_const(graph, node, prelu, channels, err);
    }
    enum inf_unary_kind kind = activation_unary(activation->kind);
    if (kind != INF_UNARY_COUNT && !inf_xnn_unary_alpha_ok(kind, activation->alpha))
        return inf_fail(err, INF_UNSUPPORTED, "cpu: %s: %s with alpha %g is not built", op,
                        inf_activation_name(activation->kind), (double)activation->alpha);
    return INF_OK;
}

void inf_xnn_activation_bounds(const struct inf_xnn_activation *activation, float *min, float *max)
{
    *min = -INFINITY;
    *max = INFINITY;
    if (activation->kind == INF_ACTIVATION_RELU || activation->kind == INF_ACTIVATION_RELU6)
        *min = 0.0f;
    if (activation->kind == INF_ACTIVATION_RELU6)
        *max = 6.0f;
    if (activation->kind == INF_ACTIVATION_CLIP) {
        *min = activation->min;
        *max = activation->max;
    }
}

enum inf_code inf_xnn_activation_after(struct inf_cpu_step *step,
                                       const struct inf_xnn_activation *activation,
                                       const float *prelu, size_t channels, struct inf_error *err)
{
    struct inf_cpu_after *after = &step->after;
    after->count = inf_shape_elements(inf_cpu_output_shape(step->graph, step->node));
    if (activation->kind == INF_ACTIVATION_TANH)
        after->map = step->isa->simd->tanh;
    if (activation->kind == INF_ACTIVATION_SIGMOID)
        after->map = step->isa->simd->sigmoid;
    if (activation->kind == INF_ACTIVATION_PRELU) {
        after->unary.setup = xnn_setup_prelu_nc_f32;
        after->unary.batch = after->count / channels;
        return inf_xnn_check(xnn_create_prelu_nc_f32(channels, channels, channels, prelu,
                                                     INF_XNN_FLAGS, &after->unary.op),
                             step->node, "xnn_prelu", err);
    }
    enum inf_unary_kind kind = activation_unary(activation->kind);
    if (kind == INF_UNARY_COUNT)
        return INF_OK;
    return inf_xnn_check(inf_xnn_unary_create(&after->unary, kind, activation->alpha, after->count),
                         step->node, inf_xnn_unary_name(kind), err);
}
