// SPDX-License-Identifier: Apache-2.0
// Casts, comparisons, selections, and functions of integers and bools: element-wise operators whose
// types are not all f32. The cpu device declines arithmetic on 16-bit floats, which the pass
// `widen` turns into fp32, and integer division, which can fail; those nodes run on the reference
// device `ref`.
#include <string.h>

#include "backends/cpu/core/kernel.h"
#include "backends/cpu/native/broadcast.h"

#define TILE_ELEMENTS 4096
// If an operand has one element for a whole row, this element is repeated this many times in a
// buffer, because the loops only read arrays.
#define SPREAD_COUNT 256
#define SIZE_MOST    8 // size of the largest element in bytes
// Rows of at most this length are copied and computed together, because a loop over one row would
// be too short.
#define SHORT_ROW 32
// Rows of a selection with one condition for each row are copied, unless they are so short that a
// call for each row would take longer than the loops over several rows.
#define COPIED_ROW_LEAST 16

struct element {
    const struct inf_element *loops;
    struct inf_native_broadcast broadcast;
    // sizes of one element of each operand and of the result, in bytes
    size_t size[INF_NATIVE_BROADCAST_OPERANDS], result_size;
    uint32_t order[2]; // indices of the node's operands that become a and b of `binary`
    // The loop that computes the result. Exactly one of these three pointers is not NULL.
    inf_element_map_fn *map;
    inf_element_binary_fn *binary;
    void (*select)(size_t count, const void *condition, const void *a, const void *b, void *y);
};

struct element_task {
    const struct element *element;
    const void *const *operands;
    char *y;
    struct inf_native_broadcast_tiles tiles;
};

// Returns the index of the loops for elements of `size` bytes, which is 1, 2, 4 or 8.
static uint32_t size_index(size_t size)
{
    uint32_t index = 0;
    while ((size_t)1 << index < size)
        index++;
    return index;
}

// --- computing rows of elements ---

static void compute_elements(const struct element *element, size_t count,
                             const void *const at[INF_NATIVE_BROADCAST_OPERANDS], void *y)
{
    if (element->map != NULL)
        element->map(count, at[0], y);
    else if (element->binary != NULL)
        element->binary(count, at[element->order[0]], at[element->order[1]], y);
    else
        element->select(count, at[0], at[1], at[2], y);
}

// Computes a row, or a part of one, if some operands have only one element in the row. The element
// is repeated SPREAD_COUNT times in a buffer, and the row is computed in pieces of that length.
static void compute_spread(const struct element *element, size_t count,
                           const char *at[INF_NATIVE_BROADCAST_OPERANDS], char *y)
{
    const struct inf_native_broadcast *broadcast = &element->broadcast;
    _Alignas(64) char spread[INF_NATIVE_BROADCAST_OPERANDS][SPREAD_COUNT * SIZE_MOST];
    for (uint32_t i = 0; i < broadcast->operands; i++) {
        if (broadcast->row_step[i] != 0)
            continue;
        element->loops->fill[size_index(element->size[i])](INF_MIN(count, (size_t)SPREAD_COUNT),
                                                           at[i], spread[i]);
        at[i] = spread[i];
    }
    for (size_t done = 0; done < count; done += SPREAD_COUNT) {
        size_t some = INF_MIN(count - done, (size_t)SPREAD_COUNT);
        const void *from[INF_NATIVE_BROADCAST_OPERANDS] = {NULL};
        for (uint32_t i = 0; i < broadcast->operands; i++)
            from[i] = at[i] + done * broadcast->row_step[i] * element->size[i];
        compute_elements(element, some, from, y + done * element->result_size);
    }
}

// Computes the short rows `row` to `end` (exclusive). The operands of as many rows as fit into
// SPREAD_COUNT elements are copied to buffers and computed in one call.
static void compute_rows(const struct element_task *task, size_t row, size_t end)
{
    const struct element *element = task->element;
    const struct inf_native_broadcast *broadcast = &element->broadcast;
    _Alignas(64) char spread[INF_NATIVE_BROADCAST_OPERANDS][SPREAD_COUNT * SIZE_MOST];
    const void *const from[INF_NATIVE_BROADCAST_OPERANDS] = {spread[0], spread[1], spread[2]};
    struct inf_native_broadcast_walk walk;
    inf_native_broadcast_start(&walk, broadcast, row);
    while (row < end) {
        size_t first = row * broadcast->row;
        size_t count = 0;
        for (; row < end && count + broadcast->row <= SPREAD_COUNT; row++) {
            for (uint32_t i = 0; i < broadcast->operands; i++) {
                size_t size = element->size[i];
                const char *at = (const char *)task->operands[i] + walk.at[i] * size;
                char *to = spread[i] + count * size;
                if (broadcast->row_step[i] != 0)
                    memcpy(to, at, broadcast->row * size);
                else
                    element->loops->fill[size_index(size)](broadcast->row, at, to);
            }
            count += broadcast->row;
            inf_native_broadcast_next(&walk, broadcast);
        }
        compute_elements(element, count, from, task->y + first * element->result_size);
    }
}

// Computes a row, or a part of one, of a selection whose condition has one element for the row:
// copies one of the operands.
static void copy_selected(const struct element *element, size_t count,
                          const char *const at[INF_NATIVE_BROADCAST_OPERANDS], char *y)
{
    uint32_t chosen = *at[0] != 0 ? 1 : 2;
    size_t size = element->result_size;
    if (element->broadcast.row_step[chosen] != 0)
        memcpy(y, at[chosen], count * size);
    else
        element->loops->fill[size_index(size)](count, at[chosen], y);
}

static void element_tile(const void *context, size_t number, size_t worker)
{
    (void)worker;
    const struct element_task *task = context;
    const struct element *element = task->element;
    const struct inf_native_broadcast *broadcast = &element->broadcast;
    struct inf_native_broadcast_tile tile =
        inf_native_broadcast_tile(broadcast, &task->tiles, number);
    struct inf_native_broadcast_walk walk;
    bool moves = true;
    bool copies = element->select != NULL && broadcast->row_step[0] == 0 &&
                  broadcast->row >= COPIED_ROW_LEAST;
    if (broadcast->rank > 0 && broadcast->row <= SHORT_ROW && !copies) {
        compute_rows(task, tile.row, tile.end);
        return;
    }
    for (uint32_t i = 0; i < broadcast->operands; i++)
        moves = moves && broadcast->row_step[i] != 0;
    inf_native_broadcast_start(&walk, broadcast, tile.row);
    for (size_t row = tile.row; row < tile.end;
         row++, inf_native_broadcast_next(&walk, broadcast)) {
        const char *from[INF_NATIVE_BROADCAST_OPERANDS] = {NULL};
        char *y = task->y + (row * broadcast->row + tile.column) * element->result_size;
        for (uint32_t i = 0; i < broadcast->operands; i++)
            from[i] = (const char *)task->operands[i] +
                      (walk.at[i] + tile.column * broadcast->row_step[i]) * element->size[i];
        if (copies)
            copy_selected(element, tile.columns, from, y);
        else if (moves || tile.columns == 1)
            compute_elements(element, tile.columns, (const void *const *)from, y);
        else
            compute_spread(element, tile.columns, from, y);
    }
}

static void element_run(const struct inf_cpu_step *step)
{
    const struct element *element = step->state;
    struct element_task task = {element, step->inputs, step->output,
                                inf_native_broadcast_cut(&element->broadcast, TILE_ELEMENTS)};
    struct inf_cpu_tiles work = {element_tile, &task, task.tiles.count};
    inf_cpu_team_run_tiles(step->team, &work, SIZE_MAX);
}

// --- which nodes this file can compute ---

static enum inf_dtype input_dtype(const struct inf_graph *graph, const struct inf_node *node,
                                  uint32_t input)
{
    return graph->values[node->inputs[input]].dtype;
}

static const struct {
    enum inf_element_compare compare;
    bool turned; // true: "greater" is computed as "less", with its operands swapped
} comparisons[INF_COMPARE_COUNT] = {
    [INF_COMPARE_EQUAL] = {INF_ELEMENT_EQUAL, false},
    [INF_COMPARE_NOT_EQUAL] = {INF_ELEMENT_NOT_EQUAL, false},
    [INF_COMPARE_LESS] = {INF_ELEMENT_LESS, false},
    [INF_COMPARE_LESS_EQUAL] = {INF_ELEMENT_LESS_EQUAL, false},
    [INF_COMPARE_GREATER] = {INF_ELEMENT_LESS, true},
    [INF_COMPARE_GREATER_EQUAL] = {INF_ELEMENT_LESS_EQUAL, true},
};

// Returns the loop for a function of integers or bools; NULL if there is none.
static inf_element_binary_fn *binary_loop(const struct inf_element *loops,
                                          enum inf_binary_kind kind, enum inf_dtype dtype)
{
    bool is_bool = dtype == INF_DTYPE_BOOL;
    switch (kind) {
    case INF_BINARY_ADD:
        return loops->binary[INF_ELEMENT_ADD][dtype];
    case INF_BINARY_SUB:
        return loops->binary[INF_ELEMENT_SUB][dtype];
    case INF_BINARY_MUL:
        return loops->binary[INF_ELEMENT_MUL][dtype];
    case INF_BINARY_MIN:
        return loops->binary[INF_ELEMENT_MIN][dtype];
    case INF_BINARY_MAX:
        return loops->binary[INF_ELEMENT_MAX][dtype];
    case INF_BINARY_BITWISE_AND:
        return loops->binary[INF_ELEMENT_AND][dtype];
    case INF_BINARY_BITWISE_OR:
        return loops->binary[INF_ELEMENT_OR][dtype];
    case INF_BINARY_BITWISE_XOR:
        return loops->binary[INF_ELEMENT_XOR][dtype];
    case INF_BINARY_LOGICAL_AND:
        return is_bool ? loops->binary[INF_ELEMENT_AND][dtype] : NULL;
    case INF_BINARY_LOGICAL_OR:
        return is_bool ? loops->binary[INF_ELEMENT_OR][dtype] : NULL;
    case INF_BINARY_LOGICAL_XOR:
        return is_bool ? loops->binary[INF_ELEMENT_XOR][dtype] : NULL;
    default:
        return NULL;
    }
}

static enum inf_code cast_supports(const struct inf_graph *graph, const struct inf_node *node,
                                   struct inf_error *err)
{
    enum inf_dtype from = input_dtype(graph, node, 0);
    enum inf_dtype to = node->attrs.cast.dtype;
    if (inf_isa_best()->element->cast[from][to] == NULL)
        return inf_fail(err, INF_UNSUPPORTED, "cpu: cast from %s to %s is not built",
                        inf_dtype_name(from), inf_dtype_name(to));
    return INF_OK;
}

static enum inf_code compare_supports(const struct inf_graph *graph, const struct inf_node *node,
                                      struct inf_error *err)
{
    enum inf_dtype dtype = input_dtype(graph, node, 0);
    if (inf_isa_best()->element->compare[INF_ELEMENT_EQUAL][dtype] == NULL)
        return inf_fail(err, INF_UNSUPPORTED, "cpu: compare of %s is not built",
                        inf_dtype_name(dtype));
    return INF_OK;
}

static enum inf_code binary_supports(const struct inf_graph *graph, const struct inf_node *node,
                                     struct inf_error *err)
{
    enum inf_binary_kind kind = node->attrs.binary.kind;
    enum inf_dtype dtype = input_dtype(graph, node, 0);
    if (binary_loop(inf_isa_best()->element, kind, dtype) == NULL ||
        node->attrs.binary.activation != INF_ACTIVATION_NONE)
        return inf_fail(err, INF_UNSUPPORTED, "cpu: binary %s of %s is not built",
                        inf_binary_name(kind), inf_dtype_name(dtype));
    return INF_OK;
}

static enum inf_code select_supports(const struct inf_graph *graph, const struct inf_node *node,
                                     struct inf_error *err)
{
    (void)graph;
    (void)node;
    (void)err;
    return INF_OK;
}

// --- creating a step ---

static enum inf_code create_element(struct element **out_element, struct inf_cpu_step *step,
                                    uint32_t operands, struct inf_error *err)
{
    const struct inf_graph *graph = step->graph;
    const struct inf_node *node = step->node;
    INF_TRY(inf_cpu_step_alloc_state(step, sizeof(struct element), err));
    struct element *element = step->state;
    element->loops = step->isa->element;
    element->order[1] = 1;
    inf_native_broadcast_init(&element->broadcast, graph, node, operands);
    for (uint32_t i = 0; i < operands; i++)
        element->size[i] = inf_dtype_size(input_dtype(graph, node, i));
    element->result_size = inf_dtype_size(graph->values[node->outputs[0]].dtype);
    step->run = element_run;
    *out_element = element;
    return INF_OK;
}

static enum inf_code cast_create(struct inf_cpu_step *step, struct inf_error *err)
{
    struct element *element;
    INF_TRY(create_element(&element, step, 1, err));
    enum inf_dtype from = input_dtype(step->graph, step->node, 0);
    element->map = element->loops->cast[from][step->node->attrs.cast.dtype];
    step->kernel = "cast";
    return INF_OK;
}

static enum inf_code compare_create(struct inf_cpu_step *step, struct inf_error *err)
{
    struct element *element;
    enum inf_compare_kind kind = step->node->attrs.compare.kind;
    INF_TRY(create_element(&element, step, 2, err));
    enum inf_dtype dtype = input_dtype(step->graph, step->node, 0);
    element->binary = element->loops->compare[comparisons[kind].compare][dtype];
    element->order[0] = comparisons[kind].turned;
    element->order[1] = !comparisons[kind].turned;
    step->kernel = "compare";
    return INF_OK;
}

static enum inf_code binary_create(struct inf_cpu_step *step, struct inf_error *err)
{
    struct element *element;
    INF_TRY(create_element(&element, step, 2, err));
    element->binary = binary_loop(element->loops, step->node->attrs.binary.kind,
                                  input_dtype(step->graph, step->node, 0));
    step->kernel = "integers";
    return INF_OK;
}

static enum inf_code select_create(struct inf_cpu_step *step, struct inf_error *err)
{
    struct element *element;
    INF_TRY(create_element(&element, step, 3, err));
    element->select = element->loops->select[size_index(element->result_size)];
    step->kernel = "select";
    return INF_OK;
}

const struct inf_cpu_kernel inf_cpu_element_kernels[] = {
    {INF_OP_CAST, cast_supports, cast_create},
    {INF_OP_COMPARE, compare_supports, compare_create},
    {INF_OP_SELECT, select_supports, select_create},
    {INF_OP_BINARY, binary_supports, binary_create},
    {0},
};
