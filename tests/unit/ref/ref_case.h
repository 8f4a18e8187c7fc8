// SPDX-License-Identifier: Apache-2.0
// Helpers for tests of the reference kernels. begin_case() starts a node, add_input() and
// add_list() add operands, expect_output() and expect_failure() run the node and check the result.
#ifndef INF_TESTS_UNIT_REF_REF_CASE_H
#define INF_TESTS_UNIT_REF_REF_CASE_H

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backends/ref/ref.h"
#include "tests/support/models/one_node.h"

#define F32(...) ((const float[]){__VA_ARGS__})
#define F64(...) ((const double[]){__VA_ARGS__})
#define I32(...) ((const int32_t[]){__VA_ARGS__})
#define I64(...) ((const int64_t[]){__VA_ARGS__})
#define U64(...) ((const uint64_t[]){__VA_ARGS__})
// elements of type UINT16; also the bit patterns of FP16 and BF16 elements
#define U16(...)   ((const uint16_t[]){__VA_ARGS__})
#define I8(...)    ((const int8_t[]){__VA_ARGS__})
#define U8(...)    ((const uint8_t[]){__VA_ARGS__})
#define SCALAR     ((struct inf_shape){0})
#define SHAPE(...) INF_SHAPE(__VA_ARGS__)
#define AXES(...)                                                                                  \
    ((struct inf_ints){.count = (int32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),     \
                       .values = {__VA_ARGS__}})

static struct inf_device *device;
static struct one_node one;

static inline void open_ref(void)
{
    cr_assert_eq(inf_device_open(&device, &inf_ref_backend, 0, NULL, NULL), INF_OK);
}

static inline void close_ref(void)
{
    one_node_fini(&one);
    inf_device_unref(&device);
}

TestSuite(ref, .init = open_ref, .fini = close_ref);

static inline void begin_case(enum inf_op op)
{
    one_node_fini(&one);
    one_node_init(&one, op);
}

static inline void add_input(enum inf_dtype dtype, struct inf_shape shape, const void *data)
{
    one_node_input(&one, dtype, shape, data);
}

// Adds an i32 list operand that must be constant, such as a shape, sizes or axes.
static inline void add_list(int64_t count, const int32_t *elements)
{
    one_node_const(&one, INF_DTYPE_I32, SHAPE(count), elements);
}

static inline void run_case(void)
{
    struct inf_error err = {0};
    cr_assert_eq(one_node_run(&one, device, &err), INF_OK, "%s", err.text);
}

static inline void expect_output(enum inf_dtype dtype, struct inf_shape shape, const void *data)
{
    run_case();
    one_node_expect(&one, 0, dtype, shape, data);
}

// Asserts that the run fails with exactly this error text.
static inline void expect_failure(const char *text)
{
    struct inf_error err = {0};
    cr_assert_eq(one_node_run(&one, device, &err), INF_INVALID);
    cr_assert_str_eq(err.text, text);
}

#endif
