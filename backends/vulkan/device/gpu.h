// SPDX-License-Identifier: Apache-2.0
// One GPU: its properties, its current logical device, and its recovery after the device is lost.
#ifndef INF_BACKENDS_VULKAN_DEVICE_GPU_H
#define INF_BACKENDS_VULKAN_DEVICE_GPU_H

#include <stdatomic.h>

#include "backends/base/clock.h"
#include "backends/base/thread.h"
#include "backends/device/backend.h"
#include "backends/vulkan/device/api.h"
#include "backends/vulkan/device/fused_shaders.h"
#include "backends/vulkan/device/matrices.h"
#include "backends/vulkan/device/shader_checks.h"
#include "backends/vulkan/device/variant.h"

struct inf_race_results;
struct vk_device;

// The delay before a lost device is created again. It doubles with each further loss.
#define VK_BACKOFF_NS (500 * INF_NS_PER_MS)
// A GPU whose device was lost this many times in a row is not used until inferd restarts.
#define VK_LOSSES_MAX 5
// If a device has worked for this long without a loss, the count of losses starts again at 0.
#define VK_HEALED_NS (600 * INF_NS_PER_S)
// A submission that runs longer than this is treated as a GPU hang.
#define VK_HANG_NS (120 * INF_NS_PER_S)

// Winograd's algorithm and different orders of summing stay below this error.
#define VK_RACE_ERROR_MAX 1e-4

// A submission that is expected to take longer than this is split into several, so that other
// programs can run between them and a run can be cancelled.
#define VK_SLICE_NS (20 * INF_NS_PER_MS)

struct vk_gpu {
    struct inf_device base;
    const struct vk_instance_api *api;
    const struct inf_log *log;
    char *cache_directory; // directory of cache files; NULL: none are kept

    // Properties of the GPU, constant after it is opened.
    VkPhysicalDevice physical;
    VkPhysicalDeviceProperties properties;
    VkPhysicalDeviceMemoryProperties memory;
    uint32_t queue_family;
    // Family of the queue that transfers weights. It is `queue_family`, unless the GPU has queues
    // that only copy.
    uint32_t transfer_family;
    uint32_t group_size;   // number of invocations in a work group
    uint32_t loops_max;    // most iterations of all loops of an invocation; UINT32_MAX: no limit
    bool unified;          // true: the host can see the memory of weights and of arenas
    uint32_t local_type;   // memory type of arenas
    uint32_t weights_type; // memory type of weights, unless the driver refuses buffers in it
    uint32_t host_type;    // memory type of buffers that the host reads and writes
    // Number of valid bits in a GPU timestamp; 0: no timestamps, so no profile.
    uint32_t timestamp_bits;
    bool half_storage;     // true: shaders can read and write 16-bit floats
    bool half_arithmetic;  // true: shaders can compute in 16-bit floats
    bool byte_storage;     // true: shaders can read and write single bytes
    bool byte_products;    // true: an instruction multiplies packed bytes and adds the products
    uint64_t largest_heap; // size of the largest heap in bytes
    uint64_t memory_bytes; // limit for all slabs together; UINT64_MAX: no limit
    bool budget;           // true: the driver reports how much memory may be used
    // Host memory is imported in place if its address and size are multiples of this. 0: host
    // memory is never imported.
    VkDeviceSize import_alignment;
    // True if imports work with any memory type, even though the driver reports that none is
    // suitable.
    bool imports_any_type;
    bool texel_triples; // true: texel views may have three components
    // True if convolutions are faster with subgroups of eight (ops/conv_tile.c).
    bool subgroup_tiles;
    uint32_t subgroup_size;      // invocations in a subgroup; 0: no subgroup arithmetic
    struct vk_matrices matrices; // what instructions of shaders can multiply
    bool feedback;               // true: the driver reports which pipelines came from its cache
    bool texels;         // true: floats are faster to read through texel views than from buffers
    uint64_t backoff_ns; // usually VK_BACKOFF_NS
    uint64_t hang_ns;    // usually VK_HANG_NS

    // The cost (multiply-adds, or elements moved) of a submission that takes about VK_SLICE_NS.
    // Updated after runs with several submissions.
    _Atomic uint64_t slice_cost;

    // True: the nodes of an attention are computed one by one (program/attention.h). Set for
    // software devices, and when the driver cannot build the shader.
    atomic_bool attention_off;
    atomic_bool memory_short; // true: the warning about short memory was logged

    // The shaders that won the races of this GPU; NULL: fixed rules choose the shaders.
    struct inf_race_results *races;
    // The largest error of a result in a race, relative to the sum of the absolute products;
    // usually VK_RACE_ERROR_MAX.
    double race_error_max;

    struct vk_broken_variants broken;      // variants that must not be used
    struct vk_shader_checks checks;        // variants that were compared with the reference device
    struct vk_fused_shaders fused_shaders; // shaders that were generated at run time

    struct inf_mutex device_mutex; // guards the following members
    struct inf_cond device_made;   // signalled when a device was created or its creation failed
    struct vk_device *device;      // the current device, a counted reference; NULL: there is none
    uint32_t generation;           // generation of the next device
    bool making;                   // true: a thread is creating the device, and other threads wait

    // The following members are written when a device is lost or created, and are read by any
    // thread.
    atomic_uint losses; // number of losses in a row
    // The time, as of inf_clock_ns(), at which creation of a device is retried; 0: no device is
    // lost.
    _Atomic uint64_t retry_at_ns;
};

// Returns a reference to the current logical device. Creates a device if there is none, or if the
// current one is lost and its backoff time is over. The caller drops the reference with
// vk_device_unref(). Any thread.
//
// INF_UNAVAILABLE  (DEVICE_LOST) the driver refuses, or the backoff time is not over.
enum inf_code vk_gpu_acquire(struct vk_gpu *gpu, struct vk_device **out_device,
                             struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Returns a reference to the current logical device if its generation is `generation`, otherwise
// NULL. Does not wait for a device that is being created.
struct vk_device *vk_gpu_find(struct vk_gpu *gpu, uint32_t generation);

// Counts the loss of a logical device that was created at `made_ns`, and sets the time at which the
// next device may be created.
void vk_gpu_note_loss(struct vk_gpu *gpu, uint64_t made_ns);

// Opens the records of races. vk_shader_choose() uses the winners. On failure there are no records.
//
// INF_EXHAUSTED  no memory.
enum inf_code vk_gpu_open_races(struct vk_gpu *gpu,
                                struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Frees the records of races.
void vk_gpu_close_races(struct vk_gpu *gpu);

// Counts choices among shaders, as inf_device_kernel_choices() describes. Any thread.
bool vk_gpu_kernel_choices(const struct vk_gpu *gpu, struct inf_kernel_choices *out_choices);

// Returns the health of the GPU; INF_DEVICE_OK if a run may be tried. Any thread, including the
// event loop.
enum inf_device_health vk_gpu_health(const struct vk_gpu *gpu);

// Frees the logical device. All programs and buffers must have been freed.
void vk_gpu_destroy_device(struct vk_gpu *gpu);

#endif
