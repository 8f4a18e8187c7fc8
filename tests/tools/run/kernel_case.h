// SPDX-License-Identifier: Apache-2.0
// One recorded call of a TensorFlow.js kernel (shared/tfjs-kernels) and the graph it is mapped to.
// Errors latch: after the first failure nothing more is added, and kernel_case.err has the reason.
#ifndef INF_TESTS_TOOLS_RUN_KERNEL_CASE_H
#define INF_TESTS_TOOLS_RUN_KERNEL_CASE_H

#include <jansson.h>

#include "backends/graph/graph.h"

#define KERNEL_TENSORS 128

struct kernel_case {
    const json_t *attrs, *inputs, *outputs; // attributes, inputs and outputs of the recorded call
    struct inf_graph *graph;
    uint32_t given[KERNEL_TENSORS]; // values that are the graph's inputs
    // recorded elements of these inputs, which are passed at run time
    struct inf_blob *data[KERNEL_TENSORS];
    uint32_t given_count;
    uint32_t results[KERNEL_TENSORS]; // values that correspond to `outputs`, in order
    uint32_t result_count;
    enum inf_code code; // code of the first failure
    struct inf_error err;
};

// Reads dtype, shape and elements of a recorded tensor; NULL if they contradict each other. The
// caller releases the blob.
struct inf_blob *kernel_tensor(const json_t *tensor, enum inf_dtype *dtype,
                               struct inf_shape *shape);

// Reads a number, or one of the strings "nan", "inf", "-inf".
double kernel_number(const json_t *json);

// Returns the number attribute `name`; 0 if it is absent or null.
double kernel_attr(const struct kernel_case *call, const char *name);
// Returns the text attribute `name`; "" if it is absent.
const char *kernel_text(const struct kernel_case *call, const char *name);
// Returns the bool attribute `name`; false if it is absent.
bool kernel_flag(const struct kernel_case *call, const char *name);
// Reads a list of numbers, flattened; a single number is a list of one. Returns the length; -1 if
// the attribute is absent or null.
int kernel_list(const struct kernel_case *call, const char *name, int64_t *elements, int capacity);

// Returns true if input `name` was recorded.
bool kernel_has(const struct kernel_case *call, const char *name);
// Adds input `name` to the graph and returns its value. The recorded data is passed at run time.
uint32_t kernel_input(struct kernel_case *call, const char *name);
// Adds an input that the recorded call has as element `index` of a list of inputs ("0", "1", ...).
// Returns its value.
uint32_t kernel_input_at(struct kernel_case *call, uint32_t index);
// Returns the number of recorded inputs.
uint32_t kernel_input_count(const struct kernel_case *call);

// Adds a constant of type i32 and rank 1, and returns its value.
uint32_t kernel_ints(struct kernel_case *call, const int64_t *elements, int count);
// Adds an i32 constant of shape [rows,columns].
uint32_t kernel_matrix(struct kernel_case *call, const int64_t *elements, int rows, int columns);
// Adds a constant scalar of any type.
uint32_t kernel_scalar(struct kernel_case *call, enum inf_dtype dtype, double value);
// Adds a constant of f32 elements.
uint32_t kernel_floats(struct kernel_case *call, const float *elements, struct inf_shape shape);

// Returns the default attributes of `op`.
union inf_attrs kernel_attrs(enum inf_op op);

// Adds a node with `outputs` outputs. Returns the first output; the indices of the others follow
// it.
uint32_t kernel_node(struct kernel_case *call, enum inf_op op, const union inf_attrs *attrs,
                     const uint32_t *inputs, uint32_t input_count, uint32_t outputs);
// Adds a node with one output. The inputs are the variable arguments.
#define kernel_add(call, op, attrs, ...)                                                           \
    kernel_node(call, op, attrs, (const uint32_t[]){__VA_ARGS__},                                  \
                (uint32_t)(sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t)), 1)

// Returns the shape of a value.
const struct inf_shape *kernel_shape(const struct kernel_case *call, uint32_t value);
// Returns the element type of a value.
enum inf_dtype kernel_dtype(const struct kernel_case *call, uint32_t value);

// Adds a conversion of `value` to another type; returns `value` if it has that type.
uint32_t kernel_cast(struct kernel_case *call, uint32_t value, enum inf_dtype dtype);
// Adds a reshape of `value`.
uint32_t kernel_reshape(struct kernel_case *call, uint32_t value, const int64_t *dims, int rank);
// Adds a transpose of `value`.
uint32_t kernel_transpose(struct kernel_case *call, uint32_t value, const int64_t *perm, int rank);
// Adds a tensor whose elements are all equal.
uint32_t kernel_fill(struct kernel_case *call, const int64_t *dims, int rank, enum inf_dtype dtype,
                     double value);
// Adds a node that computes kind(a, b), and returns its output.
uint32_t kernel_binary(struct kernel_case *call, enum inf_binary_kind kind, uint32_t a, uint32_t b);
// Adds a node that computes kind(x) with the attribute alpha set to 0, and returns its output.
uint32_t kernel_unary(struct kernel_case *call, enum inf_unary_kind kind, uint32_t x);

// Declares that `value` corresponds to the next recorded output.
void kernel_result(struct kernel_case *call, uint32_t value);
// Records that the kernel cannot be mapped, for the reason `why`: sets call->code to
// INF_UNSUPPORTED, unless an earlier failure has set it.
void kernel_refuse(struct kernel_case *call, const char *why);

// Adds the nodes that compute the TensorFlow.js kernel `kernel` to the graph of `call`. Returns
// false if no kernel table has a row for the kernel.
bool kernel_map(struct kernel_case *call, const char *kernel);

// A table row: the function that adds the nodes for one TensorFlow.js kernel to a graph.
struct kernel_row {
    const char *name;
    void (*map)(struct kernel_case *call, int argument);
    int argument; // lets several rows share one function
};

// The tables of the kernel families. Each ends with a row without a name.
extern const struct kernel_row kernel_rows_eltwise[], kernel_rows_reduce[], kernel_rows_move[],
    kernel_rows_pick[], kernel_rows_nn[], kernel_rows_picture[];

#endif
