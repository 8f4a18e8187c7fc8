// SPDX-License-Identifier: Apache-2.0
// Writes models with control flow, and runs them on the reference device `ref` with and without
// passes.
#include "tests/support/models/control_case.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "backends/ref/ref.h"
#include "tests/support/models/tfjs_case.h"

struct inf_control_case inf_control;

void inf_control_init(void)
{
    const struct inf_device_options options = {.slots = 1};
    inf_tfjs_case_init();
    cr_assert_eq(
        inf_device_open(&inf_control.device, &inf_ref_backend, 0, &options, &inf_control.err),
        INF_OK);
}

void inf_control_fini(void)
{
    inf_device_unref(&inf_control.device);
    inf_tfjs_case_fini();
}

// --- writing models ---

void inf_control_begin(void)
{
    inf_control.writer = inf_tfjs_writer_begin(inf_tfjs_case.path);
}

void inf_control_input(const char *name, const char *type, const int64_t *dims, size_t rank)
{
    inf_tfjs_writer_placeholder(inf_control.writer, name, type, dims, rank);
}

void inf_control_scalar_int(const char *name, int32_t element)
{
    inf_tfjs_writer_ints(inf_control.writer, name, &element, NULL, 0);
}

void inf_control_scalar(const char *name, float element)
{
    inf_tfjs_writer_floats(inf_control.writer, name, &element, NULL, 0);
}

void inf_control_node(const char *name, const char *op, const char *inputs)
{
    inf_tfjs_writer_node(inf_control.writer, name, op, inputs);
}

void inf_control_enter(const char *name, const char *from, const char *frame)
{
    inf_control_node(name, "Enter", from);
    inf_tfjs_writer_attr_text(inf_control.writer, "frame_name", frame);
}

void inf_control_variable(const char *name, const char *from, const char *frame)
{
    char text[6][64], inputs[160];
    static const char *const parts[] = {"enter", "merge", "switch", "body", "iterate", "next"};
    for (int i = 0; i < 6; i++)
        snprintf(text[i], sizeof text[i], "%s/%s", name, parts[i]);
    inf_control_enter(text[0], from, frame);
    snprintf(inputs, sizeof inputs, "%s,%s", text[0], text[4]);
    inf_control_node(text[1], "Merge", inputs);
    snprintf(inputs, sizeof inputs, "%s,%s/cond", text[1], frame);
    inf_control_node(text[2], "Switch", inputs);
    snprintf(inputs, sizeof inputs, "%s:1", text[2]);
    inf_control_node(text[3], "Identity", inputs);
    inf_control_node(text[4], "NextIteration", text[5]);
    inf_control_node(name, "Exit", text[2]);
}

// --- running models ---

static void keep_result(struct inf_numbers *result, const struct inf_result *from)
{
    *result = (struct inf_numbers){.dtype = from->dtype,
                                   .shape = from->shape,
                                   .count = (uint32_t)inf_shape_elements(&from->shape)};
    cr_assert_leq(result->count, INF_CONTROL_ELEMENTS_MAX);
    for (uint32_t i = 0; i < result->count; i++)
        result->elements[i] = from->dtype == INF_DTYPE_F32   ? ((const float *)from->data)[i]
                              : from->dtype == INF_DTYPE_I32 ? ((const int32_t *)from->data)[i]
                                                             : ((const uint8_t *)from->data)[i];
}

static enum inf_code run_once(struct inf_executable *executable, const struct inf_feed *feed,
                              const atomic_bool *cancelled)
{
    static unsigned char memory[INF_CONTROL_OUTPUTS_MAX][INF_CONTROL_ELEMENTS_MAX * 8];
    const struct inf_graph *graph = inf_executable_graph(executable);
    void *outputs[INF_CONTROL_OUTPUTS_MAX] = {memory[0], memory[1], memory[2], memory[3]};
    struct inf_execution execution = {
        .inputs = feed->data, .outputs = outputs, .cancelled = cancelled};
    cr_assert_leq(graph->output_count, INF_CONTROL_OUTPUTS_MAX);
    for (uint32_t i = 0; i < graph->output_count; i++)
        if (!inf_shape_known(&graph->values[graph->outputs[i].value].shape))
            outputs[i] = NULL;
    enum inf_code code = inf_executable_run(executable, &execution, &inf_control.err);
    for (uint32_t i = 0; i < graph->output_count && code == INF_OK; i++) {
        const struct inf_value *value = &graph->values[graph->outputs[i].value];
        struct inf_result result = {value->dtype, value->shape, outputs[i], 0};
        cr_assert_eq(inf_executable_result(executable, 0, i, &result), outputs[i] == NULL);
        keep_result(&inf_control.results[i], &result);
    }
    inf_executable_drop_results(executable, 0);
    return code;
}

enum inf_code inf_control_run_with(uint32_t disabled, const struct inf_feed *feed,
                                   const atomic_bool *cancelled)
{
    struct inf_graph *graph = NULL;
    struct inf_model *model = NULL;
    struct inf_executable *executable = NULL;
    const struct inf_pass_options options = {.disabled = disabled,
                                             .evaluator = inf_ref_evaluator()};
    cr_assert_eq(inf_graph_clone(&graph, inf_tfjs_case.graph, &inf_control.err), INF_OK);
    cr_assert_eq(
        inf_model_create(&model, &graph, &inf_control.device, 1, &options, &inf_control.err),
        INF_OK, "%s", inf_control.err.text);
    enum inf_code code =
        inf_model_acquire(model, inf_control.device, feed->shapes, &executable, &inf_control.err);
    if (code == INF_OK) {
        inf_control.interpreted = inf_executable_interpreted_nodes(executable);
        code = run_once(executable, feed, cancelled);
        inf_model_release(model, &executable);
    }
    inf_model_unref(&model);
    return code;
}

void inf_control_check(const struct inf_feed *feed, uint32_t output, const double *wanted,
                       uint32_t count)
{
    static const uint32_t disabled[] = {UINT32_MAX, ~(1u << INF_PASS_INLINE), 0};
    for (size_t k = 0; k < sizeof disabled / sizeof disabled[0]; k++) {
        cr_assert_eq(inf_control_run_with(disabled[k], feed, NULL), INF_OK, "%s",
                     inf_control.err.text);
        cr_assert_eq(inf_control.results[output].count, count,
                     "%u elements, wanted %u, without passes %x", inf_control.results[output].count,
                     count, disabled[k]);
        for (uint32_t i = 0; i < count; i++)
            cr_assert_float_eq(inf_control.results[output].elements[i], wanted[i], 1e-6,
                               "element %u is %g, wanted %g, without passes %x", i,
                               inf_control.results[output].elements[i], wanted[i], disabled[k]);
    }
}

void inf_control_accept(const char *output)
{
    inf_tfjs_writer_output(inf_control.writer, "y", output);
    inf_tfjs_case_accept(inf_control.writer);
}

void inf_control_refuse(const char *output, enum inf_code code, const char *part)
{
    inf_tfjs_writer_output(inf_control.writer, "y", output);
    inf_tfjs_case_refuse(inf_control.writer, code, part);
}
