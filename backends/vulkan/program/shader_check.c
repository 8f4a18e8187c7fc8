// SPDX-License-Identifier: Apache-2.0
// Finds the steps of a program with variants that were not checked, and compiles and runs a sample
// of each (check_sample.h). The choice of variants may depend on shapes. If a sample has other
// variants than its step, a sample of another size is tried.
#include "backends/vulkan/program/shader_check.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/clock.h"
#include "backends/vulkan/device/gpu.h"
#include "backends/vulkan/program/check_sample.h"
#include "backends/vulkan/program/lower_step.h"

// How many times shorter the axes of a sample are. Of the samples that are small enough, the
// SAMPLES_MAX largest ones are tried, the largest first.
static const uint32_t scales[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 1024};
#define SAMPLES_MAX 2u

struct check {
    struct vk_gpu *gpu;
    const struct vk_program *program;
    const struct inf_segment *segment;
    uint32_t *ends;       // for each node of the segment, the node whose step computes it
    uint32_t wrong;       // number of variants that compute wrongly
    char shader[48];      // a shader that computes wrongly
    bool short_of_memory; // true: a variant was left to the next program for lack of memory
};

// Returns the largest error of a shader that computes correctly.
static double find_error_max(const struct check *check)
{
    double most = check->gpu->checks.error_max;
    return check->segment->precision == INF_PRECISION_FP16 ? most * VK_CHECK_HALF_FACTOR : most;
}

// --- running one sample ---

// The memory of a sample on the device, and its copy on the host.
struct sample_memory {
    struct inf_buffer *arena, *staging;
    struct inf_binding *bindings; // indexed by value
};

static void memory_fini(struct sample_memory *memory)
{
    inf_buffer_free(&memory->arena);
    inf_buffer_free(&memory->staging);
    free(memory->bindings);
}

static enum inf_code memory_init(struct sample_memory *memory, struct vk_gpu *gpu,
                                 const struct vk_check_sample *sample, struct inf_error *err)
{
    size_t bytes = sample->bytes + VK_SPAN_ALIGNMENT;
    INF_TRY(inf_buffer_alloc(&memory->arena, &gpu->base, bytes, INF_BUFFER_ARENA, err));
    INF_TRY(inf_buffer_alloc(&memory->staging, &gpu->base, bytes, INF_BUFFER_STAGING, err));
    memory->bindings = calloc((size_t)sample->graph->value_count + 1, sizeof *memory->bindings);
    if (memory->bindings == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "vulkan: no memory to check shaders");
    for (uint32_t v = 0; v < sample->graph->value_count; v++)
        memory->bindings[v] =
            (struct inf_binding){.buffer = memory->arena, .offset = sample->offsets[v]};
    return INF_OK;
}

static enum inf_code run_program(const struct check *check, struct inf_program *program,
                                 const struct sample_memory *memory, size_t bytes,
                                 struct inf_error *err) INF_MAY_BLOCK
{
    const struct inf_run run = {.bindings = memory->bindings,
                                .cancelled = check->segment->cancelled};
    struct inf_ticket ticket = {0};
    INF_TRY(inf_buffer_copy(memory->arena, 0, memory->staging, 0, bytes, err));
    INF_TRY(vk_program_run(program, &run, &ticket, err));
    INF_TRY(vk_program_wait(&check->gpu->base, ticket, UINT64_MAX, err));
    INF_TRY(vk_program_finish(program, &run, err));
    return inf_buffer_copy(memory->staging, 0, memory->arena, 0, bytes, err);
}

// Runs a compiled sample, and sets *out_error to its largest error.
static enum inf_code find_error(const struct check *check, struct vk_check_sample *sample,
                                struct inf_program *program, double *out_error,
                                struct inf_error *err) INF_MAY_BLOCK
{
    struct sample_memory memory = {0};
    const struct vk_shader_checks *checks = &check->gpu->checks;
    enum inf_code code = memory_init(&memory, check->gpu, sample, err);
    if (code == INF_OK)
        code = vk_check_sample_draw(sample, inf_buffer_host(memory.staging), err);
    if (code == INF_OK)
        code = run_program(check, program, &memory, sample->bytes, err);
    bool reported = code == INF_INVALID;
    if (code == INF_OK || reported)
        code = vk_check_sample_compare(sample, checks->oracle, inf_buffer_host(memory.staging),
                                       find_error_max(check), out_error, err);
    // A shader reports an invalid index. It is right if the oracle fails too: a constant index may
    // be outside of a shorter table. Otherwise the shader has read its operands wrongly.
    if (code == INF_OK && reported)
        *out_error = (double)INFINITY;
    memory_fini(&memory);
    return code;
}

// --- the variants of a step ---

static bool has_variant(const struct vk_program *program, const struct vk_variant *variant)
{
    for (uint32_t i = 0; i < program->list.count; i++)
        if (memcmp(&program->list.dispatches[i].variant, variant, sizeof *variant) == 0)
            return true;
    return false;
}

static bool is_unchecked(struct vk_gpu *gpu, const struct vk_variant *variant)
{
    return vk_shader_checks_needs(&gpu->checks, variant) &&
           !vk_variant_is_broken(gpu, variant, NULL);
}

// Returns true if the step of `node` has a variant that must be checked. If `sample` is not NULL,
// all of them must also be in that program.
static bool needs_check(const struct check *check, uint32_t node, const struct vk_program *sample)
{
    bool needs = false;
    for (uint32_t i = 0; i < check->program->list.count; i++) {
        const struct vk_dispatch *dispatch = &check->program->list.dispatches[i];
        if (dispatch->node != node || !is_unchecked(check->gpu, &dispatch->variant))
            continue;
        if (sample != NULL && !has_variant(sample, &dispatch->variant))
            return false;
        needs = true;
    }
    return needs;
}

// The result of the check of a step.
enum verdict {
    VERDICT_NONE,  // no sample was small enough
    VERDICT_OTHER, // the samples cannot be computed, or have other variants
    VERDICT_RIGHT,
    VERDICT_WRONG,
};

static void note_variant(struct check *check, const struct vk_variant *variant,
                         enum verdict verdict) INF_MAY_BLOCK
{
    struct vk_gpu *gpu = check->gpu;
    switch (verdict) {
    case VERDICT_NONE:
    case VERDICT_OTHER:
        vk_shader_checks_note_unchecked(&gpu->checks, variant);
        inf_device_add_count(&gpu->base, INF_COUNT_SHADERS_UNCHECKED, 1);
        inf_log(gpu->log, INF_LOG_DEBUG, "shader not checked device=%s shader=%s",
                gpu->base.info.name, vk_variant_shader(gpu, variant)->name);
        break;
    case VERDICT_RIGHT:
        vk_shader_checks_note_right(&gpu->checks, variant);
        inf_device_add_count(&gpu->base, INF_COUNT_SHADERS_CHECKED, 1);
        break;
    case VERDICT_WRONG:
        vk_variant_note_broken(gpu, variant, VK_VARIANT_WRONG);
        inf_device_add_count(&gpu->base, INF_COUNT_SHADERS_WRONG, 1);
        snprintf(check->shader, sizeof check->shader, "%s", vk_variant_shader(gpu, variant)->name);
        check->wrong++;
        break;
    }
}

// Records the verdict about the variants of the step that were not checked before.
static void note_step(struct check *check, uint32_t node, enum verdict verdict) INF_MAY_BLOCK
{
    for (uint32_t i = 0; i < check->program->list.count; i++) {
        const struct vk_dispatch *dispatch = &check->program->list.dispatches[i];
        if (dispatch->node == node && is_unchecked(check->gpu, &dispatch->variant))
            note_variant(check, &dispatch->variant, verdict);
    }
}

// --- checking one step ---

// Compiles and runs a sample. *out_verdict becomes VERDICT_OTHER if the sample has other variants
// than the step, or cannot be computed.
static enum inf_code try_sample(const struct check *check, struct vk_check_sample *sample,
                                uint32_t node, enum verdict *out_verdict,
                                struct inf_error *err) INF_MAY_BLOCK
{
    struct inf_program *program = NULL;
    double error = 0;
    *out_verdict = VERDICT_OTHER;
    INF_TRY(vk_program_compile_choice(&program, &check->gpu->base, &sample->segment, NULL, err));
    enum inf_code code = INF_OK;
    if (needs_check(check, node, (const struct vk_program *)program)) {
        code = find_error(check, sample, program, &error, err);
        if (code == INF_OK)
            *out_verdict = error <= find_error_max(check) ? VERDICT_RIGHT : VERDICT_WRONG;
    }
    vk_program_destroy(program);
    if (*out_verdict == VERDICT_WRONG)
        inf_log(check->gpu->log, INF_LOG_ERROR,
                "a shader computes wrongly device=%s node=\"%s\" error=%g",
                check->gpu->base.info.name, check->segment->graph->nodes[node].name, error);
    return code;
}

// Makes a sample that is `scale` times smaller, and tries it.
static enum inf_code try_scale(const struct check *check, const uint32_t *nodes, uint32_t count,
                               uint32_t scale, uint64_t work_max, enum verdict *out_verdict,
                               struct inf_error *err) INF_MAY_BLOCK
{
    struct vk_check_sample sample;
    enum inf_code code =
        vk_check_sample_init(&sample, check->segment, nodes, count, scale, work_max, err);
    if (code == INF_OK)
        code = try_sample(check, &sample, nodes[count - 1], out_verdict, err);
    vk_check_sample_fini(&sample);
    return code;
}

// Tries samples of falling size, until one of them gives a verdict. If none is as small as usual,
// tries the smallest one.
static enum inf_code try_samples(const struct check *check, const uint32_t *nodes, uint32_t count,
                                 enum verdict *out_verdict, struct inf_error *err) INF_MAY_BLOCK
{
    uint32_t tries = 0, too_large = 0;
    enum inf_code code = INF_OK;
    for (uint32_t i = 0; i < INF_ARRAY_LENGTH(scales) && tries < SAMPLES_MAX; i++) {
        code = try_scale(check, nodes, count, scales[i], VK_CHECK_WORK_USUAL, out_verdict, err);
        if (*out_verdict > VERDICT_OTHER || (code != INF_OK && code != INF_RANGE))
            break;
        if (code == INF_RANGE)
            too_large = scales[i];
        else
            tries++;
    }
    if (*out_verdict == VERDICT_NONE && too_large > 0 &&
        (code == INF_RANGE || code == INF_UNSUPPORTED))
        code = try_scale(check, nodes, count, too_large, VK_CHECK_WORK_MAX, out_verdict, err);
    return code;
}

// Lists the nodes of the step whose last node is `end`. Returns their number, or
// VK_CHECK_NODES_MAX + 1 if there are more.
static uint32_t list_step(const struct check *check, uint32_t end,
                          uint32_t nodes[VK_CHECK_NODES_MAX])
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < check->segment->node_count && count <= VK_CHECK_NODES_MAX; i++) {
        if (check->ends[i] != end)
            continue;
        if (count < VK_CHECK_NODES_MAX)
            nodes[count] = check->segment->nodes[i];
        count++;
    }
    return count;
}

// Checks the variants of the step of `node`. Only failures that end the compilation are returned.
static enum inf_code check_step(struct check *check, uint32_t node,
                                struct inf_error *err) INF_MAY_BLOCK
{
    uint32_t nodes[VK_CHECK_NODES_MAX];
    enum verdict verdict = VERDICT_NONE;
    struct inf_error why = {0};
    uint32_t count = list_step(check, node, nodes);
    if (count == 0 || count > VK_CHECK_NODES_MAX)
        return INF_OK;
    enum inf_code code = try_samples(check, nodes, count, &verdict, &why);
    if (code == INF_UNAVAILABLE || code == INF_CANCELLED) {
        if (err != NULL)
            *err = why;
        return code;
    }
    // If the step is too large, another step with the variants may be small enough.
    if (code == INF_EXHAUSTED)
        check->short_of_memory = true;
    else if (verdict != VERDICT_NONE)
        note_step(check, node, verdict);
    return INF_OK;
}

// --- checking a program ---

static bool find_ends(struct check *check)
{
    const struct inf_segment *segment = check->segment;
    check->ends = malloc(((size_t)segment->node_count + 1) * sizeof *check->ends);
    if (check->ends == NULL)
        return false;
    for (uint32_t i = 0; i < segment->node_count; i++) {
        uint32_t node = segment->nodes[i], next = node;
        while (next != INF_NODE_NONE) {
            node = next;
            next = vk_fused_into(&check->gpu->base, segment, node);
        }
        check->ends[i] = node;
    }
    return true;
}

// Checks the steps, one after the other. Begins no further check after checks.time_max_ns.
static enum inf_code check_steps(struct check *check, struct inf_error *err) INF_MAY_BLOCK
{
    uint64_t begin_ns = inf_clock_ns();
    const struct vk_dispatch_list *list = &check->program->list;
    for (uint32_t i = 0; i < list->count; i++) {
        uint32_t node = list->dispatches[i].node;
        bool tried = i > 0 && list->dispatches[i - 1].node == node;
        if (tried || !needs_check(check, node, NULL))
            continue;
        if (inf_clock_ns() - begin_ns > check->gpu->checks.time_max_ns) {
            inf_log(check->gpu->log, INF_LOG_INFO,
                    "some shaders are checked later device=%s after_ms=%" PRIu64,
                    check->gpu->base.info.name, check->gpu->checks.time_max_ns / INF_NS_PER_MS);
            return INF_OK;
        }
        if (check->ends == NULL && !find_ends(check))
            return INF_OK;
        INF_TRY(check_step(check, node, err));
    }
    // No step with these variants was small enough.
    for (uint32_t i = 0; i < list->count && !check->short_of_memory; i++)
        if (is_unchecked(check->gpu, &list->dispatches[i].variant))
            note_variant(check, &list->dispatches[i].variant, VERDICT_NONE);
    return INF_OK;
}

static enum inf_code check_program(const struct vk_program *program,
                                   const struct inf_segment *segment,
                                   struct inf_error *err) INF_MAY_BLOCK
{
    struct vk_gpu *gpu = program->list.device->gpu;
    struct check check = {.gpu = gpu, .program = program, .segment = segment};
    uint64_t begin_ns = inf_clock_ns();
    if (gpu->checks.oracle == NULL)
        return INF_OK;
    enum inf_code code = check_steps(&check, err);
    free(check.ends);
    inf_device_add_count(&gpu->base, INF_COUNT_SHADER_CHECK_US, (inf_clock_ns() - begin_ns) / 1000);
    vk_shader_checks_store(gpu);
    if (code == INF_OK && check.wrong > 0)
        return inf_fail_reason(err, INF_UNSUPPORTED, INF_REASON_OPERATOR,
                               "device '%s': shader '%s' computes wrongly", gpu->base.info.name,
                               check.shader);
    return code;
}

enum inf_code vk_program_compile_checked(struct inf_program **out_program,
                                         struct inf_device *device,
                                         const struct inf_segment *segment, uint32_t flags,
                                         struct inf_error *err)
{
    struct inf_program *program = NULL;
    (void)flags;
    INF_TRY(vk_program_compile_choice(&program, device, segment, NULL, err));
    enum inf_code code = check_program((const struct vk_program *)program, segment, err);
    if (code == INF_OK)
        *out_program = program;
    else
        vk_program_destroy(program);
    return code;
}
