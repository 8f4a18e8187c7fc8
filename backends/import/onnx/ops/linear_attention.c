// SPDX-License-Identifier: Apache-2.0
// Operators of state-space and linear-attention models: LinearAttention, CausalConvWithState,
// SwiGLU; and FlexAttention, whose scores and weights are changed by graphs of the model. Types of
// 16 bits are computed in FP32.
#include <math.h>
#include <string.h>

#include "backends/graph/build/operators.h"
#include "backends/import/onnx/attr.h"
#include "backends/import/onnx/body.h"
#include "backends/import/onnx/heads.h"
#include "backends/import/onnx/loop.h"
#include "backends/import/onnx/op_table.h"

// The longest sequence of a LinearAttention whose steps get nodes of their own. A longer sequence,
// and one whose length only a run knows, becomes a loop.
#define STEPS_MAX 256

static enum inf_dtype find_work_type(struct inf_onnx_scope *s, uint32_t x)
{
    return inf_build_dtype(&s->b, x) == INF_DTYPE_F64 ? INF_DTYPE_F64 : INF_DTYPE_F32;
}

// --- SwiGLU ---

static void lower_swiglu(struct inf_onnx_scope *s)
{
    enum inf_dtype dtype = inf_build_dtype(&s->b, s->inputs[0]);
    float alpha = inf_onnx_attr_float(s, "alpha", 1.0f);
    uint32_t gate = inf_build_cast(&s->b, s->inputs[0], find_work_type(s, s->inputs[0]));
    uint32_t inner = inf_build_binary_number(&s->b, INF_BINARY_MUL, gate, (double)alpha);
    gate = inf_build_mul(&s->b, gate, inf_build_unary(&s->b, INF_UNARY_SIGMOID, inner));
    // The gate is rounded to the type of the model first, as in the function body of the operator.
    s->outputs[0] = inf_build_mul(&s->b, inf_build_cast(&s->b, gate, dtype), s->inputs[1]);
}

// --- CausalConvWithState ---

// Lowers the depthwise convolution of x [batch, channels, length] behind its past. The past are the
// last k - 1 elements before x, or zeros.
static void lower_causal_conv(struct inf_onnx_scope *s)
{
    uint32_t x = s->inputs[0], w = s->inputs[1], past = inf_onnx_input(s, 3);
    uint32_t bias = inf_onnx_input(s, 2);
    enum inf_dtype dtype = inf_build_dtype(&s->b, x), work = find_work_type(s, x);
    const char *activation = inf_onnx_attr_text(s, "activation", "none");
    bool is_silu = strcmp(activation, "silu") == 0 || strcmp(activation, "swish") == 0;
    int64_t taps = inf_build_known_dim(&s->b, w, 2);
    if (!is_silu && strcmp(activation, "none") != 0)
        inf_build_fail(&s->b, INF_INVALID, "activation is '%.20s', wanted silu, swish or none",
                       activation);
    if (inf_build_rank(&s->b, x) != 3 || inf_build_rank(&s->b, w) != 3 || taps < 1)
        inf_build_fail(&s->b, INF_INVALID, "the input or the weight is not of rank 3");
    if (!inf_build_ok(&s->b))
        return;
    uint32_t all = past != INF_VALUE_NONE
                       ? inf_build_concat(&s->b, (uint32_t[]){past, x}, 2, 2)
                       : inf_build_pad(&s->b, x, (int64_t[]){0, 0, 0, 0, taps - 1, 0}, 3,
                                       INF_PAD_CONSTANT, INF_VALUE_NONE);
    // [batch, channels, length] becomes [batch, 1, length, channels].
    uint32_t image =
        inf_build_transpose(&s->b, inf_build_cast(&s->b, all, work), (int64_t[]){0, 2, 1}, 3);
    uint32_t filter =
        inf_build_transpose(&s->b, inf_build_cast(&s->b, w, work), (int64_t[]){1, 2, 0}, 3);
    const uint32_t inputs[] = {inf_build_expand_dims(&s->b, image, (int64_t[]){1}, 1),
                               inf_build_expand_dims(&s->b, filter, (int64_t[]){3}, 1)};
    struct inf_build_node node = inf_build_describe_list(INF_OP_DEPTHWISE_CONV2D, inputs, 2);
    uint32_t y = inf_build_squeeze(&s->b, inf_build_value(&s->b, &node), (int64_t[]){1}, 1);
    if (bias != INF_VALUE_NONE)
        y = inf_build_add(&s->b, y, inf_build_cast(&s->b, bias, work));
    if (is_silu)
        y = inf_build_mul(&s->b, y, inf_build_unary(&s->b, INF_UNARY_SIGMOID, y));
    y = inf_build_transpose(&s->b, y, (int64_t[]){0, 2, 1}, 3);
    s->outputs[0] = inf_build_cast(&s->b, y, dtype);
    if (s->output_count > 1)
        s->outputs[1] = taps > 1 ? inf_build_slice(&s->b, all, 2, 1 - taps, INT64_MAX, 1)
                                 : inf_build_slice(&s->b, all, 2, 0, 0, 1);
}

// --- LinearAttention ---

// The operands of a LinearAttention; those of one step are [batch, width].
enum operand {
    QUERY,
    KEY,
    VALUE,
    DECAY,
    BETA,
    OPERANDS
};

// The tensors of a LinearAttention in the type in which it is computed, and its attributes.
struct linear {
    uint32_t operands[OPERANDS];  // [batch, sequence, width]; INF_VALUE_NONE: absent
    uint32_t state;               // [batch, heads, key size, value size]
    int64_t heads, group;         // heads of k and v, and how many heads of q share one
    int64_t key_size, value_size; // of one head
    int64_t decay_size;           // numbers of one head: 1 or the key size
    int64_t beta_size;            // one number for each head, or one for all
    double scale;
    bool is_gated, is_delta;
};

// Adds x [batch, heads * rows * columns] as [batch, heads, rows, columns].
static uint32_t split_heads(struct inf_onnx_scope *s, const struct linear *linear, uint32_t x,
                            int64_t rows, int64_t columns)
{
    return inf_build_reshape(&s->b, x, (int64_t[]){-1, linear->heads, rows, columns}, 4);
}

// Adds one step: returns the output [batch, heads of q * value size], and replaces *state. `x` has
// the operands of the step.
static uint32_t add_step(struct inf_onnx_scope *s, const struct linear *linear, const uint32_t *x,
                         uint32_t *state)
{
    uint32_t key = split_heads(s, linear, x[KEY], linear->key_size, 1);
    uint32_t value = split_heads(s, linear, x[VALUE], 1, linear->value_size);
    if (linear->is_gated) {
        uint32_t decay = split_heads(s, linear, x[DECAY], linear->decay_size, 1);
        *state = inf_build_mul(&s->b, *state, inf_build_unary(&s->b, INF_UNARY_EXP, decay));
    }
    if (linear->is_delta) {
        uint32_t row = inf_build_transpose(&s->b, key, (int64_t[]){0, 1, 3, 2}, 4);
        value = inf_build_sub(&s->b, value, inf_build_matmul(&s->b, row, *state));
        uint32_t beta =
            inf_build_reshape(&s->b, x[BETA], (int64_t[]){-1, linear->beta_size, 1, 1}, 4);
        value = inf_build_mul(&s->b, value, beta);
    }
    *state = inf_build_add(&s->b, *state, inf_build_mul(&s->b, key, value));
    uint32_t query = split_heads(s, linear, x[QUERY], linear->group, linear->key_size);
    uint32_t y = inf_build_matmul(&s->b, query, *state);
    y = inf_build_binary_number(&s->b, INF_BINARY_MUL, y, linear->scale);
    const int64_t width = linear->heads * linear->group * linear->value_size;
    return inf_build_reshape(&s->b, y, (int64_t[]){-1, width}, 2);
}

// Adds the nodes of each step. Returns the output [batch, sequence, width].
static uint32_t add_known_steps(struct inf_onnx_scope *s, struct linear *linear, int64_t steps)
{
    uint32_t results[STEPS_MAX], x[OPERANDS];
    for (int64_t i = 0; inf_build_ok(&s->b) && i < steps; i++) {
        for (int j = 0; j < OPERANDS; j++)
            x[j] = linear->operands[j] != INF_VALUE_NONE
                       ? inf_build_slice(&s->b, linear->operands[j], 1, i, i + 1, 1)
                       : INF_VALUE_NONE;
        results[i] =
            inf_build_expand_dims(&s->b, add_step(s, linear, x, &linear->state), (int64_t[]){1}, 1);
    }
    return inf_build_ok(&s->b) ? inf_build_concat(&s->b, results, (uint32_t)steps, 1)
                               : INF_VALUE_NONE;
}

// The body of the loop: inputs are the state and the slices of the operands that are there.
static void iterate_step(struct inf_onnx_scope *s, const void *context, const uint32_t *inputs,
                         uint32_t *outputs)
{
    const struct linear *linear = context;
    uint32_t x[OPERANDS], count = 1;
    for (int i = 0; i < OPERANDS; i++)
        x[i] = linear->operands[i] != INF_VALUE_NONE ? inputs[count++] : INF_VALUE_NONE;
    outputs[0] = inputs[0];
    outputs[1] = add_step(s, linear, x, &outputs[0]);
}

// Adds a loop over the steps. Returns the output [batch, sequence, width].
static uint32_t add_loop(struct inf_onnx_scope *s, struct linear *linear)
{
    uint32_t results[2] = {INF_VALUE_NONE, INF_VALUE_NONE};
    uint32_t steps = inf_build_dim_value(&s->b, linear->operands[QUERY], 1);
    struct inf_onnx_loop loop = {
        .iterate = iterate_step,
        .context = linear,
        .most = inf_build_reshape(&s->b, inf_build_cast(&s->b, steps, INF_DTYPE_I64), NULL, 0),
        .keep = inf_build_scalar(&s->b, INF_DTYPE_BOOL, 1),
        .initial = {linear->state},
        .carried = 1,
        .stacked = 1};
    for (int i = 0; i < OPERANDS; i++)
        if (linear->operands[i] != INF_VALUE_NONE)
            loop.slices[loop.slice_count++] =
                (struct inf_onnx_slices){.value = linear->operands[i], .axis = 1};
    inf_onnx_loop_lower(s, &loop, results);
    linear->state = results[0];
    return inf_build_ok(&s->b) ? inf_build_transpose(&s->b, results[1], (int64_t[]){1, 0, 2}, 3)
                               : INF_VALUE_NONE;
}

// Returns input `index` in the work type. Latches a failure if it is needed and absent, or not of
// rank `rank`.
static uint32_t read_operand(struct inf_onnx_scope *s, uint32_t index, enum inf_dtype work,
                             bool needed, int32_t rank)
{
    uint32_t value = inf_onnx_input(s, index);
    if (value == INF_VALUE_NONE) {
        if (needed)
            inf_build_fail(&s->b, INF_INVALID, "lacks input %u, which its update_rule needs",
                           index);
        return INF_VALUE_NONE;
    }
    if (inf_build_rank(&s->b, value) != rank)
        inf_build_fail(&s->b, INF_INVALID, "input %u has rank %d, wanted %d", index,
                       inf_build_rank(&s->b, value), rank);
    return inf_build_cast(&s->b, value, work);
}

// Adds the state before the first step: past_state, or zeros.
static uint32_t add_first_state(struct inf_onnx_scope *s, const struct linear *linear,
                                enum inf_dtype work)
{
    uint32_t past = read_operand(s, 3, work, false, 4);
    if (past != INF_VALUE_NONE)
        return past;
    const uint32_t dims[] = {
        inf_build_dim_value(&s->b, linear->operands[QUERY], 0),
        inf_build_list(&s->b, (int64_t[]){linear->heads, linear->key_size, linear->value_size}, 3)};
    return inf_build_fill(&s->b, inf_build_concat(&s->b, dims, 2, 0),
                          inf_build_scalar(&s->b, work, 0));
}

// Reads the operands and checks their sizes.
static void read_linear(struct inf_onnx_scope *s, struct linear *linear, enum inf_dtype work)
{
    const char *rule = inf_onnx_attr_text(s, "update_rule", "gated_delta");
    int64_t q_heads = inf_onnx_attr_int(s, "q_num_heads", 0);
    float scale = inf_onnx_attr_float(s, "scale", 0);
    (void)inf_onnx_find_attr(s, "chunk_size"); // a hint about speed
    linear->heads = inf_onnx_attr_int(s, "kv_num_heads", 0);
    linear->is_gated = strcmp(rule, "gated") == 0 || strcmp(rule, "gated_delta") == 0;
    linear->is_delta = strcmp(rule, "delta") == 0 || strcmp(rule, "gated_delta") == 0;
    if (!linear->is_gated && !linear->is_delta && strcmp(rule, "linear") != 0)
        inf_build_fail(&s->b, INF_INVALID, "update_rule is '%.20s'", rule);
    if (linear->heads < 1 || q_heads < 1 || q_heads % linear->heads != 0)
        inf_build_fail(&s->b, INF_INVALID, "q_num_heads is %lld, kv_num_heads %lld",
                       (long long)q_heads, (long long)linear->heads);
    const bool is_needed[OPERANDS] = {true, true, true, linear->is_gated, linear->is_delta};
    static const uint32_t places[OPERANDS] = {0, 1, 2, 4, 5};
    for (int i = 0; i < OPERANDS; i++)
        linear->operands[i] = read_operand(s, places[i], work, is_needed[i], 3);
    if (!inf_build_ok(&s->b))
        return;
    linear->group = q_heads / linear->heads;
    linear->key_size = inf_build_known_dim(&s->b, linear->operands[KEY], 2) / linear->heads;
    linear->value_size = inf_build_known_dim(&s->b, linear->operands[VALUE], 2) / linear->heads;
    if (linear->is_gated)
        linear->decay_size = inf_build_known_dim(&s->b, linear->operands[DECAY], 2) / linear->heads;
    if (linear->is_delta)
        linear->beta_size = inf_build_known_dim(&s->b, linear->operands[BETA], 2);
    if (linear->key_size < 1 || linear->value_size < 1)
        inf_build_fail(&s->b, INF_INVALID, "%lld heads do not fit the keys or the values",
                       (long long)linear->heads);
    linear->scale = scale != 0 ? (double)scale : 1 / sqrt((double)linear->key_size);
    linear->state = add_first_state(s, linear, work);
}

static void lower_linear_attention(struct inf_onnx_scope *s)
{
    struct linear linear = {0};
    uint32_t past = inf_onnx_input(s, 3);
    enum inf_dtype dtype = inf_build_dtype(&s->b, s->inputs[0]);
    read_linear(s, &linear, find_work_type(s, s->inputs[0]));
    if (!inf_build_ok(&s->b))
        return;
    int64_t steps = inf_build_dim(&s->b, linear.operands[QUERY], 1);
    bool is_loop = steps < 1 || steps > STEPS_MAX;
    uint32_t y = is_loop ? add_loop(s, &linear) : add_known_steps(s, &linear, steps);
    if (!inf_build_ok(&s->b))
        return;
    s->outputs[0] = inf_build_cast(&s->b, y, dtype);
    if (s->output_count > 1)
        s->outputs[1] = inf_build_cast(
            &s->b, linear.state, past != INF_VALUE_NONE ? inf_build_dtype(&s->b, past) : dtype);
}

// --- FlexAttention ---

// Applies the graph in attribute `name` to x; returns x if the attribute is absent. The graph gets
// and returns a tensor of type `dtype`.
static uint32_t apply_graph(struct inf_onnx_scope *s, const char *name, uint32_t x,
                            enum inf_dtype dtype)
{
    struct inf_onnx_body body;
    uint32_t y = INF_VALUE_NONE;
    if (!inf_onnx_has_attr(s, name) || !inf_onnx_body_read(s, &body, name))
        return x;
    if (body.graph.input_count != 1 || body.graph.output_count != 1) {
        inf_build_fail(&s->b, INF_INVALID, "%s has %u inputs and %u outputs, wanted 1 and 1", name,
                       body.graph.input_count, body.graph.output_count);
        return x;
    }
    x = inf_build_cast(&s->b, x, dtype);
    if (inf_build_ok(&s->b))
        inf_onnx_body_lower(s, &body, &x, &y);
    if (inf_build_ok(&s->b) && inf_build_dtype(&s->b, y) != dtype)
        inf_build_fail(&s->b, INF_INVALID, "%s does not return %s", name, inf_dtype_name(dtype));
    return y;
}

static void lower_flex_attention(struct inf_onnx_scope *s)
{
    enum inf_dtype dtype = inf_build_dtype(&s->b, s->inputs[0]);
    enum inf_dtype work = find_work_type(s, s->inputs[0]);
    float scale = inf_onnx_attr_float(s, "scale", 0);
    int32_t precision = inf_onnx_attr_int(s, "softmax_precision", 0);
    uint32_t parts[3];
    for (uint32_t i = 0; i < 3; i++) {
        if (inf_build_rank(&s->b, s->inputs[i]) != 4)
            inf_build_fail(&s->b, INF_INVALID, "input %u is not of rank 4", i);
        parts[i] = inf_build_cast(&s->b, s->inputs[i], work);
    }
    if (precision != 0 && !inf_dtype_is_float(inf_onnx_dtype(precision)))
        inf_build_fail(&s->b, INF_INVALID, "softmax_precision is %s",
                       inf_onnx_type_name(precision));
    if (!inf_build_ok(&s->b))
        return;
    uint32_t scores =
        inf_onnx_multiply_keys(s, parts[0], inf_onnx_repeat_heads(s, parts[1], parts[0]));
    scores = inf_onnx_scale(s, scores, parts[0], scale);
    scores = inf_build_cast(&s->b, apply_graph(s, "score_mod", scores, dtype), work);
    enum inf_dtype exact = precision == 11 ? INF_DTYPE_F64 : work;
    uint32_t weights = inf_build_softmax(&s->b, inf_build_cast(&s->b, scores, exact), -1, false);
    weights = inf_build_cast(&s->b, apply_graph(s, "prob_mod", weights, dtype), work);
    uint32_t y = inf_build_matmul(&s->b, weights, inf_onnx_repeat_heads(s, parts[2], parts[0]));
    s->outputs[0] = inf_build_cast(&s->b, y, dtype);
}

static const struct inf_onnx_op ops[] = {
    {"SwiGLU", lower_swiglu, 2, 2, 1, 0},
    {"CausalConvWithState", lower_causal_conv, 2, 4, 2, 0},
    {"com.microsoft::CausalConvWithState", lower_causal_conv, 2, 4, 2, 0},
    {"LinearAttention", lower_linear_attention, 3, 6, 2, 0},
    {"com.microsoft::LinearAttention", lower_linear_attention, 3, 6, 2, 0},
    {"ai.onnx.preview::FlexAttention", lower_flex_attention, 3, 3, 1, 0},
};

const struct inf_onnx_op_table inf_onnx_ops_linear = {ops, INF_ARRAY_LENGTH(ops)};
