// SPDX-License-Identifier: Apache-2.0
// What ONNX files say about themselves: texts, labels in the syntax of several exporters, how
// pictures become inputs, and what becomes of damaged metadata.
#include <criterion/criterion.h>
#include <string.h>

#include "backends/import/common/description.h"
#include "backends/import/common/label_text.h"
#include "tests/unit/import/onnx_run_kit.h"

static struct inf_graph *graph;
static struct inf_model_description *description;

static void drop_description(void)
{
    inf_graph_destroy(&graph);
    inf_model_description_unref(&description);
    tear_down();
}

TestSuite(onnx_metadata, .init = set_up, .fini = drop_description);

// Opens a model of one Relu from a picture `x` to `y`.
static struct inf_pb_writer open_model(void)
{
    static const int64_t dims[] = {1, 3, 2, 2};
    struct inf_pb_writer writer = {0};
    inf_onnx_put_head(&writer, 13);
    inf_pb_open(&writer, 7);
    inf_onnx_put_port(&writer, 11, "x", FLOAT, dims, 4);
    inf_onnx_put_port(&writer, 12, "y", FLOAT, dims, 4);
    inf_onnx_open_node(&writer, "Relu", "x", NULL, "y");
    inf_pb_close(&writer);
    inf_pb_close(&writer);
    return writer;
}

static void put_property(struct inf_pb_writer *writer, const char *key, const char *value)
{
    inf_pb_open(writer, 14);
    inf_pb_put_text(writer, 1, key);
    inf_pb_put_text(writer, 2, value);
    inf_pb_close(writer);
}

static void describe_model(struct inf_pb_writer *writer)
{
    const struct inf_import_options options = {.evaluator = inf_registry_evaluator(),
                                               .description = &description};
    int fd = openat(folder_fd, "model.onnx", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    cr_assert_eq(write(fd, writer->data, writer->size), (ssize_t)writer->size);
    close(fd);
    inf_pb_writer_fini(writer);
    inf_graph_destroy(&graph);
    inf_model_description_unref(&description);
    cr_assert_eq(inf_model_import_with(&graph, NULL, folder_fd, "model.onnx", &options, &err),
                 INF_OK, "%s", err.text);
}

Test(onnx_metadata, a_file_that_says_nothing_has_no_description)
{
    struct inf_pb_writer writer = open_model();
    describe_model(&writer);
    cr_assert_null(description);
}

Test(onnx_metadata, texts_and_further_keys_are_read)
{
    struct inf_pb_writer writer = open_model();
    inf_pb_put_int(&writer, 5, 7);
    inf_pb_put_text(&writer, 6, "Finds\tcats.");
    put_property(&writer, "model_author", "A. Person");
    put_property(&writer, "model_license", "MIT");
    put_property(&writer, "task", "detect");
    put_property(&writer, "imgsz", "[640, 640]");
    describe_model(&writer);
    cr_assert_not_null(description);
    cr_expect_str_eq(description->author, "A. Person");
    cr_expect_str_eq(description->license, "MIT");
    cr_expect_str_eq(description->version, "7");
    cr_expect_str_eq(description->title, "");
    cr_expect_str_eq(description->text, "Finds cats.\ntask: detect\nimgsz: [640, 640]");
    cr_expect_str_eq(description->problem, "");
    cr_expect_eq(description->inputs[0].channel_count, 0u);

    writer = open_model();
    inf_pb_put_text(&writer, 6, "Finds cats.");
    put_property(&writer, "description", "Ultralytics YOLO");
    put_property(&writer, "author", "Ultralytics");
    put_property(&writer, "license", "AGPL-3.0");
    describe_model(&writer);
    cr_expect_str_eq(description->text, "Ultralytics YOLO");
    cr_expect_str_eq(description->author, "Ultralytics");
    cr_expect_str_eq(description->license, "AGPL-3.0");
    cr_expect_str_eq(description->version, "");
}

Test(onnx_metadata, a_long_value_is_not_shown)
{
    char value[600];
    memset(value, 'a', sizeof value - 1);
    value[sizeof value - 1] = '\0';
    struct inf_pb_writer writer = open_model();
    put_property(&writer, "long", value);
    value[512] = '\0';
    put_property(&writer, "b", value);
    describe_model(&writer);
    cr_expect_str_eq(strchr(description->text, '\n') + 1 + strlen("b: "), value);
    cr_expect(strncmp(description->text, "long: 599 bytes\n", 16) == 0);
}

Test(onnx_metadata, names_and_stride_make_labels_and_pictures_from_0_to_1)
{
    struct inf_pb_writer writer = open_model();
    put_property(&writer, "names", "{0: 'cat', 1: 'dog'}");
    put_property(&writer, "stride", "32");
    describe_model(&writer);
    const struct inf_described_tensor *y = &description->outputs[0], *x = &description->inputs[0];
    cr_assert_eq(y->label_kind, INF_LABELS_CLASSES);
    cr_assert_eq(y->label_count, 2u);
    cr_expect_str_eq(y->labels_file, "names");
    cr_expect_str_eq(y->labels, "cat");
    cr_expect_str_eq(y->labels + 4, "dog");
    cr_assert_eq(x->channel_count, 1u);
    cr_expect_eq(x->mean[0], 0);
    cr_expect_eq(x->deviation[0], 255);
    cr_expect_str_eq(description->text, "stride: 32");
}

Test(onnx_metadata, the_range_of_pixels_is_a_normalisation)
{
    static const struct {
        const char *range;
        float mean, deviation;
    } cases[] = {{"NominalRange_0_255", 0, 1},
                 {"Normalized_0_1", 0, 255},
                 {"Normalized_1_1", 127.5f, 127.5f}};
    for (size_t i = 0; i < 3; i++) {
        struct inf_pb_writer writer = open_model();
        put_property(&writer, "Image.NominalPixelRange", cases[i].range);
        put_property(&writer, "Image.BitmapPixelFormat", i == 2 ? "Bgr8" : "Rgb8");
        describe_model(&writer);
        cr_assert_eq(description->inputs[0].channel_count, 1u);
        cr_expect_eq(description->inputs[0].mean[0], cases[i].mean);
        cr_expect_eq(description->inputs[0].deviation[0], cases[i].deviation);
        cr_expect_str_eq(description->problem,
                         i == 2 ? "Image.BitmapPixelFormat: the model takes blue first" : "");
    }
    struct inf_pb_writer writer = open_model();
    put_property(&writer, "Image.NominalPixelRange", "NominalRange_16_235");
    put_property(&writer, "names", "cat");
    put_property(&writer, "stride", "32");
    describe_model(&writer);
    cr_expect_eq(description->inputs[0].channel_count, 0u);
}

// Writes an input or output with a doc_string, and a denotation of its type unless that is "".
static void put_described_port(struct inf_pb_writer *writer, uint32_t field, const char *name,
                               const char *text, const char *denotation)
{
    inf_pb_open(writer, field);
    inf_pb_put_text(writer, 1, name);
    inf_pb_open(writer, 2);
    inf_pb_open(writer, 1);
    inf_pb_put_int(writer, 1, FLOAT);
    inf_pb_open(writer, 2);
    for (int i = 0; i < 4; i++) {
        inf_pb_open(writer, 1);
        inf_pb_put_int(writer, 1, 2);
        inf_pb_close(writer);
    }
    inf_pb_close(writer);
    inf_pb_close(writer);
    inf_pb_put_text(writer, 6, denotation);
    inf_pb_close(writer);
    inf_pb_put_text(writer, 3, text);
    inf_pb_close(writer);
}

Test(onnx_metadata, ports_have_texts_and_a_denotation_chooses_the_picture)
{
    struct inf_pb_writer writer = {0};
    inf_onnx_put_head(&writer, 13);
    inf_pb_open(&writer, 7);
    put_described_port(&writer, 11, "mask", "where", "");
    put_described_port(&writer, 11, "picture", "what", "IMAGE");
    put_described_port(&writer, 12, "y", "result", "");
    inf_onnx_open_node(&writer, "Add", "mask", "picture", "y");
    inf_pb_close(&writer);
    inf_pb_put_text(&writer, 10, "A sum.");
    inf_pb_close(&writer);
    put_property(&writer, "Image.NominalPixelRange", "Normalized_0_1");
    describe_model(&writer);
    cr_assert_eq(description->input_count, 2u);
    cr_expect_str_eq(description->inputs[0].text, "where");
    cr_expect_str_eq(description->inputs[1].text, "what");
    cr_expect_str_eq(description->outputs[0].text, "result");
    cr_expect_eq(description->inputs[0].channel_count, 0u);
    cr_expect_eq(description->inputs[1].channel_count, 1u);
    cr_expect(strncmp(description->text, "A sum.\n", 7) == 0, "%s", description->text);
}

Test(onnx_metadata, what_cannot_be_read_is_left_out_and_named)
{
    struct inf_pb_writer writer = open_model();
    put_property(&writer, "names", "{0: 'cat', 2: 'dog'}");
    put_property(&writer, "author", "A. Person");
    describe_model(&writer);
    cr_expect_str_eq(description->problem,
                     "metadata_props 'names': 2 labels have the key 2, wanted 0 to 1, each once");
    cr_expect_eq(description->outputs[0].label_kind, INF_LABELS_NONE);
    cr_expect_str_eq(description->author, "A. Person");

    writer = open_model();
    put_property(&writer, "author", "\xff");
    describe_model(&writer);
    cr_expect_str_eq(description->problem, "author is no UTF-8");

    writer = open_model();
    for (int i = 0; i < 257; i++)
        put_property(&writer, "key", "value");
    describe_model(&writer);
    cr_expect_str_eq(description->problem, "more than 256 metadata_props");
}

// --- labels ---

// Reads labels; returns them with bars between.
static const char *join_labels(const char *text)
{
    static char joined[256];
    struct inf_arena arena = {0};
    struct inf_label_list list;
    char *at = joined;
    *at = '\0';
    enum inf_code code = inf_label_list_read(
        &list, &arena, (struct inf_span){(const uint8_t *)text, strlen(text)}, &err);
    if (code != INF_OK) {
        inf_arena_fini(&arena);
        return err.text;
    }
    const char *label = list.labels;
    for (uint32_t i = 0; i < list.count; i++, label += strlen(label) + 1)
        at += sprintf(at, "%s|", label);
    inf_arena_fini(&arena);
    return joined;
}

Test(label_text, lists_maps_and_lines_are_read)
{
    cr_expect_str_eq(join_labels("['a', \"b's\",'c',]"), "a|b's|c|");
    cr_expect_str_eq(join_labels(" ('a', 'b')"), "a|b|");
    cr_expect_str_eq(join_labels("{1: 'b', 0: 'a'}"), "a|b|");
    cr_expect_str_eq(join_labels("{\"0\": \"x, y\", \"1\": \"z\"}"), "x, y|z|");
    cr_expect_str_eq(join_labels("{0: 7, 1: eight }"), "7|eight|");
    cr_expect_str_eq(join_labels("cat\r\nbig dog\n"), "cat|big dog|");
    cr_expect_str_eq(join_labels("cat"), "cat|");
    cr_expect_str_eq(join_labels("[]"), "");
    cr_expect_str_eq(join_labels(""), "");
}

Test(label_text, escapes_are_decoded)
{
    cr_expect_str_eq(join_labels("['it\\'s', 'a\\\\b', 'l\\nm', '\\xe9', '\\u20ac', '\\u0001']"),
                     "it's|a\\b|l m|\xc3\xa9|\xe2\x82\xac| |");
    cr_expect_str_eq(join_labels("['\\q']"), "a label has the unknown escape '\\q'");
    cr_expect_str_eq(join_labels("['\\xg0']"), "an escape of a label has no 2 digits");
}

Test(label_text, damaged_texts_are_refused)
{
    cr_expect_str_eq(join_labels("['a"), "the labels end within a label");
    cr_expect_str_eq(join_labels("['a' 'b']"), "label 0 is followed by no comma");
    cr_expect_str_eq(join_labels("['a'"), "label 0 is followed by no comma");
    cr_expect_str_eq(join_labels("["), "the labels end within a label");
    cr_expect_str_eq(join_labels("{a: 'b'}"), "'a' is the key of a label, wanted a number");
    cr_expect_str_eq(join_labels("{0 'b'}"), "'0 'b'' is the key of a label, wanted a number");
    cr_expect_str_eq(join_labels("{0: 'a', 0: 'b'}"),
                     "2 labels have the key 0, wanted 0 to 1, each once");
    cr_expect_str_eq(join_labels("{0}"), "key 0 of the labels has no label");
    cr_expect_str_eq(join_labels("\xff"), "the labels are no UTF-8");
}

// --- damaged files ---

// Replaces one byte of a text at random, and often by one that has a meaning for the parsers.
static void damage_text(uint8_t *data, size_t size)
{
    static const char meaningful[] = "{}[]():,'\"\\ux0\n\x80";
    size_t at = (size_t)rand() % size;
    data[at] = rand() % 4 == 0 ? (uint8_t)rand()
                               : (uint8_t)meaningful[(size_t)rand() % (sizeof meaningful - 1)];
}

// Returns the bytes of the labels with their NULs, which must all be readable.
static size_t count_label_bytes(const char *labels, uint32_t count)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < count; i++)
        bytes += strlen(labels + bytes) + 1;
    return bytes;
}

Test(label_text, damaged_labels_are_read_or_refused)
{
    static const char text[] = "{0: 'a\\u20ac', 1: \"b\\x41\", 2: c , 3: 'it\\'s'}";
    srand(3);
    for (int i = 0; i < 20000; i++) {
        // The text ends where its memory ends, so that a sanitizer sees a read behind it.
        size_t size = sizeof text - 1 - (size_t)(rand() % 8);
        uint8_t *data = malloc(size);
        cr_assert_not_null(data);
        memcpy(data, text, size);
        for (int j = rand() % 4; j >= 0; j--)
            damage_text(data, size);
        struct inf_arena arena = {0};
        struct inf_label_list list;
        err = (struct inf_error){0};
        enum inf_code code =
            inf_label_list_read(&list, &arena, (struct inf_span){data, size}, &err);
        cr_assert_eq(code != INF_OK, err.text[0] != '\0');
        if (code == INF_OK)
            cr_assert_leq(count_label_bytes(list.labels, list.count), size + 1);
        inf_arena_fini(&arena);
        free(data);
    }
}

Test(onnx_metadata, damaged_files_are_described_or_refused)
{
    const struct inf_import_options options = {.evaluator = inf_registry_evaluator(),
                                               .description = &description};
    struct inf_pb_writer writer = open_model();
    put_property(&writer, "names", "{0: 'cat', 1: 'dog'}");
    put_property(&writer, "Image.NominalPixelRange", "Normalized_1_1");
    put_property(&writer, "author", "A. Person");
    inf_pb_put_text(&writer, 6, "Finds cats.");
    uint8_t *data = malloc(writer.size);
    cr_assert_not_null(data);
    srand(5);
    unsigned described = 0;
    for (int i = 0; i < 1000; i++) {
        memcpy(data, writer.data, writer.size);
        damage_text(data, writer.size);
        int fd = openat(folder_fd, "model.onnx", O_WRONLY | O_CREAT | O_TRUNC, 0600);
        cr_assert_eq(write(fd, data, writer.size), (ssize_t)writer.size);
        close(fd);
        inf_graph_destroy(&graph);
        inf_model_description_unref(&description);
        enum inf_code code =
            inf_model_import_with(&graph, NULL, folder_fd, "model.onnx", &options, &err);
        cr_assert(code == INF_OK || description == NULL);
        described += description != NULL;
        if (description != NULL && description->output_count > 0)
            (void)count_label_bytes(description->outputs[0].labels,
                                    description->outputs[0].label_count);
    }
    // Most bytes are in texts, where a change is harmless.
    cr_assert_gt(described, 400u);
    free(data);
    inf_pb_writer_fini(&writer);
}
