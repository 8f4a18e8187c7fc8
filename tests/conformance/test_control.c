// SPDX-License-Identifier: Apache-2.0
// Loops, branches and functions, built from TensorFlow.js nodes and compared with numbers worked
// out by hand. Each graph runs with all passes and without passes.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/models/control_case.h"
#include "tests/support/models/tfjs_case.h"

TestSuite(control, .init = inf_control_init, .fini = inf_control_fini, .timeout = 60);

// --- loops written as frames (Enter, Switch, Merge and Exit nodes) ---

// A loop that doubles x n times: while (i < n) { i += 1; x += x; }
static void doubling_loop(const char *n)
{
    inf_control_scalar_int("zero", 0);
    inf_control_scalar_int("one", 1);
    inf_control_enter("n/enter", n, "loop");
    inf_control_enter("one/enter", "one", "loop");
    inf_control_variable("i", "zero", "loop");
    inf_control_variable("v", "x", "loop");
    inf_control_node("less", "Less", "i/merge,n/enter");
    inf_control_node("loop/cond", "LoopCond", "less");
    inf_control_node("i/next", "AddV2", "i/body,one/enter");
    inf_control_node("v/next", "AddV2", "v/body,v/body");
}

Test(control, a_frame_becomes_a_loop)
{
    inf_control_begin();
    inf_control_input("n", "DT_INT32", NULL, 0);
    inf_control_input("x", "DT_FLOAT", INF_DIMS(2));
    doubling_loop("n");
    inf_control_accept("v");
    for (int32_t n = 0; n < 5; n++) {
        const float x[] = {1, -3};
        const struct inf_feed feed = {{&n, x}, {{0}, INF_SHAPE(2)}};
        INF_CONTROL_CHECK(&feed, 0, (double)(1 << n), -3.0 * (1 << n));
        cr_assert_gt(inf_control.interpreted, 0);
        cr_assert(inf_shape_equal(&inf_control.results[0].shape, &INF_SHAPE(2)));
    }
}

Test(control, a_loop_whose_end_is_known_is_unrolled)
{
    static const int32_t counts[] = {0, 1, 7, 64, 65};
    for (size_t i = 0; i < 5; i++) {
        inf_control_begin();
        inf_control_scalar_int("n", counts[i]);
        inf_control_input("x", "DT_FLOAT", INF_DIMS(1));
        doubling_loop("n");
        inf_control_accept("v");
        const float x = ldexpf(1, -40);
        const struct inf_feed feed = {{&x}, {INF_SHAPE(1)}};
        cr_assert_eq(inf_control_run_with(0, &feed, NULL), INF_OK, "%s", inf_control.err.text);
        cr_assert_eq(inf_control.results[0].elements[0], ldexp(1, counts[i] - 40));
        // A loop is unrolled up to 64 iterations. With more iterations the loop remains and is
        // interpreted.
        cr_assert_eq(inf_control.interpreted > 0, counts[i] > 64, "%d iterations", counts[i]);
        cr_assert_eq(inf_control_run_with(UINT32_MAX, &feed, NULL), INF_OK, "%s",
                     inf_control.err.text);
        cr_assert_eq(inf_control.results[0].elements[0], ldexp(1, counts[i] - 40));
    }
}

// for (i = 0; i < 3; i++) for (j = 0; j < i; j++) x += 1;
// The result is x + 0 + 1 + 2.
Test(control, frames_nest)
{
    inf_control_begin();
    inf_control_input("x", "DT_FLOAT", INF_DIMS(1));
    inf_control_input("n", "DT_INT32", NULL, 0);
    inf_control_scalar_int("zero", 0);
    inf_control_scalar_int("one", 1);
    inf_control_scalar("step", 1);
    inf_control_enter("n/outer", "n", "outer");
    inf_control_enter("one/outer", "one", "outer");
    inf_control_enter("zero/outer", "zero", "outer");
    inf_control_enter("step/outer", "step", "outer");
    inf_control_variable("i", "zero", "outer");
    inf_control_variable("v", "x", "outer");
    inf_control_node("outer/less", "Less", "i/merge,n/outer");
    inf_control_node("outer/cond", "LoopCond", "outer/less");
    inf_control_node("i/next", "AddV2", "i/body,one/outer");
    inf_control_enter("i/inner", "i/body", "inner");
    inf_control_enter("one/inner", "one/outer", "inner");
    inf_control_enter("step/inner", "step/outer", "inner");
    inf_control_variable("j", "zero/outer", "inner");
    inf_control_variable("u", "v/body", "inner");
    inf_control_node("inner/less", "Less", "j/merge,i/inner");
    inf_control_node("inner/cond", "LoopCond", "inner/less");
    inf_control_node("j/next", "AddV2", "j/body,one/inner");
    inf_control_node("u/next", "AddV2", "u/body,step/inner");
    inf_control_node("v/next", "Identity", "u");
    inf_control_accept("v");
    const float x = 10;
    const int32_t n = 3;
    const struct inf_feed feed = {{&x, &n}, {INF_SHAPE(1), {0}}};
    INF_CONTROL_CHECK(&feed, 0, 13);
}

Test(control, a_list_collects_what_iterations_make)
{
    inf_control_begin();
    inf_control_input("x", "DT_FLOAT", INF_DIMS(-1));
    inf_control_input("n", "DT_INT32", NULL, 0);
    inf_control_scalar_int("zero", 0);
    inf_control_scalar_int("one", 1);
    inf_control_node("array", "TensorArrayV3", "n");
    inf_tfjs_writer_attr_type(inf_control.writer, "dtype", "DT_FLOAT");
    inf_control_enter("n/enter", "n", "loop");
    inf_control_enter("one/enter", "one", "loop");
    inf_control_enter("x/enter", "x", "loop");
    inf_control_enter("handle", "array", "loop");
    inf_control_variable("i", "zero", "loop");
    inf_control_variable("flow", "array:1", "loop");
    inf_control_node("less", "Less", "i/merge,n/enter");
    inf_control_node("loop/cond", "LoopCond", "less");
    inf_control_node("i/next", "AddV2", "i/body,one/enter");
    inf_control_node("item", "GatherV2", "x/enter,i/body");
    inf_control_node("pair", "Pack", "item,item");
    inf_control_node("flow/next", "TensorArrayWriteV3", "handle,i/body,pair,flow/body");
    inf_control_node("size", "TensorArraySizeV3", "array,flow");
    inf_control_node("range", "Range", "zero,size,one");
    inf_control_node("y", "TensorArrayGatherV3", "array,range,flow");
    inf_control_accept("y");
    const float x[] = {5, 6, 7};
    const int32_t n = 3;
    const struct inf_feed feed = {{x, &n}, {INF_SHAPE(3), {0}}};
    INF_CONTROL_CHECK(&feed, 0, 5, 5, 6, 6, 7, 7);
    cr_assert(inf_shape_equal(&inf_control.results[0].shape, &INF_SHAPE(3, 2)));
    const int32_t more = 4; // more iterations than x has elements
    const struct inf_feed too_far = {{x, &more}, {INF_SHAPE(3), {0}}};
    cr_assert_eq(inf_control_run_with(0, &too_far, NULL), INF_INVALID);
    cr_assert_not_null(strstr(inf_control.err.text, "node 'item' (gather): index 3"), "%s",
                       inf_control.err.text);
}

Test(control, an_endless_loop_ends)
{
    inf_control_begin();
    inf_control_input("x", "DT_FLOAT", INF_DIMS(1));
    inf_control_scalar("limit", 0);
    inf_control_enter("limit/enter", "limit", "loop");
    inf_control_variable("v", "x", "loop");
    inf_control_node("below", "Less", "limit/enter,v/merge");
    inf_control_node("truth", "Any", "below,axes/enter");
    inf_tfjs_writer_ints(inf_control.writer, "axes", (int32_t[]){0}, INF_DIMS(1));
    inf_control_enter("axes/enter", "axes", "loop");
    inf_control_node("loop/cond", "LoopCond", "truth");
    inf_control_node("v/next", "Identity", "v/body");
    inf_control_accept("v");
    const float x = 1;
    const atomic_bool cancelled = true;
    const struct inf_feed feed = {{&x}, {INF_SHAPE(1)}};
    cr_assert_eq(inf_control_run_with(0, &feed, &cancelled), INF_CANCELLED);
    cr_assert_eq(inf_control_run_with(0, &feed, NULL), INF_EXHAUSTED);
    cr_assert_not_null(strstr(inf_control.err.text, "goes on after"), "%s", inf_control.err.text);
}

// --- branches (Switch and Merge nodes) ---

// x > 0 ? x * 2 : x - 1. A run that executed the untaken branch would fail.
Test(control, a_merge_becomes_a_branch)
{
    inf_control_begin();
    inf_control_input("x", "DT_FLOAT", NULL, 0);
    inf_control_input("list", "DT_FLOAT", INF_DIMS(-1));
    inf_control_scalar("zero", 0);
    inf_control_scalar("two", 2);
    inf_control_scalar_int("five", 5);
    inf_control_node("positive", "Greater", "x,zero");
    inf_control_node("pred", "Identity", "positive");
    inf_control_node("x/switch", "Switch", "x,pred");
    inf_control_node("list/switch", "Switch", "list,positive");
    inf_control_node("double", "Mul", "x/switch:1,two");
    inf_control_node("item", "GatherV2", "list/switch,five");
    inf_control_node("less", "Sub", "x/switch,item");
    inf_control_node("y", "Merge", "less,double");
    inf_control_accept("y");
    const float list[] = {9, 9, 9, 9, 9, 1};
    float x = 3;
    const struct inf_feed positive = {{&x, list}, {{0}, INF_SHAPE(2)}};
    INF_CONTROL_CHECK(&positive, 0, 6);
    x = -3;
    const struct inf_feed negative = {{&x, list}, {{0}, INF_SHAPE(6)}};
    INF_CONTROL_CHECK(&negative, 0, -4);
    cr_assert_eq(inf_control_run_with(0, &positive, NULL), INF_INVALID);
    cr_assert_not_null(strstr(inf_control.err.text, "node 'item' (gather)"), "%s",
                       inf_control.err.text);
}

// In TensorFlow's form of `cond(p, lambda: 1., lambda: 2.)`, each constant has only a control input
// from its branch. Given such a constant, expect that it belongs to that branch.
Test(control, constants_wait_for_their_side)
{
    inf_control_begin();
    inf_control_input("p", "DT_BOOL", NULL, 0);
    inf_control_node("switch", "Switch", "p,p");
    inf_control_node("true", "Identity", "switch:1");
    inf_control_node("false", "Identity", "switch");
    inf_control_scalar("one", 1);
    inf_control_scalar("two", 2);
    inf_control_node("a", "Identity", "one,^true");
    inf_control_node("b", "Identity", "two,^false");
    inf_control_node("y", "Merge", "a,b");
    inf_control_accept("y");
    uint8_t p = 1;
    const struct inf_feed feed = {{&p}, {{0}}};
    INF_CONTROL_CHECK(&feed, 0, 1);
    p = 0;
    INF_CONTROL_CHECK(&feed, 0, 2);
}

Test(control, a_branch_of_a_constant_is_no_branch)
{
    for (int32_t number = 0; number < 2; number++) {
        inf_control_begin();
        inf_control_input("x", "DT_FLOAT", INF_DIMS(2));
        inf_control_scalar_int("number", number);
        inf_control_scalar_int("one", 1);
        inf_control_node("pred", "Equal", "number,one");
        inf_control_node("x/switch", "Switch", "x,pred");
        inf_control_node("negative", "Neg", "x/switch:1");
        inf_control_node("square", "Square", "x/switch");
        inf_control_node("y", "Merge", "square,negative");
        inf_control_accept("y");
        const float x[] = {3, 4};
        const struct inf_feed feed = {{x}, {INF_SHAPE(2)}};
        if (number == 1)
            INF_CONTROL_CHECK(&feed, 0, -3, -4);
        else
            INF_CONTROL_CHECK(&feed, 0, 9, 16);
        cr_assert_eq(inf_control.interpreted, 0); // inf_control describes the run with all passes
    }
}

// The model computes: while (i < n) x = i == 1 ? x * 10 : x + 1;
Test(control, branches_nest_in_loops)
{
    inf_control_begin();
    inf_control_input("x", "DT_FLOAT", INF_DIMS(1));
    inf_control_input("n", "DT_INT32", NULL, 0);
    inf_control_scalar_int("zero", 0);
    inf_control_scalar_int("one", 1);
    inf_control_scalar("ten", 10);
    inf_control_scalar("step", 1);
    static const char *const constants[] = {"n", "one", "ten", "step"};
    for (size_t i = 0; i < 4; i++) {
        char name[16];
        snprintf(name, sizeof name, "%s/enter", constants[i]);
        inf_control_enter(name, constants[i], "loop");
    }
    inf_control_variable("i", "zero", "loop");
    inf_control_variable("v", "x", "loop");
    inf_control_node("less", "Less", "i/merge,n/enter");
    inf_control_node("loop/cond", "LoopCond", "less");
    inf_control_node("i/next", "AddV2", "i/body,one/enter");
    inf_control_node("second", "Equal", "i/body,one/enter");
    inf_control_node("v/choice", "Switch", "v/body,second");
    inf_control_node("ten/choice", "Switch", "ten/enter,second");
    inf_control_node("step/choice", "Switch", "step/enter,second");
    inf_control_node("times", "Mul", "v/choice:1,ten/choice:1");
    inf_control_node("plus", "AddV2", "v/choice,step/choice");
    inf_control_node("v/next", "Merge", "plus,times");
    inf_control_accept("v");
    const float x = 4;
    const int32_t n = 3;
    const struct inf_feed feed = {{&x, &n}, {INF_SHAPE(1), {0}}};
    INF_CONTROL_CHECK(&feed, 0, 51); // the result is (4 + 1) * 10 + 1
}

Test(control, broken_control_flow_is_refused)
{
    inf_control_begin();
    inf_control_input("x", "DT_FLOAT", INF_DIMS(1));
    doubling_loop("zero");
    inf_control_refuse("v/merge", INF_INVALID, "node 'v/merge' (Merge): is used outside the loop");
    inf_control_begin();
    inf_control_input("x", "DT_FLOAT", INF_DIMS(1));
    inf_control_node("exit", "Exit", "x");
    inf_control_refuse("exit", INF_INVALID,
                       "node 'exit' (Exit): wanted one input, a Switch by a LoopCond");
    inf_control_begin();
    inf_control_input("x", "DT_FLOAT", INF_DIMS(1));
    inf_control_node("m", "Merge", "x,n");
    inf_control_node("n", "NextIteration", "m");
    inf_control_refuse("m", INF_INVALID,
                       "node 'm' (Merge): is a loop's, and 'x' does not enter it");
    inf_control_begin();
    inf_control_input("x", "DT_FLOAT", INF_DIMS(1));
    inf_control_node("m", "Merge", "x,x");
    inf_control_refuse("m", INF_INVALID, "node 'm' (Merge): no Switch parts the values it merges");
    inf_control_begin();
    inf_control_input("x", "DT_FLOAT", INF_DIMS(1));
    inf_control_node("m", "Merge", "x,x,x");
    inf_control_refuse("m", INF_UNSUPPORTED, "node 'm' (Merge): merges 3 values");
    inf_control_begin();
    inf_control_input("x", "DT_FLOAT", INF_DIMS(1));
    inf_control_input("p", "DT_BOOL", NULL, 0);
    inf_control_node("s", "Switch", "x,p");
    inf_control_refuse("s:1", INF_INVALID,
                       "node 's' (Switch): its outputs are used, and meet in no Merge");
    inf_control_begin();
    inf_control_input("x", "DT_FLOAT", INF_DIMS(1));
    inf_control_node("a", "AddV2", "x,b");
    inf_control_node("b", "Neg", "a");
    inf_control_refuse("b", INF_INVALID, "is part of a cycle");
    inf_control_begin();
    inf_control_input("x", "DT_FLOAT", INF_DIMS(1));
    inf_control_scalar_int("zero", 0);
    inf_control_enter("i/enter", "zero", "loop");
    inf_control_node("i/merge", "Merge", "i/enter,i/iterate");
    inf_control_node("loop/cond", "LoopCond", "x");
    inf_control_node("i/switch", "Switch", "i/merge,loop/cond");
    inf_control_node("i/iterate", "NextIteration", "i/iterate");
    inf_control_node("i", "Exit", "i/switch");
    inf_control_refuse("i", INF_INVALID, "");
}

// --- functions (While and If nodes) ---

#define ARG(name) "{'name':'" name "','type':'DT_FLOAT'}"
#define PLACEHOLDER(name, type)                                                                    \
    "{'name':'" name "','op':'Placeholder','attr':{'dtype':{'type':'" type                         \
    "'},'shape':{'shape':{}}}}"
#define FLOATS2 "{'list':{'type':['DT_FLOAT','DT_FLOAT']}}"

// A While node whose condition and body are functions: while (a < b) { a = a + a; b = b; }
#define WHILE_MODEL(body)                                                                          \
    "{'modelTopology':{'node':[" PLACEHOLDER("a", "DT_FLOAT") "," PLACEHOLDER("b", "DT_FLOAT") "," \
    "{'name':'w','op':'StatelessWhile','input':['a','b'],'attr':{'T':" FLOATS2                    \
    ",'cond':{'func':{'name':'less'}},'body':{'func':{'name':'" body "'}}}}],"                     \
    "'library':{'function':["                                                                      \
    "{'signature':{'name':'less','inputArg':[" ARG("p") "," ARG("q") "],'outputArg':[" ARG("r")    \
    "]},'nodeDef':[{'name':'l','op':'Less','input':['p','q']}],'ret':{'r':'l:z:0'}},"              \
    "{'signature':{'name':'double','inputArg':[" ARG("p") "," ARG("q") "],'outputArg':["          \
    ARG("r") "," ARG("s") "]},'nodeDef':[{'name':'t','op':'AddV2','input':['p','p']}],"           \
    "'ret':{'r':'t:z:0','s':'q'}},"                                                                \
    "{'signature':{'name':'again','inputArg':[" ARG("p") "," ARG("q") "],'outputArg':["           \
    ARG("r") "," ARG("s") "]},'nodeDef':[{'name':'t','op':'StatelessWhile','input':['p','q'],"    \
    "'attr':{'T':" FLOATS2 ",'cond':{'func':{'name':'less'}},'body':{'func':{'name':'again'}}}}]," \
    "'ret':{'r':'t:output:0','s':'t:output:1'}},"                                                  \
    "{'signature':{'name':'short','inputArg':[" ARG("p") "],'outputArg':[]},'nodeDef':[]}"         \
    "]}},'signature':{'outputs':{'y':{'name':'w:0'},'z':{'name':'w:1'}}}}"

Test(control, while_calls_functions)
{
    cr_assert_eq(inf_tfjs_case_import_text(WHILE_MODEL("double")), INF_OK, "%s",
                 inf_tfjs_case.err.text);
    const float a = 3, b = 20;
    const struct inf_feed feed = {{&a, &b}, {{0}, {0}}};
    INF_CONTROL_CHECK(&feed, 0, 24);
    INF_CONTROL_CHECK(&feed, 1, 20);
}

Test(control, functions_that_cannot_be_are_refused)
{
    static const struct {
        const char *model, *part;
        enum inf_code code;
    } cases[] = {
        {WHILE_MODEL("again"), "which calls itself", INF_UNSUPPORTED},
        {WHILE_MODEL("nothing"), "calls 'nothing', which is no function", INF_INVALID},
        {WHILE_MODEL("short"), "with 2 arguments for 2 results, and it has 1 and 0", INF_INVALID},
        {WHILE_MODEL("less"), "with 2 arguments for 2 results, and it has 2 and 1", INF_INVALID},
    };
    for (size_t i = 0; i < 4; i++) {
        cr_assert_eq(inf_tfjs_case_import_text(cases[i].model), cases[i].code, "%zu: %s", i,
                     inf_tfjs_case.err.text);
        cr_assert_not_null(strstr(inf_tfjs_case.err.text, cases[i].part), "%s",
                           inf_tfjs_case.err.text);
    }
}

// An If node whose branches are functions: a ? b + b : b. The condition is a number.
Test(control, if_calls_functions)
{
    static const char model[] =
        "{'modelTopology':{'node':[" PLACEHOLDER("a", "DT_FLOAT") "," PLACEHOLDER(
            "b", "DT_FLOAT") ","
        "{'name':'i','op':'If','input':['a','b'],'attr':{'Tout':{'list':{'type':['DT_FLOAT']}},"
        "'then_branch':{'func':{'name':'twice'}},'else_branch':{'func':{'name':'same'}}}}],"
        "'library':{'function':["
        "{'signature':{'name':'twice','inputArg':[" ARG("p") "],'outputArg':[" ARG(
            "r") "]},"
        "'nodeDef':[{'name':'t','op':'AddV2','input':['p','p']}],'ret':{'r':'t:z:0'}},"
        "{'signature':{'name':'same','inputArg':[" ARG("p") "],'outputArg':[" ARG(
            "r") "]},"
        "'nodeDef':[],'ret':{'r':'p'}}]}},'signature':{'outputs':{'y':{'name':'i:0'}}}}";
    cr_assert_eq(inf_tfjs_case_import_text(model), INF_OK, "%s", inf_tfjs_case.err.text);
    float a = 0.5f;
    const float b = 4;
    const struct inf_feed feed = {{&a, &b}, {{0}, {0}}};
    INF_CONTROL_CHECK(&feed, 0, 8);
    a = 0;
    INF_CONTROL_CHECK(&feed, 0, 4);
}
