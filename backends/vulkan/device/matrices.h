// SPDX-License-Identifier: Apache-2.0
// Whether a GPU has instructions that multiply whole matrices of 16-bit floats, and for which
// sizes.
#ifndef INF_BACKENDS_VULKAN_DEVICE_MATRICES_H
#define INF_BACKENDS_VULKAN_DEVICE_MATRICES_H

#include <stdbool.h>

#include "backends/vulkan/device/api.h"

// How shaders multiply matrices (shaders/lib/matrix.glsl).
enum vk_matrix_method {
    VK_MATRICES_NONE,  // not at all
    VK_MATRICES_LOOPS, // by loops, which any device can run; only tests choose this
    VK_MATRICES_NV,    // by the instructions of VK_NV_cooperative_matrix
    VK_MATRICES_KHR,   // by those of VK_KHR_cooperative_matrix
    VK_MATRICES_METHODS
};

// An instruction multiplies m rows of k 16-bit floats with k rows of n, and adds in 32 bits.
struct vk_matrices {
    enum vk_matrix_method method;
    uint32_t m, n, k;
};

// The extensions that a GPU has.
struct vk_matrix_extensions {
    bool khr;       // VK_KHR_cooperative_matrix
    bool subgroups; // VK_EXT_subgroup_size_control, which the KHR extension needs
    bool nv;        // VK_NV_cooperative_matrix
};

// Returns the largest matrices, up to 16x16x16, that compute shaders of a GPU can multiply. Prefers
// the KHR extension. Calls the driver.
struct vk_matrices vk_find_matrices(const struct vk_instance_api *api, VkPhysicalDevice gpu,
                                    struct vk_matrix_extensions extensions);

// The most extensions that a method needs.
#define VK_MATRIX_EXTENSIONS_MAX 2u

// The features and extensions that a device must enable for the instructions (VkDeviceCreateInfo).
struct vk_matrix_features {
    VkPhysicalDeviceVulkanMemoryModelFeatures memory_model;
    VkPhysicalDeviceSubgroupSizeControlFeatures subgroups;
    VkPhysicalDeviceCooperativeMatrixFeaturesNV matrices; // the KHR struct has the same members
    const char *extensions[VK_MATRIX_EXTENSIONS_MAX];
    uint32_t extension_count;
};

// Fills *features and puts its structs in front of the chain `next`. Returns the head of the chain,
// which is valid as long as *features. For methods without instructions it returns `next`, and
// there are no extensions.
const void *vk_matrix_features_chain(struct vk_matrix_features *features,
                                     enum vk_matrix_method method, void *next);

#endif
