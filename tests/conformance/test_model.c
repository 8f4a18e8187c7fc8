// SPDX-License-Identifier: Apache-2.0
// Models, executables and the executable cache, run on the reference device `ref`.
#include <criterion/criterion.h>
#include <string.h>

#include "backends/base/thread.h"
#include "backends/device/backend.h"
#include "backends/exec/model/model.h"
#include "backends/exec/model/shape_class.h"
#include "backends/ref/ref.h"

static struct inf_device *open_ref(void)
{
    struct inf_device *ref;
    struct inf_device_options options = {.slots = 4};
    cr_assert_eq(inf_device_open(&ref, &inf_ref_backend, 0, &options, NULL), INF_OK);
    return ref;
}

static uint32_t add_node(struct inf_graph *graph, enum inf_op op, const uint32_t *inputs,
                         uint32_t count)
{
    uint32_t node;
    struct inf_error err;
    cr_assert_eq(
        inf_graph_add_node(graph, op, inf_op_info(op)->name, "", inputs, count, 1, &node, &err),
        INF_OK, "%s", err.text);
    return graph->nodes[node].outputs[0];
}

static enum inf_code support_nothing(struct inf_device *device, const struct inf_graph *graph,
                                     uint32_t node, struct inf_error *err)
{
    (void)device;
    (void)graph;
    (void)node;
    return inf_fail(err, INF_UNSUPPORTED, "choosy");
}

// Makes a model with sum [n,3] = x [n,3] + x; negated [n,3] = -sum; flat [n*3] = negated; again =
// x.
static struct inf_model *make_model_on(struct inf_device *const *hosts, uint32_t host_count)
{
    struct inf_graph *graph;
    cr_assert_eq(inf_graph_create(&graph, NULL), INF_OK);
    struct inf_shape shape = INF_SHAPE(INF_DIM_UNKNOWN, 3);
    uint32_t x;
    uint32_t flat_shape;
    cr_assert_eq(inf_graph_add_value(graph, "x", INF_DTYPE_F32, &shape, &x, NULL), INF_OK);
    cr_assert_eq(inf_graph_add_input(graph, "x", x, NULL), INF_OK);
    cr_assert_eq(inf_graph_add_const_i32(graph, "-1", &(int32_t){-1}, 1, &flat_shape, NULL),
                 INF_OK);
    uint32_t sum = add_node(graph, INF_OP_BINARY, (uint32_t[]){x, x}, 2);
    uint32_t negated = add_node(graph, INF_OP_UNARY, &sum, 1);
    uint32_t flat = add_node(graph, INF_OP_RESHAPE, (uint32_t[]){negated, flat_shape}, 2);
    cr_assert_eq(inf_graph_add_output(graph, "sum", sum, NULL), INF_OK);
    cr_assert_eq(inf_graph_add_output(graph, "flat", flat, NULL), INF_OK);
    cr_assert_eq(inf_graph_add_output(graph, "negated", negated, NULL), INF_OK);
    cr_assert_eq(inf_graph_add_output(graph, "again", x, NULL), INF_OK);
    struct inf_model *model;
    struct inf_error err;
    struct inf_pass_options options = {.evaluator = inf_ref_evaluator()};
    cr_assert_eq(inf_model_create(&model, &graph, hosts, host_count, &options, &err), INF_OK, "%s",
                 err.text);
    cr_assert_null(graph);
    return model;
}

static struct inf_model *make_model(struct inf_device *ref)
{
    return make_model_on(&ref, 1);
}

static struct inf_executable *acquire_executable(struct inf_model *model, struct inf_device *device,
                                                 int64_t rows)
{
    struct inf_executable *executable = NULL;
    struct inf_shape shape = INF_SHAPE(rows, 3);
    struct inf_error err;
    cr_assert_eq(inf_model_acquire(model, device, &shape, &executable, &err), INF_OK, "%s",
                 err.text);
    return executable;
}

Test(model, falls_to_the_best_host_behind_its_device)
{
    static struct inf_backend choosy_backend;
    struct inf_device *hosts[] = {open_ref(), open_ref()};
    struct inf_device *choosy;
    choosy_backend = inf_ref_backend;
    choosy_backend.supports = support_nothing;
    const struct inf_device_options options = {.slots = 4};
    cr_assert_eq(inf_device_open(&choosy, &choosy_backend, 0, &options, NULL), INF_OK);
    struct inf_model *model = make_model_on(hosts, 2);
    struct inf_device *devices[] = {choosy, hosts[0], hosts[1]};
    for (int i = 0; i < 3; i++) {
        struct inf_executable *executable = acquire_executable(model, devices[i], 2);
        const struct inf_plan *plan = inf_executable_plan(executable);
        struct inf_device *wanted = i == 0 ? hosts[0] : devices[i];
        cr_assert_eq(plan->segment_count, 1u);
        cr_assert_eq(inf_executable_device(executable, plan->segments[0].device),
                     inf_device_info(wanted), "device %d", i);
        inf_model_release(model, &executable);
    }
    inf_model_unref(&model);
    for (int i = 0; i < 3; i++)
        inf_device_unref(&devices[i]);
}

Test(model, answers_for_every_shape_and_every_wanted_output)
{
    struct inf_device *ref = open_ref();
    struct inf_model *model = make_model(ref);
    for (int64_t rows = 1; rows <= 3; rows++) {
        struct inf_executable *executable = acquire_executable(model, ref, rows);
        float x[9 + 16] = {1, 2, 3, -4, 5, 6, 7, 8, 9};
        float outputs[4][9 + 16];
        memset(outputs, 0x55, sizeof outputs);
        for (int wanted = 0; wanted < 16; wanted++) {
            void *pointers[4];
            for (int i = 0; i < 4; i++)
                pointers[i] = wanted >> i & 1 ? outputs[i] : NULL;
            struct inf_execution execution = {.inputs = (const void *[]){x}, .outputs = pointers};
            cr_assert_eq(inf_executable_run(executable, &execution, NULL), INF_OK);
            for (int64_t i = 0; i < rows * 3; i++) {
                cr_assert(!(wanted & 1) || outputs[0][i] == 2 * x[i]);
                cr_assert(!(wanted & 2) || outputs[1][i] == -2 * x[i]);
                cr_assert(!(wanted & 4) || outputs[2][i] == -2 * x[i]);
                cr_assert(!(wanted & 8) || outputs[3][i] == x[i]);
            }
        }
        inf_model_release(model, &executable);
        cr_assert_null(executable);
    }
    inf_model_unref(&model);
    inf_device_unref(&ref);
}

Test(model, compiles_a_shape_class_once_and_forgets_the_oldest)
{
    struct inf_device *ref = open_ref();
    struct inf_model *model = make_model(ref);
    struct inf_executable *first = acquire_executable(model, ref, 1);
    struct inf_executable *same = acquire_executable(model, ref, 1);
    cr_assert_eq(first, same);
    inf_model_release(model, &same);
    for (int64_t rows = 2; rows < 40; rows++) {
        struct inf_executable *other = acquire_executable(model, ref, rows);
        cr_assert_neq(other, first);
        inf_model_release(model, &other);
    }
    cr_assert_eq(inf_model_memory(model).executables, (uint32_t)INF_SHAPE_CLASSES_MAX);
    same = acquire_executable(model, ref, 1);
    cr_assert_eq(first, same, "what is held is never forgotten");
    inf_model_release(model, &first);
    inf_model_release(model, &same);
    inf_model_unref(&model);
    inf_device_unref(&ref);
}

// Makes an executable for a request of a user, and releases it.
static enum inf_code make_for_user(struct inf_model *model, struct inf_device *device, int64_t rows,
                                   uint64_t user)
{
    struct inf_executable *executable = NULL;
    struct inf_shape shape = INF_SHAPE(rows, 3);
    const struct inf_run_options options = {.user = user};
    struct inf_error err;
    enum inf_code code = inf_model_acquire_with(model, device, &options, &shape, &executable, &err);
    inf_model_release(model, &executable);
    return code;
}

Test(model, frees_the_oldest_executables_of_a_user_over_all_models)
{
    enum {
        ROWS = 1 << 16
    };
    struct inf_arena_budget budget;
    struct inf_device *ref = open_ref();
    struct inf_model *models[] = {make_model(ref), make_model(ref)};
    inf_arena_budget_init(&budget, 0);
    for (int i = 0; i < 2; i++)
        inf_model_set_arena_budget(models[i], &budget);
    // The budget does not apply to an executable that the daemon makes for itself.
    struct inf_executable *own = acquire_executable(models[0], ref, 2 * ROWS);
    inf_model_release(models[0], &own);
    cr_assert_eq(make_for_user(models[0], ref, ROWS, 1), INF_OK);
    uint64_t each = budget.entries->bytes;
    cr_assert_gt(each, 0);
    // The budget has room for two executables of this size, but not for one of four times this
    // size.
    atomic_store(&budget.bytes_max, 2 * each + each / 2);
    cr_assert_eq(make_for_user(models[1], ref, ROWS, 1), INF_OK);
    cr_assert_eq(make_for_user(models[0], ref, ROWS, 2), INF_OK, "another user has it already");
    cr_assert_eq(inf_model_memory(models[0]).executables, 2u);
    cr_assert_eq(make_for_user(models[1], ref, ROWS + 1, 1), INF_OK);
    cr_expect_eq(inf_model_memory(models[1]).executables, 1u, "the oldest of the user is gone");
    cr_expect_eq(inf_model_memory(models[0]).executables, 2u, "it was used later");
    cr_expect_eq(make_for_user(models[0], ref, 4 * ROWS, 1), INF_EXHAUSTED);
    cr_expect_eq(make_for_user(models[0], ref, 2 * ROWS, 1), INF_OK, "the daemon made it");
    for (int i = 0; i < 2; i++)
        inf_model_unref(&models[i]);
    inf_arena_budget_fini(&budget);
    inf_device_unref(&ref);
}

Test(model, refuses_shapes_that_do_not_fit)
{
    struct inf_device *ref = open_ref();
    struct inf_model *model = make_model(ref);
    static const struct inf_shape wrong[] = {
        {.rank = 2, .dims = {1, 4}}, {.rank = 1, .dims = {3}}, {.rank = 2, .dims = {-1, 3}}};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(wrong); i++) {
        struct inf_executable *executable = NULL;
        struct inf_error err = {0};
        cr_assert_eq(inf_model_acquire(model, ref, &wrong[i], &executable, &err), INF_INVALID);
        cr_assert_eq(err.reason, INF_REASON_SHAPE_MISMATCH);
        cr_assert(strstr(err.text, "x") != NULL, "%s", err.text);
    }
    cr_assert_eq(inf_model_memory(model).executables, 0u);
    inf_model_unref(&model);
    inf_device_unref(&ref);
}

Test(model, stops_when_cancelled)
{
    struct inf_device *ref = open_ref();
    struct inf_model *model = make_model(ref);
    struct inf_executable *executable = acquire_executable(model, ref, 1);
    atomic_bool cancelled = true;
    float x[3 + 16] = {0};
    struct inf_execution execution = {.inputs = (const void *[]){x},
                                      .outputs = (void *[]){NULL, NULL, NULL, NULL},
                                      .cancelled = &cancelled};
    cr_assert_eq(inf_executable_run(executable, &execution, NULL), INF_CANCELLED);
    inf_model_release(model, &executable);
    inf_model_unref(&model);
    inf_device_unref(&ref);
}

// The arguments of one thread of the next test, which shares a model between threads.
struct user {
    struct inf_model *model;
    struct inf_device *device;
    uint32_t slot;
    bool right;
    struct inf_thread thread;
};

static void use_model(void *raw)
{
    struct user *user = raw;
    user->right = true;
    for (int round = 0; round < 200; round++) {
        int64_t rows = 1 + round % 12;
        struct inf_shape shape = INF_SHAPE(rows, 3);
        struct inf_executable *executable;
        float x[36 + 16];
        float sum[36 + 16];
        for (int i = 0; i < 36; i++)
            x[i] = (float)(i + round * (int)(user->slot + 1));
        struct inf_execution execution = {.inputs = (const void *[]){x},
                                          .outputs = (void *[]){sum, NULL, NULL, NULL},
                                          .slot = user->slot};
        user->right &=
            inf_model_acquire(user->model, user->device, &shape, &executable, NULL) == INF_OK;
        user->right &= inf_executable_run(executable, &execution, NULL) == INF_OK;
        inf_model_release(user->model, &executable);
        for (int64_t i = 0; i < rows * 3; i++)
            user->right &= sum[i] == 2 * x[i];
    }
}

Test(model, slots_run_at_once_without_meeting)
{
    struct inf_device *ref = open_ref();
    struct inf_model *model = make_model(ref);
    struct user users[4];
    for (uint32_t i = 0; i < 4; i++) {
        users[i] = (struct user){.model = model, .device = ref, .slot = i};
        cr_assert_eq(inf_thread_start(&users[i].thread, "user", use_model, &users[i], NULL),
                     INF_OK);
    }
    for (uint32_t i = 0; i < 4; i++) {
        inf_thread_join(&users[i].thread);
        cr_assert(users[i].right, "thread %u", i);
    }
    inf_model_unref(&model);
    inf_device_unref(&ref);
}

// Makes a model of y = x + x whose x has this shape, and acquires the executable for an x of [2,3].
// Returns true if the executable runs the graph of the model, not a copy.
static bool shares_graph(struct inf_device *ref, struct inf_shape shape)
{
    struct inf_graph *graph;
    uint32_t x;
    cr_assert_eq(inf_graph_create(&graph, NULL), INF_OK);
    cr_assert_eq(inf_graph_add_value(graph, "x", INF_DTYPE_F32, &shape, &x, NULL), INF_OK);
    cr_assert_eq(inf_graph_add_input(graph, "x", x, NULL), INF_OK);
    uint32_t y = add_node(graph, INF_OP_BINARY, (uint32_t[]){x, x}, 2);
    cr_assert_eq(inf_graph_add_output(graph, "y", y, NULL), INF_OK);
    struct inf_model *model;
    struct inf_pass_options options = {.evaluator = inf_ref_evaluator()};
    cr_assert_eq(inf_model_create(&model, &graph, &ref, 1, &options, NULL), INF_OK);
    struct inf_executable *executable = acquire_executable(model, ref, 2);
    const float numbers[6] = {1, 2, 3, 4, 5, 6};
    float sums[6];
    const struct inf_execution execution = {.inputs = (const void *[]){numbers},
                                            .outputs = (void *[]){sums}};
    cr_assert_eq(inf_executable_run(executable, &execution, NULL), INF_OK);
    for (int i = 0; i < 6; i++)
        cr_expect_eq(sums[i], 2 * numbers[i]);
    bool shared = inf_executable_graph(executable) == inf_model_graph(model);
    inf_model_release(model, &executable);
    inf_model_unref(&model);
    return shared;
}

Test(model, has_its_graph_once_if_all_shapes_are_in_the_file)
{
    struct inf_device *ref = open_ref();
    cr_expect(shares_graph(ref, INF_SHAPE(2, 3)));
    cr_expect_not(shares_graph(ref, INF_SHAPE(INF_DIM_UNKNOWN, 3)));
    inf_device_unref(&ref);
}
