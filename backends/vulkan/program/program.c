// SPDX-License-Identifier: Apache-2.0
// Compiles a segment to dispatches, and creates the recordings of its slots (concurrent runs).
#include "backends/vulkan/program/program.h"

#include <stdlib.h>

#include "backends/base/cancel.h"
#include "backends/vulkan/device/device_create.h"
#include "backends/vulkan/device/pipeline_cache.h"
#include "backends/vulkan/program/compile_ahead.h"
#include "backends/vulkan/program/lower_node.h"
#include "backends/vulkan/program/lower_step.h"

static enum inf_code no_memory(const struct vk_device *device, struct inf_error *err)
{
    return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                           "device '%s': no host memory for a program", device->name);
}

// --- compiling a segment to dispatches ---

enum inf_code vk_program_supports(struct inf_device *base, const struct inf_graph *graph,
                                  uint32_t node, struct inf_error *err)
{
    struct vk_lowering lowering = {.gpu = (struct vk_gpu *)base,
                                   .graph = graph,
                                   .node = &graph->nodes[node],
                                   .node_index = node};
    return vk_lower_node(&lowering, err);
}

// Emits the dispatches of the step that computes `node`, unless another node's step computes it.
static enum inf_code lower_step(struct vk_program *program, const struct inf_segment *segment,
                                uint32_t node, const struct vk_shader_choice *forced,
                                struct inf_error *err)
{
    struct vk_gpu *gpu = program->list.device->gpu;
    struct vk_lowering lowering = vk_lowering_of(gpu, segment, node);
    lowering.list = &program->list;
    lowering.forced = forced;
    INF_TRY(vk_lower_step(&lowering, segment, err));
    program->base.lowered_nodes += lowering.lowers;
    return INF_OK;
}

static enum inf_code compile_segment(struct vk_program *program, const struct inf_segment *segment,
                                     const struct vk_shader_choice *forced, struct inf_error *err)
{
    program->graph = segment->graph;
    vk_weights_init(&program->list.weights, program->list.device);
    if (forced == NULL)
        vk_compile_ahead(program->list.device, segment);
    for (uint32_t i = 0; i < segment->node_count; i++) {
        if (inf_is_cancelled(segment->cancelled))
            return inf_fail(err, INF_CANCELLED, "cancelled before node '%s' was compiled",
                            segment->graph->nodes[segment->nodes[i]].name);
        INF_TRY(lower_step(program, segment, segment->nodes[i], forced, err));
    }
    program->base.weight_bytes = program->list.weights.bytes;
    program->base.weights_move = true;
    program->slots = calloc(segment->slots, sizeof(*program->slots));
    if (program->slots == NULL)
        return no_memory(program->list.device, err);
    program->slot_count = segment->slots;
    for (uint32_t i = 0; i < segment->slots; i++)
        INF_TRY(
            vk_recording_init(&program->slots[i], program->list.device, program->list.count, err));
    for (uint32_t i = 0; i < segment->slots && program->list.scratch_bytes > 0; i++)
        INF_TRY(vk_span_alloc(&program->slots[i].scratch, program->list.device,
                              program->list.scratch_bytes, VK_SPAN_ARENA, err));
    program->base.scratch_bytes = program->list.scratch_bytes * segment->slots;
    return INF_OK;
}

enum inf_code vk_program_compile_choice(struct inf_program **out_program, struct inf_device *base,
                                        const struct inf_segment *segment,
                                        const struct vk_shader_choice *forced,
                                        struct inf_error *err)
{
    struct vk_program *program = calloc(1, sizeof(*program));
    if (program == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "device '%s': no host memory for a program", base->info.name);
    enum inf_code code = vk_gpu_acquire((struct vk_gpu *)base, &program->list.device, err);
    if (code == INF_OK)
        code = compile_segment(program, segment, forced, err);
    if (code == INF_OK) {
        // Store the pipeline cache here and not at exit, because a process may be killed.
        vk_pipeline_cache_store(program->list.device);
        *out_program = &program->base;
    } else {
        vk_program_destroy(&program->base);
    }
    return code;
}

bool vk_program_lost(const struct inf_program *base)
{
    return vk_device_lost(((const struct vk_program *)base)->list.device);
}

void vk_program_destroy(struct inf_program *base)
{
    struct vk_program *program = (struct vk_program *)base;
    for (uint32_t i = 0; i < program->slot_count; i++) {
        // Wait for the last run, because a run may continue after its caller stopped waiting.
        if (program->slots[i].submitted != 0)
            (void)!vk_device_wait(program->list.device, program->slots[i].submitted, UINT64_MAX,
                                  NULL);
        vk_recording_fini(&program->slots[i], program->list.device);
    }
    vk_weights_fini(&program->list.weights);
    free(program->slots);
    free(program->list.dispatches);
    vk_device_unref(&program->list.device);
    free(program);
}
