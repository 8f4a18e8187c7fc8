// SPDX-License-Identifier: Apache-2.0
// Small models, truncated and changed at random. No import may crash or hang, and every refusal
// must have an error text.
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "backends/import/onnx/onnx.h"
#include "backends/registry.h"
#include "tests/support/models/onnx_writer.h"

#define VARIANTS 2200 // number of changed copies that are made of each seed model

static uint64_t state;

// Returns a random number below `bound` (SplitMix64).
static uint32_t next_below(uint32_t bound)
{
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (uint32_t)((z ^ z >> 31) >> 32) % bound;
}

// --- seed models, of which changed copies are made ---

static const float numbers[64] = {0.5f, -1, 2, 0.25f};
static const int64_t image[] = {1, 2, 4, 4};

static struct inf_pb_writer open_model(int64_t opset, const int64_t *dims, uint32_t rank)
{
    struct inf_pb_writer writer = {0};
    inf_onnx_put_head(&writer, opset);
    inf_pb_open(&writer, 7);
    inf_onnx_put_port(&writer, 11, "x", 1, dims, rank);
    inf_onnx_put_port(&writer, 12, "y", 1, dims, rank);
    return writer;
}

static void put_node(struct inf_pb_writer *writer, const char *op, const char *a, const char *b,
                     const char *output)
{
    inf_onnx_open_node(writer, op, a, b, output);
    inf_pb_close(writer);
}

static struct inf_pb_writer seed_conv(void)
{
    static const int64_t filter[] = {2, 2, 2, 2}, pads[] = {1, 0, 0, 1}, strides[] = {2, 1};
    struct inf_pb_writer writer = open_model(13, image, 4);
    inf_onnx_put_floats(&writer, "w", filter, 4, numbers);
    inf_onnx_open_node(&writer, "Conv", "x", "w", "c");
    inf_onnx_put_attr_ints(&writer, "pads", pads, 4);
    inf_onnx_put_attr_ints(&writer, "strides", strides, 2);
    inf_pb_close(&writer);
    put_node(&writer, "Relu", "c", NULL, "y");
    return writer;
}

static struct inf_pb_writer seed_pool(void)
{
    static const int64_t kernel[] = {2, 3}, pads[] = {0, 1, 1, 0};
    struct inf_pb_writer writer = open_model(19, image, 4);
    inf_onnx_open_node(&writer, "AveragePool", "x", NULL, "p");
    inf_onnx_put_attr_ints(&writer, "kernel_shape", kernel, 2);
    inf_onnx_put_attr_ints(&writer, "pads", pads, 4);
    inf_onnx_put_attr_int(&writer, "ceil_mode", 1);
    inf_onnx_put_attr_int(&writer, "count_include_pad", 1);
    inf_pb_close(&writer);
    put_node(&writer, "GlobalMaxPool", "p", NULL, "y");
    return writer;
}

static struct inf_pb_writer seed_shape(void)
{
    static const int64_t wanted[] = {0, -1, 8}, axes[] = {0, 2};
    struct inf_pb_writer writer = open_model(13, image, 4);
    inf_onnx_put_int64s(&writer, "wanted", wanted, 3);
    inf_onnx_put_int64s(&writer, "axes", axes, 2);
    put_node(&writer, "Reshape", "x", "wanted", "a");
    put_node(&writer, "Unsqueeze", "a", "axes", "b");
    put_node(&writer, "Shape", "b", NULL, "s");
    put_node(&writer, "Expand", "b", "s", "y");
    return writer;
}

static struct inf_pb_writer seed_slice(void)
{
    static const int64_t starts[] = {-3, 1}, ends[] = {INT64_MAX, 3}, pads[] = {0, 1, 0, 2};
    static const int64_t matrix[] = {5, 4};
    struct inf_pb_writer writer = open_model(13, matrix, 2);
    inf_onnx_put_int64s(&writer, "starts", starts, 2);
    inf_onnx_put_int64s(&writer, "ends", ends, 2);
    inf_onnx_put_int64s(&writer, "pads", pads, 4);
    inf_pb_open(&writer, 1);
    inf_pb_put_text(&writer, 1, "x");
    inf_pb_put_text(&writer, 1, "starts");
    inf_pb_put_text(&writer, 1, "ends");
    inf_pb_put_text(&writer, 2, "s");
    inf_pb_put_text(&writer, 4, "Slice");
    inf_pb_close(&writer);
    put_node(&writer, "Pad", "s", "pads", "y");
    return writer;
}

static struct inf_pb_writer seed_resize(void)
{
    static const float scales[] = {1, 1, 1.5f, 2};
    static const int64_t four[] = {4};
    struct inf_pb_writer writer = open_model(13, image, 4);
    inf_onnx_put_floats(&writer, "scales", four, 1, scales);
    inf_pb_open(&writer, 1);
    inf_pb_put_text(&writer, 1, "x");
    inf_pb_put_text(&writer, 1, "");
    inf_pb_put_text(&writer, 1, "scales");
    inf_pb_put_text(&writer, 2, "y");
    inf_pb_put_text(&writer, 4, "Resize");
    inf_onnx_put_attr_text(&writer, "mode", "cubic");
    inf_pb_close(&writer);
    return writer;
}

static struct inf_pb_writer seed_if(void)
{
    struct inf_pb_writer writer = open_model(13, image, 4);
    static const int64_t one[] = {1};
    inf_onnx_put_int64s(&writer, "a", one, 1);
    put_node(&writer, "Equal", "a", "a", "condition");
    inf_onnx_open_node(&writer, "If", "condition", NULL, "y");
    for (int branch = 0; branch < 2; branch++) {
        inf_pb_open(&writer, 5);
        inf_pb_put_text(&writer, 1, branch == 0 ? "then_branch" : "else_branch");
        inf_pb_put_int(&writer, 20, 5);
        inf_pb_open(&writer, 6);
        inf_onnx_put_port(&writer, 12, "z", 1, image, 4);
        put_node(&writer, branch == 0 ? "Neg" : "Abs", "x", NULL, "z");
        inf_pb_close(&writer);
        inf_pb_close(&writer);
    }
    inf_pb_close(&writer);
    return writer;
}

static struct inf_pb_writer seed_rnn(void)
{
    static const int64_t x[] = {3, 1, 2}, w[] = {1, 8, 2};
    struct inf_pb_writer writer = open_model(14, x, 3);
    inf_onnx_put_floats(&writer, "w", w, 3, numbers);
    inf_onnx_put_floats(&writer, "r", w, 3, numbers);
    inf_pb_open(&writer, 1);
    inf_pb_put_text(&writer, 1, "x");
    inf_pb_put_text(&writer, 1, "w");
    inf_pb_put_text(&writer, 1, "r");
    inf_pb_put_text(&writer, 2, "y");
    inf_pb_put_text(&writer, 4, "LSTM");
    inf_onnx_put_attr_int(&writer, "hidden_size", 2);
    inf_pb_close(&writer);
    return writer;
}

static struct inf_pb_writer seed_reduce(void)
{
    static const int64_t axes[] = {1, -1};
    struct inf_pb_writer writer = open_model(18, image, 4);
    inf_onnx_put_int64s(&writer, "axes", axes, 2);
    put_node(&writer, "ReduceLogSumExp", "x", "axes", "a");
    put_node(&writer, "Softmax", "a", NULL, "b");
    put_node(&writer, "Flatten", "b", NULL, "y");
    return writer;
}

static struct inf_pb_writer seed_gather(void)
{
    static const int64_t indices[] = {1, -1, 0};
    struct inf_pb_writer writer = open_model(13, image, 4);
    inf_onnx_put_int64s(&writer, "indices", indices, 3);
    inf_onnx_open_node(&writer, "Gather", "x", "indices", "a");
    inf_onnx_put_attr_int(&writer, "axis", 3);
    inf_pb_close(&writer);
    inf_onnx_open_node(&writer, "Transpose", "a", NULL, "y");
    inf_onnx_put_attr_ints(&writer, "perm", (const int64_t[]){3, 1, 0, 2}, 4);
    inf_pb_close(&writer);
    return writer;
}

static struct inf_pb_writer seed_split(void)
{
    struct inf_pb_writer writer = open_model(18, image, 4);
    inf_pb_open(&writer, 1);
    inf_pb_put_text(&writer, 1, "x");
    inf_pb_put_text(&writer, 2, "a");
    inf_pb_put_text(&writer, 2, "b");
    inf_pb_put_text(&writer, 4, "Split");
    inf_onnx_put_attr_int(&writer, "axis", 2);
    inf_onnx_put_attr_int(&writer, "num_outputs", 2);
    inf_pb_close(&writer);
    inf_onnx_open_node(&writer, "Concat", "a", "b", "y");
    inf_onnx_put_attr_int(&writer, "axis", 1);
    inf_pb_close(&writer);
    return writer;
}

static struct inf_pb_writer (*const seeds[])(void) = {
    seed_conv, seed_pool, seed_shape,  seed_slice,  seed_resize,
    seed_if,   seed_rnn,  seed_reduce, seed_gather, seed_split};

// --- importing a changed model ---

static enum inf_code import_bytes(const uint8_t *bytes, size_t size, struct inf_error *err)
{
    char producer[64];
    struct inf_graph *graph = NULL;
    struct inf_tally tally = INF_TALLY_INIT;
    const struct inf_onnx_files files = {.place.directory_fd = -1, .tally = &tally};
    const struct inf_import_options options = {.evaluator = inf_registry_evaluator()};
    // realloc() below gives the copy exactly `size` bytes, so that a sanitizer finds a read beyond
    // its end.
    uint8_t *copy = malloc(size + 1);
    cr_assert_not_null(copy);
    copy = realloc(copy, size > 0 ? size : 1);
    memcpy(copy, bytes, size);
    *err = (struct inf_error){0};
    enum inf_code code =
        inf_onnx_import(&graph, producer, (struct inf_span){copy, size}, &files, &options, err);
    cr_assert_eq(code == INF_OK, graph != NULL);
    cr_assert(code == INF_OK || err->text[0] != '\0');
    inf_graph_destroy(&graph);
    free(copy);
    return code;
}

static struct inf_pb_writer make_seed(size_t index)
{
    struct inf_pb_writer writer = seeds[index]();
    inf_pb_close(&writer);
    return writer;
}

Test(onnx_fuzz, seeds_are_accepted)
{
    for (size_t i = 0; i < INF_ARRAY_LENGTH(seeds); i++) {
        struct inf_error err;
        struct inf_pb_writer writer = make_seed(i);
        cr_assert_eq(import_bytes(writer.data, writer.size, &err), INF_OK, "seed %zu: %s", i,
                     err.text);
        inf_pb_writer_fini(&writer);
    }
}

Test(onnx_fuzz, every_truncation_is_refused)
{
    for (size_t i = 0; i < INF_ARRAY_LENGTH(seeds); i++) {
        struct inf_pb_writer writer = make_seed(i);
        for (size_t size = 0; size < writer.size; size++) {
            struct inf_error err;
            cr_assert_neq(import_bytes(writer.data, size, &err), INF_OK, "seed %zu, %zu bytes", i,
                          size);
        }
        inf_pb_writer_fini(&writer);
    }
}

// Changes a few bytes of the model, or copies, drops or repeats a range of bytes. Returns the new
// size.
static size_t mutate_bytes(uint8_t *bytes, size_t size, size_t capacity)
{
    static const uint8_t odd[] = {0, 1, 2, 0x7f, 0x80, 0xff, 0xfe, 8, 0x0a, 0x12};
    uint32_t changes = 1 + next_below(4);
    for (uint32_t i = 0; i < changes && size > 4; i++) {
        size_t at = next_below((uint32_t)size), length = 1 + next_below(16);
        length = INF_MIN(length, size - at);
        switch (next_below(6)) {
        case 0:
            bytes[at] ^= (uint8_t)(1u << next_below(8));
            break;
        case 1:
            bytes[at] = odd[next_below(sizeof odd)];
            break;
        case 2:
            bytes[at] = (uint8_t)(bytes[at] + (next_below(2) ? 1 : -1));
            break;
        case 3:
            memmove(bytes + at, bytes + at + length, size - at - length);
            size -= length;
            break;
        case 4:
            if (size + length <= capacity) {
                memmove(bytes + at + length, bytes + at, size - at);
                size += length;
            }
            break;
        default:
            memcpy(bytes + next_below((uint32_t)(size - length + 1)),
                   (uint8_t[16]){0xff, 0xff, 0xff}, length);
        }
    }
    return size;
}

Test(onnx_fuzz, changed_models_do_no_harm)
{
    uint32_t accepted = 0;
    for (size_t i = 0; i < INF_ARRAY_LENGTH(seeds); i++) {
        struct inf_pb_writer writer = make_seed(i);
        uint8_t *bytes = malloc(writer.size + 64);
        cr_assert_not_null(bytes);
        for (uint32_t variant = 0; variant < VARIANTS; variant++) {
            struct inf_error err;
            state = i * 1000003 + variant;
            memcpy(bytes, writer.data, writer.size);
            size_t size = mutate_bytes(bytes, writer.size, writer.size + 64);
            accepted += import_bytes(bytes, size, &err) == INF_OK;
        }
        free(bytes);
        inf_pb_writer_fini(&writer);
    }
    cr_assert_gt(accepted, 100, "some changes do not matter");
}
