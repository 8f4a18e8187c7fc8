// SPDX-License-Identifier: Apache-2.0
// Products without a bias, whose panels share one array of zeros. In this program, memory that is
// allocated with an alignment holds NaN until it is written, and so do the bytes behind it. So a
// panel that reads beyond the end of the array gives NaN.
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/kernels/isa.h"
#include "backends/graph/shape/infer.h"
#include "tests/unit/cpu/single_node.h"

#define COLUMNS_MAX 4100
#define BEHIND      1024 // bytes of NaN behind each block; no panel of floats is wider

// Replaces the function of the C library in this program.
int posix_memalign(void **memory, size_t alignment, size_t size)
{
    size_t whole = (size + BEHIND + alignment - 1) / alignment * alignment;
    *memory = aligned_alloc(alignment, whole);
    if (*memory == NULL)
        return ENOMEM;
    memset(*memory, 0xff, whole);
    return 0;
}

static void check_product(struct inf_device *device, int64_t columns)
{
    static float matrix[COLUMNS_MAX];
    struct single single;
    struct inf_blob *x = inf_blob_create(sizeof(float));
    struct inf_blob *y = inf_blob_create(sizeof matrix);
    const float *results = y->data;
    *(float *)x->data = 5;
    for (int64_t i = 0; i < columns; i++)
        matrix[i] = (float)(i % 7 - 3);
    start_graph(&single);
    add_operand(&single, INF_DTYPE_F32, &INF_SHAPE(1, 1));
    add_constant(&single, &INF_SHAPE(1, columns), matrix, NULL);
    add_node(&single, INF_OP_MATMUL);
    cr_assert_eq(inf_shape_infer(single.graph, NULL), INF_OK);
    struct inf_program *program = program_of(device, &single, 1);
    cr_assert_eq(run_program(program, &single, x->data, y->data, (struct inf_run){0}), INF_OK);
    for (int64_t i = 0; i < columns; i++)
        cr_assert_eq(results[i], 5 * (float)(i % 7 - 3), "%s: column %d of %d is %g",
                     inf_device_info(device)->description, (int)i, (int)columns,
                     (double)results[i]);
    inf_blob_unref(&x);
    inf_blob_unref(&y);
    inf_program_destroy(&program);
    inf_graph_destroy(&single.graph);
}

// The last panel is narrower than the others, as wide, or the only one.
Test(product_bias, is_zero_for_the_widest_panel)
{
    static const int64_t columns[] = {1, 3, 17, 33, 64, 65, 100, 130, COLUMNS_MAX};
    for (unsigned level = 0; inf_isa_level(level) != NULL; level++) {
        struct inf_device *device = NULL;
        const struct inf_device_options options = {.threads = 1,
                                                   .isa_max = inf_isa_level(level)->name};
        cr_assert_eq(inf_device_open(&device, &inf_cpu_backend, 0, &options, NULL), INF_OK);
        for (size_t i = 0; i < INF_ARRAY_LENGTH(columns); i++)
            check_product(device, columns[i]);
        inf_device_unref(&device);
    }
}
