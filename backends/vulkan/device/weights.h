// SPDX-License-Identifier: Apache-2.0
// The constants of a program. They are kept on the host until a run needs them, and then on the
// device. If device memory is exhausted while the program is idle, the constants are evicted, and a
// later run uploads them again.
#ifndef INF_BACKENDS_VULKAN_DEVICE_WEIGHTS_H
#define INF_BACKENDS_VULKAN_DEVICE_WEIGHTS_H

#include "backends/vulkan/device/memory.h"

// Stands in place of a constant's index if an operand is not a constant.
#define VK_CONSTANT_NONE UINT32_MAX

struct vk_constant {
    // The graph value whose bytes are uploaded unchanged. INF_VALUE_NONE if the constant was packed
    // for one operand of one node.
    uint32_t value;
    size_t size_bytes;
    // The bytes to upload: in the graph, or `packed`. NULL while the constant is only on the
    // device.
    const void *source;
    void *packed;        // host copy of packed bytes; NULL while they are on the device
    struct vk_span span; // allocated while the constant is on the device
};

enum vk_weights_state {
    VK_WEIGHTS_ABSENT, // no constant is on the device
    VK_WEIGHTS_MOVING, // a thread is uploading or evicting them
    VK_WEIGHTS_THERE,  // all constants are on the device
};

// The constants of a program. Embedded in the program. The list grows while the program is
// compiled, and is constant afterwards.
struct vk_weights {
    struct vk_device *device; // device of the program
    struct vk_constant *constants;
    uint32_t count, capacity;
    uint64_t bytes; // size of all constants on the device

    // Guarded by the device's weights_mutex.
    struct vk_weights *next; // next entry in the device's list of weights
    enum vk_weights_state state;
    uint32_t users;     // number of runs between vk_weights_acquire() and vk_weights_release()
    uint64_t used_at;   // last use, in ticks of the device's weights_clock
    uint64_t submitted; // after the timeline reaches this value, no run reads the weights
};

// Initialises an embedded list of constants and adds it to the device's list.
void vk_weights_init(struct vk_weights *weights, struct vk_device *device);

// Frees the constants on host and device. No run may be reading them. A zeroed struct is allowed.
void vk_weights_fini(struct vk_weights *weights);

// Returns the index of the constant for value `value` of the graph; VK_CONSTANT_NONE if no such
// constant was added.
uint32_t vk_weights_find(const struct vk_weights *weights, uint32_t value);

// Adds a constant without uploading it. If `value` is a value of the graph, `bytes` belong to the
// graph, which outlives the program. If `value` is INF_VALUE_NONE, the list takes ownership of
// `bytes`, which come from malloc(), even if the call fails.
//
// INF_EXHAUSTED  (HOST_OOM)
enum inf_code vk_weights_add(struct vk_weights *weights, uint32_t value, void *bytes,
                             size_t size_bytes, uint32_t *out_index,
                             struct inf_error *err) INF_NODISCARD;

// Uploads the constants if necessary, and keeps them on the device until vk_weights_release().
//
// INF_EXHAUSTED  (DEVICE_OOM) memory is exhausted, although the weights of all idle programs were
// evicted.
enum inf_code vk_weights_acquire(struct vk_weights *weights,
                                 struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Ends the use that vk_weights_acquire() began. The weights may be evicted when the timeline has
// reached `submitted`, because all runs that read them have then finished.
void vk_weights_release(struct vk_weights *weights, uint64_t submitted);

// Evicts the weights of the idle program that ran longest ago. Returns false if no program is idle.
bool vk_weights_evict(struct vk_device *device);

#endif
