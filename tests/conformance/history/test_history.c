// SPDX-License-Identifier: Apache-2.0
// Decoding steps with the history in place, on the reference device: one head of attention over
// the rows so far, compared with sums in double that this test computes, and graphs that must be
// refused because unused rows would change their results.
#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backends/device/backend.h"
#include "backends/exec/model/history_refusals.h"
#include "backends/exec/model/model.h"
#include "backends/graph/history/history.h"
#include "backends/ref/ref.h"
#include "tests/conformance/history/history_graph.h"

#define SIZE    3  // channels of a row
#define ROOM    16 // rows of the buffer
#define GARBAGE 1e30f

static const struct inf_history_buffers one_session = {ROOM, 1};

// What a graph does with the rows so far, besides attention.
enum twist {
    PLAIN,
    MASKED,      // a mask over all rows is added to the scores, as an input of its own
    CAUSAL,      // a row sees no later rows
    SHIFTED,     // the length of the history is added to the result
    FIRST_COUNT, // accepted twists are before this one
    REVERSED = FIRST_COUNT,
    AVERAGED,
    LAST_ROW,
    NORMALIZED, // each row is divided by its length, which is 0 for unused rows
    ROOTED,     // the square root of each element
    TWICE_READ,
    SUMMED_SCORES,
    WITHOUT_SOFTMAX,
    JOINED_BEHIND,
    LARGE_OUTPUT,
    TWIST_COUNT
};

static uint32_t reduce_rows(struct inf_builder *b, enum inf_reduce_kind kind, uint32_t x,
                            int64_t axis)
{
    return inf_build_reduce(b, kind, x, &(struct inf_ints){.count = 1, .values = {axis}}, true);
}

static uint32_t add_range(struct inf_builder *b, uint32_t start, uint32_t count)
{
    uint32_t end = inf_build_add(b, start, count);
    struct inf_build_node node =
        inf_build_describe(INF_OP_RANGE, start, end, inf_build_scalar(b, INF_DTYPE_I32, 1));
    return inf_build_value(b, &node);
}

static uint32_t add_size(struct inf_builder *b, uint32_t x, int32_t axis)
{
    return inf_build_squeeze(b, inf_build_dim_value(b, x, axis), (int64_t[]){0}, 1);
}

// Returns a bias that hides later rows from each row.
static uint32_t add_causal_bias(struct inf_builder *b, uint32_t x, uint32_t past, uint32_t all)
{
    uint32_t zero = inf_build_scalar(b, INF_DTYPE_I32, 0);
    uint32_t rows = add_range(b, add_size(b, past, 1), add_size(b, x, 1));
    uint32_t keys = add_range(b, zero, add_size(b, all, 1));
    rows = inf_build_expand_dims(b, rows, (int64_t[]){1}, 1);
    uint32_t visible = inf_build_compare(b, INF_COMPARE_LESS_EQUAL, keys, rows);
    return inf_build_select(b, visible, inf_build_scalar(b, INF_DTYPE_F32, 0),
                            inf_build_scalar(b, INF_DTYPE_F32, -INFINITY));
}

static uint32_t twist_rows(struct inf_builder *b, enum twist twist, uint32_t past, uint32_t all)
{
    struct inf_build_node reverse = inf_build_describe(INF_OP_REVERSE, all, INF_VALUE_NONE, 0);
    reverse.input_count = 1;
    reverse.attrs.reverse.axes = (struct inf_ints){.count = 1, .values = {1}};
    switch (twist) {
    case REVERSED:
        return inf_build_value(b, &reverse);
    case AVERAGED:
        return inf_build_sub(b, all, reduce_rows(b, INF_REDUCE_MEAN, all, 1));
    case LAST_ROW:
        return inf_build_sub(b, all, inf_build_slice(b, all, 1, -1, INT64_MAX, 1));
    case NORMALIZED:
        return inf_build_div(b, all, reduce_rows(b, INF_REDUCE_L2, all, 2));
    case ROOTED:
        return inf_build_unary(b, INF_UNARY_SQRT, all);
    case TWICE_READ:
        return inf_build_add(b, all, reduce_rows(b, INF_REDUCE_SUM, past, 1));
    case JOINED_BEHIND:
        return inf_build_concat(b, (uint32_t[]){all, all}, 2, 1);
    default:
        return all;
    }
}

// Makes the graph x [1, n, SIZE], past [1, length, SIZE], mask -> y [1, n, SIZE], rows [1, length +
// n, SIZE]: y = softmax(x * rows^T) * rows.
static struct inf_graph *make_graph(enum twist twist)
{
    struct inf_error err;
    struct inf_builder b = begin_graph(&err);
    uint32_t x = add_input(&b, "x", INF_SHAPE(1, INF_DIM_UNKNOWN, SIZE));
    uint32_t past = add_input(&b, "past", INF_SHAPE(1, INF_DIM_UNKNOWN, SIZE));
    uint32_t mask = INF_VALUE_NONE;
    if (twist == MASKED)
        mask = add_input(&b, "mask", INF_SHAPE(1, INF_DIM_UNKNOWN));
    uint32_t all = inf_build_concat(&b, (uint32_t[]){past, x}, 2, 1);
    uint32_t rows = twist_rows(&b, twist, past, all);
    uint32_t scores = add_scores(&b, x, rows);
    if (twist == MASKED)
        scores = inf_build_add(&b, scores, mask);
    if (twist == CAUSAL)
        scores = inf_build_add(&b, scores, add_causal_bias(&b, x, past, all));
    if (twist == SUMMED_SCORES)
        scores = inf_build_sub(&b, scores, reduce_rows(&b, INF_REDUCE_SUM, scores, 2));
    if (twist != WITHOUT_SOFTMAX)
        scores = inf_build_softmax(&b, scores, -1, false);
    uint32_t y = inf_build_matmul(&b, scores, rows);
    if (twist == SHIFTED)
        y = inf_build_add(&b, y, inf_build_cast(&b, add_size(&b, past, 1), INF_DTYPE_F32));
    struct inf_graph *graph = end_graph(&b, y, all);
    if (twist == LARGE_OUTPUT)
        cr_assert_eq(inf_graph_add_output(graph, "scores", scores, NULL), INF_OK);
    return graph;
}

// Element of row `row`; rows of a session follow each other.
static float row_element(int64_t row, int channel)
{
    return sinf((float)(row * SIZE + channel) * 0.7f);
}

static float mask_element(int64_t row)
{
    return row % 3 == 1 ? -2.5f : 0.25f;
}

static void check_y(enum twist twist, const float *y, int64_t length, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        double sums[SIZE] = {0}, total = 0;
        for (int64_t k = 0; k < length + count; k++) {
            double score = twist == MASKED ? (double)mask_element(k) : 0;
            for (int c = 0; c < SIZE; c++)
                score += (double)row_element(length + i, c) * (double)row_element(k, c);
            double weight = twist == CAUSAL && k > length + i ? 0 : exp(score);
            total += weight;
            for (int c = 0; c < SIZE; c++)
                sums[c] += weight * (double)row_element(k, c);
        }
        for (int c = 0; c < SIZE; c++) {
            double wanted = sums[c] / total + (twist == SHIFTED ? (double)length : 0);
            cr_assert_float_eq((double)y[i * SIZE + c], wanted, 1e-5, "twist %d length %d: %g, %g",
                               (int)twist, (int)length, (double)y[i * SIZE + c], wanted);
        }
    }
}

// Opens the device `ref`, and makes a model for it. Takes over the graph.
static struct inf_model *open_model(struct inf_graph *graph, struct inf_device **device)
{
    struct inf_model *model;
    struct inf_error err;
    const struct inf_device_options device_options = {.slots = 1};
    const struct inf_pass_options options = {.evaluator = inf_ref_evaluator()};
    cr_assert_eq(inf_device_open(device, &inf_ref_backend, 0, &device_options, NULL), INF_OK);
    cr_assert_eq(inf_model_create(&model, &graph, device, 1, &options, &err), INF_OK, "%s",
                 err.text);
    return model;
}

// Returns the executable of steps in buffers of ROOM rows.
static struct inf_executable *acquire_history(struct inf_model *model, struct inf_device *device,
                                              const struct inf_shape *shapes)
{
    struct inf_executable *executable = NULL;
    struct inf_error err;
    const struct inf_run_options options = {.precision = INF_PRECISION_FP32};
    cr_assert_eq(
        inf_model_acquire_history(model, device, &options, shapes, one_session, &executable, &err),
        INF_OK, "%s", err.text);
    return executable;
}

// Runs a step of `count` rows behind `length` rows, and checks the result and the buffer.
static void run_step(struct inf_model *model, struct inf_device *device, enum twist twist,
                     int64_t length, int64_t count)
{
    struct inf_error err;
    const struct inf_shape shapes[] = {INF_SHAPE(1, count, SIZE), INF_SHAPE(1, 0, SIZE),
                                       INF_SHAPE(1, count)};
    struct inf_executable *executable = acquire_history(model, device, shapes);
    cr_assert_eq(inf_executable_new_rows(executable), count);
    float buffer[ROOM * SIZE + 16], x[ROOM * SIZE + 16] = {0}, mask[ROOM + 16] = {0},
                                                    y[ROOM * SIZE];
    int32_t used = (int32_t)length;
    for (int64_t row = 0; row < ROOM; row++)
        for (int c = 0; c < SIZE; c++) {
            buffer[row * SIZE + c] = row < length ? row_element(row, c) : GARBAGE;
            if (row >= length && row < length + count)
                x[(row - length) * SIZE + c] = row_element(row, c);
        }
    for (int64_t row = 0; row < length + count; row++)
        mask[row] = mask_element(row);
    const void *inputs[] = {x, buffer, twist == MASKED ? (const void *)mask : &used, &used};
    void *outputs[] = {y, NULL};
    const struct inf_execution execution = {.inputs = inputs, .outputs = outputs};
    cr_assert_eq(inf_executable_run(executable, &execution, &err), INF_OK, "%s", err.text);
    check_y(twist, y, length, count);
    for (int64_t row = 0; row < ROOM; row++)
        for (int c = 0; c < SIZE; c++)
            cr_assert_eq(buffer[row * SIZE + c],
                         row < length + count ? row_element(row, c) : GARBAGE);
    inf_model_release(model, &executable);
}

static struct inf_model *make_model(enum twist twist, struct inf_device **device)
{
    return open_model(make_graph(twist), device);
}

// Asks for the executable of steps in buffers of ROOM rows, which is expected to be refused.
static enum inf_code try_history(struct inf_model *model, struct inf_device *device,
                                 const struct inf_shape *shapes)
{
    struct inf_executable *executable = NULL;
    const struct inf_run_options options = {.precision = INF_PRECISION_FP32};
    enum inf_code code =
        inf_model_acquire_history(model, device, &options, shapes, one_session, &executable, NULL);
    cr_assert_null(executable);
    return code;
}

Test(history, steps_are_those_of_the_whole_text)
{
    for (enum twist twist = PLAIN; twist < FIRST_COUNT; twist++) {
        struct inf_device *device;
        struct inf_model *model = make_model(twist, &device);
        const struct inf_history *history = inf_model_history(model);
        cr_assert_not_null(history, "twist %d", (int)twist);
        cr_assert_eq(history->outputs[1], 1);
        cr_assert_eq(history->axes[1], 1);
        cr_assert_eq(history->axes[0], INF_HISTORY_NONE);
        if (twist == MASKED)
            cr_assert_eq(history->axes[2], 1);
        for (int64_t count = 1; count <= 4; count += 3)
            for (int64_t length = 0; length <= ROOM - count; length++)
                run_step(model, device, twist, length, count);
        inf_model_unref(&model);
        inf_device_unref(&device);
    }
}

Test(history, what_unused_rows_would_change_is_refused)
{
    const struct inf_shape shapes[] = {INF_SHAPE(1, 1, SIZE), INF_SHAPE(1, 0, SIZE)};
    for (enum twist twist = FIRST_COUNT; twist < TWIST_COUNT; twist++) {
        struct inf_device *device;
        struct inf_executable *executable = NULL;
        struct inf_model *model = make_model(twist, &device);
        cr_assert_not_null(inf_model_history(model), "twist %d", (int)twist);
        for (int again = 0; again < 2; again++)
            cr_assert_eq(try_history(model, device, shapes), INF_UNSUPPORTED, "twist %d",
                         (int)twist);
        // The model still runs without a history in place.
        const struct inf_shape usual[] = {INF_SHAPE(1, 1, SIZE), INF_SHAPE(1, 5, SIZE)};
        cr_assert_eq(inf_model_acquire(model, device, usual, &executable, NULL), INF_OK);
        inf_model_release(model, &executable);
        inf_model_unref(&model);
        inf_device_unref(&device);
    }
}

// Makes the graph x [1, n, SIZE], past [1, length, SIZE], position [1] -> y, rows, in the way that
// GroupQueryAttention is imported: x is written to `position`, over the past and n rows of zeros,
// and what is behind n + `more` rows from there on becomes `filler`.
static struct inf_graph *make_written_graph(int32_t more, float filler)
{
    struct inf_error err;
    struct inf_builder b = begin_graph(&err);
    uint32_t x = add_input(&b, "x", INF_SHAPE(1, INF_DIM_UNKNOWN, SIZE));
    uint32_t past = add_input(&b, "past", INF_SHAPE(1, INF_DIM_UNKNOWN, SIZE));
    uint32_t position = add_typed_input(&b, "position", INF_DTYPE_I32, INF_SHAPE(1));
    uint32_t zero = inf_build_scalar(&b, INF_DTYPE_F32, 0), n = add_size(&b, x, 1);
    uint32_t zeros = inf_build_fill(&b, inf_build_shape(&b, x), zero);
    uint32_t all = inf_build_concat(&b, (uint32_t[]){past, zeros}, 2, 1);
    uint32_t keys = add_range(&b, inf_build_scalar(&b, INF_DTYPE_I32, 0), add_size(&b, all, 1));
    uint32_t count = inf_build_add(&b, n, inf_build_scalar(&b, INF_DTYPE_I32, more));
    struct inf_build_node append = inf_build_describe(INF_OP_APPEND, all, position, x);
    append.attrs.append.axis = 1;
    uint32_t kept =
        inf_build_compare(&b, INF_COMPARE_LESS, keys, inf_build_add(&b, position, count));
    kept = inf_build_expand_dims(&b, kept, (int64_t[]){0, 2}, 2);
    uint32_t rows = inf_build_select(&b, kept, inf_build_value(&b, &append),
                                     inf_build_scalar(&b, INF_DTYPE_F32, (double)filler));
    uint32_t scores = inf_build_softmax(&b, add_scores(&b, x, rows), -1, false);
    uint32_t y = inf_build_matmul(&b, scores, rows);
    return end_graph(&b, y, rows);
}

static struct inf_model *make_written_model(int32_t more, float filler, struct inf_device **device)
{
    return open_model(make_written_graph(more, filler), device);
}

static const struct inf_shape written_shapes[] = {INF_SHAPE(1, 2, SIZE), INF_SHAPE(1, 0, SIZE),
                                                  INF_SHAPE(1)};

Test(history, rows_at_positions_must_follow_the_history)
{
    struct inf_device *device;
    struct inf_model *model = make_written_model(0, 0, &device);
    const struct inf_history *history = inf_model_history(model);
    cr_assert(history != NULL && history->checks_positions);
    struct inf_executable *executable = acquire_history(model, device, written_shapes);
    struct inf_error err;
    const int32_t used = 5;
    float buffer[ROOM * SIZE + 16] = {0}, x[2 * SIZE + 16] = {0}, y[2 * SIZE];
    for (int i = 0; i < used * SIZE; i++)
        buffer[i] = row_element(i / SIZE, i % SIZE);
    for (int i = 0; i < 2 * SIZE; i++)
        x[i] = row_element(used + i / SIZE, i % SIZE);
    for (int32_t position = used - 1; position <= used + 1; position++) {
        const void *inputs[] = {x, buffer, &position, &used};
        void *outputs[] = {y, NULL};
        const struct inf_execution execution = {.inputs = inputs, .outputs = outputs};
        enum inf_code code = inf_executable_run(executable, &execution, &err);
        cr_assert_eq(code, position == used ? INF_OK : INF_INVALID, "%s", err.text);
        if (code == INF_OK)
            check_y(PLAIN, y, used, 2);
    }
    inf_model_release(model, &executable);
    inf_model_unref(&model);
    inf_device_unref(&device);
}

Test(history, rows_that_become_zeros_are_those_behind_the_new_ones)
{
    for (int32_t more = -1; more <= 1; more += 2) {
        struct inf_device *device;
        struct inf_model *model = make_written_model(more, 0, &device);
        cr_assert_not_null(inf_model_history(model));
        cr_assert_eq(try_history(model, device, written_shapes), INF_UNSUPPORTED);
        inf_model_unref(&model);
        inf_device_unref(&device);
    }
}

// Makes the model x [1, n, SIZE], at [1], cache [1, ROOM, SIZE] -> y [1, SIZE], rows [1, ROOM,
// SIZE]. `rows` is the cache with x written over it from row `at` on, and y is the sum of these
// rows. If `reads`, y is also increased by row 0 of the cache as it was before the write.
static struct inf_model *make_cache_model(bool reads, struct inf_device **device)
{
    struct inf_error err;
    struct inf_builder b = begin_graph(&err);
    uint32_t x = add_input(&b, "x", INF_SHAPE(1, INF_DIM_UNKNOWN, SIZE));
    uint32_t at = add_typed_input(&b, "at", INF_DTYPE_I64, INF_SHAPE(1));
    uint32_t cache = add_input(&b, "cache", INF_SHAPE(1, ROOM, SIZE));
    struct inf_build_node append = inf_build_describe(INF_OP_APPEND, cache, at, x);
    append.attrs.append.axis = 1;
    append.attrs.append.ring = true;
    uint32_t rows = inf_build_value(&b, &append);
    uint32_t y = reduce_rows(&b, INF_REDUCE_SUM, rows, 1);
    if (reads)
        y = inf_build_add(&b, y, inf_build_slice(&b, cache, 1, 0, 1, 1));
    return open_model(end_graph(&b, y, rows), device);
}

static const struct inf_shape cache_shapes[] = {INF_SHAPE(1, 2, SIZE), INF_SHAPE(1),
                                                INF_SHAPE(1, ROOM, SIZE)};

Test(history, rows_are_written_over_a_cache_in_place)
{
    struct inf_device *device;
    struct inf_model *model = make_cache_model(false, &device);
    const struct inf_history *history = inf_model_history(model);
    cr_assert(history != NULL && history->has_caches && !history->grows);
    cr_assert(history->caches[2] == 1 && history->cache_axes[2] == 1 && history->cache_rings[2]);
    cr_assert_eq(history->caches[0], INF_HISTORY_NONE);
    struct inf_executable *executable = acquire_history(model, device, cache_shapes);
    struct inf_error err;
    cr_assert_eq(inf_executable_new_rows(executable), 2);
    float cache[ROOM * SIZE + 16], x[2 * SIZE + 16] = {7, 7, 7, 9, 9, 9}, y[SIZE];
    for (int i = 0; i < ROOM * SIZE; i++)
        cache[i] = 1;
    // The second row goes to the beginning of the ring.
    const int64_t at = 5 * ROOM - 1;
    int64_t positions = 0;
    const int32_t length = 0;
    const void *inputs[] = {x, &at, cache, &length};
    void *outputs[] = {y, NULL, &positions};
    const struct inf_execution execution = {.inputs = inputs, .outputs = outputs};
    cr_assert_eq(inf_executable_run(executable, &execution, &err), INF_OK, "%s", err.text);
    cr_assert_eq(positions, at);
    for (int c = 0; c < SIZE; c++) {
        cr_assert_eq(y[c], ROOM - 2 + 7 + 9);
        for (int row = 0; row < ROOM; row++)
            cr_assert_eq(cache[row * SIZE + c], row == 0 ? 9 : row == ROOM - 1 ? 7 : 1);
    }
    inf_model_release(model, &executable);
    inf_model_unref(&model);
    inf_device_unref(&device);
}

Test(history, a_cache_that_is_read_before_it_is_written_is_refused)
{
    struct inf_device *device;
    struct inf_model *model = make_cache_model(true, &device);
    cr_assert_not_null(inf_model_history(model));
    cr_assert_eq(try_history(model, device, cache_shapes), INF_UNSUPPORTED);
    inf_model_unref(&model);
    inf_device_unref(&device);
}

Test(history, a_buffer_without_room_for_the_new_rows_is_refused)
{
    struct inf_device *device;
    struct inf_model *model = make_model(PLAIN, &device);
    const struct inf_shape shapes[] = {INF_SHAPE(1, ROOM - 2, SIZE), INF_SHAPE(1, 0, SIZE)};
    cr_assert_eq(try_history(model, device, shapes), INF_RANGE);
    // Requests with fewer new rows are not refused.
    run_step(model, device, PLAIN, 2, 1);
    inf_model_unref(&model);
    inf_device_unref(&device);
}

Test(history, rows_with_something_else_behind_them_are_no_history)
{
    struct inf_device *device;
    struct inf_model *model = make_written_model(0, 1, &device);
    cr_assert_null(inf_model_history(model));
    inf_model_unref(&model);
    inf_device_unref(&device);
}

// A request whose shapes do not go together changes nothing for others.
Test(history, shapes_that_are_refused_leave_others_alone)
{
    struct inf_device *device;
    struct inf_model *model = make_model(MASKED, &device);
    for (int64_t wrong = 3; wrong < 3 + 2 * INF_HISTORY_REFUSALS_MAX; wrong++) {
        const struct inf_shape shapes[] = {INF_SHAPE(1, 2, SIZE), INF_SHAPE(1, 0, SIZE),
                                           INF_SHAPE(1, wrong)};
        for (int again = 0; again < 2; again++)
            cr_assert_eq(try_history(model, device, shapes), INF_UNSUPPORTED);
    }
    run_step(model, device, MASKED, 3, 2);
    inf_model_unref(&model);
    inf_device_unref(&device);
}

// How many allocations of tensors succeed before one fails; negative: none fails.
static int allocations_left = -1;

// Replaces the function of the C library in this program.
int posix_memalign(void **memory, size_t alignment, size_t size)
{
    if (allocations_left >= 0 && allocations_left-- == 0)
        return ENOMEM;
    *memory = aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
    return *memory != NULL ? 0 : ENOMEM;
}

// Memory may be free later, so the lack of it must not be remembered as a refusal.
Test(history, lack_of_memory_is_no_refusal)
{
    struct inf_device *device;
    struct inf_model *model = make_model(CAUSAL, &device);
    const struct inf_shape shapes[] = {INF_SHAPE(1, 2, SIZE), INF_SHAPE(1, 0, SIZE)};
    const struct inf_run_options options = {.precision = INF_PRECISION_FP32};
    int failures = 0;
    for (int i = 0;; i++) {
        struct inf_executable *executable = NULL;
        allocations_left = i;
        enum inf_code code = inf_model_acquire_history(model, device, &options, shapes, one_session,
                                                       &executable, NULL);
        bool none_failed = allocations_left >= 0;
        allocations_left = -1;
        if (code == INF_OK)
            inf_model_release(model, &executable);
        if (none_failed || code == INF_OK)
            break;
        cr_assert_eq(code, INF_EXHAUSTED, "allocation %d: code %d", i, (int)code);
        failures++;
    }
    cr_expect_gt(failures, 0);
    run_step(model, device, CAUSAL, 3, 2);
    inf_model_unref(&model);
    inf_device_unref(&device);
}

// If lack of memory counted as "no history", the model would copy its history at each step until it
// is loaded again.
Test(history, lack_of_memory_while_a_history_is_sought_is_reported)
{
    struct inf_graph *graph = make_graph(CAUSAL);
    struct inf_history history;
    bool found = false;
    int failures = 0;
    for (int i = 0; !found; i++) {
        struct inf_error err = {0};
        allocations_left = i;
        enum inf_code code = inf_history_find(graph, inf_ref_evaluator(), &history, &found, &err);
        bool none_failed = allocations_left >= 0;
        allocations_left = -1;
        if (none_failed) {
            cr_assert_eq(code, INF_OK, "%s", err.text);
            cr_assert(found);
            break;
        }
        cr_assert_eq(code, INF_EXHAUSTED, "allocation %d: code %d", i, (int)code);
        cr_assert_eq(err.reason, INF_REASON_HOST_OOM);
        cr_assert_not(found);
        failures++;
    }
    cr_expect_gt(failures, 0);
    inf_graph_destroy(&graph);
}

static int compilations;

static enum inf_code refuse_program(struct inf_program **out_program, struct inf_device *device,
                                    const struct inf_segment *segment, uint32_t flags,
                                    struct inf_error *err)
{
    (void)out_program;
    (void)device;
    (void)segment;
    (void)flags;
    compilations++;
    return inf_fail(err, INF_INVALID, "a program for tests");
}

// Without a refusal, each step of a session would compile the graph again.
Test(history, a_graph_that_does_not_compile_is_tried_once)
{
    struct inf_device *device;
    struct inf_model *model = make_model(CAUSAL, &device);
    const struct inf_shape shapes[] = {INF_SHAPE(1, 2, SIZE), INF_SHAPE(1, 0, SIZE)};
    const struct inf_backend *backend = device->backend;
    struct inf_backend refusing = *backend;
    refusing.compile = refuse_program;
    device->backend = &refusing;
    cr_expect_eq(try_history(model, device, shapes), INF_INVALID);
    cr_expect_eq(compilations, 1);
    cr_expect_eq(try_history(model, device, shapes), INF_UNSUPPORTED);
    cr_expect_eq(compilations, 1);
    device->backend = backend;
    inf_model_unref(&model);
    inf_device_unref(&device);
}
