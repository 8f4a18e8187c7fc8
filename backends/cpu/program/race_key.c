// SPDX-License-Identifier: Apache-2.0
// Hashes nodes and operands to the keys of race results. A key covers everything on which the speed
// of a kernel depends, except what the seed of the results covers.
#include "backends/cpu/program/race_key.h"

#include <assert.h>
#include <stdio.h>

#include "backends/storage/record.h"

uint64_t inf_cpu_race_key(const struct inf_race_results *results, size_t threads)
{
    return inf_record_hash(inf_race_results_seed(results), &threads, sizeof threads);
}

uint64_t inf_cpu_race_hash_value(uint64_t key, const struct inf_graph *graph, uint32_t value)
{
    if (value == INF_VALUE_NONE)
        return inf_record_hash(key, "-", 1);
    const struct inf_value *of = &graph->values[value];
    bool constant = inf_graph_is_const(graph, value);
    key = inf_record_hash(key, &of->dtype, sizeof of->dtype);
    key = inf_record_hash(key, &constant, sizeof constant);
    return inf_record_hash(key, of->shape.dims, (size_t)of->shape.rank * sizeof of->shape.dims[0]);
}

uint64_t inf_cpu_race_hash_node(uint64_t key, const struct inf_graph *graph, uint32_t index)
{
    const struct inf_node *node = &graph->nodes[index];
    key = inf_record_hash_text(key, inf_op_info(node->op)->name);
    key = inf_record_hash(key, &node->attrs, sizeof node->attrs);
    return inf_cpu_race_hash_value(key, graph, node->outputs[0]);
}

void inf_cpu_race_record(struct inf_race_results *results, uint64_t key, uint64_t spent_ns,
                         const struct inf_node *node, const struct inf_cpu_candidate *candidates,
                         uint32_t count)
{
    struct inf_race_time times[INF_CPU_CANDIDATES];
    char what[160];
    assert(count <= INF_CPU_CANDIDATES);
    for (uint32_t i = 0; i < count; i++)
        times[i] = (struct inf_race_time){candidates[i].family, candidates[i].least_ns};
    snprintf(what, sizeof what, "node=\"%.96s\" op=%s", node->name, inf_op_info(node->op)->name);
    inf_race_results_record(results, key, spent_ns, what, times, count);
}
