// SPDX-License-Identifier: Apache-2.0
#include "backends/vulkan/vk_program.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/clock.h"
#include "backends/base/half.h"
#include "backends/vulkan/vk_cache.h"
#include "backends/vulkan/vk_fuse.h"
#include "backends/vulkan/vk_record.h"

// Of a ticket that are the timeline's value; those above are the device's generation.
#define TICKET_BITS 48

// The largest number of 16 bits.
#define HALF_LARGEST 65504.0f

// Constant memory of a program.
struct constant {
    uint32_t value; // uploaded as it is; INF_VALUE_NONE: made for one operand
    struct vk_span span;
};

struct vk_program {
    struct inf_program base;
    struct vk_device *device; // a reference: the GPU may have another one by now
    struct vk_dispatch *dispatches;
    uint32_t dispatch_count, dispatch_capacity;
    struct constant *constants;
    uint32_t constant_count, constant_capacity;
    struct vk_recording *slots;
    uint32_t slot_count;
};

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
        return INF_OK;
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
    lowering->lowers |= settled.variant.halves != 0;
    return INF_OK;
}

static enum inf_code add_constant(struct vk_lowering *lowering, struct vk_operand *operand,
                                  uint32_t value, const void *bytes, struct inf_error *err)
{
    struct vk_program *program = lowering->program;
    void *array = program->constants;
    if (!reserve(&array, program->constant_count, &program->constant_capacity,
                 sizeof(*program->constants)))
        return no_memory(program->device, err);
    program->constants = array;
    struct constant *constant = &program->constants[program->constant_count];
    constant->value = value;
    INF_TRY(vk_span_alloc(&constant->span, program->device, operand->size_bytes, false, err));
    program->constant_count++;
    program->base.weight_bytes += constant->span.size;
    operand->constant = constant->span;
    return vk_span_write(program->device, &constant->span, bytes, operand->size_bytes, err);
}

enum inf_code vk_use(struct vk_lowering *lowering, struct vk_dispatch *dispatch, uint32_t value,
                     struct inf_error *err)
{
    const struct inf_value *used = &lowering->graph->values[value];
    struct vk_operand *operand = &dispatch->operands[dispatch->operand_count++];
    *operand = (struct vk_operand){.value = value};
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
    for (uint32_t i = 0; i < program->constant_count; i++) {
        if (program->constants[i].value != value)
            continue;
        operand->constant = program->constants[i].span;
        return INF_OK;
    }
    return add_constant(lowering, operand, value, used->data->data, err);
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
    if (lowering->program == NULL)
        return INF_OK;
    void *bytes = calloc(1, size_bytes);
    if (bytes == NULL)
        return no_memory(lowering->program->device, err);
    fill(bytes, context);
    operand->half = may_narrow && narrow(bytes, size_bytes / sizeof(float));
    if (operand->half)
        operand->size_bytes /= 2;
    enum inf_code code = add_constant(lowering, operand, INF_VALUE_NONE, bytes, err);
    free(bytes);
    return code;
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

// Makes the dispatches of a node, and of those that are computed on the way to it.
static enum inf_code lower_step(struct vk_program *program, const struct inf_segment *segment,
                                uint32_t node, struct inf_error *err)
{
    struct vk_gpu *gpu = program->device->gpu;
    bool pinned = segment->pinned != NULL && segment->pinned[node];
    struct vk_lowering lowering = {.gpu = gpu,
                                   .graph = segment->graph,
                                   .node = &segment->graph->nodes[node],
                                   .node_index = node,
                                   .program = program,
                                   .lowered = segment->lowered,
                                   .half_weights =
                                       segment->precision == INF_PRECISION_FP16 && !pinned};
    struct vk_tree tree;
    if (vk_fused_into(&gpu->base, segment, node) != INF_NODE_NONE)
        return INF_OK;
    if (vk_tree_find(&tree, gpu, segment, node))
        INF_TRY(vk_lower_tree(&lowering, &tree, err));
    else
        INF_TRY(vk_lower(&lowering, err));
    program->base.lowered_nodes += lowering.lowers;
    return INF_OK;
}

static enum inf_code fill(struct vk_program *program, const struct inf_segment *segment,
                          struct inf_error *err)
{
    for (uint32_t i = 0; i < segment->node_count; i++)
        INF_TRY(lower_step(program, segment, segment->nodes[i], err));
    program->slots = calloc(segment->slots, sizeof(*program->slots));
    if (program->slots == NULL)
        return no_memory(program->device, err);
    program->slot_count = segment->slots;
    for (uint32_t i = 0; i < segment->slots; i++)
        INF_TRY(
            vk_recording_init(&program->slots[i], program->device, program->dispatch_count, err));
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
    for (uint32_t i = 0; i < program->constant_count; i++)
        vk_span_free(program->device, &program->constants[i].span);
    free(program->slots);
    free(program->constants);
    free(program->dispatches);
    vk_device_unref(&program->device);
    free(program);
}

// --- running ---

static enum inf_code find_place(const struct vk_program *program, const struct vk_operand *operand,
                                const struct inf_run *run, struct vk_place *place,
                                struct inf_error *err)
{
    const struct vk_span *span = &operand->constant;
    VkDeviceSize offset = 0;
    if (operand->value != INF_VALUE_NONE) {
        const struct inf_binding *binding = &run->bindings[operand->value];
        if (binding->buffer == NULL || binding->buffer->device != &program->device->gpu->base)
            return inf_fail(err, INF_INVALID, "device '%s': value %u is not in its memory",
                            program->device->name, operand->value);
        if (vk_buffer_device(binding->buffer) != program->device)
            return inf_fail_reason(err, INF_UNAVAILABLE, INF_REASON_DEVICE_LOST,
                                   "device '%s' was lost after value %u got its memory",
                                   program->device->name, operand->value);
        span = vk_buffer_span(binding->buffer);
        offset = binding->offset;
    }
    // Shaders read and write whole vectors; every tensor has room for that behind it.
    VkDeviceSize size = (operand->size_bytes + 15) & ~(VkDeviceSize)15;
    if (offset > span->size || size > span->size - offset)
        return inf_fail(err, INF_RANGE, "device '%s': value %u reaches behind its buffer",
                        program->device->name, operand->value);
    *place = (struct vk_place){span->buffer, span->offset + offset, size};
    return INF_OK;
}

// Looks up where all operands are now; *out_moved where one is not where it was recorded.
static enum inf_code bind(const struct vk_program *program, struct vk_recording *recording,
                          const struct inf_run *run, bool *out_moved, struct inf_error *err)
{
    *out_moved = false;
    for (uint32_t i = 0; i < program->dispatch_count; i++) {
        const struct vk_dispatch *dispatch = &program->dispatches[i];
        for (uint32_t k = 0; k < dispatch->operand_count; k++) {
            struct vk_place *old = &recording->places[i * VK_BINDINGS_MAX + k], now;
            INF_TRY(find_place(program, &dispatch->operands[k], run, &now, err));
            *out_moved |=
                now.buffer != old->buffer || now.offset != old->offset || now.size != old->size;
            *old = now;
        }
    }
    return INF_OK;
}

// A ticket says which of the GPU's logical devices gave it out: another one's timeline begins anew.
static struct inf_ticket make_ticket(const struct vk_device *device, uint64_t value)
{
    return (struct inf_ticket){(uint64_t)vk_device_generation(device) << TICKET_BITS | value};
}

static bool is_cancelled(const struct inf_run *run)
{
    return run->cancelled != NULL && atomic_load_explicit(run->cancelled, memory_order_relaxed);
}

// Submits that the device has at once: one runs, and one waits so that it never idles.
#define AHEAD 2

// Notes what a submit may cost, from what `cost` took.
static void learn(struct vk_gpu *gpu, uint64_t cost, uint64_t time_ns)
{
    double per_slice = (double)cost / (double)INF_MAX(time_ns, 1u) * (double)VK_SLICE_NS;
    atomic_store_explicit(&gpu->slice_cost, (uint64_t)INF_MIN(INF_MAX(per_slice, 1.0), 1e18),
                          memory_order_relaxed);
}

// Submits the slices one after the other. Returns with the last ones under way.
static enum inf_code submit_slices(struct vk_recording *recording, struct vk_device *device,
                                   const struct inf_run *run, struct inf_error *err)
{
    uint64_t values[VK_SLICES_MAX], cost = 0;
    uint64_t begin_ns = recording->slice_count > AHEAD ? inf_clock_ns() : 0;
    for (uint32_t i = 0; i < recording->slice_count; i++) {
        if (i >= AHEAD) {
            INF_TRY(vk_device_wait(device, values[i - AHEAD], UINT64_MAX, err));
            cost += recording->slices[i - AHEAD].cost;
        }
        if (i > 0 && is_cancelled(run)) {
            // Its memory is still being written; the caller will reuse it.
            INF_TRY(vk_device_wait(device, values[i - 1], UINT64_MAX, err));
            return inf_fail(err, INF_CANCELLED, "cancelled after %u of %u submits", i,
                            recording->slice_count);
        }
        INF_TRY(vk_device_submit(device, recording->slices[i].commands, &values[i], err));
        recording->submitted = values[i];
    }
    if (begin_ns != 0)
        learn(device->gpu, cost, inf_clock_ns() - begin_ns);
    return INF_OK;
}

// Whether the recording must be made anew: its slices are far from what they should be.
static bool is_cut_wrong(const struct vk_recording *recording, uint64_t slice_cost)
{
    return slice_cost < recording->slice_cost / 2 ||
           (recording->slice_count > 1 && slice_cost / 2 > recording->slice_cost);
}

enum inf_code vk_program_run(struct inf_program *base, const struct inf_run *run,
                             struct inf_ticket *ticket, struct inf_error *err)
{
    struct vk_program *program = (struct vk_program *)base;
    struct vk_device *device = program->device;
    struct vk_recording *recording = &program->slots[run->slot];
    if (is_cancelled(run))
        return inf_fail(err, INF_CANCELLED, "cancelled before it was submitted");
    if (program->dispatch_count == 0)
        return INF_OK;
    if (recording->submitted != 0)
        INF_TRY(vk_device_wait(device, recording->submitted, UINT64_MAX, err));
    bool moved;
    enum inf_code code = bind(program, recording, run, &moved, err);
    if (code != INF_OK) {
        recording->recorded = false; // some places are overwritten
        return code;
    }
    uint64_t slice_cost = atomic_load_explicit(&device->gpu->slice_cost, memory_order_relaxed);
    if (moved || !recording->recorded || recording->timed != run->profile ||
        is_cut_wrong(recording, slice_cost)) {
        recording->recorded = false;
        INF_TRY(vk_record(recording, device, program->dispatches, program->dispatch_count,
                          slice_cost, run->profile, err));
    }
    INF_TRY(submit_slices(recording, device, run, err));
    *ticket = make_ticket(device, recording->submitted);
    return INF_OK;
}

enum inf_code vk_program_wait(struct inf_device *base, struct inf_ticket ticket,
                              uint64_t timeout_ns, struct inf_error *err)
{
    if (ticket.value == 0)
        return INF_OK;
    struct vk_device *device =
        vk_gpu_find((struct vk_gpu *)base, (uint32_t)(ticket.value >> TICKET_BITS));
    if (device == NULL)
        return inf_fail_reason(err, INF_UNAVAILABLE, INF_REASON_DEVICE_LOST, "device '%s' is lost",
                               base->info.name);
    enum inf_code code =
        vk_device_wait(device, ticket.value & ((UINT64_C(1) << TICKET_BITS) - 1), timeout_ns, err);
    if (code == INF_OK)
        vk_cache_trust(device); // the first run's pipelines have all been run by now
    vk_device_unref(&device);
    return code;
}

uint32_t vk_program_profile(const struct inf_program *base, uint32_t slot,
                            struct inf_step_profile *steps, uint32_t capacity)
{
    const struct vk_program *program = (const struct vk_program *)base;
    const struct vk_recording *recording = &program->slots[slot];
    const struct vk_device *device = program->device;
    if (!recording->timed)
        return 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < program->dispatch_count; i++) {
        uint64_t times[2];
        if (device->api.GetQueryPoolResults(device->device, recording->queries, 2 * i, 2,
                                            sizeof(times), times, sizeof(*times),
                                            VK_QUERY_RESULT_64_BIT) != VK_SUCCESS)
            return 0;
        uint64_t time_ns = (uint64_t)((double)(times[1] - times[0]) *
                                      (double)device->gpu->properties.limits.timestampPeriod);
        uint32_t node = program->dispatches[i].node;
        // The dispatches of a node follow each other and are one step.
        if (count > 0 && count <= capacity && steps[count - 1].node == node) {
            steps[count - 1].time_ns += time_ns;
            continue;
        }
        if (count < capacity)
            steps[count] = (struct inf_step_profile){
                .node = node,
                .time_ns = time_ns,
                .kernel = vk_variant_shader(device->gpu, &program->dispatches[i].variant)->name};
        count++;
    }
    return count;
}
