// SPDX-License-Identifier: Apache-2.0
// One GPU: its properties, its current logical device, and what happens after that is lost.
#ifndef INF_BACKENDS_VULKAN_DEVICE_GPU_H
#define INF_BACKENDS_VULKAN_DEVICE_GPU_H

#include <stdatomic.h>

#include "backends/base/clock.h"
#include "backends/base/thread.h"
#include "backends/device/backend.h"
#include "backends/vulkan/device/api.h"
#include "backends/vulkan/device/fused_shaders.h"
#include "backends/vulkan/device/variant.h"

struct vk_device;

// A lost device is created again after this time, which doubles with each further loss.
#define VK_BACKOFF_NS (500 * INF_NS_PER_MS)
// A GPU that was lost this many times in a row is not used until inferd restarts.
#define VK_LOSSES_MAX 5
// The losses of a device that has worked for this long are forgotten.
#define VK_HEALED_NS (600 * INF_NS_PER_S)
// A submission that runs longer than this is treated as a GPU hang.
#define VK_HANG_NS (120 * INF_NS_PER_S)

// A submission that is expected to take longer than this is split, so that other programs get their
// turn and a run can be cancelled.
#define VK_SLICE_NS (20 * INF_NS_PER_MS)

struct vk_gpu {
    struct inf_device base;
    const struct vk_instance_api *api;
    const struct inf_log *log;
    char *cache_directory; // of cache files; NULL: none

    // Properties, fixed when the GPU is opened.
    VkPhysicalDevice physical;
    VkPhysicalDeviceProperties properties;
    VkPhysicalDeviceMemoryProperties memory;
    uint32_t queue_family;
    uint32_t group_size;     // invocations in a work group
    bool unified;            // the memory of weights and arenas is visible to the host
    uint32_t local_type;     // memory type of arenas and weights
    uint32_t host_type;      // memory type of what the host reads and writes
    uint32_t timestamp_bits; // 0: no profile
    bool half_storage;       // shaders can read and write 16-bit floats
    uint64_t largest_heap;   // bytes
    uint64_t memory_bytes;   // limit of all slabs; UINT64_MAX: none
    bool budget;             // the driver reports how much memory may be used
    // Host memory is imported at multiples of this size; 0: it is not imported.
    VkDeviceSize import_alignment;
    bool imports_any_type; // any memory type works, although the driver reports none
    bool texel_triples;    // views may have three components
    // convolutions are faster with subgroups of eight (ops/conv_tile.c)
    bool subgroup_tiles;
    uint32_t subgroup_size; // invocations in a subgroup; 0: subgroup arithmetic is not supported
    bool feedback;          // the driver reports which pipelines its cache had
    bool texels;            // floats are faster to read through texel views than from buffers
    uint64_t backoff_ns;    // VK_BACKOFF_NS
    uint64_t hang_ns;       // VK_HANG_NS

    // The cost of a submission that takes about VK_SLICE_NS, learned from runs with several
    // submissions.
    _Atomic uint64_t slice_cost;

    atomic_bool memory_short; // the warning was logged

    struct vk_broken_variants broken;      // variants that the driver cannot build
    struct vk_fused_shaders fused_shaders; // shaders that were generated at run time

    struct inf_mutex device_mutex; // guards the members below
    struct inf_cond device_made;   // signalled when a device was created, or failed
    struct vk_device *device;      // the current device, a reference; NULL: none
    uint32_t generation;           // of the next device
    bool making;                   // a thread creates it; others wait

    // Written when a device is lost or created; read by any thread.
    atomic_uint losses;           // in a row
    _Atomic uint64_t retry_at_ns; // on inf_clock_ns(); 0: no device is lost
};

// Returns a reference to the current logical device. Creates one if there is none, or if it was
// lost and its backoff time is over. The caller drops the reference with vk_device_unref(). Any
// thread.
//
// INF_UNAVAILABLE  (DEVICE_LOST) the driver refuses, or the backoff time is not over.
enum inf_code vk_gpu_acquire(struct vk_gpu *gpu, struct vk_device **out_device,
                             struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Returns a reference to the logical device of that generation; NULL if it is no longer the current
// one. Does not wait for a device that is being created.
struct vk_device *vk_gpu_find(struct vk_gpu *gpu, uint32_t generation);

// Counts the loss of a logical device that was created at `made_ns`, and sets when the next one may
// be created.
void vk_gpu_note_loss(struct vk_gpu *gpu, uint64_t made_ns);

// Returns INF_DEVICE_OK if a run may be tried. Any thread, including the loop.
enum inf_device_health vk_gpu_health(const struct vk_gpu *gpu);

// Frees the logical device. No program or buffer may be left.
void vk_gpu_destroy_device(struct vk_gpu *gpu);

#endif
