// SPDX-License-Identifier: Apache-2.0
// Packs the constant matrices of products whose number of rows is known only during a run. The
// packed form does not depend on the number of rows. Therefore it is taken from a program for one
// row, and all programs share it.
#include "backends/exec/dynamic/node_packs.h"

#include <stdlib.h>
#include <string.h>

#include "backends/exec/dynamic/node_graph.h"

// Smaller matrices are not packed, because the evaluator computes small nodes without a program.
#define ELEMENTS_MIN ((size_t)1024)

struct inf_node_packs {
    const struct inf_graph *graph;
    struct inf_blob_form **forms; // indexed by value; each a counted reference, or NULL
};

// --- choosing the matrices that are packed ---

// Returns true if operand `input` is a matrix that could be packed, regardless of the number of
// rows.
static bool is_matrix(const struct inf_graph *graph, const struct inf_node *node, uint32_t input)
{
    if (input != 1 || !inf_node_graph_is_product(graph, node))
        return false;
    const struct inf_value *x = &graph->values[node->inputs[0]];
    const struct inf_value *matrix = &graph->values[node->inputs[1]];
    return matrix->data != NULL && matrix->dtype == INF_DTYPE_F32 && x->dtype == INF_DTYPE_F32 &&
           x->data == NULL && x->shape.rank >= 2 &&
           (node->op != INF_OP_MATMUL ||
            (matrix->shape.rank == 2 && !node->attrs.matmul.transpose_a)) &&
           inf_shape_elements(&matrix->shape) >= ELEMENTS_MIN;
}

// Sets other[v] for each value v that is an output of the graph, or that some node reads in another
// way than as the matrix of a product. Such a value needs its own bytes, so it is not packed.
static void mark_others(const struct inf_graph *graph, bool *other)
{
    for (uint32_t i = 0; i < graph->node_count; i++)
        for (uint32_t k = 0; k < graph->nodes[i].input_count; k++)
            if (graph->nodes[i].inputs[k] != INF_VALUE_NONE &&
                !is_matrix(graph, &graph->nodes[i], k))
                other[graph->nodes[i].inputs[k]] = true;
    for (uint32_t i = 0; i < graph->output_count; i++)
        other[graph->outputs[i].value] = true;
}

// --- packing matrices with programs for a single row ---

// Compiles the node for one row, and takes the packed form of its matrix from that program.
static enum inf_code pack_matrix(struct inf_node_packs *packs, const struct inf_graph *known,
                                 uint32_t index, struct inf_device *device,
                                 struct inf_error *err) INF_MAY_BLOCK
{
    static const uint32_t nodes[] = {0};
    struct inf_node_graph alone = {0};
    struct inf_program *program = NULL;
    enum inf_code code = inf_node_graph_init(&alone, known, packs->graph, index, true, err);
    if (code == INF_OK && inf_device_supports(device, alone.graph, 0, NULL) == INF_OK) {
        const struct inf_segment segment = {
            .graph = alone.graph, .nodes = nodes, .node_count = 1, .slots = 1, .by_rule = true};
        if (inf_program_compile(&program, device, &segment, 0, NULL) == INF_OK) {
            struct inf_blob_form *form = inf_program_packed_form(program, 0, 1);
            if (form != NULL)
                packs->forms[known->nodes[index].inputs[1]] = inf_blob_form_ref(form);
        }
    }
    inf_program_destroy(&program);
    inf_node_graph_fini(&alone);
    return code;
}

// Sets the shapes of the operand and the result of a product node to those of a single row.
static void set_shapes(struct inf_graph *known, const struct inf_node *node)
{
    const struct inf_shape *matrix = &known->values[node->inputs[1]].shape;
    bool transposed = node->op == INF_OP_MATMUL && node->attrs.matmul.transpose_b;
    struct inf_shape *x = &known->values[node->inputs[0]].shape;
    struct inf_shape *y = &known->values[node->outputs[0]].shape;
    *y = *x;
    for (int32_t axis = 0; axis < x->rank - 1; axis++)
        x->dims[axis] = y->dims[axis] = 1;
    x->dims[x->rank - 1] = matrix->dims[matrix->rank - (transposed ? 1 : 2)];
    y->dims[x->rank - 1] = matrix->dims[matrix->rank - (transposed ? 2 : 1)];
    known->values[node->outputs[0]].dtype = INF_DTYPE_F32;
}

// Packs the matrix of every product in the graph, unless `other`, indexed by value, is true for the
// matrix. `known` is a copy of the graph whose shapes may be overwritten here.
static enum inf_code pack_all(struct inf_node_packs *packs, struct inf_graph *known,
                              const bool *other, struct inf_device *device,
                              struct inf_error *err) INF_MAY_BLOCK
{
    for (uint32_t i = 0; i < known->node_count; i++) {
        const struct inf_node *node = &known->nodes[i];
        if (node->input_count < 2 || !is_matrix(packs->graph, node, 1) || other[node->inputs[1]] ||
            packs->forms[node->inputs[1]] != NULL)
            continue;
        set_shapes(known, node);
        INF_TRY(pack_matrix(packs, known, i, device, err));
    }
    return INF_OK;
}

enum inf_code inf_node_packs_create(struct inf_node_packs **out_packs,
                                    const struct inf_graph *graph, struct inf_device *device,
                                    struct inf_error *err)
{
    *out_packs = NULL;
    if (graph == NULL)
        return INF_OK;
    size_t count = (size_t)graph->value_count + 1;
    struct inf_node_packs *packs = calloc(1, sizeof *packs);
    struct inf_graph known;
    inf_graph_view(&known, graph);
    bool *other = calloc(count, sizeof *other);
    known.values = calloc(count, sizeof *known.values);
    if (packs != NULL)
        packs->forms = calloc(count, sizeof(struct inf_blob_form *));
    enum inf_code code = INF_OK;
    if (packs == NULL || packs->forms == NULL || other == NULL || known.values == NULL) {
        code = inf_fail(err, INF_EXHAUSTED, "no memory for packed matrices");
    } else {
        packs->graph = graph;
        memcpy(known.values, graph->values, graph->value_count * sizeof *known.values);
        mark_others(graph, other);
        code = pack_all(packs, &known, other, device, err);
    }
    free(known.values);
    free(other);
    if (code == INF_OK)
        *out_packs = packs;
    else
        inf_node_packs_destroy(&packs);
    return code;
}

void inf_node_packs_destroy(struct inf_node_packs **pointer)
{
    struct inf_node_packs *packs = *pointer;
    *pointer = NULL;
    if (packs == NULL)
        return;
    for (uint32_t v = 0;
         packs->forms != NULL && packs->graph != NULL && v < packs->graph->value_count; v++)
        inf_blob_form_unref(&packs->forms[v]);
    free(packs->forms);
    free(packs);
}

// --- looking up packed matrices ---

struct inf_blob_form *inf_node_packs_form(const struct inf_node_packs *packs,
                                          const struct inf_graph *graph, uint32_t value)
{
    return packs != NULL && packs->graph == graph ? packs->forms[value] : NULL;
}

bool inf_node_packs_has(const struct inf_node_packs *packs, const struct inf_graph *graph,
                        uint32_t node)
{
    const struct inf_node *product = &graph->nodes[node];
    return product->input_count > 1 && product->inputs[1] != INF_VALUE_NONE &&
           inf_node_packs_form(packs, graph, product->inputs[1]) != NULL;
}
