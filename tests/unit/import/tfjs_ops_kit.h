// SPDX-License-Identifier: Apache-2.0
// Helpers for tests of lowering TensorFlow.js operators. Call begin_model(), add inputs, constants
// and nodes, then call output_of() or refuse_model().
#ifndef INF_TESTS_UNIT_IMPORT_TFJS_OPS_KIT_H
#define INF_TESTS_UNIT_IMPORT_TFJS_OPS_KIT_H

#include <criterion/criterion.h>
#include <string.h>

#include "tests/support/models/tfjs_case.h"

static struct inf_tfjs_writer *w;

#define DIMS(...) (int64_t[]){__VA_ARGS__}, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)

static inline void begin_model(void)
{
    w = inf_tfjs_writer_begin(inf_tfjs_case.path);
}

static inline void add_input(const char *name, const char *type, const int64_t *dims, size_t rank)
{
    inf_tfjs_writer_placeholder(w, name, type, dims, rank);
}

// Adds a list of integers as a constant.
static inline void add_ints(const char *name, const int32_t *elements, int64_t count)
{
    inf_tfjs_writer_ints(w, name, elements, &count, 1);
}

static inline void add_scalar_int(const char *name, int32_t element)
{
    inf_tfjs_writer_ints(w, name, &element, NULL, 0);
}

static inline void add_scalar(const char *name, float element)
{
    inf_tfjs_writer_floats(w, name, &element, NULL, 0);
}

static inline void add_node(const char *name, const char *op, const char *inputs)
{
    inf_tfjs_writer_node(w, name, op, inputs);
}

// Completes the model with output `y` and imports it. Returns the type and shape of the output as
// text.
static inline const char *output_of(const char *tensor)
{
    inf_tfjs_writer_output(w, "y", tensor);
    inf_tfjs_case_accept(w);
    return inf_tfjs_case_output(0);
}

// Completes the model with output `y` and asserts that the importer refuses it.
static inline void refuse_model(const char *tensor, enum inf_code code, const char *part)
{
    inf_tfjs_writer_output(w, "y", tensor);
    inf_tfjs_case_refuse(w, code, part);
}

static inline const union inf_attrs *attrs_of(uint32_t index, enum inf_op op)
{
    return &inf_tfjs_case_node(index, op)->attrs;
}

// Asserts the integers of a constant operand.
static inline void check_ints(uint32_t index, uint32_t operand, const int64_t *wanted,
                              uint32_t count)
{
    int64_t elements[16];
    uint32_t size = 0;
    const struct inf_node *of = &inf_tfjs_case.graph->nodes[index];
    cr_assert(inf_graph_const_ints(inf_tfjs_case.graph, of->inputs[operand], elements, 16, &size));
    cr_assert_eq(size, count);
    for (uint32_t i = 0; i < count; i++)
        cr_assert_eq(elements[i], wanted[i], "%u", i);
}

#endif
