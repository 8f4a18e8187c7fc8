// SPDX-License-Identifier: Apache-2.0
// Which matrices inferd multiplies by instructions of a GPU, depending on what the driver reports.
// The functions of the driver are those of this file.
#include <criterion/criterion.h>
#include <string.h>

#include "backends/vulkan/device/matrices.h"
#include "proto/core/span.h"

// The numbers that the Vulkan registry gives to the structs of the two extensions, for which the
// headers may be too old, and what distinguishes them.
static const struct extension {
    const char *name, *list;
    struct vk_matrix_extensions has;
    enum vk_matrix_method method;
    int features, properties, kind;
} extensions[] = {
    {"VK_NV_cooperative_matrix",
     "vkGetPhysicalDeviceCooperativeMatrixPropertiesNV",
     {.nv = true},
     VK_MATRICES_NV,
     1000249000,
     1000249002,
     1000249001},
    {"VK_KHR_cooperative_matrix",
     "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR",
     {.khr = true, .subgroups = true},
     VK_MATRICES_KHR,
     1000506000,
     1000506002,
     1000506001},
};

// A kind of matrices, as the structs of both extensions begin.
struct kind {
    int type;
    void *next;
    uint32_t sizes[3], types[4];
    uint32_t rest[2]; // NV: the scope, no second word. KHR: whether sums saturate, and the scope
};

#define NV_KIND_BYTES  48u
#define KHR_KIND_BYTES 56u

// What the driver answers.
static struct driver {
    const struct extension *extension;
    VkBool32 feature, memory_model, full_subgroups;
    VkShaderStageFlags stages;
    VkResult result;
    uint32_t kind_count;
    struct kind kinds[2];
    bool has_entry;
} driver;

static VKAPI_ATTR void VKAPI_CALL get_features(VkPhysicalDevice gpu, VkPhysicalDeviceFeatures2 *all)
{
    (void)gpu;
    VkPhysicalDeviceCooperativeMatrixFeaturesNV *matrices = all->pNext;
    cr_assert_eq((int)matrices->sType, driver.extension->features);
    matrices->cooperativeMatrix = driver.feature;
    VkPhysicalDeviceVulkanMemoryModelFeatures *model = matrices->pNext;
    if (driver.extension->method == VK_MATRICES_KHR) {
        VkPhysicalDeviceSubgroupSizeControlFeatures *subgroups = matrices->pNext;
        cr_assert_eq(subgroups->sType,
                     VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES);
        subgroups->computeFullSubgroups = driver.full_subgroups;
        model = subgroups->pNext;
    }
    cr_assert_eq(model->sType, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES);
    model->vulkanMemoryModel = driver.memory_model;
}

static VKAPI_ATTR void VKAPI_CALL get_properties(VkPhysicalDevice gpu,
                                                 VkPhysicalDeviceProperties2 *all)
{
    (void)gpu;
    VkPhysicalDeviceCooperativeMatrixPropertiesNV *matrices = all->pNext;
    cr_assert_eq((int)matrices->sType, driver.extension->properties);
    matrices->cooperativeMatrixSupportedStages = driver.stages;
}

static VKAPI_ATTR VkResult VKAPI_CALL list_kinds(VkPhysicalDevice gpu, uint32_t *count, void *kinds)
{
    (void)gpu;
    cr_assert_geq(*count, driver.kind_count);
    *count = driver.kind_count;
    size_t bytes = driver.extension->method == VK_MATRICES_KHR ? KHR_KIND_BYTES : NV_KIND_BYTES;
    for (uint32_t i = 0; i < driver.kind_count; i++) {
        int type;
        char *kind = (char *)kinds + i * bytes;
        memcpy(&type, kind, sizeof type);
        cr_assert_eq(type, driver.extension->kind);
        memcpy(kind, &driver.kinds[i], bytes);
    }
    return driver.result;
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL find_entry(VkInstance instance, const char *name)
{
    (void)instance;
    cr_assert_str_eq(name, driver.extension->list);
    return driver.has_entry ? (PFN_vkVoidFunction)list_kinds : NULL;
}

// Starts a driver that has the extension and two kinds of matrices. inferd uses the second one:
// 16-bit floats of 16 x 16 x 16, which a subgroup adds in 32 bits.
static void start_driver(const struct extension *extension)
{
    const struct kind usual = {.sizes = {16, 16, 16}, .types = {0, 0, 1, 1}};
    driver = (struct driver){.extension = extension,
                             .feature = VK_TRUE,
                             .memory_model = VK_TRUE,
                             .full_subgroups = VK_TRUE,
                             .stages = VK_SHADER_STAGE_COMPUTE_BIT,
                             .result = VK_SUCCESS,
                             .kind_count = 2,
                             .kinds = {usual, usual},
                             .has_entry = true};
    size_t scope = extension->method == VK_MATRICES_KHR;
    driver.kinds[0].rest[scope] = driver.kinds[1].rest[scope] = VK_SCOPE_SUBGROUP_NV;
    driver.kinds[0].sizes[2] = 4;
}

static struct vk_matrices find_matrices(struct vk_matrix_extensions has)
{
    const struct vk_instance_api api = {.GetPhysicalDeviceFeatures2 = get_features,
                                        .GetPhysicalDeviceProperties2 = get_properties,
                                        .find_entry = find_entry};
    return vk_find_matrices(&api, VK_NULL_HANDLE, has);
}

static void expect_method(enum vk_matrix_method method, const char *what)
{
    enum vk_matrix_method found = find_matrices(driver.extension->has).method;
    cr_expect_eq(found, method, "%s, %s: %d", driver.extension->name, what, (int)found);
}

static void check_kinds(const struct extension *extension)
{
    struct kind *kind = &driver.kinds[1];
    start_driver(extension);
    for (size_t i = 0; i < 3; i++) {
        const uint32_t wrong[] = {0, 12, 32};
        for (size_t k = 0; k < 3; k++) {
            kind->sizes[i] = wrong[k];
            expect_method(VK_MATRICES_NONE, "another size");
        }
        kind->sizes[i] = 16;
    }
    for (size_t i = 0; i < 4; i++) {
        kind->types[i] += 3;
        expect_method(VK_MATRICES_NONE, "another type");
        kind->types[i] -= 3;
    }
    size_t scope = extension->method == VK_MATRICES_KHR;
    kind->rest[scope] = VK_SCOPE_WORKGROUP_NV;
    expect_method(VK_MATRICES_NONE, "another scope");
    kind->rest[scope] = VK_SCOPE_SUBGROUP_NV;
    if (extension->method == VK_MATRICES_KHR) {
        kind->rest[0] = VK_TRUE;
        expect_method(VK_MATRICES_NONE, "saturating sums");
        kind->rest[0] = VK_FALSE;
    }
    expect_method(extension->method, "the usual kind");
}

// Each row is a driver that lacks one thing. The last one lacks nothing, but has more kinds.
static void check_conditions(const struct extension *extension)
{
    const VkShaderStageFlags compute = VK_SHADER_STAGE_COMPUTE_BIT;
    const VkShaderStageFlags fragment = VK_SHADER_STAGE_FRAGMENT_BIT;
    const struct {
        const char *what;
        bool has_entry;
        VkBool32 feature, memory_model;
        VkShaderStageFlags stages;
        uint32_t kind_count;
        VkResult result;
        enum vk_matrix_method method;
    } rows[] = {
        {"no entry point", false, 1, 1, compute, 2, VK_SUCCESS, VK_MATRICES_NONE},
        {"no feature", true, 0, 1, compute, 2, VK_SUCCESS, VK_MATRICES_NONE},
        {"no memory model", true, 1, 0, compute, 2, VK_SUCCESS, VK_MATRICES_NONE},
        {"not in compute shaders", true, 1, 1, fragment, 2, VK_SUCCESS, VK_MATRICES_NONE},
        {"no kinds", true, 1, 1, compute, 0, VK_SUCCESS, VK_MATRICES_NONE},
        {"an error", true, 1, 1, compute, 2, VK_ERROR_OUT_OF_HOST_MEMORY, VK_MATRICES_NONE},
        {"more kinds", true, 1, 1, compute, 2, VK_INCOMPLETE, extension->method},
    };
    start_driver(extension);
    cr_expect_eq(find_matrices((struct vk_matrix_extensions){0}).method, VK_MATRICES_NONE);
    for (size_t i = 0; i < INF_ARRAY_LENGTH(rows); i++) {
        driver.has_entry = rows[i].has_entry;
        driver.feature = rows[i].feature;
        driver.memory_model = rows[i].memory_model;
        driver.stages = rows[i].stages;
        driver.kind_count = rows[i].kind_count;
        driver.result = rows[i].result;
        expect_method(rows[i].method, rows[i].what);
    }
}

Test(vulkan_matrices, are_found_among_the_kinds_of_either_extension)
{
    for (size_t i = 0; i < INF_ARRAY_LENGTH(extensions); i++)
        check_kinds(&extensions[i]);
}

Test(vulkan_matrices, need_an_extension_with_its_feature)
{
    for (size_t i = 0; i < INF_ARRAY_LENGTH(extensions); i++)
        check_conditions(&extensions[i]);
}

Test(vulkan_matrices, of_the_khr_extension_need_full_subgroups)
{
    start_driver(&extensions[1]);
    driver.full_subgroups = VK_FALSE;
    expect_method(VK_MATRICES_NONE, "no full subgroups");
    driver.full_subgroups = VK_TRUE;
    const struct vk_matrix_extensions one = {.khr = true};
    cr_expect_eq(find_matrices(one).method, VK_MATRICES_NONE);
}

Test(vulkan_matrices, are_the_largest_ones_of_the_driver)
{
    start_driver(&extensions[1]);
    driver.kinds[0].sizes[0] = 8;
    driver.kinds[0].sizes[2] = 16;
    struct vk_matrices found = find_matrices(driver.extension->has);
    cr_expect(found.m == 16 && found.n == 16 && found.k == 16);
    driver.kind_count = 1;
    found = find_matrices(driver.extension->has);
    cr_expect(found.m == 8 && found.n == 16 && found.k == 16);
}

Test(vulkan_matrices, enable_their_extension_and_features)
{
    for (size_t i = 0; i < INF_ARRAY_LENGTH(extensions); i++) {
        struct vk_matrix_features features;
        bool khr = extensions[i].method == VK_MATRICES_KHR;
        int end;
        const VkPhysicalDeviceCooperativeMatrixFeaturesNV *matrices =
            vk_matrix_features_chain(&features, extensions[i].method, &end);
        cr_assert_eq(features.extension_count, khr ? 2u : 1u);
        cr_expect_str_eq(features.extensions[0], extensions[i].name);
        cr_expect_eq((int)matrices->sType, extensions[i].features);
        cr_expect(matrices->cooperativeMatrix);
        const void *next = matrices->pNext;
        if (khr) {
            cr_expect_str_eq(features.extensions[1], "VK_EXT_subgroup_size_control");
            cr_assert_eq(next, &features.subgroups);
            cr_expect(features.subgroups.computeFullSubgroups);
            next = features.subgroups.pNext;
        }
        cr_assert_eq(next, &features.memory_model);
        cr_expect(features.memory_model.vulkanMemoryModel);
        cr_expect_eq(features.memory_model.pNext, &end);
        cr_expect_eq(vk_matrix_features_chain(&features, VK_MATRICES_LOOPS, &end), &end);
        cr_expect_eq(features.extension_count, 0u);
    }
}
