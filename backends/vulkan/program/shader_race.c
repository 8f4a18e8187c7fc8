// SPDX-License-Identifier: Apache-2.0
// Compiles each candidate of a convolution as a program of one node, checks what it computes from
// random numbers, and takes its shortest time. The GPU's own timestamps are used if it has them, so
// that the time of a submission does not count.
#include "backends/vulkan/program/shader_race.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/cancel.h"
#include "backends/base/clock.h"
#include "backends/base/half.h"
#include "backends/vulkan/device/gpu.h"
#include "backends/vulkan/program/lower_node.h"
#include "backends/vulkan/program/program.h"
#include "proto/core/span.h"

// The most runs of a candidate, and the time after which no further run begins.
#define RUNS_MAX 6u
#define RUNS_NS  (10 * (uint64_t)INF_NS_PER_MS)
// A candidate whose first run takes longer than this many times the best time runs only once.
#define FAR_BEATEN 3u

// How many times larger the errors may be if weights and tensors are rounded to 16 bits.
#define ERROR_HALF_FACTOR 40

// Results are checked if the sum of their absolute products is at most this, so that neither they
// nor partial sums overflow.
#define FLOAT_MOST 1e37
#define HALF_MOST  6e4

// The values that the candidates of one node read and write.
struct race {
    struct vk_gpu *gpu;
    const struct inf_graph *graph;
    const struct inf_node *node;
    struct inf_segment segment; // the node alone
    uint32_t only[1];
    bool *lowered; // indexed by value; NULL: all values are 32-bit
    struct vk_conv_candidates candidates;
    struct inf_binding *bindings; // indexed by value
    struct inf_buffer *x, *y, *staging;
    float *x_floats;
    size_t x_count, y_count;
    double error_max;
};

// --- memory of a race ---

static size_t count_elements(const struct race *race, uint32_t value)
{
    return inf_shape_elements(&race->graph->values[value].shape);
}

// Draws numbers between -1 and 1 from a fixed sequence.
static void draw_floats(float *floats, size_t count)
{
    uint32_t state = 12345;
    for (size_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        floats[i] = (float)(state >> 8) / (float)(1 << 23) - 1;
    }
}

static enum inf_code no_memory(struct inf_error *err)
{
    return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "vulkan: no memory for a race");
}

static enum inf_code alloc_buffers(struct race *race, struct inf_error *err)
{
    struct inf_device *device = &race->gpu->base;
    size_t x_bytes = race->x_count * sizeof(float), y_bytes = race->y_count * sizeof(float);
    race->bindings = calloc((size_t)race->graph->value_count + 1, sizeof *race->bindings);
    race->x_floats = malloc(x_bytes + 1);
    if (race->bindings == NULL || race->x_floats == NULL)
        return no_memory(err);
    draw_floats(race->x_floats, race->x_count);
    INF_TRY(inf_buffer_alloc(&race->x, device, x_bytes + VK_SPAN_ALIGNMENT, INF_BUFFER_ARENA, err));
    INF_TRY(inf_buffer_alloc(&race->y, device, y_bytes + VK_SPAN_ALIGNMENT, INF_BUFFER_ARENA, err));
    INF_TRY(inf_buffer_alloc(&race->staging, device, INF_MAX(x_bytes, y_bytes) + VK_SPAN_ALIGNMENT,
                             INF_BUFFER_STAGING, err));
    race->bindings[race->node->inputs[0]].buffer = race->x;
    race->bindings[race->node->outputs[0]].buffer = race->y;
    return INF_OK;
}

// Writes the input to the device, in 16 bits if the race is about 16-bit tensors.
static enum inf_code upload_x(struct race *race, struct inf_error *err)
{
    void *staging = inf_buffer_host(race->staging);
    size_t size = race->x_count * sizeof(float);
    if (race->lowered != NULL) {
        size /= 2;
        for (size_t i = 0; i < race->x_count; i++) {
            uint16_t half = inf_half_from_float(race->x_floats[i]);
            ((uint16_t *)staging)[i] = half;
            race->x_floats[i] = inf_half_to_float(half);
        }
    } else {
        memcpy(staging, race->x_floats, size);
    }
    return inf_buffer_copy(race->x, 0, race->staging, 0, size, err);
}

static void race_fini(struct race *race)
{
    inf_buffer_free(&race->x);
    inf_buffer_free(&race->y);
    inf_buffer_free(&race->staging);
    free(race->bindings);
    free(race->x_floats);
    free(race->lowered);
}

// Prepares the race of a node and lists its candidates. Leaves candidates.count 0 if the node is no
// convolution.
static enum inf_code race_init(struct race *race, struct inf_device *device,
                               const struct inf_segment *segment, uint32_t node,
                               struct inf_error *err)
{
    *race = (struct race){.gpu = (struct vk_gpu *)device,
                          .graph = segment->graph,
                          .node = &segment->graph->nodes[node],
                          .segment = *segment,
                          .only = {node},
                          .error_max = ((struct vk_gpu *)device)->race_error_max};
    struct vk_lowering lowering = vk_lowering_of(race->gpu, segment, node);
    lowering.candidates = &race->candidates;
    lowering.lowered = NULL;
    if (vk_lower_node(&lowering, NULL) != INF_OK || race->candidates.key == 0)
        return INF_OK;
    if (lowering.half_weights) {
        race->error_max *= ERROR_HALF_FACTOR;
        race->lowered = malloc(race->graph->value_count * sizeof *race->lowered);
        if (race->lowered == NULL)
            return no_memory(err);
        memset(race->lowered, true, race->graph->value_count * sizeof *race->lowered);
    }
    race->segment.nodes = race->only;
    race->segment.node_count = 1;
    race->segment.readers = NULL;
    race->segment.slots = 1;
    race->segment.lowered = race->lowered;
    race->x_count = count_elements(race, race->node->inputs[0]);
    race->y_count = count_elements(race, race->node->outputs[0]);
    INF_TRY(alloc_buffers(race, err));
    return upload_x(race, err);
}

// --- one candidate ---

// Runs the program once. *out_ns is its time on the GPU, or between submission and end if the GPU
// has no timestamps.
static enum inf_code run_once(const struct race *race, struct inf_program *program,
                              uint64_t *out_ns, struct inf_error *err)
{
    const struct inf_run run = {
        .bindings = race->bindings, .profile = true, .cancelled = race->segment.cancelled};
    struct inf_ticket ticket = {0};
    struct inf_step_profile step;
    uint64_t start_ns = inf_clock_ns();
    INF_TRY(vk_program_run(program, &run, &ticket, err));
    INF_TRY(vk_program_wait(&race->gpu->base, ticket, race->gpu->hang_ns, err));
    *out_ns = INF_MAX(inf_clock_ns() - start_ns, UINT64_C(1));
    if (vk_program_profile(program, 0, &step, 1) == 1 && step.time_ns > 0)
        *out_ns = step.time_ns;
    return INF_OK;
}

// Checks results of the last run. Sets time->error and time->wrong.
static enum inf_code check_results(const struct race *race, struct vk_shader_time *time,
                                   struct inf_error *err)
{
    size_t element = race->lowered != NULL ? sizeof(uint16_t) : sizeof(float);
    INF_TRY(inf_buffer_copy(race->staging, 0, race->y, 0, race->y_count * element, err));
    const void *staging = inf_buffer_host(race->staging);
    float *y = NULL;
    if (race->lowered != NULL) {
        y = malloc(race->y_count * sizeof *y);
        if (y == NULL)
            return no_memory(err);
        for (size_t i = 0; i < race->y_count; i++)
            y[i] = inf_half_to_float(((const uint16_t *)staging)[i]);
    }
    const struct vk_conv *conv = &race->candidates.conv;
    uint32_t bias = race->node->input_count > conv->bias_index
                        ? race->node->inputs[conv->bias_index]
                        : INF_VALUE_NONE;
    time->error = vk_conv_sample_error(
        conv, bias != INF_VALUE_NONE ? race->graph->values[bias].data->data : NULL, race->x_floats,
        y != NULL ? y : staging, race->lowered != NULL ? HALF_MOST : FLOAT_MOST);
    time->wrong = time->error > race->error_max;
    free(y);
    return INF_OK;
}

// Excludes the shaders of a program that computed wrongly.
static void exclude_shaders(const struct race *race, const struct inf_program *base,
                            const struct vk_shader_time *time)
{
    const struct vk_program *program = (const struct vk_program *)base;
    inf_log(race->gpu->log, INF_LOG_ERROR,
            "a shader computes wrongly device=%s shader=%s node=\"%s\" error=%g",
            race->gpu->base.info.name, time->name, race->node->name, time->error);
    for (uint32_t i = 0; i < program->list.count; i++)
        vk_variant_note_broken(race->gpu, &program->list.dispatches[i].variant);
}

static enum inf_code time_program(const struct race *race, struct inf_program *program,
                                  uint64_t best_ns, struct vk_shader_time *time,
                                  struct inf_error *err)
{
    uint64_t spent_ns = 0, least_ns;
    INF_TRY(run_once(race, program, &least_ns, err)); // uploads the weights
    INF_TRY(check_results(race, time, err));
    if (time->wrong) {
        exclude_shaders(race, program, time);
        return INF_OK;
    }
    for (uint32_t i = 0; i < RUNS_MAX && spent_ns < RUNS_NS; i++) {
        uint64_t time_ns;
        INF_TRY(run_once(race, program, &time_ns, err));
        spent_ns += time_ns;
        least_ns = i == 0 ? time_ns : INF_MIN(least_ns, time_ns);
        if (best_ns > 0 && least_ns / FAR_BEATEN > best_ns)
            break;
    }
    time->least_ns = least_ns;
    return INF_OK;
}

static enum inf_code try_candidate(const struct race *race, uint32_t index, uint64_t best_ns,
                                   struct vk_shader_time *time, struct inf_error *err)
{
    struct inf_program *program = NULL;
    *time = (struct vk_shader_time){.error = -1};
    vk_conv_choice_print(&race->candidates.list[index], time->name);
    INF_TRY(vk_program_compile_choice(&program, &race->gpu->base, &race->segment,
                                      &race->candidates.list[index], err));
    program->device = &race->gpu->base;
    program->slots = 1;
    enum inf_code code = time_program(race, program, best_ns, time, err);
    vk_program_destroy(program);
    return code;
}

// --- races ---

uint64_t vk_shader_race_key(struct inf_device *device, const struct inf_segment *segment,
                            uint32_t node)
{
    struct vk_conv_candidates candidates = {0};
    struct vk_lowering lowering = vk_lowering_of((struct vk_gpu *)device, segment, node);
    lowering.candidates = &candidates;
    lowering.lowered = NULL;
    return vk_lower_node(&lowering, NULL) == INF_OK && candidates.count > 1 ? candidates.key : 0;
}

enum inf_code vk_shader_race_node(struct vk_shader_time times[VK_CONV_CANDIDATES],
                                  uint32_t *out_count, uint64_t *out_key, struct inf_device *device,
                                  const struct inf_segment *segment, uint32_t node,
                                  struct inf_error *err)
{
    struct race race;
    uint64_t best_ns = 0;
    enum inf_code code = race_init(&race, device, segment, node, err);
    *out_count = 0;
    *out_key = race.candidates.key;
    for (uint32_t i = 0; code == INF_OK && i < race.candidates.count; i++) {
        if (inf_is_cancelled(segment->cancelled)) {
            code = inf_fail(err, INF_CANCELLED, "cancelled before a race ended");
            break;
        }
        // A candidate that fails, such as for lack of memory, does not end the race.
        if (try_candidate(&race, i, best_ns, &times[i], NULL) != INF_OK)
            times[i].least_ns = 0;
        else if (times[i].least_ns > 0 && (best_ns == 0 || times[i].least_ns < best_ns))
            best_ns = times[i].least_ns;
        *out_count = i + 1;
    }
    race_fini(&race);
    return code;
}

static void race_and_record(struct inf_device *device, const struct inf_segment *segment,
                            uint32_t node) INF_MAY_BLOCK
{
    struct vk_gpu *gpu = (struct vk_gpu *)device;
    struct vk_shader_time times[VK_CONV_CANDIDATES];
    struct inf_race_time plain[VK_CONV_CANDIDATES];
    char what[160];
    uint32_t count;
    uint64_t key, start_ns = inf_clock_ns();
    if (vk_shader_race_node(times, &count, &key, device, segment, node, NULL) != INF_OK ||
        count == 0)
        return;
    for (uint32_t i = 0; i < count; i++)
        plain[i] = (struct inf_race_time){times[i].name, times[i].least_ns};
    // The rule's choice may have failed; it must not win with a time of 0.
    if (plain[0].least_ns == 0)
        plain[0].least_ns = UINT64_MAX;
    snprintf(what, sizeof what, "device=%s node=\"%.96s\"", gpu->base.info.name,
             segment->graph->nodes[node].name);
    inf_race_results_record(gpu->races, key, inf_clock_ns() - start_ns, what, plain, count);
    inf_race_results_count(gpu->races, INF_RACE_CHOICE_MEASURED);
}

void vk_shader_race_segment(struct inf_device *device, const struct inf_segment *segment)
{
    struct vk_gpu *gpu = (struct vk_gpu *)device;
    char winner[INF_RACE_WINNER_TEXT];
    if (gpu->races == NULL || segment->by_rule)
        return;
    for (uint32_t i = 0; i < segment->node_count && !inf_is_cancelled(segment->cancelled); i++) {
        uint64_t key = vk_shader_race_key(device, segment, segment->nodes[i]);
        if (key == 0)
            continue;
        if (inf_race_results_find(gpu->races, key, 0, winner))
            inf_race_results_count(gpu->races, INF_RACE_CHOICE_KNOWN);
        else if (!inf_race_results_may_race(gpu->races))
            inf_race_results_count(gpu->races, INF_RACE_CHOICE_RULE);
        else if (segment->races.known_until_ns != 0)
            inf_race_results_count(gpu->races, INF_RACE_CHOICE_LATER);
        else if (inf_race_gate_wait(segment->races.gate))
            race_and_record(device, segment, segment->nodes[i]);
    }
}
