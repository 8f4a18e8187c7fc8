// SPDX-License-Identifier: Apache-2.0
// Transposes on the cpu device with rows far apart, with rows of two or four elements, and with
// sizes that are no multiple of what is copied at a time.
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/cpu.h"
#include "backends/device/device.h"
#include "backends/graph/shape/infer.h"

#define AXES 5

struct test_case {
    int64_t dims[AXES];
    int32_t perm[AXES];
};

static struct inf_device *device;

static void open_device(void)
{
    const struct inf_device_options options = {.slots = 1, .threads = 2};
    cr_assert_eq(inf_device_open(&device, &inf_cpu_backend, 0, &options, NULL), INF_OK);
}

static void close_device(void)
{
    inf_device_unref(&device);
}

TestSuite(strided, .init = open_device, .fini = close_device, .timeout = 60);

// Runs the transpose of x, whose elements have `dtype`.
static void run_transpose(const struct test_case *test, enum inf_dtype dtype, void *x, void *y)
{
    struct inf_graph *graph = NULL;
    struct inf_program *program = NULL;
    uint32_t operand, node;
    struct inf_shape shape = {.rank = AXES};
    memcpy(shape.dims, test->dims, sizeof(test->dims));
    cr_assert_eq(inf_graph_create(&graph, NULL), INF_OK);
    cr_assert_eq(inf_graph_add_value(graph, "x", dtype, &shape, &operand, NULL), INF_OK);
    cr_assert_eq(inf_graph_add_node(graph, INF_OP_TRANSPOSE, "t", "", &operand, 1, 1, &node, NULL),
                 INF_OK);
    graph->nodes[node].attrs.transpose.perm.count = AXES;
    for (int axis = 0; axis < AXES; axis++)
        graph->nodes[node].attrs.transpose.perm.values[axis] = test->perm[axis];
    cr_assert_eq(inf_shape_infer(graph, NULL), INF_OK);
    const struct inf_segment segment = {
        .graph = graph, .nodes = &node, .node_count = 1, .slots = 1};
    cr_assert_eq(inf_program_compile(&program, device, &segment, 0, NULL), INF_OK);
    struct inf_binding bindings[2] = {0};
    struct inf_ticket ticket;
    bindings[operand].host = x;
    bindings[graph->nodes[node].outputs[0]].host = y;
    const struct inf_run run = {.bindings = bindings};
    cr_assert_eq(inf_program_run(program, &run, &ticket, NULL), INF_OK);
    inf_program_destroy(&program);
    inf_graph_destroy(&graph);
}

// Returns the index in x of element `at` of y.
static size_t source_of(const struct test_case *test, size_t at)
{
    size_t steps[AXES], step = 1, index = 0;
    for (int axis = AXES; axis-- > 0; step *= (size_t)test->dims[axis])
        steps[axis] = step;
    for (int axis = AXES; axis-- > 0;) {
        size_t dim = (size_t)test->dims[test->perm[axis]];
        index += at % dim * steps[test->perm[axis]];
        at /= dim;
    }
    return index;
}

// Transposes elements of `dtype` with random bytes.
static void check_transpose(const struct test_case *test, enum inf_dtype dtype)
{
    size_t count = 1, element = inf_dtype_size(dtype);
    for (int axis = 0; axis < AXES; axis++)
        count *= (size_t)test->dims[axis];
    uint8_t *x = malloc(count * element), *y = malloc((count + 1) * element);
    uint32_t random = 1;
    for (size_t i = 0; i < count * element; i++)
        x[i] = (uint8_t)((random = random * 1664525 + 1013904223) >> 24);
    memset(y, 0xee, (count + 1) * element);
    run_transpose(test, dtype, x, y);
    for (size_t i = 0; i < count; i++)
        cr_assert_arr_eq(y + i * element, x + source_of(test, i) * element, element,
                         "element %zu of %zu bytes is not element %zu of x", i, element,
                         source_of(test, i));
    for (size_t i = 0; i < element; i++)
        cr_assert_eq(y[count * element + i], 0xee, "written past the end");
    free(x);
    free(y);
}

Test(strided, copies_every_element_to_its_place)
{
    static const struct test_case cases[] = {
        {{1, 1, 37, 19, 65}, {0, 1, 4, 2, 3}},  // channels to the front: planes far apart
        {{1, 1, 32, 32, 64}, {0, 1, 4, 2, 3}},  // planes 4 KiB apart
        {{1, 64, 16, 2, 2}, {0, 1, 3, 2, 4}},   // rows of 2 elements
        {{3, 5, 7, 3, 4}, {3, 0, 2, 1, 4}},     // rows of 4 elements
        {{3, 5, 7, 3, 6}, {3, 0, 2, 1, 4}},     // rows of 6 elements
        {{1, 4, 16, 16, 67}, {4, 2, 3, 0, 1}},  // few columns, 67 rows 4 KiB apart
        {{2, 2, 16, 16, 24}, {4, 2, 0, 3, 1}},  // columns of two axes
        {{5, 1, 13, 17, 9}, {4, 3, 2, 1, 0}},   // all axes reversed
        {{1, 3, 1, 21, 300}, {0, 2, 3, 4, 1}},  // 3 channels to the back: rows side by side
        {{1, 1, 300, 21, 15}, {0, 2, 4, 1, 3}}, // 15 rows of 21 elements in each of 300 planes
        {{1, 3, 1, 151, 303}, {0, 2, 3, 4, 1}}, // 3 channels of many elements: divided
        {{1, 151, 1, 301, 3}, {0, 2, 4, 1, 3}}, // the way back
        {{1, 1, 1, 517, 259}, {0, 1, 2, 4, 3}}, // one large matrix, divided between threads
        {{2, 1, 1, 259, 517}, {0, 1, 2, 4, 3}}, // two of them
    };
    static const enum inf_dtype dtypes[] = {INF_DTYPE_U8, INF_DTYPE_F16, INF_DTYPE_I32,
                                            INF_DTYPE_I64};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(cases); i++)
        for (size_t k = 0; k < INF_ARRAY_LENGTH(dtypes); k++)
            check_transpose(&cases[i], dtypes[k]);
}
