// SPDX-License-Identifier: Apache-2.0
#include "backends/vulkan/program/program.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/half.h"
#include "backends/vulkan/device/cache.h"
#include "backends/vulkan/program/compile_ahead.h"
#include "backends/vulkan/program/fuse.h"

// The largest number of 16 bits.
#define HALF_LARGEST 65504.0f

static enum inf_code no_memory(const struct vk_device *device, struct inf_error *err)
{
    return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                           "device '%s': no host memory for a program", device->name);
}

// --- what lowering adds ---

// Room for one more element; false without memory.
static bool reserve(void **array, uint32_t count, uint32_t *capacity, size_t size)
{
    if (count < *capacity)
        return true;
    uint32_t wanted = *capacity == 0 ? 32 : *capacity * 2;
    void *larger = reallocarray(*array, wanted, size);
    if (larger == NULL)
        return false;
    *array = larger;
    *capacity = wanted;
    return true;
}

// Which of its operands a dispatch finds in 16 bits; the shader has that as a constant.
static void settle_halves(struct vk_dispatch *dispatch)
{
    dispatch->variant.halves = 0;
    for (uint32_t i = 0; i < dispatch->operand_count; i++)
        dispatch->variant.halves |= (dispatch->operands[i].half ? 1u : 0u) << i;
    const struct vk_operand *written = &dispatch->operands[dispatch->operand_count - 1];
    if (written->half && written->size_bytes % (4 * sizeof(uint16_t)) != 0)
        dispatch->variant.halves |=
            (uint32_t)((vk_bound_bytes(written->size_bytes) - written->size_bytes) /
                       sizeof(uint16_t))
            << HALVES_BEHIND;
}

bool vk_can_build(struct vk_lowering *lowering, struct vk_dispatch *dispatch)
{
    VkPipeline pipeline;
    settle_halves(dispatch);
    if (vk_variant_is_broken(lowering->gpu, &dispatch->variant))
        return false;
    return lowering->program == NULL ||
           vk_pipeline_get(&pipeline, lowering->program->device, &dispatch->variant, NULL) !=
               INF_UNSUPPORTED;
}

enum inf_code vk_emit(struct vk_lowering *lowering, const struct vk_dispatch *dispatch,
                      struct inf_error *err)
{
    struct vk_program *program = lowering->program;
    struct vk_dispatch settled = *dispatch;
    settle_halves(&settled);
    if (vk_variant_is_broken(lowering->gpu, &settled.variant))
        return vk_decline(lowering, err, "the driver cannot build shader '%s'",
                          vk_variant_shader(lowering->gpu, &settled.variant)->name);
    if (program == NULL)
        return lowering->ahead == NULL
                   ? INF_OK
                   : vk_pipeline_prepare(lowering->ahead, &settled.variant, err);
    void *array = program->dispatches;
    if (!reserve(&array, program->dispatch_count, &program->dispatch_capacity, sizeof(*dispatch)))
        return no_memory(program->device, err);
    program->dispatches = array;
    struct vk_dispatch *added = &program->dispatches[program->dispatch_count];
    *added = settled;
    added->node = lowering->node_index;
    for (uint32_t i = 0; dispatch->cost == 0 && i < dispatch->operand_count; i++)
        added->cost += dispatch->operands[i].size_bytes / 4 + 1;
    INF_TRY(vk_pipeline_get(&added->pipeline, program->device, &added->variant, err));
    program->dispatch_count++;
    program->notes |= settled.checks || settled.variant.halves != 0;
    lowering->lowers |= settled.variant.halves != 0;
    return INF_OK;
}

enum inf_code vk_use(struct vk_lowering *lowering, struct vk_dispatch *dispatch, uint32_t value,
                     struct inf_error *err)
{
    const struct inf_value *used = &lowering->graph->values[value];
    struct vk_operand *operand = &dispatch->operands[dispatch->operand_count++];
    *operand = (struct vk_operand){.value = value, .words = used->dtype != INF_DTYPE_F32};
    if (!inf_shape_bytes(&used->shape, used->dtype, &operand->size_bytes))
        return vk_decline(lowering, err, "value '%s' is too large", used->name);
    if (lowering->lowered != NULL && lowering->lowered[value] && used->dtype == INF_DTYPE_F32) {
        operand->half = true;
        operand->size_bytes /= 2;
        return INF_OK;
    }
    if (used->data == NULL)
        return INF_OK;
    operand->value = INF_VALUE_NONE;
    struct vk_program *program = lowering->program;
    if (program == NULL)
        return INF_OK;
    operand->constant = vk_weights_find(&program->weights, value);
    if (operand->constant != VK_CONSTANT_NONE)
        return INF_OK;
    return vk_weights_add(&program->weights, value, used->data->data, operand->size_bytes,
                          &operand->constant, err);
}

enum inf_code vk_use_scratch(struct vk_lowering *lowering, struct vk_dispatch *dispatch,
                             size_t offset, size_t size_bytes, struct inf_error *err)
{
    if (size_bytes > lowering->gpu->properties.limits.maxStorageBufferRange)
        return vk_decline(lowering, err, "%zu bytes are more than can be bound", size_bytes);
    dispatch->operands[dispatch->operand_count++] = (struct vk_operand){
        .value = INF_VALUE_NONE, .scratch = true, .offset = offset, .size_bytes = size_bytes};
    if (lowering->program != NULL)
        lowering->program->scratch_bytes =
            INF_MAX(lowering->program->scratch_bytes, offset + size_bytes);
    return INF_OK;
}

// Rounds `count` floats to 16 bits where they lie; false where one of them has no place there.
static bool narrow(void *bytes, size_t count)
{
    const float *from = bytes;
    uint16_t *to = bytes;
    for (size_t i = 0; i < count; i++)
        if (!(fabsf(from[i]) <= HALF_LARGEST))
            return false;
    for (size_t i = 0; i < count; i++)
        to[i] = inf_half_from_float(from[i]);
    return true;
}

static enum inf_code pack(struct vk_lowering *lowering, struct vk_dispatch *dispatch,
                          size_t size_bytes, vk_fill_fn *fill, const void *context, bool may_narrow,
                          struct inf_error *err)
{
    if (size_bytes > lowering->gpu->properties.limits.maxStorageBufferRange)
        return vk_decline(lowering, err, "%zu bytes of weights are more than can be bound",
                          size_bytes);
    struct vk_operand *operand = &dispatch->operands[dispatch->operand_count++];
    *operand = (struct vk_operand){.value = INF_VALUE_NONE, .size_bytes = size_bytes};
    // Nearly all can be narrowed; what cannot has its pipeline made later.
    operand->half = may_narrow && lowering->ahead != NULL;
    if (lowering->program == NULL)
        return INF_OK;
    void *bytes = calloc(1, size_bytes);
    if (bytes == NULL)
        return no_memory(lowering->program->device, err);
    fill(bytes, context);
    operand->half = may_narrow && narrow(bytes, size_bytes / sizeof(float));
    if (operand->half) {
        operand->size_bytes /= 2;
        void *shorter = realloc(bytes, operand->size_bytes);
        bytes = shorter != NULL ? shorter : bytes;
    }
    return vk_weights_add(&lowering->program->weights, INF_VALUE_NONE, bytes, operand->size_bytes,
                          &operand->constant, err);
}

enum inf_code vk_pack(struct vk_lowering *lowering, struct vk_dispatch *dispatch, size_t size_bytes,
                      vk_fill_fn *fill, const void *context, struct inf_error *err)
{
    return pack(lowering, dispatch, size_bytes, fill, context, false, err);
}

enum inf_code vk_pack_weights(struct vk_lowering *lowering, struct vk_dispatch *dispatch,
                              size_t size_bytes, vk_fill_fn *fill, const void *context,
                              struct inf_error *err)
{
    return pack(lowering, dispatch, size_bytes, fill, context, lowering->half_weights, err);
}

enum inf_code vk_program_supports(struct inf_device *base, const struct inf_graph *graph,
                                  uint32_t node, struct inf_error *err)
{
    struct vk_lowering lowering = {.gpu = (struct vk_gpu *)base,
                                   .graph = graph,
                                   .node = &graph->nodes[node],
                                   .node_index = node};
    return vk_lower(&lowering, err);
}

// --- compiling ---

struct vk_lowering vk_lowering_of(struct vk_gpu *gpu, const struct inf_segment *segment,
                                  uint32_t node)
{
    bool pinned = segment->pinned != NULL && segment->pinned[node];
    return (struct vk_lowering){.gpu = gpu,
                                .graph = segment->graph,
                                .node = &segment->graph->nodes[node],
                                .node_index = node,
                                .lowered = segment->lowered,
                                .half_weights =
                                    segment->precision == INF_PRECISION_FP16 && !pinned};
}

// Makes the dispatches of a node, and of those that are computed on the way to it.
static enum inf_code lower_step(struct vk_program *program, const struct inf_segment *segment,
                                uint32_t node, struct inf_error *err)
{
    struct vk_gpu *gpu = program->device->gpu;
    struct vk_lowering lowering = vk_lowering_of(gpu, segment, node);
    lowering.program = program;
    INF_TRY(vk_lower_step(&lowering, segment, err));
    program->base.lowered_nodes += lowering.lowers;
    return INF_OK;
}

static enum inf_code fill(struct vk_program *program, const struct inf_segment *segment,
                          struct inf_error *err)
{
    program->graph = segment->graph;
    vk_weights_init(&program->weights, program->device);
    vk_ahead(program->device, segment);
    for (uint32_t i = 0; i < segment->node_count; i++)
        INF_TRY(lower_step(program, segment, segment->nodes[i], err));
    program->base.weight_bytes = program->weights.bytes;
    program->base.weights_move = true;
    program->slots = calloc(segment->slots, sizeof(*program->slots));
    if (program->slots == NULL)
        return no_memory(program->device, err);
    program->slot_count = segment->slots;
    for (uint32_t i = 0; i < segment->slots; i++)
        INF_TRY(
            vk_recording_init(&program->slots[i], program->device, program->dispatch_count, err));
    for (uint32_t i = 0; i < segment->slots && program->scratch_bytes > 0; i++)
        INF_TRY(vk_span_alloc(&program->slots[i].scratch, program->device, program->scratch_bytes,
                              VK_SPAN_ARENA, err));
    program->base.scratch_bytes = program->scratch_bytes * segment->slots;
    return INF_OK;
}

enum inf_code vk_program_compile(struct inf_program **out_program, struct inf_device *base,
                                 const struct inf_segment *segment, uint32_t flags,
                                 struct inf_error *err)
{
    (void)flags;
    struct vk_program *program = calloc(1, sizeof(*program));
    if (program == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "device '%s': no host memory for a program", base->info.name);
    enum inf_code code = vk_gpu_acquire((struct vk_gpu *)base, &program->device, err);
    if (code == INF_OK)
        code = fill(program, segment, err);
    if (code == INF_OK) {
        // At once: not every process gets to end in good order.
        vk_cache_store(program->device);
        *out_program = &program->base;
    } else {
        vk_program_destroy(&program->base);
    }
    return code;
}

bool vk_program_lost(const struct inf_program *base)
{
    return vk_device_lost(((const struct vk_program *)base)->device);
}

void vk_program_destroy(struct inf_program *base)
{
    struct vk_program *program = (struct vk_program *)base;
    for (uint32_t i = 0; i < program->slot_count; i++) {
        // A run whose wait was given up may still go on.
        if (program->slots[i].submitted != 0)
            (void)!vk_device_wait(program->device, program->slots[i].submitted, UINT64_MAX, NULL);
        vk_recording_fini(&program->slots[i], program->device);
    }
    vk_weights_fini(&program->weights);
    free(program->slots);
    free(program->dispatches);
    vk_device_unref(&program->device);
    free(program);
}
