// SPDX-License-Identifier: Apache-2.0
// The shaders that were generated at run time for one GPU (program/element_tree.h). They are freed
// together with the GPU.
#ifndef INF_BACKENDS_VULKAN_DEVICE_FUSED_SHADERS_H
#define INF_BACKENDS_VULKAN_DEVICE_FUSED_SHADERS_H

#include <stdatomic.h>

#include "backends/base/thread.h"
#include "shaders/shaders.h"

// A shader that was generated at run time.
struct vk_fused_shader {
    struct vk_fused_shader *next;
    uint64_t hash; // hash of its GLSL source
    struct inf_shader shader;
};

// The generated shaders of a GPU. Embedded in the GPU.
struct vk_fused_shaders {
    struct inf_mutex mutex; // guards the list
    struct vk_fused_shader *list;
    // True: element-wise trees are not fused, because shaders cannot be compiled or one failed to
    // build.
    atomic_bool trees_off;
    // True if a convolution shader with a residual could not be built. From then on, convolutions
    // on this GPU are not fused with residual additions.
    atomic_bool residuals_off;
};

// Initialises an empty list. `available` says whether this process can compile shaders.
void vk_fused_shaders_init(struct vk_fused_shaders *shaders, bool available);

// Frees the shaders of the list.
void vk_fused_shaders_fini(struct vk_fused_shaders *shaders);

// Returns the shader whose source has the hash `hash`; NULL if there is none. Any thread.
const struct inf_shader *vk_fused_shaders_find(struct vk_fused_shaders *shaders, uint64_t hash);

// Adds a shader; the list takes ownership. If two threads add the same hash, the list keeps both
// entries, and later lookups find one of them. Any thread.
void vk_fused_shaders_add(struct vk_fused_shaders *shaders, struct vk_fused_shader *fused);

#endif
