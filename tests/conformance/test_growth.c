// SPDX-License-Identifier: Apache-2.0
// The time from file to executable must grow linearly with the number of nodes, not quadratically.
// Models of N and of 8N nodes in several shapes are imported, rewritten by the passes and compiled,
// and the processor times are compared.
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "backends/exec/dynamic/dynamic_executable.h"
#include "backends/exec/static_executable.h"
#include "backends/graph/pass/pass.h"
#include "backends/import/import.h"
#include "backends/registry.h"
#include "tests/support/models/onnx_writer.h"

#define NODES  2500u // nodes of the smaller model
#define FACTOR 8u    // the larger model has this many times as many
// The larger model may take this many times as long as the smaller one. Linear growth gives 8, and
// quadratic growth 64; a quadratic part that takes as long as the rest for the smaller model gives
// 36. Two things add to linear growth: the smaller model may fit into a CPU cache that is too small
// for the larger one, or that others use (together times 2.8 was seen beside other tests), and two
// threads of one core slow each other down, perhaps only while the larger one is compiled.
#define RATIO_MAX 32.0
// The least number of times that each model is compiled, and the most, which applies if the times
// exceed the ratio.
#define TRIES_LEAST 2
#define TRIES_MAX   8
// Processor times below this are too short to compare.
#define TIME_MIN_S 0.15

static char folder[] = "/tmp/inf-growth-XXXXXX";
static int folder_fd;

static void set_up(void)
{
    cr_assert_not_null(mkdtemp(folder));
    folder_fd = open(folder, O_RDONLY | O_DIRECTORY);
    cr_assert_geq(folder_fd, 0);
}

static void tear_down(void)
{
    unlinkat(folder_fd, "m.onnx", 0);
    close(folder_fd);
    rmdir(folder);
}

TestSuite(growth, .init = set_up, .fini = tear_down, .timeout = 300);

static double read_clock(void)
{
    struct timespec time;
    cr_assert_eq(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time), 0);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

// Imports the model that `writer` holds, compiles it for `backend`, and empties the writer. Returns
// the processor time that this took, in seconds.
static double compile_it(struct inf_pb_writer *writer, const char *backend)
{
    const struct inf_import_options options = {.evaluator = inf_registry_evaluator()};
    struct inf_device_options device_options = {.slots = 1, .threads = 1};
    const struct inf_pass_options passes = {.evaluator = inf_registry_evaluator()};
    struct inf_device *devices[2] = {NULL, NULL};
    const struct inf_run_options run_options = {0};
    struct inf_graph *graph = NULL;
    struct inf_executable *executable = NULL;
    struct inf_error err = {0};
    int fd = openat(folder_fd, "m.onnx", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    cr_assert_eq(write(fd, writer->data, writer->size), (ssize_t)writer->size);
    close(fd);
    inf_pb_writer_fini(writer);
    cr_assert_eq(inf_device_open(&devices[0], inf_registry_find(backend), 0, &device_options, NULL),
                 INF_OK);
    cr_assert_eq(inf_device_open(&devices[1], inf_registry_find("ref"), 0, &device_options, NULL),
                 INF_OK);
    double begin = read_clock();
    cr_assert_eq(inf_model_import_with(&graph, NULL, folder_fd, "m.onnx", &options, &err), INF_OK,
                 "%s", err.text);
    cr_assert_eq(inf_passes_run(graph, &passes, &err), INF_OK, "%s", err.text);
    enum inf_code code =
        inf_graph_needs_values(graph)
            ? inf_dynamic_executable_create(&executable, &graph, passes.evaluator, devices, 2,
                                            &run_options, &err)
            : inf_static_executable_create(&executable, &graph, devices, 2, NULL, &err);
    cr_assert_eq(code, INF_OK, "%s", err.text);
    double took = read_clock() - begin;
    inf_executable_destroy(&executable);
    for (uint32_t i = 0; i < 2; i++)
        inf_device_unref(&devices[i]);
    return took;
}

static const int64_t image[] = {1, 2, 4, 4};
// The images are larger than the CPU caches, so that row pipelines are considered.
static const int64_t large_image[] = {1, 2, 256, 256};

// Begins the graph of a model with an input x and an output y of this shape [1, 2, h, w].
static void open_graph_of(struct inf_pb_writer *writer, const int64_t *shape)
{
    static const int64_t weights[] = {2, 2, 1, 1};
    static const float values[] = {1, 0.5f, 0.25f, 1};
    inf_pb_open(writer, 7);
    inf_onnx_put_port(writer, 11, "x", 1, shape, 4);
    inf_onnx_put_port(writer, 12, "y", 1, shape, 4);
    inf_onnx_put_floats(writer, "w", weights, 4, values);
}

static void open_graph(struct inf_pb_writer *writer)
{
    open_graph_of(writer, image);
}

static void put_node(struct inf_pb_writer *writer, const char *op, const char *a, const char *b,
                     const char *output)
{
    inf_onnx_open_node(writer, op, a, b, output);
    inf_pb_close(writer);
}

// Returns the name of result `index` of `count` results. The last result is the model's output.
static const char *name_of(char name[16], const char *prefix, uint32_t index, uint32_t count)
{
    if (index + 1 == count)
        return "y";
    snprintf(name, 16, "%s%u", prefix, index);
    return name;
}

// Writes a chain of `count` nodes whose operators are those in `ops`, repeated in order. If
// `seconds` has a name for an operator, its nodes read that value as second operand.
static void put_row(struct inf_pb_writer *writer, uint32_t count, const char *const *ops,
                    const char *const *seconds, uint32_t kinds)
{
    char from[16] = "x";
    char to[16];
    open_graph(writer);
    for (uint32_t i = 0; i < count; i++) {
        const char *output = name_of(to, "v", i, count);
        put_node(writer, ops[i % kinds], from, seconds[i % kinds], output);
        snprintf(from, sizeof from, "%s", output);
    }
    inf_pb_close(writer);
}

static void write_chain(struct inf_pb_writer *writer, uint32_t count)
{
    inf_onnx_put_head(writer, 18);
    put_row(writer, count, (const char *const[]){"Sin"}, (const char *const[]){NULL}, 1);
}

static void write_bounds(struct inf_pb_writer *writer, uint32_t count)
{
    inf_onnx_put_head(writer, 18);
    put_row(writer, count, (const char *const[]){"Relu", "Identity", "Neg"},
            (const char *const[]){NULL, NULL, NULL}, 3);
}

static void write_convolutions(struct inf_pb_writer *writer, uint32_t count)
{
    inf_onnx_put_head(writer, 18);
    put_row(writer, count, (const char *const[]){"Conv", "Relu"}, (const char *const[]){"w", NULL},
            2);
}

// Writes residual blocks: v = v + conv(v).
static void write_residual_blocks(struct inf_pb_writer *writer, uint32_t count)
{
    char from[16] = "x";
    char between[16];
    char to[16];
    inf_onnx_put_head(writer, 18);
    open_graph(writer);
    for (uint32_t i = 0; i < count / 2; i++) {
        snprintf(between, sizeof between, "c%u", i);
        const char *output = name_of(to, "v", i, count / 2);
        put_node(writer, "Conv", from, "w", between);
        put_node(writer, "Add", from, between, output);
        snprintf(from, sizeof from, "%s", output);
    }
    inf_pb_close(writer);
}

// Writes large images v[i + 1] = conv(v[i]) + v[i - 1]: each image is read by the next two blocks,
// so that the whole model could be one row pipeline.
static void write_large_blocks(struct inf_pb_writer *writer, uint32_t count)
{
    char names[3][16] = {"first", "second"};
    char between[16];
    inf_onnx_put_head(writer, 18);
    open_graph_of(writer, large_image);
    put_node(writer, "Conv", "x", "w", names[0]);
    put_node(writer, "Conv", names[0], "w", names[1]);
    for (uint32_t i = 0; i < count / 2; i++) {
        snprintf(between, sizeof between, "c%u", i);
        const char *output = name_of(names[2], "v", i, count / 2);
        put_node(writer, "Conv", names[1], "w", between);
        put_node(writer, "Add", names[0], between, output);
        memcpy(names[0], names[1], sizeof names[0]);
        snprintf(names[1], sizeof names[1], "%s", output);
    }
    inf_pb_close(writer);
}

// Opens a branch of an If node: attribute `name` of type graph, whose output is `output`.
static void open_branch(struct inf_pb_writer *writer, const char *name, const char *output)
{
    inf_pb_open(writer, 5);
    inf_pb_put_text(writer, 1, name);
    inf_pb_put_int(writer, 20, 5); // AttributeProto.GRAPH
    inf_pb_open(writer, 6);
    inf_pb_put_text(writer, 2, name);
    inf_onnx_put_port(writer, 12, output, 1, image, 4);
}

static void close_branch(struct inf_pb_writer *writer)
{
    inf_pb_close(writer);
    inf_pb_close(writer);
}

// Writes the branch `name`, which computes one node.
static void put_branch(struct inf_pb_writer *writer, const char *name, const char *op,
                       const char *from)
{
    open_branch(writer, name, "b");
    put_node(writer, op, from, NULL, "b");
    close_branch(writer);
}

// Writes If nodes in a row. One branch of each holds another If node, so that there are four nodes
// for each outer If node.
static void write_branches(struct inf_pb_writer *writer, uint32_t count)
{
    char from[16] = "x";
    char to[16];
    inf_onnx_put_head(writer, 18);
    open_graph(writer);
    inf_onnx_put_port(writer, 11, "go", 9, NULL, 0);
    for (uint32_t i = 0; i < count / 4; i++) {
        const char *output = name_of(to, "v", i, count / 4);
        inf_onnx_open_node(writer, "If", "go", NULL, output);
        open_branch(writer, "then_branch", "t");
        inf_onnx_open_node(writer, "If", "go", NULL, "t");
        put_branch(writer, "then_branch", "Sin", from);
        put_branch(writer, "else_branch", "Cos", from);
        inf_pb_close(writer);
        close_branch(writer);
        put_branch(writer, "else_branch", "Neg", from);
        inf_pb_close(writer);
        snprintf(from, sizeof from, "%s", output);
    }
    inf_pb_close(writer);
}

// Writes v = sin(v) + cos(v) repeatedly, until the model has `count` nodes.
static void write_diamonds(struct inf_pb_writer *writer, uint32_t count)
{
    char from[16] = "x";
    char left[16];
    char right[16];
    char to[16];
    inf_onnx_put_head(writer, 18);
    open_graph(writer);
    for (uint32_t i = 0; i < count / 3; i++) {
        snprintf(left, sizeof left, "l%u", i);
        snprintf(right, sizeof right, "r%u", i);
        const char *output = name_of(to, "v", i, count / 3);
        put_node(writer, "Sin", from, NULL, left);
        put_node(writer, "Cos", from, NULL, right);
        put_node(writer, "Add", left, right, output);
        snprintf(from, sizeof from, "%s", output);
    }
    inf_pb_close(writer);
}

// Writes nodes that all read x, and a chain of nodes that adds up their results. All results stay
// alive until they are added.
static void write_fan(struct inf_pb_writer *writer, uint32_t count)
{
    char a[16];
    char from[16] = "a0";
    char to[16];
    inf_onnx_put_head(writer, 18);
    open_graph(writer);
    for (uint32_t i = 0; i <= count / 2; i++) {
        snprintf(a, sizeof a, "a%u", i);
        put_node(writer, "Sin", "x", NULL, a);
    }
    for (uint32_t i = 0; i < count / 2; i++) {
        snprintf(a, sizeof a, "a%u", i + 1);
        const char *output = name_of(to, "v", i, count / 2);
        put_node(writer, "Add", from, a, output);
        snprintf(from, sizeof from, "%s", output);
    }
    inf_pb_close(writer);
}

// Writes nodes that each have their own weight.
static void write_initialisers(struct inf_pb_writer *writer, uint32_t count)
{
    static const int64_t channels[] = {2, 1, 1};
    static const float values[] = {1, 2};
    char weight[16];
    char from[16] = "x";
    char to[16];
    inf_onnx_put_head(writer, 18);
    open_graph(writer);
    for (uint32_t i = 0; i < count; i++) {
        snprintf(weight, sizeof weight, "k%u", i);
        inf_onnx_put_floats(writer, weight, channels, 3, values);
        const char *output = name_of(to, "v", i, count);
        put_node(writer, i % 2 ? "Mul" : "Add", from, weight, output);
        snprintf(from, sizeof from, "%s", output);
    }
    inf_pb_close(writer);
}

// Writes one function per node. Each node calls the function that is written last.
static void write_functions(struct inf_pb_writer *writer, uint32_t count)
{
    char name[16];
    char from[16] = "x";
    char to[16];
    inf_onnx_put_head(writer, 18);
    inf_pb_open(writer, 8);
    inf_pb_put_text(writer, 1, "mine");
    inf_pb_put_int(writer, 2, 1);
    inf_pb_close(writer);
    for (uint32_t i = 0; i < count; i++) {
        snprintf(name, sizeof name, "F%u", i);
        inf_pb_open(writer, 25);
        inf_pb_put_text(writer, 1, name);
        inf_pb_put_text(writer, 4, "a");
        inf_pb_put_text(writer, 5, "b");
        inf_pb_open(writer, 7);
        inf_pb_put_text(writer, 1, "a");
        inf_pb_put_text(writer, 2, "b");
        inf_pb_put_text(writer, 4, "Sin");
        inf_pb_close(writer);
        inf_pb_open(writer, 9);
        inf_pb_put_int(writer, 2, 18);
        inf_pb_close(writer);
        inf_pb_put_text(writer, 10, "mine");
        inf_pb_close(writer);
    }
    open_graph(writer);
    for (uint32_t i = 0; i < count; i++) {
        const char *output = name_of(to, "v", i, count);
        inf_onnx_open_node(writer, name, from, NULL, output);
        inf_pb_put_text(writer, 7, "mine");
        inf_pb_close(writer);
        snprintf(from, sizeof from, "%s", output);
    }
    inf_pb_close(writer);
}

static const struct {
    const char *name;
    void (*write)(struct inf_pb_writer *writer, uint32_t count);
} shapes[] = {
    {"chain", write_chain},
    {"bounds", write_bounds},
    {"convolutions", write_convolutions},
    {"residual blocks", write_residual_blocks},
    {"large blocks", write_large_blocks},
    {"branches", write_branches},
    {"diamonds", write_diamonds},
    {"fan", write_fan},
    {"initialisers", write_initialisers},
    {"functions", write_functions},
};

// Compiles a graph of `count` nodes once more, and keeps the shortest time in *least.
static void measure_shape(uint32_t shape, uint32_t count, const char *backend, double *least)
{
    struct inf_pb_writer writer = {0};
    shapes[shape].write(&writer, count);
    double took = compile_it(&writer, backend);
    *least = took < *least ? took : *least;
}

static bool grows_linearly(double small, double large)
{
    return large < TIME_MIN_S || large <= RATIO_MAX * small;
}

static void check_growth(const char *backend)
{
    if (inf_registry_find(backend) == NULL)
        return;
    for (uint32_t i = 0; i < INF_ARRAY_LENGTH(shapes); i++) {
        double small = 1e9, large = 1e9;
        // Other work on the machine only adds time, so that more tries come closer to the truth.
        for (int k = 0; k < TRIES_LEAST || (k < TRIES_MAX && !grows_linearly(small, large)); k++) {
            measure_shape(i, NODES, backend, &small);
            measure_shape(i, FACTOR * NODES, backend, &large);
        }
        if (getenv("INF_GROWTH_PRINT") != NULL)
            fprintf(stderr, "%s %s: %.3f s, %.3f s\n", backend, shapes[i].name, small, large);
        cr_expect(grows_linearly(small, large), "%s on %s: %u nodes took %.3f s, %u nodes %.3f s",
                  shapes[i].name, backend, NODES, small, FACTOR * NODES, large);
    }
}

Test(growth, compiling_for_ref_takes_time_in_proportion_to_the_nodes)
{
    check_growth("ref");
}

Test(growth, compiling_for_cpu_takes_time_in_proportion_to_the_nodes)
{
    check_growth("cpu");
}

// --- cancellation ---

static const atomic_bool is_set = true;

static struct inf_graph *import_chain(const atomic_bool *cancelled, enum inf_code wanted)
{
    const struct inf_import_options options = {.evaluator = inf_registry_evaluator(),
                                               .cancelled = cancelled};
    struct inf_pb_writer writer = {0};
    struct inf_graph *graph = NULL;
    struct inf_error err = {0};
    write_convolutions(&writer, 16);
    int fd = openat(folder_fd, "m.onnx", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    cr_assert_eq(write(fd, writer.data, writer.size), (ssize_t)writer.size);
    close(fd);
    inf_pb_writer_fini(&writer);
    enum inf_code code = inf_model_import_with(&graph, NULL, folder_fd, "m.onnx", &options, &err);
    cr_assert_eq(code, wanted, "%s", err.text);
    return graph;
}

Test(growth, a_cancelled_import_or_compilation_ends_at_its_next_step)
{
    const struct inf_pass_options passes = {.evaluator = inf_registry_evaluator(),
                                            .cancelled = &is_set};
    const struct inf_run_options options = {.cancelled = &is_set};
    struct inf_executable *executable = NULL;
    struct inf_error err = {0};
    cr_assert_null(import_chain(&is_set, INF_CANCELLED));
    struct inf_graph *graph = import_chain(NULL, INF_OK);
    cr_expect_eq(inf_passes_run(graph, &passes, &err), INF_CANCELLED, "%s", err.text);
    inf_graph_destroy(&graph);
    static const char *const backends[] = {"ref", "cpu"};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(backends); i++) {
        struct inf_device_options device_options = {.slots = 1, .threads = 1};
        struct inf_device *device = NULL;
        if (inf_registry_find(backends[i]) == NULL)
            continue;
        cr_assert_eq(
            inf_device_open(&device, inf_registry_find(backends[i]), 0, &device_options, NULL),
            INF_OK);
        graph = import_chain(NULL, INF_OK);
        cr_expect_eq(inf_static_executable_create(&executable, &graph, &device, 1, &options, &err),
                     INF_CANCELLED, "%s: %s", backends[i], err.text);
        inf_device_unref(&device);
    }
}
