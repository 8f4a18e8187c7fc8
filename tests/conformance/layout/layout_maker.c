// SPDX-License-Identifier: Apache-2.0
// Makes graphs for the tests of the layout pass, runs them and counts their transposes.
#include "tests/conformance/layout/layout_maker.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/exec/static_executable.h"

uint32_t draw_below(struct maker *maker, uint32_t bound)
{
    uint64_t z = maker->state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (uint32_t)((z ^ z >> 31) >> 32) % bound;
}

const struct inf_shape *shape_of(const struct maker *maker, uint32_t value)
{
    return &maker->graph->values[value].shape;
}

uint32_t add_node(struct maker *maker, enum inf_op op, const uint32_t *inputs, uint32_t count)
{
    uint32_t node;
    cr_assert_eq(inf_graph_add_node(maker->graph, op, "n", "", inputs, count, 1, &node, NULL), 0);
    return maker->graph->nodes[node].outputs[0];
}

union inf_attrs *last_attrs(struct maker *maker)
{
    return &maker->graph->nodes[maker->graph->node_count - 1].attrs;
}

uint32_t add_constant(struct maker *maker, const struct inf_shape *shape)
{
    uint32_t value;
    struct inf_blob *data = inf_blob_create(inf_shape_elements(shape) * sizeof(float));
    for (size_t i = 0; i < inf_shape_elements(shape); i++)
        ((float *)data->data)[i] = (float)draw_below(maker, 1000) / 250 - 2;
    cr_assert_eq(inf_graph_add_const(maker->graph, "c", INF_DTYPE_F32, shape, data, &value, NULL),
                 0);
    return value;
}

uint32_t add_list(struct maker *maker, const int32_t *elements, int32_t count)
{
    uint32_t value;
    cr_assert_eq(
        inf_graph_add_const_i32(maker->graph, "l", elements, (uint32_t)count, &value, NULL), 0);
    return value;
}

struct inf_blob *join_outputs(struct inf_device *ref, const struct inf_graph *graph)
{
    struct inf_graph *copy = NULL;
    struct inf_executable *executable = NULL;
    struct inf_error err;
    cr_assert_eq(inf_graph_clone(&copy, graph, NULL), INF_OK);
    cr_assert_eq(inf_static_executable_create(&executable, &copy, &ref, 1, NULL, &err), INF_OK,
                 "%s", err.text);
    size_t counts[2];
    for (uint32_t i = 0; i < 2; i++)
        counts[i] = inf_shape_elements(&graph->values[graph->outputs[i].value].shape);
    struct inf_blob *input = inf_blob_create(4096), *result;
    for (size_t i = 0; i < 1024; i++)
        ((float *)input->data)[i] = (float)((i * 37) % 101) / 25 - 2;
    result = inf_blob_create((counts[0] + counts[1]) * sizeof(float));
    const void *inputs[] = {input->data};
    void *outputs[] = {result->data, (float *)result->data + counts[0]};
    struct inf_execution execution = {.inputs = inputs, .outputs = outputs};
    cr_assert_eq(inf_executable_run(executable, &execution, &err), INF_OK, "%s", err.text);
    inf_executable_destroy(&executable);
    inf_blob_unref(&input);
    return result;
}

uint32_t count_transposes(const struct inf_graph *graph)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < graph->node_count; i++)
        count += graph->nodes[i].op == INF_OP_TRANSPOSE;
    return count;
}

void run_pass_until_settled(struct inf_graph *graph)
{
    char *rounds = NULL;
    size_t size;
    struct inf_error err;
    FILE *file = open_memstream(&rounds, &size);
    cr_assert_not_null(file);
    const struct inf_pass_options options = {.disabled = MAKER_OTHER_PASSES, .dump = file};
    cr_assert_eq(inf_passes_run(graph, &options, &err), INF_OK, "%s", err.text);
    fclose(file);
    cr_expect_not_null(strstr(rounds, "round 1,"));
    cr_expect_null(strstr(rounds, "round 6,"), "the pass changes the graph in each round");
    free(rounds);
}
