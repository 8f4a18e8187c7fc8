// SPDX-License-Identifier: Apache-2.0
// One GPU: its facts, the logical device in use, and what becomes of it once that is lost.
#ifndef INF_BACKENDS_VULKAN_DEVICE_GPU_H
#define INF_BACKENDS_VULKAN_DEVICE_GPU_H

#include <stdatomic.h>

#include "backends/base/clock.h"
#include "backends/base/thread.h"
#include "backends/device/device_impl.h"
#include "backends/vulkan/device/api.h"
#include "backends/vulkan/device/fused_shaders.h"
#include "backends/vulkan/device/variant.h"

struct vk_device;

// A lost device is made anew after this long, which doubles with each further loss.
#define VK_BACKOFF_NS (500 * INF_NS_PER_MS)
// One that was lost so many times in a row is left alone until inferd starts again.
#define VK_LOSSES_MAX 5
// A device that has worked this long forgets its losses.
#define VK_HEALED_NS (600 * INF_NS_PER_S)
// What takes longer than this is taken for hung.
#define VK_HANG_NS (120 * INF_NS_PER_S)

// A submit that is expected to take longer than this is cut in several, between which others get their
// turn, and a run may be cancelled.
#define VK_SLICE_NS (20 * INF_NS_PER_MS)

struct vk_gpu {
    struct inf_device base;
    const struct vk_instance_api *api;
    const struct inf_log *log;
    char *cache_directory; // of pipelines; NULL: none

    // Facts, fixed when it is opened.
    VkPhysicalDevice physical;
    VkPhysicalDeviceProperties properties;
    VkPhysicalDeviceMemoryProperties memory;
    uint32_t queue_family;
    uint32_t group_size;     // invocations of a work group
    bool unified;            // the memory of weights and arenas is visible to the host
    uint32_t local_type;     // memory types: for arenas and weights,
    uint32_t host_type;      // for what the host reads and writes
    uint32_t timestamp_bits; // 0: no profile
    bool half_storage;       // shaders may find floats in 16 bits
    uint64_t largest_heap;   // bytes
    uint64_t memory_bytes;   // of slabs at most; UINT64_MAX: as many as there is room for
    bool budget;             // it tells how much memory may be used
    // Host memory is imported at multiples of this; 0: it is not.
    VkDeviceSize import_alignment;
    bool imports_any_type; // whatever it says of memory types
    bool texel_triples;    // views may be of three numbers
    bool
        subgroup_tiles; // convolutions are better made by subgroups of eight (backends/vulkan/ops/tile.c)
    uint32_t subgroup_size; // of a subgroup that adds up what its invocations have; 0: none does
    bool feedback;          // it tells which pipelines it had in its cache
    bool texels;            // floats are better read through views than from buffers
    uint64_t backoff_ns;    // VK_BACKOFF_NS
    uint64_t hang_ns;       // VK_HANG_NS

    // What a submit may cost so that it takes about VK_SLICE_NS; learnt from runs of several submits.
    _Atomic uint64_t slice_cost;

    atomic_bool memory_short; // said that it is

    struct vk_broken_variants broken;      // that the driver cannot build
    struct vk_fused_shaders fused_shaders; // shaders made at run time

    struct inf_mutex device_mutex; // guards those below
    struct inf_cond device_made;   // or could not be
    struct vk_device *device;      // in use, a reference; NULL: there is none now
    uint32_t generation;           // of the next one
    bool making;                   // a thread makes it; others who want it wait

    // Written when a device is lost or made; read anywhere.
    atomic_uint losses;           // in a row
    _Atomic uint64_t retry_at_ns; // of inf_clock_ns(); 0: nothing is lost
};

// The logical device in use, made now if there is none, made anew if it is lost and its time has come.
// The caller drops the reference with vk_device_unref(). Any thread.
//
// INF_UNAVAILABLE  (DEVICE_LOST) the driver refuses, or it is too early.
enum inf_code vk_gpu_acquire(struct vk_gpu *gpu, struct vk_device **out_device,
                             struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// The logical device that gave out the ticket; NULL where it is gone. The caller drops the reference. Does not
// wait for one that is being made.
struct vk_device *vk_gpu_find(struct vk_gpu *gpu, uint32_t generation);

// Notes that a logical device was lost that was made at `made_ns`; sets when the next may be made.
void vk_gpu_note_loss(struct vk_gpu *gpu, uint64_t made_ns);

// OK where a run may be tried now. Any thread, the loop's too.
enum inf_device_health vk_gpu_health(const struct vk_gpu *gpu);

// Frees the logical device. No program or buffer is left.
void vk_gpu_destroy_device(struct vk_gpu *gpu);

#endif
