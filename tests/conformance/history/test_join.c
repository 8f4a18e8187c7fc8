// SPDX-License-Identifier: Apache-2.0
// Steps of several sessions in one run, on ref and on cpu: each session has the result that it has
// alone, whatever the lengths of the histories, and the weights are in the graph once.
#include <criterion/criterion.h>
#include <math.h>
#include <poll.h>
#include <string.h>

#include "backends/cpu/cpu.h"
#include "backends/exec/model/model.h"
#include "backends/exec/model/shape_class.h"
#include "backends/graph/history/history.h"
#include "backends/graph/history/join.h"
#include "backends/ref/ref.h"
#include "tests/conformance/history/history_graph.h"

#define SIZE     5  // channels of a row
#define INNER    7  // channels between the last two products
#define ROOM     16 // rows of each buffer
#define ROWS_MAX 3  // new rows of a step
#define SESSIONS INF_HISTORY_SESSIONS_MAX

// What the model has besides what all of them have.
enum variant {
    PLAIN,
    BATCH_SCALED, // a constant with more than one item along axis 0 is added to rows
    TWO_ITEMS,    // the same, added to a product with as many items, and their mean too
    ROW_NORMS,    // rows are normalised over axis 0 too, which must stay in each session
    FLAT,         // the products have operands of rank 2
    TRANSPOSED,   // a product has its rows along the last axis of its operand
    VARIANTS,
    WITHOUT_WEIGHTS = VARIANTS, // no product has constant weights
    MATRIX_PER_ITEM,            // weights have an axis before those of the matrix
};

static float make_noise(uint32_t seed, uint32_t index)
{
    return sinf((float)(seed * 37 + index) * 0.731f) * 0.8f;
}

static uint32_t add_weights(struct inf_builder *b, struct inf_shape shape, uint32_t seed)
{
    float *elements;
    uint32_t value = inf_build_const(b, INF_DTYPE_F32, &shape, &elements);
    cr_assert_eq(b->code, INF_OK);
    for (uint32_t i = 0; i < inf_shape_elements(&shape); i++)
        elements[i] = make_noise(seed, i);
    return value;
}

static uint32_t add_norm(struct inf_builder *b, uint32_t x, struct inf_ints axes)
{
    struct inf_build_node node = inf_build_describe(INF_OP_NORMALIZE, x, INF_VALUE_NONE, 0);
    node.input_count = 1;
    node.attrs.normalize.axes = axes;
    node.attrs.normalize.epsilon = 1e-3f;
    return inf_build_value(b, &node);
}

static uint32_t add_product(struct inf_builder *b, enum variant variant, uint32_t x,
                            struct inf_shape shape, uint32_t seed)
{
    if (variant == WITHOUT_WEIGHTS)
        return x;
    if (variant == MATRIX_PER_ITEM)
        shape = INF_SHAPE(1, shape.dims[0], shape.dims[1]);
    return inf_build_matmul(b, x, add_weights(b, shape, seed));
}

// Adds a product of x [1, n, SIZE], read as [SIZE, n] and transposed: the rows are along its last
// axis. The result is [1, n, INNER].
static uint32_t add_transposed_product(struct inf_builder *b, uint32_t x)
{
    uint32_t columns = inf_build_reshape(b, x, (int64_t[]){SIZE, -1}, 2);
    struct inf_build_node product = inf_build_describe(
        INF_OP_MATMUL, columns, add_weights(b, INF_SHAPE(SIZE, INNER), 3), INF_VALUE_NONE);
    product.attrs.matmul.transpose_a = true;
    return inf_build_reshape(b, inf_build_value(b, &product), (int64_t[]){1, -1, INNER}, 3);
}

// Makes the graph x [1, n, SIZE], past [1, length, SIZE] -> y [1, n, SIZE], rows [1, length + n,
// SIZE]: a product, attention over the rows so far, and two products behind it.
static struct inf_graph *make_graph(enum variant variant)
{
    struct inf_error err;
    struct inf_builder b = begin_graph(&err);
    uint32_t x = add_input(&b, "x", INF_SHAPE(1, INF_DIM_UNKNOWN, SIZE));
    uint32_t past = add_input(&b, "past", INF_SHAPE(1, INF_DIM_UNKNOWN, SIZE));
    uint32_t hidden = x;
    if (variant == FLAT)
        hidden = inf_build_reshape(&b, hidden, (int64_t[]){-1, SIZE}, 2);
    hidden = add_product(&b, variant, hidden, INF_SHAPE(SIZE, SIZE), 1);
    hidden = inf_build_add(&b, hidden, add_weights(&b, INF_SHAPE(SIZE), 2));
    if (variant == FLAT)
        hidden = inf_build_reshape(&b, hidden, (int64_t[]){1, -1, SIZE}, 3);
    if (variant == ROW_NORMS)
        hidden = add_norm(&b, hidden, (struct inf_ints){.count = 2, .values = {-3, 2}});
    else
        hidden = add_norm(&b, hidden, (struct inf_ints){.count = 1, .values = {-1}});
    uint32_t all = inf_build_concat(&b, (uint32_t[]){past, hidden}, 2, 1);
    uint32_t scores = inf_build_softmax(&b, add_scores(&b, hidden, all), -1, false);
    uint32_t y = inf_build_add(&b, inf_build_matmul(&b, scores, all), hidden);
    if (variant == TWO_ITEMS)
        y = inf_build_concat(&b, (uint32_t[]){y, y}, 2, 0);
    if (variant == TRANSPOSED)
        y = add_transposed_product(&b, y);
    else
        y = add_product(&b, variant, y, INF_SHAPE(SIZE, INNER), 3);
    y = inf_build_unary(&b, INF_UNARY_TANH, y);
    if (variant == BATCH_SCALED || variant == TWO_ITEMS) {
        const struct inf_ints first = {.count = 1, .values = {0}};
        if (variant == TWO_ITEMS)
            y = inf_build_add(&b, y, inf_build_reduce(&b, INF_REDUCE_MEAN, y, &first, true));
        y = inf_build_add(&b, y, add_weights(&b, INF_SHAPE(2, 1, INNER), 4));
        y = inf_build_reduce(&b, INF_REDUCE_SUM, y, &first, true);
    }
    if (variant != WITHOUT_WEIGHTS)
        y = add_product(&b, variant, y, INF_SHAPE(INNER, SIZE), 5);
    return end_graph(&b, y, all);
}

struct fixture {
    struct inf_device *devices[2]; // the tested device, and ref
    struct inf_model *model;
};

static struct fixture open_model(const struct inf_backend *backend, enum variant variant)
{
    struct fixture f = {{NULL}, NULL};
    struct inf_error err;
    struct inf_graph *graph = make_graph(variant);
    const struct inf_device_options device_options = {.slots = 1, .threads = 2};
    const struct inf_pass_options options = {.evaluator = inf_ref_evaluator()};
    bool is_ref = backend == &inf_ref_backend;
    cr_assert_eq(inf_device_open(&f.devices[0], backend, 0, &device_options, NULL), INF_OK);
    if (is_ref)
        f.devices[1] = inf_device_ref(f.devices[0]);
    else
        cr_assert_eq(inf_device_open(&f.devices[1], &inf_ref_backend, 0, &device_options, NULL),
                     INF_OK);
    cr_assert_eq(inf_model_create(&f.model, &graph, f.devices, is_ref ? 1 : 2, &options, &err),
                 INF_OK, "%s", err.text);
    return f;
}

static void close_model(struct fixture *f)
{
    inf_model_unref(&f->model);
    inf_device_unref(&f->devices[0]);
    inf_device_unref(&f->devices[1]);
}

static enum inf_code acquire_steps(const struct fixture *f, int64_t rows, uint32_t sessions,
                                   struct inf_executable **executable)
{
    const struct inf_run_options options = {.precision = INF_PRECISION_FP32};
    const struct inf_shape shapes[] = {INF_SHAPE(1, rows, SIZE), INF_SHAPE(1, 0, SIZE)};
    *executable = NULL;
    return inf_model_acquire_history(f->model, f->devices[0], &options, shapes,
                                     (struct inf_history_buffers){ROOM, sessions}, executable,
                                     NULL);
}

// The memory of one session.
struct session {
    float x[ROWS_MAX * SIZE + 16], buffer[ROOM * SIZE + 16], y[ROWS_MAX * SIZE];
    int32_t length;
};

static void fill_session(struct session *session, uint32_t seed, int32_t length)
{
    *session = (struct session){.length = length};
    for (uint32_t i = 0; i < ROWS_MAX * SIZE; i++)
        session->x[i] = make_noise(seed, i);
    for (uint32_t i = 0; i < (uint32_t)length * SIZE; i++)
        session->buffer[i] = make_noise(seed + 50, i);
}

// Runs one step of each session in one run.
static void run_steps(struct inf_executable *executable, struct session *const *sessions,
                      uint32_t count)
{
    const void *inputs[3 * SESSIONS];
    void *outputs[2 * SESSIONS];
    struct inf_error err;
    for (uint32_t s = 0; s < count; s++) {
        inputs[3 * s] = sessions[s]->x;
        inputs[3 * s + 1] = sessions[s]->buffer;
        inputs[3 * s + 2] = &sessions[s]->length;
        outputs[2 * s] = sessions[s]->y;
        outputs[2 * s + 1] = NULL;
    }
    const struct inf_execution execution = {.inputs = inputs, .outputs = outputs};
    cr_assert_eq(inf_executable_run(executable, &execution, &err), INF_OK, "%s", err.text);
}

// ref adds the elements of each row in the same order whatever the number of rows.
static void expect_near(const struct inf_backend *backend, const float *got, const float *wanted,
                        uint32_t count)
{
    double tolerance = backend == &inf_ref_backend ? 0 : 1e-5;
    for (uint32_t i = 0; i < count; i++)
        cr_assert_float_eq((double)got[i], (double)wanted[i], tolerance, "%u: %g, %g", i,
                           (double)got[i], (double)wanted[i]);
}

static void check_count(const struct inf_backend *backend, enum variant variant, int64_t rows,
                        uint32_t count)
{
    struct fixture f = open_model(backend, variant);
    struct session joined[SESSIONS], alone[SESSIONS], *pointers[SESSIONS];
    struct inf_executable *one, *all;
    cr_assert_eq(acquire_steps(&f, rows, 1, &one), INF_OK);
    cr_assert_eq(acquire_steps(&f, rows, count, &all), INF_OK);
    cr_assert_neq(one, all);
    cr_assert_eq(inf_executable_new_rows(all), rows);
    for (uint32_t s = 0; s < count; s++) {
        int32_t length = (int32_t)(s * 5 % (ROOM - (uint32_t)rows + 1));
        fill_session(&joined[s], s, length);
        fill_session(&alone[s], s, length);
        pointers[s] = &alone[s];
        run_steps(one, &pointers[s], 1);
        pointers[s] = &joined[s];
    }
    run_steps(all, pointers, count);
    for (uint32_t s = 0; s < count; s++) {
        expect_near(backend, joined[s].y, alone[s].y, (uint32_t)rows * SIZE);
        expect_near(backend, joined[s].buffer, alone[s].buffer, ROOM * SIZE);
    }
    inf_model_release(f.model, &one);
    inf_model_release(f.model, &all);
    close_model(&f);
}

Test(join, each_session_has_the_result_that_it_has_alone)
{
    const struct inf_backend *const backends[] = {&inf_ref_backend, &inf_cpu_backend};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(backends); i++)
        for (enum variant variant = PLAIN; variant < VARIANTS; variant++)
            for (int64_t rows = 1; rows <= ROWS_MAX; rows++)
                for (uint32_t count = 2; count <= SESSIONS; count += 3)
                    check_count(backends[i], variant, rows, count);
}

Test(join, a_session_may_fill_the_place_of_another_one)
{
    struct fixture f = open_model(&inf_cpu_backend, PLAIN);
    struct session joined[2], alone[2];
    struct inf_executable *one, *all;
    cr_assert_eq(acquire_steps(&f, 1, 1, &one), INF_OK);
    cr_assert_eq(acquire_steps(&f, 1, 4, &all), INF_OK);
    for (uint32_t s = 0; s < 2; s++) {
        fill_session(&joined[s], s, 3);
        fill_session(&alone[s], s, 3);
        run_steps(one, (struct session *[]){&alone[s]}, 1);
    }
    run_steps(all, (struct session *[]){&joined[0], &joined[1], &joined[0], &joined[0]}, 4);
    for (uint32_t s = 0; s < 2; s++) {
        expect_near(&inf_cpu_backend, joined[s].y, alone[s].y, SIZE);
        expect_near(&inf_cpu_backend, joined[s].buffer, alone[s].buffer, ROOM * SIZE);
    }
    inf_model_release(f.model, &one);
    inf_model_release(f.model, &all);
    close_model(&f);
}

static uint32_t count_nodes(const struct inf_graph *graph, enum inf_op op, bool constant)
{
    uint32_t count = 0;
    for (uint32_t n = 0; n < graph->node_count; n++)
        count += graph->nodes[n].op == op &&
                 (op != INF_OP_MATMUL ||
                  (graph->values[graph->nodes[n].inputs[1]].data != NULL) == constant);
    return count;
}

Test(join, weights_are_read_once_and_each_history_by_its_own_session)
{
    struct fixture f = open_model(&inf_ref_backend, PLAIN);
    struct inf_executable *all;
    cr_assert_eq(acquire_steps(&f, 1, 4, &all), INF_OK);
    const struct inf_graph *graph = inf_executable_graph(all);
    cr_expect_eq(count_nodes(graph, INF_OP_MATMUL, true), 3);
    cr_expect_eq(count_nodes(graph, INF_OP_MATMUL, false), 2 * 4);
    cr_expect_eq(count_nodes(graph, INF_OP_APPEND, false), 4);
    // What lies between two products has the rows of all sessions.
    cr_expect_eq(count_nodes(graph, INF_OP_NORMALIZE, false), 1);
    inf_model_release(f.model, &all);
    close_model(&f);
}

Test(join, a_norm_over_all_rows_stays_in_its_session)
{
    struct fixture f = open_model(&inf_ref_backend, ROW_NORMS);
    struct inf_executable *all;
    cr_assert_eq(acquire_steps(&f, 1, 4, &all), INF_OK);
    cr_expect_eq(count_nodes(inf_executable_graph(all), INF_OP_NORMALIZE, false), 4);
    inf_model_release(f.model, &all);
    close_model(&f);
}

Test(join, models_without_shared_weights_are_refused)
{
    for (enum variant variant = WITHOUT_WEIGHTS; variant <= MATRIX_PER_ITEM; variant++) {
        struct fixture f = open_model(&inf_ref_backend, variant);
        struct inf_executable *executable;
        cr_assert_eq(acquire_steps(&f, 1, 1, &executable), INF_OK, "variant %d", (int)variant);
        inf_model_release(f.model, &executable);
        const struct inf_run_options options = {.precision = INF_PRECISION_FP32};
        const struct inf_shape shapes[] = {INF_SHAPE(1, 1, SIZE), INF_SHAPE(1, 0, SIZE)};
        const struct inf_history_buffers two = {ROOM, 2};
        struct inf_error err = {0};
        cr_expect_eq(inf_model_acquire_history(f.model, f.devices[0], &options, shapes, two,
                                               &executable, &err),
                     INF_UNSUPPORTED, "variant %d", (int)variant);
        const char *reason = variant == WITHOUT_WEIGHTS ? "no product has constant weights"
                                                        : "does not multiply row by row";
        cr_expect(strstr(err.text, reason) != NULL, "variant %d: %s", (int)variant, err.text);
        cr_expect_eq(acquire_steps(&f, 1, 2, &executable), INF_UNSUPPORTED, "again");
        // One session still can.
        cr_assert_eq(acquire_steps(&f, 1, 1, &executable), INF_OK);
        inf_model_release(f.model, &executable);
        close_model(&f);
    }
}

static enum inf_code find_steps(const struct fixture *f, uint32_t sessions,
                                struct inf_executable **executable)
{
    const struct inf_run_options options = {.precision = INF_PRECISION_FP32};
    const struct inf_shape shapes[] = {INF_SHAPE(1, 1, SIZE), INF_SHAPE(1, 0, SIZE)};
    return inf_model_find_joined(f->model, f->devices[0], &options, shapes,
                                 (struct inf_history_buffers){ROOM, sessions}, executable);
}

Test(join, an_executable_is_found_if_it_is_compiled)
{
    struct fixture f = open_model(&inf_ref_backend, PLAIN);
    struct inf_executable *found, *made;
    cr_expect_eq(find_steps(&f, 2, &found), INF_NOT_FOUND);
    cr_expect_null(found);
    cr_assert_eq(acquire_steps(&f, 1, 2, &made), INF_OK);
    cr_assert_eq(find_steps(&f, 2, &found), INF_OK);
    cr_expect_eq(found, made);
    inf_model_release(f.model, &found);
    cr_expect_eq(find_steps(&f, 4, &found), INF_NOT_FOUND, "another number");
    cr_expect_null(found);
    inf_model_release(f.model, &made);
    // An executable that a caller has found stays until the caller releases it.
    const struct inf_run_options options = {.precision = INF_PRECISION_FP32};
    const struct inf_shape shapes[] = {INF_SHAPE(1, 1, SIZE), INF_SHAPE(1, 0, SIZE)};
    const struct inf_history_buffers two = {ROOM, 2};
    cr_assert_eq(find_steps(&f, 2, &found), INF_OK);
    inf_model_drop_history(f.model, f.devices[0], &options, shapes, two);
    cr_expect_eq(inf_model_memory(f.model).executables, 1u);
    inf_model_release(f.model, &found);
    inf_model_drop_history(f.model, f.devices[0], &options, shapes, two);
    cr_expect_eq(inf_model_memory(f.model).executables, 0u);
    cr_expect_eq(find_steps(&f, 2, &found), INF_NOT_FOUND);
    close_model(&f);
    // After a refusal, the executable need not be compiled.
    f = open_model(&inf_ref_backend, WITHOUT_WEIGHTS);
    cr_expect_eq(find_steps(&f, 2, &found), INF_NOT_FOUND);
    cr_expect_eq(acquire_steps(&f, 1, 2, &made), INF_UNSUPPORTED);
    cr_expect_eq(find_steps(&f, 2, &found), INF_UNSUPPORTED);
    close_model(&f);
}

// A budget of one byte for buffers stands for the lack of memory.
Test(join, is_tried_again_later_if_memory_was_short)
{
    struct fixture f = open_model(&inf_ref_backend, PLAIN);
    struct inf_arena_budget budget;
    struct inf_executable *executable = NULL;
    const struct inf_run_options options = {.precision = INF_PRECISION_FP32, .user = 1};
    const struct inf_shape shapes[] = {INF_SHAPE(1, 1, SIZE), INF_SHAPE(1, 0, SIZE)};
    const struct inf_history_buffers buffers = {ROOM, 2};
    inf_arena_budget_init(&budget, 1);
    inf_model_set_arena_budget(f.model, &budget);
    cr_expect_eq(inf_model_acquire_history(f.model, f.devices[0], &options, shapes, buffers,
                                           &executable, NULL),
                 INF_EXHAUSTED);
    cr_expect_eq(find_steps(&f, 2, &executable), INF_UNSUPPORTED, "not at once");
    atomic_store(&budget.bytes_max, 1 << 20);
    enum inf_code code;
    while ((code = find_steps(&f, 2, &executable)) == INF_UNSUPPORTED)
        (void)poll(NULL, 0, 20);
    cr_expect_eq(code, INF_NOT_FOUND);
    cr_assert_eq(inf_model_acquire_history(f.model, f.devices[0], &options, shapes, buffers,
                                           &executable, NULL),
                 INF_OK);
    inf_model_release(f.model, &executable);
    close_model(&f);
    inf_arena_budget_fini(&budget);
}

Test(join, an_executable_for_several_sessions_can_be_dropped_alone)
{
    struct fixture f = open_model(&inf_ref_backend, PLAIN);
    struct inf_executable *one, *all;
    const struct inf_run_options options = {.precision = INF_PRECISION_FP32};
    const struct inf_shape shapes[] = {INF_SHAPE(1, 1, SIZE), INF_SHAPE(1, 0, SIZE)};
    const struct inf_history_buffers buffers = {ROOM, 4};
    cr_assert_eq(acquire_steps(&f, 1, 1, &one), INF_OK);
    inf_model_release(f.model, &one);
    cr_assert_eq(acquire_steps(&f, 1, 4, &all), INF_OK);
    inf_model_drop_history(f.model, f.devices[0], &options, shapes, buffers);
    cr_expect_eq(inf_model_memory(f.model).executables, 2u, "it is in use");
    inf_model_release(f.model, &all);
    inf_model_drop_history(f.model, f.devices[0], &options, shapes, buffers);
    cr_expect_eq(inf_model_memory(f.model).executables, 1u);
    close_model(&f);
}

// Executables for several sessions do not displace those for one.
Test(join, executables_for_several_sessions_are_counted_apart)
{
    struct fixture f = open_model(&inf_ref_backend, PLAIN);
    struct inf_executable *executable, *first;
    const struct inf_run_options options = {.precision = INF_PRECISION_FP32};
    const struct inf_shape shapes[] = {INF_SHAPE(1, 1, SIZE), INF_SHAPE(1, 0, SIZE)};
    cr_assert_eq(acquire_steps(&f, 1, 1, &first), INF_OK);
    inf_model_release(f.model, &first);
    for (uint32_t room = ROOM; room < ROOM + INF_JOINED_CLASSES_MAX + 3; room++) {
        cr_assert_eq(inf_model_acquire_history(f.model, f.devices[0], &options, shapes,
                                               (struct inf_history_buffers){room, 2}, &executable,
                                               NULL),
                     INF_OK);
        inf_model_release(f.model, &executable);
    }
    cr_expect_eq(inf_model_memory(f.model).executables, INF_JOINED_CLASSES_MAX + 1);
    close_model(&f);
}
