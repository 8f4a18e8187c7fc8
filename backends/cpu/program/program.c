// SPDX-License-Identifier: Apache-2.0
// Compiles a segment to steps, runs the steps, and reports their times. Consecutive native steps
// form a parallel region, for which the threads of the slot are woken once.
#include "backends/cpu/program/program.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "backends/base/cancel.h"
#include "backends/base/clock.h"
#include "backends/cpu/attention/attention.h"
#include "backends/cpu/core/counted_memory.h"
#include "backends/cpu/native/fused_chain.h"
#include "backends/cpu/native/row_pipeline.h"
#include "backends/cpu/program/device.h"
#include "backends/cpu/program/dot_peak.h"
#include "backends/cpu/program/fusion_select.h"
#include "backends/cpu/program/kernel_select.h"
#include "backends/cpu/program/step.h"
#include "proto/core/span.h"

// Wakes several threads for a parallel region only if its estimated single-thread time is at least
// twice the time of a wake-up. The estimate assumes CORE_MACS_PER_NS multiply-adds per nanosecond.
// The measured wake-up time is clamped to the bounds below, in case the measurement was disturbed.
#define CORE_MACS_PER_NS 50
#define TEAM_MACS_MIN    ((size_t)1000000)
#define TEAM_MACS_MAX    ((size_t)20000000)

struct cpu_program {
    struct inf_program base;
    struct inf_cpu_core_set *cores;
    struct inf_arena arena;     // memory of the steps
    struct inf_cpu_step *steps; // the steps of slot 0, then those of slot 1, ...
    uint32_t step_count;        // steps in one slot
    uint32_t slots;
    struct inf_cpu_memory *scratch; // the scratch memory of all slots, one block for each slot
    struct inf_cpu_team *teams;     // indexed by slot
    // Threads are woken for a region if it has at least this many multiply-adds.
    size_t team_macs;
};

// --- creating steps ---

// Releases what the create() of a kernel set up before it returned INF_UNSUPPORTED, so that another
// kernel can create the step.
static void reset_step(struct inf_cpu_step *step)
{
    inf_cpu_step_unpack(step);
    inf_cpu_memory_free(&step->memory);
    step->state = NULL;
    step->scratch_count = 0;
    step->macs = 0;
}

// Creates the step of a single node with the kernel that is selected for the node. If that kernel
// needs a race and declines this node, the kernel that the fixed rule chooses creates the step: a
// recorded winner is valid for all nodes of the same kind, but a kernel can decline their weights.
static enum inf_code create_node_step(struct inf_cpu_step *step, const struct inf_cpu_races *races,
                                      struct inf_error *err)
{
    const struct inf_cpu_kernel *kernel;
    INF_TRY(inf_cpu_kernel_select(&kernel, races, step, err));
    enum inf_code code = inf_cpu_step_create(step, kernel, err);
    if (code != INF_UNSUPPORTED || !kernel->needs_race)
        return code;
    reset_step(step);
    INF_TRY(inf_cpu_kernel_find(&kernel, step->graph, step->node, err));
    return inf_cpu_step_create(step, kernel, err);
}

// Restores the evicted constants of the nodes of a chain, except the weights of its convolution if
// `conv_packs` says that they are only packed.
static enum inf_code restore_chain(const struct inf_graph *graph, const struct inf_cpu_chain *chain,
                                   uint32_t conv_packs, struct inf_error *err)
{
    const uint32_t others[] = {chain->depthwise, chain->add, chain->prelu, chain->pad};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(others); i++)
        if (others[i] != INF_NODE_NONE)
            INF_TRY(inf_cpu_restore_constants(graph, others[i], 0, err));
    return inf_cpu_restore_constants(graph, chain->conv, conv_packs, err);
}

// Creates the step of a fused chain. If the chain has no depthwise convolution, and the kernel that
// is selected for its conv2d node can compute chains, that kernel creates the step, unless it
// declines the chain.
static enum inf_code create_chain_step(struct inf_cpu_step *step, const struct inf_cpu_chain *chain,
                                       const struct inf_cpu_races *races, struct inf_error *err)
{
    const struct inf_cpu_kernel *kernel;
    struct inf_cpu_step of_conv = *step;
    of_conv.index = chain->conv;
    of_conv.node = &step->graph->nodes[chain->conv];
    if (races->results != NULL && chain->depthwise == INF_NODE_NONE &&
        inf_cpu_kernel_select(&kernel, races, &of_conv, NULL) == INF_OK &&
        kernel->create_chain != NULL) {
        INF_TRY(restore_chain(step->graph, chain, kernel->packs, err));
        enum inf_code code = kernel->create_chain(step, chain, err);
        if (code != INF_UNSUPPORTED)
            return code;
        reset_step(step);
    }
    INF_TRY(restore_chain(step->graph, chain, INF_CPU_PACKS(1), err));
    return inf_fused_chain_create(step, chain, err);
}

static enum inf_code create_pipeline_step(struct inf_cpu_step *step,
                                          const struct inf_cpu_row_pipeline *pipeline,
                                          struct inf_error *err)
{
    for (uint32_t i = 0; i < pipeline->count; i++)
        INF_TRY(restore_chain(step->graph, &pipeline->chains[i], INF_CPU_PACKS(1), err));
    return inf_row_pipeline_create(step, pipeline, err);
}

static enum inf_code create_step(struct inf_cpu_step *step, const struct inf_segment *segment,
                                 enum inf_cpu_fusion_level fusing, struct inf_race_results *results,
                                 struct inf_error *err)
{
    struct inf_attention attention;
    struct inf_cpu_chain chain;
    struct inf_cpu_row_pipeline pipeline;
    INF_TRY(inf_cpu_step_init_operands(step, err));
    const struct inf_cpu_races races = {.results = segment->by_rule ? NULL : results,
                                        .how = segment->races};
    if (inf_attention_find(&attention, step->graph, step->index, segment,
                           INF_CPU_ATTENTION_LEAST)) {
        INF_TRY(inf_cpu_attention_create(step, &attention, err));
        inf_cpu_step_bind_placeholders(step);
    } else if (fusing == INF_CPU_FUSE_PIPELINES &&
               inf_cpu_row_pipeline_find(&pipeline, step->graph, step->index, segment)) {
        INF_TRY(create_pipeline_step(step, &pipeline, err));
        inf_cpu_step_bind_placeholders(step);
    } else if (fusing != INF_CPU_FUSE_NONE &&
               inf_cpu_chain_find(&chain, step->graph, step->index, segment) &&
               !inf_cpu_chain_is_node(&chain)) {
        INF_TRY(create_chain_step(step, &chain, &races, err));
        inf_cpu_step_bind_placeholders(step);
    } else {
        INF_TRY(create_node_step(step, &races, err));
    }
    return inf_cpu_step_setup(step, err);
}

// --- creating and destroying programs ---

// Allocates, for each slot, one block of scratch memory that all its steps use in turn.
static enum inf_code share_scratch(struct cpu_program *program, struct inf_error *err)
{
    size_t most = 0;
    size_t size;
    for (uint32_t i = 0; i < program->step_count; i++)
        most = INF_MAX(most, program->steps[i].scratch_count);
    if (most == 0)
        return INF_OK;
    for (uint32_t slot = 0; slot < program->slots; slot++) {
        struct inf_cpu_step *steps = program->steps + (size_t)slot * program->step_count;
        float *scratch = NULL;
        if (inf_size_mul(most, sizeof(float), &size))
            scratch = inf_cpu_memory_alloc(&program->scratch, size);
        if (scratch == NULL)
            return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                                   "cpu: no memory for %zu numbers of scratch", most);
        program->base.scratch_bytes += size;
        for (uint32_t i = 0; i < program->step_count; i++)
            steps[i].scratch = steps[i].scratch_count > 0 ? scratch : NULL;
    }
    return INF_OK;
}

// A node that gets a step, and the largest fused group that this step may compute.
struct planned_step {
    uint32_t node;
    enum inf_cpu_fusion_level fusing;
};

// Lists the steps of the segment. The fusion level is *most if `most` is not NULL, otherwise the
// level selected for each node.
static uint32_t list_steps(struct planned_step *steps, const struct inf_cpu_device *device,
                           const struct inf_segment *segment, const enum inf_cpu_fusion_level *most)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < segment->node_count; i++) {
        uint32_t node = segment->nodes[i];
        enum inf_cpu_fusion_level fusing =
            most != NULL ? *most : inf_cpu_fusion_level_of(device, segment, node);
        if (inf_attention_end(segment->graph, node, segment, INF_CPU_ATTENTION_LEAST) ==
                INF_NODE_NONE &&
            inf_cpu_fused_into(segment->graph, node, segment, fusing) == INF_NODE_NONE)
            steps[count++] = (struct planned_step){node, fusing};
    }
    return count;
}

static void step_init(struct inf_cpu_step *step, struct cpu_program *program,
                      struct inf_cpu_device *device, const struct inf_segment *segment,
                      uint32_t slot)
{
    step->graph = segment->graph;
    step->node = &segment->graph->nodes[step->index];
    step->team = &program->teams[slot];
    // An operator of XNNPACK uses either all threads of the pool or one.
    step->pool = step->team->threads == device->cores.threads ? device->cores.pool : NULL;
    step->arena = &program->arena;
    step->device = &device->base;
    step->packs = &device->packs;
    step->isa = device->isa;
    step->bf16 = segment->precision == INF_PRECISION_BF16;
    step->bf16_dot = device->bf16_dot;
    step->pinned = segment->pinned;
}

static enum inf_code program_fill(struct cpu_program *program, struct inf_cpu_device *device,
                                  const struct inf_segment *segment,
                                  const enum inf_cpu_fusion_level *most, struct inf_error *err)
{
    size_t count;
    if (!inf_size_mul(segment->node_count, segment->slots, &count))
        return inf_fail(err, INF_EXHAUSTED, "cpu: %" PRIu32 " slots are too many", segment->slots);
    program->steps = calloc(count + 1, sizeof(*program->steps));
    program->teams = calloc((size_t)segment->slots + 1, sizeof(*program->teams));
    struct planned_step *planned =
        inf_arena_alloc(&program->arena, ((size_t)segment->node_count + 1) * sizeof(*planned));
    if (program->steps == NULL || program->teams == NULL || planned == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "cpu: no memory for %zu steps", count);
    program->slots = segment->slots;
    program->cores = &device->cores;
    program->team_macs = (size_t)device->wake_ns * 2 * CORE_MACS_PER_NS;
    program->team_macs = INF_MAX(INF_MIN(program->team_macs, TEAM_MACS_MAX), TEAM_MACS_MIN);
    program->step_count = list_steps(planned, device, segment, most);
    for (uint32_t slot = 0; slot < segment->slots; slot++)
        INF_TRY(inf_cpu_team_init(&program->teams[slot], &device->cores,
                                  inf_cpu_device_threads(device, segment), err));
    for (size_t i = 0; i < (size_t)program->step_count * segment->slots; i++) {
        struct inf_cpu_step *step = &program->steps[i];
        const struct planned_step *like = &planned[i % program->step_count];
        uint32_t slot = (uint32_t)(i / program->step_count);
        step->index = like->node;
        step_init(step, program, device, segment, slot);
        if (inf_is_cancelled(segment->cancelled))
            return inf_fail(err, INF_CANCELLED, "cancelled before node '%s' was compiled",
                            step->node->name);
        INF_TRY(create_step(step, segment, like->fusing, device->race_results, err));
        program->base.lowered_nodes += slot == 0 ? step->lowered_nodes : 0;
    }
    return share_scratch(program, err);
}

static enum inf_code compile_program(struct inf_program **out_program,
                                     struct inf_cpu_device *device,
                                     const struct inf_segment *segment,
                                     const enum inf_cpu_fusion_level *most, struct inf_error *err)
{
    struct cpu_program *program = calloc(1, sizeof(*program));
    if (program == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "cpu: no memory");
    int64_t before = inf_cpu_memory_thread_bytes();
    enum inf_code code = program_fill(program, device, segment, most, err);
    if (code != INF_OK) {
        inf_cpu_program_destroy(&program->base);
        return code;
    }
    program->base.weight_bytes =
        (uint64_t)(inf_cpu_memory_thread_bytes() - before) - program->base.scratch_bytes;
    *out_program = &program->base;
    return INF_OK;
}

enum inf_code inf_cpu_program_compile(struct inf_program **out_program, struct inf_device *base,
                                      const struct inf_segment *segment, uint32_t flags,
                                      struct inf_error *err)
{
    (void)flags;
    return compile_program(out_program, (struct inf_cpu_device *)base, segment, NULL, err);
}

enum inf_code inf_cpu_program_compile_at_level(struct inf_program **out_program,
                                               struct inf_cpu_device *device,
                                               const struct inf_segment *segment,
                                               enum inf_cpu_fusion_level most,
                                               struct inf_error *err)
{
    return compile_program(out_program, device, segment, &most, err);
}

void inf_cpu_program_destroy(struct inf_program *base)
{
    struct cpu_program *program = (struct cpu_program *)base;
    size_t count = (size_t)program->step_count * program->slots;
    for (size_t i = 0; i < count; i++)
        inf_cpu_step_fini(&program->steps[i]);
    for (uint32_t slot = 0; program->teams != NULL && slot < program->slots; slot++)
        inf_cpu_team_fini(&program->teams[slot]);
    free(program->teams);
    free(program->steps);
    inf_cpu_memory_free(&program->scratch);
    inf_arena_fini(&program->arena);
    free(program);
}

// --- running the steps of a program ---

// Sets the operand addresses of the step for a run. Returns true if an address differs from the
// last run.
static bool step_bind(struct inf_cpu_step *step, const struct inf_binding *bindings)
{
    const struct inf_node *node = step->node;
    bool moved = false;
    for (uint32_t i = 0; i < step->operand_count; i++) {
        uint32_t value = step->operands[i];
        if (value == INF_VALUE_NONE || inf_graph_is_const(step->graph, value))
            continue;
        moved |= step->inputs[i] != bindings[value].host;
        step->inputs[i] = bindings[value].host;
    }
    moved |= step->output != bindings[node->outputs[0]].host;
    step->output = bindings[node->outputs[0]].host;
    for (uint32_t i = 0; i < node->output_count; i++)
        step->outputs[i] = bindings[node->outputs[i]].host;
    return moved;
}

static enum inf_code run_profiled(struct inf_cpu_step *step, struct inf_error *err)
{
    struct inf_cpu_team *team = step->team;
    uint32_t used_before = team->used;
    uint64_t start_ns = inf_clock_ns();
    team->used = 1;
    enum inf_code code = inf_cpu_step_run(step, err);
    step->time_ns = inf_clock_ns() - start_ns;
    step->threads = team->used;
    team->used = INF_MAX(team->used, used_before);
    return code;
}

static enum inf_code run_step(struct inf_cpu_step *step, const struct inf_run *run,
                              struct inf_error *err)
{
    if (step_bind(step, run->bindings))
        INF_TRY(inf_cpu_step_setup(step, err));
    return run->profile ? run_profiled(step, err) : inf_cpu_step_run(step, err);
}

// Consecutive steps that either all run on XNNPACK, or are all native. Native steps form one
// parallel region.
struct region {
    struct inf_cpu_core_set *cores;
    struct inf_cpu_step *steps;
    uint32_t count;
    const struct inf_run *run;
    struct inf_error *err;
    enum inf_code code;
};

// Pauses while more urgent runs use the device. The run has no core meanwhile, and its helpers
// leave because there is no work.
static void pause_run(const struct region *region, uint32_t threads)
{
    inf_cpu_core_set_end_run(region->cores, threads);
    inf_run_step_pause(region->run->step, region->run->cancelled);
    inf_cpu_core_set_begin_run(region->cores, threads);
}

static enum inf_code run_steps(const struct region *region)
{
    const struct inf_run *run = region->run;
    for (uint32_t i = 0; i < region->count; i++) {
        struct inf_cpu_step *step = &region->steps[i];
        if (inf_run_step_must_pause(run->step))
            pause_run(region, step->team->threads);
        if (inf_is_cancelled(run->cancelled))
            return inf_fail(region->err, INF_CANCELLED, "cancelled before node '%s'",
                            step->node->name);
        inf_run_step_set(run->step, step->node->name);
        INF_TRY(run_step(step, run, region->err));
    }
    return INF_OK;
}

static void run_region_steps(void *context)
{
    struct region *region = context;
    region->code = run_steps(region);
}

static enum inf_code run_regions(struct cpu_program *program, const struct inf_run *run,
                                 struct inf_error *err)
{
    struct inf_cpu_step *steps = program->steps + (size_t)run->slot * program->step_count;
    uint32_t end;
    for (uint32_t at = 0; at < program->step_count; at = end) {
        struct region region = {
            .cores = program->cores, .steps = &steps[at], .run = run, .err = err};
        bool xnn = inf_cpu_step_is_xnn(&steps[at]);
        size_t macs = 0;
        for (end = at; end < program->step_count && inf_cpu_step_is_xnn(&steps[end]) == xnn; end++)
            macs += steps[end].macs;
        region.count = end - at;
        if (!xnn && macs >= program->team_macs)
            inf_cpu_team_run_region(steps[at].team, run_region_steps, &region);
        else
            run_region_steps(&region);
        if (region.code != INF_OK)
            return region.code;
    }
    return INF_OK;
}

enum inf_code inf_cpu_program_run(struct inf_program *base, const struct inf_run *run,
                                  struct inf_ticket *ticket, struct inf_error *err)
{
    struct cpu_program *program = (struct cpu_program *)base;
    assert(run->slot < program->slots);
    struct inf_cpu_team *team = &program->teams[run->slot];
    inf_cpu_core_set_begin_run(program->cores, team->threads);
    inf_cpu_team_begin_count(team);
    enum inf_code code = run_regions(program, run, err);
    uint64_t helper_ns = inf_cpu_team_end_count(team);
    inf_cpu_core_set_end_run(program->cores, team->threads);
    if (run->core_use != NULL) {
        run->core_use->helper_ns += helper_ns;
        run->core_use->threads = INF_MAX(run->core_use->threads, team->used);
    }
    ticket->value = 0;
    return code;
}

struct inf_blob_form *inf_cpu_program_packed(const struct inf_program *base, uint32_t node,
                                             uint32_t input)
{
    const struct cpu_program *program = (const struct cpu_program *)base;
    // Count the packs of slot 0 only, because the steps of all slots share the same packs.
    for (uint32_t i = 0; i < program->step_count; i++)
        for (const struct inf_cpu_pack_use *use = program->steps[i].pack_uses; use != NULL;
             use = use->next)
            if (use->node == node && use->input == input)
                return &use->pack->form;
    return NULL;
}

// Returns the peak rate of dot products on one core. The first call measures it. If two threads
// measure it at once, the later result is kept.
static double find_dot_rate(struct inf_cpu_device *device)
{
    double rate = atomic_load(&device->dot_rate);
    if (rate > 0)
        return rate;
    rate = inf_cpu_dot_peak_measure(device->isa->q8->gemm);
    atomic_store(&device->dot_rate, rate);
    return rate;
}

static bool has_dot_products(const struct inf_cpu_step *step)
{
    return step->node->op == INF_OP_QCONV2D || step->node->op == INF_OP_QMATMUL;
}

uint32_t inf_cpu_program_profile(const struct inf_program *base, uint32_t slot,
                                 struct inf_step_profile *profile, uint32_t capacity)
{
    const struct cpu_program *program = (const struct cpu_program *)base;
    const struct inf_cpu_step *steps = program->steps + (size_t)slot * program->step_count;
    struct inf_cpu_device *device = (struct inf_cpu_device *)base->device;
    for (uint32_t i = 0; i < program->step_count && i < capacity; i++)
        profile[i] = (struct inf_step_profile){
            .node = steps[i].index,
            .time_ns = steps[i].time_ns,
            .kernel = steps[i].kernel,
            .threads = steps[i].threads,
            .dot_rate = has_dot_products(&steps[i]) ? find_dot_rate(device) : 0};
    return program->step_count;
}
