// SPDX-License-Identifier: Apache-2.0
// Asks a driver for the sizes and types of the matrices that its instructions multiply. The KHR
// extension has the structs of NVIDIA's older extension, with other values of VkStructureType. Only
// the struct that describes a kind of matrices has other members.
#include "backends/vulkan/device/matrices.h"

#include <string.h>

#include "shaders/constants.h"

// The most kinds of matrices that are read from a driver. NVIDIA's lists about ten.
#define KINDS_MAX 64u

// The largest side of a matrix that is used. Larger ones leave few sizes of blocks.
#define SIDE_MAX 16u

// VkCooperativeMatrixPropertiesKHR, which the headers of Debian 12 lack.
struct khr_kind {
    VkStructureType type;
    void *next;
    uint32_t m, n, k;
    VkComponentTypeNV a, b, c, result;
    VkBool32 saturates;
    VkScopeNV scope;
};

// The kinds that a driver lists, by one of the extensions.
union kinds {
    VkCooperativeMatrixPropertiesNV nv[KINDS_MAX];
    struct khr_kind khr[KINDS_MAX];
};

// The entry points of both extensions that list kinds have this type, with their own struct.
typedef VkResult(VKAPI_PTR *list_kinds)(VkPhysicalDevice gpu, uint32_t *count, void *kinds);

// What distinguishes the extensions.
static const struct extension {
    const char *name, *list;
    VkStructureType features, properties, kind;
} extensions[] = {
    [VK_MATRICES_NV] = {"VK_NV_cooperative_matrix",
                        "vkGetPhysicalDeviceCooperativeMatrixPropertiesNV",
                        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_NV,
                        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_PROPERTIES_NV,
                        VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_NV},
    // Values of VkStructureType from the Vulkan registry, which the headers of Debian 12 lack.
    [VK_MATRICES_KHR] = {"VK_KHR_cooperative_matrix",
                         "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR",
                         (VkStructureType)1000506000, (VkStructureType)1000506002,
                         (VkStructureType)1000506001},
};

// Returns true if compute shaders may use the matrices, the memory model that they need, and for
// the KHR extension full subgroups, which pipelines must ask for.
static bool has_feature(const struct vk_instance_api *api, VkPhysicalDevice gpu,
                        const struct extension *extension)
{
    VkPhysicalDeviceVulkanMemoryModelFeatures memory_model = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES};
    VkPhysicalDeviceSubgroupSizeControlFeatures subgroups = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES,
        .pNext = &memory_model};
    bool is_khr = extension == &extensions[VK_MATRICES_KHR];
    VkPhysicalDeviceCooperativeMatrixFeaturesNV matrices = {
        .sType = extension->features, .pNext = is_khr ? (void *)&subgroups : &memory_model};
    VkPhysicalDeviceFeatures2 features = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
                                          .pNext = &matrices};
    VkPhysicalDeviceCooperativeMatrixPropertiesNV stages = {.sType = extension->properties};
    VkPhysicalDeviceProperties2 properties = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &stages};
    api->GetPhysicalDeviceFeatures2(gpu, &features);
    api->GetPhysicalDeviceProperties2(gpu, &properties);
    return matrices.cooperativeMatrix && memory_model.vulkanMemoryModel &&
           (!is_khr || subgroups.computeFullSubgroups) &&
           (stages.cooperativeMatrixSupportedStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0;
}

// Returns true if shaders/conv_matrix.comp can use matrices with a side of this length. Matrices
// begin at multiples of their sides in shared memory, and these places must be multiples of eight.
static bool is_side(uint32_t size)
{
    return size != 0 && size % MATRIX_GAP == 0 && size <= SIDE_MAX;
}

// Returns kind `i` of the list that the driver wrote, in the form of the KHR extension.
static struct khr_kind read_kind(const union kinds *kinds, enum vk_matrix_method method, uint32_t i)
{
    const VkCooperativeMatrixPropertiesNV *nv = &kinds->nv[i];
    if (method == VK_MATRICES_KHR)
        return kinds->khr[i];
    return (struct khr_kind){.m = nv->MSize,
                             .n = nv->NSize,
                             .k = nv->KSize,
                             .a = nv->AType,
                             .b = nv->BType,
                             .c = nv->CType,
                             .result = nv->DType,
                             .scope = nv->scope};
}

static bool is_wanted(const struct khr_kind *kind)
{
    return is_side(kind->m) && is_side(kind->n) && is_side(kind->k) &&
           kind->a == VK_COMPONENT_TYPE_FLOAT16_NV && kind->b == VK_COMPONENT_TYPE_FLOAT16_NV &&
           kind->c == VK_COMPONENT_TYPE_FLOAT32_NV &&
           kind->result == VK_COMPONENT_TYPE_FLOAT32_NV && !kind->saturates &&
           kind->scope == VK_SCOPE_SUBGROUP_NV;
}

// Returns the largest kind that is wanted, or VK_MATRICES_NONE if the driver has no such kind, or
// lacks a feature.
static struct vk_matrices find_kind(const struct vk_instance_api *api, VkPhysicalDevice gpu,
                                    enum vk_matrix_method method)
{
    const struct extension *extension = &extensions[method];
    struct vk_matrices best = {.method = VK_MATRICES_NONE};
    union kinds kinds;
    list_kinds list;
    uint32_t count = KINDS_MAX;
    vk_instance_entry(&list, api, extension->list);
    if (list == NULL || !has_feature(api, gpu, extension))
        return best;
    memset(&kinds, 0, sizeof kinds);
    for (uint32_t i = 0; i < count; i++)
        *(method == VK_MATRICES_KHR ? &kinds.khr[i].type : &kinds.nv[i].sType) = extension->kind;
    // VK_INCOMPLETE: the driver has more kinds than were read.
    VkResult result = list(gpu, &count, &kinds);
    if (result != VK_SUCCESS && result != VK_INCOMPLETE)
        return best;
    for (uint32_t i = 0; i < count; i++) {
        struct khr_kind kind = read_kind(&kinds, method, i);
        if (is_wanted(&kind) && kind.m * kind.n * kind.k > best.m * best.n * best.k)
            best = (struct vk_matrices){method, kind.m, kind.n, kind.k};
    }
    return best;
}

struct vk_matrices vk_find_matrices(const struct vk_instance_api *api, VkPhysicalDevice gpu,
                                    struct vk_matrix_extensions has)
{
    struct vk_matrices matrices = {.method = VK_MATRICES_NONE};
    if (has.khr && has.subgroups)
        matrices = find_kind(api, gpu, VK_MATRICES_KHR);
    if (has.nv && matrices.method == VK_MATRICES_NONE)
        matrices = find_kind(api, gpu, VK_MATRICES_NV);
    return matrices;
}

const void *vk_matrix_features_chain(struct vk_matrix_features *features,
                                     enum vk_matrix_method method, void *next)
{
    *features = (struct vk_matrix_features){.extension_count = 0};
    if (method != VK_MATRICES_NV && method != VK_MATRICES_KHR)
        return next;
    features->extensions[features->extension_count++] = extensions[method].name;
    features->memory_model = (VkPhysicalDeviceVulkanMemoryModelFeatures){
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES,
        .pNext = next,
        .vulkanMemoryModel = VK_TRUE};
    features->subgroups = (VkPhysicalDeviceSubgroupSizeControlFeatures){
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES,
        .pNext = &features->memory_model,
        .computeFullSubgroups = VK_TRUE};
    features->matrices =
        (VkPhysicalDeviceCooperativeMatrixFeaturesNV){.sType = extensions[method].features,
                                                      .pNext = &features->memory_model,
                                                      .cooperativeMatrix = VK_TRUE};
    if (method == VK_MATRICES_KHR) {
        features->extensions[features->extension_count++] =
            VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME;
        features->matrices.pNext = &features->subgroups;
    }
    return &features->matrices;
}
