// SPDX-License-Identifier: Apache-2.0
// Names shaders, and chooses the shader of a node.
#include "backends/vulkan/ops/shader_choice.h"

#include <stdio.h>
#include <string.h>

#include "backends/storage/record.h"

static const char *const method_names[VK_METHODS] = {
    [VK_BY_STRIPS] = "strips",
    [VK_BY_SQUARES] = "squares",
    [VK_BY_TILES] = "tiles",
    [VK_BY_WINOGRAD] = "winograd",
    [VK_BY_WINOGRAD_2] = "winograd2",
    [VK_BY_WINOGRAD_4] = "winograd4",
    [VK_BY_WINOGRAD_2_F16] = "winograd2f16",
    [VK_BY_WINOGRAD_2_MATRICES] = "winograd2matrices",
    [VK_BY_BLOCKS] = "blocks",
    [VK_BY_BLOCKS_F16] = "blocksf16",
    [VK_BY_MATRICES] = "matrices",
    [VK_BY_SPLIT] = "split",
    [VK_BY_DEPTHWISE] = "depthwise",
    [VK_BY_ATTENTION] = "attention",
    [VK_BY_NODES] = "nodes",
};

void vk_shader_choice_print(const struct vk_shader_choice *choice, char text[INF_RACE_WINNER_TEXT])
{
    const char *method = method_names[choice->method];
    if (choice->splits != 0)
        snprintf(text, INF_RACE_WINNER_TEXT, "%s_%u_%u_%u", method, choice->pixels, choice->vectors,
                 choice->splits);
    else if (choice->vectors != 0)
        snprintf(text, INF_RACE_WINNER_TEXT, "%s_%u_%u", method, choice->pixels, choice->vectors);
    else if (choice->pixels != 0)
        snprintf(text, INF_RACE_WINNER_TEXT, "%s_%u", method, choice->pixels);
    else
        snprintf(text, INF_RACE_WINNER_TEXT, "%s", method);
}

// Copies the recorded winner to *choice, if it is `rule` or one of the candidates.
static void take_winner(const struct vk_lowering *lowering, uint64_t key,
                        const struct vk_shader_choice *candidates, uint32_t count,
                        struct vk_shader_choice *choice)
{
    char winner[INF_RACE_WINNER_TEXT], name[INF_RACE_WINNER_TEXT];
    if (!inf_race_results_find(lowering->gpu->races, key, lowering->known_until_ns, winner))
        return;
    for (uint32_t i = 0; i < count; i++) {
        vk_shader_choice_print(&candidates[i], name);
        if (strcmp(name, winner) == 0)
            *choice = candidates[i];
    }
}

static bool is_same_choice(const struct vk_shader_choice *a, const struct vk_shader_choice *b)
{
    return a->method == b->method && a->pixels == b->pixels && a->vectors == b->vectors &&
           a->splits == b->splits;
}

uint64_t vk_shader_key(const struct vk_lowering *lowering, const void *parts, size_t size_bytes)
{
    if (lowering->gpu->races == NULL)
        return 0;
    uint64_t key = inf_record_hash(inf_race_results_seed(lowering->gpu->races), parts, size_bytes);
    return key != 0 ? key : 1;
}

struct vk_shader_choice vk_shader_choose(const struct vk_lowering *lowering, uint64_t key,
                                         struct vk_shader_choice rule,
                                         const struct vk_shader_choice *candidates, uint32_t count)
{
    struct vk_shader_candidates *wanted = lowering->candidates;
    if (lowering->forced != NULL)
        return *lowering->forced;
    if (key == 0)
        return rule;
    if (wanted != NULL) {
        wanted->key = key;
        wanted->count = 0;
        wanted->list[wanted->count++] = rule;
        for (uint32_t i = 0; i < count && wanted->count < VK_SHADER_CANDIDATES; i++)
            if (!is_same_choice(&candidates[i], &rule))
                wanted->list[wanted->count++] = candidates[i];
    }
    take_winner(lowering, key, candidates, count, &rule);
    return rule;
}

// --- convolutions ---

// Returns the key under which the winner for a convolution is recorded: its shapes, its kind, and
// whether weights and tensors are 16-bit. The activation and the residual hardly change which
// shader is fastest, so they are left out.
static uint64_t make_key(const struct vk_lowering *lowering, const struct vk_conv *conv,
                         enum vk_shader_method method)
{
    const struct vk_window *window = &conv->window;
    const uint32_t parts[] = {
        method == VK_BY_DEPTHWISE,
        conv->images,
        window->in_h,
        window->in_w,
        window->in_c,
        window->out_h,
        window->out_w,
        window->out_c,
        window->kernel_h,
        window->kernel_w,
        window->stride_h,
        window->stride_w,
        window->dilation_h,
        window->dilation_w,
        (uint32_t)window->pad_top,
        (uint32_t)window->pad_left,
        conv->weights.groups,
        conv->transposed,
        lowering->half_weights,
    };
    return vk_shader_key(lowering, parts, sizeof parts);
}

struct vk_shader_choice vk_conv_choose(const struct vk_lowering *lowering,
                                       const struct vk_conv *conv, struct vk_shader_choice rule,
                                       const struct vk_shader_choice *candidates, uint32_t count)
{
    struct vk_shader_candidates *wanted = lowering->candidates;
    uint64_t key = make_key(lowering, conv, rule.method);
    if (wanted != NULL && key != 0) {
        wanted->subject = VK_RACE_CONV;
        wanted->conv = *conv;
    }
    return vk_shader_choose(lowering, key, rule, candidates, count);
}
