// SPDX-License-Identifier: Apache-2.0
// Convolutions and products of two tensors with the shaders whose work groups compute a block of
// results together: conv_block.comp, conv_matrix.comp and conv_split.comp. These files describe the
// algorithms.
#include "backends/vulkan/ops/conv_strips.h"

// A shader, and what a work group of it computes.
struct group_shader {
    enum inf_shader_index shader;
    uint32_t invocations;
    uint32_t pixels;        // of the choice (struct vk_shader_choice)
    uint32_t last_constant; // the specialisation constant behind those that all shaders have
    // The constants behind that one. conv_matrix.comp: the invocations of a subgroup, and the sizes
    // of the matrices that it multiplies. conv_block.comp: how many work groups share the sums of a
    // block. 0: the shader has no such constants.
    uint32_t next_constant;
    struct vk_matrices matrices;
    uint32_t splits;        // work groups that share the sums of a block; 1 or more
    uint32_t rows, columns; // pixels and vectors of four channels of the work group
    // The loop over the terms of a sum: how many terms an iteration adds, and its inner loops.
    uint32_t slice_terms;
    struct vk_loops slice;
};

// Returns the iterations of loops of an invocation whose sums have `terms` terms.
static uint64_t count_iterations(const struct group_shader *group, uint64_t terms)
{
    uint64_t slices = (terms + group->slice_terms - 1) / group->slice_terms;
    return vk_loop((slices + group->splits - 1) / group->splits, group->slice).run;
}

// Returns the iterations of the two loops that copy a slice of `depth` terms to shared memory.
static struct vk_loops count_copies(const struct group_shader *group, uint32_t depth)
{
    uint32_t vectors = depth * INF_MAX(group->rows / 4, group->columns);
    struct vk_loops copy =
        vk_loop((vectors + group->invocations - 1) / group->invocations, VK_NO_LOOPS);
    return vk_join_loops(copy, copy);
}

// The push constants of sum_parts.comp.
struct parts {
    uint32_t count, parts;
    uint32_t blocks, channels, added;
    float low, high;
};
_Static_assert(sizeof(struct parts) == 28, "as sum_parts.comp");

// Makes the dispatch of conv_block.comp write the parts of the sums to scratch memory, and
// describes the dispatch `sum` of sum_parts.comp, which adds them.
static enum inf_code split_sums(struct vk_lowering *lowering, const struct vk_conv *conv,
                                uint32_t splits, struct vk_dispatch *dispatch,
                                struct vk_dispatch *sum, struct inf_error *err)
{
    const struct vk_window *window = &conv->window;
    uint32_t blocks = conv->weights.group_blocks;
    struct parts parts = {.count = conv->images * window->out_h * window->out_w * blocks,
                          .parts = splits,
                          .blocks = blocks,
                          .channels = window->out_c,
                          .added = window->added,
                          .low = conv->activation.low,
                          .high = conv->activation.high};
    size_t size_bytes = (size_t)splits * parts.count * 4 * sizeof(float);
    *sum = (struct vk_dispatch){.variant = {INF_SHADER_SUM_PARTS,
                                            {conv->activation.function, window->out_c % 4 == 0,
                                             conv->activation.prelu, vk_conv_added_mode(conv)}},
                                .invocations = parts.count,
                                .cost = (uint64_t)parts.count * 4 * splits};
    vk_set_push_constants(sum, &parts, sizeof(parts));
    // The operands of conv_block.comp are x, weights, bias and slopes, the residual, and y.
    dispatch->operand_count--;
    INF_TRY(vk_bind_scratch(lowering, dispatch, 0, size_bytes, err));
    INF_TRY(vk_bind_scratch(lowering, sum, 0, size_bytes, err));
    vk_read_through_view(lowering, sum, 0, true);
    sum->operands[sum->operand_count++] = dispatch->operands[2];
    INF_TRY(vk_conv_bind_added(lowering, sum, conv, err));
    return vk_bind_value(lowering, sum, conv->y, err);
}

static enum inf_code emit_groups(struct vk_lowering *lowering, struct vk_conv *conv,
                                 const struct group_shader *group, bool *out_built,
                                 struct inf_error *err)
{
    struct vk_window window = conv->window;
    bool split = group->splits > 1;
    struct vk_dispatch sum = {0};
    struct vk_dispatch dispatch = {
        .variant = {group->shader,
                    {split ? FN_NONE : conv->activation.function, group->pixels,
                     window.in_c % 4 == 0, window.out_c % 4 == 0, conv->transposed,
                     !split && conv->activation.prelu, conv->one_tap,
                     split ? ADDED_NOTHING : vk_conv_added_mode(conv), group->last_constant,
                     group->next_constant, group->matrices.m, group->matrices.n, group->matrices.k},
                    .group_size = group->invocations},
        .cost = vk_conv_macs(conv)};
    INF_TRY(vk_conv_bind_operands(lowering, &dispatch, conv, err));
    vk_read_through_view(lowering, &dispatch, 0, dispatch.variant.constants[2] != 0);
    vk_read_through_view(lowering, &dispatch, 1, true);
    if (split)
        INF_TRY(split_sums(lowering, conv, group->splits, &dispatch, &sum, err));
    *out_built = vk_can_build(lowering, &dispatch) && (!split || vk_can_build(lowering, &sum));
    if (!*out_built)
        return INF_OK;
    window.strips = conv->images * window.out_h * window.out_w;
    window.blocks = conv->weights.group_blocks;
    window.low = conv->activation.low;
    window.high = conv->activation.high;
    uint32_t tiles = (window.blocks + group->columns - 1) / group->columns;
    dispatch.invocations = (window.strips + group->rows - 1) / group->rows * tiles * group->splits *
                           group->invocations;
    vk_set_push_constants(&dispatch, &window, sizeof(window));
    uint64_t terms = (uint64_t)conv->weights.taps * conv->weights.group_in;
    INF_TRY(vk_emit_dispatch(lowering, &dispatch, count_iterations(group, terms), err));
    return split ? vk_emit_dispatch(lowering, &sum, VK_FEW_ITERATIONS, err) : INF_OK;
}

// Describes conv_block.comp with the sizes of the choice.
static struct group_shader describe_blocks(const struct vk_shader_choice *choice, bool pair)
{
    static const enum inf_shader_index shaders[2][2] = {
        {INF_SHADER_CONV_BLOCK, INF_SHADER_CONV_BLOCK_F16},
        {INF_SHADER_CONV_BLOCK_PAIR, INF_SHADER_CONV_BLOCK_PAIR_F16}};
    uint32_t splits = INF_MAX(choice->splits, 1u);
    struct group_shader group = {.shader = shaders[pair][choice->method == VK_BY_BLOCKS_F16],
                                 .invocations = BLOCK_SIDE * BLOCK_SIDE,
                                 .pixels = choice->pixels,
                                 .last_constant = choice->vectors,
                                 .next_constant = pair ? 0 : splits,
                                 .splits = splits,
                                 .rows = BLOCK_SIDE * choice->pixels,
                                 .columns = BLOCK_SIDE * choice->vectors,
                                 .slice_terms = BLOCK_DEPTH};
    group.slice =
        vk_join_loops(count_copies(&group, BLOCK_DEPTH), vk_loop(BLOCK_DEPTH, VK_NO_LOOPS));
    return group;
}

enum inf_code vk_emit_blocks(struct vk_lowering *lowering, struct vk_conv *conv,
                             const struct vk_shader_choice *choice, bool *out_built,
                             struct inf_error *err)
{
    const struct group_shader blocks = describe_blocks(choice, false);
    return emit_groups(lowering, conv, &blocks, out_built, err);
}

// Returns the bytes of shared memory that conv_matrix.comp needs.
static uint32_t count_matrix_bytes(const struct group_shader *group)
{
    uint32_t channels = group->columns * 4;
    uint32_t factors = MATRIX_DEPTH * (group->rows + MATRIX_GAP + channels + MATRIX_GAP);
    uint32_t results = group->rows * (channels + MATRIX_GAP);
    return factors * (uint32_t)sizeof(uint16_t) + results * (uint32_t)sizeof(float);
}

// Returns the iterations of the loops that stand for the instructions in conv_matrix.comp, for the
// products of a slice.
static struct vk_loops count_products(const struct vk_gpu *gpu,
                                      const struct vk_shader_choice *choice)
{
    const struct vk_matrices *each = &gpu->matrices;
    if (each->method != VK_MATRICES_LOOPS)
        return VK_NO_LOOPS;
    struct vk_loops product =
        vk_loop(each->m * each->n / gpu->subgroup_size, vk_loop(each->k, VK_NO_LOOPS));
    struct vk_loops step = vk_loop(choice->pixels, vk_loop(choice->vectors, product));
    return vk_loop(MATRIX_DEPTH / each->k, step);
}

// Describes conv_matrix.comp with the sizes of the choice.
static struct group_shader describe_matrices(const struct vk_gpu *gpu,
                                             const struct vk_shader_choice *choice, bool pair)
{
    static const enum inf_shader_index shaders[2][VK_MATRICES_METHODS] = {
        {[VK_MATRICES_LOOPS] = INF_SHADER_CONV_MATRIX,
         [VK_MATRICES_NV] = INF_SHADER_CONV_MATRIX_NV,
         [VK_MATRICES_KHR] = INF_SHADER_CONV_MATRIX_KHR},
        {[VK_MATRICES_LOOPS] = INF_SHADER_CONV_MATRIX_PAIR,
         [VK_MATRICES_NV] = INF_SHADER_CONV_MATRIX_PAIR_NV,
         [VK_MATRICES_KHR] = INF_SHADER_CONV_MATRIX_PAIR_KHR}};
    const struct vk_matrices *each = &gpu->matrices;
    struct group_shader group = {.shader = shaders[pair][each->method],
                                 .invocations = MATRIX_SIDES * MATRIX_SIDES * gpu->subgroup_size,
                                 .pixels = choice->pixels,
                                 .last_constant = choice->vectors,
                                 .next_constant = gpu->subgroup_size,
                                 .splits = 1,
                                 .matrices = *each,
                                 .rows = MATRIX_SIDES * each->m * choice->pixels,
                                 .columns = MATRIX_SIDES * each->n * choice->vectors / 4,
                                 .slice_terms = MATRIX_DEPTH};
    group.slice = vk_join_loops(count_copies(&group, MATRIX_DEPTH), count_products(gpu, choice));
    return group;
}

bool vk_can_use_matrices(const struct vk_gpu *gpu, const struct vk_shader_choice *choice)
{
    const VkPhysicalDeviceLimits *limits = &gpu->properties.limits;
    if (gpu->matrices.method == VK_MATRICES_NONE || gpu->subgroup_size == 0)
        return false;
    const struct group_shader group = describe_matrices(gpu, choice, false);
    // All invocations copy equally many vectors of four values, and have equally many sums.
    return group.rows * MATRIX_DEPTH / 4 % group.invocations == 0 &&
           gpu->matrices.m * gpu->matrices.n % gpu->subgroup_size == 0 &&
           group.invocations <= limits->maxComputeWorkGroupInvocations &&
           count_matrix_bytes(&group) <= limits->maxComputeSharedMemorySize;
}

enum inf_code vk_emit_matrices(struct vk_lowering *lowering, struct vk_conv *conv,
                               const struct vk_shader_choice *choice, bool *out_built,
                               struct inf_error *err)
{
    const struct group_shader matrices = describe_matrices(lowering->gpu, choice, false);
    return emit_groups(lowering, conv, &matrices, out_built, err);
}

enum inf_code vk_emit_split(struct vk_lowering *lowering, struct vk_conv *conv,
                            const struct vk_shader_choice *choice, bool *out_built,
                            struct inf_error *err)
{
    const struct group_shader split = {.shader = INF_SHADER_CONV_SPLIT,
                                       .invocations = SPLIT_COLUMNS * choice->vectors,
                                       .pixels = choice->pixels,
                                       .last_constant = choice->vectors,
                                       .splits = 1,
                                       .rows = choice->pixels,
                                       .columns = SPLIT_COLUMNS,
                                       .slice_terms = 4 * choice->vectors};
    return emit_groups(lowering, conv, &split, out_built, err);
}

static struct group_shader describe_pair(const struct vk_gpu *gpu,
                                         const struct vk_shader_choice *choice)
{
    return choice->method == VK_BY_MATRICES ? describe_matrices(gpu, choice, true)
                                            : describe_blocks(choice, true);
}

struct vk_variant vk_pair_variant(const struct vk_gpu *gpu, const struct vk_product *product,
                                  const struct vk_shader_choice *choice)
{
    const struct group_shader group = describe_pair(gpu, choice);
    const struct vk_product_push *push = &product->push;
    bool a_by_k = push->a_column == 1, b_by_k = push->b_row == 1;
    return (struct vk_variant){
        group.shader,
        {product->function, group.pixels, (a_by_k ? push->k : push->m) % 4 == 0, push->n % 4 == 0,
         a_by_k, b_by_k, (b_by_k ? push->k : push->n) % 4 == 0, product->bias, group.last_constant,
         group.next_constant, group.matrices.m, group.matrices.n, group.matrices.k},
        .group_size = group.invocations};
}

void vk_pair_set_size(struct vk_dispatch *dispatch, const struct vk_gpu *gpu,
                      const struct vk_product *product, const struct vk_shader_choice *choice)
{
    const struct group_shader group = describe_pair(gpu, choice);
    struct vk_product_push push = product->push;
    push.count = product->batch * ((push.m + group.rows - 1) / group.rows) *
                 ((push.n + group.columns * 4 - 1) / (group.columns * 4));
    dispatch->invocations = push.count * group.invocations;
    dispatch->cost = (uint64_t)product->batch * push.m * push.n * push.k;
    vk_set_push_constants(dispatch, &push, sizeof(push));
}

uint64_t vk_pair_iterations(const struct vk_gpu *gpu, const struct vk_product *product,
                            const struct vk_shader_choice *choice)
{
    const struct group_shader group = describe_pair(gpu, choice);
    return count_iterations(&group, product->push.k);
}

enum inf_code vk_emit_pair(struct vk_lowering *lowering, const struct vk_product *product,
                           const struct vk_shader_choice *choice, bool *out_built,
                           struct inf_error *err)
{
    struct vk_dispatch dispatch = {.variant = vk_pair_variant(lowering->gpu, product, choice)};
    const uint32_t *constants = dispatch.variant.constants;
    INF_TRY(vk_product_bind(lowering, &dispatch, product, constants[VK_PAIR_A_VECTOR] != 0,
                            constants[VK_PAIR_B_VECTOR] != 0, err));
    *out_built = vk_can_build(lowering, &dispatch);
    if (!*out_built)
        return INF_OK;
    vk_pair_set_size(&dispatch, lowering->gpu, product, choice);
    uint64_t iterations = vk_pair_iterations(lowering->gpu, product, choice);
    return vk_emit_dispatch(lowering, &dispatch, iterations, err);
}
