// SPDX-License-Identifier: Apache-2.0
// measure_winograd [--isa-max LEVEL] MODEL...
//
// Measures the rounding errors of the cpu device's kernels for 3x3 convolutions at stride 1: the
// packed convolution, and the forms of Winograd's algorithm. For each such convolution of the
// model, the exact results for the model's weights and random inputs are computed in double, and
// the results of each kernel are compared with them. The inputs are drawn from a normal
// distribution, and negative inputs are replaced by 0, as behind a ReLU. If the result is larger
// than SIDE_MAX x SIDE_MAX pixels, a convolution of this size is computed instead.
//
// Prints one line for each model and kernel: the number of convolutions; the largest error of a
// result divided by the largest magnitude of a result; and the root mean square of the errors
// divided by the root mean square of the results. Both quotients are computed for each convolution,
// and the largest over all convolutions is printed.
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/graph/shape/infer.h"
#include "tests/support/device/cpu_step.h"
#include "tests/tools/bench/bench_subject.h"

#define SIDE_MAX 30 // the most rows, and the most pixels of a row, that are computed
#define TAPS     9
#define KERNELS  4

static const struct {
    const char *name;
    const struct inf_cpu_kernel *kernel;
} kernels[KERNELS] = {{"direct", inf_cpu_gemm_kernels},
                      {"F(2)", inf_cpu_winograd_2_kernels},
                      {"F(4)", inf_cpu_winograd_4_kernels},
                      {"F(6)", inf_cpu_winograd_6_kernels}};

// The largest relative errors of a kernel over the convolutions of a model; `count` is the number
// of convolutions.
struct errors {
    double largest, mean_square;
    unsigned count;
};

// A convolution with the weights of the model, its random input x, the results y of a kernel, and
// the exact results.
struct layer {
    size_t height, width, inputs, outputs;
    const float *weights; // [3][3][inputs][outputs]
    float *x, *y;
    double *exact;
};

static double draw_normal(void)
{
    double u = ((double)rand() + 1) / ((double)RAND_MAX + 2);
    double v = (double)rand() / (double)RAND_MAX;
    return sqrt(-2 * log(u)) * cos(2 * acos(-1.0) * v);
}

static void *allocate_zeros(size_t count, size_t size)
{
    void *memory = calloc(count, size);
    if (memory == NULL) {
        fputs("measure_winograd: no memory\n", stderr);
        exit(2);
    }
    return memory;
}

// Adds the products of one tap of the window to the sums of one pixel: x has the input channels of
// the tap, w its weights [inputs][outputs], and `sums` one sum for each output channel.
static void add_tap(const struct layer *layer, const float *x, const float *w, double *sums)
{
    for (size_t i = 0; i < layer->inputs; i++, w += layer->outputs)
        for (size_t c = 0; c < layer->outputs; c++)
            sums[c] += (double)x[i] * (double)w[c];
}

static void compute_exact(const struct layer *layer)
{
    double *sums = layer->exact;
    for (size_t row = 0; row < layer->height; row++)
        for (size_t pixel = 0; pixel < layer->width; pixel++, sums += layer->outputs)
            for (size_t tap = 0; tap < TAPS; tap++) {
                size_t x_row = row + tap / 3;
                size_t x_pixel = pixel + tap % 3;
                if (x_row >= 1 && x_row <= layer->height && x_pixel >= 1 && x_pixel <= layer->width)
                    add_tap(layer,
                            layer->x + ((x_row - 1) * layer->width + x_pixel - 1) * layer->inputs,
                            layer->weights + tap * layer->inputs * layer->outputs, sums);
            }
}

static void compare_results(const struct layer *layer, struct errors *errors)
{
    double error = 0;
    double largest = 0;
    double error_square = 0;
    double square = 0;
    for (size_t i = 0; i < layer->height * layer->width * layer->outputs; i++) {
        double difference = fabs((double)layer->y[i] - layer->exact[i]);
        error = fmax(error, difference);
        largest = fmax(largest, fabs(layer->exact[i]));
        error_square += difference * difference;
        square += layer->exact[i] * layer->exact[i];
    }
    errors->largest = fmax(errors->largest, error / largest);
    errors->mean_square = fmax(errors->mean_square, sqrt(error_square / square));
    errors->count++;
}

// Makes a graph of one convolution without bias and activation. The caller destroys the graph.
static struct inf_graph *make_graph(const struct layer *layer)
{
    struct inf_graph *graph = NULL;
    uint32_t values[2];
    uint32_t node;
    const struct inf_shape x =
        INF_SHAPE(1, (int64_t)layer->height, (int64_t)layer->width, (int64_t)layer->inputs);
    const struct inf_shape w = INF_SHAPE(3, 3, (int64_t)layer->inputs, (int64_t)layer->outputs);
    struct inf_blob *blob = inf_blob_create(inf_shape_elements(&w) * sizeof(float));
    bool made = blob != NULL && inf_graph_create(&graph, NULL) == INF_OK;
    if (made)
        memcpy(blob->data, layer->weights, inf_shape_elements(&w) * sizeof(float));
    made = made && inf_graph_add_value(graph, "x", INF_DTYPE_F32, &x, &values[0], NULL) == INF_OK &&
           inf_graph_add_input(graph, "x", values[0], NULL) == INF_OK &&
           inf_graph_add_const(graph, "w", INF_DTYPE_F32, &w, blob, &values[1], NULL) == INF_OK &&
           inf_graph_add_node(graph, INF_OP_CONV2D, "c", "", values, 2, 1, &node, NULL) == INF_OK;
    if (made) {
        graph->nodes[0].attrs.conv2d.padding = INF_PADDING_SAME;
        made = inf_graph_add_output(graph, "y", graph->nodes[0].outputs[0], NULL) == INF_OK &&
               inf_shape_infer(graph, NULL) == INF_OK;
    }
    if (!made) {
        fputs("measure_winograd: no graph\n", stderr);
        exit(2);
    }
    return graph;
}

static void measure_layer(struct layer *layer, const char *isa_max, struct errors *errors)
{
    const struct cpu_step_options options = {isa_max, 1};
    size_t pixels = layer->height * layer->width;
    layer->x = allocate_zeros(pixels * layer->inputs + 16, sizeof(float));
    layer->y = allocate_zeros(pixels * layer->outputs + 16, sizeof(float));
    layer->exact = allocate_zeros(pixels * layer->outputs, sizeof(double));
    for (size_t i = 0; i < pixels * layer->inputs; i++)
        layer->x[i] = (float)fmax(draw_normal(), 0);
    compute_exact(layer);
    struct inf_graph *graph = make_graph(layer);
    for (size_t k = 0; k < KERNELS; k++)
        if (cpu_step_run(graph, kernels[k].kernel, &options, (const float *const[]){layer->x},
                         layer->y) == INF_OK)
            compare_results(layer, &errors[k]);
    inf_graph_destroy(&graph);
    free(layer->x);
    free(layer->y);
    free(layer->exact);
}

// Measures the node if it is a 3x3 convolution at stride 1 with constant weights.
static void measure_node(const struct inf_graph *graph, const struct inf_node *node,
                         const char *isa_max, struct errors *errors)
{
    struct inf_window h;
    struct inf_window w;
    if (node->op != INF_OP_CONV2D || node->attrs.conv2d.groups != 1 ||
        !inf_graph_is_const(graph, node->inputs[1]))
        return;
    inf_node_windows(graph, node, &h, &w);
    if (h.kernel != 3 || w.kernel != 3 || h.stride != 1 || w.stride != 1 || h.dilation != 1)
        return;
    const struct inf_shape *filter = &graph->values[node->inputs[1]].shape;
    struct layer layer = {.height = (size_t)INF_MIN(h.output, SIDE_MAX),
                          .width = (size_t)INF_MIN(w.output, SIDE_MAX),
                          .inputs = (size_t)filter->dims[2],
                          .outputs = (size_t)filter->dims[3],
                          .weights = graph->values[node->inputs[1]].data->data};
    measure_layer(&layer, isa_max, errors);
}

static enum inf_code measure_model(const struct tool_engine *engine, const char *path,
                                   const char *isa_max, struct inf_error *err) INF_MAY_BLOCK
{
    static const struct bench_inputs inputs = {.dim = 224};
    struct bench_subject subject = {0};
    struct errors errors[KERNELS] = {0};
    enum inf_code code = bench_subject_load(&subject, engine, path, &inputs, err);
    for (uint32_t i = 0; code == INF_OK && i < subject.graph->node_count; i++)
        measure_node(subject.graph, &subject.graph->nodes[i], isa_max, errors);
    for (size_t k = 0; code == INF_OK && k < KERNELS; k++)
        printf("%s %s: %u convolutions, largest %.2g, mean square %.2g\n", subject.name,
               kernels[k].name, errors[k].count, errors[k].largest, errors[k].mean_square);
    bench_subject_unload(&subject);
    return code;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"isa-max", required_argument, NULL, 'i'}, {0}};
    const char *isa_max = NULL;
    struct tool_engine engine;
    struct inf_error err = {0};
    int option;
    int status = 0;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option != 'i')
            return 2;
        isa_max = optarg;
    }
    // `ref` does not replace the weights in the graph by packs, so measure_node() can read them.
    if (tool_engine_open(&engine, "ref", 1, &err) != INF_OK) {
        fprintf(stderr, "measure_winograd: %s\n", err.text);
        return 2;
    }
    for (int i = optind; i < argc; i++)
        if (measure_model(&engine, argv[i], isa_max, &err) != INF_OK) {
            fprintf(stderr, "measure_winograd: %s: %s\n", argv[i], err.text);
            status = 1;
        }
    tool_engine_close(&engine);
    return status;
}
