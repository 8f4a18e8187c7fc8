// SPDX-License-Identifier: Apache-2.0
// Compiles each candidate as a program of its own, checks what it computes from random numbers, and
// takes its shortest time. The GPU's own timestamps are used if it has them, so that the time of a
// submission does not count.
#include "backends/vulkan/program/shader_race.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/cancel.h"
#include "backends/base/clock.h"
#include "backends/base/half.h"
#include "backends/base/random.h"
#include "backends/vulkan/device/gpu.h"
#include "backends/vulkan/ops/sample.h"
#include "backends/vulkan/ops/winograd.h"
#include "backends/vulkan/program/attention.h"
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

// The least magnitude that a pixel counts as when Winograd's algorithm is checked: about the mean
// of the random inputs. The rounding errors of a result are in proportion to all weights and pixels
// of its tile, even if the result is 0 because the products at large weights are.
#define WINOGRAD_PIXEL_MIN 0.5

// The largest number of tensors that a race fills with random numbers.
#define TENSORS_MAX 4u

// A tensor that the candidates read or write.
struct tensor {
    uint32_t value;
    size_t count; // elements
    struct inf_buffer *buffer;
    float *floats; // its elements on the host; NULL: the candidates do not read it
};

// The values that the candidates of one node, or of one attention, read and write.
struct race {
    struct vk_gpu *gpu;
    const struct inf_graph *graph;
    const struct inf_node *node;         // the node that races, or the last one of the attention
    struct inf_segment segment;          // the node alone, or the nodes of the attention
    uint32_t nodes[INF_ATTENTION_NODES]; // of the segment
    bool *lowered;                       // indexed by value; NULL: all values are 32-bit
    struct vk_shader_candidates candidates;
    struct inf_binding *bindings; // indexed by value
    struct inf_buffer *staging;
    struct tensor inputs[TENSORS_MAX], y;
    struct tensor between[INF_ATTENTION_NODES]; // results of the other nodes of an attention
    uint32_t input_count;
    double error_max;
};

// --- memory of a race ---

// Draws numbers between -1 and 1 from the fixed sequence `seed`.
static void draw_floats(float *floats, size_t count, uint32_t seed)
{
    uint32_t state = 12345 + seed;
    for (size_t i = 0; i < count; i++)
        floats[i] = inf_random_float(&state);
}

static enum inf_code no_memory(struct inf_error *err)
{
    return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "vulkan: no memory for a race");
}

static enum inf_code alloc_tensor(struct race *race, struct tensor *tensor, uint32_t value,
                                  struct inf_error *err)
{
    struct inf_device *device = &race->gpu->base;
    tensor->value = value;
    tensor->count = inf_shape_elements(&race->graph->values[value].shape);
    INF_TRY(inf_buffer_alloc(&tensor->buffer, device,
                             tensor->count * sizeof(float) + VK_SPAN_ALIGNMENT, INF_BUFFER_ARENA,
                             err));
    race->bindings[value].buffer = tensor->buffer;
    return INF_OK;
}

// Allocates a tensor for an input of the candidates, and draws its elements. Does nothing if the
// input is absent, is a constant or was already added.
static enum inf_code add_input(struct race *race, uint32_t value, struct inf_error *err)
{
    if (value == INF_VALUE_NONE || race->graph->values[value].data != NULL ||
        race->bindings[value].buffer != NULL)
        return INF_OK;
    if (race->input_count == TENSORS_MAX)
        return inf_fail(err, INF_UNSUPPORTED, "vulkan: a race has at most %u inputs", TENSORS_MAX);
    struct tensor *input = &race->inputs[race->input_count];
    INF_TRY(alloc_tensor(race, input, value, err));
    input->floats = malloc(input->count * sizeof(float) + 1);
    if (input->floats == NULL)
        return no_memory(err);
    draw_floats(input->floats, input->count, race->input_count++);
    return INF_OK;
}

// Allocates the results of the nodes of an attention, and draws its inputs. Reshapes between the
// nodes have no step: the result of a reshape is bound to the buffer of its input.
static enum inf_code alloc_attention(struct race *race, struct inf_error *err)
{
    const struct inf_attention *attention = &race->candidates.attention;
    const struct inf_graph *graph = race->graph;
    const uint32_t inputs[] = {attention->q, attention->keys, attention->values, attention->mask};
    for (uint32_t i = 0; i < INF_ARRAY_LENGTH(inputs); i++)
        INF_TRY(add_input(race, inputs[i], err));
    for (uint32_t i = 1; i < attention->count; i++)
        INF_TRY(alloc_tensor(race, &race->between[i], graph->nodes[attention->nodes[i]].outputs[0],
                             err));
    for (uint32_t i = 0; i < attention->count; i++) {
        const struct inf_node *node = &graph->nodes[attention->nodes[i]];
        for (uint32_t k = 0; k < node->input_count; k++) {
            uint32_t value = node->inputs[k];
            while (race->bindings[value].buffer == NULL && graph->values[value].data == NULL &&
                   graph->values[value].producer != INF_NODE_NONE)
                value = graph->nodes[graph->values[value].producer].inputs[0];
            race->bindings[node->inputs[k]] = race->bindings[value];
        }
    }
    return INF_OK;
}

static enum inf_code alloc_buffers(struct race *race, struct inf_error *err)
{
    size_t most = 0;
    race->bindings = calloc((size_t)race->graph->value_count + 1, sizeof *race->bindings);
    if (race->bindings == NULL)
        return no_memory(err);
    INF_TRY(alloc_tensor(race, &race->y, race->node->outputs[0], err));
    if (race->candidates.subject == VK_RACE_ATTENTION)
        INF_TRY(alloc_attention(race, err));
    else
        for (uint32_t i = 0; i < race->node->input_count; i++)
            INF_TRY(add_input(race, race->node->inputs[i], err));
    for (uint32_t i = 0; i < race->input_count; i++)
        most = INF_MAX(most, race->inputs[i].count);
    return inf_buffer_alloc(&race->staging, &race->gpu->base,
                            INF_MAX(most, race->y.count) * sizeof(float) + VK_SPAN_ALIGNMENT,
                            INF_BUFFER_STAGING, err);
}

// Writes an input to the device, in 16 bits if the race is about 16-bit tensors.
static enum inf_code upload_input(struct race *race, const struct tensor *input,
                                  struct inf_error *err)
{
    void *staging = inf_buffer_host(race->staging);
    size_t size = input->count * sizeof(float);
    if (race->lowered != NULL) {
        size /= 2;
        for (size_t i = 0; i < input->count; i++) {
            uint16_t half = inf_half_from_float(input->floats[i]);
            ((uint16_t *)staging)[i] = half;
            input->floats[i] = inf_half_to_float(half);
        }
    } else {
        memcpy(staging, input->floats, size);
    }
    return inf_buffer_copy(input->buffer, 0, race->staging, 0, size, err);
}

static void tensor_fini(struct tensor *tensor)
{
    inf_buffer_free(&tensor->buffer);
    free(tensor->floats);
}

static void race_fini(struct race *race)
{
    for (uint32_t i = 0; i < TENSORS_MAX; i++)
        tensor_fini(&race->inputs[i]);
    for (uint32_t i = 0; i < INF_ATTENTION_NODES; i++)
        tensor_fini(&race->between[i]);
    tensor_fini(&race->y);
    inf_buffer_free(&race->staging);
    free(race->bindings);
    free(race->lowered);
}

// Lists the candidates for node `node`; if `attention` is true, for the attention whose last node
// it is. Sets candidates->key to 0 if there is no choice. Returns true if tensors are 16-bit.
static bool list_candidates(struct vk_shader_candidates *candidates, struct inf_device *device,
                            const struct inf_segment *segment, uint32_t node, bool attention)
{
    *candidates = (struct vk_shader_candidates){0};
    struct vk_lowering lowering = vk_lowering_of((struct vk_gpu *)device, segment, node);
    lowering.candidates = candidates;
    lowering.lowered = NULL;
    if (attention)
        vk_attention_list(&lowering, segment);
    else if (vk_lower_node(&lowering, NULL) != INF_OK)
        candidates->key = 0;
    return lowering.half_weights;
}

// Fills in the segment that all candidates compile.
static void choose_nodes(struct race *race, uint32_t node)
{
    const struct inf_attention *attention = &race->candidates.attention;
    struct inf_segment *segment = &race->segment;
    bool one = race->candidates.subject != VK_RACE_ATTENTION;
    segment->nodes = race->nodes;
    segment->node_count = one ? 1 : attention->count;
    // Nodes are computed in the order of their indices.
    for (uint32_t i = 0; i < segment->node_count; i++)
        race->nodes[i] = one ? node : attention->nodes[attention->count - 1 - i];
    if (one)
        segment->readers = NULL;
    segment->slots = 1;
    segment->lowered = race->lowered;
}

// Prepares a race and lists its candidates. Leaves candidates.count 0 if there is no choice.
static enum inf_code race_init(struct race *race, struct inf_device *device,
                               const struct inf_segment *segment, uint32_t node, bool attention,
                               struct inf_error *err)
{
    *race = (struct race){.gpu = (struct vk_gpu *)device,
                          .graph = segment->graph,
                          .node = &segment->graph->nodes[node],
                          .segment = *segment,
                          .error_max = ((struct vk_gpu *)device)->race_error_max};
    bool half = list_candidates(&race->candidates, device, segment, node, attention);
    if (race->candidates.key == 0) {
        race->candidates.count = 0;
        return INF_OK;
    }
    if (half) {
        race->error_max *= ERROR_HALF_FACTOR;
        race->lowered = malloc(race->graph->value_count * sizeof *race->lowered);
        if (race->lowered == NULL)
            return no_memory(err);
        // Constants that a shader reads as they are in the graph stay in 32 bits.
        for (uint32_t i = 0; i < race->graph->value_count; i++)
            race->lowered[i] = race->graph->values[i].data == NULL;
    }
    choose_nodes(race, node);
    INF_TRY(alloc_buffers(race, err));
    for (uint32_t i = 0; i < race->input_count; i++)
        INF_TRY(upload_input(race, &race->inputs[i], err));
    return INF_OK;
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
    struct inf_step_profile steps[INF_ATTENTION_NODES];
    uint64_t start_ns = inf_clock_ns(), sum_ns = 0;
    INF_TRY(vk_program_run(program, &run, &ticket, err));
    INF_TRY(vk_program_wait(&race->gpu->base, ticket, race->gpu->hang_ns, err));
    *out_ns = INF_MAX(inf_clock_ns() - start_ns, UINT64_C(1));
    uint32_t count = vk_program_profile(program, 0, steps, INF_ARRAY_LENGTH(steps));
    for (uint32_t i = 0; i < count && i < INF_ARRAY_LENGTH(steps); i++)
        sum_ns += steps[i].time_ns;
    if (sum_ns > 0)
        *out_ns = sum_ns;
    return INF_OK;
}

// Returns the elements of a value that the candidates read; NULL if it is INF_VALUE_NONE.
static const float *find_floats(const struct race *race, uint32_t value)
{
    for (uint32_t i = 0; i < race->input_count; i++)
        if (race->inputs[i].value == value)
            return race->inputs[i].floats;
    return value != INF_VALUE_NONE ? race->graph->values[value].data->data : NULL;
}

// Returns the elements of operand `index` of the node; NULL if it has no such operand.
static const float *find_operand(const struct race *race, uint32_t index)
{
    const struct inf_node *node = race->node;
    return find_floats(race, index < node->input_count ? node->inputs[index] : INF_VALUE_NONE);
}

// Returns the largest error of samples of the results `y` of a candidate.
static double find_error(const struct race *race, const struct vk_shader_choice *candidate,
                         const float *y)
{
    const struct vk_shader_candidates *candidates = &race->candidates;
    double most = race->lowered != NULL ? HALF_MOST : FLOAT_MOST;
    const struct inf_attention *attention = &candidates->attention;
    if (candidates->subject == VK_RACE_ATTENTION)
        return vk_attention_sample_error(
            attention, race->graph,
            (const float *const[]){
                find_floats(race, attention->q), find_floats(race, attention->keys),
                find_floats(race, attention->values), find_floats(race, attention->mask)},
            y, most);
    if (candidates->subject == VK_RACE_PRODUCT)
        return vk_product_sample_error(&candidates->product, find_operand(race, 0),
                                       find_operand(race, 1), find_operand(race, 2), y, most);
    return vk_conv_sample_error(&candidates->conv, find_operand(race, candidates->conv.bias_index),
                                find_operand(race, 0), y, most,
                                vk_is_winograd(candidate->method) ? WINOGRAD_PIXEL_MIN : 0);
}

// Checks results of the last run of a candidate. Sets time->error and time->wrong.
static enum inf_code check_results(const struct race *race,
                                   const struct vk_shader_choice *candidate,
                                   struct vk_shader_time *time, struct inf_error *err)
{
    size_t count = race->y.count;
    size_t element = race->lowered != NULL ? sizeof(uint16_t) : sizeof(float);
    INF_TRY(inf_buffer_copy(race->staging, 0, race->y.buffer, 0, count * element, err));
    const void *staging = inf_buffer_host(race->staging);
    float *y = NULL;
    if (race->lowered != NULL) {
        y = malloc(count * sizeof *y);
        if (y == NULL)
            return no_memory(err);
        for (size_t i = 0; i < count; i++)
            y[i] = inf_half_to_float(((const uint16_t *)staging)[i]);
    }
    time->error = find_error(race, candidate, y != NULL ? y : staging);
    time->wrong = time->error > race->error_max;
    free(y);
    return INF_OK;
}

// Returns true if the variant multiplies two tensors, as a part of Winograd's algorithm. Races of
// products check it. If Winograd's algorithm is wrong, it is not known which of its shaders is.
static bool has_race_of_its_own(const struct race *race, const struct vk_variant *variant)
{
    return race->candidates.subject == VK_RACE_CONV &&
           (variant->shader == INF_SHADER_CONV_BLOCK_PAIR ||
            variant->shader == INF_SHADER_CONV_BLOCK_PAIR_F16 ||
            variant->shader == INF_SHADER_CONV_MATRIX_PAIR ||
            variant->shader == INF_SHADER_CONV_MATRIX_PAIR_NV ||
            variant->shader == INF_SHADER_CONV_MATRIX_PAIR_KHR);
}

// Excludes the shaders of a candidate whose program computed wrongly.
static void exclude_shaders(const struct race *race, const struct vk_shader_choice *candidate,
                            const struct inf_program *base, const struct vk_shader_time *time)
{
    const struct vk_program *program = (const struct vk_program *)base;
    inf_log(race->gpu->log, INF_LOG_ERROR,
            "a shader computes wrongly device=%s shader=%s node=\"%s\" error=%g",
            race->gpu->base.info.name, time->name, race->node->name, time->error);
    // If the nodes of an attention are wrong, it is not known which shader is wrong. None of their
    // shaders is excluded.
    if (candidate->method == VK_BY_NODES)
        return;
    for (uint32_t i = 0; i < program->list.count; i++)
        if (!has_race_of_its_own(race, &program->list.dispatches[i].variant))
            vk_variant_note_broken(race->gpu, &program->list.dispatches[i].variant,
                                   VK_VARIANT_WRONG);
}

// Records that the shaders of a program whose results were compared need no other check.
static void note_checked(const struct race *race, const struct inf_program *base)
{
    const struct vk_program *program = (const struct vk_program *)base;
    for (uint32_t i = 0; i < program->list.count; i++)
        vk_shader_checks_note_right(&race->gpu->checks, &program->list.dispatches[i].variant);
}

// Checks the program of a candidate and takes its shortest time. Leaves time->least_ns 0 if its
// results are wrong.
static enum inf_code time_program(const struct race *race, const struct vk_shader_choice *candidate,
                                  struct inf_program *program, uint64_t best_ns,
                                  struct vk_shader_time *time, struct inf_error *err)
{
    uint64_t spent_ns = 0, least_ns;
    INF_TRY(run_once(race, program, &least_ns, err)); // uploads the weights
    INF_TRY(check_results(race, candidate, time, err));
    if (time->wrong)
        return INF_OK;
    if (time->error >= 0)
        note_checked(race, program);
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
    const struct vk_shader_choice *candidate = &race->candidates.list[index];
    struct inf_program *program = NULL;
    *time = (struct vk_shader_time){.error = -1};
    vk_shader_choice_print(candidate, time->name);
    INF_TRY(vk_program_compile_choice(&program, &race->gpu->base, &race->segment, candidate, err));
    enum inf_code code = time_program(race, candidate, program, best_ns, time, err);
    if (time->wrong)
        exclude_shaders(race, candidate, program, time);
    vk_program_destroy(program);
    return code;
}

// --- races ---

uint64_t vk_shader_race_key(struct inf_device *device, const struct inf_segment *segment,
                            uint32_t node, bool attention)
{
    struct vk_shader_candidates candidates;
    (void)list_candidates(&candidates, device, segment, node, attention);
    return candidates.count > 1 ? candidates.key : 0;
}

enum inf_code vk_shader_race_node(struct vk_shader_time times[VK_SHADER_CANDIDATES],
                                  uint32_t *out_count, uint64_t *out_key, struct inf_device *device,
                                  const struct inf_segment *segment, uint32_t node, bool attention,
                                  struct inf_error *err)
{
    struct race race;
    uint64_t best_ns = 0;
    enum inf_code code = race_init(&race, device, segment, node, attention, err);
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
                            uint32_t node, bool attention) INF_MAY_BLOCK
{
    struct vk_gpu *gpu = (struct vk_gpu *)device;
    struct vk_shader_time times[VK_SHADER_CANDIDATES];
    struct inf_race_time plain[VK_SHADER_CANDIDATES];
    char what[160];
    uint32_t count;
    uint64_t key, start_ns = inf_clock_ns();
    if (vk_shader_race_node(times, &count, &key, device, segment, node, attention, NULL) !=
            INF_OK ||
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

// Races the candidates for a node or an attention, unless their winner is recorded.
static void race_unless_known(struct inf_device *device, const struct inf_segment *segment,
                              uint32_t node, bool attention) INF_MAY_BLOCK
{
    struct vk_gpu *gpu = (struct vk_gpu *)device;
    char winner[INF_RACE_WINNER_TEXT];
    uint64_t key = vk_shader_race_key(device, segment, node, attention);
    if (key == 0)
        return;
    if (inf_race_results_find(gpu->races, key, segment->races.known_until_ns, winner))
        inf_race_results_count(gpu->races, INF_RACE_CHOICE_KNOWN);
    else if (!inf_race_results_may_race(gpu->races))
        inf_race_results_count(gpu->races, INF_RACE_CHOICE_RULE);
    else if (segment->races.known_until_ns != 0)
        inf_race_results_count(gpu->races, INF_RACE_CHOICE_LATER);
    else if (inf_race_gate_wait(segment->races.gate))
        race_and_record(device, segment, node, attention);
}

void vk_shader_race_segment(struct inf_device *device, const struct inf_segment *segment)
{
    struct vk_gpu *gpu = (struct vk_gpu *)device;
    if (gpu->races == NULL || segment->by_rule)
        return;
    for (uint32_t i = 0; i < segment->node_count && !inf_is_cancelled(segment->cancelled); i++) {
        // The products of an attention race first, so that its nodes are compared at their best.
        race_unless_known(device, segment, segment->nodes[i], false);
        race_unless_known(device, segment, segment->nodes[i], true);
    }
}
