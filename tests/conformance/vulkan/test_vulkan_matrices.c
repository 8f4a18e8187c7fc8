// SPDX-License-Identifier: Apache-2.0
// Whether a GPU multiplies matrices is what its driver says. A driver of the test's own answers.
#include <criterion/criterion.h>

#include "backends/vulkan/device/matrices.h"

// What the driver answers.
static struct driver {
    VkBool32 feature;
    VkShaderStageFlags stages;
    VkResult result;
    uint32_t kind_count;
    VkCooperativeMatrixPropertiesNV kinds[2];
} driver;

// 16 x 16 x 16 halves, added in 32 bits.
static const VkCooperativeMatrixPropertiesNV usual = {
    .sType = VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_NV,
    .MSize = 16,
    .NSize = 16,
    .KSize = 16,
    .AType = VK_COMPONENT_TYPE_FLOAT16_NV,
    .BType = VK_COMPONENT_TYPE_FLOAT16_NV,
    .CType = VK_COMPONENT_TYPE_FLOAT32_NV,
    .DType = VK_COMPONENT_TYPE_FLOAT32_NV,
    .scope = VK_SCOPE_SUBGROUP_NV};

static VKAPI_ATTR void VKAPI_CALL get_features(VkPhysicalDevice gpu, VkPhysicalDeviceFeatures2 *all)
{
    (void)gpu;
    VkPhysicalDeviceCooperativeMatrixFeaturesNV *matrices = all->pNext;
    cr_assert_eq(matrices->sType, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_NV);
    matrices->cooperativeMatrix = driver.feature;
}

static VKAPI_ATTR void VKAPI_CALL get_properties(VkPhysicalDevice gpu,
                                                 VkPhysicalDeviceProperties2 *all)
{
    (void)gpu;
    VkPhysicalDeviceCooperativeMatrixPropertiesNV *matrices = all->pNext;
    cr_assert_eq(matrices->sType,
                 VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_PROPERTIES_NV);
    matrices->cooperativeMatrixSupportedStages = driver.stages;
}

static VKAPI_ATTR VkResult VKAPI_CALL list_matrices(VkPhysicalDevice gpu, uint32_t *count,
                                                    VkCooperativeMatrixPropertiesNV *kinds)
{
    (void)gpu;
    cr_assert_geq(*count, driver.kind_count);
    *count = driver.kind_count;
    for (uint32_t i = 0; i < driver.kind_count; i++) {
        cr_assert_eq(kinds[i].sType, VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_NV);
        kinds[i] = driver.kinds[i];
    }
    return driver.result;
}

// A driver that has the extension, and one kind of matrices that inferd does not use.
static void start_driver(void)
{
    driver = (struct driver){.feature = VK_TRUE,
                             .stages = VK_SHADER_STAGE_COMPUTE_BIT,
                             .result = VK_SUCCESS,
                             .kind_count = 2,
                             .kinds = {usual, usual}};
    driver.kinds[0].KSize = 8;
}

static enum vk_matrices find_matrices(bool has_extension, bool has_entry)
{
    const struct vk_instance_api api = {.GetPhysicalDeviceFeatures2 = get_features,
                                        .GetPhysicalDeviceProperties2 = get_properties,
                                        .list_matrices = has_entry ? list_matrices : NULL};
    const struct vk_gpu gpu = {.api = &api};
    return vk_find_matrices(&gpu, has_extension);
}

TestSuite(vulkan_matrices, .init = start_driver);

Test(vulkan_matrices, are_found_among_the_kinds_of_the_driver)
{
    cr_expect_eq(find_matrices(true, true), VK_MATRICES_NV);
    driver.result = VK_INCOMPLETE;
    cr_expect_eq(find_matrices(true, true), VK_MATRICES_NV);
}

Test(vulkan_matrices, need_the_extension_and_its_feature_in_compute_shaders)
{
    cr_expect_eq(find_matrices(false, true), VK_MATRICES_NONE);
    cr_expect_eq(find_matrices(true, false), VK_MATRICES_NONE);
    driver.feature = VK_FALSE;
    cr_expect_eq(find_matrices(true, true), VK_MATRICES_NONE);
    driver.feature = VK_TRUE;
    driver.stages = VK_SHADER_STAGE_FRAGMENT_BIT;
    cr_expect_eq(find_matrices(true, true), VK_MATRICES_NONE);
}

Test(vulkan_matrices, need_a_list_of_kinds)
{
    driver.kind_count = 0;
    cr_expect_eq(find_matrices(true, true), VK_MATRICES_NONE);
    driver.kind_count = 2;
    driver.result = VK_ERROR_OUT_OF_HOST_MEMORY;
    cr_expect_eq(find_matrices(true, true), VK_MATRICES_NONE);
}

Test(vulkan_matrices, of_other_sizes_types_or_scopes_are_not_used)
{
    VkCooperativeMatrixPropertiesNV *kind = &driver.kinds[1];
    uint32_t *const sizes[] = {&kind->MSize, &kind->NSize, &kind->KSize};
    for (size_t i = 0; i < 3; i++) {
        *sizes[i] = 32;
        cr_expect_eq(find_matrices(true, true), VK_MATRICES_NONE, "size %zu", i);
        *sizes[i] = 16;
    }
    VkComponentTypeNV *const types[] = {&kind->AType, &kind->BType, &kind->CType, &kind->DType};
    for (size_t i = 0; i < 4; i++) {
        VkComponentTypeNV right = *types[i];
        *types[i] = VK_COMPONENT_TYPE_SINT8_NV;
        cr_expect_eq(find_matrices(true, true), VK_MATRICES_NONE, "type %zu", i);
        *types[i] = right;
    }
    kind->scope = VK_SCOPE_WORKGROUP_NV;
    cr_expect_eq(find_matrices(true, true), VK_MATRICES_NONE);
    kind->scope = VK_SCOPE_SUBGROUP_NV;
    cr_expect_eq(find_matrices(true, true), VK_MATRICES_NV);
}
