// SPDX-License-Identifier: Apache-2.0
// Decides which nodes one step computes: an attention, a residual convolution, an element-wise
// tree, or a single node.
#include "backends/vulkan/program/lower_step.h"

#include "backends/vulkan/program/attention.h"
#include "backends/vulkan/program/element_tree.h"
#include "backends/vulkan/program/lower_node.h"
#include "backends/vulkan/program/residual.h"

// Returns the later node whose step computes `node` too; INF_NODE_NONE if there is none. `forced`
// is the choice for an attention, as for vk_attention_end().
static uint32_t find_end(struct vk_gpu *gpu, const struct inf_segment *segment, uint32_t node,
                         const struct vk_shader_choice *forced)
{
    struct vk_residual residual;
    uint32_t attention = vk_attention_end(gpu, segment, node, forced);
    if (attention != INF_NODE_NONE)
        return attention;
    if (vk_residual_find(&residual, gpu, segment, node))
        return node == residual.end ? INF_NODE_NONE : residual.end;
    return vk_element_tree_step(gpu, segment, node);
}

uint32_t vk_fused_into(struct inf_device *device, const struct inf_segment *segment, uint32_t node)
{
    return find_end((struct vk_gpu *)device, segment, node, NULL);
}

enum inf_code vk_lower_step(struct vk_lowering *lowering, const struct inf_segment *segment,
                            struct inf_error *err)
{
    struct vk_gpu *gpu = lowering->gpu;
    struct vk_element_tree tree;
    struct inf_attention attention;
    struct vk_residual residual;
    uint32_t node = lowering->node_index;
    if (find_end(gpu, segment, node, lowering->forced) != INF_NODE_NONE)
        return INF_OK;
    if (vk_attention_find(&attention, gpu, segment, node, lowering->forced))
        return vk_lower_attention(lowering, &attention, err);
    // The choice was about the attention. Its nodes are lowered by their own winners or rules.
    if (vk_attention_is_choice(lowering->forced))
        lowering->forced = NULL;
    if (vk_residual_find(&residual, gpu, segment, node))
        return vk_lower_residual(lowering, &residual, segment, err);
    if (vk_element_tree_find(&tree, gpu, segment, node))
        return vk_lower_element_tree(lowering, &tree, err);
    return vk_lower_node(lowering, err);
}
