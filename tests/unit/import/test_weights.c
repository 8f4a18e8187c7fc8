// SPDX-License-Identifier: Apache-2.0
// The reader of TensorFlow.js weights: encodings, shards, and errors in manifests.
#include <criterion/criterion.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/import/common/weights.h"
#include "backends/storage/file.h"

// A folder with shards, and the weights that the reader read from it.
static struct {
    char path[32];
    int fd;
    struct json_t *root;
    struct inf_weights *weights;
    struct inf_tally tally;
    struct inf_error err;
} t;

static void set_up(void)
{
    strcpy(t.path, "/tmp/inf-weights-XXXXXX");
    cr_assert_not_null(mkdtemp(t.path));
    cr_assert_eq(inf_directory_open(&t.fd, t.path, &t.err), INF_OK);
}

static void tear_down(void)
{
    char command[64];
    inf_weights_destroy(&t.weights);
    inf_json_destroy(&t.root);
    close(t.fd);
    snprintf(command, sizeof command, "rm -r %s", t.path);
    cr_assert_eq(system(command), 0);
}

TestSuite(weights, .init = set_up, .fini = tear_down);

static void write_file(const char *name, const void *data, size_t size)
{
    int fd = openat(t.fd, name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    cr_assert_geq(fd, 0);
    cr_assert_eq(write(fd, data, size), (ssize_t)size);
    close(fd);
}

// Reads the weights that a JSON manifest describes.
static enum inf_code read_manifest(const char *manifest)
{
    inf_weights_destroy(&t.weights);
    inf_json_destroy(&t.root);
    cr_assert_eq(inf_json_parse(&t.root, manifest, strlen(manifest), "m", &t.err), INF_OK, "%s",
                 t.err.text);
    struct inf_json json = inf_json_root(t.root);
    struct inf_shard_place place = {.directory_fd = t.fd, .folder = ""};
    t.tally = INF_TALLY_INIT;
    t.err = (struct inf_error){0};
    return inf_weights_read(&t.weights, &json, &place, &t.tally, &t.err);
}

// Asserts that the reader refuses a manifest with `code` and an error text that contains `part`.
static void refuse_manifest(const char *manifest, enum inf_code code, const char *part)
{
    cr_assert_eq(read_manifest(manifest), code, "%s: %d %s", manifest, t.err.code, t.err.text);
    cr_assert_not_null(strstr(t.err.text, part), "%s: %s", manifest, t.err.text);
    cr_assert_null(t.weights);
}

Test(weights, decodes_every_way_of_storing)
{
    // The bytes of these weights: float32 1.5, -2; int32 -7; bool 0, 1, 2; float16 1.0, -2.0,
    // 65504; uint8 0, 128, 255; uint16 0, 65535; uint8 to int32 0, 3.
    static const uint8_t bytes[] = {0x00, 0x00, 0xc0, 0x3f, 0x00, 0x00, 0x00, 0xc0, 0xf9, 0xff,
                                    0xff, 0xff, 0,    1,    2,    0x00, 0x3c, 0x00, 0xc0, 0xff,
                                    0x7b, 0,    128,  255,  0,    0,    0xff, 0xff, 0,    3};
    write_file("w.bin", bytes, sizeof bytes);
    cr_assert_eq(
        read_manifest(
            "[{\"paths\":[\"w.bin\"],\"weights\":["
            "{\"name\":\"f\",\"shape\":[2,1],\"dtype\":\"float32\"},"
            "{\"name\":\"i\",\"shape\":[],\"dtype\":\"int32\"},"
            "{\"name\":\"b\",\"shape\":[3],\"dtype\":\"bool\"},"
            "{\"name\":\"h\",\"shape\":[3],\"dtype\":\"float32\",\"quantization\":{\"dtype\":"
            "\"float16\",\"original_dtype\":\"float32\"}},"
            "{\"name\":\"q\",\"shape\":[3],\"dtype\":\"float32\",\"quantization\":{\"dtype\":"
            "\"uint8\",\"scale\":0.5,\"min\":-64}},"
            "{\"name\":\"s\",\"shape\":[2],\"dtype\":\"float32\",\"quantization\":{\"dtype\":"
            "\"uint16\",\"scale\":0.125,\"min\":1}},"
            "{\"name\":\"r\",\"shape\":[2],\"dtype\":\"int32\",\"quantization\":{\"dtype\":"
            "\"uint8\",\"scale\":0.5,\"min\":-2}}]}]"),
        INF_OK, "%s", t.err.text);
    cr_assert_eq(t.tally.bytes, sizeof bytes);

    const struct inf_weight *f = inf_weights_find(t.weights, "f");
    cr_assert_eq(f->dtype, INF_DTYPE_F32);
    cr_assert(inf_shape_equal(&f->shape, &INF_SHAPE(2, 1)));
    cr_assert_eq(f->data->size_bytes, 8u);
    cr_assert_eq(((float *)f->data->data)[0], 1.5f);
    cr_assert_eq(((float *)f->data->data)[1], -2.0f);
    const struct inf_weight *i = inf_weights_find(t.weights, "i");
    cr_assert_eq(i->shape.rank, 0);
    cr_assert_eq(*(int32_t *)i->data->data, -7);
    const uint8_t *b = inf_weights_find(t.weights, "b")->data->data;
    cr_assert(b[0] == 0 && b[1] == 1 && b[2] == 1);
    const float *h = inf_weights_find(t.weights, "h")->data->data;
    cr_assert(h[0] == 1.0f && h[1] == -2.0f && h[2] == 65504.0f);
    const float *q = inf_weights_find(t.weights, "q")->data->data;
    cr_assert(q[0] == -64.0f && q[1] == 0.0f && q[2] == 63.5f);
    const float *s = inf_weights_find(t.weights, "s")->data->data;
    cr_assert(s[0] == 1.0f && s[1] == 8192.875f);
    // The exact values are -2 and -0.5. Math.round() rounds halves up, so -0.5 becomes -0.
    const int32_t *r = inf_weights_find(t.weights, "r")->data->data;
    cr_assert(r[0] == -2 && r[1] == 0);
    cr_assert_null(inf_weights_find(t.weights, "g"));
}

Test(weights, straddle_shards_and_groups_end_with_theirs)
{
    // A weight of 5 floats 1..5 is spread over shards of 3, 0, 7 and 10 bytes. The next weight is
    // in another group with its own shard.
    float numbers[] = {1, 2, 3, 4, 5};
    const char *bytes = (const char *)numbers;
    write_file("a", bytes, 3);
    write_file("b", bytes, 0);
    write_file("c", bytes + 3, 7);
    write_file("d", bytes + 10, 10);
    write_file("e", "\x01", 1);
    cr_assert_eq(read_manifest("[{\"paths\":[\"a\",\"b\",\"c\",\"d\"],\"weights\":["
                               "{\"name\":\"x\",\"shape\":[2],\"dtype\":\"float32\"},"
                               "{\"name\":\"none\",\"shape\":[3,0],\"dtype\":\"float32\"},"
                               "{\"name\":\"y\",\"shape\":[3],\"dtype\":\"float32\"}]},"
                               "{\"paths\":[],\"weights\":[]},"
                               "{\"paths\":[\"e\"],\"weights\":[{\"name\":\"z\",\"shape\":[1,1],"
                               "\"dtype\":\"bool\"}]}]"),
                 INF_OK, "%s", t.err.text);
    const float *x = inf_weights_find(t.weights, "x")->data->data;
    const float *y = inf_weights_find(t.weights, "y")->data->data;
    cr_assert(x[0] == 1 && x[1] == 2 && y[0] == 3 && y[1] == 4 && y[2] == 5);
    cr_assert_eq(inf_weights_find(t.weights, "none")->data->size_bytes, 0u);
    cr_assert_eq(t.tally.bytes, 21u);
}

static uint64_t hash_of(const uint8_t *bytes, size_t size)
{
    struct inf_tally tally = INF_TALLY_INIT;
    inf_tally_add(&tally, bytes, size);
    return tally.hash;
}

Test(weights, tally_sees_every_bit_and_the_order_of_words)
{
    uint8_t bytes[69] = {0};
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 37);
    uint64_t hash = hash_of(bytes, sizeof bytes);
    cr_expect_neq(hash_of(bytes, sizeof bytes - 1), hash);
    for (size_t bit = 0; bit < 8 * sizeof bytes; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        cr_expect_neq(hash_of(bytes, sizeof bytes), hash, "bit %zu", bit);
        // A second change elsewhere does not undo the first one.
        for (size_t other = 0; other < bit; other++) {
            bytes[other / 8] ^= (uint8_t)(1u << other % 8);
            cr_assert_neq(hash_of(bytes, sizeof bytes), hash, "bits %zu and %zu", bit, other);
            bytes[other / 8] ^= (uint8_t)(1u << other % 8);
        }
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    for (size_t i = 0; i < 8; i++) {
        uint8_t byte = bytes[i];
        bytes[i] = bytes[8 + i];
        bytes[8 + i] = byte;
    }
    cr_expect_neq(hash_of(bytes, sizeof bytes), hash);
}

Test(weights, tally_of_less_than_eight_bytes_is_fnv_1a)
{
    // The expected hashes are published test vectors of 64-bit FNV-1a.
    struct inf_tally tally = INF_TALLY_INIT;
    cr_assert_eq(tally.hash, 0xcbf29ce484222325u);
    inf_tally_add(&tally, "foo", 3);
    inf_tally_add(&tally, "bar", 3);
    cr_assert_eq(tally.hash, 0x85944171f73967e8u);
    cr_assert_eq(tally.bytes, 6u);
}

Test(weights, many_quantised_elements_pass_the_piece_boundaries)
{
    enum {
        COUNT = 10007
    };
    uint8_t *bytes = malloc(COUNT);
    for (size_t i = 0; i < COUNT; i++)
        bytes[i] = (uint8_t)(i * 7);
    write_file("w", bytes, COUNT);
    cr_assert_eq(
        read_manifest("[{\"paths\":[\"w\"],\"weights\":[{\"name\":\"x\",\"shape\":[10007],"
                      "\"dtype\":\"float32\",\"quantization\":{\"dtype\":\"uint8\",\"scale\":"
                      "2,\"min\":-1}}]}]"),
        INF_OK);
    const float *x = inf_weights_find(t.weights, "x")->data->data;
    for (size_t i = 0; i < COUNT; i++)
        cr_assert_eq(x[i], (float)bytes[i] * 2 - 1, "%zu", i);
    free(bytes);
}

Test(weights, keeps_strings_as_stored_and_steps_over_complex_numbers)
{
    // The bytes of two strings "ab" and "", one complex64, and one float 1.0.
    static const uint8_t bytes[] = {2, 0, 0, 0, 'a', 'b', 0, 0, 0, 0,    1,
                                    2, 3, 4, 5, 6,   7,   8, 0, 0, 0x80, 0x3f};
    write_file("w", bytes, sizeof bytes);
    cr_assert_eq(read_manifest("[{\"paths\":[\"w\"],\"weights\":["
                               "{\"name\":\"s\",\"shape\":[2],\"dtype\":\"string\"},"
                               "{\"name\":\"c\",\"shape\":[],\"dtype\":\"complex64\"},"
                               "{\"name\":\"f\",\"shape\":[],\"dtype\":\"float32\"}]}]"),
                 INF_OK, "%s", t.err.text);
    const struct inf_weight *strings = inf_weights_find(t.weights, "s");
    cr_assert_eq(strings->dtype, INF_DTYPE_BYTES);
    cr_assert_eq(strings->data->size_bytes, 10);
    cr_assert_eq(memcmp(strings->data->data, bytes, 10), 0);
    cr_assert_null(inf_weights_find(t.weights, "c")->data);
    cr_assert_str_eq(inf_weights_find(t.weights, "c")->type_name, "complex64");
    cr_assert_eq(*(float *)inf_weights_find(t.weights, "f")->data->data, 1.0f);
    // The file declares a string that is longer than the file.
    write_file("w", "\xff\xff\xff\xff", 4);
    refuse_manifest(
        "[{\"paths\":[\"w\"],\"weights\":[{\"name\":\"s\",\"shape\":[1],\"dtype\":\"string\"}]}]",
        INF_INVALID, "'w': ends 4294967295 bytes before");
}

#define ONE(shape, type, more)                                                                     \
    "[{\"paths\":[\"w\"],\"weights\":[{\"name\":\"x\",\"shape\":" shape ",\"dtype\":\"" type       \
    "\"" more "}]}]"

Test(weights, sizes_must_add_up)
{
    write_file("w", "12345678", 8);
    cr_assert_eq(read_manifest(ONE("[2]", "float32", "")), INF_OK);
    refuse_manifest(ONE("[3]", "float32", ""), INF_INVALID,
                    "weight 'x': shard 'w': ends 4 bytes before");
    refuse_manifest(ONE("[1]", "float32", ""), INF_INVALID,
                    "shard 'w': the weights end at byte 4 of 8");
    refuse_manifest(ONE("[9]", "bool", ""), INF_INVALID, "ends 1 bytes before");
    refuse_manifest(ONE("[7]", "bool", ""), INF_INVALID, "1 bytes are left over");
    refuse_manifest("[{\"paths\":[\"w\"],\"weights\":[]}]", INF_INVALID, "8 bytes are left over");
    refuse_manifest(
        "[{\"paths\":[],\"weights\":[{\"name\":\"x\",\"shape\":[],\"dtype\":\"bool\"}]}]",
        INF_INVALID, "ends 1 bytes before");
    // The manifest declares a gigabyte, but the file has 8 bytes.
    refuse_manifest(ONE("[1073741823]", "float32", ""), INF_INVALID,
                    "ends 4294967284 bytes before");
}

Test(weights, shapes_that_overflow_or_are_negative_are_refused)
{
    write_file("w", "12345678", 8);
    refuse_manifest(ONE("[2147483647,2147483647,2147483647]", "float32", ""), INF_EXHAUSTED,
                    "weight 'x': shape [2147483647,");
    refuse_manifest(ONE("[65536,65536,65536,65536]", "float32", ""), INF_EXHAUSTED,
                    "needs more than");
    refuse_manifest(ONE("[1073741825]", "float32", ""), INF_EXHAUSTED, "needs more than");
    refuse_manifest(ONE("[2147483648]", "float32", ""), INF_INVALID, "shape[0]: has 2147483648");
    refuse_manifest(ONE("[-2]", "float32", ""), INF_INVALID,
                    "shape[0]: has -2, wanted an integer from 0");
    refuse_manifest(ONE("[4611686018427387906]", "float32", ""), INF_INVALID, "shape[0]");
    refuse_manifest(ONE("[9223372036854775807]", "float32", ""), INF_INVALID, "shape[0]");
    refuse_manifest(ONE("[1,1,1,1,1,1,1,1,1]", "float32", ""), INF_INVALID, "at most 8 dimensions");
    refuse_manifest(ONE("[2.0]", "float32", ""), INF_INVALID, "shape[0]");
    refuse_manifest(ONE("2", "float32", ""), INF_INVALID, "shape: has 2, wanted an array");
    refuse_manifest(ONE("[[2]]", "float32", ""), INF_INVALID, "shape[0]: has an array of 1");
}

// The manifest is refused before any file is read, because the file of the second group does not
// exist.
Test(weights, what_is_named_twice_is_refused_unread)
{
    write_file("w", "12345678", 8);
    refuse_manifest(
        "[{\"paths\":[\"w\"],\"weights\":[{\"name\":\"x\",\"shape\":[2],\"dtype\":\"float32\"}]},"
        "{\"paths\":[\"none\"],\"weights\":[{\"name\":\"x\",\"shape\":[2],\"dtype\":\"bool\"}]}]",
        INF_INVALID, "weight 'x': is in the manifest twice");
    refuse_manifest(
        "[{\"paths\":[\"none\"],\"weights\":[{\"name\":\"x\",\"shape\":[2],\"dtype\":\"bool\"}]},"
        "{\"paths\":[\"w\",\"none\"],\"weights\":[]}]",
        INF_INVALID, "shard 'none': is in the manifest twice");
}

#define QUANTISED(type, quantization) ONE("[8]", type, ",\"quantization\":" quantization)

Test(weights, quantisation_that_makes_no_sense_is_refused)
{
    write_file("w", "12345678", 8);
    cr_assert_eq(read_manifest(QUANTISED("float32", "{\"dtype\":\"uint8\",\"scale\":1,\"min\":0}")),
                 INF_OK);
    refuse_manifest(QUANTISED("float32", "{\"dtype\":\"uint8\",\"min\":0}"), INF_INVALID,
                    "scale: is missing");
    refuse_manifest(QUANTISED("float32", "{\"dtype\":\"uint8\",\"scale\":1}"), INF_INVALID,
                    "min: is missing");
    refuse_manifest(QUANTISED("float32", "{\"dtype\":\"uint8\",\"scale\":\"big\",\"min\":0}"),
                    INF_INVALID, "scale: has the string \"big\"");
    refuse_manifest(QUANTISED("float32", "{\"dtype\":\"uint8\",\"scale\":1e300,\"min\":0}"),
                    INF_INVALID, "leaves the range of float32");
    refuse_manifest(QUANTISED("float32", "{\"dtype\":\"uint8\",\"scale\":1e308,\"min\":-1e308}"),
                    INF_INVALID, "leaves the range");
    refuse_manifest(QUANTISED("int32", "{\"dtype\":\"uint8\",\"scale\":10000000,\"min\":0}"),
                    INF_INVALID, "leaves the range of int32");
    refuse_manifest(QUANTISED("float32", "{\"dtype\":\"uint4\",\"scale\":1,\"min\":0}"),
                    INF_UNSUPPORTED, "'uint4'");
    refuse_manifest(QUANTISED("int32", "{\"dtype\":\"float16\"}"), INF_UNSUPPORTED, "'float16'");
    refuse_manifest(QUANTISED("bool", "{\"dtype\":\"uint8\",\"scale\":1,\"min\":0}"),
                    INF_UNSUPPORTED, "bool quantised as 'uint8'");
    refuse_manifest(QUANTISED("string", "{\"dtype\":\"uint8\",\"scale\":1,\"min\":0}"),
                    INF_UNSUPPORTED, "string quantised");
    refuse_manifest(QUANTISED("float32", "[]"), INF_INVALID, "quantization: has an array of 0");
    refuse_manifest(QUANTISED("float32", "{}"), INF_INVALID, "quantization.dtype: is missing");
    refuse_manifest(
        QUANTISED("float32", "{\"dtype\":\"uint8\",\"scale\":1,\"min\":0,\"original_dtype\":3}"),
        INF_INVALID, "original_dtype: has 3");
}

Test(weights, values_of_the_wrong_type_are_named)
{
    write_file("w", "12345678", 8);
    refuse_manifest("{}", INF_INVALID, "the document: has an object, wanted an array");
    refuse_manifest("[7]", INF_INVALID, "[0]: has 7, wanted an object");
    refuse_manifest("[{}]", INF_INVALID, "[0].weights: is missing");
    refuse_manifest("[{\"weights\":{},\"paths\":[]}]", INF_INVALID, "[0].weights: has an object");
    refuse_manifest("[{\"weights\":[]}]", INF_INVALID, "[0].paths: is missing");
    refuse_manifest("[{\"weights\":[],\"paths\":\"w\"}]", INF_INVALID,
                    "paths: has the string \"w\"");
    refuse_manifest("[{\"weights\":[],\"paths\":[7]}]", INF_INVALID,
                    "paths[0]: has 7, wanted a string");
    refuse_manifest("[{\"weights\":[null],\"paths\":[\"w\"]}]", INF_INVALID,
                    "weights[0]: has nothing");
    refuse_manifest("[{\"weights\":[{}],\"paths\":[\"w\"]}]", INF_INVALID,
                    "weights[0].name: is missing");
    refuse_manifest("[{\"weights\":[{\"name\":1}],\"paths\":[\"w\"]}]", INF_INVALID, "name: has 1");
    refuse_manifest("[{\"weights\":[{\"name\":\"x\"}],\"paths\":[\"w\"]}]", INF_INVALID,
                    "dtype: is missing");
    refuse_manifest(ONE("[2]", "float64", ""), INF_UNSUPPORTED, "weight 'x': dtype 'float64'");
    refuse_manifest(
        "[{\"paths\":[\"w\"],\"weights\":[{\"name\":\"x\",\"shape\":[4],\"dtype\":\"bool\"},"
        "{\"name\":\"x\",\"shape\":[4],\"dtype\":\"bool\"}]}]",
        INF_INVALID, "weight 'x': is in the manifest twice");
}

#define SHARD(name) "[{\"weights\":[],\"paths\":[\"" name "\"]}]"

Test(weights, shards_stay_in_the_folder)
{
    char outside[64];
    snprintf(outside, sizeof outside, "%s/sub", t.path);
    cr_assert_eq(mkdir(outside, 0700), 0);
    write_file("real", "", 0);
    write_file("sub/real", "", 0);
    cr_assert_eq(symlinkat("real", t.fd, "link"), 0);
    cr_assert_eq(symlinkat("/dev/zero", t.fd, "zero"), 0);
    cr_assert_eq(linkat(t.fd, "sub/real", t.fd, "hard", 0), 0);
    cr_assert_eq(mkfifoat(t.fd, "fifo", 0600), 0);
    cr_assert_eq(read_manifest(SHARD("real")), INF_OK, "%s", t.err.text);
    refuse_manifest(SHARD("absent"), INF_NOT_FOUND, "file 'absent': does not exist");
    static const char *const leaving[] = {
        SHARD("../real"),     SHARD(".."),       SHARD("."),     SHARD("/etc/passwd"),
        SHARD("/dev/zero"),   SHARD("sub/real"), SHARD("sub"),   SHARD("a/../../real"),
        SHARD("sub/../real"), SHARD("link"),     SHARD("zero"),  SHARD("hard"),
        SHARD("fifo"),        SHARD("./real"),   SHARD("real/"), SHARD("/proc/self/fd/3"),
        SHARD("sub//real"),
    };
    for (size_t i = 0; i < INF_ARRAY_LENGTH(leaving); i++)
        refuse_manifest(leaving[i], INF_DENIED, "'");
    refuse_manifest(SHARD(""), INF_INVALID, "paths[0]");
    refuse_manifest("[{\"weights\":[],\"paths\":[\"re\\nal\"]}]", INF_INVALID,
                    "control characters");
}

Test(weights, too_many_shards_are_refused_before_any_is_opened)
{
    size_t size = 64 + 4097 * 4;
    char *text = malloc(size);
    strcpy(text, "[{\"weights\":[],\"paths\":[\"a\"");
    for (int i = 0; i < 4096; i++)
        strcat(text, ",\"a\"");
    strcat(text, "]}]");
    refuse_manifest(text, INF_EXHAUSTED, "4097 shards, at most 4096");
    free(text);
}
