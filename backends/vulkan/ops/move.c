// SPDX-License-Identifier: Apache-2.0
// Operators that only move elements. Each operator is one or more strided copies.
#include <string.h>

#include "backends/graph/shape/infer.h"
#include "backends/vulkan/ops/ops.h"

// The largest number of axes of a copy: twice the rank limit, because the operator `tile` splits
// each axis into two. Axes are listed innermost first; sizes and strides count elements.
#define AXES_MAX (2 * INF_LIMIT_RANK)

struct move {
    bool bytes; // true: elements are bytes; false: they are words
    uint32_t axes;
    int64_t dims[AXES_MAX], from[AXES_MAX], to[AXES_MAX];
    int64_t from_base, to_base;
};

// The push constants of move.comp.
struct move_push {
    uint32_t count, axes;
    int32_t from, to;
    uint32_t dims[MOVE_AXES];
    int32_t from_strides[MOVE_AXES], to_strides[MOVE_AXES];
};
_Static_assert(sizeof(struct move_push) == 112, "as move.comp");

// Adds an axis outside the axes that were added before. If the new axis continues the previous one
// in source and destination, merges the two.
static void add_axis(struct move *move, int64_t dim, int64_t from, int64_t to)
{
    if (dim == 1)
        return;
    if (move->axes > 0) {
        uint32_t last = move->axes - 1;
        if (from == move->from[last] * move->dims[last] &&
            to == move->to[last] * move->dims[last]) {
            move->dims[last] *= dim;
            return;
        }
    }
    move->dims[move->axes] = dim;
    move->from[move->axes] = from;
    move->to[move->axes++] = to;
}

// Returns true if the copy can be made in vectors of four words or bytes. Sizes and strides are
// then converted to numbers of vectors.
static bool vectorise_move(struct move *move)
{
    if (move->axes == 0 || move->from[0] != 1 || move->to[0] != 1 || move->dims[0] % 4 != 0 ||
        move->from_base % 4 != 0 || move->to_base % 4 != 0)
        return false;
    for (uint32_t i = 1; i < move->axes; i++)
        if (move->from[i] % 4 != 0 || move->to[i] % 4 != 0)
            return false;
    for (uint32_t i = 1; i < move->axes; i++) {
        move->from[i] /= 4;
        move->to[i] /= 4;
    }
    move->dims[0] /= 4;
    move->from_base /= 4;
    move->to_base /= 4;
    return true;
}

// Starts a move of elements of the node's type. An element of eight bytes is treated as a row of
// two words; elements of one byte are counted like words.
static enum inf_code move_init(const struct vk_lowering *lowering, struct move *move,
                               int64_t *words, struct inf_error *err)
{
    enum inf_dtype dtype = vk_output_dtype(lowering, 0);
    size_t size = inf_dtype_size(dtype);
    if (size != 1 && size != 4 && size != 8)
        return vk_decline(lowering, err, "%s is not built", inf_dtype_name(dtype));
    if (size == 1)
        INF_TRY(vk_need_byte_storage(lowering, err));
    *words = size == 8 ? 2 : 1;
    *move = (struct move){.bytes = size == 1};
    add_axis(move, *words, 1, 1);
    return INF_OK;
}

// Emits the copy from value `from` to value `to`.
static enum inf_code emit_move(struct vk_lowering *lowering, struct move *move, uint32_t from,
                               uint32_t to, struct inf_error *err)
{
    bool vector = vectorise_move(move);
    if (move->axes > MOVE_AXES)
        return vk_decline(lowering, err, "more than %d axes are not built", MOVE_AXES);
    struct move_push push = {.count = 1,
                             .axes = move->axes,
                             .from = (int32_t)move->from_base,
                             .to = (int32_t)move->to_base};
    for (uint32_t i = 0; i < move->axes; i++) {
        push.count *= (uint32_t)move->dims[i];
        push.dims[i] = (uint32_t)move->dims[i];
        push.from_strides[i] = (int32_t)move->from[i];
        push.to_strides[i] = (int32_t)move->to[i];
    }
    struct vk_dispatch dispatch = {
        .variant = {move->bytes ? INF_SHADER_MOVE_BYTES : INF_SHADER_MOVE, {vector}},
        .invocations = push.count};
    vk_set_push_constants(&dispatch, &push, sizeof(push));
    INF_TRY(vk_bind_value(lowering, &dispatch, from, err));
    vk_read_through_view(lowering, &dispatch, 0, vector);
    INF_TRY(vk_bind_value(lowering, &dispatch, to, err));
    return vk_emit_dispatch(lowering, &dispatch, VK_FEW_ITERATIONS, err);
}

static enum inf_code emit_input_move(struct vk_lowering *lowering, struct move *move,
                                     struct inf_error *err)
{
    return emit_move(lowering, move, lowering->node->inputs[0], lowering->node->outputs[0], err);
}

// Copies bytes of any type in whole words. The last word may reach beyond the tensor.
enum inf_code vk_lower_copy(struct vk_lowering *lowering, struct inf_error *err)
{
    size_t bytes = inf_shape_elements(vk_output_shape(lowering, 0)) *
                   inf_dtype_size(vk_output_dtype(lowering, 0));
    struct move move = {0};
    add_axis(&move, (int64_t)((bytes + 3) / 4), 1, 1);
    return emit_input_move(lowering, &move, err);
}

enum inf_code vk_lower_transpose(struct vk_lowering *lowering, struct inf_error *err)
{
    const struct inf_ints *perm = &lowering->node->attrs.transpose.perm;
    const struct inf_shape *x = vk_input_shape(lowering, 0), *y = vk_output_shape(lowering, 0);
    struct move move;
    int64_t words, strides[INF_LIMIT_RANK], to;
    INF_TRY(move_init(lowering, &move, &words, err));
    inf_shape_strides(x, strides);
    to = words;
    for (int32_t axis = y->rank - 1; axis >= 0; axis--) {
        int32_t from =
            perm->count == 0 ? y->rank - 1 - axis : vk_resolve_axis(perm->values[axis], x->rank);
        add_axis(&move, y->dims[axis], strides[from] * words, to);
        to *= y->dims[axis];
    }
    return emit_input_move(lowering, &move, err);
}

enum inf_code vk_lower_slice(struct vk_lowering *lowering, struct inf_error *err)
{
    const struct inf_shape *x = vk_input_shape(lowering, 0);
    struct inf_slice_plan plan;
    struct move move;
    int64_t words, strides[INF_LIMIT_RANK], to;
    INF_TRY(move_init(lowering, &move, &words, err));
    if (!inf_node_slice_plan(lowering->graph, lowering->node, &plan))
        return vk_decline(lowering, err, "its positions are not constant");
    inf_shape_strides(x, strides);
    to = words;
    for (int32_t axis = plan.rank - 1; axis >= 0; axis--) {
        move.from_base += plan.begin[axis] * strides[axis] * words;
        add_axis(&move, plan.count[axis], strides[axis] * plan.stride[axis] * words, to);
        to *= plan.count[axis];
    }
    return emit_input_move(lowering, &move, err);
}

// --- operators concat and split ---

// Describes a copy between a part and a whole along one axis, as in concat and split. The part has
// size `part`, the whole has size `whole`, and the part begins at index `at` of the whole. `inner`
// is the number of words (or bytes) for one index of the axis. Keeps `bytes`.
static void fill_part(struct move *move, int64_t outer, int64_t part, int64_t whole, int64_t at,
                      int64_t inner, bool joining)
{
    *move = (struct move){.bytes = move->bytes};
    int64_t near = part * inner, far = whole * inner;
    add_axis(move, near, 1, 1);
    add_axis(move, outer, joining ? near : far, joining ? far : near);
    if (joining)
        move->to_base = at * inner;
    else
        move->from_base = at * inner;
}

enum inf_code vk_lower_concat(struct vk_lowering *lowering, struct inf_error *err)
{
    const struct inf_node *node = lowering->node;
    const struct inf_shape *y = vk_output_shape(lowering, 0);
    struct move move;
    int64_t words, at = 0;
    INF_TRY(move_init(lowering, &move, &words, err));
    int32_t axis = vk_resolve_axis(node->attrs.concat.axis, y->rank);
    int64_t inner = vk_dims_product(y, axis + 1, y->rank) * words;
    for (uint32_t i = 0; i < node->input_count; i++) {
        int64_t part = vk_input_shape(lowering, i)->dims[axis];
        fill_part(&move, vk_dims_product(y, 0, axis), part, y->dims[axis], at, inner, true);
        INF_TRY(emit_move(lowering, &move, node->inputs[i], node->outputs[0], err));
        at += part;
    }
    return INF_OK;
}

enum inf_code vk_lower_split(struct vk_lowering *lowering, struct inf_error *err)
{
    const struct inf_node *node = lowering->node;
    const struct inf_shape *x = vk_input_shape(lowering, 0);
    struct move move;
    int64_t words, at = 0;
    INF_TRY(move_init(lowering, &move, &words, err));
    int32_t axis = vk_resolve_axis(node->attrs.split.axis, x->rank);
    int64_t inner = vk_dims_product(x, axis + 1, x->rank) * words;
    for (uint32_t i = 0; i < node->output_count; i++) {
        int64_t part = vk_output_shape(lowering, i)->dims[axis];
        fill_part(&move, vk_dims_product(x, 0, axis), part, x->dims[axis], at, inner, false);
        INF_TRY(emit_move(lowering, &move, node->inputs[0], node->outputs[i], err));
        at += part;
    }
    return INF_OK;
}

// --- operators that repeat elements: tile, broadcast and fill ---

enum inf_code vk_lower_tile(struct vk_lowering *lowering, struct inf_error *err)
{
    const struct inf_shape *x = vk_input_shape(lowering, 0), *y = vk_output_shape(lowering, 0);
    struct move move;
    int64_t words, from, to;
    INF_TRY(move_init(lowering, &move, &words, err));
    from = to = words;
    for (int32_t axis = y->rank - 1; axis >= 0; axis--) {
        int64_t dim = x->dims[axis];
        add_axis(&move, dim, from, to);
        add_axis(&move, y->dims[axis] / dim, 0, to * dim);
        from *= dim;
        to *= y->dims[axis];
    }
    return emit_input_move(lowering, &move, err);
}

enum inf_code vk_lower_broadcast(struct vk_lowering *lowering, struct inf_error *err)
{
    const struct inf_shape *x = vk_input_shape(lowering, 0), *y = vk_output_shape(lowering, 0);
    struct move move;
    int64_t words, from, to;
    INF_TRY(move_init(lowering, &move, &words, err));
    from = to = words;
    for (int32_t axis = y->rank - 1; axis >= 0; axis--) {
        int32_t own = axis - (y->rank - x->rank);
        int64_t dim = own < 0 ? 1 : x->dims[own];
        add_axis(&move, y->dims[axis], dim == 1 ? 0 : from, to);
        from *= dim;
        to *= y->dims[axis];
    }
    return emit_input_move(lowering, &move, err);
}

enum inf_code vk_lower_fill(struct vk_lowering *lowering, struct inf_error *err)
{
    struct move move;
    int64_t words;
    INF_TRY(move_init(lowering, &move, &words, err));
    add_axis(&move, (int64_t)inf_shape_elements(vk_output_shape(lowering, 0)), 0, words);
    return emit_move(lowering, &move, lowering->node->inputs[1], lowering->node->outputs[0], err);
}

// --- operators depth_to_space and space_to_depth ---

// Emits a copy between [n, h, b, w, b, c] and [n, h, w, b, b, c], where b is the block size, and h
// and w are the size of the image with fewer pixels.
static enum inf_code emit_blocks(struct vk_lowering *lowering, const struct inf_shape *small,
                                 int64_t block, bool to_depth, struct inf_error *err)
{
    struct move move;
    int64_t words;
    INF_TRY(move_init(lowering, &move, &words, err));
    int64_t n = small->dims[0], h = small->dims[1], w = small->dims[2];
    int64_t c = small->dims[3] / (block * block) * words;
    int64_t big[] = {
        1, c, w * block * c, block * c, w * block * block * c, h * w * block * block * c};
    int64_t deep[] = {
        1, c, block * c, block * block * c, w * block * block * c, h * w * block * block * c};
    int64_t dims[] = {c, block, block, w, h, n};
    move.axes = 0;
    for (uint32_t i = 0; i < INF_ARRAY_LENGTH(dims); i++)
        add_axis(&move, dims[i], to_depth ? big[i] : deep[i], to_depth ? deep[i] : big[i]);
    return emit_input_move(lowering, &move, err);
}

enum inf_code vk_lower_space_to_depth(struct vk_lowering *lowering, struct inf_error *err)
{
    return emit_blocks(lowering, vk_output_shape(lowering, 0),
                       lowering->node->attrs.space_to_depth.block, true, err);
}

enum inf_code vk_lower_depth_to_space(struct vk_lowering *lowering, struct inf_error *err)
{
    return emit_blocks(lowering, vk_input_shape(lowering, 0),
                       lowering->node->attrs.depth_to_space.block, false, err);
}
