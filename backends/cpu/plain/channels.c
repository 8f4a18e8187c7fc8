// SPDX-License-Identifier: Apache-2.0
// Operators that compute along the channels, which are the last axis: batch_norm that no
// convolution absorbs, and lrn.
#include <math.h>

#include "backends/cpu/native/work.h"

// The fewest elements of one task.
#define TILE_ELEMENTS ((size_t)8 << 10)

struct channels {
    size_t rows, channels;
};

static enum inf_code make_channels(struct inf_cpu_step *step, struct inf_error *err)
{
    const struct inf_shape *x = inf_cpu_input_shape(step->graph, step->node, 0);
    INF_TRY(inf_cpu_step_alloc_state(step, sizeof(struct channels), err));
    struct channels *channels = step->state;
    channels->rows = inf_cpu_extent(x, 0, x->rank - 1);
    channels->channels = (size_t)x->dims[x->rank - 1];
    return INF_OK;
}

// --- operator batch_norm ---

struct norm_task {
    size_t channels;
    const float *x, *mean, *factor, *offset;
    float *y;
};

static void norm_rows(const void *context, size_t first, size_t count)
{
    const struct norm_task *task = context;
    for (size_t row = first; row < first + count; row++) {
        const float *x = task->x + row * task->channels;
        float *restrict y = task->y + row * task->channels;
        for (size_t i = 0; i < task->channels; i++)
            y[i] = (x[i] - task->mean[i]) * task->factor[i] + task->offset[i];
    }
}

static void norm_run(const struct inf_cpu_step *step)
{
    const struct channels *channels = step->state;
    const float *scale = step->inputs[1], *variance = step->inputs[4];
    double epsilon = (double)step->node->attrs.batch_norm.epsilon;
    for (size_t i = 0; i < channels->channels; i++)
        step->scratch[i] = (float)((double)scale[i] / sqrt((double)variance[i] + epsilon));
    struct norm_task task = {channels->channels, step->inputs[0], step->inputs[3],
                             step->scratch,      step->inputs[2], step->output};
    inf_native_run_range(step, &(struct inf_native_range){norm_rows, &task, channels->rows,
                                                          TILE_ELEMENTS / channels->channels + 1});
}

static enum inf_code norm_supports(const struct inf_graph *graph, const struct inf_node *node,
                                   struct inf_error *err)
{
    return inf_cpu_need_f32(graph, node, 0, err);
}

static enum inf_code norm_create(struct inf_cpu_step *step, struct inf_error *err)
{
    INF_TRY(make_channels(step, err));
    inf_native_need_scratch(step, ((struct channels *)step->state)->channels);
    step->run = norm_run;
    step->kernel = "batch_norm";
    return INF_OK;
}

// --- operator lrn ---

struct lrn_task {
    size_t channels;
    const struct inf_attrs_lrn *attrs;
    const float *x;
    float *y;
};

// Returns 1 / base^beta. Networks have 0.75 or 0.5, which are square roots.
static double find_factor(double base, double beta)
{
    if (beta == 0.75)
        return 1 / (sqrt(base) * sqrt(sqrt(base)));
    return beta == 0.5 ? 1 / sqrt(base) : 1 / pow(base, beta);
}

static void lrn_rows(const void *context, size_t first, size_t count)
{
    const struct lrn_task *task = context;
    const struct inf_attrs_lrn *attrs = task->attrs;
    size_t channels = task->channels;
    for (size_t row = first; row < first + count; row++) {
        const float *x = task->x + row * channels;
        float *y = task->y + row * channels;
        for (size_t i = 0; i < channels; i++) {
            size_t low = i > (size_t)attrs->before ? i - (size_t)attrs->before : 0;
            size_t high = INF_MIN(i + (size_t)attrs->after, channels - 1);
            double sum = 0;
            for (size_t c = low; c <= high; c++)
                sum += (double)x[c] * (double)x[c];
            y[i] =
                (float)((double)x[i] * find_factor((double)attrs->bias + (double)attrs->alpha * sum,
                                                   (double)attrs->beta));
        }
    }
}

static void lrn_run(const struct inf_cpu_step *step)
{
    const struct channels *channels = step->state;
    struct lrn_task task = {channels->channels, &step->node->attrs.lrn, step->inputs[0],
                            step->output};
    // An element takes about as long as thirty elements of a batch norm.
    inf_native_run_range(step,
                         &(struct inf_native_range){lrn_rows, &task, channels->rows,
                                                    TILE_ELEMENTS / 32 / channels->channels + 1});
}

static enum inf_code lrn_create(struct inf_cpu_step *step, struct inf_error *err)
{
    INF_TRY(make_channels(step, err));
    step->run = lrn_run;
    step->kernel = "lrn";
    return INF_OK;
}

const struct inf_cpu_kernel inf_cpu_channel_kernels[] = {
    {INF_OP_BATCH_NORM, norm_supports, norm_create},
    {INF_OP_LRN, norm_supports, lrn_create},
    {0},
};
