// SPDX-License-Identifier: Apache-2.0
// The logical device of a GPU: its driver objects, submissions and waits. If a logical device is
// lost, the GPU gets another one. Programs and buffers belong to the logical device on which they
// were created.
#ifndef INF_BACKENDS_VULKAN_DEVICE_DEVICE_H
#define INF_BACKENDS_VULKAN_DEVICE_DEVICE_H

#include "backends/vulkan/device/gpu.h"
#include "backends/vulkan/device/known_variants.h"
#include "shaders/constants.h"

struct vk_slab;
struct vk_weights;
struct vk_pipeline;

// The largest number of storage buffers that one dispatch binds. As many further bindings follow,
// for texel views of the same buffers.
#define VK_BINDINGS_MAX BINDINGS_MAX
_Static_assert(STATUS_BINDING == 2 * VK_BINDINGS_MAX, "behind the views");
// The largest size of push constants in bytes; every driver supports at least this size.
#define VK_PUSH_BYTES_MAX 128

// A queue of a device, with a timeline that counts its submissions.
struct vk_queue {
    VkQueue queue;          // constant after creation; VK_NULL_HANDLE: the device has no such queue
    VkSemaphore timeline;   // constant after creation
    struct inf_mutex mutex; // guards calls with `queue`, and the following members
    uint64_t submitted;     // the timeline reaches this value when all submissions are done
    // Only for the queue `runs`: the value of the timeline of `transfers` that a submission has
    // waited for.
    uint64_t awaited;
};

struct vk_device {
    struct vk_gpu *gpu; // outlives the device
    const char *name;   // name of the GPU
    _Atomic uint32_t references;
    uint32_t generation;
    uint64_t made_ns;

    // The following members are constant after creation.
    struct vk_device_api api;
    VkDevice device;
    VkDescriptorSetLayout set_layout;
    VkPipelineLayout pipeline_layout;
    VkPipelineCache cache;
    PFN_vkGetMemoryHostPointerPropertiesEXT get_host_pointer; // NULL: host memory is not imported

    atomic_bool lost, hung; // once true, they stay true
    // Evicts the weights of an idle program to free device memory; points to vk_weights_evict().
    // Returns false if no program is idle.
    bool (*evict)(struct vk_device *device);

    struct vk_queue runs;
    // The queue for transfers of weights, if the GPU has queues that only copy. On other GPUs,
    // transfers.queue is VK_NULL_HANDLE, and transfers use the queue `runs`.
    struct vk_queue transfers;
    _Atomic uint64_t transferred; // value of the timeline of transfers that is known to be reached

    struct inf_mutex memory_mutex; // guards the slabs, their holes and their sizes
    struct vk_slab *slabs;
    uint64_t heap_bytes[VK_MAX_MEMORY_HEAPS]; // bytes of all slabs in each heap
    uint64_t slab_bytes;                      // bytes of all slabs
    _Atomic uint64_t serials;                 // number of buffers created so far

    // Guards the list `weights`, and where each entry's constants are.
    struct inf_mutex weights_mutex;
    struct inf_cond weights_moved; // signalled when an upload or an eviction of weights has ended
    struct vk_weights *weights;    // weights of all programs on this device
    uint64_t weights_clock;

    struct inf_mutex pipeline_mutex; // guards the list of pipelines
    struct inf_cond pipeline_made;   // signalled when a thread has created a pipeline or failed to
    struct vk_pipeline *pipelines;
    struct vk_known_variants known; // shader variants whose pipelines are in the pipeline cache
    // The shader variants that the pipeline cache file held when it was read. Constant after
    // creation.
    struct vk_known_variants loaded;
    uint32_t pipelines_made;  // number of pipelines created since the cache file was last written
    int cache_marker_fd;      // locked marker file, see pipeline_cache.c; -1: there is none
    atomic_bool cache_marker; // true: a marker file of this process exists
};

// Takes another reference to the device. Any thread.
struct vk_device *vk_device_ref(struct vk_device *device) INF_NODISCARD;

// Returns true if the device is lost, so that nothing can run on it. Any thread.
bool vk_device_lost(const struct vk_device *device);

// Returns the generation of this device: the number of earlier logical devices of its GPU.
uint32_t vk_device_generation(const struct vk_device *device);

// Returns true if the device hung and has not recovered. In this case none of its memory may be
// freed; the device stays until the process ends.
bool vk_device_abandoned(const struct vk_device *device);

// Submits one recorded command buffer. The timeline reaches *out_value when the command buffer has
// finished.
enum inf_code vk_device_submit(struct vk_device *device, VkCommandBuffer commands,
                               uint64_t *out_value, struct inf_error *err) INF_NODISCARD;

// Submits a command buffer that only copies. Its pool belongs to the family gpu->transfer_family.
// Runs that are submitted after vk_device_wait_transfer() see the copied bytes.
enum inf_code vk_device_submit_transfer(struct vk_device *device, VkCommandBuffer commands,
                                        uint64_t *out_value, struct inf_error *err) INF_NODISCARD;

// Waits until the timeline of runs reaches `value`. Waits in slices, so that the loss of the device
// ends the wait.
//
// INF_DEADLINE     the timeline did not reach `value` within `timeout_ns`.
// INF_UNAVAILABLE  (DEVICE_LOST, DEVICE_HUNG)
enum inf_code vk_device_wait(struct vk_device *device, uint64_t value, uint64_t timeout_ns,
                             struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Waits until a transfer has finished. Failures as of vk_device_wait().
enum inf_code vk_device_wait_transfer(struct vk_device *device, uint64_t value,
                                      struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Converts a VkResult to an error that names the call `what`. Marks the device lost if `result`
// reports a loss.
enum inf_code vk_fail(struct vk_device *device, VkResult result, const char *what,
                      struct inf_error *err);

// Evaluates `expression`, a VkResult, and returns an error from the function if it is not
// VK_SUCCESS.
#define VK_TRY(device, expression, err)                                                            \
    do {                                                                                           \
        VkResult vk_try_result_ = (expression);                                                    \
        if (vk_try_result_ != VK_SUCCESS)                                                          \
            return vk_fail((device), vk_try_result_, #expression, (err));                          \
    } while (0)

#endif
