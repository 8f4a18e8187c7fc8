// SPDX-License-Identifier: Apache-2.0
// The logical device of a GPU: its driver objects, submits and waits. A GPU that is lost gets
// another logical device. Programs and buffers belong to the one they were created on.
#ifndef INF_BACKENDS_VULKAN_DEVICE_DEVICE_H
#define INF_BACKENDS_VULKAN_DEVICE_DEVICE_H

#include "backends/vulkan/device/gpu.h"
#include "backends/vulkan/device/known_variants.h"
#include "shaders/constants.h"

struct vk_slab;
struct vk_weights;
struct vk_pipeline;

// Storage buffers that one dispatch binds, at most. As many bindings behind them are for views of
// the buffers.
#define VK_BINDINGS_MAX BINDINGS_MAX
_Static_assert(STATUS_BINDING == 2 * VK_BINDINGS_MAX, "behind the views");
// The size that every driver supports.
#define VK_PUSH_BYTES_MAX 128

struct vk_device {
    struct vk_gpu *gpu; // outlives the device
    const char *name;   // of the GPU
    _Atomic uint32_t references;
    uint32_t generation;
    uint64_t made_ns;

    // Constant after creation.
    struct vk_device_api api;
    VkDevice device;
    VkQueue queue;
    VkSemaphore timeline;
    VkDescriptorSetLayout set_layout;
    VkPipelineLayout pipeline_layout;
    VkPipelineCache cache;
    PFN_vkGetMemoryHostPointerPropertiesEXT get_host_pointer; // NULL: host memory is not imported

    atomic_bool lost, hung; // never reset
    // Frees device memory that is not in use: vk_weights_evict(). Returns false if there is none.
    bool (*evict)(struct vk_device *device);

    struct inf_mutex queue_mutex; // guards the queue and `submitted`
    uint64_t submitted;           // value of the timeline when all submissions are done

    struct inf_mutex memory_mutex; // guards the slabs, their holes and their sizes
    struct vk_slab *slabs;
    uint64_t heap_bytes[VK_MAX_MEMORY_HEAPS]; // bytes of slabs, by heap
    uint64_t slab_bytes;                      // bytes of all slabs
    _Atomic uint64_t serials;                 // buffers created so far

    struct inf_mutex weights_mutex; // guards the list, and the state of its members
    struct inf_cond weights_moved;  // signalled when a member stops moving
    struct vk_weights *weights;     // of all programs
    uint64_t weights_clock;

    struct inf_mutex pipeline_mutex; // guards the list
    struct inf_cond pipeline_made;   // signalled when a pipeline was created, or failed
    struct vk_pipeline *pipelines;
    struct vk_known_variants known; // variants in the cache file
    // Variants in the cache file when it was read; constant after creation.
    struct vk_known_variants loaded;
    uint32_t pipelines_made;  // since the cache file was last written
    int cache_marker_fd;      // locked marker of pipeline_cache.h; -1: none
    atomic_bool cache_marker; // a marker exists
};

// Takes another reference. Any thread.
struct vk_device *vk_device_ref(struct vk_device *device) INF_NODISCARD;

// Returns true if the device is lost: nothing runs on it. Any thread.
bool vk_device_lost(const struct vk_device *device);

// Returns which logical device of its GPU this is, counted from 0.
uint32_t vk_device_generation(const struct vk_device *device);

// Returns true if the device hung and has not recovered. Nothing of it may be freed then; it stays
// until the process ends.
bool vk_device_abandoned(const struct vk_device *device);

// Submits one recorded command buffer. *out_value is the timeline value that marks its end.
enum inf_code vk_device_submit(struct vk_device *device, VkCommandBuffer commands,
                               uint64_t *out_value, struct inf_error *err) INF_NODISCARD;

// Waits until the timeline reaches `value`. It waits in slices, so that the loss of the device ends
// the wait.
//
// INF_DEADLINE     the value was not reached within `timeout_ns`.
// INF_UNAVAILABLE  (DEVICE_LOST, DEVICE_HUNG)
enum inf_code vk_device_wait(struct vk_device *device, uint64_t value, uint64_t timeout_ns,
                             struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Turns a VkResult into an error that names the call `what`. Marks the device lost if the result
// says so.
enum inf_code vk_fail(struct vk_device *device, VkResult result, const char *what,
                      struct inf_error *err);

// Evaluates `expression`, a VkResult, and returns an error if it is not VK_SUCCESS.
#define VK_TRY(device, expression, err)                                                            \
    do {                                                                                           \
        VkResult vk_try_result_ = (expression);                                                    \
        if (vk_try_result_ != VK_SUCCESS)                                                          \
            return vk_fail((device), vk_try_result_, #expression, (err));                          \
    } while (0)

#endif
