// SPDX-License-Identifier: Apache-2.0
// Resizing by bilinear interpolation. For each row of the result, two whole rows of x are blended,
// and then neighbouring pixels of the blended row. XNNPACK is not used because it keeps four
// pointers and two weights for each pixel.
#include <math.h>

#include "backends/cpu/native/work.h"

#define TASK_FLOATS ((size_t)16 << 10)

// A row or column of y is (1 - weight) * x[low] + weight * x[high].
struct blend {
    uint32_t low, high;
    float weight;
};

struct bilinear {
    const struct inf_simd *simd;
    size_t batch, height, width, channels, output_height, output_width;
    struct blend *rows, *columns;
    size_t strip_rows, workers;
    size_t scratch_step; // floats of scratch memory of each worker: a row of x
};

struct bilinear_task {
    const struct bilinear *bilinear;
    const float *x;
    float *y, *scratch;
};

static enum inf_code bilinear_supports(const struct inf_graph *graph, const struct inf_node *node,
                                       struct inf_error *err)
{
    const struct inf_shape *x = inf_cpu_input_shape(graph, node, 0);
    INF_TRY(inf_cpu_need_f32(graph, node, 0, err));
    if (node->attrs.resize.kind != INF_RESIZE_BILINEAR)
        return inf_fail(err, INF_UNSUPPORTED, "cpu: resize: not bilinear");
    if (x->rank != 4 || x->dims[1] > INT32_MAX || x->dims[2] > INT32_MAX)
        return inf_fail(err, INF_UNSUPPORTED, "cpu: resize: too large");
    return INF_OK;
}

static uint32_t clamp_position(double position, size_t input)
{
    return (uint32_t)fmin(fmax(position, 0), (double)(input - 1));
}

static void fill_axis(struct blend *blends, const struct inf_attrs_resize *attrs, size_t input,
                      size_t output)
{
    bool corners = attrs->align_corners && output > 1;
    double ratio = (double)(corners ? input - 1 : input) / (double)(corners ? output - 1 : output);
    for (size_t i = 0; i < output; i++) {
        double at = attrs->half_pixel_centers ? ratio * ((double)i + 0.5) - 0.5 : ratio * (double)i;
        blends[i].low = clamp_position(floor(at), input);
        blends[i].high = clamp_position(ceil(at), input);
        // At and outside the edge of the image both neighbours are the same pixel, so the weight
        // does not matter.
        blends[i].weight =
            blends[i].low != blends[i].high ? (float)(at - (double)blends[i].low) : 0.0f;
    }
}

static inline float mix_values(float a, float b, float weight)
{
    return a + (b - a) * weight;
}

static inline void mix_pixels(const struct bilinear *bilinear, size_t channels, const float *x,
                              float *y)
{
    for (size_t i = 0; i < bilinear->output_width; i++) {
        const struct blend *blend = &bilinear->columns[i];
        const float *low = x + blend->low * channels;
        const float *high = x + blend->high * channels;
        for (size_t c = 0; c < channels; c++)
            y[i * channels + c] = mix_values(low[c], high[c], blend->weight);
    }
}

static void mix_row(const struct bilinear *bilinear, const float *x, float *y)
{
    // Each case passes a constant number of channels, so that the compiler unrolls the loop.
    switch (bilinear->channels) {
    case 1:
        mix_pixels(bilinear, 1, x, y);
        return;
    case 3:
        mix_pixels(bilinear, 3, x, y);
        return;
    case 4:
        mix_pixels(bilinear, 4, x, y);
        return;
    default:
        break;
    }
    for (size_t i = 0; i < bilinear->output_width; i++, y += bilinear->channels) {
        const struct blend *blend = &bilinear->columns[i];
        bilinear->simd->mix(bilinear->channels, x + blend->low * bilinear->channels,
                            x + blend->high * bilinear->channels, blend->weight, y);
    }
}

static void bilinear_tile(const void *context, size_t tile, size_t worker)
{
    const struct bilinear_task *task = context;
    const struct bilinear *bilinear = task->bilinear;
    size_t row_size = bilinear->width * bilinear->channels;
    size_t all = bilinear->batch * bilinear->output_height;
    size_t first = tile * bilinear->strip_rows;
    size_t end = INF_MIN(first + bilinear->strip_rows, all);
    float *mixed = task->scratch + worker * bilinear->scratch_step;
    for (size_t i = first; i < end; i++) {
        const struct blend *blend = &bilinear->rows[i % bilinear->output_height];
        const float *image = task->x + i / bilinear->output_height * bilinear->height * row_size;
        const float *row = image + blend->low * row_size;
        if (blend->weight != 0) {
            bilinear->simd->mix(row_size, row, image + blend->high * row_size, blend->weight,
                                mixed);
            row = mixed;
        }
        mix_row(bilinear, row, task->y + i * bilinear->output_width * bilinear->channels);
    }
}

static void bilinear_run(const struct inf_cpu_step *step)
{
    const struct bilinear *bilinear = step->state;
    struct bilinear_task task = {bilinear, step->inputs[0], step->output, step->scratch};
    size_t rows = bilinear->batch * bilinear->output_height;
    struct inf_cpu_tiles work = {bilinear_tile, &task,
                                 (rows + bilinear->strip_rows - 1) / bilinear->strip_rows};
    inf_cpu_team_run_tiles(step->team, &work, bilinear->workers);
}

static enum inf_code bilinear_create(struct inf_cpu_step *step, struct inf_error *err)
{
    const struct inf_shape *x = inf_cpu_input_shape(step->graph, step->node, 0);
    const struct inf_shape *y = inf_cpu_output_shape(step->graph, step->node);
    INF_TRY(inf_cpu_step_alloc_state(step, sizeof(struct bilinear), err));
    struct bilinear *bilinear = step->state;
    *bilinear = (struct bilinear){
        .simd = step->isa->simd,
        .batch = (size_t)x->dims[0],
        .height = (size_t)x->dims[1],
        .width = (size_t)x->dims[2],
        .channels = (size_t)x->dims[3],
        .output_height = (size_t)y->dims[1],
        .output_width = (size_t)y->dims[2],
    };
    bilinear->rows = inf_arena_alloc(step->arena, bilinear->output_height * sizeof(struct blend));
    bilinear->columns = inf_arena_alloc(step->arena, bilinear->output_width * sizeof(struct blend));
    if (bilinear->rows == NULL || bilinear->columns == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "node '%s': no memory for its pixels", step->node->name);
    const struct inf_attrs_resize *attrs = &step->node->attrs.resize;
    fill_axis(bilinear->rows, attrs, bilinear->height, bilinear->output_height);
    fill_axis(bilinear->columns, attrs, bilinear->width, bilinear->output_width);
    size_t row_floats = (bilinear->width + bilinear->output_width) * bilinear->channels;
    bilinear->strip_rows = TASK_FLOATS / row_floats + 1;
    bilinear->workers =
        inf_native_choose_workers(step, bilinear->batch * bilinear->output_height * row_floats);
    bilinear->scratch_step = inf_native_need_worker_scratch(step, bilinear->workers,
                                                            bilinear->width * bilinear->channels);
    step->run = bilinear_run;
    step->kernel = "bilinear";
    return INF_OK;
}

const struct inf_cpu_kernel inf_cpu_bilinear_kernels[] = {
    {INF_OP_RESIZE, bilinear_supports, bilinear_create},
    {0},
};
