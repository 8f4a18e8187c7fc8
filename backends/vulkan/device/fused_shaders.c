// SPDX-License-Identifier: Apache-2.0
// A linked list of generated shaders, guarded by a mutex. Entries live as long as the GPU, so a
// shader that was found may be used without the lock.
#include "backends/vulkan/device/fused_shaders.h"

#include <stdlib.h>

void vk_fused_shaders_init(struct vk_fused_shaders *shaders, bool available)
{
    inf_mutex_init(&shaders->mutex);
    atomic_init(&shaders->trees_off, !available);
    atomic_init(&shaders->residuals_off, false);
}

void vk_fused_shaders_fini(struct vk_fused_shaders *shaders)
{
    while (shaders->list != NULL) {
        struct vk_fused_shader *fused = shaders->list;
        shaders->list = fused->next;
        free((void *)(uintptr_t)fused->shader.words);
        free(fused);
    }
    inf_mutex_fini(&shaders->mutex);
}

const struct inf_shader *vk_fused_shaders_find(struct vk_fused_shaders *shaders, uint64_t hash)
{
    inf_mutex_lock(&shaders->mutex);
    const struct vk_fused_shader *fused = shaders->list;
    while (fused != NULL && fused->hash != hash)
        fused = fused->next;
    inf_mutex_unlock(&shaders->mutex);
    return fused != NULL ? &fused->shader : NULL;
}

void vk_fused_shaders_add(struct vk_fused_shaders *shaders, struct vk_fused_shader *fused)
{
    inf_mutex_lock(&shaders->mutex);
    fused->next = shaders->list;
    shaders->list = fused;
    inf_mutex_unlock(&shaders->mutex);
}
