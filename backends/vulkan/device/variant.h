// SPDX-License-Identifier: Apache-2.0
// Variants of shaders, and the list of variants that a driver cannot build. A broken variant is not
// used with that driver, even after a restart. Another variant or another device computes the node.
#ifndef INF_BACKENDS_VULKAN_DEVICE_VARIANT_H
#define INF_BACKENDS_VULKAN_DEVICE_VARIANT_H

#include <stdbool.h>

#include "backends/base/role.h"
#include "backends/base/thread.h"
#include "shaders/constants.h"
#include "shaders/shaders.h"

struct vk_gpu;

// The number of specialisation constants that a variant sets. Their ids start at 1, because
// constant 0 is the size of a work group in all shaders.
#define VK_CONSTANTS_MAX CONSTANTS_MAX

// The shader index of all shaders that were generated at run time (program/element_tree.h). The
// constants 1 and 2 of such a variant are the halves of the 64-bit hash of its source.
#define VK_SHADER_FUSED ((uint32_t)(3 * INF_SHADER_COUNT))

// A shader with its specialisation constants.
struct vk_variant {
    uint32_t shader;                      // enum inf_shader_index, or VK_SHADER_FUSED
    uint32_t constants[VK_CONSTANTS_MAX]; // 0 after the last constant in use
    uint32_t halves;     // bit i is set if the floats of binding i are 16-bit; see HALVES_CONSTANT
    uint32_t texels;     // 1: the shader reads floats through texel views; 0: from buffers
    uint32_t group_size; // invocations in a work group; 0: as many as the GPU's other shaders have
};

// If a driver has more broken variants than this, its GPU is not used.
#define VK_BROKEN_MAX 64

// Why a variant is not used.
enum vk_variant_fault {
    VK_VARIANT_UNBUILT, // the driver failed to build it
    VK_VARIANT_WRONG,   // it computed wrong results
};

struct vk_broken_variant {
    struct vk_variant variant;
    uint32_t fault; // enum vk_variant_fault
};

// The set of broken variants. Embedded in the GPU.
struct vk_broken_variants {
    struct inf_mutex mutex; // guards the list
    uint32_t count;
    struct vk_broken_variant list[VK_BROKEN_MAX];
};

// Returns the SPIR-V module of a variant. Any thread.
const struct inf_shader *vk_variant_shader(struct vk_gpu *gpu, const struct vk_variant *variant);

// Returns the number of invocations in a work group of a variant. Any thread.
uint32_t vk_variant_group_size(const struct vk_gpu *gpu, const struct vk_variant *variant);

// Returns true if the pipeline of a variant must ask for full subgroups: the KHR instructions for
// matrices need them. Any thread.
bool vk_variant_needs_full_subgroups(const struct vk_variant *variant);

// Reads the broken variants that earlier starts recorded for this driver.
void vk_broken_variants_init(struct vk_gpu *gpu);
// Frees the list of broken variants.
void vk_broken_variants_fini(struct vk_gpu *gpu);

// Returns true if the variant must not be used on this driver, and sets *out_fault (may be NULL).
// Any thread.
bool vk_variant_is_broken(struct vk_gpu *gpu, const struct vk_variant *variant,
                          enum vk_variant_fault *out_fault);

// Records that the variant must not be used, in memory and on disk. Any thread.
void vk_variant_note_broken(struct vk_gpu *gpu, const struct vk_variant *variant,
                            enum vk_variant_fault fault) INF_MAY_BLOCK;

#endif
