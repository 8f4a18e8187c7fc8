// SPDX-License-Identifier: Apache-2.0
// A sample: a small copy of one step of a program, with random inputs. A check of shaders computes
// it on a GPU and on the reference device, and compares the results.
#ifndef INF_BACKENDS_VULKAN_PROGRAM_CHECK_SAMPLE_H
#define INF_BACKENDS_VULKAN_PROGRAM_CHECK_SAMPLE_H

#include "backends/device/device.h"

struct inf_evaluator;

// The most nodes of a step that can be checked.
#define VK_CHECK_NODES_MAX 32u
// The most work of a usual sample, as inf_node_work() counts it: about 10 ms on the reference
// device. The second limit is for steps that cannot be made so small, such as a layer with many
// weights.
#define VK_CHECK_WORK_USUAL ((uint64_t)2 << 20)
#define VK_CHECK_WORK_MAX   ((uint64_t)32 << 20)
// The most bytes of all tensors of a sample that are not constants, together.
#define VK_CHECK_BYTES_MAX ((size_t)8 << 20)

struct vk_check_sample {
    struct inf_graph *graph;
    struct inf_segment segment; // all nodes of `graph`
    uint32_t nodes[VK_CHECK_NODES_MAX];
    bool pinned[VK_CHECK_NODES_MAX]; // indexed by node of `graph`
    struct inf_readers readers[VK_CHECK_NODES_MAX];
    bool *lowered;   // indexed by value of `graph`; NULL: all values are 32-bit
    size_t *offsets; // indexed by value of `graph`: where its bytes are in a buffer
    size_t bytes;    // size of that buffer
};

// Copies the nodes of a step, `nodes` in ascending order, which belong to `segment`. Axes are
// `scale` times shorter, except the last ones. `work_max` is one of the limits above. The caller
// frees the sample with vk_check_sample_fini(), also after a failure.
//
// INF_UNSUPPORTED  the step cannot be computed with such shapes.
// INF_RANGE        the sample would exceed `work_max` or VK_CHECK_BYTES_MAX; a larger `scale` may
//                  do.
// INF_EXHAUSTED    no memory.
enum inf_code vk_check_sample_init(struct vk_check_sample *sample,
                                   const struct inf_segment *segment, const uint32_t *nodes,
                                   uint32_t count, uint32_t scale, uint64_t work_max,
                                   struct inf_error *err) INF_NODISCARD;

// Frees the sample. A zeroed struct is allowed.
void vk_check_sample_fini(struct vk_check_sample *sample);

// Draws the inputs, and writes them to `bytes` as the device reads them. All other bytes become
// 0xff, so that a float that the device does not write is NaN. The caller compiles the sample
// before, because the inputs become constants of the graph.
//
// INF_EXHAUSTED  no memory.
enum inf_code vk_check_sample_draw(struct vk_check_sample *sample, void *bytes,
                                   struct inf_error *err) INF_NODISCARD;

// Computes the results with `oracle`, and compares them with those in `bytes`, which the device
// wrote. *out_error is the largest error, as VK_CHECK_ERROR_MAX describes it. The error of a NaN or
// of a wrong integer is infinity. Results that are not finite on the oracle are not compared. If a
// node of the step rounds or compares, a few errors above `most` are left out.
//
// INF_UNSUPPORTED  the oracle cannot compute the step.
enum inf_code vk_check_sample_compare(struct vk_check_sample *sample,
                                      const struct inf_evaluator *oracle, const void *bytes,
                                      double most, double *out_error,
                                      struct inf_error *err) INF_NODISCARD;

#endif
