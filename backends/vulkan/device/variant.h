// SPDX-License-Identifier: Apache-2.0
// Variants of shaders that a driver cannot build. They are left out on that driver from then on, also
// after a restart, and what needs them is computed by another variant or elsewhere.
#ifndef INF_BACKENDS_VULKAN_DEVICE_VARIANT_H
#define INF_BACKENDS_VULKAN_DEVICE_VARIANT_H

#include <stdbool.h>

#include "backends/base/role.h"
#include "backends/base/thread.h"
#include "shaders/constants.h"
#include "shaders/shaders.h"

struct vk_gpu;

// Specialisation constants 1 and up; constant 0 is the size of a work group everywhere.
#define VK_CONSTANTS_MAX CONSTANTS_MAX

// A shader that was made at run time (backends/vulkan/program/fuse.h): constants 1 and 2 are the halves of its hash.
#define VK_SHADER_FUSED ((uint32_t)(3 * INF_SHADER_COUNT))

// A shader with its specialisation constants.
struct vk_variant {
    uint32_t shader;                      // enum inf_shader_index, or VK_SHADER_FUSED
    uint32_t constants[VK_CONSTANTS_MAX]; // 0 behind the last
    uint32_t halves;                      // by binding: floats are kept in 16 bits; HALVES_CONSTANT
    uint32_t texels;                      // 1: floats are read through views
};

// More than this is no driver to use.
#define VK_BROKEN_MAX 64

// Embedded.
struct vk_broken_variants {
    struct inf_mutex mutex; // guards the list
    uint32_t count;
    struct vk_variant list[VK_BROKEN_MAX];
};

// The module of a variant. Any thread.
const struct inf_shader *vk_variant_shader(struct vk_gpu *gpu, const struct vk_variant *variant);

// Reads those that earlier starts noted for this driver.
void vk_broken_variants_init(struct vk_gpu *gpu);
// Releases it.
void vk_broken_variants_fini(struct vk_gpu *gpu);

// Whether the driver failed to build the variant. Any thread.
bool vk_variant_is_broken(struct vk_gpu *gpu, const struct vk_variant *variant);

// Notes that it did, here and on disk. Any thread.
void vk_variant_note_broken(struct vk_gpu *gpu, const struct vk_variant *variant) INF_MAY_BLOCK;

#endif
