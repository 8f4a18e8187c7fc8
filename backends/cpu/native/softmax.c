// SPDX-License-Identifier: Apache-2.0
// Operator softmax along the last axis, and its logarithm. Each line is computed in several passes;
// it stays in the cache between them. The result may have the address of the operand.
#include <math.h>

#include "backends/cpu/native/work.h"

// The approximate number of elements of one task.
#define TILE_ELEMENTS ((size_t)8192)
// The exponentials of this many elements are summed at once.
#define BLOCK 256

struct softmax {
    const struct inf_simd *simd;
    size_t lines, count; // number of lines, and of elements of a line
    bool log;
};

struct softmax_task {
    const struct softmax *softmax;
    const float *x;
    float *y;
};

static enum inf_code softmax_supports(const struct inf_graph *graph, const struct inf_node *node,
                                      struct inf_error *err)
{
    const struct inf_shape *x = inf_cpu_input_shape(graph, node, 0);
    int32_t axis = node->attrs.softmax.axis;
    INF_TRY(inf_cpu_need_f32(graph, node, 0, err));
    if (x->rank < 1 || (axis != -1 && axis != x->rank - 1))
        return inf_fail(err, INF_UNSUPPORTED, "cpu: softmax: axis %d of rank %d is not the last",
                        (int)axis, (int)x->rank);
    return INF_OK;
}

static void compute_line(const struct softmax *softmax, const float *x, float *y)
{
    const struct inf_simd *simd = softmax->simd;
    size_t count = softmax->count;
    float share = 1.0f / simd->powers(count, x, simd->max(count, x), y);
    simd->binary[INF_SIMD_MUL][INF_SIMD_B_SCALAR](count, y, &share, y, -INFINITY, INFINITY);
}

// Subtracts the maximum first and the logarithm of the sum second. Adding the two before
// subtracting them would round away a logarithm that is small beside the maximum.
static void compute_log_line(const struct softmax *softmax, const float *x, float *y)
{
    const struct inf_simd *simd = softmax->simd;
    inf_simd_binary_fn *subtract = simd->binary[INF_SIMD_SUB][INF_SIMD_B_SCALAR];
    size_t count = softmax->count;
    float largest = simd->max(count, x);
    double sum = 0;
    subtract(count, x, &largest, y, -INFINITY, INFINITY);
    for (size_t first = 0; first < count; first += BLOCK) {
        float powers[BLOCK];
        size_t some = INF_MIN(count - first, (size_t)BLOCK);
        sum += (double)simd->powers(some, y + first, 0, powers);
    }
    float less = (float)log(sum);
    subtract(count, y, &less, y, -INFINITY, INFINITY);
}

static void softmax_part(const void *context, size_t first, size_t count)
{
    const struct softmax_task *task = context;
    const struct softmax *softmax = task->softmax;
    for (size_t line = first; line < first + count; line++) {
        const float *x = task->x + line * softmax->count;
        float *y = task->y + line * softmax->count;
        if (softmax->log)
            compute_log_line(softmax, x, y);
        else
            compute_line(softmax, x, y);
    }
}

static void softmax_run(const struct inf_cpu_step *step)
{
    const struct softmax *softmax = step->state;
    struct softmax_task task = {softmax, step->inputs[0], step->output};
    inf_native_run_range(step, &(struct inf_native_range){softmax_part, &task, softmax->lines,
                                                          TILE_ELEMENTS / softmax->count + 1});
}

static enum inf_code softmax_create(struct inf_cpu_step *step, struct inf_error *err)
{
    const struct inf_shape *x = inf_cpu_input_shape(step->graph, step->node, 0);
    INF_TRY(inf_cpu_step_alloc_state(step, sizeof(struct softmax), err));
    struct softmax *softmax = step->state;
    softmax->simd = step->isa->simd;
    softmax->count = (size_t)x->dims[x->rank - 1];
    softmax->lines = inf_shape_elements(x) / softmax->count;
    softmax->log = step->node->attrs.softmax.log;
    step->run = softmax_run;
    step->kernel = softmax->log ? "log_softmax" : "softmax";
    return INF_OK;
}

const struct inf_cpu_kernel inf_cpu_softmax_kernels[] = {
    {INF_OP_SOFTMAX, softmax_supports, softmax_create},
    {0},
};
