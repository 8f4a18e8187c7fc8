// SPDX-License-Identifier: Apache-2.0
// State pairs that the settings name, and those that are guessed from names.
#include <criterion/criterion.h>
#include <string.h>

#include "daemon/model/state_pairs.h"

// An input or output of a graph that make_graph() makes.
struct port {
    const char *name;
    enum inf_dtype dtype;
    struct inf_shape shape;
};

static struct inf_graph graph;
static struct inf_value values[16];
static struct inf_port inputs[8], outputs[8];

static void make_graph(const struct port *ins, uint32_t in_count, const struct port *outs,
                       uint32_t out_count)
{
    graph = (struct inf_graph){.values = values,
                               .inputs = inputs,
                               .input_count = in_count,
                               .outputs = outputs,
                               .output_count = out_count};
    for (uint32_t i = 0; i < in_count + out_count; i++) {
        const struct port *port = i < in_count ? &ins[i] : &outs[i - in_count];
        struct inf_port *made = i < in_count ? &inputs[i] : &outputs[i - in_count];
        memset(&values[i], 0, sizeof values[i]);
        values[i].dtype = port->dtype;
        values[i].shape = port->shape;
        memset(made, 0, sizeof *made);
        made->name = (char *)port->name;
        made->value = i;
    }
}

#define F32 INF_DTYPE_F32
static const struct port ins[] = {{"input", F32, INF_SHAPE(-1, 512)},
                                  {"state", F32, INF_SHAPE(2, -1, 128)},
                                  {"h_in", F32, INF_SHAPE(1, 64)},
                                  {"past.0.key", F32, INF_SHAPE(1, 8, -1, 64)},
                                  {"sr", INF_DTYPE_I64, INF_SHAPE(1)}};
static const struct port outs[] = {{"output", F32, INF_SHAPE(-1, 1)},
                                   {"stateN", F32, INF_SHAPE(2, 1, 128)},
                                   {"h_out", F32, INF_SHAPE(1, 64)},
                                   {"present.0.key", F32, INF_SHAPE(1, 8, -1, 64)},
                                   {"next_sr", F32, INF_SHAPE(1)}};

static uint32_t count;
static struct inf_state_pair pairs[INF_LIMIT_TENSORS];

static void find_pairs(const char *text)
{
    struct inf_error err;
    make_graph(ins, 5, outs, 5);
    cr_assert_eq(inf_state_pairs_find(&graph, text, pairs, &count, &err), INF_OK, "%s", err.text);
}

static void check_pairs(uint32_t index, uint32_t output, uint32_t input)
{
    cr_assert_lt(index, count);
    cr_assert_eq(pairs[index].output, output);
    cr_assert_eq(pairs[index].input, input);
}

Test(state_pairs, follow_from_names_if_type_and_shape_agree)
{
    find_pairs("");
    cr_assert_eq(count, 3); // "next_sr" and "sr" do not pair, because their data types differ
    check_pairs(0, 1, 1);
    check_pairs(1, 2, 2);
    check_pairs(2, 3, 3);
    find_pairs("  ");
    cr_assert_eq(count, 3);
}

Test(state_pairs, are_only_those_that_are_named)
{
    find_pairs(" h_out = h_in ,stateN=state");
    cr_assert_eq(count, 2);
    check_pairs(0, 2, 2);
    check_pairs(1, 1, 1);
    find_pairs("h_out:0=h_in, stateN=state:0");
    cr_assert_eq(count, 2);
    check_pairs(0, 2, 2);
    check_pairs(1, 1, 1);
}

Test(state_pairs, are_not_guessed_from_numbers_alone)
{
    static const struct port in[] = {{"in_0", F32, INF_SHAPE(1, 4)}, {"a", F32, INF_SHAPE(4)}};
    static const struct port out[] = {{"out_0", F32, INF_SHAPE(1, 4)},
                                      {"new_a", F32, INF_SHAPE(4, 1)},
                                      {"aN", F32, INF_SHAPE(5)}};
    struct inf_error err;
    make_graph(in, 2, out, 3);
    cr_assert_eq(inf_state_pairs_find(&graph, "", pairs, &count, &err), INF_OK);
    cr_assert_eq(count, 0);
}

Test(state_pairs, errors_give_the_reason)
{
    static const char *const wrong[][2] = {
        {"nothing=state", "'nothing': the model has no such output"},
        {"stateN=nothing", "'nothing': the model has no such input"},
        {"stateN=input", "'stateN': datatype or shape"},
        {"next_sr=sr", "'next_sr': datatype or shape"},
        {"stateN=state,stateN=state", "'stateN': it, or its input, is in two pairs"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct inf_error err;
        make_graph(ins, 5, outs, 5);
        cr_assert_eq(inf_state_pairs_find(&graph, wrong[i][0], pairs, &count, &err), INF_INVALID);
        cr_assert_not_null(strstr(err.text, wrong[i][1]), "%s", err.text);
    }
}

Test(state_pairs, malformed_texts_are_refused)
{
    static const char *const right[] = {"", " ", "a=b", "a:0 = b:0 , c=d; e=f", "a=b,"};
    static const char *const wrong[] = {"a", "=b", "a=", "a=b,c", ","};
    char wanted[128];
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++)
        cr_assert(inf_state_pairs_check(right[i], wanted, sizeof wanted), "'%s'", right[i]);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        cr_assert_not(inf_state_pairs_check(wrong[i], wanted, sizeof wanted), "'%s'", wrong[i]);
}
