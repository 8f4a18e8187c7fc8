// SPDX-License-Identifier: Apache-2.0
// Convolutions by Winograd's algorithm on the cpu device, compared with the reference device `ref`.
// The tests create the steps themselves. A compiled program has such a step only if the step won a
// race, so its outcome depends on the machine.
#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "backends/exec/static_executable.h"
#include "backends/graph/shape/infer.h"
#include "backends/ref/ref.h"
#include "tests/support/device/cpu_step.h"
#include "tests/unit/graph/graph_kit.h"

#define FORMS 3

static const struct inf_cpu_kernel *const kernels[FORMS] = {
    inf_cpu_winograd_2_kernels, inf_cpu_winograd_4_kernels, inf_cpu_winograd_6_kernels};

// A bound on the error of a result: BOUND[form] * sqrt(inputs + 16) * epsilon / 2 * (largest
// magnitude of x) * (sum over the input channels of the largest magnitude of a weight).
// BOUND[form] is the factor by which the algorithm can amplify rounding errors: the square of the
// largest row sum of |A'| |G| |B'| for the points of the form, computed with numpy. The rounding
// errors of a sum of n numbers are assumed to be independent, so their sum grows with the square
// root of n. docs/explanation/cpu.md has the derivation.
static const double BOUND[FORMS] = {64, 563.9, 4578.8};

struct shape_case {
    int64_t batch, height, width, inputs, outputs;
    int32_t top, bottom, left, right;
    int activation;   // enum inf_activation
    int64_t added;    // channels of the residual; 0: none
    bool prelu;       // true: a PRELU node follows the sum; false: the sum has the activation RELU
    float x, weights; // largest magnitudes of an element of x and of a weight
    uint32_t threads;
};

static uint32_t random_state;

static float draw_float(float scale)
{
    random_state = random_state * 1664525u + 1013904223u;
    return ((float)(random_state >> 8) / 8388608.0f - 1.0f) * scale;
}

static float *draw_floats(size_t count, float scale)
{
    float *data = malloc((count + 16) * sizeof(*data));
    cr_assert_not_null(data);
    for (size_t i = 0; i < count + 16; i++)
        data[i] = draw_float(scale);
    return data;
}

static uint32_t add_floats(struct inf_graph *graph, struct inf_shape shape, float scale)
{
    float *data = draw_floats(inf_shape_elements(&shape), scale);
    uint32_t value = add_constant(graph, INF_DTYPE_F32, shape, data);
    free(data);
    return value;
}

// Makes a graph of the convolution. If the case has a residual, a sum with it follows, and then a
// PRELU if the case has one. A residual with fewer channels than the result is padded first.
static struct inf_graph *make_graph(const struct shape_case *c)
{
    struct inf_graph *graph = new_graph();
    struct inf_error err = {0};
    random_state = 7;
    uint32_t x =
        add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(c->batch, c->height, c->width, c->inputs));
    uint32_t w = add_floats(graph, INF_SHAPE(3, 3, c->inputs, c->outputs), c->weights);
    uint32_t bias = add_floats(graph, INF_SHAPE(c->outputs), c->weights * c->x);
    uint32_t y = c->activation == INF_ACTIVATION_PRELU
                     ? node(graph, INF_OP_CONV2D, "conv", x, w, bias,
                            add_floats(graph, INF_SHAPE(c->outputs), 0.5f))
                     : node(graph, INF_OP_CONV2D, "conv", x, w, bias);
    struct inf_attrs_conv2d *attrs = &last_attrs(graph)->conv2d;
    attrs->padding = INF_PADDING_EXPLICIT;
    attrs->pad_top = c->top;
    attrs->pad_bottom = c->bottom;
    attrs->pad_left = c->left;
    attrs->pad_right = c->right;
    attrs->activation = (enum inf_activation)c->activation;
    attrs->activation_alpha = 0.25f;
    attrs->activation_max = 2;
    if (c->added > 0) {
        int64_t rows = c->height + c->top + c->bottom - 2;
        int64_t pixels = c->width + c->left + c->right - 2;
        uint32_t added =
            add_input(graph, "r", INF_DTYPE_F32, INF_SHAPE(c->batch, rows, pixels, c->added));
        if (c->added < c->outputs)
            added = node(graph, INF_OP_PAD, "pad", added,
                         add_constant(graph, INF_DTYPE_I32, INF_SHAPE(4, 2),
                                      (const int32_t[]){0, 0, 0, 0, 0, 0, 0,
                                                        (int32_t)(c->outputs - c->added)}));
        y = node(graph, INF_OP_BINARY, "sum", y, added);
        last_attrs(graph)->binary.kind = INF_BINARY_ADD;
        if (c->prelu)
            y = node(graph, INF_OP_PRELU, "prelu", y, add_floats(graph, INF_SHAPE(c->outputs), 1));
        else
            last_attrs(graph)->binary.activation = INF_ACTIVATION_RELU;
    }
    add_output(graph, "y", y);
    cr_assert_eq(inf_shape_infer(graph, &err), INF_OK, "%s", err.text);
    return graph;
}

static void run_ref(const struct shape_case *c, const float *x, const float *residual, float *y)
{
    struct inf_graph *graph = make_graph(c);
    struct inf_device *ref = NULL;
    struct inf_executable *executable = NULL;
    struct inf_error err = {0};
    cr_assert_eq(inf_device_open(&ref, &inf_ref_backend, 0, &(struct inf_device_options){0}, NULL),
                 INF_OK);
    cr_assert_eq(inf_static_executable_create(&executable, &graph, &ref, 1,
                                              &(struct inf_run_options){0}, &err),
                 INF_OK, "%s", err.text);
    struct inf_execution execution = {.inputs = (const void *[]){x, residual},
                                      .outputs = (void *[]){y}};
    cr_assert_eq(inf_executable_run(executable, &execution, &err), INF_OK, "%s", err.text);
    inf_executable_destroy(&executable);
    inf_device_unref(&ref);
}

// --- comparing ---

// Returns an upper bound of the sum over the input channels of the largest magnitude of a weight.
static double weight_sum(const struct shape_case *c)
{
    // Weights are uniformly distributed, so the largest of nine weights is near c->weights.
    return (double)c->weights * (double)c->inputs;
}

static void check_case(const struct shape_case *c, const char *isa_max)
{
    struct inf_graph *graph = make_graph(c);
    const struct inf_shape *shape = &graph->values[graph->outputs[0].value].shape;
    size_t count = inf_shape_elements(shape);
    random_state = 1;
    float *x = draw_floats((size_t)(c->batch * c->height * c->width * c->inputs), c->x);
    float *residual = draw_floats(count, c->x * c->weights);
    float *y = malloc(count * sizeof(*y));
    float *wanted = malloc((count + 16) * sizeof(*wanted));
    cr_assert(y != NULL && wanted != NULL);
    run_ref(c, x, residual, wanted);
    for (size_t form = 0; form < FORMS; form++) {
        double bound = BOUND[form] * sqrt((double)c->inputs + 16) * (double)FLT_EPSILON / 2 *
                       (double)c->x * weight_sum(c);
        // A result below the smallest normal float has an absolute rounding error instead.
        bound = fmax(bound, 64 * (double)FLT_MIN * (double)FLT_EPSILON);
        memset(y, 0xff, count * sizeof(*y));
        const struct cpu_step_options options = {isa_max, c->threads};
        cr_assert_eq(
            cpu_step_run(graph, kernels[form], &options, (const float *const[]){x, residual}, y),
            INF_OK);
        for (size_t i = 0; i < count; i++)
            cr_assert(fabs((double)y[i] - (double)wanted[i]) <= bound,
                      "%s F(%zu) of %dx%dx%d, %d outputs: element %zu is %g, ref has %g", isa_max,
                      2 * form + 2, (int)c->height, (int)c->width, (int)c->inputs, (int)c->outputs,
                      i, (double)y[i], (double)wanted[i]);
    }
    free(x);
    free(residual);
    free(y);
    free(wanted);
    inf_graph_destroy(&graph);
}

static void check_all(const struct shape_case *cases, size_t count)
{
    const struct inf_isa *isa;
    for (unsigned level = 0; (isa = inf_isa_level(level)) != NULL; level++)
        for (size_t i = 0; i < count; i++)
            check_case(&cases[i], isa->name);
}

TestSuite(cpu_winograd, .timeout = 300);

#define PLAIN 1, 1, 1, 1, INF_ACTIVATION_NONE, 0, false, 1, 0.25f

Test(cpu_winograd, agrees_with_ref_on_odd_shapes)
{
    static const struct shape_case cases[] = {
        {1, 1, 1, 1, 1, PLAIN, 1},
        {1, 2, 3, 1, 17, PLAIN, 1},
        {1, 7, 5, 3, 48, PLAIN, 1},
        {1, 13, 11, 17, 3, PLAIN, 1},
        {1, 9, 21, 48, 64, PLAIN, 1},
        {3, 8, 10, 17, 17, PLAIN, 1},
        {2, 25, 6, 64, 48, PLAIN, 1},
        {1, 6, 6, 8, 100, PLAIN, 1},
        // Two cases without padding, one with padding on some sides only, and one with more rows
        // and columns of padding than a window has.
        {1, 9, 8, 5, 6, 0, 0, 0, 0, INF_ACTIVATION_NONE, 0, false, 1, 1, 1},
        {1, 3, 3, 5, 6, 0, 0, 0, 0, INF_ACTIVATION_NONE, 0, false, 1, 1, 1},
        {2, 8, 9, 5, 6, 1, 0, 0, 2, INF_ACTIVATION_NONE, 0, false, 1, 1, 1},
        {1, 4, 5, 5, 6, 0, 7, 9, 0, INF_ACTIVATION_NONE, 0, false, 1, 1, 1},
    };
    check_all(cases, INF_ARRAY_LENGTH(cases));
}

Test(cpu_winograd, applies_activations_sums_and_slopes)
{
    static const struct shape_case cases[] = {
        {1, 9, 7, 8, 20, 1, 1, 1, 1, INF_ACTIVATION_RELU, 0, false, 1, 1, 1},
        {1, 9, 7, 8, 20, 1, 1, 1, 1, INF_ACTIVATION_CLIP, 0, false, 1, 1, 1},
        {1, 9, 7, 8, 20, 1, 1, 1, 1, INF_ACTIVATION_LEAKY_RELU, 0, false, 1, 1, 1},
        {1, 9, 7, 8, 20, 1, 1, 1, 1, INF_ACTIVATION_PRELU, 0, false, 1, 1, 1},
        {1, 9, 7, 8, 20, 1, 1, 1, 1, INF_ACTIVATION_TANH, 0, false, 1, 1, 1},
        {2, 9, 7, 8, 20, 1, 1, 1, 1, INF_ACTIVATION_NONE, 20, false, 1, 1, 1},
        {1, 9, 7, 8, 41, 1, 1, 1, 1, INF_ACTIVATION_NONE, 19, false, 1, 1, 1},
        {1, 9, 7, 8, 41, 1, 1, 1, 1, INF_ACTIVATION_NONE, 3, true, 1, 1, 1},
        {2, 9, 7, 8, 70, 1, 0, 1, 2, INF_ACTIVATION_NONE, 70, true, 1, 1, 1},
    };
    check_all(cases, INF_ARRAY_LENGTH(cases));
}

Test(cpu_winograd, agrees_with_ref_on_several_threads)
{
    static const struct shape_case cases[] = {
        // Some cases have many blocks. The small ones have one block, which all threads share.
        {2, 60, 50, 16, 40, PLAIN, 4},
        {1, 14, 14, 64, 130, PLAIN, 4},
        {1, 7, 7, 33, 64, PLAIN, 2},
        {1, 40, 40, 8, 8, PLAIN, 3},
        {1, 12, 13, 24, 65, 1, 1, 1, 1, INF_ACTIVATION_NONE, 40, true, 1, 1, 3},
    };
    check_all(cases, INF_ARRAY_LENGTH(cases));
}

Test(cpu_winograd, keeps_its_bound_for_very_large_and_very_small_numbers)
{
    static const struct shape_case cases[] = {
        {1, 9, 7, 24, 20, 1, 1, 1, 1, INF_ACTIVATION_NONE, 0, false, 1e30f, 1e-30f, 1},
        {1, 9, 7, 24, 20, 1, 1, 1, 1, INF_ACTIVATION_NONE, 0, false, 1e-30f, 1e30f, 1},
        {1, 9, 7, 24, 20, 1, 1, 1, 1, INF_ACTIVATION_NONE, 0, false, 1e17f, 1e17f, 1},
        {1, 9, 7, 24, 20, 1, 1, 1, 1, INF_ACTIVATION_NONE, 0, false, 1e-18f, 1e-18f, 1},
    };
    check_all(cases, INF_ARRAY_LENGTH(cases));
}

// Runs the case with one form and returns the results, which the caller frees.
static float *run_case(const struct shape_case *c, size_t form, const float *x, size_t *out_count)
{
    struct inf_graph *graph = make_graph(c);
    const struct cpu_step_options options = {NULL, c->threads};
    *out_count = inf_shape_elements(&graph->values[graph->outputs[0].value].shape);
    float *y = malloc(*out_count * sizeof(*y));
    cr_assert_not_null(y);
    cr_assert_eq(cpu_step_run(graph, kernels[form], &options, (const float *const[]){x, NULL}, y),
                 INF_OK);
    inf_graph_destroy(&graph);
    return y;
}

// The number of threads decides how the work is divided into blocks and groups. It must not change
// the operations that compute one result.
Test(cpu_winograd, has_the_same_bits_with_any_number_of_threads)
{
    struct shape_case cases[] = {{1, 60, 50, 16, 40, PLAIN, 1}, {2, 7, 7, 33, 130, PLAIN, 1}};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(cases); i++) {
        struct shape_case *c = &cases[i];
        random_state = 3;
        float *x = draw_floats((size_t)(c->batch * c->height * c->width * c->inputs), 1);
        for (size_t form = 0; form < FORMS; form++) {
            size_t count;
            c->threads = 1;
            float *alone = run_case(c, form, x, &count);
            c->threads = 4;
            float *shared = run_case(c, form, x, &count);
            cr_assert_eq(memcmp(alone, shared, count * sizeof(*alone)), 0, "F(%zu)", 2 * form + 2);
            free(alone);
            free(shared);
        }
        free(x);
    }
}

// In a direct convolution, a result is not finite if its window covers a NaN or an infinity.
// Winograd's algorithm can make further results of the same tile non-finite. It must not make such
// a result finite.
Test(cpu_winograd, does_not_hide_nan_and_infinity)
{
    static const struct shape_case c = {1, 20, 20, 8, 16, PLAIN, 1};
    const float numbers[] = {NAN, INFINITY, -INFINITY};
    random_state = 5;
    float *x = draw_floats(20 * 20 * 8, 1);
    for (size_t n = 0; n < INF_ARRAY_LENGTH(numbers); n++) {
        x[(9 * 20 + 13) * 8 + 5] = numbers[n];
        for (size_t form = 0; form < FORMS; form++) {
            size_t count;
            float *y = run_case(&c, form, x, &count);
            for (size_t row = 0; row < 20; row++)
                for (size_t pixel = 0; pixel < 20; pixel++)
                    for (size_t channel = 0; channel < 16; channel++) {
                        bool finite = isfinite(y[(row * 20 + pixel) * 16 + channel]);
                        bool covered = row >= 8 && row <= 10 && pixel >= 12 && pixel <= 14;
                        bool far = row < 2 || row > 16 || pixel < 6;
                        cr_assert(!(covered && finite) && !(far && !finite),
                                  "F(%zu): row %zu, pixel %zu", 2 * form + 2, row, pixel);
                    }
            free(y);
        }
    }
    free(x);
}
