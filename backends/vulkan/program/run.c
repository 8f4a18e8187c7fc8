// SPDX-License-Identifier: Apache-2.0
// Runs programs: finds the addresses of operands, records again if they changed, submits, waits,
// and checks the status that the dispatches reported.
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "backends/base/cancel.h"
#include "backends/base/clock.h"
#include "backends/vulkan/device/device_create.h"
#include "backends/vulkan/device/pipeline_cache.h"
#include "backends/vulkan/program/program.h"

// A ticket identifies a run of a program. Its lower TICKET_BITS bits hold the timeline value that
// the device reaches at the end of the run; the upper bits hold the generation of the device.
#define TICKET_BITS 48

static enum inf_code find_place(const struct vk_program *program,
                                const struct vk_recording *recording,
                                const struct vk_operand *operand, const struct inf_run *run,
                                struct vk_place *place, struct inf_error *err)
{
    const struct vk_span *span = NULL;
    VkDeviceSize offset = 0;
    if (operand->scratch) {
        span = &recording->scratch;
        offset = operand->offset;
    } else if (operand->value == INF_VALUE_NONE)
        span = &program->list.weights.constants[operand->constant].span;
    if (operand->value != INF_VALUE_NONE) {
        const struct inf_binding *binding = &run->bindings[operand->value];
        if (binding->buffer == NULL || binding->buffer->device != &program->list.device->gpu->base)
            return inf_fail(err, INF_INVALID, "device '%s': value %u is not in its memory",
                            program->list.device->name, operand->value);
        if (vk_buffer_device(binding->buffer) != program->list.device)
            return inf_fail_reason(err, INF_UNAVAILABLE, INF_REASON_DEVICE_LOST,
                                   "device '%s' was lost after value %u got its memory",
                                   program->list.device->name, operand->value);
        span = vk_buffer_span(binding->buffer);
        offset = binding->offset;
    }
    VkDeviceSize size = vk_bound_bytes(operand->size_bytes);
    if (offset > span->size || size > span->size - offset)
        return inf_fail(err, INF_RANGE, "device '%s': value %u reaches behind its buffer",
                        program->list.device->name, operand->value);
    *place = (struct vk_place){span->serial, span->buffer, span->offset + offset, size};
    return INF_OK;
}

// Finds the current addresses of all operands. Sets *out_moved to true if at least one differs from
// the address in the recording.
static enum inf_code bind_operands(const struct vk_program *program, struct vk_recording *recording,
                                   const struct inf_run *run, bool *out_moved,
                                   struct inf_error *err)
{
    *out_moved = false;
    for (uint32_t i = 0; i < program->list.count; i++) {
        const struct vk_dispatch *dispatch = &program->list.dispatches[i];
        for (uint32_t k = 0; k < dispatch->operand_count; k++) {
            struct vk_place *old = &recording->places[i * VK_BINDINGS_MAX + k], now;
            INF_TRY(find_place(program, recording, &dispatch->operands[k], run, &now, err));
            *out_moved |=
                now.serial != old->serial || now.offset != old->offset || now.size != old->size;
            *old = now;
        }
    }
    return INF_OK;
}

// Returns a ticket with the generation of the logical device. The generation is needed because the
// timeline of another device starts again at 0.
static struct inf_ticket make_ticket(const struct vk_device *device, uint64_t value)
{
    return (struct inf_ticket){(uint64_t)vk_device_generation(device) << TICKET_BITS | value};
}

// The most submissions of a run that are in the queue at a time. One runs and one waits, so that
// the device is never idle.
#define AHEAD 2

// Corrects the estimate of which cost takes VK_SLICE_NS, from a measurement: dispatches of total
// cost `cost` took `time_ns`.
static void update_slice_cost(struct vk_gpu *gpu, uint64_t cost, uint64_t time_ns)
{
    double per_slice = (double)cost / (double)INF_MAX(time_ns, 1u) * (double)VK_SLICE_NS;
    atomic_store_explicit(&gpu->slice_cost, (uint64_t)INF_MIN(INF_MAX(per_slice, 1.0), 1e18),
                          memory_order_relaxed);
}

// Submits the slices of the recording one after the other. Returns while the last submissions are
// still running.
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
        if (i > 0 && inf_is_cancelled(run->cancelled)) {
            // Before the run ends, wait for the submitted slices, because they still write to
            // memory that the caller will use again.
            INF_TRY(vk_device_wait(device, values[i - 1], UINT64_MAX, err));
            return inf_fail(err, INF_CANCELLED, "cancelled after %u of %u submits", i,
                            recording->slice_count);
        }
        INF_TRY(vk_device_submit(device, recording->slices[i].commands, &values[i], err));
        recording->submitted = values[i];
    }
    if (begin_ns != 0)
        update_slice_cost(device->gpu, cost, inf_clock_ns() - begin_ns);
    return INF_OK;
}

// Returns true if the slices of the recording take much more or much less time than VK_SLICE_NS.
static bool needs_new_slices(const struct vk_recording *recording, uint64_t slice_cost)
{
    return slice_cost < recording->slice_cost / 2 ||
           (recording->slice_count > 1 && slice_cost / 2 > recording->slice_cost);
}

// Records the dispatches again if operand addresses or slice sizes changed, then submits the
// recording. The weights must be on the device.
static enum inf_code replay_recording(struct vk_program *program, const struct inf_run *run,
                                      struct inf_error *err)
{
    struct vk_device *device = program->list.device;
    struct vk_recording *recording = &program->slots[run->slot];
    bool moved;
    enum inf_code code = bind_operands(program, recording, run, &moved, err);
    if (code != INF_OK) {
        recording->recorded = false; // some recorded operand addresses were overwritten
        return code;
    }
    uint64_t slice_cost = atomic_load_explicit(&device->gpu->slice_cost, memory_order_relaxed);
    if (moved || !recording->recorded || recording->timed != run->profile ||
        needs_new_slices(recording, slice_cost)) {
        recording->recorded = false;
        INF_TRY(vk_recording_record(recording, device, program->list.dispatches,
                                    program->list.count, slice_cost, run->profile, err));
    }
    // Clear the status words, because an earlier run that the caller abandoned may have written to
    // them.
    if (program->list.writes_status)
        memset(recording->status.host, 0, recording->status.size);
    return submit_slices(recording, device, run, err);
}

enum inf_code vk_program_run(struct inf_program *base, const struct inf_run *run,
                             struct inf_ticket *ticket, struct inf_error *err)
{
    struct vk_program *program = (struct vk_program *)base;
    assert(run->slot < program->slot_count);
    struct vk_device *device = program->list.device;
    struct vk_recording *recording = &program->slots[run->slot];
    if (inf_is_cancelled(run->cancelled))
        return inf_fail(err, INF_CANCELLED, "cancelled before it was submitted");
    if (program->list.count == 0)
        return INF_OK;
    if (recording->submitted != 0)
        INF_TRY(vk_device_wait(device, recording->submitted, UINT64_MAX, err));
    INF_TRY(vk_weights_acquire(&program->list.weights, err));
    enum inf_code code = replay_recording(program, run, err);
    vk_weights_release(&program->list.weights, recording->submitted);
    INF_TRY(code);
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
        // The first run has finished, so the cached pipelines did not crash the driver. Remove the
        // marker file.
        vk_pipeline_cache_confirm(device);
    vk_device_unref(&device);
    return code;
}

// Checks the status words of a dispatch. Returns an error if an integer was divided by 0 or an
// index was out of range. Sets *run->overflowed if a value does not fit into 16 bits, so that the
// caller computes the result again.
static enum inf_code check_status(const struct vk_program *program, uint32_t index,
                                  const uint32_t *status, const struct inf_run *run,
                                  struct inf_error *err)
{
    const struct inf_node *node = &program->graph->nodes[program->list.dispatches[index].node];
    const char *op = inf_op_info(node->op)->name;
    if (status[STATUS_OVERFLOWED] != 0 && run->overflowed != NULL)
        atomic_store(run->overflowed, true);
    if (status[STATUS_BY_ZERO] != 0)
        return inf_fail(err, INF_INVALID, "node '%s' (%s): division by 0", node->name, op);
    uint64_t bad = (uint64_t)status[STATUS_BAD_INDEX + 2] << 32 | status[STATUS_BAD_INDEX + 1];
    if (status[STATUS_BAD_INDEX] != 0)
        return inf_fail(err, INF_INVALID, "node '%s' (%s): index %" PRId64 " is out of range",
                        node->name, op, (int64_t)bad);
    return INF_OK;
}

enum inf_code vk_program_finish(struct inf_program *base, const struct inf_run *run,
                                struct inf_error *err)
{
    const struct vk_program *program = (const struct vk_program *)base;
    const struct vk_recording *recording = &program->slots[run->slot];
    for (uint32_t i = 0; program->list.writes_status && i < program->list.count; i++)
        INF_TRY(check_status(program, i, vk_recording_status(recording, program->list.device, i),
                             run, err));
    return INF_OK;
}

uint32_t vk_program_profile(const struct inf_program *base, uint32_t slot,
                            struct inf_step_profile *steps, uint32_t capacity)
{
    const struct vk_program *program = (const struct vk_program *)base;
    const struct vk_recording *recording = &program->slots[slot];
    const struct vk_device *device = program->list.device;
    if (!recording->timed)
        return 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < program->list.count; i++) {
        uint64_t times[2];
        if (device->api.GetQueryPoolResults(device->device, recording->queries, 2 * i, 2,
                                            sizeof(times), times, sizeof(*times),
                                            VK_QUERY_RESULT_64_BIT) != VK_SUCCESS)
            return 0;
        uint64_t time_ns = (uint64_t)((double)(times[1] - times[0]) *
                                      (double)device->gpu->properties.limits.timestampPeriod);
        uint32_t node = program->list.dispatches[i].node;
        // Report consecutive dispatches of the same node as one step.
        if (count > 0 && count <= capacity && steps[count - 1].node == node) {
            steps[count - 1].time_ns += time_ns;
            continue;
        }
        if (count < capacity)
            steps[count] = (struct inf_step_profile){
                .node = node,
                .time_ns = time_ns,
                .kernel =
                    vk_variant_shader(device->gpu, &program->list.dispatches[i].variant)->name};
        count++;
    }
    return count;
}
