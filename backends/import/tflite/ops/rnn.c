// SPDX-License-Identifier: Apache-2.0
// Simple recurrent networks, and SVDF: products of low rank over a window of past inputs.
#include "backends/graph/build/operators.h"
#include "backends/import/tflite/op_table.h"
#include "backends/import/tflite/recurrent.h"
#include "backends/import/tflite/variable.h"

// A cell: h = activation(x Wx + h Wh + auxiliary Wa + b).
struct cell {
    uint32_t x, recurrent, bias, state, auxiliary; // `auxiliary` may be INF_VALUE_NONE
    const struct inf_tflite_tensor *state_type;
    uint32_t state_index; // number of the input that has the state
    int64_t activation;
};

// Reads a cell whose weights, bias and state are the inputs from `first` on.
static struct cell read_cell(struct inf_tflite_scope *s, uint32_t first, uint32_t activation_id)
{
    return (struct cell){.x = inf_tflite_weight(s, first),
                         .recurrent = inf_tflite_weight(s, first + 1),
                         .bias = inf_tflite_weight(s, first + 2),
                         .state = inf_tflite_state(s, first + 3),
                         .auxiliary = INF_VALUE_NONE,
                         .state_index = first + 3,
                         .state_type = inf_tflite_input_tensor(s, first + 3),
                         .activation = inf_tflite_option(s, INF_FB_I8, activation_id,
                                                         "fused_activation_function", 0)};
}

static uint32_t add_step(struct inf_tflite_scope *s, struct cell *cell, uint32_t x,
                         uint32_t auxiliary)
{
    uint32_t sum = inf_tflite_project(s, x, cell->x, cell->bias);
    sum = inf_tflite_project(s, cell->state, cell->recurrent, sum);
    if (auxiliary != INF_VALUE_NONE)
        sum = inf_tflite_project(s, auxiliary, cell->auxiliary, sum);
    sum = inf_tflite_activate_real(s, sum, cell->activation);
    cell->state = inf_tflite_round_to(s, sum, cell->state_type);
    return cell->state;
}

// Runs a cell over a sequence, whose steps are replaced by the outputs. `auxiliary` may be NULL.
static void run_cell(struct inf_tflite_scope *s, struct cell *cell, struct inf_tflite_sequence *x,
                     const struct inf_tflite_sequence *auxiliary, bool backwards)
{
    for (uint32_t n = 0; inf_build_ok(&s->b) && n < x->count; n++) {
        uint32_t at = backwards ? x->count - 1 - n : n;
        x->steps[at] = add_step(s, cell, x->steps[at],
                                auxiliary != NULL ? auxiliary->steps[at] : INF_VALUE_NONE);
    }
    inf_tflite_variable_set(s, cell->state_index, cell->state);
}

static void lower_rnn(struct inf_tflite_scope *s)
{
    struct cell cell = read_cell(s, 1, 0);
    s->outputs[0] = add_step(s, &cell, inf_tflite_real(s, 0), INF_VALUE_NONE);
    inf_tflite_variable_set(s, cell.state_index, cell.state);
}

static void lower_sequence(struct inf_tflite_scope *s)
{
    bool time_major = inf_tflite_option_bool(s, 0, "time_major");
    struct cell cell = read_cell(s, 1, 1);
    struct inf_tflite_sequence x = inf_tflite_sequence_cut(s, 0, time_major);
    run_cell(s, &cell, &x, NULL, false);
    s->outputs[0] = inf_tflite_sequence_join(s, &x, time_major);
}

// The second input, if there is one, has weights in each direction; without them, it is the input
// of the backward cell.
static void lower_bidirectional(struct inf_tflite_scope *s)
{
    bool time_major = inf_tflite_option_bool(s, 0, "time_major");
    bool merge = inf_tflite_option_bool(s, 2, "merge_outputs");
    bool has_auxiliary = inf_tflite_has_input(s, 9), has_weights = inf_tflite_has_input(s, 10);
    struct cell cells[2] = {read_cell(s, 1, 1), read_cell(s, 5, 1)};
    struct inf_tflite_sequence auxiliary = {0},
                               y[2] = {inf_tflite_sequence_cut(s, 0, time_major),
                                       inf_tflite_sequence_cut(
                                           s, has_auxiliary && !has_weights ? 9 : 0, time_major)};
    bool uses = has_auxiliary && has_weights;
    if (uses) {
        auxiliary = inf_tflite_sequence_cut(s, 9, time_major);
        cells[0].auxiliary = inf_tflite_weight(s, 10);
        cells[1].auxiliary = inf_tflite_weight(s, 11);
    }
    if (inf_build_ok(&s->b) &&
        (y[0].count != y[1].count || (uses && auxiliary.count != y[0].count)))
        inf_build_fail(&s->b, INF_INVALID, "its inputs differ in their time steps");
    uint32_t results[2];
    for (int i = 0; i < 2; i++) {
        run_cell(s, &cells[i], &y[i], uses ? &auxiliary : NULL, i == 1);
        results[i] = inf_tflite_sequence_join(s, &y[i], time_major);
    }
    s->outputs[0] = merge ? inf_build_concat(&s->b, results, 2, 2) : results[0];
    s->outputs[1] = merge ? INF_VALUE_NONE : results[1];
}

// The state has the results of the last `memory` inputs, [batch, filters, memory], newest last.
// Each output is the sum over `rank` filters and over the memory.
static void lower_svdf(struct inf_tflite_scope *s)
{
    struct inf_builder *b = &s->b;
    uint32_t features = inf_tflite_weight(s, 1), time = inf_tflite_weight(s, 2);
    int64_t rank = inf_tflite_option_int(s, 0, "rank");
    int64_t filters = inf_build_known_dim(b, features, 0), memory = inf_build_known_dim(b, time, 1);
    if (inf_build_ok(b) && (rank < 1 || filters % rank != 0 || memory < 1))
        inf_build_fail(b, INF_INVALID, "has rank %lld, %lld filters and a memory of %lld",
                       (long long)rank, (long long)filters, (long long)memory);
    if (!inf_build_ok(b))
        return;
    uint32_t past =
        inf_build_reshape(b, inf_tflite_state(s, 4), (int64_t[]){-1, filters, memory}, 3);
    past = inf_build_slice(b, past, 2, 1, memory, 1);
    uint32_t newest = inf_tflite_project(s, inf_tflite_real(s, 0), features, INF_VALUE_NONE);
    newest = inf_tflite_round_to(s, newest, inf_tflite_input_tensor(s, 4));
    newest = inf_build_expand_dims(b, newest, (int64_t[]){2}, 1);
    uint32_t state = inf_build_concat(b, (uint32_t[]){past, newest}, 2, 2);
    inf_tflite_variable_set(s, 4,
                            inf_build_reshape(b, state, (int64_t[]){-1, filters * memory}, 2));
    uint32_t weighted = inf_build_mul(b, state, time);
    weighted = inf_build_reshape(b, weighted, (int64_t[]){-1, filters / rank, rank * memory}, 3);
    uint32_t sum = inf_build_reduce(b, INF_REDUCE_SUM, weighted,
                                    &(struct inf_ints){.count = 1, .values = {2}}, false);
    if (inf_tflite_has_input(s, 3))
        sum = inf_build_add(b, sum, inf_tflite_weight(s, 3));
    int64_t activation = inf_tflite_option(s, INF_FB_I8, 1, "fused_activation_function", 0);
    s->outputs[0] = inf_tflite_activate_real(s, sum, activation);
}

static const struct inf_tflite_op ops[] = {
    {INF_TFLITE_RNN, NULL, lower_rnn, 5, 5, 1, INF_TFLITE_MODE_REAL, INF_TFLITE_OPTIONS_RNN, 0},
    {INF_TFLITE_UNIDIRECTIONAL_SEQUENCE_RNN, NULL, lower_sequence, 5, 5, 1, INF_TFLITE_MODE_REAL,
     INF_TFLITE_OPTIONS_SEQUENCE_RNN, 0},
    {INF_TFLITE_BIDIRECTIONAL_SEQUENCE_RNN, NULL, lower_bidirectional, 9, 12, 2,
     INF_TFLITE_MODE_REAL, INF_TFLITE_OPTIONS_BIDIRECTIONAL_SEQUENCE_RNN, 0},
    {INF_TFLITE_SVDF, NULL, lower_svdf, 5, 5, 1, INF_TFLITE_MODE_REAL, INF_TFLITE_OPTIONS_SVDF, 0},
};

const struct inf_tflite_op_table inf_tflite_ops_rnn = {ops, INF_ARRAY_LENGTH(ops)};
