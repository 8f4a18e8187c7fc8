// SPDX-License-Identifier: Apache-2.0
// Loop and Scan. If the number of iterations is known and small, the body is lowered once for each
// iteration (unrolled), so that its shapes are known. Otherwise loop.c builds a loop node.

#include "backends/import/onnx/loop.h"

#include "backends/graph/build/operators.h"
#include "backends/import/onnx/attr.h"
#include "backends/import/onnx/narrow.h"
#include "backends/import/onnx/op_table.h"

// The most nodes that unrolling may create.
#define UNROLLED_NODES_MAX (1u << 14)

static void check_counts(struct inf_onnx_scope *s, const struct inf_onnx_body *body,
                         uint32_t inputs, uint32_t outputs)
{
    if (body->graph.input_count != inputs || body->graph.output_count != outputs)
        inf_build_fail(&s->b, INF_INVALID,
                       "its body has %u inputs and %u outputs, wanted %u and %u",
                       body->graph.input_count, body->graph.output_count, inputs, outputs);
}

static bool is_small(const struct inf_onnx_body *body, double rounds)
{
    return rounds <= INF_ONNX_ROUNDS_MAX && rounds * body->graph.node_count <= UNROLLED_NODES_MAX;
}

static struct inf_onnx_stack *make_stacks(struct inf_onnx_scope *s, uint32_t count)
{
    struct inf_onnx_stack *stacks =
        inf_arena_alloc(s->import->arena, ((size_t)count + 1) * sizeof *stacks);
    if (stacks == NULL)
        inf_build_fail(&s->b, INF_EXHAUSTED, "no memory");
    for (uint32_t i = 0; stacks != NULL && i < count; i++)
        stacks[i].count = 0;
    return stacks;
}

// Adds a reshape of `value`, which has one element, to a scalar. Returns `value` itself if it is a
// scalar or INF_VALUE_NONE.
static uint32_t make_scalar(struct inf_onnx_scope *s, uint32_t value)
{
    bool is_one =
        !inf_build_ok(&s->b) || value == INF_VALUE_NONE || inf_build_rank(&s->b, value) == 0;
    return is_one ? value : inf_build_reshape(&s->b, value, NULL, 0);
}

// --- operator Loop ---

// Unrolls the loop. If the condition depends on values that are known only at run time, returns
// false without setting outputs.
static bool unroll_loop(struct inf_onnx_scope *s, const struct inf_onnx_loop *loop, double most,
                        double condition)
{
    uint32_t inputs[INF_ONNX_CARRIED_MAX + 2], outputs[2 * INF_ONNX_CARRIED_MAX + 1];
    struct inf_onnx_stack *stacks = make_stacks(s, loop->stacked);
    for (uint32_t i = 0; i < loop->carried; i++)
        inputs[i + 2] = loop->initial[i];
    for (uint32_t round = 0; inf_build_ok(&s->b) && condition != 0 && round < most; round++) {
        int64_t *index;
        if (!is_small(loop->body, round + 1))
            return false;
        inputs[0] = inf_build_const(&s->b, INF_DTYPE_I64, &(struct inf_shape){0}, &index);
        if (index != NULL)
            *index = round;
        inputs[1] = inf_build_scalar(&s->b, INF_DTYPE_BOOL, 1);
        inf_onnx_body_lower(s, loop->body, inputs, outputs);
        if (inf_build_ok(&s->b) &&
            (inf_onnx_is_sequence(outputs[0]) || inf_onnx_is_narrow(outputs[0])))
            inf_build_fail(&s->b, INF_INVALID, "its condition is a sequence or a narrow tensor");
        if (inf_build_ok(&s->b) && !inf_build_const_number(&s->b, outputs[0], &condition))
            return false;
        for (uint32_t i = 0; i < loop->carried; i++)
            inputs[i + 2] = outputs[i + 1];
        for (uint32_t i = 0; inf_build_ok(&s->b) && i < loop->stacked; i++)
            inf_onnx_stack_push(s, &stacks[i], outputs[1 + loop->carried + i], 0);
    }
    for (uint32_t i = 0; inf_build_ok(&s->b) && i < loop->stacked; i++)
        if (stacks[i].count == 0)
            return false;
    for (uint32_t i = 0; inf_build_ok(&s->b) && i < loop->carried; i++)
        s->outputs[i] = inputs[i + 2];
    for (uint32_t i = 0; inf_build_ok(&s->b) && i < loop->stacked; i++)
        s->outputs[loop->carried + i] = inf_onnx_stack_join(s, &stacks[i], 0);
    return true;
}

// Lowers Loop. Its inputs are the largest number of iterations, the condition and the carried
// values. The body takes the iteration number, the condition and the carried values. It returns a
// condition, carried values and stacked outputs.
static void lower_loop(struct inf_onnx_scope *s)
{
    struct inf_onnx_body body;
    struct inf_onnx_loop loop = {.body = &body, .has_condition = true};
    double most = INF_ONNX_ROUNDS_MAX + 1, condition = 1;
    if (s->input_count < 2) {
        inf_build_fail(&s->b, INF_INVALID, "has %u inputs, wanted 2 or more", s->input_count);
        return;
    }
    loop.carried = s->input_count - 2;
    loop.stacked = s->output_count - INF_MIN(loop.carried, s->output_count);
    if (loop.carried > INF_ONNX_CARRIED_MAX || loop.stacked > INF_ONNX_CARRIED_MAX ||
        s->output_count < loop.carried)
        inf_build_fail(&s->b, INF_UNSUPPORTED,
                       "carries %u values and stacks up %u, wanted at most %d", loop.carried,
                       loop.stacked, INF_ONNX_CARRIED_MAX);
    if (!inf_onnx_body_read(s, &body, "body"))
        return;
    check_counts(s, &body, loop.carried + 2, 1 + loop.carried + loop.stacked);
    for (uint32_t i = 0; inf_build_ok(&s->b) && i < loop.carried; i++)
        loop.initial[i] = s->inputs[i + 2];
    if (!inf_build_ok(&s->b))
        return;
    uint32_t rounds = s->inputs[0], keep = s->inputs[1];
    if (inf_onnx_is_sequence(rounds) || inf_onnx_is_sequence(keep)) {
        inf_build_fail(&s->b, INF_INVALID, "its count or condition is a sequence");
        return;
    }
    bool known = (rounds == INF_VALUE_NONE || inf_build_const_number(&s->b, rounds, &most)) &&
                 (keep == INF_VALUE_NONE || inf_build_const_number(&s->b, keep, &condition));
    bool is_endless = rounds == INF_VALUE_NONE;
    if (known && (is_endless || is_small(&body, most)) && unroll_loop(s, &loop, most, condition))
        return;
    loop.most = make_scalar(s, rounds);
    loop.keep =
        keep == INF_VALUE_NONE ? inf_build_scalar(&s->b, INF_DTYPE_BOOL, 1) : make_scalar(s, keep);
    inf_onnx_loop_lower(s, &loop, s->outputs);
}

// --- operator Scan ---

// The attributes of a Scan.
struct scan {
    uint32_t carried, sliced, stacked;
    struct inf_build_ints in_axes, out_axes, in_ways, out_ways;
};

static int64_t get_or_zero(const struct inf_build_ints *ints, uint32_t index)
{
    return index < ints->count ? ints->values[index] : 0;
}

static struct inf_onnx_slices read_scan_input(struct inf_onnx_scope *s, const struct scan *scan,
                                              const uint32_t *inputs, uint32_t index)
{
    struct inf_onnx_slices slices = {.value = inputs[scan->carried + index]};
    slices.axis = inf_build_axis(&s->b, get_or_zero(&scan->in_axes, index),
                                 inf_build_rank(&s->b, slices.value));
    slices.backwards = get_or_zero(&scan->in_ways, index) != 0;
    return slices;
}

// Unrolls the scan. `values` holds the carried values, then the scan inputs.
static void unroll_scan(struct inf_onnx_scope *s, const struct inf_onnx_body *body,
                        const struct scan *scan, const uint32_t *values, int64_t rounds,
                        uint32_t *results)
{
    uint32_t inputs[INF_ONNX_CARRIED_MAX], outputs[INF_ONNX_CARRIED_MAX];
    struct inf_onnx_stack *stacks = make_stacks(s, scan->stacked);
    for (uint32_t i = 0; i < scan->carried; i++)
        inputs[i] = values[i];
    for (int64_t round = 0; inf_build_ok(&s->b) && round < rounds; round++) {
        for (uint32_t i = 0; i < scan->sliced; i++) {
            struct inf_onnx_slices slices = read_scan_input(s, scan, values, i);
            int64_t at = slices.backwards ? rounds - 1 - round : round, axis = slices.axis;
            uint32_t slice = inf_build_slice(&s->b, slices.value, slices.axis, at, at + 1, 1);
            inputs[scan->carried + i] = inf_build_squeeze(&s->b, slice, &axis, 1);
        }
        inf_onnx_body_lower(s, body, inputs, outputs);
        for (uint32_t i = 0; i < scan->carried; i++)
            inputs[i] = outputs[i];
        for (uint32_t i = 0; inf_build_ok(&s->b) && i < scan->stacked; i++)
            inf_onnx_stack_push(s, &stacks[i], outputs[scan->carried + i], 0);
    }
    for (uint32_t i = 0; inf_build_ok(&s->b) && i < scan->carried; i++)
        results[i] = inputs[i];
    for (uint32_t i = 0; inf_build_ok(&s->b) && i < scan->stacked; i++)
        results[scan->carried + i] = inf_onnx_stack_join(s, &stacks[i], 0);
}

// Lowers a Scan without a batch axis. The inputs are the carried values, then the scan inputs.
static void lower_one_scan(struct inf_onnx_scope *s, struct inf_onnx_body *body,
                           const struct scan *scan, const uint32_t *values, uint32_t *results)
{
    struct inf_onnx_slices first = read_scan_input(s, scan, values, 0);
    int64_t rounds = inf_build_dim(&s->b, first.value, first.axis);
    if (!inf_build_ok(&s->b))
        return;
    if (rounds > 0 && is_small(body, (double)rounds)) {
        unroll_scan(s, body, scan, values, rounds, results);
        return;
    }
    struct inf_onnx_loop loop = {.body = body, .carried = scan->carried, .stacked = scan->stacked};
    loop.keep = inf_build_scalar(&s->b, INF_DTYPE_BOOL, 1);
    loop.most =
        make_scalar(s, inf_build_cast(&s->b, inf_build_dim_value(&s->b, first.value, first.axis),
                                      INF_DTYPE_I64));
    for (uint32_t i = 0; i < scan->carried; i++)
        loop.initial[i] = values[i];
    for (uint32_t i = 0; i < scan->sliced; i++)
        loop.slices[loop.slice_count++] = read_scan_input(s, scan, values, i);
    inf_onnx_loop_lower(s, &loop, results);
}

// Moves axis 0 of an output, along which the slices of the iterations are stacked, to the axis that
// the attributes name. Reverses this axis if the attributes request that.
static uint32_t place_stack(struct inf_onnx_scope *s, const struct scan *scan, uint32_t index,
                            uint32_t x)
{
    int64_t perm[INF_LIMIT_RANK];
    int32_t rank = inf_build_ok(&s->b) ? inf_build_rank(&s->b, x) : 0;
    if (!inf_build_ok(&s->b))
        return INF_VALUE_NONE;
    int32_t axis = inf_build_axis(&s->b, get_or_zero(&scan->out_axes, index), rank);
    if (get_or_zero(&scan->out_ways, index) != 0) {
        struct inf_build_node node = inf_build_describe_list(INF_OP_REVERSE, &x, 1);
        node.attrs.reverse.axes = (struct inf_ints){.count = 1};
        x = inf_build_value(&s->b, &node);
    }
    for (int32_t i = 0; i < rank; i++)
        perm[i] = i == axis ? 0 : i < axis ? i + 1 : i;
    return inf_build_transpose(&s->b, x, perm, rank);
}

// Lowers a Scan of opset 8. Every value has a leading batch axis, and each element of the batch is
// scanned separately.
static void scan_batch(struct inf_onnx_scope *s, struct inf_onnx_body *body,
                       const struct scan *scan)
{
    uint32_t values[INF_ONNX_CARRIED_MAX], results[INF_ONNX_CARRIED_MAX];
    uint32_t count = scan->carried + scan->stacked;
    struct inf_onnx_stack *stacks = make_stacks(s, count);
    int64_t batch = inf_build_known_dim(&s->b, s->inputs[1 + scan->carried], 0);
    if (inf_onnx_input(s, 0) != INF_VALUE_NONE)
        inf_build_fail(&s->b, INF_UNSUPPORTED, "has sequence_lens");
    if (batch < 1 || batch > INF_ONNX_ROUNDS_MAX)
        inf_build_fail(&s->b, INF_UNSUPPORTED, "a batch of %lld, wanted 1 to %d", (long long)batch,
                       INF_ONNX_ROUNDS_MAX);
    for (int64_t item = 0; inf_build_ok(&s->b) && item < batch; item++) {
        for (uint32_t i = 0; i < scan->carried + scan->sliced; i++) {
            uint32_t part = inf_build_slice(&s->b, s->inputs[1 + i], 0, item, item + 1, 1);
            values[i] = inf_build_squeeze(&s->b, part, (int64_t[]){0}, 1);
        }
        lower_one_scan(s, body, scan, values, results);
        for (uint32_t i = 0; inf_build_ok(&s->b) && i < count; i++)
            inf_onnx_stack_push(s, &stacks[i], results[i], 0);
    }
    for (uint32_t i = 0; inf_build_ok(&s->b) && i < count; i++)
        s->outputs[i] = inf_onnx_stack_join(s, &stacks[i], 0);
}

static void lower_scan(struct inf_onnx_scope *s)
{
    struct inf_onnx_body body;
    struct scan scan = {0};
    bool is_old = s->opset < 9;
    uint32_t inputs = s->input_count - (is_old && s->input_count > 0);
    scan.sliced = (uint32_t)INF_MAX(inf_onnx_attr_int(s, "num_scan_inputs", 0), 0);
    (void)inf_onnx_attr_ints(s, is_old ? "directions" : "scan_input_directions", &scan.in_ways);
    if (!is_old) {
        (void)inf_onnx_attr_ints(s, "scan_input_axes", &scan.in_axes);
        (void)inf_onnx_attr_ints(s, "scan_output_axes", &scan.out_axes);
        (void)inf_onnx_attr_ints(s, "scan_output_directions", &scan.out_ways);
    }
    scan.carried = inputs - INF_MIN(scan.sliced, inputs);
    scan.stacked = s->output_count - INF_MIN(scan.carried, s->output_count);
    if (scan.sliced < 1 || scan.sliced > inputs || inputs > INF_ONNX_CARRIED_MAX ||
        s->output_count > INF_ONNX_CARRIED_MAX || s->output_count < scan.carried)
        inf_build_fail(&s->b, INF_INVALID,
                       "has %u inputs, %u of them to go through, and %u outputs", inputs,
                       scan.sliced, s->output_count);
    for (uint32_t i = is_old; inf_build_ok(&s->b) && i < s->input_count; i++)
        if (s->inputs[i] == INF_VALUE_NONE)
            inf_build_fail(&s->b, INF_INVALID, "lacks input %u", i);
    if (!inf_onnx_body_read(s, &body, "body"))
        return;
    check_counts(s, &body, inputs, s->output_count);
    if (!inf_build_ok(&s->b))
        return;
    if (is_old) {
        scan_batch(s, &body, &scan);
        return;
    }
    lower_one_scan(s, &body, &scan, s->inputs, s->outputs);
    for (uint32_t i = 0; inf_build_ok(&s->b) && i < scan.stacked; i++)
        s->outputs[scan.carried + i] = place_stack(s, &scan, i, s->outputs[scan.carried + i]);
}

static const struct inf_onnx_op ops[] = {
    {"Loop", lower_loop, 0, INF_LIMIT_NODE_INPUTS, INF_LIMIT_NODE_INPUTS, 0,
     .takes_sequences = true},
    {"Scan", lower_scan, 0, INF_LIMIT_NODE_INPUTS, INF_LIMIT_NODE_INPUTS, 0},
};

const struct inf_onnx_op_table inf_onnx_ops_loop = {ops, INF_ARRAY_LENGTH(ops)};
