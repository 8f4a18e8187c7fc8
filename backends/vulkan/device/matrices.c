// SPDX-License-Identifier: Apache-2.0
// Asks a driver for the sizes and types of the matrices that its instructions multiply.
#include "backends/vulkan/device/matrices.h"

#include "shaders/constants.h"

// The most kinds of matrices that are read from a driver. NVIDIA's lists about ten.
#define KINDS_MAX 64u

static bool is_wanted(const VkCooperativeMatrixPropertiesNV *kind)
{
    return kind->MSize == MATRIX_SIDE && kind->NSize == MATRIX_SIDE && kind->KSize == MATRIX_SIDE &&
           kind->AType == VK_COMPONENT_TYPE_FLOAT16_NV &&
           kind->BType == VK_COMPONENT_TYPE_FLOAT16_NV &&
           kind->CType == VK_COMPONENT_TYPE_FLOAT32_NV &&
           kind->DType == VK_COMPONENT_TYPE_FLOAT32_NV && kind->scope == VK_SCOPE_SUBGROUP_NV;
}

// Returns true if compute shaders may use the instructions.
static bool has_feature(const struct vk_gpu *gpu)
{
    VkPhysicalDeviceCooperativeMatrixFeaturesNV matrices = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_NV};
    VkPhysicalDeviceFeatures2 features = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
                                          .pNext = &matrices};
    VkPhysicalDeviceCooperativeMatrixPropertiesNV stages = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_PROPERTIES_NV};
    VkPhysicalDeviceProperties2 properties = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &stages};
    gpu->api->GetPhysicalDeviceFeatures2(gpu->physical, &features);
    gpu->api->GetPhysicalDeviceProperties2(gpu->physical, &properties);
    return matrices.cooperativeMatrix &&
           (stages.cooperativeMatrixSupportedStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0;
}

enum vk_matrices vk_find_matrices(const struct vk_gpu *gpu, bool has_extension)
{
    VkCooperativeMatrixPropertiesNV kinds[KINDS_MAX];
    uint32_t count = KINDS_MAX;
    if (!has_extension || gpu->api->list_matrices == NULL || !has_feature(gpu))
        return VK_MATRICES_NONE;
    for (uint32_t i = 0; i < count; i++)
        kinds[i] = (VkCooperativeMatrixPropertiesNV){
            .sType = VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_NV};
    // VK_INCOMPLETE: the driver has more kinds than were read.
    VkResult result = gpu->api->list_matrices(gpu->physical, &count, kinds);
    if (result != VK_SUCCESS && result != VK_INCOMPLETE)
        return VK_MATRICES_NONE;
    for (uint32_t i = 0; i < count; i++)
        if (is_wanted(&kinds[i]))
            return VK_MATRICES_NV;
    return VK_MATRICES_NONE;
}
