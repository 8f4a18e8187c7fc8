// SPDX-License-Identifier: Apache-2.0
// Tests of sequences and optionals as inputs and outputs of a model.
#include <criterion/criterion.h>
#include <string.h>

#include "tests/unit/import/onnx_run_kit.h"

// Fields of TypeProto.
enum {
    SEQUENCE = 4,
    OPTIONAL = 9
};

static int32_t element_type = FLOAT; // of sequences and optionals

TestSuite(onnx_sequence, .init = set_up, .fini = tear_down);

// Adds a port that is a sequence or an optional of tensors [2].
static void put_list_port(struct inf_pb_writer *writer, uint32_t field, const char *name,
                          uint32_t kind)
{
    inf_pb_open(writer, field);
    inf_pb_put_text(writer, 1, name);
    inf_pb_open(writer, 2);
    inf_pb_open(writer, kind);
    inf_pb_open(writer, 1);
    inf_pb_open(writer, 1);
    inf_pb_put_int(writer, 1, element_type);
    inf_pb_open(writer, 2);
    inf_pb_open(writer, 1);
    inf_pb_put_int(writer, 1, 2);
    for (int i = 0; i < 7; i++)
        inf_pb_close(writer);
}

// Begins a model of one node y = op(x, second), and leaves the graph open.
static struct inf_pb_writer begin_model(const char *op, const char *second)
{
    struct inf_pb_writer writer = {0};
    inf_onnx_put_head(&writer, 18);
    inf_pb_open(&writer, 7);
    inf_onnx_open_node(&writer, op, "x", second, "y");
    inf_pb_close(&writer);
    return writer;
}

static void set_length(const char *name, uint32_t count)
{
    sequence_lengths[0] = (struct inf_sequence_length){name, count};
    sequence_count = 1;
}

static void expect_names(const struct inf_port *ports, uint32_t count, const char *const *names,
                         uint32_t wanted)
{
    cr_assert_eq(count, wanted, "%u ports", count);
    for (uint32_t i = 0; i < count; i++)
        cr_assert_str_eq(ports[i].name, names[i]);
}

Test(onnx_sequence, is_an_input_and_an_output_for_each_tensor)
{
    static const char *const inputs[] = {"x.0", "z"}, *const outputs[] = {"y.0", "y.1"};
    struct inf_pb_writer writer = begin_model("SequenceInsert", "z");
    put_list_port(&writer, 11, "x", SEQUENCE);
    inf_onnx_put_port(&writer, 11, "z", FLOAT, (int64_t[]){2}, 1);
    put_list_port(&writer, 12, "y", SEQUENCE);
    inf_pb_close(&writer);
    set_length("x", 1);
    load_model(&writer);
    const struct inf_shape shapes[] = {INF_SHAPE(2), INF_SHAPE(2)};
    cr_assert_eq(run_model(shapes, (const void *[]){(float[]){1, 2}, (float[]){3, 4}}), INF_OK,
                 "%s", err.text);
    const struct inf_graph *graph = inf_executable_graph(executable);
    expect_names(graph->inputs, graph->input_count, inputs, 2);
    expect_names(graph->outputs, graph->output_count, outputs, 2);
    expect_output(0, &INF_SHAPE(2), (float[]){1, 2});
    expect_output(1, &INF_SHAPE(2), (float[]){3, 4});
}

Test(onnx_sequence, is_refused_without_a_length)
{
    struct inf_graph *graph = NULL;
    for (int i = 0; i < 2; i++) {
        struct inf_pb_writer writer = begin_model("SequenceLength", NULL);
        put_list_port(&writer, 11, "x", SEQUENCE);
        inf_onnx_put_port(&writer, 12, "y", 7, NULL, 0);
        inf_pb_close(&writer);
        set_length(i == 0 ? "other" : "x", i == 0 ? 1 : INF_LIMIT_TENSORS + 1);
        cr_assert_eq(import_model(&writer, &graph), INF_UNSUPPORTED);
        cr_assert_not_null(strstr(err.text, "must be set by sequence_lengths"), "%s", err.text);
    }
}

static void load_has_element(void)
{
    struct inf_pb_writer writer = begin_model("OptionalHasElement", NULL);
    put_list_port(&writer, 11, "x", OPTIONAL);
    inf_onnx_put_port(&writer, 12, "y", BOOL, NULL, 0);
    inf_pb_close(&writer);
    load_model(&writer);
}

Test(onnx_sequence, an_optional_has_its_element_unless_its_length_is_0)
{
    load_has_element();
    cr_assert_eq(run_model(&INF_SHAPE(2), (const void *[]){(float[]){1, 2}}), INF_OK, "%s",
                 err.text);
    cr_assert_eq(*(const bool *)buffers[0], true);
    set_length("x", 0);
    load_has_element();
    cr_assert_eq(run_model(NULL, NULL), INF_OK, "%s", err.text);
    cr_assert_eq(inf_executable_graph(executable)->input_count, 0);
    cr_assert_eq(*(const bool *)buffers[0], false);
}

Test(onnx_sequence, the_element_of_an_empty_optional_is_refused)
{
    struct inf_graph *graph = NULL;
    static const char *const ops[] = {"OptionalGetElement", "Relu", "SequenceLength"};
    static const char *const reasons[] = {"empty optional", "empty optional", "is no sequence"};
    for (int i = 0; i < 3; i++) {
        struct inf_pb_writer writer = begin_model(ops[i], NULL);
        put_list_port(&writer, 11, "x", OPTIONAL);
        inf_onnx_put_port(&writer, 12, "y", FLOAT, (int64_t[]){2}, 1);
        inf_pb_close(&writer);
        set_length("x", 0);
        cr_assert_neq(import_model(&writer, &graph), INF_OK);
        cr_assert_not_null(strstr(err.text, reasons[i]), "%s", err.text);
    }
}

// Begins a model y = SequenceMap(x, z) whose body is c = op(a, b), or has an input too few.
static struct inf_pb_writer begin_map(const char *op, bool broken)
{
    struct inf_pb_writer writer = {0};
    inf_onnx_put_head(&writer, 18);
    inf_pb_open(&writer, 7);
    inf_onnx_open_node(&writer, "SequenceMap", "x", "z", "y");
    inf_pb_open(&writer, 5);
    inf_pb_put_text(&writer, 1, "body");
    inf_pb_put_int(&writer, 20, 5);
    inf_pb_open(&writer, 6);
    inf_onnx_open_node(&writer, op, "a", broken ? "a" : "b", "c");
    inf_pb_close(&writer);
    inf_onnx_put_port(&writer, 11, "a", FLOAT, (int64_t[]){2}, 1);
    if (!broken)
        inf_onnx_put_port(&writer, 11, "b", FLOAT, (int64_t[]){2}, 1);
    inf_onnx_put_port(&writer, 12, "c", FLOAT, (int64_t[]){2}, 1);
    for (int i = 0; i < 3; i++)
        inf_pb_close(&writer);
    put_list_port(&writer, 11, "x", SEQUENCE);
    return writer;
}

Test(onnx_sequence, map_repeats_a_tensor_and_pairs_sequences)
{
    const struct inf_shape shapes[] = {INF_SHAPE(2), INF_SHAPE(2), INF_SHAPE(2), INF_SHAPE(2)};
    struct inf_graph *graph = NULL;
    struct inf_pb_writer writer = begin_map("Add", false);
    inf_onnx_put_port(&writer, 11, "z", FLOAT, (int64_t[]){2}, 1);
    put_list_port(&writer, 12, "y", SEQUENCE);
    inf_pb_close(&writer);
    set_length("x", 2);
    load_model(&writer);
    const float *inputs[] = {(float[]){1, 2}, (float[]){3, 4}, (float[]){10, 20}, (float[]){5, 6}};
    cr_assert_eq(run_model(shapes, (const void *const *)inputs), INF_OK, "%s", err.text);
    expect_output(0, &INF_SHAPE(2), (float[]){11, 22});
    expect_output(1, &INF_SHAPE(2), (float[]){13, 24});
    for (uint32_t count = 1; count <= 2; count++) {
        writer = begin_map("Add", false);
        put_list_port(&writer, 11, "z", SEQUENCE);
        put_list_port(&writer, 12, "y", SEQUENCE);
        inf_pb_close(&writer);
        sequence_lengths[1] = (struct inf_sequence_length){"z", count};
        sequence_count = 2;
        if (count == 1) {
            cr_assert_eq(import_model(&writer, &graph), INF_INVALID);
            cr_assert_not_null(strstr(err.text, "input 1 has 1 tensors"), "%s", err.text);
            continue;
        }
        load_model(&writer);
        cr_assert_eq(run_model(shapes, (const void *const *)inputs), INF_OK, "%s", err.text);
        expect_output(0, &INF_SHAPE(2), (float[]){11, 22});
        expect_output(1, &INF_SHAPE(2), (float[]){8, 10});
    }
    writer = begin_map("Add", true);
    inf_onnx_put_port(&writer, 11, "z", FLOAT, (int64_t[]){2}, 1);
    put_list_port(&writer, 12, "y", SEQUENCE);
    inf_pb_close(&writer);
    cr_assert_eq(import_model(&writer, &graph), INF_INVALID);
    cr_assert_not_null(strstr(err.text, "its body has 1 inputs"), "%s", err.text);
}

Test(onnx_sequence, of_sequences_or_narrow_tensors_is_refused)
{
    struct inf_graph *graph = NULL;
    struct inf_pb_writer writer = begin_map("SequenceConstruct", false);
    inf_onnx_put_port(&writer, 11, "z", FLOAT, (int64_t[]){2}, 1);
    put_list_port(&writer, 12, "y", SEQUENCE);
    inf_pb_close(&writer);
    set_length("x", 1);
    cr_assert_eq(import_model(&writer, &graph), INF_UNSUPPORTED);
    cr_assert_not_null(strstr(err.text, "its body makes a sequence"), "%s", err.text);
    element_type = FLOAT8E5M2;
    writer = begin_model("SequenceLength", NULL);
    put_list_port(&writer, 11, "x", SEQUENCE);
    inf_onnx_put_port(&writer, 12, "y", 7, NULL, 0);
    inf_pb_close(&writer);
    cr_assert_eq(import_model(&writer, &graph), INF_UNSUPPORTED);
    cr_assert_not_null(strstr(err.text, "is a sequence of FLOAT8E5M2"), "%s", err.text);
}

Test(onnx_sequence, is_no_count_or_condition_of_a_loop)
{
    for (int i = 0; i < 2; i++) {
        struct inf_graph *graph = NULL;
        struct inf_pb_writer writer = {0};
        inf_onnx_put_head(&writer, 18);
        inf_pb_open(&writer, 7);
        inf_onnx_open_node(&writer, "Loop", i == 0 ? "x" : "", i == 0 ? "" : "x", "y");
        inf_pb_open(&writer, 5);
        inf_pb_put_text(&writer, 1, "body");
        inf_pb_put_int(&writer, 20, 5);
        inf_pb_open(&writer, 6);
        inf_onnx_put_port(&writer, 11, "i", 7, NULL, 0);
        inf_onnx_put_port(&writer, 11, "c", BOOL, NULL, 0);
        inf_onnx_put_port(&writer, 12, "c", BOOL, NULL, 0);
        inf_onnx_put_port(&writer, 12, "i", 7, NULL, 0);
        for (int k = 0; k < 3; k++)
            inf_pb_close(&writer);
        put_list_port(&writer, 11, "x", SEQUENCE);
        inf_onnx_put_port(&writer, 12, "y", 7, (int64_t[]){-1}, 1);
        inf_pb_close(&writer);
        set_length("x", 1);
        cr_assert_eq(import_model(&writer, &graph), INF_INVALID);
        cr_assert_not_null(strstr(err.text, "its count or condition is a sequence"), "%s",
                           err.text);
    }
}
