// SPDX-License-Identifier: Apache-2.0
// Every operator on every device of the registry, compared with the reference device `ref` on
// seeded random nodes. The cpu device is tested once for each ISA level of the project's own
// kernels. A device may decline a node, but it must not compute a different result, write outside
// of its outputs or change its inputs. XNNPACK's kernels may read some bytes beyond an operand. All
// other kernels in host memory run again with operands that end at an unreadable page. `ref` itself
// is compared with literals in tests/unit/ref/test_ref*.c.
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/half.h"
#include "backends/cpu/kernels/isa.h"
#include "backends/graph/print.h"
#include "backends/registry.h"
#include "tests/conformance/cases.h"
#include "tests/support/criterion/case_step.h"

// At most this many faults of one operator on one device are printed in full.
#define TOLD_MAX 3

// At most this many cases of each operator also run on values in 16 bits.
#define LOWERED_CASES 10

// `ref` is slow, so only one case in REF_FENCED runs on it again with operands at fences
// (unreadable pages).
#define REF_FENCED 4

// The maximum number of devices that the test compares. The last one is `ref`, which gives the
// expected results.
#define SUBJECTS (INF_REGISTRY_DEVICES + 8)

struct subject {
    struct inf_device *device;
    char name[48];
};

static struct inf_device_list devices;
static struct subject subjects[SUBJECTS];
static uint32_t subject_count;

static void add_subject(struct inf_device *device, const char *level)
{
    struct subject *subject = &subjects[subject_count++];
    subject->device = device;
    snprintf(subject->name, sizeof(subject->name), "%s%s%s", inf_device_info(device)->name,
             level != NULL ? " " : "", level != NULL ? level : "");
}

// Adds the cpu device once for each ISA level below the best level. The registry's cpu device has
// the best level.
static void add_levels(void)
{
    const struct inf_backend *cpu = inf_registry_find("cpu");
    for (unsigned level = 0; cpu != NULL && inf_isa_level(level + 1) != NULL; level++) {
        struct inf_error err = {0};
        struct inf_device *device;
        struct inf_device_options options = {.threads = 2, .isa_max = inf_isa_level(level)->name};
        cr_assert_lt(subject_count + devices.count, (unsigned)SUBJECTS);
        cr_assert_eq(inf_device_open(&device, cpu, 0, &options, &err), INF_OK, "%s", err.text);
        cr_assert_not_null(
            strstr(inf_device_info(device)->description, inf_isa_level(level)->title));
        add_subject(device, options.isa_max);
    }
}

static void open_devices(void)
{
    struct inf_error err = {0};
    struct inf_device_options options = {.threads = 2};
    // Devices are requested by name, because a Vulkan device on the CPU is only included by name.
    char names[64] = "";
    const char *without = getenv("INF_OPS_WITHOUT");
    for (const struct inf_backend *const *backend = inf_registry_backends(); *backend; backend++) {
        size_t used = strlen(names);
        if (without != NULL && strcmp(inf_registry_name(*backend), without) == 0)
            continue;
        snprintf(names + used, sizeof(names) - used, "%s%s", used != 0 ? "," : "",
                 inf_registry_name(*backend));
    }
    cr_assert_eq(inf_device_list_open(&devices, names, &options, &err), INF_OK, "%s", err.text);
    const char *only = getenv("INF_OPS_BACKEND"); // the backend to test besides ref
    if (only == NULL)
        add_levels();
    for (uint32_t i = 0; i < devices.count; i++) {
        const char *backend = inf_device_info(devices.devices[i])->backend;
        if (only != NULL && strcmp(backend, only) != 0 && i + 1 < devices.count)
            continue;
        add_subject(inf_device_ref(devices.devices[i]),
                    strcmp(backend, "cpu") == 0 ? inf_isa_best()->name : NULL);
    }
}

static void close_devices(void)
{
    while (subject_count > 0)
        inf_device_unref(&subjects[--subject_count].device);
    inf_device_list_close(&devices);
}

TestSuite(ops, .init = open_devices, .fini = close_devices);

// --- comparing results with those of `ref` ---

static double get_element(const struct one_tensor *tensor, size_t i)
{
    switch (tensor->dtype) {
    case INF_DTYPE_F32:
        return (double)((const float *)tensor->data)[i];
    case INF_DTYPE_F64:
        return ((const double *)tensor->data)[i];
    case INF_DTYPE_F16:
        return (double)inf_half_to_float(((const uint16_t *)tensor->data)[i]);
    default:
        return (double)inf_bf16_to_float(((const uint16_t *)tensor->data)[i]);
    }
}

// The tolerance of a float type, relative to the element and to the largest element: the error of a
// sum of products is in proportion to its largest terms.
static double float_tolerance(enum inf_dtype dtype)
{
    switch (dtype) {
    case INF_DTYPE_F16:
        return 4e-3;
    case INF_DTYPE_BF16:
        return 3e-2;
    case INF_DTYPE_F64:
        return 1e-12;
    default:
        return 1e-5;
    }
}

static double find_largest(const struct one_tensor *tensor, size_t count)
{
    double result = 0;
    for (size_t i = 0; i < count; i++)
        if (isfinite(get_element(tensor, i)))
            result = fmax(result, fabs(get_element(tensor, i)));
    return result;
}

// Returns how many rounded products or elements are summed up for one element of the output.
static double count_terms(const struct one_node *one)
{
    const struct one_tensor *x = &one->inputs[0], *filter = &one->inputs[1];
    switch (one->op) {
    case INF_OP_CONV2D:
        return (double)inf_shape_elements(&filter->shape) / (double)filter->shape.dims[3];
    case INF_OP_DEPTHWISE_CONV2D:
    case INF_OP_CONV2D_TRANSPOSE:
        return (double)inf_shape_elements(&filter->shape) / (double)filter->shape.dims[2];
    case INF_OP_MATMUL:
        return (double)x->shape.dims[x->shape.rank - (one->attrs.matmul.transpose_a ? 2 : 1)];
    case INF_OP_MATMUL_BLOCKS: // a term is at most 2^bits times as large as x
        return (double)x->shape.dims[x->shape.rank - 1] * (1 << one->attrs.matmul_blocks.bits);
    case INF_OP_REDUCE:
        return (double)inf_shape_elements(&x->shape);
    default:
        return 0;
    }
}

static bool only_moves(const struct one_node *one)
{
    return one->op >= INF_OP_IDENTITY && one->op <= INF_OP_FILL;
}

// Returns true if the operator only moves or orders elements, so that results must be equal.
static bool is_exact(const struct one_node *one)
{
    switch (one->op) {
    case INF_OP_UNARY:
        return one->attrs.unary.kind <= INF_UNARY_TRUNC ||
               one->attrs.unary.kind == INF_UNARY_RELU || one->attrs.unary.kind == INF_UNARY_RELU6;
    case INF_OP_CLIP:
    case INF_OP_SELECT:
        return true;
    case INF_OP_POOL2D:
        return one->attrs.pool2d.kind == INF_POOL_MAX;
    default:
        return only_moves(one);
    }
}

// Returns true if the wanted element does not fit in 16 bits and the device returned infinity of
// the right sign.
static bool overflow_matches(double got, double wanted)
{
    return fabs(wanted) >= 65520 && isinf(got) && signbit(got) == signbit(wanted);
}

// Returns the index of the first output element that differs, or SIZE_MAX if all agree.
static size_t first_difference(const struct one_node *one, const struct one_tensor *got,
                               const struct one_tensor *wanted)
{
    size_t size = inf_dtype_size(wanted->dtype), count = wanted->size_bytes / size;
    bool is_float = inf_dtype_is_float(wanted->dtype);
    double relative = is_float && !is_exact(one) ? float_tolerance(wanted->dtype) : 0;
    // The output may be much smaller than the sum before the activation, so the tolerance includes
    // the error of the sum's terms, which is 6e-8 per term for FP32.
    double scale = is_float ? fmin(find_largest(wanted, count), 1e3) + count_terms(one) / 160 : 0;
    // A result in 16 bits is rounded to 11 bits and to multiples of 2^-24. The weights are rounded
    // before.
    bool rounds = one->lowered && wanted->dtype == INF_DTYPE_F32 && !only_moves(one);
    double coarse = rounds ? 5e-4 : 0, least = rounds ? 3e-8 : 0;
    // Weights in blocks cannot be rounded before: the device rounds them when it expands them.
    // count_terms() bounds the sum of the terms; they are smaller on average.
    if (rounds && one->op == INF_OP_MATMUL_BLOCKS)
        least += coarse * count_terms(one) / 4;
    for (size_t i = 0; i < count; i++) {
        // A result that overflows 16 bits is accepted as infinity. The tolerance below lets devices
        // flush the smallest floats to 0.
        if (rounds && overflow_matches(get_element(got, i), get_element(wanted, i)))
            continue;
        if (is_float ? !one_node_near(get_element(got, i), get_element(wanted, i),
                                      relative * scale + 1.2e-38 + least, relative + coarse)
                     : memcmp((const char *)got->data + i * size,
                              (const char *)wanted->data + i * size, size) != 0)
            return i;
    }
    return SIZE_MAX;
}

// --- running a case on all devices ---

struct tally {
    uint32_t ran, declined, faults;
    uint32_t fenced; // how many cases ran again with operands that end at a fence
};

static void report_case(const struct one_node *one, const struct subject *subject, uint32_t number,
                        const char *what)
{
    struct inf_graph *graph = NULL;
    printf("%s: %s case %u: %s\n", subject->name, inf_op_info(one->op)->name, number, what);
    if (one_node_graph(one, &graph, NULL) == INF_OK)
        inf_graph_print(graph, stdout);
    inf_graph_destroy(&graph);
}

static void compare_tensors(const struct one_node *one, const struct one_tensor *wanted,
                            const struct subject *subject, uint32_t number, struct tally *tally)
{
    for (uint32_t i = 0; i < one->output_count; i++) {
        const struct one_tensor *got = &one->outputs[i];
        size_t at = first_difference(one, got, &wanted[i]);
        if (at == SIZE_MAX)
            continue;
        char what[160] = "integers differ";
        if (inf_dtype_is_float(got->dtype))
            snprintf(what, sizeof(what), "output %u, element %zu is %.9g, ref has %.9g", i, at,
                     get_element(got, at), get_element(&wanted[i], at));
        else
            snprintf(what, sizeof(what), "output %u, element %zu differs from ref's", i, at);
        if (tally->faults++ < TOLD_MAX)
            report_case(one, subject, number, what);
        return;
    }
}

// Runs the case on one device and compares the outputs with the results of `ref`.
static void run_on(struct one_node *one, const struct one_tensor *wanted,
                   const struct subject *subject, uint32_t number, struct tally *tally)
{
    struct inf_error err = {0};
    enum inf_code code = one_node_run(one, subject->device, &err);
    if (code == INF_UNSUPPORTED)
        tally->declined++;
    else if (code != INF_OK && tally->faults++ < TOLD_MAX)
        report_case(one, subject, number, err.text);
    if (code != INF_OK)
        return;
    tally->ran += !one->fenced;
    tally->fenced += one->fenced;
    compare_tensors(one, wanted, subject, number, tally);
}

// Returns the minimum number of cases that must run at fences. It is above 0 for the operators that
// the cpu device's own kernels compute on every architecture.
static uint32_t fenced_min(enum inf_op op, const struct inf_device *device)
{
    if (strcmp(inf_device_info(device)->backend, "cpu") != 0)
        return 0;
    switch (op) {
    case INF_OP_UNARY:
    case INF_OP_BINARY:
    case INF_OP_CLIP:
    case INF_OP_REDUCE:
    case INF_OP_MATMUL:
    case INF_OP_DEPTHWISE_CONV2D:
    case INF_OP_CAST:
    case INF_OP_COMPARE:
    case INF_OP_SELECT:
    case INF_OP_RNN:
    case INF_OP_NORMALIZE:
    case INF_OP_ARG:
    case INF_OP_TOPK:
        return 100;
    default:
        return 0;
    }
}

// Writes those of the first `count` operators to `ops` that this process tests, and returns their
// number: all, or with INF_OPS_PART=K/N every Nth from the Kth on, so that N processes share them.
// Similar operators stand beside each other, so the parts take about the same time.
static size_t choose_ops(enum inf_op *ops, int count)
{
    const char *text = getenv("INF_OPS_PART");
    int part = 1, parts = 1, length = 0;
    size_t chosen = 0;
    if (text != NULL)
        cr_assert(sscanf(text, "%d/%d%n", &part, &parts, &length) == 2 && text[length] == '\0' &&
                      part >= 1 && part <= parts,
                  "INF_OPS_PART is '%s', wanted K/N with K from 1 to N", text);
    for (int op = part - 1; op < count; op += parts)
        ops[chosen++] = (enum inf_op)op;
    return chosen;
}

// Returns true if a device has its own memory and stores floats there in 16 bits between nodes.
static bool keeps_halves(const struct inf_device *device)
{
    const struct inf_device_info *info = inf_device_info(device);
    return !info->host_memory && (info->precisions & INF_PRECISION_BIT(INF_PRECISION_FP16)) != 0;
}

// Runs the case again with operands that end at an unreadable page (fence), so that a read beyond
// them crashes. Uses the devices that are marked in `ours` and, for some cases, `ref`.
static void run_fenced(struct one_node *one, const struct one_tensor *wanted, const bool *ours,
                       uint32_t number, struct tally *tallies)
{
    one_node_fence(one);
    for (uint32_t i = 0; i < subject_count; i++) {
        bool is_ref = i + 1 == subject_count;
        if (ours[i] || (is_ref && number % REF_FENCED == 0))
            run_on(one, wanted, &subjects[i], number, &tallies[i]);
    }
}

// Devices that compile shaders run one in this many of the cases with a rare activation.
#define RARE_STEP 4

// Returns the activation of a convolution or product, if its shaders have many forms.
static enum inf_activation activation_of(const struct one_node *one)
{
    switch (one->op) {
    case INF_OP_CONV2D:
        return one->attrs.conv2d.activation;
    case INF_OP_DEPTHWISE_CONV2D:
        return one->attrs.depthwise_conv2d.activation;
    case INF_OP_MATMUL:
        return one->attrs.matmul.activation;
    default:
        return INF_ACTIVATION_NONE;
    }
}

// Returns true if devices that compile shaders always leave the case out. They compile each form of
// a convolution or product once for each activation, which takes llvmpipe up to a second, and the
// activation is the last thing that a shader computes. So they run all cases without one, with relu
// and with prelu, which has an operand of its own, and a part of the cases with each other one.
static bool is_rare(const struct one_node *one, uint32_t number)
{
    enum inf_activation activation = activation_of(one);
    return activation != INF_ACTIVATION_NONE && activation != INF_ACTIVATION_RELU &&
           activation != INF_ACTIVATION_PRELU && number / INF_ACTIVATION_COUNT % RARE_STEP != 0;
}

// If only every N-th case runs, devices that compile shaders run one in this many of those: another
// build has run all of them.
#define SHADER_STEP 4

// Returns true if the device compiles shaders, and this case is not worth the time.
static bool is_left_out(const struct one_node *one, uint32_t number,
                        const struct inf_device *device)
{
    uint32_t step = inf_case_step();
    return !inf_device_info(device)->host_memory &&
           (is_rare(one, number) || (step > 1 && number / step % SHADER_STEP != 0));
}

// Runs one case on `ref`, then on every other device. If `lowered`, the case runs in 16 bits, and
// only on devices that store floats in 16 bits. Returns false if the node is invalid.
static bool run_case(enum inf_op op, uint32_t number, bool lowered, struct tally *tallies)
{
    struct random random = {.state = ((uint64_t)op << 32) + number};
    struct one_node one;
    one_node_init(&one, op);
    case_families[op].make(&one, &random, number);
    if (lowered)
        one_node_round(&one);
    const struct subject *ref = &subjects[subject_count - 1];
    struct inf_graph *graph = NULL;
    bool valid = one_node_graph(&one, &graph, NULL) == INF_OK;
    inf_graph_destroy(&graph);
    struct inf_error err = {0};
    struct one_tensor wanted[ONE_NODE_OUTPUTS] = {0};
    if (valid) {
        cr_assert_eq(one_node_run(&one, ref->device, &err), INF_OK, "ref: %s", err.text);
        tallies[subject_count - 1].ran++;
        memcpy(wanted, one.outputs, sizeof(wanted));
        memset(one.outputs, 0, sizeof(one.outputs));
    }
    one.lowered = lowered;
    // ours[i]: device i computed the node in host memory without an XNNPACK kernel.
    bool ours[SUBJECTS] = {0};
    for (uint32_t i = 0; valid && i + 1 < subject_count; i++) {
        if (lowered && !keeps_halves(subjects[i].device))
            continue;
        if (!lowered && is_left_out(&one, number, subjects[i].device))
            continue;
        uint32_t ran = tallies[i].ran;
        run_on(&one, wanted, &subjects[i], number, &tallies[i]);
        ours[i] = tallies[i].ran > ran && inf_device_info(subjects[i].device)->host_memory &&
                  one.kernel != NULL && strncmp(one.kernel, "xnn_", 4) != 0;
    }
    if (valid && !lowered && getenv("INF_OPS_BACKEND") == NULL)
        run_fenced(&one, wanted, ours, number, tallies);
    one_node_drop_outputs(&one);
    memcpy(one.outputs, wanted, sizeof(wanted));
    one_node_fini(&one);
    return valid;
}

ParameterizedTestParameters(ops, agree_with_ref)
{
    static enum inf_op ops[INF_OP_COUNT];
    size_t count = choose_ops(ops, INF_OP_COUNT);
    return cr_make_param_array(enum inf_op, ops, count);
}

ParameterizedTest(const enum inf_op *param, ops, agree_with_ref)
{
    enum inf_op op = *param;
    const struct case_family *family = &case_families[op];
    struct tally tallies[SUBJECTS] = {0};
    // No device supports nodes that depend on values or run subgraphs. Tests of executables cover
    // them.
    if (op >= INF_OP_BRANCH && family->make == NULL)
        return;
    cr_assert_not_null(family->make, "%s has no cases", inf_op_info(op)->name);
    uint32_t valid = 0, step = inf_case_step();
    for (uint32_t number = 0; number < family->count; number += step)
        valid += run_case(op, number, false, tallies);
    cr_assert_geq(valid, family->count / step / (step == 1 ? 2 : 3),
                  "%s: only %u of %u cases are valid nodes", inf_op_info(op)->name, valid,
                  family->count / step);
    for (uint32_t i = 0; i < subject_count; i++) {
        const char *name = subjects[i].name;
        printf("%s: %s: %u ran, %u of them fenced too, %u declined, %u differ\n", name,
               inf_op_info(op)->name, tallies[i].ran, tallies[i].fenced, tallies[i].declined,
               tallies[i].faults);
        cr_expect(getenv("INF_OPS_BACKEND") != NULL ||
                      tallies[i].fenced >=
                          fenced_min(op, subjects[i].device) / step / (step == 1 ? 1 : 2),
                  "%s: %s: %u cases", name, inf_op_info(op)->name, tallies[i].fenced);
        cr_expect_eq(tallies[i].faults, 0u, "%s: %s: %u of %u cases differ from ref", name,
                     inf_op_info(op)->name, tallies[i].faults, tallies[i].ran);
    }
}

ParameterizedTestParameters(ops, agree_with_ref_in_16_bits)
{
    static enum inf_op ops[INF_OP_BRANCH];
    size_t count = choose_ops(ops, INF_OP_BRANCH);
    return cr_make_param_array(enum inf_op, ops, count);
}

ParameterizedTest(const enum inf_op *param, ops, agree_with_ref_in_16_bits)
{
    enum inf_op op = *param;
    struct tally tallies[SUBJECTS] = {0};
    bool any = false;
    for (uint32_t i = 0; i < subject_count; i++)
        any |= keeps_halves(subjects[i].device);
    if (!any)
        cr_skip_test("no device keeps floats in 16 bits");
    // Only a sample of the cases runs, because each case is another shader to compile for the CPU.
    uint32_t step = case_families[op].count * inf_case_step() / LOWERED_CASES + 1;
    for (uint32_t number = 0; number < case_families[op].count; number += step)
        (void)!run_case(op, number, true, tallies);
    for (uint32_t i = 0; i < subject_count; i++)
        cr_expect_eq(tallies[i].faults, 0u, "%s: %s: %u of %u cases differ from ref",
                     subjects[i].name, inf_op_info(op)->name, tallies[i].faults, tallies[i].ran);
}

// --- invalid nodes, which every device must reject ---

// Asserts that each device either declines the node or fails the run with INF_INVALID.
static void expect_invalid(struct one_node *one, const char *needle)
{
    for (uint32_t i = 0; i < subject_count; i++) {
        struct inf_error err = {0};
        const char *name = subjects[i].name;
        enum inf_code code = one_node_run(one, subjects[i].device, &err);
        if (code == INF_UNSUPPORTED)
            continue;
        cr_expect_eq(code, INF_INVALID, "%s: %s: code %d", name, inf_op_info(one->op)->name, code);
        cr_expect_not_null(strstr(err.text, "'node'"), "%s: '%s' names no node", name, err.text);
        cr_expect_not_null(strstr(err.text, needle), "%s: '%s' lacks '%s'", name, err.text, needle);
    }
    one_node_fini(one);
}

Test(ops, refuse_an_index_out_of_range)
{
    const float x[] = {1, 2, 3, 4, 5, 6};
    static const int32_t bad[] = {3, -1, INT32_MAX, INT32_MIN};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(bad); i++) {
        int32_t indices[] = {0, bad[i], 2};
        char needle[16];
        snprintf(needle, sizeof(needle), "%d", bad[i]);
        struct one_node one;
        one_node_init(&one, INF_OP_GATHER);
        one_node_input(&one, INF_DTYPE_F32, INF_SHAPE(3, 2), x);
        one_node_input(&one, INF_DTYPE_I32, INF_SHAPE(3), indices);
        expect_invalid(&one, needle);
    }
}

Test(ops, refuse_to_divide_an_integer_by_0)
{
    const int32_t a[] = {1, 2, 3}, b[] = {1, 0, 3};
    static const enum inf_binary_kind kinds[] = {INF_BINARY_DIV, INF_BINARY_FLOOR_DIV,
                                                 INF_BINARY_FLOOR_MOD, INF_BINARY_MOD};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(kinds); i++) {
        struct one_node one;
        one_node_init(&one, INF_OP_BINARY);
        one.attrs.binary.kind = kinds[i];
        one_node_input(&one, INF_DTYPE_I32, INF_SHAPE(3), a);
        one_node_input(&one, INF_DTYPE_I32, INF_SHAPE(3), b);
        expect_invalid(&one, "0");
    }
}

// A division by a nonzero constant cannot fail at run time, so GPUs may compute the node.
Test(ops, divide_integers_by_constants)
{
    static const int32_t a[] = {7, -7, 7, -7, 0, INT32_MAX, INT32_MIN, 6};
    static const int32_t b[] = {2, 2, -2, -2, 5, 3, 2, -3};
    static const struct {
        enum inf_binary_kind kind;
        int32_t y[8];
    } wanted[] = {
        {INF_BINARY_DIV, {3, -3, -3, 3, 0, 715827882, -1073741824, -2}},
        {INF_BINARY_FLOOR_DIV, {3, -4, -4, 3, 0, 715827882, -1073741824, -2}},
        {INF_BINARY_FLOOR_MOD, {1, 1, -1, -1, 0, 1, 0, 0}},
        {INF_BINARY_MOD, {1, -1, 1, -1, 0, 1, 0, 0}},
    };
    for (size_t i = 0; i < INF_ARRAY_LENGTH(wanted); i++) {
        struct one_node one;
        one_node_init(&one, INF_OP_BINARY);
        one.attrs.binary.kind = wanted[i].kind;
        one_node_input(&one, INF_DTYPE_I32, INF_SHAPE(8), a);
        one_node_const(&one, INF_DTYPE_I32, INF_SHAPE(8), b);
        for (uint32_t d = 0; d < devices.count; d++) {
            struct inf_error err = {0};
            enum inf_code code = one_node_run(&one, devices.devices[d], &err);
            if (code == INF_UNSUPPORTED)
                continue;
            cr_assert_eq(code, INF_OK, "%s", err.text);
            one_node_expect(&one, 0, INF_DTYPE_I32, INF_SHAPE(8), wanted[i].y);
        }
        one_node_fini(&one);
    }
}
