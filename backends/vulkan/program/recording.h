// SPDX-License-Identifier: Apache-2.0
// A slot's recording: descriptor sets and a command buffer for the dispatches of a program.
#ifndef INF_BACKENDS_VULKAN_PROGRAM_RECORDING_H
#define INF_BACKENDS_VULKAN_PROGRAM_RECORDING_H

#include "backends/vulkan/lowering/lowering.h"

// Where an operand lies in the recording.
struct vk_place {
    uint64_t serial; // of the buffer
    VkBuffer buffer;
    VkDeviceSize offset, size;
};

// Slices of a recording, at most.
#define VK_SLICES_MAX 64

// A stretch of the dispatches that is submitted at once.
struct vk_slice {
    VkCommandBuffer commands;
    uint64_t cost; // of its dispatches
};

struct vk_recording {
    VkDescriptorPool descriptors;
    VkCommandPool pool;
    struct vk_slice slices[VK_SLICES_MAX]; // those that were ever needed have commands
    uint32_t slice_count;
    uint64_t slice_cost;      // that they were cut for
    VkDescriptorSet *sets;    // by dispatch
    struct vk_place *places;  // by dispatch and operand, VK_BINDINGS_MAX each: what is recorded
    VkBufferView *views;      // as `places`; none where a dispatch reads the buffer itself
    uint32_t view_count;      // of `views`, made or not
    struct vk_place *touched; // since the last barrier, with `written`
    bool *written;
    struct vk_span status;  // by dispatch, vk_recording_status() says where
    struct vk_span scratch; // what lies between the dispatches of a node
    VkQueryPool queries;    // none where the device has no timestamps
    bool recorded, timed;
    uint64_t submitted; // the timeline's value once the last run is done; 0: there was none
};

// Makes the pools and sets for `count` dispatches.
enum inf_code vk_recording_init(struct vk_recording *recording, struct vk_device *device,
                                uint32_t count, struct inf_error *err) INF_NODISCARD;

// What dispatch `index` noted of the last run: STATUS_WORDS words.
const uint32_t *vk_recording_status(const struct vk_recording *recording,
                                    const struct vk_device *device, uint32_t index);

// Frees them; nothing of it may still run.
void vk_recording_fini(struct vk_recording *recording, struct vk_device *device);

// Records the dispatches with `recording->places`, in slices of about `slice_cost`; with timestamps
// around each if `timed`.
enum inf_code vk_recording_record(struct vk_recording *recording, struct vk_device *device,
                                  const struct vk_dispatch *dispatches, uint32_t count,
                                  uint64_t slice_cost, bool timed,
                                  struct inf_error *err) INF_NODISCARD;

#endif
