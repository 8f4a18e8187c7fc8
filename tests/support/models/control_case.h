// SPDX-License-Identifier: Apache-2.0
// Models with control flow, written as TensorFlow.js nodes. They run on the reference device `ref`
// with all passes and without passes. Only one model exists at a time.
#ifndef INF_TESTS_SUPPORT_MODELS_CONTROL_CASE_H
#define INF_TESTS_SUPPORT_MODELS_CONTROL_CASE_H

#include <stdatomic.h>

#include "backends/exec/model/model.h"
#include "tests/support/models/tfjs_writer.h"

// Expands to a list of dimensions and their count, the arguments of the writer's functions.
#define INF_DIMS(...) (int64_t[]){__VA_ARGS__}, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)
#define INF_ANY_DIMS  INF_DIMS(-1)

#define INF_CONTROL_OUTPUTS_MAX  4
#define INF_CONTROL_ELEMENTS_MAX 64

// The elements and shapes of the inputs with which a model is run.
struct inf_feed {
    const void *data[4];
    struct inf_shape shapes[4];
};

// The type, shape and elements of one output of a run.
struct inf_numbers {
    enum inf_dtype dtype;
    struct inf_shape shape;
    uint32_t count;
    double elements[INF_CONTROL_ELEMENTS_MAX];
};

struct inf_control_case {
    struct inf_device *device;      // the reference device
    struct inf_tfjs_writer *writer; // writer of the model that was begun
    struct inf_error err;
    struct inf_numbers results[INF_CONTROL_OUTPUTS_MAX]; // outputs of the last run
    // number of nodes in the last run that were in no plan, so that they ran one by one
    uint32_t interpreted;
};

// The model and device of the current test. inf_control_init() initialises it before each test.
extern struct inf_control_case inf_control;

// Creates the folder of the model and opens the reference device. Runs before each test.
void inf_control_init(void);

// Removes the folder and closes the device. Runs after each test.
void inf_control_fini(void);

// Begins to write a model. The functions below add its inputs, constants and nodes.
void inf_control_begin(void);

// Adds an input. `type` is TensorFlow's name of the type.
void inf_control_input(const char *name, const char *type, const int64_t *dims, size_t rank);

// Adds a constant of one element.
void inf_control_scalar_int(const char *name, int32_t element);
void inf_control_scalar(const char *name, float element);

// Adds a node; `inputs` are separated by commas.
void inf_control_node(const char *name, const char *op, const char *inputs);

// Adds an Enter node, which passes `from` into a frame (a loop).
void inf_control_enter(const char *name, const char *from, const char *frame);

// Adds a loop variable NAME with initial value `from`. NAME/merge is its value in an iteration,
// NAME/body is the value that the body reads, and NAME is the last value. The caller must add
// NAME/next in the body.
void inf_control_variable(const char *name, const char *from, const char *frame);

// Ends the model with the output y, and imports the model. The import must succeed.
void inf_control_accept(const char *output);

// Ends the model with the output y, and imports the model. The import must fail with `code` and a
// text that contains `part`.
void inf_control_refuse(const char *output, enum inf_code code, const char *part);

// Runs a copy of the graph. A set bit in `disabled` switches off the pass with that number. Returns
// INF_CANCELLED if `cancelled` (NULL allowed) was set.
enum inf_code inf_control_run_with(uint32_t disabled, const struct inf_feed *feed,
                                   const atomic_bool *cancelled);

// Runs the graph without passes, with inlining only, and with all passes. Asserts that the output
// has these elements each time.
void inf_control_check(const struct inf_feed *feed, uint32_t output, const double *wanted,
                       uint32_t count);

#define INF_CONTROL_CHECK(feed, output, ...)                                                       \
    inf_control_check((feed), (output), (const double[]){__VA_ARGS__},                             \
                      sizeof((const double[]){__VA_ARGS__}) / sizeof(double))

#endif
