// SPDX-License-Identifier: Apache-2.0
// The recording of a slot: descriptor sets and command buffers for the dispatches of a program.
#ifndef INF_BACKENDS_VULKAN_PROGRAM_RECORDING_H
#define INF_BACKENDS_VULKAN_PROGRAM_RECORDING_H

#include "backends/vulkan/lowering/lowering.h"

// Where an operand is in the recording.
struct vk_place {
    uint64_t serial; // of the buffer
    VkBuffer buffer;
    VkDeviceSize offset, size;
};

// The largest number of slices in a recording.
#define VK_SLICES_MAX 64

// Consecutive dispatches that are submitted together.
struct vk_slice {
    VkCommandBuffer commands;
    uint64_t cost; // sum over its dispatches
};

struct vk_recording {
    VkDescriptorPool descriptors;
    VkCommandPool pool;
    struct vk_slice slices[VK_SLICES_MAX]; // slices that were used once have a command buffer
    uint32_t slice_count;
    uint64_t slice_cost;      // the cost that they were cut for
    VkDescriptorSet *sets;    // by dispatch
    struct vk_place *places;  // as recorded, by dispatch and operand, VK_BINDINGS_MAX each
    VkBufferView *views;      // like `places`; VK_NULL_HANDLE if the buffer itself is read
    uint32_t view_count;      // entries of `views`
    struct vk_place *touched; // places since the last barrier, with `written`
    bool *written;
    struct vk_span status;  // by dispatch: vk_recording_status()
    struct vk_span scratch; // between the dispatches of a node
    VkQueryPool queries;    // none if the device has no timestamps
    bool recorded, timed;
    uint64_t submitted; // timeline value of the last run's end; 0: there was no run
};

// Creates the pools and descriptor sets for `count` dispatches.
enum inf_code vk_recording_init(struct vk_recording *recording, struct vk_device *device,
                                uint32_t count, struct inf_error *err) INF_NODISCARD;

// Returns the status of dispatch `index` after the last run: STATUS_WORDS words.
const uint32_t *vk_recording_status(const struct vk_recording *recording,
                                    const struct vk_device *device, uint32_t index);

// Frees the recording. Nothing of it may be running.
void vk_recording_fini(struct vk_recording *recording, struct vk_device *device);

// Records the dispatches at `recording->places`, in slices of about `slice_cost`; with timestamps
// around each dispatch if `timed`.
enum inf_code vk_recording_record(struct vk_recording *recording, struct vk_device *device,
                                  const struct vk_dispatch *dispatches, uint32_t count,
                                  uint64_t slice_cost, bool timed,
                                  struct inf_error *err) INF_NODISCARD;

#endif
