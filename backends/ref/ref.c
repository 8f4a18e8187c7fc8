// SPDX-License-Identifier: Apache-2.0
#include "backends/ref/ref.h"

#include <stdlib.h>

#include "backends/ref/kernels.h"
#include "backends/ref/program.h"

#define PRIORITY 100

// --- the table of kernels: every row of ops.def, by name ---
static const struct inf_ref_kernel kernels[INF_OP_COUNT] = {
#define INF_OP_BEGIN(NAME, name, inputs_min, inputs_max, outputs, dtypes, doc)                     \
    [INF_OP_##NAME] = {inf_ref_##name, "ref_" #name},
#define INF_ATTR_INT(op, field, initial, min, max, doc)
#define INF_ATTR_BOOL(op, field, initial, doc)
#define INF_ATTR_FLOAT(op, field, initial, doc)
#define INF_ATTR_ENUM(op, field, tag, initial, doc)
#define INF_ATTR_INTS(op, field, doc)
#define INF_OP_END(NAME, name)
#include "backends/graph/ops.def"
};

const struct inf_ref_kernel *inf_ref_kernel(enum inf_op op)
{
    return &kernels[op];
}

static uint32_t probe(void)
{
    return 1;
}

static enum inf_code open_device(struct inf_device **out_device, uint32_t index,
                                 const struct inf_device_options *options, struct inf_error *err)
{
    (void)index;
    struct inf_device *device = calloc(1, sizeof(*device));
    if (device == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "no memory for the device 'ref'");
    device->info = (struct inf_device_info){
        .name = "ref",
        .backend = "ref",
        .description = "plain C loops, one thread",
        .kind = INF_DEVICE_HOST,
        .priority = PRIORITY,
        .slots = options->slots != 0 ? options->slots : 1,
        .threads = 1,
        .host_memory = true,
        .alignment = 64,
    };
    *out_device = device;
    return INF_OK;
}

static void close_device(struct inf_device *device)
{
    free(device);
}

static enum inf_code check_value(const struct inf_graph *graph, const struct inf_node *node,
                                 uint32_t index, struct inf_error *err)
{
    if (index == INF_VALUE_NONE)
        return INF_OK;
    const struct inf_value *value = &graph->values[index];
    if (inf_dtype_size(value->dtype) == 0 || !inf_shape_known(&value->shape)) {
        char text[INF_SHAPE_TEXT_SIZE];
        return inf_fail_reason(err, INF_UNSUPPORTED, INF_REASON_OPERATOR,
                               "node '%s' (%s): value '%s' is %s %s, not of known type and shape",
                               node->name, inf_op_info(node->op)->name, value->name,
                               inf_dtype_name(value->dtype), inf_shape_print(&value->shape, text));
    }
    return INF_OK;
}

static enum inf_code supports(struct inf_device *device, const struct inf_graph *graph,
                              uint32_t node_index, struct inf_error *err)
{
    (void)device;
    const struct inf_node *node = &graph->nodes[node_index];
    if (node->op == INF_OP_BRANCH || node->op == INF_OP_LOOP)
        return inf_fail_reason(err, INF_UNSUPPORTED, INF_REASON_OPERATOR,
                               "node '%s' (%s): branches and loops are the executable's to run",
                               node->name, inf_op_info(node->op)->name);
    for (uint32_t i = 0; i < node->input_count; i++)
        INF_TRY(check_value(graph, node, node->inputs[i], err));
    for (uint32_t i = 0; i < node->output_count; i++)
        INF_TRY(check_value(graph, node, node->outputs[i], err));
    return INF_OK;
}

const struct inf_backend inf_ref_backend = {
    .name = "ref",
    .priority = PRIORITY,
    .probe = probe,
    .open = open_device,
    .close = close_device,
    .supports = supports,
    .compile = inf_ref_program_compile,
    .program_destroy = inf_ref_program_destroy,
    .run = inf_ref_program_run,
    .profile = inf_ref_program_profile,
};
