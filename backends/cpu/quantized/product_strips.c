// SPDX-License-Identifier: Apache-2.0
// Multiplies strips of pixels with packed weights.
//
// The operand of a pixel is the window of x that the pixel is computed from. If windows are single
// pixels of x (`direct`) and unsigned, they are not copied. Otherwise the operands of a strip of
// pixels are written to scratch memory: windows are copied, signed bytes are made unsigned, and
// levels that cannot multiply bytes get 16-bit numbers.
#include "backends/cpu/quantized/product.h"

#include <string.h>

#include "backends/cpu/native/work.h"
#include "proto/core/span.h"

struct task {
    const struct inf_q8_product *product;
    const uint8_t *x;
    char *y;
    char *scratch;
};

struct strip {
    const uint8_t *a; // windows of the strip, one after the other
    size_t a_step;
    const int32_t *sums;
    size_t first, count; // first pixel, and number of pixels
};

static void multiply_strip(const struct task *task, const struct strip *strip,
                           const struct inf_q8_product_panel *panels, size_t panel_count)
{
    const struct inf_q8_product *product = task->product;
    const struct inf_q8_params *terms = &product->terms;
    size_t rows_max = product->gemms->rows_max;
    bool tiles = product->gemms->begin != NULL;
    size_t calls = (strip->count + rows_max - 1) / rows_max;
    size_t pixel = 0;
    for (size_t i = 0; i < calls; i++) {
        // With tile registers, all calls but the last one get as many pixels as the registers hold.
        size_t pixels = tiles ? INF_MIN(rows_max, strip->count - pixel)
                              : strip->count / calls + (i < strip->count % calls);
        const uint8_t *a[1] = {strip->a + pixel * strip->a_step};
        size_t y = (strip->first + pixel) * product->windows.groups * product->outputs;
        struct inf_q8_gemm gemm = {.a = a,
                                   .pixels = pixels,
                                   .a_step = strip->a_step,
                                   .sums = strip->sums != NULL ? strip->sums + pixel : NULL};
        for (size_t p = 0; p < panel_count; p++) {
            gemm.y = task->y + (y + panels[p].first) * terms->y_size;
            panels[p].gemm[pixels - 1](&panels[p].part, &gemm);
        }
        pixel += pixels;
    }
}

// Returns true if kernels can read the operands of the strip in x.
static bool reads_in_place(const struct inf_q8_product *product, const struct strip *strip)
{
    // Kernels with tile registers read INF_TILE_ROWS operands at once.
    size_t count = inf_size_align(strip->count, INF_TILE_ROWS);
    bool inside = product->gemms->begin == NULL || strip->first + count <= product->pixels;
    return product->direct && product->gemms->widen == NULL && product->terms.flip == 0 && inside;
}

// Where the parts of a worker's scratch memory are.
struct scratch {
    int32_t *sums;     // of each operand of a strip
    uint8_t *window;   // one window before it is widened
    uint8_t *operands; // of a strip
};

static struct scratch scratch_of(const struct inf_q8_product *product, char *memory)
{
    struct scratch scratch = {.sums = (int32_t *)memory};
    scratch.window = (uint8_t *)(scratch.sums + product->strip_pixels);
    scratch.operands = scratch.window;
    if (product->gemms->widen != NULL)
        scratch.operands += INF_CPU_QUAD * product->quads + INF_Q8_WINDOW_SLACK;
    return scratch;
}

size_t inf_q8_product_scratch_size(const struct inf_q8_product *product)
{
    size_t size = product->strip_pixels * (product->operand_size + sizeof(int32_t));
    if (product->gemms->begin != NULL)
        size += INF_TILE_CALL_ROWS * product->operand_size;
    size += INF_CPU_QUAD * product->quads + (size_t)2 * INF_Q8_WINDOW_SLACK;
    return inf_size_align(size, 64) + 64;
}

// Writes the operands of the pixels of a strip to scratch memory: windows of x, or pixels.
static void copy_operands(const struct task *task, const struct strip *strip, size_t group,
                          const struct scratch *scratch)
{
    const struct inf_q8_product *product = task->product;
    const struct inf_q8_gemms *gemms = product->gemms;
    const struct inf_q8_windows *windows = &product->windows;
    const uint8_t *x = task->x + strip->first * windows->channels;
    uint8_t flip = product->terms.flip;
    if (product->direct && gemms->widen == NULL) {
        gemms->copy(scratch->operands, x, strip->count * product->operand_size, flip);
        return;
    }
    struct inf_q8_cursor cursor = inf_q8_windows_start(windows, task->x, group, strip->first);
    if (gemms->widen == NULL) {
        inf_q8_windows_copy(windows, &product->terms, &cursor, strip->count, scratch->operands,
                            product->operand_size);
        return;
    }
    for (size_t i = 0; i < strip->count; i++) {
        const uint8_t *bytes = x + i * windows->channels;
        if (!product->direct) {
            inf_q8_windows_copy(windows, &product->terms, &cursor, 1, scratch->window, 0);
            bytes = scratch->window;
        }
        gemms->widen(scratch->operands + i * product->operand_size, bytes, product->quads,
                     product->direct ? flip : 0);
    }
}

// Computes the sum of the bytes of each operand of a strip.
static void sum_operands(const struct task *task, const struct strip *strip, size_t group,
                         const struct scratch *scratch)
{
    const struct inf_q8_product *product = task->product;
    const struct inf_q8_windows *windows = &product->windows;
    struct inf_q8_cursor cursor = inf_q8_windows_start(windows, task->x, group, strip->first);
    for (size_t i = 0; i < strip->count; i++) {
        const uint8_t *bytes = task->x + (strip->first + i) * windows->channels;
        uint8_t flip = product->terms.flip;
        if (!product->direct) {
            inf_q8_windows_copy(windows, &product->terms, &cursor, 1, scratch->window, 0);
            bytes = scratch->window;
            flip = 0;
        }
        scratch->sums[i] = product->gemms->sum(bytes, product->depth, flip);
    }
}

// Sets the operands with which a kernel multiplies the weights: the pixels of a strip where they
// lie in x, if the kernel can read them there, otherwise copies in `memory`. Also computes the sum
// of each pixel's operands if weights have zero points.
static void prepare_strip(const struct task *task, struct strip *strip, size_t group, char *memory)
{
    const struct inf_q8_product *product = task->product;
    const struct scratch scratch = scratch_of(product, memory);
    bool in_place = reads_in_place(product, strip);
    strip->a = in_place ? task->x + strip->first * product->windows.channels : scratch.operands;
    strip->a_step = in_place ? product->windows.channels : product->operand_size;
    strip->sums = product->has_zeros ? scratch.sums : NULL;
    // The sums come first: copying a window for its sum overwrites the operands.
    if (product->has_zeros)
        sum_operands(task, strip, group, &scratch);
    if (!in_place)
        copy_operands(task, strip, group, &scratch);
}

size_t inf_q8_product_strip_unit(const struct inf_q8_product *product)
{
    return product->gemms->begin != NULL ? INF_TILE_ROWS : 1;
}

static void run_tile(const void *context, size_t tile, size_t worker)
{
    const struct task *task = context;
    const struct inf_q8_product *product = task->product;
    size_t part = tile % product->panel_parts;
    size_t index = tile / product->panel_parts;
    size_t unit = inf_q8_product_strip_unit(product);
    struct strip strip = {
        .first = inf_native_strip_start(product->pixels, product->strips, index, unit)};
    strip.count =
        inf_native_strip_start(product->pixels, product->strips, index + 1, unit) - strip.first;
    if (strip.count == 0)
        return;
    if (product->gemms->begin != NULL)
        product->gemms->begin(product->tile_depth);
    size_t begin = product->panel_count * part / product->panel_parts;
    size_t end = product->panel_count * (part + 1) / product->panel_parts;
    for (size_t group = 0; group < product->windows.groups; group++) {
        prepare_strip(task, &strip, group, task->scratch + worker * product->scratch_step);
        multiply_strip(task, &strip, product->panels + group * product->panel_count + begin,
                       end - begin);
    }
    if (product->gemms->end != NULL)
        product->gemms->end();
}

void inf_q8_product_run(const struct inf_q8_product *product, const struct inf_cpu_step *step,
                        const uint8_t *x, char *y)
{
    const struct task task = {product, x, y, (char *)step->scratch};
    struct inf_cpu_tiles work = {run_tile, &task, product->strips * product->panel_parts};
    inf_cpu_team_run_tiles(step->team, &work, product->workers);
}
