// SPDX-License-Identifier: Apache-2.0
// Control flow, lists and sizes that hang on values, from TensorFlow.js's nodes to numbers worked out
// by hand: with all passes, and with none.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backends/exec/model.h"
#include "backends/ref/ref.h"
#include "tests/support/tfjs_case.h"

static struct inf_device *ref;
static struct inf_tfjs_writer *w;
static struct inf_error err;

static void start(void)
{
    const struct inf_device_options options = {.slots = 1};
    inf_tfjs_case_init();
    cr_assert_eq(inf_device_open(&ref, &inf_ref_backend, 0, &options, &err), INF_OK);
}

static void stop(void)
{
    inf_device_unref(&ref);
    inf_tfjs_case_fini();
}

TestSuite(control, .init = start, .fini = stop, .timeout = 60);

#define DIMS(...)    (int64_t[]){__VA_ARGS__}, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)
#define ANY_DIMS     DIMS(-1)
#define OUTPUTS_MAX  4
#define ELEMENTS_MAX 64

// --- writing models ---

static void begin(void)
{
    w = inf_tfjs_writer_begin(inf_tfjs_case.path);
}

static void input(const char *name, const char *type, const int64_t *dims, size_t rank)
{
    inf_tfjs_writer_placeholder(w, name, type, dims, rank);
}

static void scalar_int(const char *name, int32_t element)
{
    inf_tfjs_writer_ints(w, name, &element, NULL, 0);
}

static void scalar(const char *name, float element)
{
    inf_tfjs_writer_floats(w, name, &element, NULL, 0);
}

static void node(const char *name, const char *op, const char *inputs)
{
    inf_tfjs_writer_node(w, name, op, inputs);
}

static void enter(const char *name, const char *from, const char *frame)
{
    node(name, "Enter", from);
    inf_tfjs_writer_attr_text(w, "frame_name", frame);
}

// A loop variable NAME from value `from`: NAME/merge is its value in an iteration, NAME/body what the
// body sees, NAME the last value; the body must make NAME/next.
static void variable(const char *name, const char *from, const char *frame)
{
    char text[6][64], inputs[160];
    static const char *const parts[] = {"enter", "merge", "switch", "body", "iterate", "next"};
    for (int i = 0; i < 6; i++)
        snprintf(text[i], sizeof text[i], "%s/%s", name, parts[i]);
    enter(text[0], from, frame);
    snprintf(inputs, sizeof inputs, "%s,%s", text[0], text[4]);
    node(text[1], "Merge", inputs);
    snprintf(inputs, sizeof inputs, "%s,%s/cond", text[1], frame);
    node(text[2], "Switch", inputs);
    snprintf(inputs, sizeof inputs, "%s:1", text[2]);
    node(text[3], "Identity", inputs);
    node(text[4], "NextIteration", text[5]);
    node(name, "Exit", text[2]);
}

// --- running them ---

struct result {
    enum inf_dtype dtype;
    struct inf_shape shape;
    uint32_t count;
    double elements[ELEMENTS_MAX];
};

static struct result results[OUTPUTS_MAX];
static uint32_t interpreted;

static void keep(struct result *result, const struct inf_result *from)
{
    *result = (struct result){.dtype = from->dtype,
                              .shape = from->shape,
                              .count = (uint32_t)inf_shape_elements(&from->shape)};
    cr_assert_leq(result->count, ELEMENTS_MAX);
    for (uint32_t i = 0; i < result->count; i++)
        result->elements[i] = from->dtype == INF_DTYPE_F32   ? ((const float *)from->data)[i]
                              : from->dtype == INF_DTYPE_I32 ? ((const int32_t *)from->data)[i]
                                                             : ((const uint8_t *)from->data)[i];
}

// What a run is given.
struct feed {
    const void *data[4];
    struct inf_shape shapes[4];
};

static enum inf_code run(struct inf_executable *executable, const struct feed *feed,
                         const atomic_bool *cancelled)
{
    static unsigned char memory[OUTPUTS_MAX][ELEMENTS_MAX * 8];
    const struct inf_graph *graph = inf_executable_graph(executable);
    void *outputs[OUTPUTS_MAX] = {memory[0], memory[1], memory[2], memory[3]};
    struct inf_execution execution = {
        .inputs = feed->data, .outputs = outputs, .cancelled = cancelled};
    cr_assert_leq(graph->output_count, OUTPUTS_MAX);
    for (uint32_t i = 0; i < graph->output_count; i++)
        if (!inf_shape_known(&graph->values[graph->outputs[i].value].shape))
            outputs[i] = NULL;
    enum inf_code code = inf_executable_run(executable, &execution, &err);
    for (uint32_t i = 0; i < graph->output_count && code == INF_OK; i++) {
        const struct inf_value *value = &graph->values[graph->outputs[i].value];
        struct inf_result result = {value->dtype, value->shape, outputs[i], 0};
        cr_assert_eq(inf_executable_result(executable, 0, i, &result), outputs[i] == NULL);
        keep(&results[i], &result);
    }
    inf_executable_drop_results(executable, 0);
    return code;
}

// Runs a copy of the case's graph with some passes switched off.
static enum inf_code run_with(uint32_t disabled, const struct feed *feed,
                              const atomic_bool *cancelled)
{
    struct inf_graph *graph = NULL;
    struct inf_model *model = NULL;
    struct inf_executable *executable = NULL;
    const struct inf_pass_options options = {.disabled = disabled,
                                             .evaluator = inf_ref_evaluator()};
    cr_assert_eq(inf_graph_clone(&graph, inf_tfjs_case.graph, &err), INF_OK);
    cr_assert_eq(inf_model_create(&model, &graph, &ref, 1, &options, &err), INF_OK, "%s", err.text);
    enum inf_code code = inf_model_acquire(model, ref, feed->shapes, &executable, &err);
    if (code == INF_OK) {
        interpreted = inf_executable_interpreted_nodes(executable);
        code = run(executable, feed, cancelled);
        inf_model_release(model, &executable);
    }
    inf_model_unref(&model);
    return code;
}

// Runs the case without passes, with loops and branches inlined only, and with all passes; each way,
// the outputs are these.
static void check(const struct feed *feed, uint32_t output, const double *wanted, uint32_t count)
{
    static const uint32_t disabled[] = {UINT32_MAX, ~(1u << INF_PASS_INLINE), 0};
    for (size_t k = 0; k < sizeof disabled / sizeof disabled[0]; k++) {
        cr_assert_eq(run_with(disabled[k], feed, NULL), INF_OK, "%s", err.text);
        cr_assert_eq(results[output].count, count, "%u elements, wanted %u, without passes %x",
                     results[output].count, count, disabled[k]);
        for (uint32_t i = 0; i < count; i++)
            cr_assert_float_eq(results[output].elements[i], wanted[i], 1e-6,
                               "element %u is %g, wanted %g, without passes %x", i,
                               results[output].elements[i], wanted[i], disabled[k]);
    }
}

#define CHECK(feed, output, ...)                                                                   \
    check((feed), (output), (const double[]){__VA_ARGS__},                                         \
          sizeof((const double[]){__VA_ARGS__}) / sizeof(double))

static void accept(const char *output)
{
    inf_tfjs_writer_output(w, "y", output);
    inf_tfjs_case_accept(w);
}

static void refuse(const char *output, enum inf_code code, const char *part)
{
    inf_tfjs_writer_output(w, "y", output);
    inf_tfjs_case_refuse(w, code, part);
}

// --- loops of frames ---

// x doubled n times: while (i < n) { i += 1; x += x; }
static void doubling_loop(const char *n)
{
    scalar_int("zero", 0);
    scalar_int("one", 1);
    enter("n/enter", n, "loop");
    enter("one/enter", "one", "loop");
    variable("i", "zero", "loop");
    variable("v", "x", "loop");
    node("less", "Less", "i/merge,n/enter");
    node("loop/cond", "LoopCond", "less");
    node("i/next", "AddV2", "i/body,one/enter");
    node("v/next", "AddV2", "v/body,v/body");
}

Test(control, a_frame_becomes_a_loop)
{
    begin();
    input("n", "DT_INT32", NULL, 0);
    input("x", "DT_FLOAT", DIMS(2));
    doubling_loop("n");
    accept("v");
    for (int32_t n = 0; n < 5; n++) {
        const float x[] = {1, -3};
        const struct feed feed = {{&n, x}, {{0}, INF_SHAPE(2)}};
        CHECK(&feed, 0, (double)(1 << n), -3.0 * (1 << n));
        cr_assert_gt(interpreted, 0);
        cr_assert(inf_shape_equal(&results[0].shape, &INF_SHAPE(2)));
    }
}

Test(control, a_loop_whose_end_is_known_is_unrolled)
{
    static const int32_t counts[] = {0, 1, 7, 64, 65};
    for (size_t i = 0; i < 5; i++) {
        begin();
        scalar_int("n", counts[i]);
        input("x", "DT_FLOAT", DIMS(1));
        doubling_loop("n");
        accept("v");
        const float x = ldexpf(1, -40);
        const struct feed feed = {{&x}, {INF_SHAPE(1)}};
        cr_assert_eq(run_with(0, &feed, NULL), INF_OK, "%s", err.text);
        cr_assert_eq(results[0].elements[0], ldexp(1, counts[i] - 40));
        // More than 64 iterations stay a loop.
        cr_assert_eq(interpreted > 0, counts[i] > 64, "%d iterations", counts[i]);
        cr_assert_eq(run_with(UINT32_MAX, &feed, NULL), INF_OK, "%s", err.text);
        cr_assert_eq(results[0].elements[0], ldexp(1, counts[i] - 40));
    }
}

// for (i = 0; i < 3; i++) for (j = 0; j < i; j++) x += 1;  makes x + 0 + 1 + 2.
Test(control, frames_nest)
{
    begin();
    input("x", "DT_FLOAT", DIMS(1));
    input("n", "DT_INT32", NULL, 0);
    scalar_int("zero", 0);
    scalar_int("one", 1);
    scalar("step", 1);
    enter("n/outer", "n", "outer");
    enter("one/outer", "one", "outer");
    enter("zero/outer", "zero", "outer");
    enter("step/outer", "step", "outer");
    variable("i", "zero", "outer");
    variable("v", "x", "outer");
    node("outer/less", "Less", "i/merge,n/outer");
    node("outer/cond", "LoopCond", "outer/less");
    node("i/next", "AddV2", "i/body,one/outer");
    enter("i/inner", "i/body", "inner");
    enter("one/inner", "one/outer", "inner");
    enter("step/inner", "step/outer", "inner");
    variable("j", "zero/outer", "inner");
    variable("u", "v/body", "inner");
    node("inner/less", "Less", "j/merge,i/inner");
    node("inner/cond", "LoopCond", "inner/less");
    node("j/next", "AddV2", "j/body,one/inner");
    node("u/next", "AddV2", "u/body,step/inner");
    node("v/next", "Identity", "u");
    accept("v");
    const float x = 10;
    const int32_t n = 3;
    const struct feed feed = {{&x, &n}, {INF_SHAPE(1), {0}}};
    CHECK(&feed, 0, 13);
}

Test(control, a_list_collects_what_iterations_make)
{
    begin();
    input("x", "DT_FLOAT", DIMS(-1));
    input("n", "DT_INT32", NULL, 0);
    scalar_int("zero", 0);
    scalar_int("one", 1);
    node("array", "TensorArrayV3", "n");
    inf_tfjs_writer_attr_type(w, "dtype", "DT_FLOAT");
    enter("n/enter", "n", "loop");
    enter("one/enter", "one", "loop");
    enter("x/enter", "x", "loop");
    enter("handle", "array", "loop");
    variable("i", "zero", "loop");
    variable("flow", "array:1", "loop");
    node("less", "Less", "i/merge,n/enter");
    node("loop/cond", "LoopCond", "less");
    node("i/next", "AddV2", "i/body,one/enter");
    node("item", "GatherV2", "x/enter,i/body");
    node("pair", "Pack", "item,item");
    node("flow/next", "TensorArrayWriteV3", "handle,i/body,pair,flow/body");
    node("size", "TensorArraySizeV3", "array,flow");
    node("range", "Range", "zero,size,one");
    node("y", "TensorArrayGatherV3", "array,range,flow");
    accept("y");
    const float x[] = {5, 6, 7};
    const int32_t n = 3;
    const struct feed feed = {{x, &n}, {INF_SHAPE(3), {0}}};
    CHECK(&feed, 0, 5, 5, 6, 6, 7, 7);
    cr_assert(inf_shape_equal(&results[0].shape, &INF_SHAPE(3, 2)));
    const int32_t more = 4; // one more than x has
    const struct feed too_far = {{x, &more}, {INF_SHAPE(3), {0}}};
    cr_assert_eq(run_with(0, &too_far, NULL), INF_INVALID);
    cr_assert_not_null(strstr(err.text, "node 'item' (gather): index 3"), "%s", err.text);
}

Test(control, an_endless_loop_ends)
{
    begin();
    input("x", "DT_FLOAT", DIMS(1));
    scalar("limit", 0);
    enter("limit/enter", "limit", "loop");
    variable("v", "x", "loop");
    node("below", "Less", "limit/enter,v/merge");
    node("truth", "Any", "below,axes/enter");
    inf_tfjs_writer_ints(w, "axes", (int32_t[]){0}, DIMS(1));
    enter("axes/enter", "axes", "loop");
    node("loop/cond", "LoopCond", "truth");
    node("v/next", "Identity", "v/body");
    accept("v");
    const float x = 1;
    const atomic_bool cancelled = true;
    const struct feed feed = {{&x}, {INF_SHAPE(1)}};
    cr_assert_eq(run_with(0, &feed, &cancelled), INF_CANCELLED);
    cr_assert_eq(run_with(0, &feed, NULL), INF_EXHAUSTED);
    cr_assert_not_null(strstr(err.text, "goes on after"), "%s", err.text);
}

// --- branches ---

// x > 0 ? x * 2 : x - 1, and the side that is not taken would fail the run.
Test(control, a_merge_becomes_a_branch)
{
    begin();
    input("x", "DT_FLOAT", NULL, 0);
    input("list", "DT_FLOAT", DIMS(-1));
    scalar("zero", 0);
    scalar("two", 2);
    scalar_int("five", 5);
    node("positive", "Greater", "x,zero");
    node("pred", "Identity", "positive");
    node("x/switch", "Switch", "x,pred");
    node("list/switch", "Switch", "list,positive");
    node("double", "Mul", "x/switch:1,two");
    node("item", "GatherV2", "list/switch,five");
    node("less", "Sub", "x/switch,item");
    node("y", "Merge", "less,double");
    accept("y");
    const float list[] = {9, 9, 9, 9, 9, 1};
    float x = 3;
    const struct feed positive = {{&x, list}, {{0}, INF_SHAPE(2)}};
    CHECK(&positive, 0, 6);
    x = -3;
    const struct feed negative = {{&x, list}, {{0}, INF_SHAPE(6)}};
    CHECK(&negative, 0, -4);
    cr_assert_eq(run_with(0, &positive, NULL), INF_INVALID);
    cr_assert_not_null(strstr(err.text, "node 'item' (gather)"), "%s", err.text);
}

// A constant that only waits for the side, as TensorFlow writes `cond(p, lambda: 1., lambda: 2.)`.
Test(control, constants_wait_for_their_side)
{
    begin();
    input("p", "DT_BOOL", NULL, 0);
    node("switch", "Switch", "p,p");
    node("true", "Identity", "switch:1");
    node("false", "Identity", "switch");
    scalar("one", 1);
    scalar("two", 2);
    node("a", "Identity", "one,^true");
    node("b", "Identity", "two,^false");
    node("y", "Merge", "a,b");
    accept("y");
    uint8_t p = 1;
    const struct feed feed = {{&p}, {{0}}};
    CHECK(&feed, 0, 1);
    p = 0;
    CHECK(&feed, 0, 2);
}

Test(control, a_branch_of_a_constant_is_no_branch)
{
    for (int32_t number = 0; number < 2; number++) {
        begin();
        input("x", "DT_FLOAT", DIMS(2));
        scalar_int("number", number);
        scalar_int("one", 1);
        node("pred", "Equal", "number,one");
        node("x/switch", "Switch", "x,pred");
        node("negative", "Neg", "x/switch:1");
        node("square", "Square", "x/switch");
        node("y", "Merge", "square,negative");
        accept("y");
        const float x[] = {3, 4};
        const struct feed feed = {{x}, {INF_SHAPE(2)}};
        if (number == 1)
            CHECK(&feed, 0, -3, -4);
        else
            CHECK(&feed, 0, 9, 16);
        cr_assert_eq(interpreted, 0); // the run with passes is the last
    }
}

// while (i < n) x = i == 1 ? x * 10 : x + 1;
Test(control, branches_nest_in_loops)
{
    begin();
    input("x", "DT_FLOAT", DIMS(1));
    input("n", "DT_INT32", NULL, 0);
    scalar_int("zero", 0);
    scalar_int("one", 1);
    scalar("ten", 10);
    scalar("step", 1);
    static const char *const constants[] = {"n", "one", "ten", "step"};
    for (size_t i = 0; i < 4; i++) {
        char name[16];
        snprintf(name, sizeof name, "%s/enter", constants[i]);
        enter(name, constants[i], "loop");
    }
    variable("i", "zero", "loop");
    variable("v", "x", "loop");
    node("less", "Less", "i/merge,n/enter");
    node("loop/cond", "LoopCond", "less");
    node("i/next", "AddV2", "i/body,one/enter");
    node("second", "Equal", "i/body,one/enter");
    node("v/choice", "Switch", "v/body,second");
    node("ten/choice", "Switch", "ten/enter,second");
    node("step/choice", "Switch", "step/enter,second");
    node("times", "Mul", "v/choice:1,ten/choice:1");
    node("plus", "AddV2", "v/choice,step/choice");
    node("v/next", "Merge", "plus,times");
    accept("v");
    const float x = 4;
    const int32_t n = 3;
    const struct feed feed = {{&x, &n}, {INF_SHAPE(1), {0}}};
    CHECK(&feed, 0, 51); // (4 + 1) * 10 + 1
}

Test(control, broken_control_flow_is_refused)
{
    begin();
    input("x", "DT_FLOAT", DIMS(1));
    doubling_loop("zero");
    refuse("v/merge", INF_INVALID, "node 'v/merge' (Merge): is used outside the loop");
    begin();
    input("x", "DT_FLOAT", DIMS(1));
    node("exit", "Exit", "x");
    refuse("exit", INF_INVALID, "node 'exit' (Exit): wanted one input, a Switch by a LoopCond");
    begin();
    input("x", "DT_FLOAT", DIMS(1));
    node("m", "Merge", "x,n");
    node("n", "NextIteration", "m");
    refuse("m", INF_INVALID, "node 'm' (Merge): is a loop's, and 'x' does not enter it");
    begin();
    input("x", "DT_FLOAT", DIMS(1));
    node("m", "Merge", "x,x");
    refuse("m", INF_INVALID, "node 'm' (Merge): no Switch parts the values it merges");
    begin();
    input("x", "DT_FLOAT", DIMS(1));
    node("m", "Merge", "x,x,x");
    refuse("m", INF_UNSUPPORTED, "node 'm' (Merge): merges 3 values");
    begin();
    input("x", "DT_FLOAT", DIMS(1));
    input("p", "DT_BOOL", NULL, 0);
    node("s", "Switch", "x,p");
    refuse("s:1", INF_INVALID, "node 's' (Switch): its outputs are used, and meet in no Merge");
    begin();
    input("x", "DT_FLOAT", DIMS(1));
    node("a", "AddV2", "x,b");
    node("b", "Neg", "a");
    refuse("b", INF_INVALID, "is part of a cycle");
    begin();
    input("x", "DT_FLOAT", DIMS(1));
    scalar_int("zero", 0);
    enter("i/enter", "zero", "loop");
    node("i/merge", "Merge", "i/enter,i/iterate");
    node("loop/cond", "LoopCond", "x");
    node("i/switch", "Switch", "i/merge,loop/cond");
    node("i/iterate", "NextIteration", "i/iterate");
    node("i", "Exit", "i/switch");
    refuse("i", INF_INVALID, "");
}

// --- functions ---

#define ARG(name) "{'name':'" name "','type':'DT_FLOAT'}"
#define PLACEHOLDER(name, type)                                                                    \
    "{'name':'" name "','op':'Placeholder','attr':{'dtype':{'type':'" type                         \
    "'},'shape':{'shape':{}}}}"
#define FLOATS2 "{'list':{'type':['DT_FLOAT','DT_FLOAT']}}"

// Two values: While (a < b) { a = a + a; b = b; } by functions.
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
    const struct feed feed = {{&a, &b}, {{0}, {0}}};
    CHECK(&feed, 0, 24);
    CHECK(&feed, 1, 20);
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

// If (a) by functions: b + b, or b; the condition is a number.
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
    const struct feed feed = {{&a, &b}, {{0}, {0}}};
    CHECK(&feed, 0, 8);
    a = 0;
    CHECK(&feed, 0, 4);
}

// --- sizes that hang on values ---

Test(control, where_lists_positions)
{
    begin();
    input("x", "DT_INT32", DIMS(2, 3));
    node("y", "Where", "x");
    accept("y");
    const int32_t x[] = {0, 7, 0, -1, 0, 2};
    const struct feed feed = {{x}, {INF_SHAPE(2, 3)}};
    CHECK(&feed, 0, 0, 1, 1, 0, 1, 2);
    cr_assert(inf_shape_equal(&results[0].shape, &INF_SHAPE(3, 2)));
    const int32_t zeros[6] = {0};
    const struct feed none = {{zeros}, {INF_SHAPE(2, 3)}};
    check(&none, 0, NULL, 0);
    cr_assert(inf_shape_equal(&results[0].shape, &INF_SHAPE(0, 2)));
}

// Nodes behind sizes that only the run tells: gather the positive elements and sum their squares.
Test(control, what_follows_takes_the_size_it_gets)
{
    begin();
    input("x", "DT_FLOAT", DIMS(-1));
    scalar("zero", 0);
    inf_tfjs_writer_ints(w, "axis", (int32_t[]){0}, DIMS(1));
    inf_tfjs_writer_ints(w, "flat", (int32_t[]){-1}, DIMS(1));
    node("positive", "Greater", "x,zero");
    node("where", "Where", "positive");
    node("places", "Reshape", "where,flat");
    node("picked", "GatherV2", "x,places");
    node("square", "Square", "picked");
    node("sum", "Sum", "square,axis");
    inf_tfjs_writer_output(w, "p", "picked");
    accept("sum");
    const float x[] = {-1, 3, 0, 4, -2};
    const struct feed feed = {{x}, {INF_SHAPE(5)}};
    CHECK(&feed, 0, 3, 4);
    CHECK(&feed, 1, 25);
    const struct feed none = {{x}, {INF_SHAPE(1)}};
    check(&none, 0, NULL, 0);
    CHECK(&none, 1, 0);
}

// Boxes 0 and 1 overlap by 9 of 11 parts, box 2 is apart, box 3 is box 0 with its corners swapped.
static const float boxes[] = {0, 0, 1, 1, 0, 0.1f, 1, 1.1f, 5, 5, 6, 6, 1, 1, 0, 0};

static void nms_model(const char *op, const char *inputs, int pad)
{
    begin();
    input("boxes", "DT_FLOAT", DIMS(-1, 4));
    input("scores", "DT_FLOAT", DIMS(-1));
    scalar_int("most", 3);
    scalar("overlap", 0.5f);
    scalar("least", 0.15f);
    scalar("sigma", 0.5f);
    node("n", op, inputs);
    if (pad)
        inf_tfjs_writer_attr_bool(w, "pad_to_max_output_size", 1);
}

Test(control, nms_keeps_the_best_of_what_overlaps)
{
    const float scores[] = {0.6f, 0.9f, 0.3f, 0.9f};
    const struct feed feed = {{boxes, scores}, {INF_SHAPE(4, 4), INF_SHAPE(4)}};
    nms_model("NonMaxSuppressionV2", "boxes,scores,most,overlap", 0);
    accept("n");
    CHECK(&feed, 0, 1, 2); // of equal scores the first comes first
    nms_model("NonMaxSuppressionV3", "boxes,scores,most,overlap,sigma", 0);
    accept("n");
    CHECK(&feed, 0, 1); // box 2 scores less than the threshold, here 0.5
    nms_model("NonMaxSuppressionV4", "boxes,scores,most,overlap,least", 1);
    inf_tfjs_writer_output(w, "count", "n:1");
    accept("n");
    CHECK(&feed, 0, 2);
    CHECK(&feed, 1, 1, 2, 0);
    cr_assert_eq(interpreted, 0); // a padded output has a known size
}

// Soft suppression by hand: box 1 and 3 have 0.9, box 1 is first. Overlap of 3 (and 0) with 1 is
// 0.9 / 1.1 = 9/11, above 0.5: gone. Only box 2 (overlap 0) is left, its score as it was.
Test(control, soft_nms_lowers_scores)
{
    const float scores[] = {0.6f, 0.9f, 0.3f, 0.9f};
    const struct feed feed = {{boxes, scores}, {INF_SHAPE(4, 4), INF_SHAPE(4)}};
    nms_model("NonMaxSuppressionV5", "boxes,scores,most,overlap,least,sigma", 0);
    inf_tfjs_writer_output(w, "s", "n:1");
    accept("n");
    CHECK(&feed, 0, 0.9f, 0.3f);
    CHECK(&feed, 1, 1, 2);
    // With a threshold that nothing is above, overlaps lower the score: e^(-0.5 / 0.5 * (9/11)^2).
    begin();
    input("boxes", "DT_FLOAT", DIMS(-1, 4));
    input("scores", "DT_FLOAT", DIMS(-1));
    scalar_int("most", 2);
    scalar("overlap", 1);
    scalar("least", 0);
    scalar("sigma", 0.5f);
    node("n", "NonMaxSuppressionV5", "boxes,scores,most,overlap,least,sigma");
    inf_tfjs_writer_output(w, "s", "n:1");
    accept("n");
    const struct feed two = {{boxes, scores}, {INF_SHAPE(2, 4), INF_SHAPE(2)}};
    const double shared = 0.9 / 1.1;
    CHECK(&two, 0, 0.9f, 0.6f * exp(-shared * shared));
    CHECK(&two, 1, 1, 0);
}

Test(control, unique_numbers_and_differences)
{
    begin();
    input("x", "DT_INT32", ANY_DIMS);
    input("y", "DT_INT32", ANY_DIMS);
    node("u", "Unique", "x");
    node("d", "ListDiff", "x,y");
    inf_tfjs_writer_output(w, "u", "u");
    inf_tfjs_writer_output(w, "i", "u:1");
    inf_tfjs_writer_output(w, "d", "d");
    inf_tfjs_writer_output(w, "at", "d:1");
    inf_tfjs_case_accept(w);
    const int32_t x[] = {1, 1, 2, 4, 4, 4, 7, 8, 8}, y[] = {8, 2, 3};
    const struct feed feed = {{x, y}, {INF_SHAPE(9), INF_SHAPE(3)}};
    CHECK(&feed, 0, 1, 2, 4, 7, 8);
    CHECK(&feed, 1, 0, 0, 1, 2, 2, 2, 3, 4, 4);
    CHECK(&feed, 2, 1, 1, 4, 4, 4, 7);
    CHECK(&feed, 3, 0, 1, 3, 4, 5, 6);
}
