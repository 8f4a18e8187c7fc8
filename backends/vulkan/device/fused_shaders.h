// SPDX-License-Identifier: Apache-2.0
// The shaders of one GPU that were generated at run time (program/element_tree.h). They live as
// long as the GPU.
#ifndef INF_BACKENDS_VULKAN_DEVICE_FUSED_SHADERS_H
#define INF_BACKENDS_VULKAN_DEVICE_FUSED_SHADERS_H

#include <stdatomic.h>

#include "backends/base/thread.h"
#include "shaders/shaders.h"

// A shader that was generated at run time.
struct vk_fused_shader {
    struct vk_fused_shader *next;
    uint64_t hash; // of its source
    struct inf_shader shader;
};

// Embedded in the GPU.
struct vk_fused_shaders {
    struct inf_mutex mutex; // guards the list
    struct vk_fused_shader *list;
    atomic_bool trees_off; // there is no shader compiler, or a shader could not be built
    // convolutions add no residual: such a shader could not be built
    atomic_bool residuals_off;
};

// Makes the list empty. `available` says whether this process can compile shaders.
void vk_fused_shaders_init(struct vk_fused_shaders *shaders, bool available);

// Frees the shaders.
void vk_fused_shaders_fini(struct vk_fused_shaders *shaders);

// Returns the shader whose source has the hash, or NULL. Any thread.
const struct inf_shader *vk_fused_shaders_find(struct vk_fused_shaders *shaders, uint64_t hash);

// Adds a shader; the list owns it from now on. If two threads add the same hash, both entries stay
// and
// the later one is found. Any thread.
void vk_fused_shaders_add(struct vk_fused_shaders *shaders, struct vk_fused_shader *fused);

#endif
