// SPDX-License-Identifier: Apache-2.0
// The ONNX importer: the models that it accepts, the models that it refuses and the error texts,
// and external data.
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/import/common/shards.h"
#include "backends/import/import.h"
#include "tests/support/models/onnx_writer.h"

static char folder[] = "/tmp/inf-onnx-XXXXXX";
static int folder_fd;
static struct inf_graph *graph;
static struct inf_error err;

static void set_up(void)
{
    cr_assert_not_null(mkdtemp(folder));
    folder_fd = open(folder, O_RDONLY | O_DIRECTORY);
    cr_assert_geq(folder_fd, 0);
}

static void tear_down(void)
{
    char command[64];
    inf_graph_destroy(&graph);
    close(folder_fd);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    cr_assert_eq(system(command), 0);
}

TestSuite(onnx, .init = set_up, .fini = tear_down);

static void write_file(const char *name, const void *data, size_t size)
{
    int fd = openat(folder_fd, name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    cr_assert_geq(fd, 0);
    cr_assert_eq(write(fd, data, size), (ssize_t)size);
    close(fd);
}

// Imports the model that the test has written to `writer`, then empties the writer.
static enum inf_code import_it(struct inf_pb_writer *writer, struct inf_model_info *info)
{
    write_file("model.onnx", writer->data, writer->size);
    inf_pb_writer_fini(writer);
    inf_graph_destroy(&graph);
    err = (struct inf_error){0};
    return inf_model_import(&graph, info, folder_fd, "model.onnx", &err);
}

static void refuse_model(struct inf_pb_writer *writer, enum inf_code code, const char *part)
{
    enum inf_code got = import_it(writer, NULL);
    cr_assert_eq(got, code, "%s: %s", inf_code_name(got), err.text);
    cr_assert_not_null(strstr(err.text, part), "%s", err.text);
}

static const int64_t two_by_three[] = {2, 3};

// Begins a model with input x and output y of shape [2,3]. The graph message is left open for the
// caller.
static struct inf_pb_writer open_model(int64_t opset)
{
    struct inf_pb_writer writer = {0};
    inf_onnx_put_head(&writer, opset);
    inf_pb_open(&writer, 7);
    inf_onnx_put_port(&writer, 11, "x", 1, two_by_three, 2);
    inf_onnx_put_port(&writer, 12, "y", 1, two_by_three, 2);
    return writer;
}

static void put_node(struct inf_pb_writer *writer, const char *op, const char *a, const char *b,
                     const char *output)
{
    inf_onnx_open_node(writer, op, a, b, output);
    inf_pb_close(writer);
}

// Writes a graph with two nodes: one of operator `outer`, and one of operator `op`, whose attribute
// `body` is a graph with an unknown operator.
static void put_lacking(struct inf_pb_writer *writer, const char *op, const char *outer)
{
    inf_onnx_put_head(writer, 18);
    inf_pb_open(writer, 7);
    inf_onnx_open_node(writer, outer, "x", NULL, "y");
    inf_pb_close(writer);
    inf_onnx_open_node(writer, op, "x", NULL, "z");
    inf_pb_open(writer, 5);
    inf_pb_put_text(writer, 1, "body");
    inf_pb_put_int(writer, 20, 5);
    inf_pb_open(writer, 6);
    inf_onnx_open_node(writer, "Inner", "x", NULL, "z");
    inf_pb_close(writer);
    inf_pb_close(writer);
    inf_pb_close(writer);
    inf_pb_close(writer);
    inf_pb_close(writer);
}

// Writes a model of one node whose operator is `op` of the domain `domain`.
static void put_foreign(struct inf_pb_writer *writer, const char *domain, const char *op)
{
    inf_onnx_put_head(writer, 18);
    inf_pb_open(writer, 7);
    inf_onnx_open_node(writer, op, "x", NULL, "y");
    inf_pb_put_text(writer, 7, domain);
    inf_pb_close(writer);
    inf_onnx_put_port(writer, 11, "x", 1, (int64_t[]){-1, 4}, 2);
    inf_onnx_put_port(writer, 12, "y", 1, (int64_t[]){-1, 4}, 2);
    inf_pb_close(writer);
}

Test(onnx, names_the_domain_of_a_missing_operator_and_a_way_around_it)
{
    struct inf_pb_writer writer = {0};
    put_foreign(&writer, "com.example", "Foo");
    refuse_model(&writer, INF_UNSUPPORTED, "operators not supported: com.example::Foo (1 node)");
    put_foreign(&writer, "com.microsoft", "BeamSearch");
    refuse_model(&writer, INF_UNSUPPORTED,
                 "operators not supported: com.microsoft::BeamSearch (1 node) (export the network "
                 "alone: the search for tokens is the client's)");
    put_foreign(&writer, "com.microsoft.nchwc", "Conv");
    refuse_model(&writer, INF_UNSUPPORTED, "graph optimisation level 'extended'");
    put_foreign(&writer, "ai.onnx.contrib", "BertTokenizer");
    refuse_model(&writer, INF_UNSUPPORTED, "(these are operators of onnxruntime-extensions: do");
    put_foreign(&writer, "", "ImageDecoder");
    refuse_model(&writer, INF_UNSUPPORTED, "(the daemon has no picture decoder: decode in the");
    // com.microsoft has an operator QuickGelu, and ai.onnx (the empty domain) has none.
    put_foreign(&writer, "", "QuickGelu");
    refuse_model(&writer, INF_UNSUPPORTED, "operators not supported: QuickGelu (1 node)");
    put_foreign(&writer, "com.microsoft", "QuickGelu");
    cr_assert_eq(import_it(&writer, NULL), INF_OK, "%s", err.text);
}

Test(onnx, names_missing_operators_in_bodies_too)
{
    struct inf_pb_writer writer = {0};
    put_lacking(&writer, "Loop", "Foo");
    refuse_model(&writer, INF_UNSUPPORTED, "operators not supported: Foo (1 node), Inner (1 node)");
    put_lacking(&writer, "Loop", "Relu");
    refuse_model(&writer, INF_UNSUPPORTED, "operators not supported: Inner (1 node)");
    put_lacking(&writer, "If", "Foo");
    refuse_model(&writer, INF_UNSUPPORTED, "operators not supported: Foo (1 node), Inner (1 node)");
    // Unknown operators are allowed in the branch of an If, because the branch may not be taken.
    // This model is refused for another reason.
    put_lacking(&writer, "If", "Relu");
    cr_assert_neq(import_it(&writer, NULL), INF_OK);
    cr_assert_null(strstr(err.text, "Inner"), "%s", err.text);
}

Test(onnx, a_model_becomes_a_graph)
{
    static const float numbers[] = {1, 2, 3};
    static const int64_t three[] = {3};
    struct inf_model_info info;
    struct inf_pb_writer writer = open_model(13);
    inf_onnx_put_floats(&writer, "weight", three, 1, numbers);
    put_node(&writer, "Add", "x", "weight", "{\"any\": text}");
    put_node(&writer, "Relu", "{\"any\": text}", NULL, "y");
    inf_pb_close(&writer);
    size_t size = writer.size;
    cr_assert_eq(import_it(&writer, &info), INF_OK, "%s", err.text);
    cr_assert_str_eq(info.format, "onnx");
    cr_assert_str_eq(info.producer, "a test");
    cr_assert_eq(info.file_bytes, size);
    cr_assert_eq(graph->node_count, 2);
    cr_assert_eq(graph->nodes[0].op, INF_OP_BINARY);
    cr_assert_eq(graph->nodes[1].attrs.unary.kind, INF_UNARY_RELU);
    cr_assert_str_eq(graph->nodes[0].name, "{\"any\": text}");
    cr_assert_str_eq(graph->inputs[0].name, "x");
    const struct inf_value *weight = &graph->values[graph->nodes[0].inputs[1]];
    cr_assert_eq(memcmp(weight->data->data, numbers, sizeof numbers), 0);
    const struct inf_value *y = &graph->values[graph->outputs[0].value];
    cr_assert(inf_shape_equal(&y->shape, &INF_SHAPE(2, 3)));
}

// Up to IR version 3, initialisers are also listed among the inputs.
Test(onnx, an_initialiser_that_is_listed_as_input_is_none)
{
    static const float numbers[] = {1, 2, 3};
    static const int64_t three[] = {3};
    struct inf_pb_writer writer = open_model(8);
    inf_onnx_put_port(&writer, 11, "weight", 1, three, 1);
    inf_onnx_put_floats(&writer, "weight", three, 1, numbers);
    put_node(&writer, "Mul", "x", "weight", "y");
    inf_pb_close(&writer);
    cr_assert_eq(import_it(&writer, NULL), INF_OK, "%s", err.text);
    cr_assert_eq(graph->input_count, 1);
}

Test(onnx, a_symbolic_dimension_is_not_known)
{
    static const int64_t dims[] = {-1, 3};
    struct inf_pb_writer writer = {0};
    inf_onnx_put_head(&writer, 13);
    inf_pb_open(&writer, 7);
    inf_onnx_put_port(&writer, 11, "x", 1, dims, 2);
    inf_onnx_put_port(&writer, 12, "y", 1, dims, 2);
    put_node(&writer, "Neg", "x", NULL, "y");
    inf_pb_close(&writer);
    cr_assert_eq(import_it(&writer, NULL), INF_OK, "%s", err.text);
    cr_assert(inf_shape_equal(&graph->values[graph->outputs[0].value].shape,
                              &INF_SHAPE(INF_DIM_UNKNOWN, 3)));
}

Test(onnx, operators_that_are_not_built_are_named_all_at_once)
{
    struct inf_pb_writer writer = open_model(13);
    put_node(&writer, "Frobnicate", "x", NULL, "a");
    put_node(&writer, "Frobnicate", "a", NULL, "b");
    put_node(&writer, "Twiddle", "b", NULL, "y");
    inf_pb_close(&writer);
    refuse_model(&writer, INF_UNSUPPORTED, "Frobnicate (2 nodes), Twiddle (1 node)");
    cr_assert_eq(err.reason, INF_REASON_OPERATOR);
}

Test(onnx, an_attribute_that_is_not_built_is_named)
{
    struct inf_pb_writer writer = open_model(13);
    inf_onnx_open_node(&writer, "Relu", "x", NULL, "y");
    inf_onnx_put_attr_int(&writer, "sideways", 1);
    inf_pb_close(&writer);
    inf_pb_close(&writer);
    refuse_model(&writer, INF_UNSUPPORTED,
                 "node 'y' (Relu): attribute 'sideways' is not supported");
}

// Writes a model of one SkipLayerNormalization whose outputs are y, the mean and the sum. The mean
// is not built. `read` is the output of the model beside y.
static struct inf_pb_writer write_skip_norm(const char *read)
{
    static const int64_t three[] = {3};
    static const float ones[] = {1, 1, 1};
    static const char *const inputs[] = {"x", "x", "w"}, *const outputs[] = {"s", "mean", "",
                                                                             "sum"};
    struct inf_pb_writer writer = open_model(17);
    inf_onnx_put_floats(&writer, "w", three, 1, ones);
    inf_pb_open(&writer, 1);
    for (size_t i = 0; i < 3; i++)
        inf_pb_put_text(&writer, 1, inputs[i]);
    for (size_t i = 0; i < 4; i++)
        inf_pb_put_text(&writer, 2, outputs[i]);
    inf_pb_put_text(&writer, 4, "SkipLayerNormalization");
    inf_pb_put_text(&writer, 7, "com.microsoft");
    inf_pb_close(&writer);
    put_node(&writer, "Add", "s", "sum", "y");
    if (strcmp(read, "z") == 0)
        put_node(&writer, "Relu", "mean", NULL, "z");
    inf_onnx_put_port(&writer, 12, read, 1, two_by_three, 2);
    inf_pb_close(&writer);
    return writer;
}

Test(onnx, an_output_that_is_not_built_may_be_named_but_not_read)
{
    struct inf_pb_writer writer = write_skip_norm("sum");
    cr_assert_eq(import_it(&writer, NULL), INF_OK, "%s", err.text);
    writer = write_skip_norm("z");
    refuse_model(&writer, INF_UNSUPPORTED,
                 "node 'z' (Relu): takes 'mean', an output that is not built for its operator");
    writer = write_skip_norm("mean");
    refuse_model(&writer, INF_UNSUPPORTED, "output 'mean': is not built for its operator");
}

Test(onnx, what_does_not_hang_together_is_refused)
{
    static const float numbers[] = {1, 2, 3};
    static const int64_t three[] = {3}, four[] = {4}, huge[] = {1 << 30, 1 << 30};
    struct inf_pb_writer writer = open_model(13);
    put_node(&writer, "Relu", "absent", NULL, "y");
    inf_pb_close(&writer);
    refuse_model(&writer, INF_INVALID, "takes 'absent', which nothing before it makes");

    writer = open_model(13);
    put_node(&writer, "Relu", "x", NULL, "x");
    inf_pb_close(&writer);
    refuse_model(&writer, INF_INVALID, "makes 'x', which is there already");

    writer = open_model(13);
    inf_pb_close(&writer);
    refuse_model(&writer, INF_INVALID, "output 'y': no node makes it");

    writer = open_model(13);
    inf_onnx_put_floats(&writer, "w", three, 1, numbers);
    put_node(&writer, "Concat", "x", "w", "y");
    inf_pb_close(&writer);
    refuse_model(&writer, INF_INVALID, "lacks attribute 'axis'");

    writer = open_model(13);
    inf_pb_open(&writer, 5);
    inf_pb_put_int(&writer, 1, four[0]);
    inf_pb_put_int(&writer, 2, 1);
    inf_pb_put_text(&writer, 8, "w");
    inf_pb_put_bytes(&writer, 9, numbers, sizeof numbers);
    inf_pb_close(&writer);
    inf_pb_close(&writer);
    refuse_model(&writer, INF_INVALID, "tensor 'w': raw_data has 12 bytes, its dims say 16");

    writer = open_model(13);
    inf_pb_open(&writer, 5);
    inf_pb_put_int(&writer, 1, huge[0]);
    inf_pb_put_int(&writer, 1, huge[1]);
    inf_pb_put_int(&writer, 2, 1);
    inf_pb_put_text(&writer, 8, "w");
    inf_pb_close(&writer);
    inf_pb_close(&writer);
    refuse_model(&writer, INF_INVALID, "larger than a tensor may be");

    writer = open_model(13);
    inf_pb_open(&writer, 5);
    inf_pb_put_int(&writer, 1, -1);
    inf_pb_put_int(&writer, 2, 1);
    inf_pb_put_text(&writer, 8, "w");
    inf_pb_close(&writer);
    inf_pb_close(&writer);
    refuse_model(&writer, INF_INVALID, "tensor 'w': dimension 0 is -1");
}

// Given a function that calls itself, expect that the import ends with an error.
Test(onnx, functions_that_call_themselves_end)
{
    struct inf_pb_writer writer = {0};
    inf_onnx_put_head(&writer, 18);
    inf_pb_open(&writer, 8);
    inf_pb_put_text(&writer, 1, "mine");
    inf_pb_put_int(&writer, 2, 1);
    inf_pb_close(&writer);
    inf_pb_open(&writer, 25);
    inf_pb_put_text(&writer, 1, "Again");
    inf_pb_put_text(&writer, 4, "a");
    inf_pb_put_text(&writer, 5, "b");
    inf_pb_put_text(&writer, 10, "mine");
    inf_pb_open(&writer, 7);
    inf_pb_put_text(&writer, 1, "a");
    inf_pb_put_text(&writer, 2, "b");
    inf_pb_put_text(&writer, 4, "Again");
    inf_pb_put_text(&writer, 7, "mine");
    inf_pb_close(&writer);
    inf_pb_close(&writer);
    inf_pb_open(&writer, 7);
    inf_onnx_put_port(&writer, 11, "x", 1, two_by_three, 2);
    inf_onnx_put_port(&writer, 12, "y", 1, two_by_three, 2);
    inf_onnx_open_node(&writer, "Again", "x", NULL, "y");
    inf_pb_put_text(&writer, 7, "mine");
    inf_pb_close(&writer);
    inf_pb_close(&writer);
    refuse_model(&writer, INF_EXHAUSTED, "nest more than");
}

// --- weights that are stored in other files (external data) ---

// Begins a model whose weight of 3 floats is stored in another file.
static struct inf_pb_writer open_external_model(const char *location, const char *offset,
                                                const char *length)
{
    const char *const entries[][2] = {
        {"location", location}, {"offset", offset}, {"length", length}};
    struct inf_pb_writer writer = open_model(13);
    inf_pb_open(&writer, 5);
    inf_pb_put_int(&writer, 1, 3);
    inf_pb_put_int(&writer, 2, 1);
    inf_pb_put_text(&writer, 8, "w");
    for (size_t i = 0; i < INF_ARRAY_LENGTH(entries); i++) {
        if (entries[i][1] == NULL)
            continue;
        inf_pb_open(&writer, 13);
        inf_pb_put_text(&writer, 1, entries[i][0]);
        inf_pb_put_text(&writer, 2, entries[i][1]);
        inf_pb_close(&writer);
    }
    inf_pb_put_int(&writer, 14, 1);
    inf_pb_close(&writer);
    put_node(&writer, "Add", "x", "w", "y");
    inf_pb_close(&writer);
    return writer;
}

Test(onnx, external_data_are_read_beside_the_model)
{
    static const float numbers[] = {0, 1, 2, 3};
    struct inf_model_info info;
    write_file("weights.bin", numbers, sizeof numbers);
    struct inf_pb_writer writer = open_external_model("weights.bin", "4", "12");
    size_t size = writer.size;
    cr_assert_eq(import_it(&writer, &info), INF_OK, "%s", err.text);
    const struct inf_value *weight = &graph->values[graph->nodes[0].inputs[1]];
    cr_assert_eq(memcmp(weight->data->data, numbers + 1, 12), 0);
    cr_assert_eq(info.file_bytes, size + 12);
}

static void copy_path(void *context, const char *path)
{
    snprintf(context, 64, "%s", path);
}

Test(onnx, paths_of_external_data_are_reported_before_they_are_opened)
{
    char path[64] = "";
    const struct inf_open_sink opened = {.note = copy_path, .context = path};
    const struct inf_import_options options = {.opened = &opened};
    struct inf_pb_writer writer = open_external_model("sub/weights.bin", NULL, NULL);
    write_file("model.onnx", writer.data, writer.size);
    inf_pb_writer_fini(&writer);
    cr_expect_eq(inf_model_import_with(&graph, NULL, folder_fd, "model.onnx", &options, &err),
                 INF_NOT_FOUND);
    cr_expect_str_eq(path, "sub/weights.bin");
}

Test(onnx, external_data_never_lead_out_of_the_folder)
{
    char long_name[5000];
    static const float numbers[] = {0, 1, 2, 3};
    memset(long_name, 'a', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    write_file("real.bin", numbers, sizeof numbers);
    cr_assert_eq(mkdirat(folder_fd, "sub", 0700), 0);
    cr_assert_eq(symlinkat("real.bin", folder_fd, "link.bin"), 0);
    cr_assert_eq(symlinkat("sub", folder_fd, "linked"), 0);
    cr_assert_eq(linkat(folder_fd, "real.bin", folder_fd, "hard.bin", 0), 0);
    cr_assert_eq(mkfifoat(folder_fd, "pipe", 0600), 0);
    write_file("sub/inner.bin", numbers, sizeof numbers);
    const struct {
        const char *location;
        enum inf_code code;
    } cases[] = {
        {"../real.bin", INF_DENIED}, {"sub/../../x", INF_DENIED},
        {"/etc/passwd", INF_DENIED}, {"/dev/zero", INF_DENIED},
        {"link.bin", INF_DENIED},    {"linked/inner.bin", INF_DENIED},
        {"hard.bin", INF_DENIED},    {"pipe", INF_DENIED},
        {"sub", INF_DENIED},         {"missing.bin", INF_NOT_FOUND},
        {long_name, INF_INVALID},    {"/proc/self/fd/0", INF_DENIED},
        {"", INF_INVALID},
    };
    for (size_t i = 0; i < INF_ARRAY_LENGTH(cases); i++) {
        struct inf_pb_writer writer = open_external_model(cases[i].location, NULL, NULL);
        enum inf_code code = import_it(&writer, NULL);
        cr_assert_eq(code, cases[i].code, "%.40s: %s %s", cases[i].location, inf_code_name(code),
                     err.text);
        cr_assert_null(strstr(err.text, folder), "%s", err.text);
    }
}

Test(onnx, external_offsets_and_lengths_are_checked)
{
    static const float numbers[] = {0, 1, 2, 3};
    static const char *const cases[][2] = {
        {"5", "12"},  // the range ends one byte after the file's end
        {"16", "12"}, // the offset is the file's end
        {"17", NULL}, // the offset is after the file's end
        {"0", "16"},  // more bytes than the dims need
        {"0", "0"},
        {"-1", "12"},
        {"4x", "12"},
        {"18446744073709551612", "12"}, // offset + length wraps around to 8
        {"99999999999999999999", "12"}, // the offset exceeds 64 bits
    };
    write_file("weights.bin", numbers, sizeof numbers);
    for (size_t i = 0; i < INF_ARRAY_LENGTH(cases); i++) {
        struct inf_pb_writer writer = open_external_model("weights.bin", cases[i][0], cases[i][1]);
        refuse_model(&writer, INF_INVALID, "tensor 'w'");
    }
}
