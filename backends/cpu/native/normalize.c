// SPDX-License-Identifier: Apache-2.0
// Layer and instance normalisation. x is treated as [batch, rows, channels], and each channel of
// each batch item is normalised over its rows. The first element is subtracted from all elements
// before they are summed, so that a large mean does not cost precision.
#include <math.h>
#include <string.h>

#include "backends/cpu/core/kernel.h"

// The approximate number of elements of x in one task.
#define TILE_ELEMENTS ((size_t)8192)

enum parameter {
    SCALE,
    OFFSET,
    PARAMETERS
};

// How a parameter of the node (scale or offset) is broadcast to x.
struct spread {
    bool given;
    // Elements of the parameter between neighbouring rows or channels of x: 1, or 0 if they share
    // one element.
    size_t step;
    // Elements of the parameter between neighbours along each leading (batch) axis of x.
    size_t batch[INF_LIMIT_RANK];
};

struct normalize {
    const struct inf_norm *loops;
    const struct inf_simd *simd;
    size_t batch, rows, channels;
    int32_t rank; // number of leading (batch) axes
    size_t dims[INF_LIMIT_RANK];
    struct spread spreads[PARAMETERS];
    bool rms;
    double epsilon;
    size_t batches; // number of batch items in one tile
};

struct normalize_task {
    const struct normalize *normalize;
    const float *x;
    const float *parameters[PARAMETERS];
    float *y;
};

// --- checking which nodes this file can compute ---

static uint32_t axes_mask(const struct inf_ints *axes, int32_t rank)
{
    uint32_t mask = 0;
    if (axes->count == 0)
        return (1u << rank) - 1;
    for (int32_t i = 0; i < axes->count; i++)
        mask |= 1u << (axes->values[i] < 0 ? axes->values[i] + rank : axes->values[i]);
    return mask;
}

// The axes that are normalised: `first` (inclusive) to `end` (exclusive).
struct cut {
    int32_t first, end;
};

static bool find_cut(struct cut *cut, const struct inf_shape *x, uint32_t mask)
{
    cut->first = 0;
    while (cut->first < x->rank && (mask >> cut->first & 1) == 0)
        cut->first++;
    cut->end = cut->first;
    while (cut->end < x->rank && (mask >> cut->end & 1) != 0)
        cut->end++;
    return mask >> cut->end == 0;
}

static size_t dim_of(const struct inf_shape *shape, const struct inf_shape *x, int32_t axis)
{
    int32_t own = axis - (x->rank - shape->rank);
    return own < 0 ? 1 : (size_t)shape->dims[own];
}

// Compares the shape of a parameter with axes `first` to `end` (exclusive) of x. Returns 1 if the
// parameter has one element for each position on these axes, 0 if it has a single element for all
// positions, otherwise -1.
static int parameter_step(const struct inf_shape *shape, const struct inf_shape *x, int32_t first,
                          int32_t end)
{
    bool each = true;
    bool one = true;
    for (int32_t axis = first; axis < end; axis++) {
        each = each && dim_of(shape, x, axis) == (size_t)x->dims[axis];
        one = one && dim_of(shape, x, axis) == 1;
    }
    return one ? 0 : each ? 1 : -1;
}

// Returns false if this file does not support the way in which the parameter is broadcast.
static bool find_spread(struct spread *spread, const struct inf_shape *shape,
                        const struct inf_shape *x, const struct cut *cut)
{
    bool lines = cut->end == x->rank;
    int step = lines ? parameter_step(shape, x, cut->first, cut->end)
                     : parameter_step(shape, x, cut->end, x->rank);
    if (step < 0 || (!lines && parameter_step(shape, x, cut->first, cut->end) != 0))
        return false;
    *spread = (struct spread){.given = true, .step = (size_t)step};
    size_t stride = 1;
    for (int32_t axis = x->rank - 1; axis >= 0; axis--) {
        size_t dim = dim_of(shape, x, axis);
        if (axis < cut->first)
            spread->batch[axis] = dim == 1 ? 0 : stride;
        stride *= dim;
    }
    return true;
}

// Describes the node's axes and parameters. Returns false if this file cannot compute the node.
static bool describe_normalize(struct normalize *normalize, const struct inf_graph *graph,
                               const struct inf_node *node)
{
    const struct inf_attrs_normalize *attrs = &node->attrs.normalize;
    const struct inf_shape *x = inf_cpu_input_shape(graph, node, 0);
    struct cut cut;
    *normalize = (struct normalize){.batch = 1,
                                    .rows = 1,
                                    .channels = 1,
                                    .rms = attrs->kind == INF_NORMALIZE_RMS,
                                    .epsilon = (double)attrs->epsilon};
    if (!find_cut(&cut, x, axes_mask(&attrs->axes, x->rank)))
        return false;
    for (int32_t axis = 0; axis < x->rank; axis++) {
        size_t *part = axis < cut.first ? &normalize->batch
                       : axis < cut.end ? &normalize->rows
                                        : &normalize->channels;
        *part *= (size_t)x->dims[axis];
        if (axis < cut.first)
            normalize->dims[normalize->rank++] = (size_t)x->dims[axis];
    }
    for (uint32_t i = 0; i < PARAMETERS; i++)
        if (inf_cpu_has_input(node, 1 + i) &&
            !find_spread(&normalize->spreads[i], inf_cpu_input_shape(graph, node, 1 + i), x, &cut))
            return false;
    return true;
}

static enum inf_code normalize_supports(const struct inf_graph *graph, const struct inf_node *node,
                                        struct inf_error *err)
{
    struct normalize normalize;
    for (uint32_t i = 0; i < node->input_count; i++)
        if (inf_cpu_has_input(node, i))
            INF_TRY(inf_cpu_need_f32(graph, node, i, err));
    if (!describe_normalize(&normalize, graph, node))
        return inf_fail(err, INF_UNSUPPORTED,
                        "cpu: normalize: axes apart, or a scale within them, are not built");
    return INF_OK;
}

// --- computing: normalising lines and channels ---

// The numbers with which a line (the elements that are normalised together) is normalised: an
// element x becomes ((x - about) - less) * factor. `about` is the first element of the line, and
// about + less is the mean.
struct line {
    float about, less, factor;
};

static struct line line_of(const struct normalize *normalize, float about,
                           struct inf_norm_moments moments)
{
    double count = (double)normalize->rows;
    double less = normalize->rms ? 0 : moments.first / count;
    double variance = moments.second / count - less * less;
    // Rounding may make the variance negative, so a negative variance becomes 0. NaN stays NaN.
    variance = variance < 0 ? 0 : variance;
    return (struct line){about, (float)less, (float)(1 / sqrt(variance + normalize->epsilon))};
}

// Returns the address of the parameter's first element for item `batch` of the batch; NULL if the
// node does not have the parameter.
static const float *parameter_at(const struct normalize_task *task, enum parameter which,
                                 size_t batch)
{
    const struct normalize *normalize = task->normalize;
    const struct spread *spread = &normalize->spreads[which];
    const float *at = task->parameters[which];
    for (int32_t axis = normalize->rank - 1; spread->given && axis >= 0; axis--) {
        at += batch % normalize->dims[axis] * spread->batch[axis];
        batch /= normalize->dims[axis];
    }
    return spread->given ? at : NULL;
}

// Multiplies by the scale and adds the offset, for `count` elements of a row starting at `first`.
static void apply_parameters(const struct normalize_task *task, size_t batch, size_t first,
                             size_t count, float *y)
{
    static const enum inf_simd_binary functions[] = {
        [SCALE] = INF_SIMD_MUL, [OFFSET] = INF_SIMD_ADD};
    for (int i = 0; i < PARAMETERS; i++) {
        size_t step = task->normalize->spreads[i].step;
        const float *at = parameter_at(task, (enum parameter)i, batch);
        enum inf_simd_form form = step == 0 ? INF_SIMD_B_SCALAR : INF_SIMD_BOTH;
        if (at != NULL)
            task->normalize->simd->binary[functions[i]][form](count, y, at + first * step, y,
                                                              -INFINITY, INFINITY);
    }
}

static void normalize_lines(const struct normalize_task *task, size_t first, size_t end)
{
    const struct normalize *normalize = task->normalize;
    for (size_t i = first; i < end; i++) {
        const float *x = task->x + i * normalize->rows;
        float *y = task->y + i * normalize->rows;
        float about = normalize->rms ? 0 : x[0];
        struct line line =
            line_of(normalize, about, normalize->loops->line(normalize->rows, x, about));
        normalize->loops->apply_line(normalize->rows, x, line.about, line.less, line.factor, y);
        apply_parameters(task, i, 0, normalize->rows, y);
    }
}

// Normalises up to INF_NORM_COLUMNS channels of one batch item, starting at channel `column`.
static void normalize_columns(const struct normalize_task *task, size_t batch, size_t column)
{
    const struct normalize *normalize = task->normalize;
    size_t count = INF_MIN(normalize->channels - column, (size_t)INF_NORM_COLUMNS);
    size_t at = batch * normalize->rows * normalize->channels + column;
    struct inf_norm_moments moments[INF_NORM_COLUMNS];
    float about[INF_NORM_COLUMNS] = {0};
    float less[INF_NORM_COLUMNS];
    float factor[INF_NORM_COLUMNS];
    for (size_t i = 0; i < count; i++)
        about[i] = normalize->rms ? 0 : task->x[at + i];
    normalize->loops->rows(count, task->x + at, normalize->rows, normalize->channels, about,
                           moments);
    for (size_t i = 0; i < count; i++) {
        struct line line = line_of(normalize, about[i], moments[i]);
        less[i] = line.less;
        factor[i] = line.factor;
    }
    for (size_t row = 0; row < normalize->rows; row++, at += normalize->channels) {
        normalize->loops->apply_row(count, task->x + at, about, less, factor, task->y + at);
        apply_parameters(task, batch, column, count, task->y + at);
    }
}

static void normalize_tile(const void *context, size_t tile, size_t worker)
{
    (void)worker;
    const struct normalize_task *task = context;
    const struct normalize *normalize = task->normalize;
    // The number of tiles for one batch item.
    size_t across = (normalize->channels + INF_NORM_COLUMNS - 1) / INF_NORM_COLUMNS;
    if (normalize->channels == 1)
        normalize_lines(task, tile * normalize->batches,
                        INF_MIN((tile + 1) * normalize->batches, normalize->batch));
    else
        normalize_columns(task, tile / across, tile % across * INF_NORM_COLUMNS);
}

static void normalize_run(const struct inf_cpu_step *step)
{
    const struct normalize *normalize = step->state;
    struct normalize_task task = {.normalize = normalize, .x = step->inputs[0], .y = step->output};
    for (uint32_t i = 0; i < PARAMETERS; i++)
        task.parameters[i] = normalize->spreads[i].given ? step->inputs[1 + i] : NULL;
    size_t tiles = (normalize->batch + normalize->batches - 1) / normalize->batches;
    if (normalize->channels > 1)
        tiles =
            normalize->batch * ((normalize->channels + INF_NORM_COLUMNS - 1) / INF_NORM_COLUMNS);
    struct inf_cpu_tiles work = {normalize_tile, &task, tiles};
    inf_cpu_team_run_tiles(step->team, &work, SIZE_MAX);
}

static enum inf_code normalize_create(struct inf_cpu_step *step, struct inf_error *err)
{
    INF_TRY(inf_cpu_step_alloc_state(step, sizeof(struct normalize), err));
    struct normalize *normalize = step->state;
    if (!describe_normalize(normalize, step->graph, step->node))
        return inf_fail(err, INF_INTERNAL, "node '%s': axes apart", step->node->name);
    normalize->loops = step->isa->norm;
    normalize->simd = step->isa->simd;
    normalize->batches = TILE_ELEMENTS / normalize->rows + 1;
    step->run = normalize_run;
    step->kernel = "normalize";
    return INF_OK;
}

const struct inf_cpu_kernel inf_cpu_normalize_kernels[] = {
    {INF_OP_NORMALIZE, normalize_supports, normalize_create},
    {0},
};
