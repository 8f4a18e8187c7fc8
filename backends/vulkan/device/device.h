// SPDX-License-Identifier: Apache-2.0
// The logical device of a GPU: its driver's objects, submits and waits. A GPU that is lost gets another
// one; programs and buffers refer to the one they were made on, and go with it.
#ifndef INF_BACKENDS_VULKAN_DEVICE_DEVICE_H
#define INF_BACKENDS_VULKAN_DEVICE_DEVICE_H

#include "backends/vulkan/device/gpu.h"
#include "backends/vulkan/device/known_variants.h"
#include "shaders/constants.h"

struct vk_slab;
struct vk_weights;
struct vk_pipeline;

// Storage buffers that one dispatch binds, at most. Behind their bindings are as many for views of them.
#define VK_BINDINGS_MAX BINDINGS_MAX
_Static_assert(STATUS_BINDING == 2 * VK_BINDINGS_MAX, "behind the views");
// The least that every driver has.
#define VK_PUSH_BYTES_MAX 128

struct vk_device {
    struct vk_gpu *gpu; // outlives it
    const char *name;   // the GPU's
    _Atomic uint32_t references;
    uint32_t generation;
    uint64_t made_ns;

    // Constant once it is made.
    struct vk_device_api api;
    VkDevice device;
    VkQueue queue;
    VkSemaphore timeline;
    VkDescriptorSetLayout set_layout;
    VkPipelineLayout pipeline_layout;
    VkPipelineCache cache;
    PFN_vkGetMemoryHostPointerPropertiesEXT get_host_pointer; // NULL: host memory is not imported

    atomic_bool lost, hung; // for good
    // Frees device memory that is not in use: vk_weights_evict(). False if there is none.
    bool (*evict)(struct vk_device *device);

    struct inf_mutex queue_mutex; // guards the queue and `submitted`
    uint64_t submitted;           // the timeline's value when all that was submitted is done

    struct inf_mutex memory_mutex; // guards the slabs, what is free in them and their sizes
    struct vk_slab *slabs;
    uint64_t heap_bytes[VK_MAX_MEMORY_HEAPS]; // of them, by heap,
    uint64_t slab_bytes;                      // and of all
    _Atomic uint64_t serials;                 // of buffers so far

    struct inf_mutex weights_mutex; // guards the list, and what of its members it says
    struct inf_cond weights_moved;  // a member's are no longer moving
    struct vk_weights *weights;     // of all programs
    uint64_t weights_clock;

    struct inf_mutex pipeline_mutex; // guards the list
    struct inf_cond pipeline_made;   // or could not be
    struct vk_pipeline *pipelines;
    struct vk_known_variants known;  // variants that the cache on disk has,
    struct vk_known_variants loaded; // and had when it was read; constant once the device is made
    uint32_t pipelines_made;         // since the cache was last written
    int cache_marker_fd;             // of cache.h; -1: there is none
    atomic_bool cache_marker;        // whether there is one
};

// Another reference. Any thread.
struct vk_device *vk_device_ref(struct vk_device *device) INF_NODISCARD;

// Whether nothing runs on it any more. Any thread.
bool vk_device_lost(const struct vk_device *device);

// Which of its GPU's devices it is, counted from 0.
uint32_t vk_device_generation(const struct vk_device *device);

// Whether it hung and still does: then nothing of it may be freed, and stays until the process ends.
bool vk_device_abandoned(const struct vk_device *device);

// Submits one recorded command buffer; *out_value is the timeline's once it is done.
enum inf_code vk_device_submit(struct vk_device *device, VkCommandBuffer commands,
                               uint64_t *out_value, struct inf_error *err) INF_NODISCARD;

// Waits until the timeline has the value, in slices, so that a device lost meanwhile ends the wait.
//
// INF_DEADLINE     it had not within `timeout_ns`.
// INF_UNAVAILABLE  (DEVICE_LOST, DEVICE_HUNG)
enum inf_code vk_device_wait(struct vk_device *device, uint64_t value, uint64_t timeout_ns,
                             struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Turns a result into a failure: what was being done, and the result's name. Notes a lost device.
enum inf_code vk_fail(struct vk_device *device, VkResult result, const char *what,
                      struct inf_error *err);

// Runs `expression`, a VkResult, and forwards a failure.
#define VK_TRY(device, expression, err)                                                            \
    do {                                                                                           \
        VkResult vk_try_result_ = (expression);                                                    \
        if (vk_try_result_ != VK_SUCCESS)                                                          \
            return vk_fail((device), vk_try_result_, #expression, (err));                          \
    } while (0)

#endif
