// SPDX-License-Identifier: Apache-2.0
// Computes a product by compiling a graph of one node. Its first operand is an input, and the other
// ones are constants, so that the device packs them as it packs those of the model. Sums are fp32
// instead of double, which changes results a thousand times less than rounding to 16 bits does.
#include "backends/exec/dynamic/product_evaluator.h"

#include "backends/base/clock.h"
#include "backends/exec/static_executable.h"

// Smaller nodes are computed by the other evaluator, because compiling them takes longer.
#define WORK_LEAST ((uint64_t)1 << 22)

static bool is_large_product(const struct inf_graph *graph, uint32_t index)
{
    const struct inf_node *node = &graph->nodes[index];
    return (node->op == INF_OP_MATMUL || node->op == INF_OP_CONV2D) &&
           graph->values[node->outputs[0]].dtype == INF_DTYPE_F32 &&
           inf_node_work(graph, node) >= WORK_LEAST;
}

static enum inf_code add_operand(struct inf_graph *alone, const struct inf_value *like,
                                 bool is_input, uint32_t *out_value, struct inf_error *err)
{
    if (!is_input)
        return inf_graph_add_const(alone, like->name, like->dtype, &like->shape,
                                   inf_blob_ref(like->data), out_value, err);
    INF_TRY(inf_graph_add_value(alone, like->name, like->dtype, &like->shape, out_value, err));
    return inf_graph_add_input(alone, "x", *out_value, err);
}

// Makes a graph of the node alone. The caller destroys *out_graph, also after a failure.
static enum inf_code make_graph(const struct inf_graph *graph, uint32_t index,
                                struct inf_graph **out_graph, struct inf_error *err)
{
    const struct inf_node *node = &graph->nodes[index];
    uint32_t operands[INF_LIMIT_NODE_INPUTS], made;
    INF_TRY(inf_graph_create(out_graph, err));
    for (uint32_t i = 0; i < node->input_count; i++) {
        operands[i] = INF_VALUE_NONE;
        if (node->inputs[i] != INF_VALUE_NONE)
            INF_TRY(add_operand(*out_graph, &graph->values[node->inputs[i]], i == 0, &operands[i],
                                err));
    }
    INF_TRY(inf_graph_add_node(*out_graph, node->op, node->name, node->source, operands,
                               node->input_count, 1, &made, err));
    struct inf_node *copy = &(*out_graph)->nodes[made];
    copy->attrs = node->attrs;
    (*out_graph)->values[copy->outputs[0]].dtype = graph->values[node->outputs[0]].dtype;
    (*out_graph)->values[copy->outputs[0]].shape = graph->values[node->outputs[0]].shape;
    return inf_graph_add_output(*out_graph, "y", copy->outputs[0], err);
}

static enum inf_code compute_product(const struct inf_product_evaluator *products,
                                     const struct inf_graph *graph, uint32_t index,
                                     struct inf_blob *output, const atomic_bool *cancelled,
                                     struct inf_error *err) INF_MAY_BLOCK
{
    INF_CLEANUP(inf_graph_destroy) struct inf_graph *alone = NULL;
    INF_CLEANUP(inf_executable_destroy) struct inf_executable *executable = NULL;
    // The calling thread alone, so that requests keep the device's other threads. Kernels do not
    // race, because a load waits for the check.
    const struct inf_run_options options = {
        .threads = 1, .cancelled = cancelled, .races.known_until_ns = inf_clock_ns()};
    INF_TRY(make_graph(graph, index, &alone, err));
    INF_TRY(inf_static_executable_create(&executable, &alone, products->hosts, products->host_count,
                                         &options, err));
    const void *inputs[] = {graph->values[graph->nodes[index].inputs[0]].data->data};
    void *outputs[] = {output->data};
    const struct inf_execution execution = {
        .inputs = inputs, .outputs = outputs, .cancelled = cancelled};
    return inf_executable_run(executable, &execution, err);
}

static enum inf_code evaluate_node(void *context, const struct inf_graph *graph, uint32_t node,
                                   struct inf_blob *const *outputs, const atomic_bool *cancelled,
                                   struct inf_error *err)
{
    const struct inf_product_evaluator *products = context;
    if (products->host_count > 1 && is_large_product(graph, node)) {
        struct inf_error ignored;
        enum inf_code code =
            compute_product(products, graph, node, outputs[0], cancelled, &ignored);
        if (code == INF_OK)
            return INF_OK;
    }
    return products->other->run(products->other->context, graph, node, outputs, cancelled, err);
}

void inf_product_evaluator_init(struct inf_product_evaluator *products,
                                const struct inf_evaluator *other, struct inf_device *const *hosts,
                                uint32_t host_count)
{
    *products =
        (struct inf_product_evaluator){.evaluator = {.run = evaluate_node, .context = products},
                                       .other = other,
                                       .hosts = hosts,
                                       .host_count = host_count};
}
