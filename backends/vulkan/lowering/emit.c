// SPDX-License-Identifier: Apache-2.0
// Adds dispatches and their operands to the list of a program. If there is no list, only checks
// whether the node is supported, or creates its pipelines ahead of time.
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "backends/base/half.h"
#include "backends/vulkan/lowering/lowering.h"

// The largest finite 16-bit float.
#define HALF_LARGEST 65504.0f

static enum inf_code no_memory(const struct vk_device *device, struct inf_error *err)
{
    return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                           "device '%s': no host memory for a program", device->name);
}

// Grows an array if it is full. Returns false if memory is exhausted.
static bool reserve_element(void **array, uint32_t count, uint32_t *capacity, size_t size)
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

// Sets the bit mask of the dispatch that tells the shader which operands are 16-bit floats.
static void set_halves(struct vk_dispatch *dispatch)
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
    set_halves(dispatch);
    if (vk_variant_is_broken(lowering->gpu, &dispatch->variant, NULL))
        return false;
    return lowering->list == NULL || vk_pipeline_get(&pipeline, lowering->list->device,
                                                     &dispatch->variant, NULL) != INF_UNSUPPORTED;
}

enum inf_code vk_emit_dispatch(struct vk_lowering *lowering, const struct vk_dispatch *dispatch,
                               uint64_t iterations, struct inf_error *err)
{
    if (iterations > lowering->gpu->loops_max)
        return vk_decline(lowering, err, "%" PRIu64 " iterations of a shader, wanted at most %u",
                          iterations, lowering->gpu->loops_max);
    struct vk_dispatch_list *list = lowering->list;
    struct vk_dispatch completed = *dispatch;
    set_halves(&completed);
    enum vk_variant_fault fault;
    if (vk_variant_is_broken(lowering->gpu, &completed.variant, &fault))
        return vk_decline(lowering, err,
                          fault == VK_VARIANT_WRONG ? "the driver computes shader '%s' wrongly"
                                                    : "the driver cannot build shader '%s'",
                          vk_variant_shader(lowering->gpu, &completed.variant)->name);
    if (list == NULL)
        return lowering->ahead == NULL
                   ? INF_OK
                   : vk_pipeline_prepare(lowering->ahead, &completed.variant, err);
    void *array = list->dispatches;
    if (!reserve_element(&array, list->count, &list->capacity, sizeof(*dispatch)))
        return no_memory(list->device, err);
    list->dispatches = array;
    struct vk_dispatch *added = &list->dispatches[list->count];
    *added = completed;
    added->node = lowering->node_index;
    for (uint32_t i = 0; dispatch->cost == 0 && i < dispatch->operand_count; i++)
        added->cost += dispatch->operands[i].size_bytes / 4 + 1;
    INF_TRY(vk_pipeline_get(&added->pipeline, list->device, &added->variant, err));
    list->count++;
    list->writes_status |= completed.checks || completed.variant.halves != 0;
    lowering->lowers |= completed.variant.halves != 0;
    return INF_OK;
}

enum inf_code vk_bind_value(struct vk_lowering *lowering, struct vk_dispatch *dispatch,
                            uint32_t value, struct inf_error *err)
{
    assert(dispatch->operand_count < VK_BINDINGS_MAX);
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
    struct vk_dispatch_list *list = lowering->list;
    if (list == NULL)
        return INF_OK;
    operand->constant = vk_weights_find(&list->weights, value);
    if (operand->constant != VK_CONSTANT_NONE)
        return INF_OK;
    return vk_weights_add(&list->weights, value, used->data->data, operand->size_bytes,
                          &operand->constant, err);
}

enum inf_code vk_bind_scratch(struct vk_lowering *lowering, struct vk_dispatch *dispatch,
                              size_t offset, size_t size_bytes, struct inf_error *err)
{
    assert(dispatch->operand_count < VK_BINDINGS_MAX);
    assert(offset % VK_SPAN_ALIGNMENT == 0);
    if (size_bytes > lowering->gpu->properties.limits.maxStorageBufferRange)
        return vk_decline(lowering, err, "%zu bytes are more than can be bound", size_bytes);
    dispatch->operands[dispatch->operand_count++] = (struct vk_operand){
        .value = INF_VALUE_NONE, .scratch = true, .offset = offset, .size_bytes = size_bytes};
    if (lowering->list != NULL)
        lowering->list->scratch_bytes = INF_MAX(lowering->list->scratch_bytes, offset + size_bytes);
    return INF_OK;
}

// Rounds `count` floats to 16 bits in place. Returns false, without changing anything, if an
// element is NaN or out of range.
static bool narrow_to_half(void *bytes, size_t count)
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

static enum inf_code bind_packed(struct vk_lowering *lowering, struct vk_dispatch *dispatch,
                                 size_t size_bytes, vk_fill_fn *fill, const void *context,
                                 bool may_narrow, struct inf_error *err)
{
    assert(dispatch->operand_count < VK_BINDINGS_MAX);
    if (size_bytes > lowering->gpu->properties.limits.maxStorageBufferRange)
        return vk_decline(lowering, err, "%zu bytes of weights are more than can be bound",
                          size_bytes);
    struct vk_operand *operand = &dispatch->operands[dispatch->operand_count++];
    *operand = (struct vk_operand){.value = INF_VALUE_NONE, .size_bytes = size_bytes};
    // The weights are not packed yet, so assume that they fit into 16 bits, as nearly all do. If
    // they do not fit, the pipeline prepared here is not used, and the right one is created with
    // the program.
    operand->half = may_narrow && lowering->ahead != NULL;
    if (lowering->list == NULL)
        return INF_OK;
    void *bytes = calloc(1, size_bytes);
    if (bytes == NULL)
        return no_memory(lowering->list->device, err);
    fill(bytes, context);
    operand->half = may_narrow && narrow_to_half(bytes, size_bytes / sizeof(float));
    if (operand->half) {
        operand->size_bytes /= 2;
        void *shorter = realloc(bytes, operand->size_bytes);
        bytes = shorter != NULL ? shorter : bytes;
    }
    return vk_weights_add(&lowering->list->weights, INF_VALUE_NONE, bytes, operand->size_bytes,
                          &operand->constant, err);
}

enum inf_code vk_bind_packed(struct vk_lowering *lowering, struct vk_dispatch *dispatch,
                             size_t size_bytes, vk_fill_fn *fill, const void *context,
                             struct inf_error *err)
{
    return bind_packed(lowering, dispatch, size_bytes, fill, context, false, err);
}

enum inf_code vk_bind_weights(struct vk_lowering *lowering, struct vk_dispatch *dispatch,
                              size_t size_bytes, vk_fill_fn *fill, const void *context,
                              struct inf_error *err)
{
    return bind_packed(lowering, dispatch, size_bytes, fill, context, lowering->half_weights, err);
}
