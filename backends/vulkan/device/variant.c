// SPDX-License-Identifier: Apache-2.0
// Looks up the shader of a variant, and keeps the list of variants that the driver cannot build or
// with which it computes wrongly.
#include "backends/vulkan/device/variant.h"

#include <stdlib.h>
#include <string.h>

#include "backends/vulkan/device/cache_file.h"
#include "backends/vulkan/device/gpu.h"

const struct inf_shader *vk_variant_shader(struct vk_gpu *gpu, const struct vk_variant *variant)
{
    if (variant->shader == VK_SHADER_FUSED)
        return vk_fused_shaders_find(&gpu->fused_shaders,
                                     (uint64_t)variant->constants[1] << 32 | variant->constants[0]);
    uint32_t build = variant->texels != 0 ? 2 : (variant->halves != 0 ? 1 : 0);
    return &inf_shaders[variant->shader + build * INF_SHADER_COUNT];
}

uint32_t vk_variant_group_size(const struct vk_gpu *gpu, const struct vk_variant *variant)
{
    return variant->group_size != 0 ? variant->group_size : gpu->group_size;
}

bool vk_variant_needs_full_subgroups(const struct vk_variant *variant)
{
    return variant->shader == INF_SHADER_CONV_MATRIX_KHR ||
           variant->shader == INF_SHADER_CONV_MATRIX_PAIR_KHR;
}

void vk_broken_variants_init(struct vk_gpu *gpu)
{
    struct vk_broken_variants *broken = &gpu->broken;
    inf_mutex_init(&broken->mutex);
    size_t size = 0;
    char *file = NULL;
    const void *list = vk_cache_file_read(gpu, VK_CACHE_BROKEN, &file, &size);
    if (list != NULL && size % sizeof(*broken->list) == 0 && size <= sizeof(broken->list)) {
        memcpy(broken->list, list, size);
        broken->count = (uint32_t)(size / sizeof(*broken->list));
    }
    free(file);
}

void vk_broken_variants_fini(struct vk_gpu *gpu)
{
    inf_mutex_fini(&gpu->broken.mutex);
}

// Returns the entry of the variant; NULL if it is not broken.
static const struct vk_broken_variant *find_broken(const struct vk_broken_variants *broken,
                                                   const struct vk_variant *variant)
    INF_ATTR(requires_capability(broken->mutex))
{
    for (uint32_t i = 0; i < broken->count; i++)
        if (memcmp(&broken->list[i].variant, variant, sizeof(*variant)) == 0)
            return &broken->list[i];
    return NULL;
}

bool vk_variant_is_broken(struct vk_gpu *gpu, const struct vk_variant *variant,
                          enum vk_variant_fault *out_fault)
{
    inf_mutex_lock(&gpu->broken.mutex);
    const struct vk_broken_variant *found = find_broken(&gpu->broken, variant);
    bool broken = found != NULL;
    if (broken && out_fault != NULL)
        *out_fault = (enum vk_variant_fault)found->fault;
    inf_mutex_unlock(&gpu->broken.mutex);
    return broken;
}

void vk_variant_note_broken(struct vk_gpu *gpu, const struct vk_variant *variant,
                            enum vk_variant_fault fault)
{
    struct vk_broken_variants *broken = &gpu->broken;
    struct vk_broken_variant copy[VK_BROKEN_MAX];
    inf_mutex_lock(&broken->mutex);
    bool added = broken->count < VK_BROKEN_MAX && find_broken(broken, variant) == NULL;
    if (added)
        broken->list[broken->count++] =
            (struct vk_broken_variant){.variant = *variant, .fault = (uint32_t)fault};
    size_t size = broken->count * sizeof(*copy);
    memcpy(copy, broken->list, size);
    inf_mutex_unlock(&broken->mutex);
    if (!added)
        return;
    inf_log(gpu->log, INF_LOG_WARNING, "shader variant left out device=%s shader=%s reason=%s",
            gpu->base.info.name, vk_variant_shader(gpu, variant)->name,
            fault == VK_VARIANT_WRONG ? "wrong" : "unbuilt");
    vk_cache_file_write(gpu, VK_CACHE_BROKEN, copy, size);
}
