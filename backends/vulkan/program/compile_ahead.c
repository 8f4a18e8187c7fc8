// SPDX-License-Identifier: Apache-2.0
// Lowers the steps of a segment on several threads and discards the dispatches. The only purpose is
// to create the pipelines in parallel.
#include "backends/vulkan/program/compile_ahead.h"

#include "backends/base/system/cores.h"
#include "backends/vulkan/program/lower_step.h"

// The most threads that help the calling thread. With more threads drivers are hardly faster.
#define HELPERS_MAX 7

struct work {
    struct vk_device *device;
    const struct inf_segment *segment;
    atomic_uint next; // index, in the segment's list of nodes, of the next node to lower
};

static void prepare_step(const struct work *work, uint32_t node)
{
    struct vk_gpu *gpu = work->device->gpu;
    struct vk_lowering lowering = vk_lowering_of(gpu, work->segment, node);
    lowering.ahead = work->device;
    (void)!vk_lower_step(&lowering, work->segment, NULL);
}

static void prepare_steps(void *argument)
{
    struct work *work = argument;
    for (;;) {
        uint32_t i = atomic_fetch_add_explicit(&work->next, 1, memory_order_relaxed);
        if (i >= work->segment->node_count)
            return;
        prepare_step(work, work->segment->nodes[i]);
    }
}

void vk_compile_ahead(struct vk_device *device, const struct inf_segment *segment)
{
    struct work work = {.device = device, .segment = segment};
    struct inf_thread helpers[HELPERS_MAX];
    uint32_t wanted = INF_MIN(inf_cores_usable() - 1, HELPERS_MAX), count = 0;
    wanted = INF_MIN(wanted, segment->node_count / 2);
    atomic_init(&work.next, 0);
    while (count < wanted && inf_thread_start(&helpers[count], "inferd-pipeline", prepare_steps,
                                              &work, NULL) == INF_OK)
        count++;
    if (count > 0)
        prepare_steps(&work);
    while (count > 0)
        inf_thread_join(&helpers[--count]);
}
