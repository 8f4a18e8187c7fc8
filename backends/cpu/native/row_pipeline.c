// SPDX-License-Identifier: Apache-2.0
// Row pipelines: several fused chains computed depth-first over rows.
//
// The problem: if the chains are computed one after the other, each chain writes a tensor that is
// larger than the cache, and the next chain reads it from memory.
//
// The idea: the last stage requests a few rows (its *granule*). Each stage first requests from the
// previous stage the rows that its windows cover. Results go to ring buffers of a few rows, so they
// are still in the cache when they are read:
//
//     stage 0 -> ring of 4 rows -> stage 1 (3x3) -> ring of 6 rows -> stage 2 -> output
//     rows done:  0..6                       0..5                      0..4
//
// The size of each ring is found by one run of the same recursion without computing. The size is
// the largest distance between the newest row and the oldest row that is still read. This is
// correct for every run, because the order of rows depends on shapes only.
//
// Threads take *bands* of rows of the output, and each band has its own rings. Rows at the edge of
// two bands are computed by both threads. If that costs too much, there are fewer bands.
#include "backends/cpu/native/row_pipeline.h"

#include <string.h>

#include "backends/cpu/native/conv_packed.h"
#include "backends/cpu/native/conv_rows.h"
#include "backends/cpu/native/work.h"
#include "backends/graph/shape/infer.h"

// The image is cut into bands only if the largest band takes at most this share of the time for the
// whole image. Two bands take more than half each, because rows at their common edge are computed
// by both threads.
#define BAND_SHARE_MAX 0.85

struct stage {
    struct inf_conv_packed conv;
    const struct inf_window *height; // window along the height of the input
    size_t input_size;               // elements in a row of the input
    size_t granule;                  // number of rows that are computed in one go
    size_t ring_rows, ring_offset;   // ring buffer of the result; unused in the last stage
    bool has_residual;
    // The earlier stage whose result this stage adds; INF_CPU_ROW_PIPELINE_MAX if the stage adds an
    // operand of the step instead.
    size_t residual_stage;
    size_t residual_operand; // index of the operand of the step that is added
};

struct pipeline {
    struct stage stages[INF_CPU_ROW_PIPELINE_MAX];
    size_t count, batch, bands, workers;
    // Each worker has `memory_step` floats of memory, which hold the rings and, from
    // `scratch_offset` on, scratch memory.
    size_t memory_step, scratch_offset;
};

// The computation of one band of an image.
struct pass {
    const struct pipeline *pipeline;
    size_t done[INF_CPU_ROW_PIPELINE_MAX]; // indexed by stage: number of rows computed so far
    // Indexed by stage: number of rows that later stages will need.
    size_t wanted[INF_CPU_ROW_PIPELINE_MAX];
    // If not NULL, this is a dry run that computes nothing: it finds the number of rows that the
    // ring buffer of each stage must hold.
    size_t *rows;
    const void *const *inputs; // operands of the step for this image
    float *output, *memory;
};

// --- finding the rows that each stage must compute ---

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

// Given the rows of the last stage in *first and *wanted, sets the other entries of `first` and
// `wanted` to the rows that each earlier stage must compute for them.
static void find_band(const struct pipeline *pipeline, size_t *first, size_t *wanted)
{
    for (size_t i = 0; i + 1 < pipeline->count; i++) {
        first[i] = SIZE_MAX;
        wanted[i] = 0;
    }
    for (size_t i = pipeline->count; i-- > 0;) {
        const struct stage *stage = &pipeline->stages[i];
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

static void pass_start(struct pass *pass, const struct pipeline *pipeline, size_t band)
{
    size_t last = pipeline->count - 1;
    size_t rows = pipeline->stages[last].conv.rows;
    pass->pipeline = pipeline;
    pass->done[last] = inf_native_strip_start(rows, pipeline->bands, band, 1);
    pass->wanted[last] = inf_native_strip_start(rows, pipeline->bands, band + 1, 1);
    find_band(pipeline, pass->done, pass->wanted);
}

// Returns the oldest row of stage `index` that a later stage still reads.
static size_t find_oldest_row(const struct pass *pass, size_t index)
{
    size_t row = SIZE_MAX;
    for (size_t i = index + 1; i < pass->pipeline->count; i++) {
        const struct stage *stage = &pass->pipeline->stages[i];
        if (i == index + 1)
            row = INF_MIN(row, input_first(stage, pass->done[i]));
        if (stage->has_residual && stage->residual_stage == index)
            row = INF_MIN(row, pass->done[i]);
    }
    return row;
}

static void compute_rows(const struct pass *pass, size_t index, size_t end)
{
    const struct pipeline *pipeline = pass->pipeline;
    const struct stage *stage = &pipeline->stages[index];
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
    if (index + 1 < pipeline->count) {
        io.y = pass->memory + stage->ring_offset;
        io.y_rows = stage->ring_rows;
    }
    if (stage->has_residual && stage->residual_stage < index) {
        io.residual = pass->memory + pipeline->stages[stage->residual_stage].ring_offset;
        io.residual_rows = pipeline->stages[stage->residual_stage].ring_rows;
    } else if (stage->has_residual) {
        io.residual = pass->inputs[stage->residual_operand];
    }
    inf_conv_rows_compute(&stage->conv, &io, pass->done[index], end,
                          pass->memory + pipeline->scratch_offset);
}

// Computes the rows of stage `index` up to `end`. Before that, computes the rows of earlier stages
// that these rows need.
static void advance_stage(struct pass *pass, size_t index, size_t end)
{
    const struct stage *stage = &pass->pipeline->stages[index];
    while (pass->done[index] < end) {
        size_t to = INF_MIN(pass->done[index] + stage->granule, pass->wanted[index]);
        if (index > 0)
            advance_stage(pass, index - 1, input_end(stage, to));
        if (stage->has_residual && stage->residual_stage < index)
            advance_stage(pass, stage->residual_stage, to);
        if (pass->rows == NULL)
            compute_rows(pass, index, to);
        else if (index + 1 < pass->pipeline->count)
            pass->rows[index] = INF_MAX(pass->rows[index], to - find_oldest_row(pass, index));
        pass->done[index] = to;
    }
}

struct pipeline_task {
    const struct pipeline *pipeline;
    const struct inf_cpu_step *step;
};

static void band_tile(const void *context, size_t tile, size_t worker)
{
    const struct pipeline_task *task = context;
    const struct pipeline *pipeline = task->pipeline;
    const struct stage *last = &pipeline->stages[pipeline->count - 1];
    size_t image = tile / pipeline->bands;
    const void *inputs[INF_CPU_ROW_PIPELINE_MAX + 1];
    const struct stage *first = &pipeline->stages[0];
    inputs[0] = (const float *)task->step->inputs[0] +
                image * (size_t)first->height->input * first->input_size;
    for (size_t i = 0; i < pipeline->count; i++) {
        const struct stage *stage = &pipeline->stages[i];
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
                        .memory = task->step->scratch + worker * pipeline->memory_step};
    pass_start(&pass, pipeline, tile % pipeline->bands);
    advance_stage(&pass, pipeline->count - 1, pass.wanted[pipeline->count - 1]);
}

static void run_pipeline(const struct inf_cpu_step *step)
{
    const struct pipeline *pipeline = step->state;
    struct pipeline_task task = {pipeline, step};
    struct inf_cpu_tiles work = {band_tile, &task, pipeline->batch * pipeline->bands};
    inf_cpu_team_run_tiles(step->team, &work, pipeline->workers);
}

// --- creating a step ---

static size_t granule_of(const struct inf_conv_packed *conv)
{
    size_t rows = (inf_conv_packed_strip_pixels(conv) + conv->row_pixels - 1) / conv->row_pixels;
    size_t unit = conv->has_depthwise ? conv->depthwise.rows_max : 1;
    return (rows + unit - 1) / unit * unit;
}

// Cuts the image into `bands` bands, and returns the multiply-adds of the band that has the most.
static size_t band_macs(struct pipeline *pipeline, size_t bands)
{
    size_t most = 0;
    pipeline->bands = bands;
    for (size_t band = 0; band < bands; band++) {
        struct pass pass = {0};
        size_t macs = 0;
        pass_start(&pass, pipeline, band);
        for (size_t i = 0; i < pipeline->count; i++)
            macs += (pass.wanted[i] - pass.done[i]) *
                    inf_conv_packed_row_macs(&pipeline->stages[i].conv);
        most = INF_MAX(most, macs);
    }
    return most;
}

// Chooses the number of bands and threads.
static void choose_bands(struct pipeline *pipeline, struct inf_cpu_step *step)
{
    size_t rows = pipeline->stages[pipeline->count - 1].conv.rows;
    size_t macs = band_macs(pipeline, 1);
    pipeline->batch = pipeline->stages[0].conv.batch;
    pipeline->workers = inf_native_choose_workers(step, pipeline->batch * macs);
    size_t bands = pipeline->batch % pipeline->workers == 0 ? 1 : INF_MIN(pipeline->workers, rows);
    while (bands > 1 && (double)band_macs(pipeline, bands) > BAND_SHARE_MAX * (double)macs)
        bands--;
    pipeline->bands = bands;
    pipeline->workers = INF_MIN(pipeline->workers, pipeline->batch * pipeline->bands);
}

// Rounds `count` up to whole cache lines and adds one line, so that two threads never write to the
// same line.
static size_t whole_lines(size_t count)
{
    return (count + 31) / 16 * 16;
}

static void need_rings(struct pipeline *pipeline, struct inf_cpu_step *step)
{
    size_t rows[INF_CPU_ROW_PIPELINE_MAX] = {0};
    size_t scratch = 0;
    for (size_t band = 0; band < pipeline->bands; band++) {
        struct pass pass = {.rows = rows};
        pass_start(&pass, pipeline, band);
        advance_stage(&pass, pipeline->count - 1, pass.wanted[pipeline->count - 1]);
    }
    for (size_t i = 0; i < pipeline->count; i++) {
        struct stage *stage = &pipeline->stages[i];
        scratch = INF_MAX(scratch, inf_conv_rows_scratch(&stage->conv, stage->granule));
        if (i + 1 == pipeline->count)
            break;
        stage->ring_rows = rows[i];
        stage->ring_offset = pipeline->scratch_offset;
        pipeline->scratch_offset +=
            whole_lines(rows[i] * stage->conv.row_pixels * stage->conv.outputs);
    }
    pipeline->memory_step = pipeline->scratch_offset + whole_lines(scratch);
    inf_native_need_scratch(step, pipeline->memory_step * pipeline->workers);
}

static void describe_residual(struct pipeline *pipeline, size_t index,
                              const struct inf_cpu_row_pipeline *from, struct inf_cpu_step *step,
                              uint32_t *operands)
{
    struct stage *stage = &pipeline->stages[index];
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
    INF_TRY(inf_cpu_step_alloc_state(step, sizeof(struct pipeline), err));
    struct pipeline *pipeline = step->state;
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
    pipeline->count = from->count;
    for (size_t i = 0; i < from->count; i++) {
        struct stage *stage = &pipeline->stages[i];
        INF_TRY(inf_conv_packed_init(&stage->conv, step, &from->chains[i], err));
        stage->height = inf_conv_packed_height(&stage->conv);
        const struct inf_window *width =
            stage->conv.has_depthwise ? &stage->conv.depthwise.width : &stage->conv.width;
        stage->input_size = (size_t)width->input * stage->conv.inputs;
        stage->granule = granule_of(&stage->conv);
        describe_residual(pipeline, i, from, step, operands);
    }
    choose_bands(pipeline, step);
    need_rings(pipeline, step);
    step->run = run_pipeline;
    step->kernel = "rows of chains";
    return INF_OK;
}
