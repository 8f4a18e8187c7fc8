// SPDX-License-Identifier: Apache-2.0
// Small ONNX files that would need much time or memory to import. Each must be refused with the
// expected text, quickly and with little memory.
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "backends/import/import.h"
#include "backends/registry.h"
#include "proto/core/limits.h"
#include "tests/support/models/onnx_writer.h"

// The most by which the memory of the process may grow during one import, in KiB.
#define GROWTH_KIB_MAX ((768L << 10) * SHADOW_FACTOR)

static char folder[] = "/tmp/inf-bomb-XXXXXX";
static int folder_fd;
static struct inf_error err;

static void set_up(void)
{
    cr_assert_not_null(mkdtemp(folder));
    folder_fd = open(folder, O_RDONLY | O_DIRECTORY);
    cr_assert_geq(folder_fd, 0);
}

static void tear_down(void)
{
    unlinkat(folder_fd, "bomb.onnx", 0);
    close(folder_fd);
    rmdir(folder);
}

// The time limit leaves room for a busy machine. On an idle machine each test takes less than a
// second.
TestSuite(onnx_bombs, .init = set_up, .fini = tear_down, .timeout = 60);

static long peak_kib(void)
{
    struct rusage usage;
    cr_assert_eq(getrusage(RUSAGE_SELF, &usage), 0);
    return usage.ru_maxrss;
}

// Imports the model in `writer` with the options that the daemon uses, then empties the writer.
static enum inf_code import_it(struct inf_pb_writer *writer)
{
    const struct inf_import_options options = {.evaluator = inf_registry_evaluator()};
    struct inf_graph *graph = NULL;
    int fd = openat(folder_fd, "bomb.onnx", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    cr_assert_eq(write(fd, writer->data, writer->size), (ssize_t)writer->size);
    close(fd);
    inf_pb_writer_fini(writer);
    err = (struct inf_error){0};
    enum inf_code code =
        inf_model_import_with(&graph, NULL, folder_fd, "bomb.onnx", &options, &err);
    inf_graph_destroy(&graph);
    return code;
}

static void refuse_model(struct inf_pb_writer *writer, enum inf_code code, const char *part)
{
    long before = peak_kib();
    enum inf_code got = import_it(writer);
    cr_assert_eq(got, code, "%s: %s", inf_code_name(got), err.text);
    cr_assert_not_null(strstr(err.text, part), "%s", err.text);
    cr_assert_leq(peak_kib() - before, GROWTH_KIB_MAX, "%ld KiB", peak_kib() - before);
}

// Begins a model with an input x of one element and an output y. The graph message is left open for
// the caller.
static struct inf_pb_writer open_model(void)
{
    static const int64_t one[] = {1};
    struct inf_pb_writer writer = {0};
    inf_onnx_put_head(&writer, 18);
    inf_pb_open(&writer, 7);
    inf_onnx_put_port(&writer, 11, "x", 1, one, 1);
    inf_onnx_put_port(&writer, 12, "y", 1, one, 1);
    return writer;
}

static void put_node(struct inf_pb_writer *writer, const char *op, const char *a, const char *b,
                     const char *output)
{
    inf_onnx_open_node(writer, op, a, b, output);
    inf_pb_close(writer);
}

// Opens an attribute of type GRAPH, and the graph message inside it.
static void open_graph(struct inf_pb_writer *writer, const char *name)
{
    inf_pb_open(writer, 5);
    inf_pb_put_text(writer, 1, name);
    inf_pb_put_int(writer, 20, 5);
    inf_pb_open(writer, 6);
}

static void close_graph(struct inf_pb_writer *writer)
{
    inf_pb_close(writer);
    inf_pb_close(writer);
}

// --- files with deeply nested messages ---

// Each nesting of a graph in an attribute of a node of a graph adds three levels of messages.
Test(onnx_bombs, graphs_within_graphs_end)
{
    static const int levels[] = {17, 22, 200};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(levels); i++) {
        struct inf_pb_writer writer = open_model();
        for (int level = 0; level < levels[i]; level++) {
            inf_onnx_open_node(&writer, "If", "x", NULL, "y");
            open_graph(&writer, "then_branch");
        }
        for (int level = 0; level < levels[i]; level++) {
            close_graph(&writer);
            inf_pb_close(&writer);
        }
        inf_pb_close(&writer);
        enum inf_code code = import_it(&writer);
        cr_assert(code == INF_EXHAUSTED || code == INF_INVALID, "%s: %s", inf_code_name(code),
                  err.text);
        if (levels[i] > 21)
            cr_assert_not_null(strstr(err.text, "deep"), "%s", err.text);
    }
}

// --- files with repeated messages ---

// Protobuf merges repeated messages, and would copy the merged message each time. The importer
// refuses repeated messages.
Test(onnx_bombs, a_graph_that_is_there_often_is_not_merged)
{
    struct inf_pb_writer writer = open_model();
    put_node(&writer, "Relu", "x", NULL, "y");
    inf_pb_close(&writer);
    for (int i = 0; i < 1 << 16; i++) {
        inf_pb_open(&writer, 7);
        inf_pb_close(&writer);
    }
    refuse_model(&writer, INF_INVALID, "twice");
}

// --- files with more nodes, initialisers, fields or inputs than allowed ---

static void put_empty(struct inf_pb_writer *writer, uint32_t field, size_t count)
{
    for (size_t i = 0; i < count; i++)
        inf_pb_put_bytes(writer, field, NULL, 0);
}

Test(onnx_bombs, nodes_are_counted)
{
    struct inf_pb_writer writer = open_model();
    put_empty(&writer, 1, INF_LIMIT_GRAPH_NODES + 1);
    inf_pb_close(&writer);
    refuse_model(&writer, INF_EXHAUSTED, "1048576");
}

Test(onnx_bombs, initialisers_are_counted)
{
    struct inf_pb_writer writer = open_model();
    put_empty(&writer, 5, INF_LIMIT_GRAPH_VALUES + 1);
    inf_pb_close(&writer);
    refuse_model(&writer, INF_EXHAUSTED, "2097152");
}

Test(onnx_bombs, fields_are_counted_even_unknown_ones)
{
    struct inf_pb_writer writer = open_model();
    put_node(&writer, "Relu", "x", NULL, "y");
    inf_pb_close(&writer);
    for (size_t i = 0; i < (size_t)5 << 20; i++)
        inf_pb_put_int(&writer, 15, 1);
    refuse_model(&writer, INF_EXHAUSTED, "fields");
}

Test(onnx_bombs, inputs_of_a_node_are_counted)
{
    struct inf_pb_writer writer = open_model();
    inf_onnx_open_node(&writer, "Sum", "x", NULL, "y");
    for (uint32_t i = 0; i < INF_LIMIT_NODE_INPUTS; i++)
        inf_pb_put_text(&writer, 1, "x");
    inf_pb_close(&writer);
    inf_pb_close(&writer);
    refuse_model(&writer, INF_EXHAUSTED, "4096");
}

// Two functions with the same name are refused, because a call would be ambiguous.
Test(onnx_bombs, functions_are_there_once)
{
    struct inf_pb_writer writer = open_model();
    put_node(&writer, "F", "x", NULL, "y");
    inf_pb_close(&writer);
    for (int i = 0; i < 2; i++) {
        inf_pb_open(&writer, 25);
        inf_pb_put_text(&writer, 1, "F");
        inf_pb_put_text(&writer, 10, "mine");
        inf_pb_close(&writer);
    }
    refuse_model(&writer, INF_INVALID, "'mine::F' is there twice");
}

// --- files whose graph grows during the import ---

// Each function calls the previous one twice, which makes 2^30 nodes.
Test(onnx_bombs, functions_that_double_end)
{
    char name[16], callee[16];
    struct inf_pb_writer writer = {0};
    inf_onnx_put_head(&writer, 18);
    inf_pb_open(&writer, 8);
    inf_pb_put_text(&writer, 1, "mine");
    inf_pb_put_int(&writer, 2, 1);
    inf_pb_close(&writer);
    for (int i = 0; i < 20; i++) {
        inf_pb_open(&writer, 25);
        snprintf(name, sizeof name, "F%d", i);
        snprintf(callee, sizeof callee, "F%d", i - 1);
        inf_pb_put_text(&writer, 1, name);
        inf_pb_put_text(&writer, 4, "a");
        inf_pb_put_text(&writer, 5, "c");
        inf_pb_put_text(&writer, 10, "mine");
        inf_pb_open(&writer, 9);
        inf_pb_put_int(&writer, 2, 18);
        inf_pb_close(&writer);
        static const char *const names[] = {"a", "b", "c"};
        for (int k = 0; k < 2; k++) {
            inf_pb_open(&writer, 7);
            inf_pb_put_text(&writer, 1, names[k]);
            inf_pb_put_text(&writer, 2, names[k + 1]);
            inf_pb_put_text(&writer, 4, i == 0 ? "Relu" : callee);
            if (i > 0)
                inf_pb_put_text(&writer, 7, "mine");
            inf_pb_close(&writer);
        }
        inf_pb_close(&writer);
    }
    inf_pb_open(&writer, 7);
    static const int64_t one[] = {1};
    inf_onnx_put_port(&writer, 11, "x", 1, one, 1);
    inf_onnx_put_port(&writer, 12, "y", 1, one, 1);
    inf_onnx_open_node(&writer, "F19", "x", NULL, "y");
    inf_pb_put_text(&writer, 7, "mine");
    inf_pb_close(&writer);
    inf_pb_close(&writer);
    refuse_model(&writer, INF_EXHAUSTED, "nodes");
}

// The model has nested loops of 256 iterations. Unrolling all of them would take too many nodes.
Test(onnx_bombs, loops_within_loops_end)
{
    static const int64_t rounds[] = {250};
    struct inf_pb_writer writer = open_model();
    inf_onnx_put_int64s(&writer, "rounds", rounds, 1);
    for (int i = 0; i < 6; i++) {
        inf_onnx_open_node(&writer, "Loop", "rounds", "", i == 0 ? "y" : "out");
        inf_pb_put_text(&writer, 1, i == 0 ? "x" : "carried");
        open_graph(&writer, "body");
        inf_onnx_put_port(&writer, 11, "round", 7, NULL, 0);
        inf_onnx_put_port(&writer, 11, "go", 9, NULL, 0);
        inf_onnx_put_port(&writer, 11, "carried", 1, NULL, 0);
        inf_onnx_put_port(&writer, 12, "go", 9, NULL, 0);
        inf_onnx_put_port(&writer, 12, "out", 1, NULL, 0);
    }
    put_node(&writer, "Relu", "carried", NULL, "out");
    for (int i = 0; i < 6; i++) {
        close_graph(&writer);
        inf_pb_close(&writer);
    }
    inf_pb_close(&writer);
    refuse_model(&writer, INF_EXHAUSTED, "nodes");
}

// The model has many Ifs with branches of different rank. The nodes after each If are lowered
// twice, once per branch.
Test(onnx_bombs, branches_that_diverge_end)
{
    static const char *const sides[] = {"then_branch", "else_branch"};
    char name[2][16];
    static const int64_t axes[] = {0};
    struct inf_pb_writer writer = {0};
    inf_onnx_put_head(&writer, 18);
    inf_pb_open(&writer, 7);
    static const int64_t one[] = {1};
    inf_onnx_put_port(&writer, 11, "v0", 1, one, 1);
    inf_onnx_put_port(&writer, 11, "go", 9, NULL, 0);
    inf_onnx_put_int64s(&writer, "axes", axes, 1);
    for (int i = 0; i < 40; i++) {
        snprintf(name[0], sizeof name[0], "v%d", i);
        snprintf(name[1], sizeof name[1], "v%d", i + 1);
        inf_onnx_open_node(&writer, "If", "go", NULL, name[1]);
        for (int k = 0; k < 2; k++) {
            open_graph(&writer, sides[k]);
            inf_onnx_open_node(&writer, k == 0 ? "Unsqueeze" : "Relu", name[0],
                               k == 0 ? "axes" : NULL, "side");
            inf_pb_close(&writer);
            inf_onnx_put_port(&writer, 12, "side", 1, NULL, 0);
            close_graph(&writer);
        }
        inf_pb_close(&writer);
    }
    inf_onnx_put_port(&writer, 12, "v40", 1, one, 1);
    inf_pb_close(&writer);
    enum inf_code code = import_it(&writer);
    cr_assert(code == INF_EXHAUSTED || code == INF_INVALID, "%s: %s", inf_code_name(code),
              err.text);
}

// Every iteration doubles the size of the previous result. Given such a loop, expect that constant
// folding stops at its limit.
Test(onnx_bombs, constants_that_double_stay_nodes)
{
    static const int64_t shape[] = {1024};
    char name[2][16];
    struct inf_pb_writer writer = open_model();
    inf_onnx_put_int64s(&writer, "shape", shape, 1);
    put_node(&writer, "ConstantOfShape", "shape", NULL, "v0");
    for (int i = 0; i < 30; i++) {
        snprintf(name[0], sizeof name[0], "v%d", i);
        snprintf(name[1], sizeof name[1], "v%d", i + 1);
        inf_onnx_open_node(&writer, "Concat", name[0], name[0], name[1]);
        inf_onnx_put_attr_int(&writer, "axis", 0);
        inf_pb_close(&writer);
    }
    put_node(&writer, "Add", "x", "v30", "y");
    inf_pb_close(&writer);
    long before = peak_kib();
    enum inf_code code = import_it(&writer);
    cr_assert_neq(code, INF_OK);
    cr_assert_leq(peak_kib() - before, GROWTH_KIB_MAX);
}

// The dims of the initialiser declare 4 GiB, but the file has no data for it.
Test(onnx_bombs, dims_are_no_promise)
{
    struct inf_pb_writer writer = open_model();
    inf_pb_open(&writer, 5);
    inf_pb_put_int(&writer, 1, 1 << 15);
    inf_pb_put_int(&writer, 1, 1 << 14);
    inf_pb_put_int(&writer, 2, 1);
    inf_pb_put_text(&writer, 8, "w");
    inf_pb_close(&writer);
    put_node(&writer, "Add", "x", "w", "y");
    inf_pb_close(&writer);
    refuse_model(&writer, INF_INVALID, "tensor 'w'");
}

// The model inserts a sequence into itself many times.
Test(onnx_bombs, sequences_are_counted)
{
    char name[2][16];
    struct inf_pb_writer writer = open_model();
    inf_onnx_open_node(&writer, "SequenceConstruct", "x", NULL, "s0");
    for (int i = 0; i < 4000; i++)
        inf_pb_put_text(&writer, 1, "x");
    inf_pb_close(&writer);
    for (int i = 0; i < 1000; i++) {
        snprintf(name[0], sizeof name[0], "s%d", i);
        snprintf(name[1], sizeof name[1], "s%d", i + 1);
        put_node(&writer, "SequenceInsert", name[0], "x", name[1]);
    }
    inf_pb_close(&writer);
    refuse_model(&writer, INF_EXHAUSTED, "sequences");
}
