// SPDX-License-Identifier: Apache-2.0
// Checks calls to devices: asserts the conditions that backends rely on, counts references, memory
// and allocations, and supplies defaults for the optional entries of a backend.
#include "backends/device/device.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/pages.h"
#include "backends/base/reference.h"
#include "backends/device/backend.h"
#include "proto/core/span.h"

#define HOST_ALIGNMENT 64

static bool power_of_two(size_t number)
{
    return number != 0 && (number & (number - 1)) == 0;
}

enum inf_code inf_device_open(struct inf_device **out_device, const struct inf_backend *backend,
                              uint32_t index, const struct inf_device_options *options,
                              struct inf_error *err)
{
    static const struct inf_device_options defaults;
    inf_role_check_may_block();
    uint32_t count = backend->probe();
    if (index >= count)
        return inf_fail_reason(err, INF_UNAVAILABLE, INF_REASON_NO_DEVICE,
                               "backend '%s': there is no device %" PRIu32 ", it finds %" PRIu32,
                               backend->name, index, count);
    struct inf_device *device = NULL;
    INF_TRY(backend->open(&device, index, options != NULL ? options : &defaults, err));
    device->backend = backend;
    atomic_init(&device->references, 1);
    atomic_init(&device->weight_bytes, 0);
    atomic_init(&device->buffer_bytes, 0);
    atomic_init(&device->allocations, 0);
    atomic_init(&device->held_bytes, 0);
    atomic_init(&device->held_tensors, 0);
    atomic_init(&device->held_buffers, 0);
    atomic_init(&device->total_bytes, 0);
    atomic_init(&device->peak_bytes, 0);
    for (size_t i = 0; i < INF_DEVICE_COUNTS; i++)
        atomic_init(&device->counts[i], 0);
    assert(device->info.name[0] != '\0' && device->info.slots >= 1);
    assert(power_of_two(device->info.alignment));
    *out_device = device;
    return INF_OK;
}

struct inf_device *inf_device_ref(struct inf_device *device)
{
    inf_reference_take(&device->references);
    return device;
}

void inf_device_unref(struct inf_device **device)
{
    struct inf_device *last = *device;
    *device = NULL;
    if (last != NULL && inf_reference_drop(&last->references))
        last->backend->close(last);
}

const struct inf_device_info *inf_device_info(const struct inf_device *device)
{
    return &device->info;
}

static bool has_strings(const struct inf_graph *graph, const uint32_t *values, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (values[i] != INF_VALUE_NONE && graph->values[values[i]].dtype == INF_DTYPE_BYTES)
            return true;
    return false;
}

enum inf_code inf_device_supports(struct inf_device *device, const struct inf_graph *graph,
                                  uint32_t node, struct inf_error *err)
{
    if (node >= graph->node_count)
        return inf_fail(err, INF_INVALID,
                        "device '%s': node %" PRIu32 " is outside the graph's %" PRIu32 " nodes",
                        device->info.name, node, graph->node_count);
    const struct inf_node *used = &graph->nodes[node];
    if (!device->info.strings && (has_strings(graph, used->inputs, used->input_count) ||
                                  has_strings(graph, used->outputs, used->output_count)))
        return inf_fail_reason(err, INF_UNSUPPORTED, INF_REASON_OPERATOR,
                               "node '%s' (%s): device '%s' has no strings", used->name,
                               inf_op_info(used->op)->name, device->info.name);
    return device->backend->supports(device, graph, node, err);
}

void inf_device_choose_kernels(struct inf_device *device, const struct inf_segment *segment)
{
    if (device->backend->choose_kernels != NULL)
        device->backend->choose_kernels(device, segment);
}

uint32_t inf_device_fused_into(struct inf_device *device, const struct inf_segment *segment,
                               uint32_t node)
{
    if (device->backend->fused_into == NULL)
        return INF_NODE_NONE;
    return device->backend->fused_into(device, segment, node);
}

// --- counting the memory of buffers and weights ---

// Adds `bytes` to the device's memory in use and updates the peak.
static void raise_total(struct inf_device *device, uint64_t bytes)
{
    uint64_t total =
        atomic_fetch_add_explicit(&device->total_bytes, bytes, memory_order_relaxed) + bytes;
    uint64_t peak = atomic_load_explicit(&device->peak_bytes, memory_order_relaxed);
    while (total > peak &&
           !atomic_compare_exchange_weak_explicit(&device->peak_bytes, &peak, total,
                                                  memory_order_relaxed, memory_order_relaxed))
        ;
}

// Adds an allocation of `bytes` to a device's counters, unless it has no bytes.
static void count_in(struct inf_device *device, _Atomic uint64_t *counter, uint64_t bytes)
{
    if (bytes == 0)
        return;
    atomic_fetch_add_explicit(counter, bytes, memory_order_relaxed);
    atomic_fetch_add_explicit(&device->allocations, 1, memory_order_relaxed);
    raise_total(device, bytes);
}

// Subtracts an allocation that count_in() added.
static void count_out(struct inf_device *device, _Atomic uint64_t *counter, uint64_t bytes)
{
    if (bytes == 0)
        return;
    atomic_fetch_sub_explicit(counter, bytes, memory_order_relaxed);
    atomic_fetch_sub_explicit(&device->allocations, 1, memory_order_relaxed);
    atomic_fetch_sub_explicit(&device->total_bytes, bytes, memory_order_relaxed);
}

static enum inf_code host_alloc(struct inf_buffer **out_buffer, size_t size_bytes,
                                struct inf_error *err)
{
    size_t total;
    if (!inf_size_add(size_bytes, INF_BLOB_SLACK_BYTES + HOST_ALIGNMENT - 1, &total) ||
        total > PTRDIFF_MAX)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "a buffer of %zu bytes is more than memory can be", size_bytes);
    total &= ~(size_t)(HOST_ALIGNMENT - 1);
    struct inf_buffer *buffer = calloc(1, sizeof(*buffer));
    void *host = inf_pages_alloc(HOST_ALIGNMENT, total);
    if (buffer == NULL || host == NULL) {
        free(host);
        free(buffer);
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "no memory for a buffer of %zu bytes", size_bytes);
    }
    // Write the memory here, so that the first run takes no page faults and old memory contents do
    // not leak.
    memset(host, 0, total);
    buffer->host = host;
    *out_buffer = buffer;
    return INF_OK;
}

enum inf_code inf_buffer_alloc(struct inf_buffer **out_buffer, struct inf_device *device,
                               size_t size_bytes, enum inf_buffer_usage usage,
                               struct inf_error *err)
{
    const struct inf_backend *backend = device->backend;
    struct inf_buffer *buffer = NULL;
    if (backend->buffer_alloc != NULL)
        INF_TRY(backend->buffer_alloc(&buffer, device, size_bytes, usage, err));
    else
        INF_TRY(host_alloc(&buffer, size_bytes, err));
    buffer->device = device;
    buffer->size_bytes = size_bytes;
    buffer->origin = backend->buffer_alloc != NULL ? INF_BUFFER_BACKEND : INF_BUFFER_HOST;
    buffer->counted_bytes = size_bytes;
    count_in(device, &device->buffer_bytes, size_bytes);
    *out_buffer = buffer;
    return INF_OK;
}

static enum inf_code host_import(struct inf_buffer **out_buffer, const struct inf_device *device,
                                 void *host, struct inf_error *err)
{
    if (!device->info.host_memory)
        return inf_fail(err, INF_UNSUPPORTED, "device '%s' cannot use host memory as it is",
                        device->info.name);
    struct inf_buffer *buffer = calloc(1, sizeof(*buffer));
    if (buffer == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "no memory for a buffer");
    buffer->host = host;
    *out_buffer = buffer;
    return INF_OK;
}

enum inf_code inf_buffer_import(struct inf_buffer **out_buffer, struct inf_device *device,
                                void *host, size_t size_bytes, struct inf_error *err)
{
    const struct inf_backend *backend = device->backend;
    struct inf_buffer *buffer = NULL;
    if (backend->buffer_import != NULL)
        INF_TRY(backend->buffer_import(&buffer, device, host, size_bytes, err));
    else
        INF_TRY(host_import(&buffer, device, host, err));
    buffer->device = device;
    buffer->size_bytes = size_bytes;
    buffer->origin = backend->buffer_import != NULL ? INF_BUFFER_BACKEND : INF_BUFFER_BORROWED;
    buffer->counted_bytes = 0;
    *out_buffer = buffer;
    return INF_OK;
}

void *inf_buffer_host(const struct inf_buffer *buffer)
{
    return buffer->host;
}

enum inf_code inf_buffer_copy(struct inf_buffer *to, size_t to_offset, struct inf_buffer *from,
                              size_t from_offset, size_t size, struct inf_error *err)
{
    inf_role_check_may_block();
    const struct inf_device *device = to->device;
    if (from->device != device)
        return inf_fail(err, INF_INVALID, "copy: the buffers belong to '%s' and '%s'",
                        from->device->info.name, device->info.name);
    if (!inf_range_ok(to_offset, size, to->size_bytes))
        return inf_fail(err, INF_RANGE, "copy: %zu bytes to offset %zu of a buffer of %zu", size,
                        to_offset, to->size_bytes);
    if (!inf_range_ok(from_offset, size, from->size_bytes))
        return inf_fail(err, INF_RANGE, "copy: %zu bytes from offset %zu of a buffer of %zu", size,
                        from_offset, from->size_bytes);
    if (size == 0)
        return INF_OK;
    if (device->backend->buffer_copy != NULL)
        return device->backend->buffer_copy(to, to_offset, from, from_offset, size, err);
    if (to->host == NULL || from->host == NULL)
        return inf_fail(err, INF_UNSUPPORTED, "device '%s' cannot copy these buffers",
                        device->info.name);
    memmove((char *)to->host + to_offset, (const char *)from->host + from_offset, size);
    return INF_OK;
}

bool inf_buffer_lost(const struct inf_buffer *buffer)
{
    const struct inf_backend *backend = buffer->device->backend;
    return buffer->origin == INF_BUFFER_BACKEND && backend->buffer_lost != NULL &&
           backend->buffer_lost(buffer);
}

void inf_buffer_free(struct inf_buffer **buffer)
{
    struct inf_buffer *old = *buffer;
    *buffer = NULL;
    if (old == NULL)
        return;
    count_out(old->device, &old->device->buffer_bytes, old->counted_bytes);
    if (old->origin == INF_BUFFER_BACKEND) {
        old->device->backend->buffer_free(old);
        return;
    }
    if (old->origin == INF_BUFFER_HOST)
        free(old->host);
    free(old);
}

// --- compiling and running programs ---

static enum inf_code check_segment(struct inf_device *device, const struct inf_segment *segment,
                                   struct inf_error *err)
{
    if (segment->slots == 0)
        return inf_fail(err, INF_INVALID, "device '%s': a program needs at least one slot",
                        device->info.name);
    if (segment->precision > INF_PRECISION_FP32 &&
        (device->info.precisions & INF_PRECISION_BIT(segment->precision)) == 0)
        return inf_fail(err, INF_UNSUPPORTED, "device '%s' does not compute in %s",
                        device->info.name, inf_precision_name(segment->precision));
    for (uint32_t i = 0; i < segment->node_count; i++)
        INF_TRY(inf_device_supports(device, segment->graph, segment->nodes[i], err));
    return INF_OK;
}

// Gives the constants of a segment their bytes. They have them, unless the graph is that of a kept
// plan: then constants that forms stand in for have none, and only a device that adopts forms can
// do without.
static enum inf_code restore_constants(const struct inf_device *device,
                                       const struct inf_segment *segment, struct inf_error *err)
{
    const struct inf_graph *graph = segment->graph;
    for (uint32_t i = 0; i < segment->node_count; i++) {
        const struct inf_node *node = &graph->nodes[segment->nodes[i]];
        for (uint32_t k = 0; k < node->input_count; k++) {
            struct inf_blob *blob =
                node->inputs[k] != INF_VALUE_NONE ? graph->values[node->inputs[k]].data : NULL;
            if (blob != NULL && !inf_blob_restore(blob))
                return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                                       "device '%s': no memory for %zu bytes of weights",
                                       device->info.name, blob->size_bytes);
        }
    }
    return INF_OK;
}

enum inf_code inf_program_compile(struct inf_program **out_program, struct inf_device *device,
                                  const struct inf_segment *segment, uint32_t flags,
                                  struct inf_error *err)
{
    inf_role_check_may_block();
    INF_TRY(check_segment(device, segment, err));
    if (device->backend->adopt_form == NULL)
        INF_TRY(restore_constants(device, segment, err));
    struct inf_program *program = NULL;
    INF_TRY(device->backend->compile(&program, device, segment, flags, err));
    program->device = device;
    program->slots = segment->slots;
    program->counted_bytes = program->weights_move ? 0 : program->weight_bytes;
    count_in(device, &device->weight_bytes, program->counted_bytes);
    count_in(device, &device->buffer_bytes, program->scratch_bytes);
    *out_program = program;
    return INF_OK;
}

void inf_program_destroy(struct inf_program **program)
{
    struct inf_program *old = *program;
    *program = NULL;
    if (old == NULL)
        return;
    struct inf_device *device = old->device;
    count_out(device, &device->weight_bytes, old->counted_bytes);
    count_out(device, &device->buffer_bytes, old->scratch_bytes);
    device->backend->program_destroy(old);
}

bool inf_program_lost(const struct inf_program *program)
{
    const struct inf_backend *backend = program->device->backend;
    return backend->program_lost != NULL && backend->program_lost(program);
}

enum inf_code inf_program_run(struct inf_program *program, const struct inf_run *run,
                              struct inf_ticket *out_ticket, struct inf_error *err)
{
    inf_role_check_may_block();
    if (run->slot >= program->slots)
        return inf_fail(err, INF_INVALID,
                        "device '%s': slot %" PRIu32 " of a program with %" PRIu32 " slots",
                        program->device->info.name, run->slot, program->slots);
    out_ticket->value = 0;
    return program->device->backend->run(program, run, out_ticket, err);
}

enum inf_code inf_device_wait(struct inf_device *device, struct inf_ticket ticket,
                              uint64_t timeout_ns, struct inf_error *err)
{
    inf_role_check_may_block();
    if (device->backend->wait == NULL)
        return INF_OK;
    return device->backend->wait(device, ticket, timeout_ns, err);
}

enum inf_code inf_program_finish(struct inf_program *program, const struct inf_run *run,
                                 struct inf_error *err)
{
    const struct inf_backend *backend = program->device->backend;
    return backend->finish != NULL ? backend->finish(program, run, err) : INF_OK;
}

uint32_t inf_program_profile(const struct inf_program *program, uint32_t slot,
                             struct inf_step_profile *steps, uint32_t capacity)
{
    const struct inf_backend *backend = program->device->backend;
    if (backend->profile == NULL || slot >= program->slots)
        return 0;
    return backend->profile(program, slot, steps, capacity);
}

uint32_t inf_program_lowered_nodes(const struct inf_program *program)
{
    return program->lowered_nodes;
}

uint64_t inf_program_weight_bytes(const struct inf_program *program)
{
    return program->weight_bytes;
}

uint64_t inf_program_scratch_bytes(const struct inf_program *program)
{
    return program->scratch_bytes;
}

struct inf_blob_form *inf_program_packed_form(const struct inf_program *program, uint32_t node,
                                              uint32_t input)
{
    const struct inf_backend *backend = program->device->backend;
    return backend->packed != NULL ? backend->packed(program, node, input) : NULL;
}

enum inf_code inf_device_adopt_form(struct inf_device *device, struct inf_blob *blob,
                                    struct inf_form_record *record, struct inf_blob_form **out_form,
                                    struct inf_error *err)
{
    if (device->backend->adopt_form == NULL)
        return inf_fail(err, INF_UNSUPPORTED, "device '%s' keeps no packed weights",
                        device->info.name);
    return device->backend->adopt_form(device, blob, record, out_form, err);
}

void inf_device_count_weights(struct inf_device *device, uint64_t bytes)
{
    count_in(device, &device->weight_bytes, bytes);
}

void inf_device_uncount_weights(struct inf_device *device, uint64_t bytes)
{
    count_out(device, &device->weight_bytes, bytes);
}

struct inf_device_memory inf_device_memory(struct inf_device *device)
{
    struct inf_device_memory memory = {
        .weight_bytes = atomic_load_explicit(&device->weight_bytes, memory_order_relaxed),
        .buffer_bytes = atomic_load_explicit(&device->buffer_bytes, memory_order_relaxed),
    };
    if (device->backend->memory != NULL)
        memory = device->backend->memory(device);
    memory.allocations = atomic_load_explicit(&device->allocations, memory_order_relaxed);
    memory.held = (struct inf_device_held){
        .bytes = atomic_load_explicit(&device->held_bytes, memory_order_relaxed),
        .tensors = atomic_load_explicit(&device->held_tensors, memory_order_relaxed),
        .buffers = atomic_load_explicit(&device->held_buffers, memory_order_relaxed),
    };
    memory.peak_bytes = atomic_load_explicit(&device->peak_bytes, memory_order_relaxed);
    return memory;
}

void inf_device_add_held(struct inf_device *device, const struct inf_device_held *held)
{
    atomic_fetch_add_explicit(&device->held_tensors, held->tensors, memory_order_relaxed);
    atomic_fetch_add_explicit(&device->held_buffers, held->buffers, memory_order_relaxed);
    atomic_fetch_add_explicit(&device->held_bytes, held->bytes, memory_order_relaxed);
    raise_total(device, held->bytes);
}

void inf_device_remove_held(struct inf_device *device, const struct inf_device_held *held)
{
    atomic_fetch_sub_explicit(&device->held_tensors, held->tensors, memory_order_relaxed);
    atomic_fetch_sub_explicit(&device->held_buffers, held->buffers, memory_order_relaxed);
    atomic_fetch_sub_explicit(&device->held_bytes, held->bytes, memory_order_relaxed);
    atomic_fetch_sub_explicit(&device->total_bytes, held->bytes, memory_order_relaxed);
}

bool inf_device_caused_error(const struct inf_error *err)
{
    return err->reason == INF_REASON_DEVICE_LOST || err->reason == INF_REASON_DEVICE_HUNG ||
           err->reason == INF_REASON_DEVICE_OOM;
}

bool inf_device_kernel_choices(struct inf_device *device, struct inf_kernel_choices *out_choices)
{
    return device->backend->kernel_choices != NULL &&
           device->backend->kernel_choices(device, out_choices);
}

enum inf_device_health inf_device_health(struct inf_device *device)
{
    if (device->backend->health == NULL)
        return INF_DEVICE_OK;
    return device->backend->health(device);
}
