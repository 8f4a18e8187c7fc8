// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/native/native.h"

#include <math.h>

#include "proto/core/span.h"

// Multiply-adds that are worth another thread that is awake: about 2 us of one core.
#define WORKER_MACS ((size_t)100000)

// --- ends ---

enum inf_code inf_native_end_check(const struct inf_graph *graph, const struct inf_node *node,
                                   const struct inf_xnn_activation *activation, uint32_t prelu,
                                   size_t channels, struct inf_error *err)
{
    if (activation->kind == INF_ACTIVATION_ELU)
        return inf_fail(err, INF_UNSUPPORTED, "cpu: %s: elu is not built here",
                        inf_op_info(node->op)->name);
    if (activation->kind == INF_ACTIVATION_LEAKY_RELU && !isfinite(activation->alpha))
        return inf_fail(err, INF_UNSUPPORTED, "cpu: %s: a slope that is no number",
                        inf_op_info(node->op)->name);
    return inf_xnn_activation_check(graph, node, activation, prelu, channels, err);
}

struct inf_native_end inf_native_end_of(const struct inf_cpu_step *step,
                                        const struct inf_node *node,
                                        const struct inf_xnn_activation *activation, uint32_t prelu)
{
    struct inf_native_end end = {.slope = NAN};
    inf_xnn_activation_bounds(activation, &end.min, &end.max);
    if (activation->kind == INF_ACTIVATION_PRELU)
        end.slopes = inf_cpu_const_f32(step->graph, node, prelu);
    if (activation->kind == INF_ACTIVATION_LEAKY_RELU)
        end.slope = activation->alpha;
    if (activation->kind == INF_ACTIVATION_TANH)
        end.map = step->isa->simd->tanh;
    if (activation->kind == INF_ACTIVATION_SIGMOID)
        end.map = step->isa->simd->sigmoid;
    if (activation->kind == INF_ACTIVATION_HARD_SWISH)
        end.map = step->isa->simd->hard_swish;
    return end;
}

bool inf_native_end_has_slopes(const struct inf_native_end *end)
{
    return end->slopes != NULL || !isnan(end->slope);
}

void inf_native_end_slopes(const struct inf_native_end *end, size_t count, size_t width, float *to)
{
    for (size_t i = 0; i < width; i++)
        to[i] = i >= count ? 1.0f : end->slopes != NULL ? end->slopes[i] : end->slope;
}

// --- memory ---

enum inf_code inf_native_alloc(float **out_floats, struct inf_cpu_step *step, size_t count,
                               struct inf_error *err)
{
    size_t size;
    *out_floats = NULL;
    if (count == 0)
        return INF_OK;
    if (inf_size_mul(count, sizeof(float), &size))
        *out_floats = inf_xnn_alloc(&step->memory, size);
    if (*out_floats == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "node '%s': no memory for %zu numbers", step->node->name, count);
    return INF_OK;
}

void inf_native_scratch(struct inf_cpu_step *step, size_t count)
{
    step->scratch_count = INF_MAX(step->scratch_count, count);
}

// --- work ---

size_t inf_native_workers(struct inf_cpu_step *step, size_t macs)
{
    size_t threads = pthreadpool_get_threads_count(step->pool);
    step->macs += macs;
    return INF_MIN(threads, macs / WORKER_MACS + 1);
}

static void split_tile(const void *context, size_t tile, size_t worker)
{
    (void)worker;
    const struct inf_native_split *split = context;
    size_t first = tile * split->part_count;
    split->part(split->context, first, INF_MIN(split->part_count, split->count - first));
}

void inf_native_split(const struct inf_cpu_step *step, const struct inf_native_split *split)
{
    struct inf_native_work work = {split_tile, split,
                                   (split->count + split->part_count - 1) / split->part_count};
    inf_cpu_team_work(step->team, &work, SIZE_MAX);
}

size_t inf_native_strips(size_t rows, size_t wanted, size_t workers)
{
    size_t strips = (rows + wanted - 1) / INF_MAX(wanted, 1u);
    // As many for every thread, unless they are so many that one more does not count.
    if (strips < 8 * workers)
        strips = (strips + workers - 1) / workers * workers;
    return INF_MAX(INF_MIN(strips, rows), 1u);
}

size_t inf_native_cut(size_t rows, size_t strips, size_t strip, size_t unit)
{
    size_t row = rows * strip / strips;
    return strip == strips ? rows : row - row % unit;
}
