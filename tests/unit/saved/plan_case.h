// SPDX-License-Identifier: Apache-2.0
// Plans for the tests of this folder: a directory for their files, a graph with everything that a
// plan can have, and functions that write and read plans.
#ifndef INF_TESTS_UNIT_SAVED_PLAN_CASE_H
#define INF_TESTS_UNIT_SAVED_PLAN_CASE_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/graph/shape/infer.h"
#include "backends/graph/shape/verify.h"
#include "backends/saved/plan_cache.h"
#include "backends/saved/saved_graph.h"
#include "tests/unit/graph/graph_kit.h"
#include "tests/unit/saved/forge_plan.h"

// Directory of the files of a test.
static char root[] = "/tmp/inferd-plan-XXXXXX";
static int directory = -1;

static inline void start_test(void)
{
    cr_assert_not_null(mkdtemp(root));
    directory = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    cr_assert_geq(directory, 0);
}

static inline void end_test(void)
{
    char command[64];
    close(directory);
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    cr_assert_eq(system(command), 0);
}

static const struct inf_plan_id id = {.key = 0x1234, .build = "1.2.3 abc"};
static const struct inf_plan_facts facts = {
    .format = "onnx", .content_hash = 77, .notes = {1, 2, 3}};

// The graphs of a plan without classes.
#define GRAPHS(graph) ((const struct inf_graph *const[]){graph})

// A branch that returns its input, or the negative of it.
static inline struct inf_graph *make_branch(bool negative)
{
    struct inf_graph *graph = new_graph();
    uint32_t x = add_input(graph, "a", INF_DTYPE_F32, INF_SHAPE(1, 4));
    if (negative)
        x = node(graph, INF_OP_UNARY, "neg", x);
    add_output(graph, "b", x);
    return graph;
}

// Makes a graph with every kind of attribute, constants of several types, one of them used twice,
// an absent input, a long name and subgraphs.
static inline struct inf_graph *make_graph(void)
{
    char name[600];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    struct inf_graph *graph = new_graph();
    uint32_t x = add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(1, 4, 4, 3));
    uint32_t filter = add_constant(graph, INF_DTYPE_F32, INF_SHAPE(3, 3, 3, 8), NULL);
    float *weights = graph->values[filter].data->data;
    for (int i = 0; i < 3 * 3 * 3 * 8; i++)
        weights[i] = (float)i / 7;
    uint32_t twin;
    cr_assert_eq(inf_graph_add_const(graph, "twin", INF_DTYPE_F32, &graph->values[filter].shape,
                                     inf_blob_ref(graph->values[filter].data), &twin, NULL),
                 INF_OK);
    uint32_t alpha = floats(graph, INF_SHAPE(8), 1, 2, 3, 4, 5, 6, 7, 8);
    uint32_t conv = node(graph, INF_OP_CONV2D, name, x, filter, INF_VALUE_NONE, alpha);
    last_attrs(graph)->conv2d.padding = INF_PADDING_SAME;
    last_attrs(graph)->conv2d.activation = INF_ACTIVATION_PRELU;
    uint32_t again = node(graph, INF_OP_CONV2D, "again", x, twin);
    last_attrs(graph)->conv2d.padding = INF_PADDING_SAME;
    uint32_t sum = node(graph, INF_OP_BINARY, "sum", conv, again);
    uint32_t mean = node(graph, INF_OP_REDUCE, "mean", sum);
    last_attrs(graph)->reduce.axes = (struct inf_ints){.count = 2, .values = {1, -2}};
    uint32_t clip = node(graph, INF_OP_CLIP, "clip", mean);
    last_attrs(graph)->clip.min = 0.25f;
    uint32_t shape = ints(graph, 2, 4);
    uint32_t pairs = node(graph, INF_OP_RESHAPE, "pairs", clip, shape);
    uint32_t first = ints(graph, 0, 0), end = ints(graph, 1, 4), stride = ints(graph, 1, 1);
    uint32_t row = node(graph, INF_OP_SLICE, "row", pairs, first, end, stride);
    uint32_t truth = add_constant(graph, INF_DTYPE_BOOL, INF_SHAPE(2), (const uint8_t[]){1, 0});
    uint32_t any = add_constant(graph, INF_DTYPE_BOOL, SCALAR, (const uint8_t[]){1});
    (void)truth;
    struct inf_graph *branches[2] = {make_branch(false), make_branch(true)};
    uint32_t indices[2];
    for (int i = 0; i < 2; i++)
        cr_assert_eq(inf_graph_add_subgraph(graph, &branches[i], &indices[i], NULL), INF_OK);
    uint32_t chosen = node(graph, INF_OP_BRANCH, "choice", any, row);
    int32_t *numbers[2];
    cr_assert(inf_node_subgraphs(&graph->nodes[graph->node_count - 1], numbers));
    for (int i = 0; i < 2; i++)
        *numbers[i] = (int32_t)indices[i];
    add_output(graph, "y", chosen);
    struct inf_error err = {0};
    cr_assert_eq(inf_shape_infer(graph, &err), INF_OK, "%s", err.text);
    cr_assert_eq(inf_graph_verify(graph, &err), INF_OK, "%s", err.text);
    return graph;
}

static inline void write_plan(const char *name)
{
    struct inf_error err = {0};
    struct inf_saved_plan plan = {.facts = facts, .graph = make_graph()};
    cr_assert_eq(inf_plan_file_write(directory, name, 0600, &id, &plan, &err), INF_OK, "%s",
                 err.text);
    inf_saved_plan_fini(&plan);
}

// Returns a block of bytes that depend on their place and on `first`. The caller frees it.
static inline void *make_part(size_t size, uint8_t first)
{
    uint8_t *part = calloc(1, size + 1);
    for (size_t i = 0; i < size; i++)
        part[i] = (uint8_t)(first + i * 7 + i / 255);
    return part;
}

#define PART_BYTES 700000 // two pieces of data and a part of a third

// Writes a plan with a class that shares the constants of the graph, a form that replaces the
// filter, a second form of it, and a form of a constant that no graph has, which is left out.
static inline void write_whole_plan(const char *name)
{
    struct inf_error err = {0};
    struct inf_graph *graph = make_graph(), *copy = NULL;
    struct inf_blob *stranger = inf_blob_create(8);
    cr_assert_eq(inf_graph_clone(&copy, graph, NULL), INF_OK);
    void *parts[3] = {make_part(PART_BYTES, 1), make_part(100, 2), make_part(64, 3)};
    struct inf_plan_class class = {"cpu", 1, 2, copy};
    struct inf_plan_form forms[] = {
        {graph->values[1].data, {"cpu", {5}, {parts[0], parts[1]}, {PART_BYTES, 100}, NULL}, true},
        {stranger, {"cpu", {6}, {parts[2], NULL}, {64, 0}, NULL}, true},
        {graph->values[1].data, {"other", {7}, {parts[2], NULL}, {64, 0}, NULL}, false}};
    const struct inf_saved_plan plan = {
        .facts = facts, .graph = graph, .classes = &class, .forms = forms, 1, 3};
    cr_assert_eq(inf_plan_file_write(directory, name, 0600, &id, &plan, &err), INF_OK, "%s",
                 err.text);
    for (int i = 0; i < 3; i++)
        free(parts[i]);
    inf_blob_unref(&stranger);
    inf_graph_destroy(&graph);
    inf_graph_destroy(&copy);
}

// Reads a plan, and drops the graph.
static inline enum inf_code try_plan(const char *name, const struct inf_plan_id *wanted,
                                     struct inf_error *err)
{
    struct inf_saved_plan plan;
    *err = (struct inf_error){0};
    enum inf_code code = inf_plan_file_read(&plan, directory, name, wanted, err);
    cr_expect_eq(plan.graph != NULL, code == INF_OK);
    if (code == INF_OK)
        cr_expect_eq(inf_graph_verify(plan.graph, NULL), INF_OK);
    for (uint32_t i = 0; i < plan.class_count; i++)
        cr_expect_eq(inf_graph_verify(plan.classes[i].graph, NULL), INF_OK);
    inf_saved_plan_fini(&plan);
    return code;
}

static inline size_t load_file(const char *name, uint8_t **out_bytes)
{
    int fd = openat(directory, name, O_RDONLY | O_CLOEXEC);
    struct stat status;
    cr_assert_eq(fstat(fd, &status), 0);
    *out_bytes = malloc((size_t)status.st_size);
    cr_assert_eq(read(fd, *out_bytes, (size_t)status.st_size), status.st_size);
    close(fd);
    return (size_t)status.st_size;
}

static inline void store_file(const char *name, const uint8_t *bytes, size_t size)
{
    // Not truncated first: some file systems write a file that was emptied to the disk at once.
    int fd = openat(directory, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    cr_assert_geq(fd, 0);
    cr_assert_eq(write(fd, bytes, size), (ssize_t)size);
    cr_assert_eq(ftruncate(fd, (off_t)size), 0);
    close(fd);
}

#endif
