// SPDX-License-Identifier: Apache-2.0
// Decides for each value whether it is in device memory, in memory shared by device and host, or in
// host memory. The choice depends on which devices read and write the value.
#include "backends/exec/staging.h"

#include <stdlib.h>
#include <string.h>

#include "proto/core/span.h"

#define BY_DEVICE 1u
#define BY_HOST   2u

// Records in `who` that the device or the host (`by`: BY_DEVICE or BY_HOST) accesses the bytes of
// `value`. Values that share bytes have one entry in `who`, at the index of their root.
static void note_access(unsigned char *who, const struct inf_plan *plan, uint32_t value,
                        unsigned char by)
{
    if (value != INF_VALUE_NONE)
        who[plan->roots[value]] |= by;
}

static enum inf_code find_touched(unsigned char *who, const struct inf_graph *graph,
                                  const struct inf_plan *plan, struct inf_device *const *devices,
                                  struct inf_error *err)
{
    for (uint32_t s = 0; s < plan->segment_count; s++) {
        const struct inf_plan_segment *segment = &plan->segments[s];
        const struct inf_device_info *info = inf_device_info(devices[segment->device]);
        if (!info->host_memory && segment->device != 0)
            return inf_fail(err, INF_UNSUPPORTED,
                            "device '%s' has memory of its own and is not the first", info->name);
        unsigned char by = info->host_memory ? BY_HOST : BY_DEVICE;
        for (uint32_t i = segment->first; i < segment->first + segment->count; i++) {
            const struct inf_node *node = &graph->nodes[plan->steps[i]];
            for (uint32_t k = 0; k < node->input_count; k++)
                note_access(who, plan, node->inputs[k], by);
            for (uint32_t k = 0; k < node->output_count; k++)
                note_access(who, plan, node->outputs[k], by);
        }
    }
    return INF_OK;
}

static bool is_staged(const struct inf_storage *storage, unsigned char who)
{
    switch (storage->place) {
    case INF_PLACE_INPUT:
    case INF_PLACE_OUTPUT:
        return (who & BY_DEVICE) != 0;
    case INF_PLACE_ARENA:
        return who == (BY_DEVICE | BY_HOST);
    default:
        return false;
    }
}

static void place_values(struct inf_staging *staging, const struct inf_plan *plan,
                         const unsigned char *who, size_t alignment)
{
    for (uint32_t v = 0; v < plan->value_count; v++) {
        const struct inf_storage *storage = &plan->storage[v];
        staging->offsets[v] = INF_STAGING_NONE;
        if (plan->roots[v] != v)
            continue;
        if (is_staged(storage, who[v])) {
            staging->offsets[v] = staging->bytes;
            staging->bytes += inf_size_align(storage->size_bytes + INF_BLOB_SLACK_BYTES, alignment);
        } else if (storage->place == INF_PLACE_ARENA) {
            staging->on_device[v] = who[v] == BY_DEVICE;
            staging->host_arena |= who[v] == BY_HOST;
        } else if (storage->place == INF_PLACE_OUTPUT) {
            // the host arena holds the output in runs whose caller does not want it
            staging->host_arena = true;
        }
    }
    for (uint32_t v = 0; v < plan->value_count; v++) {
        staging->offsets[v] = staging->offsets[plan->roots[v]];
        staging->on_device[v] = staging->on_device[plan->roots[v]];
    }
}

enum inf_code inf_staging_init(struct inf_staging *staging, const struct inf_graph *graph,
                               const struct inf_plan *plan, struct inf_device *const *devices,
                               struct inf_error *err)
{
    unsigned char *who = calloc((size_t)plan->value_count + 1, sizeof *who);
    staging->offsets = calloc((size_t)plan->value_count + 1, sizeof *staging->offsets);
    staging->on_device = calloc((size_t)plan->value_count + 1, sizeof *staging->on_device);
    enum inf_code code = INF_OK;
    if (who == NULL || staging->offsets == NULL || staging->on_device == NULL)
        code = inf_fail(err, INF_EXHAUSTED, "no memory to place %u values", plan->value_count);
    if (code == INF_OK)
        code = find_touched(who, graph, plan, devices, err);
    if (code == INF_OK)
        place_values(staging, plan, who,
                     INF_MAX(inf_device_info(devices[0])->alignment, (size_t)64));
    free(who);
    return code;
}

void inf_staging_fini(struct inf_staging *staging)
{
    free(staging->offsets);
    free(staging->on_device);
    *staging = (struct inf_staging){0};
}
