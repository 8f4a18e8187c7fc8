// SPDX-License-Identifier: Apache-2.0
// Attention in its long form, softmax(q * keys * scale + mask) * values, on the cpu device at every
// ISA level, compared with the reference device `ref`, which computes node by node. The cpu device
// computes all nodes in one step without storing the scores, if no other node reads them.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backends/base/blob.h"
#include "backends/cpu/kernels/isa.h"
#include "backends/exec/static_executable.h"
#include "backends/graph/shape/infer.h"
#include "backends/registry.h"

enum scale {
    NO_SCALE,
    MULTIPLIED,
    DIVIDED,
    TINY, // so small that scaled queries would lose digits
};

// What a case computes. Queries are [batch,heads,rows,depth], values [batch,groups,keys,width].
struct test_case {
    int64_t batch, heads, groups, rows, keys, depth, width;
    bool by_row; // keys are [batch,groups,keys,depth], else [batch,groups,depth,keys]
    enum scale scale;
    struct inf_shape mask; // rank 0: there is no mask
    float hidden;          // the mask's element for a third of the keys
    float size;            // largest element of the queries
    bool shows_scores;     // the scores are an output too, so that they must be stored
    bool adds_first;       // the mask is added before the scores are scaled
};

struct net {
    struct inf_graph *graph;
    uint32_t random, value;
};

static float draw_number(struct net *net)
{
    net->random = net->random * 1664525u + 1013904223u;
    return (float)(net->random >> 8) / 8388608.0f - 1.0f;
}

static uint32_t add_input(struct net *net, const char *name, struct inf_shape shape)
{
    uint32_t value;
    cr_assert_eq(inf_graph_add_value(net->graph, name, INF_DTYPE_F32, &shape, &value, NULL),
                 INF_OK);
    cr_assert_eq(inf_graph_add_input(net->graph, name, value, NULL), INF_OK);
    return value;
}

static struct inf_node *add_node(struct net *net, enum inf_op op, uint32_t a, uint32_t b)
{
    uint32_t index, inputs[] = {a, b};
    char name[16]; // nodes are pinned by their names
    snprintf(name, sizeof name, "n%u", net->graph->node_count);
    cr_assert_eq(inf_graph_add_node(net->graph, op, name, "", inputs, b == INF_VALUE_NONE ? 1 : 2,
                                    1, &index, NULL),
                 INF_OK);
    net->value = net->graph->nodes[index].outputs[0];
    return &net->graph->nodes[index];
}

static void add_binary(struct net *net, enum inf_binary_kind kind, uint32_t b)
{
    add_node(net, INF_OP_BINARY, net->value, b)->attrs.binary.kind = kind;
}

static void add_scale(struct net *net, const struct test_case *test)
{
    uint32_t value;
    struct inf_blob *blob = inf_blob_create(sizeof(float));
    *(float *)blob->data = test->scale == DIVIDED ? 8 : test->scale == TINY ? 1e-40f : 0.125f;
    cr_assert_eq(
        inf_graph_add_const(net->graph, "scale", INF_DTYPE_F32, &INF_SHAPE(1), blob, &value, NULL),
        INF_OK);
    if (test->scale != NO_SCALE)
        add_binary(net, test->scale == DIVIDED ? INF_BINARY_DIV : INF_BINARY_MUL, value);
}

static void add_reshape(struct net *net, struct inf_shape shape)
{
    uint32_t value;
    struct inf_blob *blob = inf_blob_create(sizeof(int32_t) * (size_t)shape.rank);
    for (int32_t i = 0; i < shape.rank; i++)
        ((int32_t *)blob->data)[i] = (int32_t)shape.dims[i];
    cr_assert_eq(inf_graph_add_const(net->graph, "dims", INF_DTYPE_I32, &INF_SHAPE(shape.rank),
                                     blob, &value, NULL),
                 INF_OK);
    add_node(net, INF_OP_RESHAPE, net->value, value);
}

// Builds the graph. Query heads that share keys are rows of one product, as importers write it.
static void build_net(struct net *net, const struct test_case *test)
{
    struct inf_error err = {0};
    int64_t rows = test->heads / test->groups * test->rows;
    bool shares = test->groups != test->heads;
    *net = (struct net){.random = 1};
    cr_assert_eq(inf_graph_create(&net->graph, NULL), INF_OK);
    uint32_t q = add_input(net, "q", INF_SHAPE(test->batch, test->groups, rows, test->depth));
    uint32_t k =
        add_input(net, "k",
                  test->by_row ? INF_SHAPE(test->batch, test->groups, test->keys, test->depth)
                               : INF_SHAPE(test->batch, test->groups, test->depth, test->keys));
    uint32_t v = add_input(net, "v", INF_SHAPE(test->batch, test->groups, test->keys, test->width));
    uint32_t mask = test->mask.rank > 0 ? add_input(net, "mask", test->mask) : INF_VALUE_NONE;
    add_node(net, INF_OP_MATMUL, q, k)->attrs.matmul.transpose_b = test->by_row;
    if (shares)
        add_reshape(net, INF_SHAPE(test->batch, test->heads, test->rows, test->keys));
    if (!test->adds_first)
        add_scale(net, test);
    if (test->shows_scores)
        cr_assert_eq(inf_graph_add_output(net->graph, "scores", net->value, NULL), INF_OK);
    if (mask != INF_VALUE_NONE)
        add_binary(net, INF_BINARY_ADD, mask);
    if (test->adds_first)
        add_scale(net, test);
    add_node(net, INF_OP_SOFTMAX, net->value, INF_VALUE_NONE)->attrs.softmax.axis = -1;
    if (shares)
        add_reshape(net, INF_SHAPE(test->batch, test->groups, rows, test->keys));
    add_node(net, INF_OP_MATMUL, net->value, v);
    cr_assert_eq(inf_graph_add_output(net->graph, "y", net->value, NULL), INF_OK);
    cr_assert_eq(inf_shape_infer(net->graph, &err), INF_OK, "%s", err.text);
}

struct result {
    struct inf_blob *y, *scores; // scores may be NULL
    bool fused;                  // one step computed the whole attention
    size_t arena_bytes;
};

static struct inf_blob *make_input(struct net *net, const struct test_case *test, uint32_t index)
{
    const struct inf_value *value = &net->graph->values[net->graph->inputs[index].value];
    size_t count = inf_shape_elements(&value->shape);
    struct inf_blob *blob = inf_blob_create(count * sizeof(float));
    float *data = blob->data;
    for (size_t i = 0; i < count; i++) {
        data[i] = draw_number(net) * (index == 0 ? test->size : 1);
        if (index == 3 && draw_number(net) > 0.3f)
            data[i] = test->hidden;
    }
    return blob;
}

// Runs the case on a device. `run_options` may be NULL.
static void run_case(struct result *result, const struct test_case *test, const char *backend,
                     const struct inf_device_options *options,
                     const struct inf_run_options *run_options)
{
    struct net net;
    struct inf_device *devices[2];
    struct inf_error err = {0};
    build_net(&net, test);
    *result = (struct result){0};
    cr_assert_eq(inf_device_open(&devices[0], inf_registry_find(backend), 0, options, NULL),
                 INF_OK);
    cr_assert_eq(inf_device_open(&devices[1], inf_registry_find("ref"), 0, options, NULL), INF_OK);
    struct inf_blob *inputs[4] = {0};
    const void *input_data[4];
    void *output_data[2];
    for (uint32_t i = 0; i < net.graph->input_count; i++) {
        inputs[i] = make_input(&net, test, i);
        input_data[i] = inputs[i]->data;
    }
    for (uint32_t i = 0; i < net.graph->output_count; i++) {
        size_t count = inf_shape_elements(&net.graph->values[net.graph->outputs[i].value].shape);
        struct inf_blob *blob = inf_blob_create(count * sizeof(float));
        output_data[i] = blob->data;
        *(i + 1 == net.graph->output_count ? &result->y : &result->scores) = blob;
    }
    struct inf_executable *executable = NULL;
    cr_assert_eq(
        inf_static_executable_create(&executable, &net.graph, devices, 2, run_options, &err),
        INF_OK, "%s", err.text);
    struct inf_execution execution = {
        .inputs = input_data, .outputs = output_data, .profile = true};
    // A second run finds whatever the first one left in scratch memory.
    for (int run = 0; run < 2; run++)
        cr_assert_eq(inf_executable_run(executable, &execution, &err), INF_OK, "%s", err.text);
    struct inf_node_profile steps[16];
    uint32_t count = inf_executable_profile(executable, 0, steps, 16);
    for (uint32_t i = 0; i < count && i < 16; i++)
        result->fused |= steps[i].kernel != NULL && strcmp(steps[i].kernel, "attention") == 0;
    result->arena_bytes = inf_executable_plan(executable)->arena_bytes;
    inf_executable_destroy(&executable);
    for (int i = 0; i < 4; i++)
        inf_blob_unref(&inputs[i]);
    for (int i = 0; i < 2; i++)
        inf_device_unref(&devices[i]);
}

static void compare_blobs(const struct inf_blob *got, const struct inf_blob *wanted,
                          const struct test_case *test, const char *level)
{
    const float *y = got->data, *exact = wanted->data;
    // The error of a score, which is in proportion to its size, is the relative error of a weight.
    float relative = 1e-5f + 1e-7f * test->size;
    for (size_t i = 0; i < wanted->size_bytes / sizeof(float); i++) {
        if (isnan(exact[i]))
            cr_assert(isnan(y[i]), "%s: element %zu is %g, wanted NaN", level, i, (double)y[i]);
        else
            cr_assert_float_eq(y[i], exact[i], relative * (1 + fabsf(exact[i])),
                               "%s: %lld rows, %lld keys: element %zu is %g, wanted %g", level,
                               (long long)test->rows, (long long)test->keys, i, (double)y[i],
                               (double)exact[i]);
    }
}

// Compares all ISA levels with `ref`. Expects that one step computes the attention if `fused`.
static void check_case(const struct test_case *test, bool fused)
{
    struct result wanted, got;
    run_case(&wanted, test, "ref", &(struct inf_device_options){.slots = 1, .threads = 1}, NULL);
    for (unsigned level = 0; inf_isa_level(level) != NULL; level++)
        for (uint32_t threads = 1; threads <= 3; threads += 2) {
            const char *name = inf_isa_level(level)->name;
            struct inf_device_options options = {.slots = 1, .threads = threads, .isa_max = name};
            run_case(&got, test, "cpu", &options, NULL);
            cr_assert_eq(got.fused, fused, "%s", name);
            compare_blobs(got.y, wanted.y, test, name);
            if (wanted.scores != NULL)
                compare_blobs(got.scores, wanted.scores, test, name);
            if (fused)
                cr_assert_eq(got.arena_bytes, 0, "%s: %zu", name, got.arena_bytes);
            inf_blob_unref(&got.y);
            inf_blob_unref(&got.scores);
        }
    inf_blob_unref(&wanted.y);
    inf_blob_unref(&wanted.scores);
}

// The plainest case, which others change.
static const struct test_case plain = {1,     2,          2,           50, 70, 20,    24,
                                       false, MULTIPLIED, {.rank = 0}, 0,  3,  false, false};

static bool has_cpu(void)
{
    return inf_registry_find("cpu") != NULL;
}

Test(attention, agrees_with_separate_nodes_for_all_shapes)
{
    static const int64_t shapes[][5] = {{16, 16, 1, 1, 1},    {17, 33, 8, 5, 1},
                                        {97, 257, 16, 33, 2}, {200, 300, 3, 16, 1},
                                        {24, 513, 64, 64, 1}, {193, 40, 31, 70, 1}};
    for (size_t i = 0; has_cpu() && i < INF_ARRAY_LENGTH(shapes); i++) {
        struct test_case test = plain;
        test.rows = shapes[i][0];
        test.keys = shapes[i][1];
        test.depth = shapes[i][2];
        test.width = shapes[i][3];
        test.batch = shapes[i][4];
        test.by_row = i % 2 == 0;
        test.scale = (enum scale)(i % 3);
        check_case(&test, true);
    }
}

Test(attention, adds_masks_of_all_shapes)
{
    const struct inf_shape masks[] = {INF_SHAPE(2, 3, 40, 300), INF_SHAPE(2, 1, 1, 300),
                                      INF_SHAPE(40, 300),       INF_SHAPE(300),
                                      INF_SHAPE(1, 3, 40, 1),   INF_SHAPE(3, 1, 1)};
    for (size_t i = 0; has_cpu() && i < INF_ARRAY_LENGTH(masks); i++) {
        struct test_case test = plain;
        test.batch = 2;
        test.heads = test.groups = 3;
        test.rows = 40;
        test.keys = 300;
        test.mask = masks[i];
        test.hidden = i % 2 == 0 ? -INFINITY : -3.4e38f;
        // A row whose scores are all -infinity is NaN.
        check_case(&test, true);
    }
}

Test(attention, hides_whole_blocks_of_keys)
{
    struct test_case test = plain;
    test.keys = 700;
    test.mask = INF_SHAPE(1, 2, 50, 1); // -infinity hides all keys of a row
    test.hidden = -INFINITY;
    if (has_cpu())
        check_case(&test, true);
}

Test(attention, shares_keys_between_heads)
{
    struct test_case test = plain;
    test.batch = 2;
    test.heads = 6;
    test.groups = 2;
    test.rows = 11;
    test.mask = INF_SHAPE(2, 1, 11, 70);
    test.hidden = -INFINITY;
    if (has_cpu())
        check_case(&test, true);
}

// Scores of up to 4000, whose exponentials would overflow without the largest score subtracted. The
// largest score is in different blocks for different rows.
Test(attention, subtracts_the_largest_score_of_all_blocks)
{
    struct test_case test = plain;
    test.keys = 1000;
    test.size = 1000;
    test.width = 8;
    if (has_cpu())
        check_case(&test, true);
}

Test(attention, is_not_fused_if_scores_are_needed_or_rows_are_few)
{
    struct test_case test = plain;
    if (!has_cpu())
        return;
    test.shows_scores = true;
    check_case(&test, false);
    test = plain;
    test.rows = 15;
    check_case(&test, false);
    test = plain;
    test.keys = 15;
    check_case(&test, false);
    test = plain;
    test.scale = TINY;
    check_case(&test, false);
    test = plain; // (scores + mask) * scale is not scores * scale + mask
    test.mask = INF_SHAPE(70);
    test.adds_first = true;
    check_case(&test, false);
}

// --- bf16 ---

// Returns the largest distance between two results. NaN must be where it is wanted.
static float find_distance(const struct inf_blob *got, const struct inf_blob *wanted)
{
    const float *y = got->data, *exact = wanted->data;
    float most = 0;
    for (size_t i = 0; i < wanted->size_bytes / sizeof(float); i++) {
        cr_assert_eq(isnan(y[i]), isnan(exact[i]), "element %zu is %g", i, (double)y[i]);
        most = isnan(exact[i]) ? most : fmaxf(most, fabsf(y[i] - exact[i]));
    }
    return most;
}

static bool has_tiles(const struct inf_isa *isa)
{
    return isa->nn->gemm_tile != NULL;
}

// Computes the case in bf16 at all ISA levels. The elements of queries, keys and values are at most
// 1, so a score has an error of depth / 256 * scale at most, and usually much less.
static void check_in_bf16(const struct test_case *test)
{
    const struct inf_run_options in_bf16 = {.precision = INF_PRECISION_BF16};
    struct result wanted, got;
    run_case(&wanted, test, "ref", &(struct inf_device_options){.slots = 1, .threads = 1}, NULL);
    for (unsigned level = 0; inf_isa_level(level) != NULL; level++)
        for (uint32_t threads = 1; threads <= 3; threads += 2) {
            const struct inf_isa *isa = inf_isa_level(level);
            struct inf_device_options options = {
                .slots = 1, .threads = threads, .isa_max = isa->name};
            run_case(&got, test, "cpu", &options, &in_bf16);
            cr_assert(got.fused);
            float distance = find_distance(got.y, wanted.y);
            cr_assert_lt(distance, 0.005f, "%s: %lld rows, %lld keys: %g", isa->name,
                         (long long)test->rows, (long long)test->keys, (double)distance);
            if (has_tiles(isa))
                cr_assert_gt(distance, 1e-4f, "%s computed in fp32", isa->name);
            inf_blob_unref(&got.y);
        }
    inf_blob_unref(&wanted.y);
}

// Odd depths and odd numbers of keys, which are padded, and keys that do not fill a block.
Test(attention, agrees_in_bf16_for_all_shapes)
{
    static const int64_t shapes[][4] = {{16, 16, 8, 8},     {17, 33, 9, 5},   {97, 257, 17, 33},
                                        {200, 300, 64, 64}, {24, 513, 65, 1}, {193, 40, 31, 70},
                                        {33, 1023, 80, 80}};
    for (size_t i = 0; has_cpu() && i < INF_ARRAY_LENGTH(shapes); i++) {
        struct test_case test = plain;
        test.size = 1;
        test.rows = shapes[i][0];
        test.keys = shapes[i][1];
        test.depth = shapes[i][2];
        test.width = shapes[i][3];
        test.by_row = i % 2 == 0;
        check_in_bf16(&test);
    }
}

Test(attention, adds_masks_in_fp32)
{
    static const float hidden[] = {-INFINITY, -3.4028235e38f};
    for (size_t i = 0; has_cpu() && i < INF_ARRAY_LENGTH(hidden); i++) {
        struct test_case test = plain;
        test.size = 1;
        test.keys = 300;
        test.mask = INF_SHAPE(50, 300);
        test.hidden = hidden[i];
        check_in_bf16(&test);
    }
}

// A node that must stay in fp32 keeps the whole attention in it.
Test(attention, pinned_products_are_in_fp32)
{
    struct test_case test = plain;
    test.size = 1;
    struct net net;
    if (!has_cpu())
        return;
    build_net(&net, &test);
    uint64_t hashes[2] = {0, 0};
    for (uint32_t i = 0, count = 0; i < net.graph->node_count; i++)
        if (net.graph->nodes[i].op == INF_OP_MATMUL && count < 2)
            hashes[count++] = inf_node_hash(&net.graph->nodes[i]);
    inf_graph_destroy(&net.graph);
    for (int i = 0; i < 2; i++) {
        const struct inf_run_options pinned = {
            .precision = INF_PRECISION_BF16, .pinned = &hashes[i], .pinned_count = 1};
        struct inf_device_options options = {.slots = 1, .threads = 1};
        struct result wanted, got;
        run_case(&wanted, &test, "ref", &options, NULL);
        run_case(&got, &test, "cpu", &options, &pinned);
        compare_blobs(got.y, wanted.y, &test, "pinned");
        inf_blob_unref(&got.y);
        inf_blob_unref(&wanted.y);
    }
}
