// SPDX-License-Identifier: Apache-2.0
// Tests of inferctl infer with a real daemon: input files, output files and the printed summary.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <turbojpeg.h>
#include <unistd.h>

#include "client/picture/picture.h"
#include "proto/npy/npy.h"
#include "tests/support/daemon/fixture.h"
#include "tests/support/daemon/inferctl.h"
#include "tests/support/models/tfjs_writer.h"

static struct inf_fixture fixture;

// Starts the daemon and changes to the fixture's directory, so that tests use plain file names.
static void start_fixture(void)
{
    inf_fixture_start(&fixture, NULL);
    cr_assert_eq(chdir(fixture.directory), 0);
}

static void stop_fixture(void)
{
    cr_assert_eq(chdir("/"), 0);
    inf_fixture_stop(&fixture);
}

TestSuite(inferctl_infer, .init = start_fixture, .fini = stop_fixture);

#define RUN(run, ...)                                                                              \
    inf_inferctl_run(run, fixture.socket, (const char *const[]){__VA_ARGS__, NULL})
#define CHECK(code, wanted, ...)                                                                   \
    check_command(code, wanted, (const char *const[]){__VA_ARGS__, NULL})

// Runs inferctl and checks its exit code and that its standard error contains `wanted`.
static void check_command(int code, const char *wanted, const char *const *arguments)
{
    struct inf_inferctl run;
    inf_inferctl_run(&run, fixture.socket, arguments);
    cr_expect_eq(run.code, code, "exit code %d, wanted %d: %s", run.code, code, run.err);
    cr_expect(strstr(run.err, wanted) != NULL, "'%s' is not in: %s", wanted, run.err);
    cr_expect_eq(strncmp(run.err, "inferctl: ", 10), 0, "%s", run.err);
    cr_expect_str_empty(run.out);
    inf_inferctl_free(&run);
}

// Runs inferctl and returns its output as JSON.
#define RUN_JSON(...) run_json((const char *const[]){__VA_ARGS__, NULL})

static json_t *run_json(const char *const *arguments)
{
    struct inf_inferctl run;
    inf_inferctl_run(&run, fixture.socket, arguments);
    cr_assert_eq(run.code, 0, "%s", run.err);
    json_t *json = inf_inferctl_json(&run);
    inf_inferctl_free(&run);
    return json;
}

static void write_floats(const char *path, const struct inf_shape *shape, const float *elements)
{
    cr_assert_eq(inf_npy_save(path, INF_DTYPE_F32, shape, elements, NULL), INF_OK);
}

static const json_t *read_output(const json_t *answer, size_t index)
{
    const json_t *found = json_array_get(json_object_get(answer, "outputs"), index);
    cr_assert_not_null(found);
    return found;
}

static double read_number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    cr_assert(json_is_number(value), "%s", key);
    return json_number_value(value);
}

// Checks the type and elements of an FP32 file.
static void check_floats(const char *path, const float *wanted, size_t count)
{
    struct inf_npy npy;
    struct inf_error err;
    cr_assert_eq(inf_npy_load(&npy, path, &err), INF_OK, "%s", err.text);
    cr_assert_eq(npy.dtype, INF_DTYPE_F32);
    cr_assert_eq(npy.size_bytes, count * sizeof(float));
    for (size_t i = 0; i < count; i++) {
        float got = ((const float *)npy.data)[i];
        cr_expect(fabsf(got - wanted[i]) <= 1e-5f * (1 + fabsf(wanted[i])), "element %zu is %f", i,
                  (double)got);
    }
    inf_npy_unload(&npy);
}

// Writes the model r1o = -r1i, whose signature calls its tensors r1i:0 and r1o:0.
static void write_suffixed_model(const char *directory)
{
    char path[128];
    cr_assert_eq(mkdir(directory, 0700), 0);
    snprintf(path, sizeof path, "%s/model.json", directory);
    FILE *file = fopen(path, "we");
    cr_assert_not_null(file);
    fputs(
        "{\"format\": \"graph-model\", \"weightsManifest\": [],"
        " \"signature\": {\"inputs\": {\"r1i:0\": {\"name\": \"r1i:0\"}},"
        " \"outputs\": {\"r1o:0\": {\"name\": \"r1o:0\"}}},"
        " \"modelTopology\": {\"node\": [{\"name\": \"r1i\", \"op\": \"Placeholder\","
        " \"attr\": {\"dtype\": {\"type\": \"DT_FLOAT\"}, \"shape\": {\"shape\":"
        " {\"dim\": [{\"size\": \"4\"}]}}}}, {\"name\": \"r1o\", \"op\": \"Neg\","
        " \"input\": [\"r1i\"], \"attr\": {\"T\": {\"type\": \"DT_FLOAT\"}}}]}}",
        file);
    cr_assert_eq(fclose(file), 0);
}

Test(inferctl_infer, takes_names_with_and_without_the_number_of_the_first_output)
{
    struct inf_inferctl run;
    write_floats("x.npy", &INF_SHAPE(4), (float[]){1, 2, 3, -4});
    write_suffixed_model("suffixed");
    inf_inferctl_run(&run, fixture.admin_socket,
                     (const char *const[]){"load", "suffixed", "suffixed", NULL});
    cr_assert_eq(run.code, 0, "%s", run.err);
    inf_inferctl_free(&run);
    static const char *const inputs[] = {"r1i:0=x.npy", "r1i=x.npy"};
    for (int i = 0; i < 2; i++) {
        RUN(&run, "infer", "suffixed", "-i", inputs[i], "-o", "out");
        cr_expect_eq(run.code, 0, "%s", run.err);
        inf_inferctl_free(&run);
        check_floats("out/r1o_0.npy", (float[]){-1, -2, -3, 4}, 4);
        inf_inferctl_run(&run, fixture.admin_socket,
                         (const char *const[]){"verify", "suffixed", "-i", inputs[i], NULL});
        cr_expect_eq(run.code, 0, "%s", run.err);
        inf_inferctl_free(&run);
    }
    CHECK(2, "the model's inputs are 'r1i:0'", "infer", "suffixed", "-i", "r1i:1=x.npy");
}

Test(inferctl_infer, takes_several_npy_files_and_writes_what_numpy_reads)
{
    write_floats("a.npy", &INF_SHAPE(2, 4), (float[]){1, 2, 3, 4, 5, 6, 7, 8});
    write_floats("b.npy", &INF_SHAPE(2, 4), (float[]){10, 20, 30, 40, -50, -60, -70, -80.5f});
    struct inf_inferctl run;
    RUN(&run, "infer", "add", "-i", "b=b.npy", "-i", "a=a.npy", "-o", "out");
    cr_assert_eq(run.code, 0, "%s", run.err);
    cr_assert_str_empty(run.err);
    // The elements are 11 22 33 44 -45 -54 -63 -72.5; their sum is -124.5.
    static const char shown[] =
        "output  dtype  shape  min    max  mean      nan  file\n"
        "y       FP32   [2,4]  -72.5  44   -15.5625  0    out/y.npy\n\n"
        "version 1 on ";
    cr_assert_eq(strncmp(run.out, shown, sizeof shown - 1), 0, "%s", run.out);
    inf_inferctl_free(&run);
    // The bytes that numpy.save() of NumPy 1.24 writes.
    static const char head[] =
        "\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (2, 4), }"
        "                                                          \n";
    static const float sums[] = {11, 22, 33, 44, -45, -54, -63, -72.5f};
    char bytes[256];
    FILE *file = fopen("out/y.npy", "rb");
    cr_assert_not_null(file);
    cr_assert_eq(fread(bytes, 1, sizeof bytes, file), 128 + sizeof sums);
    fclose(file);
    cr_assert_eq(sizeof head - 1, 128u);
    cr_assert_arr_eq(bytes, head, 128);
    cr_assert_arr_eq(bytes + 128, sums, sizeof sums);
}

Test(inferctl_infer, shows_the_best_classes)
{
    write_floats("a.npy", &INF_SHAPE(1, 4), (float[]){0.1f, 0.6f, -1, 0.25f});
    write_floats("zero.npy", &INF_SHAPE(1, 4), (float[]){0, 0, 0, 0});
    FILE *file = fopen("labels.txt", "w");
    fputs("cat\r\ndog \"Rex\"\r\n\r\nowl", file);
    fclose(file);
    struct inf_inferctl run;
    RUN(&run, "infer", "add", "-i", "a=a.npy", "-i", "b=zero.npy", "-l", "labels.txt", "-k", "3");
    cr_assert_eq(run.code, 0, "%s", run.err);
    cr_assert(strstr(run.out,
                     "\nbest classes of y\n"
                     "class  score  label\n"
                     "1      0.6    dog \"Rex\"\n"
                     "3      0.25   owl\n"
                     "0      0.1    cat\n\n") != NULL,
              "%s", run.out);
    inf_inferctl_free(&run);
    json_t *json = RUN_JSON("infer", "add", "-i", "a=a.npy", "-i", "b=zero.npy", "--labels",
                            "labels.txt", "--json");
    const json_t *top = json_object_get(read_output(json, 0), "top");
    cr_assert_eq(json_array_size(top), 4u);
    static const int classes[] = {1, 3, 0, 2};
    static const char *const labels[] = {"dog \"Rex\"", "owl", "cat", ""};
    for (size_t i = 0; i < 4; i++) {
        const json_t *row = json_array_get(top, i);
        cr_expect_eq(json_integer_value(json_object_get(row, "class")), classes[i]);
        cr_expect_str_eq(json_string_value(json_object_get(row, "label")), labels[i]);
    }
    cr_assert_float_eq(read_number(json_array_get(top, 0), "score"), 0.6, 1e-6);
    json_decref(json);
    json = RUN_JSON("-o", "json", "infer", "add", "-i", "a=a.npy", "-i", "b=zero.npy", "-k", "0");
    cr_assert_null(json_object_get(read_output(json, 0), "top"));
    json_decref(json);
}

Test(inferctl_infer, json_is_valid_with_nan_and_infinity)
{
    write_floats("a.npy", &INF_SHAPE(1, 4), (float[]){NAN, INFINITY, -INFINITY, 3});
    write_floats("zero.npy", &INF_SHAPE(1, 4), (float[]){0, 0, 0, 0});
    json_t *json = RUN_JSON("infer", "add", "-i", "a=a.npy", "-i", "b=zero.npy", "--json");
    const json_t *y = read_output(json, 0);
    cr_assert(json_is_null(json_object_get(y, "min")));
    cr_assert(json_is_null(json_object_get(y, "max")));
    cr_assert(json_is_null(json_object_get(y, "mean")));
    cr_assert_eq(json_integer_value(json_object_get(y, "nan")), 1);
    const json_t *top = json_object_get(y, "top");
    cr_assert_eq(json_array_size(top), 3u);
    cr_assert(json_is_null(json_object_get(json_array_get(top, 0), "score")));
    cr_assert_eq(read_number(json_array_get(top, 1), "score"), 3.0);
    cr_assert_gt(read_number(json, "compute_ns"), 0);
    cr_assert_geq(read_number(json, "total_ns"), read_number(json, "compute_ns"));
    cr_assert_geq(read_number(json, "core_ns"), read_number(json, "compute_ns"));
    cr_assert_eq(read_number(json, "threads"), 1, "a model this small has no helper");
    json_decref(json);
}

// Writes a model whose output names cannot be file names: "p/q", "p_q" and a name with quotes. The
// values are x, x + x, and x as integers.
static void write_odd_model(const char *directory)
{
    const int64_t dims[] = {2};
    struct inf_tfjs_writer *writer = inf_tfjs_writer_begin(directory);
    inf_tfjs_writer_placeholder(writer, "x", "DT_FLOAT", dims, 1);
    inf_tfjs_writer_node(writer, "once", "Identity", "x");
    inf_tfjs_writer_attr_type(writer, "T", "DT_FLOAT");
    inf_tfjs_writer_node(writer, "twice", "AddV2", "x,x");
    inf_tfjs_writer_attr_type(writer, "T", "DT_FLOAT");
    inf_tfjs_writer_node(writer, "whole", "Cast", "x");
    inf_tfjs_writer_attr_type(writer, "SrcT", "DT_FLOAT");
    inf_tfjs_writer_attr_type(writer, "DstT", "DT_INT32");
    inf_tfjs_writer_output(writer, "p/q", "once");
    inf_tfjs_writer_output(writer, "p_q", "twice");
    inf_tfjs_writer_output(writer, "../say \"hi\"", "whole");
    inf_tfjs_writer_end(writer);
}

Test(inferctl_infer, no_output_overwrites_another_or_leaves_the_directory)
{
    cr_assert_eq(mkdir("odd", 0700), 0);
    write_odd_model("odd");
    struct inf_inferctl run;
    inf_inferctl_run(&run, fixture.admin_socket, (const char *const[]){"load", "odd", "odd", NULL});
    cr_assert_eq(run.code, 0, "%s", run.err);
    inf_inferctl_free(&run);
    write_floats("x.npy", &INF_SHAPE(2), (float[]){3, -4});
    json_t *json = RUN_JSON("infer", "odd", "-i", "x.npy", "-o", "out", "--json");
    bool seen[3] = {0};
    for (size_t i = 0; i < 3; i++) {
        const char *name = json_string_value(json_object_get(read_output(json, i), "name"));
        const char *file = json_string_value(json_object_get(read_output(json, i), "file"));
        cr_assert_not_null(file);
        cr_assert_eq(strncmp(file, "out/", 4), 0);
        cr_assert_null(strchr(file + 4, '/'), "%s", file);
        if (strcmp(name, "p/q") == 0) {
            seen[0] = true;
            check_floats(file, (float[]){3, -4}, 2);
        } else if (strcmp(name, "p_q") == 0) {
            seen[1] = true;
            check_floats(file, (float[]){6, -8}, 2);
        } else {
            seen[2] = true;
            cr_assert_str_eq(name, "../say \"hi\"");
            cr_assert_str_eq(file, "out/_._say__hi_.npy");
            struct inf_npy npy;
            cr_assert_eq(inf_npy_load(&npy, file, NULL), INF_OK);
            cr_assert_eq(npy.dtype, INF_DTYPE_I32);
            cr_assert_arr_eq(npy.data, ((int32_t[]){3, -4}), 8);
            inf_npy_unload(&npy);
        }
    }
    cr_assert(seen[0] && seen[1] && seen[2]);
    json_decref(json);
}

// Checks the output of the model "conv" for a picture of one colour (r, g, b). Each of the four
// positions has the values r, 2 g + 0.5, 3 b - 1 and 4 r + 2, with negative values replaced by 0.
static void check_conv(const char *path, float r, float g, float b)
{
    float wanted[16];
    for (int i = 0; i < 4; i++) {
        wanted[i * 4] = fmaxf(r, 0);
        wanted[i * 4 + 1] = fmaxf(2 * g + 0.5f, 0);
        wanted[i * 4 + 2] = fmaxf(3 * b - 1, 0);
        wanted[i * 4 + 3] = fmaxf(4 * r + 2, 0);
    }
    check_floats(path, wanted, 16);
}

#define INFER_CONV(...) json_decref(RUN_JSON("infer", "conv", "--json", "-o", "out", __VA_ARGS__))

Test(inferctl_infer, takes_pictures)
{
    struct inf_picture *picture;
    cr_assert_eq(inf_picture_create(&picture, 20, 10, (const uint8_t[]){51, 102, 255}, NULL),
                 INF_OK);
    cr_assert_eq(inf_picture_save_png(picture, "p=1.png", NULL), INF_OK);
    inf_picture_destroy(&picture);
    INFER_CONV("-i", "p=1.png");
    check_conv("out/y.npy", 0.2f, 0.4f, 1);
    INFER_CONV("-i", "x=p=1.png", "--bgr");
    check_conv("out/y.npy", 1, 0.4f, 0.2f);
    INFER_CONV("-i", "p=1.png", "-r", "0:255");
    check_conv("out/y.npy", 51, 102, 255);
    INFER_CONV("-i", "p=1.png", "--range=-1:1");
    check_conv("out/y.npy", -0.6f, -0.2f, 1);
    // The letterboxed picture covers rows 2 to 5 of the 8 x 8 input. Each output position depends
    // on some of these rows.
    INFER_CONV("-i", "p=1.png", "--letterbox");
    check_conv("out/y.npy", 0.2f, 0.4f, 1);
}

// Writes 64 x 64 pixels as a JPEG file that is truncated to `percent` of its bytes.
static void write_jpeg(const char *path, const uint8_t *pixels, unsigned long percent)
{
    tjhandle encoder = tjInitCompress();
    unsigned char *jpeg = NULL;
    unsigned long size = 0;
    cr_assert_eq(
        tjCompress2(encoder, pixels, 64, 0, 64, TJPF_RGB, &jpeg, &size, TJSAMP_444, 100, 0), 0);
    FILE *file = fopen(path, "wb");
    fwrite(jpeg, 1, size * percent / 100, file);
    fclose(file);
    tjFree(jpeg);
    tjDestroy(encoder);
}

Test(inferctl_infer, takes_jpegs)
{
    static uint8_t pixels[64 * 64 * 3];
    memset(pixels, 128, sizeof pixels);
    write_jpeg("grey.jpg", pixels, 100);
    INFER_CONV("-i", "grey.jpg");
    float grey = 128 / 255.0f;
    check_conv("out/y.npy", grey, grey, grey);
    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (uint8_t)(i * i >> 3);
    write_jpeg("cut.jpg", pixels, 60);
    CHECK(7, "'cut.jpg': broken jpeg: Premature end", "infer", "conv", "-i", "cut.jpg");
    write_jpeg("nothing.jpg", pixels, 1);
    CHECK(7, "'nothing.jpg': broken jpeg: ", "infer", "conv", "-i", "nothing.jpg");
}

Test(inferctl_infer, says_what_is_wrong_with_the_input)
{
    write_floats("ok.npy", &INF_SHAPE(1, 4), (float[]){0, 0, 0, 0});
    write_floats("wide.npy", &INF_SHAPE(1, 5), (float[]){0, 0, 0, 0, 0});
    write_floats("flat.npy", &INF_SHAPE(4), (float[]){0, 0, 0, 0});
    write_floats("three.npy", &INF_SHAPE(3, 4), (float[12]){0});
    cr_assert_eq(inf_npy_save("double.npy", INF_DTYPE_F64, &INF_SHAPE(1, 4), (double[4]){0}, NULL),
                 INF_OK);
    FILE *file = fopen("huge.npy", "wb");
    fputs("\x93NUMPY\x01", file);
    fwrite("\0\x4c\0", 1, 3, file);
    fprintf(file, "%-75s\n",
            "{'descr':'<f4','fortran_order':False,'shape':(999999999,999999999,99)}");
    fclose(file);
    cr_assert_eq(truncate("huge.npy", 86), 0);
    CHECK(1, "FP64", "infer", "add", "-i", "a=double.npy", "-i", "b=ok.npy");
    CHECK(1, "[1,5]", "infer", "add", "-i", "a=wide.npy", "-i", "b=ok.npy");
    CHECK(1, "[4]", "infer", "add", "-i", "a=flat.npy", "-i", "b=ok.npy");
    CHECK(1, "input 'b' is missing", "infer", "add", "-i", "a=ok.npy");
    CHECK(1, "[1,5]", "infer", "add", "-i", "a=three.npy", "-i", "b=wide.npy");
    CHECK(2, "the model's inputs are 'a', 'b'", "infer", "add", "-i", "ok.npy");
    CHECK(2, "the model's inputs are 'a', 'b'", "infer", "add", "-i", "c=ok.npy");
    CHECK(2, "input 'a' is given twice", "infer", "add", "-i", "a=ok.npy", "-i", "a=ok.npy");
    CHECK(4, "'none.npy': No such file", "infer", "add", "-i", "a=none.npy");
    CHECK(7, "'models': no regular file", "infer", "add", "-i", "a=models");
    CHECK(7, "more than a tensor may have", "infer", "add", "-i", "a=huge.npy");
    cr_assert_eq(truncate("ok.npy", 140), 0);
    CHECK(7, "12 bytes of data", "infer", "add", "-i", "a=ok.npy");
    cr_assert_eq(truncate("ok.npy", 50), 0);
    CHECK(7, "ends in its header", "infer", "add", "-i", "a=ok.npy");
    cr_assert_eq(truncate("ok.npy", 0), 0);
    CHECK(7, "neither .npy nor JPEG nor PNG", "infer", "conv", "-i", "ok.npy");
}

Test(inferctl_infer, finds_out_what_it_cannot_write_before_it_asks)
{
    write_floats("a.npy", &INF_SHAPE(1, 4), (float[]){1, 2, 3, 4});
    CHECK(7, "-o 'a.npy': no directory", "infer", "add", "-i", "a=a.npy", "-o", "a.npy");
    CHECK(7, "-o 'no/such/path'", "infer", "add", "-i", "a=a.npy", "-o", "no/such/path");
    CHECK(4, "labels 'none.txt': No such file", "infer", "add", "-i", "a=a.npy", "-l", "none.txt");
    CHECK(7, "labels 'models': ", "infer", "add", "-i", "a=a.npy", "-l", "models");
    // The output path is a directory, which a file cannot replace.
    cr_assert_eq(mkdir("out", 0700), 0);
    cr_assert_eq(mkdir("out/y.npy", 0700), 0);
    CHECK(7, "out/y.npy: ", "infer", "add", "-i", "a=a.npy", "-i", "b=a.npy", "-o", "out");
}
