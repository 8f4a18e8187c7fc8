// SPDX-License-Identifier: Apache-2.0
// The last chain asks for a few rows at a time, and each chain asks the one before it for the rows that
// its windows need. How many rows a ring must hold is found by going through the same order once
// without computing. Each thread has a band of rows of its own and the rings to it; rows at the edges of
// bands are computed by both neighbours.
#include "backends/cpu/native/row_pipeline.h"

#include <string.h>

#include "backends/cpu/native/conv_packed.h"
#include "backends/cpu/native/conv_rows.h"
#include "backends/cpu/native/work.h"
#include "backends/graph/shape/infer.h"

// A band takes so much of the time of all rows at most, or they are not cut: what neighbours compute twice.
#define BAND_SHARE_MAX 0.85

struct stage {
    struct inf_conv_packed conv;
    const struct inf_window *height; // of its input
    size_t input_size;               // of a row
    size_t granule;                  // rows that are computed in one go
    size_t ring_rows, ring_offset;   // of its result, but for the last stage's
    bool has_residual;
    size_t residual_stage;   // whose result is added; INF_CPU_ROW_PIPELINE_MAX: an operand's
    size_t residual_operand; // else
};

struct stream {
    struct stage stages[INF_CPU_ROW_PIPELINE_MAX];
    size_t count, batch, bands, workers;
    size_t memory_step, scratch_offset; // of each worker: rings, then scratch
};

// One band of an image.
struct pass {
    const struct stream *stream;
    size_t done[INF_CPU_ROW_PIPELINE_MAX];   // rows up to which a stage's result is there
    size_t wanted[INF_CPU_ROW_PIPELINE_MAX]; // and will ever be asked for
    // Instead of computing: the rows that each ring must hold. NULL: computes.
    size_t *rows;
    const void *const *inputs; // the step's, of the image
    float *output, *memory;
};

// --- rows ---

static size_t input_first(const struct stage *stage, size_t row)
{
    int64_t first = (int64_t)row * stage->height->stride - stage->height->pad_before;
    return first > 0 ? (size_t)first : 0;
}

static size_t input_end(const struct stage *stage, size_t end)
{
    const struct inf_window *h = stage->height;
    int64_t last =
        ((int64_t)end - 1) * h->stride - h->pad_before + (h->kernel - 1) * h->dilation + 1;
    return last > 0 ? (size_t)INF_MIN(last, h->input) : 0;
}

// Fills `first` and `wanted` with the rows of each stage that the rows of the last one need.
static void find_band(const struct stream *stream, size_t *first, size_t *wanted)
{
    for (size_t i = 0; i + 1 < stream->count; i++) {
        first[i] = SIZE_MAX;
        wanted[i] = 0;
    }
    for (size_t i = stream->count; i-- > 0;) {
        const struct stage *stage = &stream->stages[i];
        if (i > 0) {
            first[i - 1] = INF_MIN(first[i - 1], input_first(stage, first[i]));
            wanted[i - 1] = INF_MAX(wanted[i - 1], input_end(stage, wanted[i]));
        }
        if (stage->has_residual && stage->residual_stage < i) {
            first[stage->residual_stage] = INF_MIN(first[stage->residual_stage], first[i]);
            wanted[stage->residual_stage] = INF_MAX(wanted[stage->residual_stage], wanted[i]);
        }
    }
}

static void pass_start(struct pass *pass, const struct stream *stream, size_t band)
{
    size_t last = stream->count - 1;
    size_t rows = stream->stages[last].conv.rows;
    pass->stream = stream;
    pass->done[last] = inf_native_strip_start(rows, stream->bands, band, 1);
    pass->wanted[last] = inf_native_strip_start(rows, stream->bands, band + 1, 1);
    find_band(stream, pass->done, pass->wanted);
}

// The oldest row of stage `index` that others will still look at.
static size_t oldest(const struct pass *pass, size_t index)
{
    size_t row = SIZE_MAX;
    for (size_t i = index + 1; i < pass->stream->count; i++) {
        const struct stage *stage = &pass->stream->stages[i];
        if (i == index + 1)
            row = INF_MIN(row, input_first(stage, pass->done[i]));
        if (stage->has_residual && stage->residual_stage == index)
            row = INF_MIN(row, pass->done[i]);
    }
    return row;
}

static void compute(const struct pass *pass, size_t index, size_t end)
{
    const struct stream *stream = pass->stream;
    const struct stage *stage = &stream->stages[index];
    const struct stage *before = stage - 1;
    struct inf_conv_packed_io io = {.x = pass->inputs[0],
                                    .x_rows = (size_t)stage->height->input,
                                    .y = pass->output,
                                    .y_rows = stage->conv.rows,
                                    .residual_rows = stage->conv.rows};
    if (index > 0) {
        io.x = pass->memory + before->ring_offset;
        io.x_rows = before->ring_rows;
    }
    if (index + 1 < stream->count) {
        io.y = pass->memory + stage->ring_offset;
        io.y_rows = stage->ring_rows;
    }
    if (stage->has_residual && stage->residual_stage < index) {
        io.residual = pass->memory + stream->stages[stage->residual_stage].ring_offset;
        io.residual_rows = stream->stages[stage->residual_stage].ring_rows;
    } else if (stage->has_residual) {
        io.residual = pass->inputs[stage->residual_operand];
    }
    inf_conv_rows_compute(&stage->conv, &io, pass->done[index], end,
                          pass->memory + stream->scratch_offset);
}

// Sees to it that the rows of stage `index` up to `end` are there.
static void advance(struct pass *pass, size_t index, size_t end)
{
    const struct stage *stage = &pass->stream->stages[index];
    while (pass->done[index] < end) {
        size_t to = INF_MIN(pass->done[index] + stage->granule, pass->wanted[index]);
        if (index > 0)
            advance(pass, index - 1, input_end(stage, to));
        if (stage->has_residual && stage->residual_stage < index)
            advance(pass, stage->residual_stage, to);
        if (pass->rows == NULL)
            compute(pass, index, to);
        else if (index + 1 < pass->stream->count)
            pass->rows[index] = INF_MAX(pass->rows[index], to - oldest(pass, index));
        pass->done[index] = to;
    }
}

struct stream_task {
    const struct stream *stream;
    const struct inf_cpu_step *step;
};

static void band_tile(const void *context, size_t tile, size_t worker)
{
    const struct stream_task *task = context;
    const struct stream *stream = task->stream;
    const struct stage *last = &stream->stages[stream->count - 1];
    size_t image = tile / stream->bands;
    const void *inputs[INF_CPU_ROW_PIPELINE_MAX + 1];
    const struct stage *first = &stream->stages[0];
    inputs[0] = (const float *)task->step->inputs[0] +
                image * (size_t)first->height->input * first->input_size;
    for (size_t i = 0; i < stream->count; i++) {
        const struct stage *stage = &stream->stages[i];
        const struct inf_conv_packed *conv = &stage->conv;
        if (stage->has_residual && stage->residual_stage == INF_CPU_ROW_PIPELINE_MAX)
            inputs[stage->residual_operand] =
                (const float *)task->step->inputs[stage->residual_operand] +
                image * conv->rows * conv->row_pixels * conv->residual_channels;
    }
    struct pass pass = {.inputs = inputs,
                        .output = (float *)task->step->output + image * last->conv.rows *
                                                                    last->conv.row_pixels *
                                                                    last->conv.outputs,
                        .memory = task->step->scratch + worker * stream->memory_step};
    pass_start(&pass, stream, tile % stream->bands);
    advance(&pass, stream->count - 1, pass.wanted[stream->count - 1]);
}

static void stream_run(const struct inf_cpu_step *step)
{
    const struct stream *stream = step->state;
    struct stream_task task = {stream, step};
    struct inf_cpu_tiles work = {band_tile, &task, stream->batch * stream->bands};
    inf_cpu_team_run_tiles(step->team, &work, stream->workers);
}

// --- making ---

static size_t granule_of(const struct inf_conv_packed *conv)
{
    size_t rows = (inf_conv_packed_strip_pixels(conv) + conv->row_pixels - 1) / conv->row_pixels;
    size_t unit = conv->has_depthwise ? conv->depthwise.rows_max : 1;
    return (rows + unit - 1) / unit * unit;
}

// Multiply-adds of the most expensive of `bands` bands.
static size_t band_macs(struct stream *stream, size_t bands)
{
    size_t most = 0;
    stream->bands = bands;
    for (size_t band = 0; band < bands; band++) {
        struct pass pass = {0};
        size_t macs = 0;
        pass_start(&pass, stream, band);
        for (size_t i = 0; i < stream->count; i++)
            macs +=
                (pass.wanted[i] - pass.done[i]) * inf_conv_packed_row_macs(&stream->stages[i].conv);
        most = INF_MAX(most, macs);
    }
    return most;
}

// Chooses bands and threads.
static void share(struct stream *stream, struct inf_cpu_step *step)
{
    size_t rows = stream->stages[stream->count - 1].conv.rows;
    size_t macs = band_macs(stream, 1);
    stream->batch = stream->stages[0].conv.batch;
    stream->workers = inf_native_choose_workers(step, stream->batch * macs);
    size_t bands = stream->batch % stream->workers == 0 ? 1 : INF_MIN(stream->workers, rows);
    while (bands > 1 && (double)band_macs(stream, bands) > BAND_SHARE_MAX * (double)macs)
        bands--;
    stream->bands = bands;
    stream->workers = INF_MIN(stream->workers, stream->batch * stream->bands);
}

// Elements that end on a cache line, so that what others write lies on none of it.
static size_t whole_lines(size_t count)
{
    return (count + 31) / 16 * 16;
}

static void need_rings(struct stream *stream, struct inf_cpu_step *step)
{
    size_t rows[INF_CPU_ROW_PIPELINE_MAX] = {0};
    size_t scratch = 0;
    for (size_t band = 0; band < stream->bands; band++) {
        struct pass pass = {.rows = rows};
        pass_start(&pass, stream, band);
        advance(&pass, stream->count - 1, pass.wanted[stream->count - 1]);
    }
    for (size_t i = 0; i < stream->count; i++) {
        struct stage *stage = &stream->stages[i];
        scratch = INF_MAX(scratch, inf_conv_rows_scratch(&stage->conv, stage->granule));
        if (i + 1 == stream->count)
            break;
        stage->ring_rows = rows[i];
        stage->ring_offset = stream->scratch_offset;
        stream->scratch_offset +=
            whole_lines(rows[i] * stage->conv.row_pixels * stage->conv.outputs);
    }
    stream->memory_step = stream->scratch_offset + whole_lines(scratch);
    inf_native_need_scratch(step, stream->memory_step * stream->workers);
}

static void describe_residual(struct stream *stream, size_t index,
                              const struct inf_cpu_row_pipeline *from, struct inf_cpu_step *step,
                              uint32_t *operands)
{
    struct stage *stage = &stream->stages[index];
    uint32_t value = from->chains[index].residual;
    stage->has_residual = value != INF_VALUE_NONE;
    stage->residual_stage = INF_CPU_ROW_PIPELINE_MAX;
    if (!stage->has_residual)
        return;
    for (size_t i = 0; i < index; i++) {
        if (from->results[i] == value)
            stage->residual_stage = i;
    }
    if (stage->residual_stage == INF_CPU_ROW_PIPELINE_MAX) {
        stage->residual_operand = step->operand_count;
        operands[step->operand_count++] = value;
    }
}

enum inf_code inf_row_pipeline_create(struct inf_cpu_step *step,
                                      const struct inf_cpu_row_pipeline *from,
                                      struct inf_error *err)
{
    INF_TRY(inf_cpu_step_alloc_state(step, sizeof(struct stream), err));
    struct stream *stream = step->state;
    uint32_t *operands = inf_arena_alloc(step->arena, (from->count + 1) * sizeof(*operands));
    if (operands == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "node '%s': no memory for its operands", step->node->name);
    operands[0] = inf_cpu_chain_input(&from->chains[0], step->graph);
    step->inputs = inf_arena_alloc(step->arena, (from->count + 1) * sizeof(*step->inputs));
    if (step->inputs == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "node '%s': no memory for its operands", step->node->name);
    step->operands = operands;
    step->operand_count = 1;
    stream->count = from->count;
    for (size_t i = 0; i < from->count; i++) {
        struct stage *stage = &stream->stages[i];
        INF_TRY(inf_conv_packed_init(&stage->conv, step, &from->chains[i], err));
        stage->height = inf_conv_packed_height(&stage->conv);
        const struct inf_window *width =
            stage->conv.has_depthwise ? &stage->conv.depthwise.width : &stage->conv.width;
        stage->input_size = (size_t)width->input * stage->conv.inputs;
        stage->granule = granule_of(&stage->conv);
        describe_residual(stream, i, from, step, operands);
    }
    share(stream, step);
    need_rings(stream, step);
    step->run = stream_run;
    step->kernel = "rows of chains";
    return INF_OK;
}
