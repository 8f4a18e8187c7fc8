// SPDX-License-Identifier: Apache-2.0
// One recorded call of a TensorFlow.js kernel (shared/tfjs-kernels) and the graph it is mapped to.
// Building is sticky: after the first failure nothing more is added, and kernel_case.err tells why.
#ifndef INF_TESTS_TOOLS_RUN_KERNEL_CASE_H
#define INF_TESTS_TOOLS_RUN_KERNEL_CASE_H

#include <jansson.h>

#include "backends/graph/graph.h"

#define KERNEL_TENSORS 128

struct kernel_case {
    const json_t *attrs, *inputs, *outputs; // of the recorded call
    struct inf_graph *graph;
    uint32_t given[KERNEL_TENSORS];        // values that are the graph's inputs
    struct inf_blob *data[KERNEL_TENSORS]; // what is fed to them
    uint32_t given_count;
    uint32_t results[KERNEL_TENSORS]; // values that answer `outputs`, in order
    uint32_t result_count;
    enum inf_code code; // of the first failure
    struct inf_error err;
};

// Reads dtype, shape and elements of a recorded tensor; NULL where they do not fit together. The
// blob is the caller's.
struct inf_blob *kernel_tensor(const json_t *tensor, enum inf_dtype *dtype,
                               struct inf_shape *shape);

// A number, or one of the strings "nan", "inf", "-inf".
double kernel_number(const json_t *json);

// Number attribute `name`; 0 where it is absent or null.
double kernel_attr(const struct kernel_case *call, const char *name);
// Text attribute `name`; "" where there is none.
const char *kernel_text(const struct kernel_case *call, const char *name);
// Whether the attribute is true.
bool kernel_flag(const struct kernel_case *call, const char *name);
// A list of numbers, flattened; a single number is a list of one. Its length is returned, -1 where
// the attribute is absent or null.
int kernel_list(const struct kernel_case *call, const char *name, int64_t *elements, int capacity);

// Whether input `name` was recorded.
bool kernel_has(const struct kernel_case *call, const char *name);
// The value of input `name`, fed at run time.
uint32_t kernel_input(struct kernel_case *call, const char *name);
// The value of list input number `index` ("0", "1", ...).
uint32_t kernel_input_at(struct kernel_case *call, uint32_t index);
// How many inputs were recorded.
uint32_t kernel_input_count(const struct kernel_case *call);

// A constant list of i32.
uint32_t kernel_ints(struct kernel_case *call, const int64_t *elements, int count);
// A constant [rows,columns] of i32.
uint32_t kernel_matrix(struct kernel_case *call, const int64_t *elements, int rows, int columns);
// A constant scalar of any type.
uint32_t kernel_scalar(struct kernel_case *call, enum inf_dtype dtype, double value);
// A constant of f32 elements.
uint32_t kernel_floats(struct kernel_case *call, const float *elements, struct inf_shape shape);

// The default attributes of `op`.
union inf_attrs kernel_attrs(enum inf_op op);

// Adds a node with `outputs` outputs; the first one is returned, the others follow it.
uint32_t kernel_node(struct kernel_case *call, enum inf_op op, const union inf_attrs *attrs,
                     const uint32_t *inputs, uint32_t input_count, uint32_t outputs);
// Adds a node of one output, its inputs listed.
#define kernel_add(call, op, attrs, ...)                                                           \
    kernel_node(call, op, attrs, (const uint32_t[]){__VA_ARGS__},                                  \
                (uint32_t)(sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t)), 1)

// Shape and type of a value.
const struct inf_shape *kernel_shape(const struct kernel_case *call, uint32_t value);
// As kernel_shape(), the type.
enum inf_dtype kernel_dtype(const struct kernel_case *call, uint32_t value);

// `value` as another type; itself where it is one already.
uint32_t kernel_cast(struct kernel_case *call, uint32_t value, enum inf_dtype dtype);
// `value` with another shape.
uint32_t kernel_reshape(struct kernel_case *call, uint32_t value, const int64_t *dims, int rank);
// `value` with its axes in another order.
uint32_t kernel_transpose(struct kernel_case *call, uint32_t value, const int64_t *perm, int rank);
// A constant-valued tensor.
uint32_t kernel_fill(struct kernel_case *call, const int64_t *dims, int rank, enum inf_dtype dtype,
                     double value);
// kind(a, b).
uint32_t kernel_binary(struct kernel_case *call, enum inf_binary_kind kind, uint32_t a, uint32_t b);
// kind(x) with alpha 0.
uint32_t kernel_unary(struct kernel_case *call, enum inf_unary_kind kind, uint32_t x);

// Names `value` as the next recorded output.
void kernel_result(struct kernel_case *call, uint32_t value);
// Fails with INF_UNSUPPORTED and this reason.
void kernel_refuse(struct kernel_case *call, const char *why);

// Adds what kernel `kernel` means to the graph of `call`. False where the map has no such kernel.
bool kernel_map(struct kernel_case *call, const char *kernel);

// How one kernel is mapped.
struct kernel_row {
    const char *name;
    void (*map)(struct kernel_case *call, int argument);
    int argument; // what several rows of one function differ in
};

// The families; each closed by a row without name.
extern const struct kernel_row kernel_rows_eltwise[], kernel_rows_reduce[], kernel_rows_move[],
    kernel_rows_pick[], kernel_rows_nn[], kernel_rows_picture[];

#endif
