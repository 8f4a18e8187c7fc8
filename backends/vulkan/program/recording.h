// SPDX-License-Identifier: Apache-2.0
// The recording of a slot (concurrent run): descriptor sets and command buffers for the dispatches
// of a program.
#ifndef INF_BACKENDS_VULKAN_PROGRAM_RECORDING_H
#define INF_BACKENDS_VULKAN_PROGRAM_RECORDING_H

#include "backends/vulkan/lowering/lowering.h"

// The address of an operand: the buffer, the offset and the size with which a recording binds it.
struct vk_place {
    uint64_t serial; // serial number of the buffer
    VkBuffer buffer;
    VkDeviceSize offset, size;
};

// The largest number of slices in a recording.
#define VK_SLICES_MAX 64

// Consecutive dispatches that are submitted together.
struct vk_slice {
    VkCommandBuffer commands;
    uint64_t cost; // total cost of the slice's dispatches, in units of vk_dispatch.cost
};

struct vk_recording {
    VkDescriptorPool descriptors;
    VkCommandPool pool;
    // The first `slice_count` slices are in use. Unused slices keep their command buffers.
    struct vk_slice slices[VK_SLICES_MAX];
    uint32_t slice_count;
    // The limit on a slice's cost with which the dispatches were cut into slices.
    uint64_t slice_cost;
    VkDescriptorSet *sets; // one for each dispatch
    // Addresses of the operands that were recorded. Operand i of dispatch d is at index d *
    // VK_BINDINGS_MAX + i.
    struct vk_place *places;
    VkBufferView *views; // texel view of places[i], or VK_NULL_HANDLE if it has none
    uint32_t view_count; // number of entries in `views`
    // Operands that dispatches have accessed since the last barrier. written[i] is true if a
    // dispatch wrote touched[i].
    struct vk_place *touched;
    bool *written;
    struct vk_span status;  // status of each dispatch; see vk_recording_status()
    struct vk_span scratch; // scratch memory, through which the dispatches of one node pass results
    VkQueryPool queries;    // timestamps of dispatches; unused if the device has none
    bool recorded, timed;
    uint64_t submitted; // timeline value of the end of the last run; 0: no run yet
};

// Creates the pools and descriptor sets for `count` dispatches.
enum inf_code vk_recording_init(struct vk_recording *recording, struct vk_device *device,
                                uint32_t count, struct inf_error *err) INF_NODISCARD;

// Returns the status of dispatch `index` after the last run: STATUS_WORDS words.
const uint32_t *vk_recording_status(const struct vk_recording *recording,
                                    const struct vk_device *device, uint32_t index);

// Frees the recording. None of its command buffers may be running.
void vk_recording_fini(struct vk_recording *recording, struct vk_device *device);

// Records the dispatches with the operands at `recording->places`, in slices of about `slice_cost`.
// If `timed` is true, records timestamps around each dispatch.
enum inf_code vk_recording_record(struct vk_recording *recording, struct vk_device *device,
                                  const struct vk_dispatch *dispatches, uint32_t count,
                                  uint64_t slice_cost, bool timed,
                                  struct inf_error *err) INF_NODISCARD;

#endif
