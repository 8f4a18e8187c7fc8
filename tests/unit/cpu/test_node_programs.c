// SPDX-License-Identifier: Apache-2.0
// Nodes whose shapes are known only at run time, computed by programs of the cpu device. Covers a
// new shape in every run, more shapes than programs are kept for, and nodes without a program.
#include <criterion/criterion.h>
#include <string.h>

#include "backends/cpu/cpu.h"
#include "backends/exec/constants.h"
#include "backends/exec/dynamic/node_programs.h"
#include "backends/ref/ref.h"

#define DEPTH   24
#define COLUMNS 48
#define ROWS    700

static struct inf_device *devices[2]; // the cpu device and `ref`
static struct inf_graph *source, *frame;
static struct inf_blob *x, *y;
static struct inf_node_programs *programs;

// Makes a product of x [rows, 1, 1, DEPTH], or [rows, DEPTH], with a matrix. Each column of the
// matrix repeats one number.
static void make_source(enum inf_op op)
{
    uint32_t inputs[2], node;
    bool conv = op == INF_OP_CONV2D;
    cr_assert_eq(inf_device_open(&devices[0], &inf_cpu_backend, 0, NULL, NULL), INF_OK);
    cr_assert_eq(inf_device_open(&devices[1], &inf_ref_backend, 0, NULL, NULL), INF_OK);
    cr_assert_eq(inf_graph_create(&source, NULL), INF_OK);
    struct inf_shape any =
        conv ? INF_SHAPE(INF_DIM_UNKNOWN, 1, 1, DEPTH) : INF_SHAPE(INF_DIM_UNKNOWN, DEPTH);
    struct inf_shape matrix = conv ? INF_SHAPE(1, 1, DEPTH, COLUMNS) : INF_SHAPE(DEPTH, COLUMNS);
    struct inf_blob *w = inf_blob_create(DEPTH * COLUMNS * sizeof(float));
    for (size_t i = 0; i < DEPTH * COLUMNS; i++)
        ((float *)w->data)[i] = (float)(i % COLUMNS);
    cr_assert_eq(inf_graph_add_value(source, "x", INF_DTYPE_F32, &any, &inputs[0], NULL), INF_OK);
    cr_assert_eq(inf_graph_add_const(source, "w", INF_DTYPE_F32, &matrix, w, &inputs[1], NULL),
                 INF_OK);
    cr_assert_eq(inf_graph_add_node(source, op, "n", "", inputs, 2, 1, &node, NULL), INF_OK);
    if (conv) {
        source->nodes[0].attrs.conv2d.activation = INF_ACTIVATION_CLIP;
        source->nodes[0].attrs.conv2d.activation_min = 100;
        source->nodes[0].attrs.conv2d.activation_max = 1000;
    }
    x = inf_blob_create(ROWS * DEPTH * sizeof(float));
    y = inf_blob_create(ROWS * COLUMNS * sizeof(float));
    for (size_t i = 0; i < ROWS * DEPTH; i++)
        ((float *)x->data)[i] = (float)(i / DEPTH % 5);
}

// Creates the programs for the source's node, with two slots (concurrent runs). If `packed`, the
// matrix is packed for the programs.
static void create_programs(bool packed)
{
    cr_assert_eq(inf_node_programs_create(&programs, devices, 2, 2, packed ? source : NULL, NULL),
                 INF_OK);
    cr_assert_not_null(programs);
    cr_assert_eq(inf_graph_clone(&frame, source, NULL), INF_OK);
}

static void begin_with(enum inf_op op)
{
    make_source(op);
    create_programs(false);
}

static void destroy_programs(void)
{
    frame->values[frame->nodes[0].inputs[0]].data = NULL;
    inf_node_programs_destroy(&programs);
    inf_graph_destroy(&source);
    inf_graph_destroy(&frame);
    inf_blob_unref(&x);
    inf_blob_unref(&y);
    inf_device_unref(&devices[0]);
    inf_device_unref(&devices[1]);
}

TestSuite(node_programs, .fini = destroy_programs, .timeout = 60);

static bool run_in(uint32_t slot, int64_t rows)
{
    struct inf_value *of_x = &frame->values[frame->nodes[0].inputs[0]];
    struct inf_value *of_y = &frame->values[frame->nodes[0].outputs[0]];
    bool conv = frame->nodes[0].op == INF_OP_CONV2D, done;
    struct inf_error err = {0};
    of_x->shape.dims[0] = rows;
    of_x->data = x;
    of_y->dtype = INF_DTYPE_F32;
    of_y->shape = conv ? INF_SHAPE(rows, 1, 1, COLUMNS) : INF_SHAPE(rows, COLUMNS);
    memset(y->data, 0, ROWS * COLUMNS * sizeof(float));
    const struct inf_node_run one = {.graph = frame, .source = source, .slot = slot, .outputs = &y};
    cr_assert_eq(inf_node_programs_run(programs, &one, &done, &err), INF_OK, "%s", err.text);
    return done;
}

static bool run_node(int64_t rows)
{
    return run_in(0, rows);
}

Test(node_programs, compute_any_shape)
{
    begin_with(INF_OP_MATMUL);
    for (int64_t rows = 8; rows < ROWS; rows += rows % 3 + 1) {
        cr_assert(run_node(rows));
        for (int64_t i = 0; i < (rows + 1) * COLUMNS; i++)
            cr_assert_eq(((float *)y->data)[i],
                         i < rows * COLUMNS ? (float)(i / COLUMNS % 5 * DEPTH * (i % COLUMNS)) : 0,
                         "%d rows: %d", (int)rows, (int)i);
    }
    cr_assert(run_node(8), "one that was given up meanwhile");
    cr_assert_lt(inf_node_programs_bytes(programs), UINT64_C(7) << 20);
}

Test(node_programs, compute_pointwise_convolutions_as_products)
{
    begin_with(INF_OP_CONV2D);
    for (int64_t rows = 8; rows < 40; rows++) {
        cr_assert(run_node(rows));
        for (int64_t i = 0; i < rows * COLUMNS; i++) {
            float sum = (float)(i / COLUMNS % 5 * DEPTH * (i % COLUMNS));
            sum = sum < 100 ? 100 : sum > 1000 ? 1000 : sum;
            cr_assert_eq(((float *)y->data)[i], sum, "%d rows: %d", (int)rows, (int)i);
        }
    }
}

Test(node_programs, leave_small_and_empty_nodes_to_the_interpreter)
{
    begin_with(INF_OP_MATMUL);
    frame->nodes[0].attrs.matmul.transpose_a = true; // the device declines transpose_a
    cr_assert_not(run_node(DEPTH));
    frame->nodes[0].attrs.matmul.transpose_a = false;
    cr_assert_not(run_node(0));
}

Test(node_programs, do_not_exist_for_the_reference_device)
{
    begin_with(INF_OP_MATMUL);
    struct inf_node_programs *none = programs;
    cr_assert_eq(inf_node_programs_create(&none, devices + 1, 1, 1, NULL, NULL), INF_OK);
    cr_assert_null(none);
}

// Returns the only entry in the program's list of the constants that it reads. That constant is the
// matrix.
static struct inf_constant_use use_of_matrix(void)
{
    struct inf_constants constants = {0};
    cr_assert_eq(inf_node_programs_list_constants(programs, source, &constants, NULL), INF_OK);
    cr_assert_eq(constants.count, 1);
    struct inf_constant_use use = constants.uses[0];
    inf_constants_fini(&constants);
    return use;
}

static void expect_packed_once(enum inf_op op)
{
    make_source(op);
    uint64_t before = inf_device_memory(devices[0]).weight_bytes;
    create_programs(true);
    uint64_t packed = inf_device_memory(devices[0]).weight_bytes - before;
    struct inf_constant_use use = use_of_matrix();
    cr_assert(inf_constant_is_evictable(&use));
    cr_assert(inf_node_programs_hold(programs, source, source->nodes[0].inputs[1]));
    cr_assert_eq(packed, use.form->size_bytes);
    inf_blob_evict(use.blob, use.form);
    for (int64_t rows = 7; rows < 60; rows++) {
        cr_assert(run_in((uint32_t)rows % 2, rows));
        for (int64_t i = 0; i < rows * COLUMNS; i++) {
            float sum = (float)(i / COLUMNS % 5 * DEPTH * (i % COLUMNS));
            if (op == INF_OP_CONV2D)
                sum = sum < 100 ? 100 : sum > 1000 ? 1000 : sum;
            cr_assert_eq(((float *)y->data)[i], sum, "%d rows: %d", (int)rows, (int)i);
        }
    }
    uint64_t grown = inf_device_memory(devices[0]).weight_bytes - before - packed;
    cr_assert_leq(grown, inf_node_programs_bytes(programs), "a program of each shape, no matrix");
    cr_assert_lt(grown, 53 * packed / 4, "%u of %u", (unsigned)grown, (unsigned)packed);
    cr_assert_not(run_node(0));
    cr_assert(inf_blob_restore(use.blob));
    for (size_t i = 0; i < DEPTH * COLUMNS; i++)
        cr_assert_eq(((float *)use.blob->data)[i], (float)(i % COLUMNS));
}

Test(node_programs, pack_a_constant_matrix_once_for_all_shapes_and_slots)
{
    expect_packed_once(INF_OP_MATMUL);
}

Test(node_programs, pack_the_weights_of_pointwise_convolutions_once)
{
    expect_packed_once(INF_OP_CONV2D);
}

Test(node_programs, do_not_pack_a_matrix_that_another_node_reads)
{
    make_source(INF_OP_MATMUL);
    uint32_t inputs[] = {source->nodes[0].inputs[1]}, node;
    cr_assert_eq(
        inf_graph_add_node(source, INF_OP_IDENTITY, "other", "", inputs, 1, 1, &node, NULL),
        INF_OK);
    create_programs(true);
    struct inf_constant_use use = use_of_matrix();
    cr_assert(use.read);
    cr_assert_not(inf_node_programs_hold(programs, source, inputs[0]));
    cr_assert(run_node(9));
}
