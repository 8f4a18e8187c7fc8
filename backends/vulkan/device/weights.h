// SPDX-License-Identifier: Apache-2.0
// The constants of a program: on the host until a run first needs them, then on the device, until its memory
// runs out while the program is idle; a later run gets them back.
#ifndef INF_BACKENDS_VULKAN_DEVICE_WEIGHTS_H
#define INF_BACKENDS_VULKAN_DEVICE_WEIGHTS_H

#include "backends/vulkan/device/memory.h"

// Of an operand that is no constant.
#define VK_CONSTANT_NONE UINT32_MAX

struct vk_constant {
    uint32_t value; // of the graph, uploaded as it is; INF_VALUE_NONE: made for one operand
    size_t size_bytes;
    const void
        *source;  // what is uploaded: the graph's bytes, or `packed`; NULL: on the device only
    void *packed; // its own bytes, while they are on the host
    struct vk_span span; // while they are on the device
};

enum vk_weights_state {
    VK_WEIGHTS_ABSENT, // all of them
    VK_WEIGHTS_MOVING, // a thread uploads them or takes them away
    VK_WEIGHTS_THERE,  // all of them
};

// Embedded in a program. The list of constants grows while the program is compiled, and stays then.
struct vk_weights {
    struct vk_device *device; // the program's
    struct vk_constant *constants;
    uint32_t count, capacity;
    uint64_t bytes; // that they take on the device

    // Guarded by the device's weights_mutex.
    struct vk_weights *next; // in the device's list
    enum vk_weights_state state;
    uint32_t users;     // runs between vk_weights_acquire() and vk_weights_release()
    uint64_t used_at;   // of the device's weights_clock
    uint64_t submitted; // the timeline's value once no run reads them any more
};

// Prepares an embedded list, and tells the device of it.
void vk_weights_init(struct vk_weights *weights, struct vk_device *device);

// Frees the constants on both sides; no run may still read them. All zero is fine.
void vk_weights_fini(struct vk_weights *weights);

// The number of the constant that is value `value` as it is; VK_CONSTANT_NONE where it is not there yet.
uint32_t vk_weights_find(const struct vk_weights *weights, uint32_t value);

// Adds the value's bytes, which the graph keeps as long as the program is there; or with INF_VALUE_NONE, bytes that it
// takes over (from malloc(); also on failure). Nothing is uploaded yet.
//
// INF_EXHAUSTED  (HOST_OOM)
enum inf_code vk_weights_add(struct vk_weights *weights, uint32_t value, void *bytes,
                             size_t size_bytes, uint32_t *out_index,
                             struct inf_error *err) INF_NODISCARD;

// Uploads what is not on the device, and holds all of it there until vk_weights_release().
//
// INF_EXHAUSTED  (DEVICE_OOM) there is no room, though the weights of all idle programs were taken away.
enum inf_code vk_weights_acquire(struct vk_weights *weights,
                                 struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Ends that; runs that read them are done when the timeline has `submitted`.
void vk_weights_release(struct vk_weights *weights, uint64_t submitted);

// Takes the weights of the idle program that ran longest ago off the device; false where there is none.
bool vk_weights_evict(struct vk_device *device);

#endif
