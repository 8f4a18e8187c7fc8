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

#define SEEDS       1500
#define OUTPUTS_MAX 8

// --- running a graph on `ref` ---

// The outputs of one run of a graph, in the order of the graph's outputs.
struct answers {
    float *data[OUTPUTS_MAX];
    size_t counts[OUTPUTS_MAX];
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
    cr_assert_leq(graph->output_count, OUTPUTS_MAX);
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

// --- making random graphs like those that exporters write ---

struct maker {
    struct inf_graph *graph;
    uint64_t state;
    uint32_t x; // the value that the next node reads
};

// Returns a number below the bound from the SplitMix64 generator.
static uint32_t draw_below(struct maker *maker, uint32_t bound)
{
    uint64_t z = maker->state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (uint32_t)((z ^ z >> 31) >> 32) % bound;
}

static const struct inf_shape *shape_now(const struct maker *maker)
{
    return &maker->graph->values[maker->x].shape;
}

static int64_t channels_now(const struct maker *maker)
{
    return shape_now(maker)->dims[shape_now(maker)->rank - 1];
}

// Adds an FP32 constant whose elements are between `low` and `high`.
static uint32_t number_const(struct maker *maker, struct inf_shape shape, float low, float high)
{
    size_t size_bytes;
    cr_assert(inf_shape_bytes(&shape, INF_DTYPE_F32, &size_bytes));
    struct inf_blob *blob = inf_blob_create(size_bytes);
    cr_assert_not_null(blob);
    for (size_t i = 0; i < size_bytes / sizeof(float); i++)
        ((float *)blob->data)[i] = low + (high - low) * (float)draw_below(maker, 1000) / 999;
    uint32_t value;
    cr_assert_eq(
        inf_graph_add_const(maker->graph, "number", INF_DTYPE_F32, &shape, blob, &value, NULL),
        INF_OK);
    return value;
}

static uint32_t int_const(struct maker *maker, struct inf_shape shape, const int32_t *elements)
{
    size_t size_bytes;
    cr_assert(inf_shape_bytes(&shape, INF_DTYPE_I32, &size_bytes));
    struct inf_blob *blob = inf_blob_create(size_bytes);
    cr_assert_not_null(blob);
    memcpy(blob->data, elements, size_bytes);
    uint32_t value;
    cr_assert_eq(
        inf_graph_add_const(maker->graph, "int", INF_DTYPE_I32, &shape, blob, &value, NULL),
        INF_OK);
    return value;
}

// Appends a node that reads the current value, maker->x. The node's only output becomes the current
// value. Returns the node's attributes.
static union inf_attrs *append_node(struct maker *maker, enum inf_op op, const uint32_t *inputs,
                                    uint32_t count)
{
    uint32_t node;
    struct inf_error err = {0};
    cr_assert_eq(inf_graph_add_node(maker->graph, op, inf_op_info(op)->name, "", inputs, count, 1,
                                    &node, &err),
                 INF_OK, "%s", err.text);
    maker->x = maker->graph->nodes[node].outputs[0];
    return &maker->graph->nodes[node].attrs;
}

// Makes a constant to add or multiply. It has one element per channel, in one of the shapes that
// exporters write, or one element per column of the picture, which the pass must not fuse.
static uint32_t channel_const(struct maker *maker)
{
    int64_t channels = channels_now(maker);
    bool image = shape_now(maker)->rank == 4;
    switch (draw_below(maker, image ? 5 : 4)) {
    case 0:
        return number_const(maker, (struct inf_shape){0}, 0.5f, 2);
    case 1:
        return number_const(maker, INF_SHAPE(1, 1), 0.5f, 2);
    case 2:
        return number_const(maker, INF_SHAPE(1, channels), -2, 2);
    case 3:
        return number_const(maker, INF_SHAPE(channels), -2, 2);
    default:
        return number_const(maker, INF_SHAPE(shape_now(maker)->dims[2], 1), -2, 2);
    }
}

static void append_conv(struct maker *maker)
{
    int64_t in = channels_now(maker);
    int64_t out = 1 + draw_below(maker, 4);
    int64_t kernel = 1 + draw_below(maker, 3);
    bool depthwise = draw_below(maker, 3) == 0;
    uint32_t filter = depthwise ? number_const(maker, INF_SHAPE(kernel, kernel, in, 2), -1, 1)
                                : number_const(maker, INF_SHAPE(kernel, kernel, in, out), -1, 1);
    uint32_t bias = draw_below(maker, 2) == 0
                        ? INF_VALUE_NONE
                        : number_const(maker, INF_SHAPE(depthwise ? 2 * in : out), -1, 1);
    const uint32_t inputs[] = {maker->x, filter, bias};
    // VALID padding needs an input that is at least as large as the kernel.
    bool roomy = shape_now(maker)->dims[1] >= kernel && shape_now(maker)->dims[2] >= kernel;
    enum inf_padding padding =
        roomy ? (enum inf_padding)draw_below(maker, INF_PADDING_COUNT) : INF_PADDING_SAME;
    uint32_t count = bias == INF_VALUE_NONE && draw_below(maker, 2) == 0 ? 2 : 3;
    if (depthwise)
        append_node(maker, INF_OP_DEPTHWISE_CONV2D, inputs, count)->depthwise_conv2d.padding =
            padding;
    else
        append_node(maker, INF_OP_CONV2D, inputs, count)->conv2d.padding = padding;
}

static void append_transpose(struct maker *maker)
{
    int64_t in = channels_now(maker);
    const struct inf_shape *x = shape_now(maker);
    const int32_t size[] = {(int32_t)x->dims[0], (int32_t)x->dims[1] + 1, (int32_t)x->dims[2] + 1,
                            3};
    uint32_t filter = number_const(maker, INF_SHAPE(2, 2, 3, in), -1, 1);
    const uint32_t inputs[] = {maker->x, filter, int_const(maker, INF_SHAPE(4), size)};
    append_node(maker, INF_OP_CONV2D_TRANSPOSE, inputs, 3);
}

static void append_matmul(struct maker *maker)
{
    int64_t in = channels_now(maker);
    bool transposed = draw_below(maker, 2) == 0;
    uint32_t b = number_const(maker, transposed ? INF_SHAPE(3, in) : INF_SHAPE(in, 3), -1, 1);
    const uint32_t inputs[] = {maker->x, b};
    append_node(maker, INF_OP_MATMUL, inputs, 2)->matmul.transpose_b = transposed;
}

static void append_batch_norm(struct maker *maker)
{
    struct inf_shape shape = INF_SHAPE(channels_now(maker));
    uint32_t inputs[5] = {maker->x};
    for (int i = 1; i < 4; i++)
        inputs[i] = number_const(maker, shape, -1, 1);
    inputs[4] = number_const(maker, shape, 0.1f, 2);
    append_node(maker, INF_OP_BATCH_NORM, inputs, 5);
}

static void append_binary(struct maker *maker)
{
    static const enum inf_binary_kind kinds[] = {INF_BINARY_ADD, INF_BINARY_MUL, INF_BINARY_SUB,
                                                 INF_BINARY_DIV};
    uint32_t c = channel_const(maker);
    bool first = draw_below(maker, 3) == 0;
    const uint32_t inputs[] = {first ? c : maker->x, first ? maker->x : c};
    enum inf_binary_kind kind = kinds[draw_below(maker, first ? 3 : 4)];
    append_node(maker, INF_OP_BINARY, inputs, 2)->binary.kind = kind;
}

static void append_bound(struct maker *maker)
{
    uint32_t c = number_const(maker, (struct inf_shape){0}, -1, 3);
    bool first = draw_below(maker, 3) == 0;
    const uint32_t inputs[] = {first ? c : maker->x, first ? maker->x : c};
    enum inf_binary_kind kind = draw_below(maker, 2) == 0 ? INF_BINARY_MIN : INF_BINARY_MAX;
    append_node(maker, INF_OP_BINARY, inputs, 2)->binary.kind = kind;
}

static void append_unary(struct maker *maker)
{
    static const enum inf_unary_kind kinds[] = {
        INF_UNARY_RELU, INF_UNARY_RELU6,      INF_UNARY_SIGMOID,    INF_UNARY_TANH,
        INF_UNARY_ELU,  INF_UNARY_LEAKY_RELU, INF_UNARY_HARD_SWISH, INF_UNARY_NEG};
    enum inf_unary_kind kind = kinds[draw_below(maker, INF_ARRAY_LENGTH(kinds))];
    union inf_attrs *attrs = append_node(maker, INF_OP_UNARY, &maker->x, 1);
    attrs->unary.kind = kind;
    attrs->unary.alpha = 0.3f;
}

static void append_clip(struct maker *maker)
{
    bool nothing = draw_below(maker, 3) == 0;
    union inf_attrs *attrs = append_node(maker, INF_OP_CLIP, &maker->x, 1);
    if (nothing)
        return;
    attrs->clip.min = draw_below(maker, 2) == 0 ? 0 : -1;
    attrs->clip.max = (float)draw_below(maker, 3) * 3;
}

static void append_prelu(struct maker *maker)
{
    const uint32_t inputs[] = {maker->x, channel_const(maker)};
    append_node(maker, INF_OP_PRELU, inputs, 2);
}

static void append_pad(struct maker *maker)
{
    int32_t paddings[8] = {0};
    for (int i = 2; i < 6; i++)
        paddings[i] = (int32_t)draw_below(maker, 3);
    paddings[7] = draw_below(maker, 5) == 0;
    const uint32_t inputs[] = {maker->x, int_const(maker, INF_SHAPE(4, 2), paddings)};
    append_node(maker, INF_OP_PAD, inputs, 2);
}

// Appends identity nodes, which change no element.
static void append_nothing(struct maker *maker)
{
    const struct inf_ints front = {.count = 1, .values = {0}};
    int32_t sizes[INF_LIMIT_RANK];
    for (int32_t i = 0; i < shape_now(maker)->rank; i++)
        sizes[i] = (int32_t)shape_now(maker)->dims[i];
    sizes[1] = -1;
    switch (draw_below(maker, 4)) {
    case 0:
        append_node(maker, INF_OP_IDENTITY, &maker->x, 1);
        break;
    case 1:
        append_node(maker, INF_OP_CAST, &maker->x, 1);
        break;
    case 2: {
        uint32_t same = int_const(maker, INF_SHAPE(shape_now(maker)->rank), sizes);
        append_node(maker, INF_OP_RESHAPE, (const uint32_t[]){maker->x, same}, 2);
        break;
    }
    default:
        append_node(maker, INF_OP_EXPAND_DIMS, &maker->x, 1)->expand_dims.axes = front;
        append_node(maker, INF_OP_SQUEEZE, &maker->x, 1)->squeeze.axes = front;
        break;
    }
}

// Appends a node that adds the sum of x's dimensions to x. That sum can be folded to a constant
// although x is not constant.
static void append_size_sum(struct maker *maker)
{
    uint32_t x = maker->x;
    append_node(maker, INF_OP_SHAPE, &x, 1);
    append_node(maker, INF_OP_CAST, &maker->x, 1);
    append_node(maker, INF_OP_REDUCE, &maker->x, 1);
    append_node(maker, INF_OP_BINARY, (const uint32_t[]){x, maker->x}, 2);
}

// Appends a node that adds to x a tensor which other nodes compute from constants only.
static void append_const_sum(struct maker *maker)
{
    uint32_t x = maker->x;
    uint32_t c = number_const(maker, INF_SHAPE(channels_now(maker)), -1, 1);
    append_node(maker, INF_OP_UNARY, &c, 1);
    append_node(maker, INF_OP_BINARY, (const uint32_t[]){x, maker->x}, 2);
}

static void append_residual(struct maker *maker)
{
    uint32_t x = maker->x;
    append_unary(maker);
    append_node(maker, INF_OP_BINARY, (const uint32_t[]){x, maker->x}, 2);
}

static void append_any(struct maker *maker)
{
    static void (*const steps[])(struct maker *) = {
        append_conv,      append_conv,     append_transpose,  append_pad,   append_matmul,
        append_binary,    append_binary,   append_batch_norm, append_bound, append_bound,
        append_unary,     append_unary,    append_clip,       append_prelu, append_nothing,
        append_const_sum, append_residual, append_size_sum,
    };
    steps[draw_below(maker, INF_ARRAY_LENGTH(steps))](maker);
    struct inf_error err = {0};
    cr_assert_eq(inf_shape_infer(maker->graph, &err), INF_OK, "%s", err.text);
}

static void add_output(struct maker *maker)
{
    char name[] = {(char)('a' + maker->graph->output_count), 0};
    cr_assert_eq(inf_graph_add_output(maker->graph, name, maker->x, NULL), INF_OK);
}

static struct inf_graph *make_graph(uint64_t seed)
{
    struct maker maker = {.state = seed};
    struct inf_shape shape = INF_SHAPE(1 + draw_below(&maker, 2), 3 + draw_below(&maker, 3),
                                       3 + draw_below(&maker, 3), 1 + draw_below(&maker, 4));
    cr_assert_eq(inf_graph_create(&maker.graph, NULL), INF_OK);
    cr_assert_eq(inf_graph_add_value(maker.graph, "x", INF_DTYPE_F32, &shape, &maker.x, NULL),
                 INF_OK);
    cr_assert_eq(inf_graph_add_input(maker.graph, "x", maker.x, NULL), INF_OK);
    for (uint32_t i = 4 + draw_below(&maker, 10); i > 0; i--) {
        append_any(&maker);
        if (draw_below(&maker, 8) == 0 && maker.graph->output_count < OUTPUTS_MAX - 1)
            add_output(&maker);
    }
    add_output(&maker);
    return maker.graph;
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
        struct inf_graph *graph = make_graph(seed);
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

Test(passes, fuse_bias_changes_rounding_only)
{
    check_passes(ONLY(INF_PASS_FUSE_BIAS), 1e-4f, false);
}

// The largest difference that rounding every result to 16 bits makes in these graphs, relative to
// the largest element.
#define HALF_TOLERANCE 0.02

Test(passes, widen_computes_16_bit_floats_in_fp32)
{
    struct inf_device *ref;
    const struct inf_device_options device_options = {.slots = 1};
    cr_assert_eq(inf_device_open(&ref, &inf_ref_backend, 0, &device_options, NULL), INF_OK);
    const struct inf_pass_options options = {.disabled = ONLY(INF_PASS_WIDEN)};
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct inf_graph *graph = make_graph(seed);
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

// The graph is x -> pad -> convolution, tested with many paddings.
Test(passes, fuse_pad_changes_no_bit)
{
    struct inf_device *ref;
    const struct inf_device_options device_options = {.slots = 1};
    cr_assert_eq(inf_device_open(&ref, &inf_ref_backend, 0, &device_options, NULL), INF_OK);
    const struct inf_pass_options options = {.disabled = ONLY(INF_PASS_FUSE_PAD)};
    uint32_t fused = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct maker maker = {.state = seed};
        struct inf_shape shape =
            INF_SHAPE(1, 4 + draw_below(&maker, 4), 4 + draw_below(&maker, 4), 2);
        cr_assert_eq(inf_graph_create(&maker.graph, NULL), INF_OK);
        cr_assert_eq(inf_graph_add_value(maker.graph, "x", INF_DTYPE_F32, &shape, &maker.x, NULL),
                     INF_OK);
        cr_assert_eq(inf_graph_add_input(maker.graph, "x", maker.x, NULL), INF_OK);
        append_pad(&maker);
        cr_assert_eq(inf_shape_infer(maker.graph, NULL), INF_OK);
        append_conv(&maker);
        cr_assert_eq(inf_shape_infer(maker.graph, NULL), INF_OK);
        add_output(&maker);
        struct answers before = {0};
        struct answers after = {0};
        run_graph(ref, maker.graph, false, &before);
        cr_assert_eq(inf_passes_run(maker.graph, &options, NULL), INF_OK);
        fused += maker.graph->node_count == 1;
        run_graph(ref, maker.graph, false, &after);
        compare_answers(&before, &after, 0, "pad");
        free_answers(&before);
        free_answers(&after);
        inf_graph_destroy(&maker.graph);
    }
    inf_device_unref(&ref);
    cr_assert_gt(fused, 30);
}
