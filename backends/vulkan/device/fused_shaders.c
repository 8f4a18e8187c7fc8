// SPDX-License-Identifier: Apache-2.0
// A linked list of generated shaders behind a mutex. Entries are never removed before the GPU is, so
// that a shader that was found may be used without the lock.
#include "backends/vulkan/device/fused_shaders.h"

#include <stdlib.h>

void vk_fusion_init(struct vk_fusion *fusion, bool available)
{
    inf_mutex_init(&fusion->mutex);
    atomic_init(&fusion->off, !available);
    atomic_init(&fusion->apart, false);
}

void vk_fusion_fini(struct vk_fusion *fusion)
{
    while (fusion->list != NULL) {
        struct vk_fused *fused = fusion->list;
        fusion->list = fused->next;
        free((void *)(uintptr_t)fused->shader.words);
        free(fused);
    }
    inf_mutex_fini(&fusion->mutex);
}

const struct inf_shader *vk_fusion_find(struct vk_fusion *fusion, uint64_t hash)
{
    inf_mutex_lock(&fusion->mutex);
    const struct vk_fused *fused = fusion->list;
    while (fused != NULL && fused->hash != hash)
        fused = fused->next;
    inf_mutex_unlock(&fusion->mutex);
    return fused != NULL ? &fused->shader : NULL;
}

void vk_fusion_add(struct vk_fusion *fusion, struct vk_fused *fused)
{
    inf_mutex_lock(&fusion->mutex);
    fused->next = fusion->list;
    fusion->list = fused;
    inf_mutex_unlock(&fusion->mutex);
}
