// SPDX-License-Identifier: Apache-2.0
// Binds the memory of one run. A value is in one of four places: the host arena of the slot
// (concurrent run), the device arena, staging memory shared by host and device, or the caller's
// memory. Only the caller's memory differs from run to run. The device reads large inputs in
// registered memory in place; other inputs are copied to staging memory.
#include "backends/exec/static_run.h"

#include <string.h>

#include "backends/device/counts.h"

struct inf_binding inf_static_run_place(const struct inf_static_executable *executable,
                                        const struct inf_slot *slot, uint32_t v)
{
    const struct inf_storage *storage = &executable->plan->storage[v];
    size_t staged = executable->staging.offsets[v];
    if (staged != INF_STAGING_NONE)
        return (struct inf_binding){.host =
                                        (unsigned char *)inf_buffer_host(slot->staging) + staged,
                                    .buffer = slot->staging,
                                    .offset = staged};
    if (storage->place == INF_PLACE_ARENA && executable->staging.on_device[v])
        return (struct inf_binding){.buffer = slot->device_arena, .offset = storage->offset};
    if (storage->place == INF_PLACE_ARENA)
        return (struct inf_binding){.host = (unsigned char *)inf_buffer_host(slot->arena) +
                                            storage->offset,
                                    .buffer = slot->arena,
                                    .offset = storage->offset};
    // The pointer may be NULL: the bytes of a constant that no run reads may be evicted, and no
    // step uses the pointer then.
    if (storage->place == INF_PLACE_CONST && executable->base.graph->values[v].data != NULL)
        return (struct inf_binding){.host = executable->base.graph->values[v].data->data};
    return (struct inf_binding){0};
}

// Returns the memory of an output: the caller's, or the arena if the caller does not want it.
static void *output_memory(const struct inf_static_executable *executable,
                           const struct inf_execution *execution,
                           const struct inf_bound_value *output)
{
    if (execution->outputs[output->index] != NULL)
        return execution->outputs[output->index];
    const struct inf_slot *slot = &executable->slots[execution->slot];
    return (unsigned char *)inf_buffer_host(slot->arena) +
           executable->plan->storage[output->value].offset;
}

static bool is_staged(const struct inf_static_executable *executable, uint32_t value)
{
    return executable->staging.offsets[value] != INF_STAGING_NONE;
}

// Inputs of at least ANYWHERE_BYTES are read in place at any address. Inputs of at least
// IN_PLACE_BYTES are read in place only at the address of the last run, because a new address
// requires recording the commands again, which takes longer than the copy. Smaller inputs are
// always copied.
#define ANYWHERE_BYTES ((size_t)1 << 20)
#define IN_PLACE_BYTES ((size_t)16 << 10)

// Binds an input in the caller's memory, if the first device may read it there. Returns false if
// the input must be copied. Only float inputs are read in place, because a client might overwrite
// an index after its range was checked.
static bool bind_in_place(struct inf_static_executable *executable, struct inf_slot *slot,
                          uint32_t i, const struct inf_execution *execution)
{
    const struct inf_bound_value *input = &executable->inputs[i];
    const void *memory = execution->inputs[input->index];
    size_t size = executable->plan->storage[input->value].size_bytes;
    bool moved = slot->last_inputs[i] != memory;
    slot->last_inputs[i] = memory;
    if (execution->mappings == NULL || execution->mappings[input->index] == NULL ||
        size < (moved ? ANYWHERE_BYTES : IN_PLACE_BYTES) ||
        executable->base.graph->values[input->value].dtype != INF_DTYPE_F32)
        return false;
    return inf_mapping_bind(execution->mappings[input->index], executable->devices[0], memory, size,
                            &slot->bindings[input->value]);
}

// Binds an input that the first device reads: in place, or by copying it to staging memory.
static void bind_staged_input(struct inf_static_executable *executable, struct inf_slot *slot,
                              uint32_t i, const struct inf_execution *execution)
{
    const struct inf_bound_value *input = &executable->inputs[i];
    struct inf_device *device = executable->devices[0];
    size_t size = executable->plan->storage[input->value].size_bytes;
    bool renames = executable->plan->roots[input->value] != input->value;
    bool in_place = bind_in_place(executable, slot, i, execution);
    if (!in_place)
        slot->bindings[input->value] = inf_static_run_place(executable, slot, input->value);
    if (renames || size == 0)
        return;
    if (!in_place)
        memcpy(slot->bindings[input->value].host, execution->inputs[input->index], size);
    inf_device_add_count(device, in_place ? INF_COUNT_INPUTS_IN_PLACE : INF_COUNT_INPUTS_COPIED, 1);
    inf_device_add_count(device, in_place ? INF_COUNT_IN_PLACE_BYTES : INF_COUNT_COPIED_BYTES,
                         size);
}

void inf_static_run_bind(struct inf_static_executable *executable,
                         const struct inf_execution *execution)
{
    struct inf_slot *slot = &executable->slots[execution->slot];
    for (uint32_t i = 0; i < executable->input_count; i++) {
        const struct inf_bound_value *input = &executable->inputs[i];
        if (!is_staged(executable, input->value))
            // Casting away const is safe, because a program only reads its inputs; a binding has
            // one pointer type for both directions.
            slot->bindings[input->value].host = (void *)(uintptr_t)execution->inputs[input->index];
        else
            bind_staged_input(executable, slot, i, execution);
    }
    for (uint32_t i = 0; i < executable->output_count; i++)
        if (!is_staged(executable, executable->outputs[i].value))
            slot->bindings[executable->outputs[i].value].host =
                output_memory(executable, execution, &executable->outputs[i]);
}

void inf_static_run_fetch(const struct inf_static_executable *executable,
                          const struct inf_execution *execution)
{
    const struct inf_plan *plan = executable->plan;
    const struct inf_slot *slot = &executable->slots[execution->slot];
    for (uint32_t i = 0; i < executable->output_count; i++) {
        const struct inf_bound_value *output = &executable->outputs[i];
        size_t size = plan->storage[output->value].size_bytes;
        if (is_staged(executable, output->value) && plan->roots[output->value] == output->value &&
            execution->outputs[output->index] != NULL && size > 0)
            memcpy(execution->outputs[output->index], slot->bindings[output->value].host, size);
    }
    for (uint32_t i = 0; i < plan->copy_count; i++) {
        uint32_t value = plan->copy_values[i];
        if (execution->outputs[plan->copy_outputs[i]] != NULL &&
            plan->storage[value].size_bytes > 0)
            memcpy(execution->outputs[plan->copy_outputs[i]], slot->bindings[value].host,
                   plan->storage[value].size_bytes);
    }
}
