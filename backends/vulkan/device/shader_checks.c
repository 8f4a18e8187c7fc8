// SPDX-License-Identifier: Apache-2.0
// Two sets of shader variants: those that computed correctly, and those that cannot be checked. A
// cache file keeps the first set. The file is valid for one build of the driver and of the shaders.
#include "backends/vulkan/device/shader_checks.h"

#include <stdlib.h>

#include "backends/vulkan/device/cache_file.h"
#include "backends/vulkan/device/gpu.h"

void vk_shader_checks_init(struct vk_gpu *gpu, const struct inf_evaluator *oracle)
{
    struct vk_shader_checks *checks = &gpu->checks;
    inf_mutex_init(&checks->mutex);
    checks->oracle = oracle;
    checks->error_max = VK_CHECK_ERROR_MAX;
    checks->time_max_ns = VK_CHECK_NS_MAX;
    if (oracle == NULL)
        return;
    size_t size = 0;
    char *file = NULL;
    const void *set = vk_cache_file_read(gpu, VK_CACHE_CHECKED, &file, &size);
    // A file that is not valid leaves the set empty: all variants are checked again.
    if (set != NULL)
        (void)vk_known_variants_read(&checks->right, set, size);
    free(file);
}

void vk_shader_checks_fini(struct vk_shader_checks *checks)
{
    vk_known_variants_fini(&checks->right);
    vk_known_variants_fini(&checks->unchecked);
    inf_mutex_fini(&checks->mutex);
}

bool vk_shader_checks_needs(struct vk_shader_checks *checks, const struct vk_variant *variant)
{
    if (checks->oracle == NULL)
        return false;
    inf_mutex_lock(&checks->mutex);
    bool needs = !vk_known_variants_has(&checks->right, variant) &&
                 !vk_known_variants_has(&checks->unchecked, variant);
    inf_mutex_unlock(&checks->mutex);
    return needs;
}

void vk_shader_checks_note_right(struct vk_shader_checks *checks, const struct vk_variant *variant)
{
    inf_mutex_lock(&checks->mutex);
    uint32_t before = checks->right.count;
    vk_known_variants_add(&checks->right, variant);
    checks->changed |= checks->right.count != before;
    inf_mutex_unlock(&checks->mutex);
}

void vk_shader_checks_note_unchecked(struct vk_shader_checks *checks,
                                     const struct vk_variant *variant)
{
    inf_mutex_lock(&checks->mutex);
    vk_known_variants_add(&checks->unchecked, variant);
    inf_mutex_unlock(&checks->mutex);
}

void vk_shader_checks_store(struct vk_gpu *gpu)
{
    struct vk_shader_checks *checks = &gpu->checks;
    char *copy = NULL;
    size_t size = 0;
    inf_mutex_lock(&checks->mutex);
    if (checks->changed)
        copy = vk_known_variants_encode(&checks->right, 0, &size);
    checks->changed = false;
    inf_mutex_unlock(&checks->mutex);
    if (copy != NULL)
        vk_cache_file_write(gpu, VK_CACHE_CHECKED, copy, size);
    free(copy);
}
