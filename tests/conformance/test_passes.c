// SPDX-License-Identifier: Apache-2.0
// Passes must not change results. Random graphs like those that exporters write run on the
// reference device `ref` before and after each pass alone, and before and after all passes
// together.
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/half.h"
#include "backends/device/device.h"
#include "backends/graph/pass/pass.h"
#include "backends/graph/shape/infer.h"
#include "backends/ref/ref.h"
#include "tests/support/models/exported_graph.h"

#define SEEDS 1500

// --- running a graph on `ref` ---

// The outputs of one run of a graph, in the order of the graph's outputs.
struct answers {
    float *data[EXPORTED_OUTPUTS_MAX];
    size_t counts[EXPORTED_OUTPUTS_MAX];
    uint32_t count;
};

static void free_answers(struct answers *answers)
{
    for (uint32_t i = 0; i < answers->count; i++)
        free(answers->data[i]);
}

// Fills `data` with numbers derived from `seed`. If `special`, a few of them are special values
// such as NaN.
static void fill_floats(float *data, size_t count, uint64_t seed, bool special)
{
    static const float odd[] = {NAN, INFINITY, -INFINITY, 0.0f, -0.0f, 6.0f};
    for (size_t i = 0; i < count; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        data[i] = (float)(seed >> 40) / (float)(1 << 23) * 4 - 4;
        if (special && (seed >> 33) % 5 == 0)
            data[i] = odd[(seed >> 36) % 6];
    }
}

// Converts floats to 16-bit floats in place. A result lies at or before its operand, so it
// overwrites only operands that are already converted.
static void round_floats(void *data, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        float value;
        memcpy(&value, (const char *)data + i * sizeof value, sizeof value);
        uint16_t half = inf_half_from_float(value);
        memcpy((char *)data + i * sizeof half, &half, sizeof half);
    }
}

static void widen_halves(float *to, const uint16_t *from, size_t count)
{
    for (size_t i = 0; i < count; i++)
        to[i] = inf_half_to_float(from[i]);
}

// Allocates memory for every value of the graph that is not constant, and fills the graph's inputs
// with numbers.
static void bind_values(const struct inf_graph *graph, struct inf_binding *bindings, bool special)
{
    for (uint32_t i = 0; i < graph->value_count; i++) {
        const struct inf_value *value = &graph->values[i];
        size_t size_bytes;
        if (value->data != NULL || !inf_shape_bytes(&value->shape, value->dtype, &size_bytes))
            continue;
        // Twice the bytes, because inputs of 16-bit floats are floats first.
        bindings[i].host = aligned_alloc(64, (2 * size_bytes + 127) / 64 * 64);
        cr_assert_not_null(bindings[i].host);
    }
    for (uint32_t i = 0; i < graph->input_count; i++) {
        const struct inf_value *value = &graph->values[graph->inputs[i].value];
        void *host = bindings[graph->inputs[i].value].host;
        fill_floats(host, inf_shape_elements(&value->shape), i + 7, special);
        if (value->dtype == INF_DTYPE_F16)
            round_floats(host, inf_shape_elements(&value->shape));
    }
}

static void keep_answers(const struct inf_graph *graph, const struct inf_binding *bindings,
                         struct answers *answers)
{
    cr_assert_leq(graph->output_count, EXPORTED_OUTPUTS_MAX);
    answers->count = graph->output_count;
    for (uint32_t i = 0; i < graph->output_count; i++) {
        const struct inf_value *value = &graph->values[graph->outputs[i].value];
        const void *from =
            value->data != NULL ? value->data->data : bindings[graph->outputs[i].value].host;
        cr_assert(value->dtype == INF_DTYPE_F32 || value->dtype == INF_DTYPE_F16);
        answers->counts[i] = inf_shape_elements(&value->shape);
        answers->data[i] = malloc(answers->counts[i] * sizeof(float) + 1);
        cr_assert_not_null(answers->data[i]);
        if (value->dtype == INF_DTYPE_F16)
            widen_halves(answers->data[i], from, answers->counts[i]);
        else
            memcpy(answers->data[i], from, answers->counts[i] * sizeof(float));
    }
}

static void run_graph(struct inf_device *ref, const struct inf_graph *graph, bool special,
                      struct answers *answers)
{
    uint32_t *nodes = calloc(graph->node_count + 1, sizeof *nodes);
    struct inf_binding *bindings = calloc(graph->value_count + 1, sizeof *bindings);
    cr_assert(nodes != NULL && bindings != NULL);
    for (uint32_t i = 0; i < graph->node_count; i++)
        nodes[i] = i;
    bind_values(graph, bindings, special);
    const struct inf_segment segment = {
        .graph = graph, .nodes = nodes, .node_count = graph->node_count, .slots = 1};
    struct inf_program *program = NULL;
    struct inf_error err = {0};
    struct inf_ticket ticket;
    if (graph->node_count > 0) {
        cr_assert_eq(inf_program_compile(&program, ref, &segment, 0, &err), INF_OK, "%s", err.text);
        const struct inf_run once = {.bindings = bindings};
        cr_assert_eq(inf_program_run(program, &once, &ticket, &err), INF_OK, "%s", err.text);
        inf_program_destroy(&program);
    }
    keep_answers(graph, bindings, answers);
    for (uint32_t i = 0; i < graph->value_count; i++)
        free(bindings[i].host);
    free(bindings);
    free(nodes);
}

// --- comparing outputs before and after passes ---

static void compare_answers(const struct answers *before, const struct answers *after,
                            float tolerance, const char *what)
{
    cr_assert_eq(before->count, after->count, "%s", what);
    for (uint32_t i = 0; i < before->count; i++) {
        cr_assert_eq(before->counts[i], after->counts[i], "%s", what);
        for (size_t j = 0; j < before->counts[i]; j++) {
            float was = before->data[i][j];
            float is = after->data[i][j];
            bool same = was == is || (isnan(was) && isnan(is)) ||
                        fabsf(was - is) <= tolerance * (1 + fabsf(was));
            cr_assert(same, "%s: output %u element %zu was %.9g, is %.9g", what, i, j, (double)was,
                      (double)is);
        }
    }
}

// Turns all floats of the graph into 16-bit floats.
static void halve_graph(struct inf_graph *graph)
{
    for (uint32_t i = 0; i < graph->value_count; i++) {
        struct inf_value *value = &graph->values[i];
        size_t count = inf_shape_elements(&value->shape);
        if (value->dtype != INF_DTYPE_F32)
            continue;
        value->dtype = INF_DTYPE_F16;
        if (value->data == NULL)
            continue;
        struct inf_blob *blob = inf_blob_create(count * sizeof(uint16_t));
        cr_assert_not_null(blob);
        for (size_t k = 0; k < count; k++)
            ((uint16_t *)blob->data)[k] = inf_half_from_float(((float *)value->data->data)[k]);
        inf_blob_unref(&value->data);
        value->data = blob;
    }
    for (uint32_t i = 0; i < graph->node_count; i++)
        if (graph->nodes[i].op == INF_OP_CAST && graph->nodes[i].attrs.cast.dtype == INF_DTYPE_F32)
            graph->nodes[i].attrs.cast.dtype = INF_DTYPE_F16;
    struct inf_error err = {0};
    cr_assert_eq(inf_shape_infer(graph, &err), INF_OK, "%s", err.text);
}

// Runs graphs of many seeds before and after the passes, except the passes in `disabled`. If
// `tolerance` is 0, the numbers must be equal.
static void check_passes(uint32_t disabled, float tolerance, bool special)
{
    struct inf_device *ref;
    const struct inf_device_options device_options = {.slots = 1};
    cr_assert_eq(inf_device_open(&ref, &inf_ref_backend, 0, &device_options, NULL), INF_OK);
    const struct inf_pass_options options = {.disabled = disabled,
                                             .evaluator = inf_ref_evaluator()};
    uint32_t nodes_saved = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct inf_graph *graph = exported_graph_make(seed, false);
        struct inf_error err = {0};
        struct answers before = {0};
        struct answers after = {0};
        char what[64];
        snprintf(what, sizeof what, "seed %llu", (unsigned long long)seed);
        run_graph(ref, graph, special, &before);
        uint32_t node_count = graph->node_count;
        cr_assert_eq(inf_passes_run(graph, &options, &err), INF_OK, "%s: %s", what, err.text);
        nodes_saved += node_count - graph->node_count;
        run_graph(ref, graph, special, &after);
        compare_answers(&before, &after, tolerance, what);
        free_answers(&before);
        free_answers(&after);
        inf_graph_destroy(&graph);
    }
    inf_device_unref(&ref);
    cr_assert_gt(nodes_saved, 30, "the passes found something to do");
}

// The mask of disabled passes that leaves only this pass and drop_dead enabled.
#define ONLY(pass) (~(1u << (pass) | 1u << INF_PASS_DROP_DEAD))

Test(passes, drop_identities_changes_no_bit)
{
    check_passes(ONLY(INF_PASS_DROP_IDENTITIES), 0, true);
}

Test(passes, fold_constants_changes_no_bit)
{
    check_passes(ONLY(INF_PASS_FOLD_CONSTANTS), 0, true);
}

// `ref` applies a fused activation before it rounds the sum to a float, so results may differ by
// that rounding.
Test(passes, fuse_activation_changes_rounding_only)
{
    check_passes(ONLY(INF_PASS_FUSE_ACTIVATION), 1e-6f, true);
}

Test(passes, fold_batch_norm_changes_rounding_only)
{
    check_passes(ONLY(INF_PASS_FOLD_BATCH_NORM), 1e-4f, false);
}

Test(passes, fold_operand_changes_rounding_only)
{
    check_passes(ONLY(INF_PASS_FOLD_OPERAND), 1e-4f, false);
}

Test(passes, recognize_changes_rounding_only)
{
    check_passes(ONLY(INF_PASS_RECOGNIZE), 1e-4f, false);
}

Test(passes, fuse_bias_changes_rounding_only)
{
    check_passes(ONLY(INF_PASS_FUSE_BIAS), 1e-4f, false);
}

// The largest difference that rounding every result to 16 bits makes in these graphs, relative to
// the largest element. Normalisations are left out, because they can enlarge the rounding of their
// input without bound.
#define HALF_TOLERANCE 0.02

Test(passes, widen_computes_16_bit_floats_in_fp32)
{
    struct inf_device *ref;
    const struct inf_device_options device_options = {.slots = 1};
    cr_assert_eq(inf_device_open(&ref, &inf_ref_backend, 0, &device_options, NULL), INF_OK);
    const struct inf_pass_options options = {.disabled = ONLY(INF_PASS_WIDEN)};
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct inf_graph *graph = exported_graph_make(seed, true);
        struct inf_error err = {0};
        struct answers before = {0};
        struct answers after = {0};
        halve_graph(graph);
        run_graph(ref, graph, false, &before);
        cr_assert_eq(inf_passes_run(graph, &options, &err), INF_OK, "%s", err.text);
        for (uint32_t i = 0; i < graph->node_count; i++)
            cr_assert(graph->nodes[i].op == INF_OP_CAST ||
                      graph->values[graph->nodes[i].outputs[0]].dtype != INF_DTYPE_F16);
        run_graph(ref, graph, false, &after);
        for (uint32_t i = 0; i < before.count; i++) {
            double largest = 1;
            for (size_t k = 0; k < before.counts[i]; k++)
                largest = fmax(largest, fabs((double)before.data[i][k]));
            for (size_t k = 0; k < before.counts[i]; k++) {
                double was = (double)before.data[i][k];
                double is = (double)after.data[i][k];
                cr_assert(was == is || !isfinite(was) ||
                              fabs(was - is) <= HALF_TOLERANCE * fmin(largest, 65504),
                          "seed %llu: output %u element %zu was %.9g, is %.9g",
                          (unsigned long long)seed, i, k, was, is);
            }
        }
        free_answers(&before);
        free_answers(&after);
        inf_graph_destroy(&graph);
    }
    inf_device_unref(&ref);
}

Test(passes, all_together_change_rounding_only)
{
    check_passes(0, 1e-4f, false);
}

// Runs one pass on the graph, and destroys the graph. The pass must change no bit of the answers of
// `ref`. Returns true if one node is left.
static bool becomes_one_node(struct inf_device *ref, struct inf_graph **graph, enum inf_pass pass)
{
    const struct inf_pass_options options = {.disabled = ONLY(pass)};
    struct answers before = {0};
    struct answers after = {0};
    run_graph(ref, *graph, false, &before);
    cr_assert_eq(inf_passes_run(*graph, &options, NULL), INF_OK);
    bool one = (*graph)->node_count == 1;
    run_graph(ref, *graph, false, &after);
    compare_answers(&before, &after, 0, inf_pass_name(pass));
    free_answers(&before);
    free_answers(&after);
    inf_graph_destroy(graph);
    return one;
}

static uint32_t add_ints(struct inf_graph *graph, const int32_t *elements, uint32_t count,
                         bool pairs)
{
    uint32_t value;
    cr_assert_eq(inf_graph_add_const_i32(graph, "", elements, count, &value, NULL), INF_OK);
    if (pairs)
        graph->values[value].shape = INF_SHAPE(count / 2, 2);
    return value;
}

// Adds a node with three inputs; returns its output.
static uint32_t add_node(struct inf_graph *graph, enum inf_op op, uint32_t x, uint32_t y,
                         uint32_t z)
{
    const uint32_t inputs[] = {x, y, z};
    uint32_t node;
    cr_assert_eq(
        inf_graph_add_node(graph, op, "n", "", inputs, z == INF_VALUE_NONE ? 2 : 3, 1, &node, NULL),
        INF_OK);
    cr_assert_eq(inf_shape_infer(graph, NULL), INF_OK);
    return graph->nodes[node].outputs[0];
}

// The graph is x -> space_to_batch -> convolution -> batch_to_space, tested with many blocks,
// paddings and crops.
Test(passes, fuse_dilation_changes_no_bit)
{
    struct inf_device *ref;
    const struct inf_device_options device_options = {.slots = 1};
    cr_assert_eq(inf_device_open(&ref, &inf_ref_backend, 0, &device_options, NULL), INF_OK);
    uint32_t fused = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct exported_graph maker = {.state = seed};
        const int32_t blocks[] = {1 + (int32_t)exported_draw(&maker, 3),
                                  1 + (int32_t)exported_draw(&maker, 3)};
        int64_t sizes[2];
        int32_t pads[4], crops[4];
        for (int i = 0; i < 2; i++) {
            sizes[i] = 6 * blocks[i] + exported_draw(&maker, 5);
            pads[2 * i] = (int32_t)exported_draw(&maker, 4);
            int64_t rest = (sizes[i] + pads[2 * i]) % blocks[i];
            pads[2 * i + 1] = (int32_t)((rest > 0 ? blocks[i] - rest : 0) + blocks[i]);
            crops[2 * i] = (int32_t)exported_draw(&maker, 3);
            crops[2 * i + 1] = (int32_t)exported_draw(&maker, 2);
        }
        struct inf_shape shape = INF_SHAPE(1, sizes[0], sizes[1], 2);
        struct inf_blob *data = inf_blob_create(2 * 3 * 2 * 3 * sizeof(float));
        cr_assert_not_null(data);
        for (int i = 0; i < 36; i++)
            ((float *)data->data)[i] = (float)(i % 7) - 3.25f;
        uint32_t filter;
        cr_assert_eq(inf_graph_create(&maker.graph, NULL), INF_OK);
        cr_assert_eq(inf_graph_add_value(maker.graph, "x", INF_DTYPE_F32, &shape, &maker.x, NULL),
                     INF_OK);
        cr_assert_eq(inf_graph_add_input(maker.graph, "x", maker.x, NULL), INF_OK);
        cr_assert_eq(inf_graph_add_const(maker.graph, "w", INF_DTYPE_F32, &INF_SHAPE(2, 3, 2, 3),
                                         data, &filter, NULL),
                     INF_OK);
        maker.x =
            add_node(maker.graph, INF_OP_SPACE_TO_BATCH, maker.x,
                     add_ints(maker.graph, blocks, 2, false), add_ints(maker.graph, pads, 4, true));
        maker.x = add_node(maker.graph, INF_OP_CONV2D, maker.x, filter, INF_VALUE_NONE);
        maker.x = add_node(maker.graph, INF_OP_BATCH_TO_SPACE, maker.x,
                           add_ints(maker.graph, blocks, 2, false),
                           add_ints(maker.graph, crops, 4, true));
        exported_add_output(&maker);
        fused += becomes_one_node(ref, &maker.graph, INF_PASS_FUSE_DILATION);
    }
    inf_device_unref(&ref);
    cr_assert_gt(fused, 10);
}

// The graph is x -> pad -> convolution, tested with many paddings.
Test(passes, fuse_pad_changes_no_bit)
{
    struct inf_device *ref;
    const struct inf_device_options device_options = {.slots = 1};
    cr_assert_eq(inf_device_open(&ref, &inf_ref_backend, 0, &device_options, NULL), INF_OK);
    uint32_t fused = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct exported_graph maker = {.state = seed};
        struct inf_shape shape =
            INF_SHAPE(1, 4 + exported_draw(&maker, 4), 4 + exported_draw(&maker, 4), 2);
        cr_assert_eq(inf_graph_create(&maker.graph, NULL), INF_OK);
        cr_assert_eq(inf_graph_add_value(maker.graph, "x", INF_DTYPE_F32, &shape, &maker.x, NULL),
                     INF_OK);
        cr_assert_eq(inf_graph_add_input(maker.graph, "x", maker.x, NULL), INF_OK);
        exported_append_pad(&maker);
        cr_assert_eq(inf_shape_infer(maker.graph, NULL), INF_OK);
        exported_append_conv(&maker);
        cr_assert_eq(inf_shape_infer(maker.graph, NULL), INF_OK);
        exported_add_output(&maker);
        fused += becomes_one_node(ref, &maker.graph, INF_PASS_FUSE_PAD);
    }
    inf_device_unref(&ref);
    cr_assert_gt(fused, 30);
}

// How a graph repeats the heads of keys.
enum repeat {
    BY_BROADCAST,
    BY_ONES, // a product with ones, as an Expand of unknown shape is imported
    BY_GATHER,
    REPEATS
};

// Adds a node whose attributes the caller sets; returns its output. `y` may be INF_VALUE_NONE.
static uint32_t append_node(struct inf_graph *graph, enum inf_op op, uint32_t x, uint32_t y)
{
    const uint32_t inputs[] = {x, y};
    uint32_t node;
    cr_assert_eq(
        inf_graph_add_node(graph, op, "n", "", inputs, y == INF_VALUE_NONE ? 1 : 2, 1, &node, NULL),
        INF_OK);
    return graph->nodes[node].outputs[0];
}

static struct inf_node *last_node(struct inf_graph *graph)
{
    return &graph->nodes[graph->node_count - 1];
}

// Adds nodes that repeat each of the 2 heads of x [1,2,5,4] three times.
static uint32_t repeat_heads(struct inf_graph *graph, uint32_t x, enum repeat how)
{
    uint32_t axes, ones;
    const int32_t wide[] = {1, 2, 3, 5, 4}, narrow[] = {1, 2, 1, 5, 4}, joined[] = {1, 6, 5, 4};
    if (how == BY_GATHER) {
        const int32_t heads[] = {0, 0, 0, 1, 1, 1};
        x = append_node(graph, INF_OP_GATHER, x, add_ints(graph, heads, 6, false));
        last_node(graph)->attrs.gather.axis = 1;
        return x;
    }
    x = append_node(graph, INF_OP_RESHAPE, x, add_ints(graph, narrow, 5, false));
    axes = add_ints(graph, wide, 5, false);
    if (how == BY_ONES) {
        struct inf_blob *data = inf_blob_create(3 * sizeof(float));
        for (int i = 0; i < 3; i++)
            ((float *)data->data)[i] = 1;
        cr_assert_eq(inf_graph_add_const(graph, "ones", INF_DTYPE_F32, &INF_SHAPE(3, 1, 1), data,
                                         &ones, NULL),
                     INF_OK);
        x = append_node(graph, INF_OP_BINARY, x, ones);
        last_node(graph)->attrs.binary.kind = INF_BINARY_MUL;
    } else {
        x = append_node(graph, INF_OP_BROADCAST, x, axes);
    }
    return append_node(graph, INF_OP_RESHAPE, x, add_ints(graph, joined, 4, false));
}

// Makes q [1,6,rows,4] times the repeated keys, transposed by a node or by the product, and the
// result times the repeated values.
static struct inf_graph *make_shared(enum repeat how, int64_t rows, bool by_node)
{
    struct inf_graph *graph;
    uint32_t q, keys;
    cr_assert_eq(inf_graph_create(&graph, NULL), INF_OK);
    cr_assert_eq(
        inf_graph_add_value(graph, "q", INF_DTYPE_F32, &INF_SHAPE(1, 6, rows, 4), &q, NULL),
        INF_OK);
    cr_assert_eq(inf_graph_add_input(graph, "q", q, NULL), INF_OK);
    cr_assert_eq(
        inf_graph_add_value(graph, "keys", INF_DTYPE_F32, &INF_SHAPE(1, 2, 5, 4), &keys, NULL),
        INF_OK);
    cr_assert_eq(inf_graph_add_input(graph, "keys", keys, NULL), INF_OK);
    uint32_t repeated = repeat_heads(graph, keys, how);
    if (by_node) {
        const int32_t swap[] = {0, 1, 3, 2};
        repeated = append_node(graph, INF_OP_TRANSPOSE, repeated, INF_VALUE_NONE);
        struct inf_ints *perm = &last_node(graph)->attrs.transpose.perm;
        perm->count = 4;
        for (int i = 0; i < 4; i++)
            perm->values[i] = swap[i];
    }
    uint32_t scores = append_node(graph, INF_OP_MATMUL, q, repeated);
    last_node(graph)->attrs.matmul.transpose_b = !by_node;
    uint32_t y = append_node(graph, INF_OP_MATMUL, scores, repeat_heads(graph, keys, how));
    cr_assert_eq(inf_graph_add_output(graph, "y", y, NULL), INF_OK);
    struct inf_error err = {0};
    cr_assert_eq(inf_shape_infer(graph, &err), INF_OK, "%s", err.text);
    return graph;
}

Test(passes, share_heads_changes_no_bit)
{
    struct inf_device *ref;
    const struct inf_device_options device_options = {.slots = 1};
    const struct inf_pass_options options = {.disabled = ONLY(INF_PASS_SHARE_HEADS)};
    cr_assert_eq(inf_device_open(&ref, &inf_ref_backend, 0, &device_options, NULL), INF_OK);
    for (int i = 0; i < REPEATS * 2 * 2; i++) {
        struct inf_graph *graph =
            make_shared((enum repeat)(i % REPEATS), i / REPEATS % 2 == 0 ? 1 : 7, i >= 2 * REPEATS);
        struct answers before = {0}, after = {0};
        struct inf_error err = {0};
        run_graph(ref, graph, true, &before);
        cr_assert_eq(inf_passes_run(graph, &options, &err), INF_OK, "%s", err.text);
        // Two products, each between two reshapes, read the keys as they are.
        cr_assert_eq(graph->node_count, 6, "%d: %u nodes", i, graph->node_count);
        run_graph(ref, graph, true, &after);
        compare_answers(&before, &after, 0, "shared heads");
        free_answers(&before);
        free_answers(&after);
        inf_graph_destroy(&graph);
    }
    inf_device_unref(&ref);
}
