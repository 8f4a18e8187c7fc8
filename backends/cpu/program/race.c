// SPDX-License-Identifier: Apache-2.0
// Runs the candidates of a timing comparison in turn, and keeps the shortest time of each. Because
// they take turns, a disturbance affects all candidates and not only one.
#include "backends/cpu/program/race.h"

#include <stdlib.h>
#include <string.h>

#include "backends/base/clock.h"
#include "proto/core/span.h"

// The most turns in a timing comparison, and the time after which no further turn begins.
#define TURNS_MAX 9u
#define TURNS_MIN 2u
#define TURNS_NS  (20 * (uint64_t)INF_NS_PER_MS)
// A comparison ends early when every other candidate takes at least BEATEN times as long as the
// fastest, because no other candidate can then win.
#define BEATEN 1.5
// A candidate takes no further turns if its shortest time is at least LONG_NS and more than
// FAR_BEATEN times the shortest time of all candidates. Other load on the machine rarely doubles a
// time that is so long.
#define FAR_BEATEN 2.0
#define LONG_NS    (3 * (uint64_t)INF_NS_PER_MS)

#define SLACK_SIZE 64 // bytes; XNNPACK reads some bytes beyond its operands

// --- allocating and freeing the operands of the candidates ---

void inf_cpu_race_operands_fini(struct inf_cpu_race_operands *operands)
{
    for (uint32_t i = 0; operands->bindings != NULL && i < operands->count; i++)
        free(operands->bindings[i].host);
    free(operands->bindings);
    *operands = (struct inf_cpu_race_operands){0};
}

static enum inf_code make_operand(struct inf_cpu_race_operands *operands,
                                  const struct inf_graph *graph, uint32_t value,
                                  struct inf_error *err)
{
    size_t size;
    if (value == INF_VALUE_NONE || inf_graph_is_const(graph, value) ||
        operands->bindings[value].host != NULL)
        return INF_OK;
    const struct inf_value *of = &graph->values[value];
    void *host = NULL;
    if (inf_shape_bytes(&of->shape, of->dtype, &size)) {
        size = inf_size_align(size, SLACK_SIZE) + SLACK_SIZE;
        host = aligned_alloc(SLACK_SIZE, size);
    }
    if (host == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "value '%s': no memory for a race", of->name);
    memset(host, 0, size);
    operands->bindings[value].host = host;
    return INF_OK;
}

enum inf_code inf_cpu_race_operands_init(struct inf_cpu_race_operands *operands,
                                         const struct inf_graph *graph, const uint32_t *nodes,
                                         uint32_t node_count, struct inf_error *err)
{
    operands->count = graph->value_count;
    operands->bindings = calloc((size_t)operands->count + 1, sizeof *operands->bindings);
    if (operands->bindings == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "no memory for a race");
    for (uint32_t i = 0; i < node_count; i++) {
        const struct inf_node *node = &graph->nodes[nodes[i]];
        for (uint32_t k = 0; k < node->input_count; k++)
            INF_TRY(make_operand(operands, graph, node->inputs[k], err));
        for (uint32_t k = 0; k < node->output_count; k++)
            INF_TRY(make_operand(operands, graph, node->outputs[k], err));
    }
    return INF_OK;
}

// --- running the candidates in turn, and timing them ---

enum inf_code inf_cpu_race_time_candidate(struct inf_cpu_candidate *candidate,
                                          enum inf_code (*run)(void *context), void *context)
{
    enum inf_code code = run(context);
    uint64_t start_ns = inf_clock_ns();
    if (code == INF_OK)
        code = run(context);
    uint64_t spent_ns = inf_clock_ns() - start_ns;
    if (code != INF_OK)
        candidate->least_ns = 0;
    else if (candidate->least_ns == 0 || spent_ns < candidate->least_ns)
        candidate->least_ns = INF_MAX(spent_ns, UINT64_C(1));
    return code;
}

// Returns the shortest time of all candidates; UINT64_MAX if none has a time.
static uint64_t find_best_ns(const struct inf_cpu_candidate *candidates, uint32_t count)
{
    uint64_t best_ns = UINT64_MAX;
    for (uint32_t i = 0; i < count; i++)
        if (candidates[i].least_ns > 0)
            best_ns = INF_MIN(best_ns, candidates[i].least_ns);
    return best_ns;
}

static bool is_far_beaten(const struct inf_cpu_candidate *candidate, uint64_t best_ns)
{
    return candidate->least_ns >= LONG_NS &&
           (double)candidate->least_ns > FAR_BEATEN * (double)best_ns;
}

static bool is_over(const struct inf_cpu_candidate *candidates, uint32_t count, uint32_t turns,
                    uint64_t start_ns)
{
    uint64_t best_ns = find_best_ns(candidates, count);
    uint32_t near = 0;
    if (turns < TURNS_MIN)
        return false;
    for (uint32_t i = 0; i < count; i++)
        near +=
            candidates[i].least_ns > 0 && (double)candidates[i].least_ns < BEATEN * (double)best_ns;
    return near < 2 || turns >= TURNS_MAX || inf_clock_thread_ns() - start_ns > TURNS_NS;
}

bool inf_cpu_race_run_turns(const struct inf_cpu_candidate *candidates, uint32_t count,
                            struct inf_race_gate *gate,
                            void (*take_turn)(void *context, uint32_t index), void *context)
{
    uint64_t start_ns = inf_clock_thread_ns();
    for (uint32_t turns = 0; !is_over(candidates, count, turns, start_ns); turns++) {
        uint64_t best_ns = find_best_ns(candidates, count);
        for (uint32_t i = 0; i < count; i++) {
            if (turns > 0 && is_far_beaten(&candidates[i], best_ns))
                continue;
            if (!inf_race_gate_wait(gate))
                return false;
            take_turn(context, i);
        }
    }
    return true;
}
