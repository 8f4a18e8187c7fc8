// SPDX-License-Identifier: Apache-2.0
// Tests of inputs that are read from files, and of generated inputs.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/inferctl/cli/command.h"
#include "client/inferctl/tensor/input.h"
#include "client/picture/picture.h"
#include "proto/npy/npy.h"

#define PICTURE "picture.png"

// Changes to a temporary directory, so that the test writes its files there.
static void enter_folder(void)
{
    char directory[] = "/tmp/inf-input-XXXXXX";
    cr_assert_not_null(mkdtemp(directory));
    cr_assert_eq(chdir(directory), 0);
}

static void leave_folder(void)
{
    char command[] = "rm -rf -- \"$PWD\"";
    cr_assert_eq(system(command), 0);
}

static void write_bytes(const char *path, const void *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    cr_assert_not_null(file);
    cr_assert_eq(fwrite(bytes, 1, size, file), size);
    fclose(file);
}

// Writes a picture with these pixels to PICTURE.
static void write_picture(const uint8_t *pixels, uint32_t width, uint32_t height)
{
    struct inf_picture *picture;
    cr_assert_eq(inf_picture_create(&picture, width, height, (const uint8_t[3]){0}, NULL), INF_OK);
    memcpy(picture->pixels, pixels, (size_t)width * height * 3);
    cr_assert_eq(inf_picture_save_png(picture, PICTURE, NULL), INF_OK);
    inf_picture_destroy(&picture);
}

// Writes a picture of three pixels to PICTURE: red, green and blue.
static void write_colours(void)
{
    static const uint8_t pixels[] = {255, 0, 0, 0, 255, 0, 0, 0, 255};
    write_picture(pixels, 3, 1);
}

static inferd_tensor make_wanted(inferd_dtype dtype, int rank, const int64_t *shape)
{
    inferd_tensor tensor = {.name = "x", .dtype = dtype, .rank = rank};
    memcpy(tensor.shape, shape, (size_t)rank * sizeof *shape);
    return tensor;
}

#define WANTED(dtype, ...)                                                                         \
    make_wanted(dtype, (int)(sizeof(int64_t[]){__VA_ARGS__} / sizeof(int64_t)),                    \
                (const int64_t[]){__VA_ARGS__})

// Adds the input that `assignment` names, for a model with one input. Returns the exit code.
static int add_input(struct tensor_inputs *inputs, const char *assignment, inferd_tensor input,
                     struct picture_options options)
{
    inferd_model_info model = {.input_count = 1, .inputs = &input};
    return tensor_inputs_add(inputs, assignment, &model, &options);
}

// Converts the picture in PICTURE to the type and shape of `input`, and checks the elements.
static void check_picture(inferd_tensor input, struct picture_options options, const void *elements,
                          size_t size)
{
    struct tensor_inputs inputs = {0};
    cr_assert_eq(add_input(&inputs, "x=" PICTURE, input, options), EXIT_OK);
    cr_assert_eq(inputs.count, 1u);
    cr_assert_eq(inputs.tensors[0].dtype, input.dtype);
    cr_assert_eq(inputs.tensors[0].size, size);
    cr_assert_arr_eq(inputs.tensors[0].data, elements, size);
    tensor_inputs_fini(&inputs);
}

TestSuite(tensor_input, .init = enter_folder, .fini = leave_folder);

Test(tensor_input, pixels_become_elements_of_any_type)
{
    write_picture((const uint8_t[]){0, 51, 255}, 1, 1);
    struct picture_options none = {0};
    check_picture(WANTED(INFERD_FP32, 1, 1, 1, 3), none, (float[]){0, 0.2f, 1}, 12);
    check_picture(WANTED(INFERD_UINT8, 1, 1, 1, 3), none, (uint8_t[]){0, 51, 255}, 3);
    check_picture(WANTED(INFERD_INT8, 1, 1, 1, 3), none, (int8_t[]){-128, -77, 127}, 3);
    check_picture(WANTED(INFERD_INT32, 1, 1, 1, 3), none, (int32_t[]){0, 51, 255}, 12);
    struct picture_options range = {.has_range = true, .low = -1, .high = 1};
    check_picture(WANTED(INFERD_FP32, 1, 1, 1, 3), range, (float[]){-1, -0.6f, 1}, 12);
    check_picture(WANTED(INFERD_INT32, 1, 1, 1, 3), range, (int32_t[]){-1, -1, 1}, 12);
    struct picture_options turned = {.has_range = true, .low = 1000, .high = -1000};
    check_picture(WANTED(INFERD_INT8, 1, 1, 1, 3), turned, (int8_t[]){127, 127, -128}, 3);
    check_picture(WANTED(INFERD_UINT8, 1, 1, 1, 3), turned, (uint8_t[]){255, 255, 0}, 3);
    struct picture_options huge = {.has_range = true, .low = -1e300, .high = 1e300};
    check_picture(WANTED(INFERD_INT32, 1, 1, 1, 3), huge,
                  (int32_t[]){INT32_MIN, INT32_MIN, INT32_MAX}, 12);
}

Test(tensor_input, channels_go_where_the_model_wants_them)
{
    write_colours();
    struct picture_options none = {0};
    struct picture_options bgr = {.bgr = true};
    static const uint8_t rgb[] = {255, 0, 0, 0, 255, 0, 0, 0, 255};
    static const uint8_t reversed[] = {0, 0, 255, 0, 255, 0, 255, 0, 0};
    // red, green and blue as grey: 0.299, 0.587 and 0.114 times 255
    static const uint8_t greys[] = {76, 150, 29};
    check_picture(WANTED(INFERD_UINT8, 1, 1, 3, 3), none, rgb, 9);
    check_picture(WANTED(INFERD_UINT8, 1, 1, 3, 3), bgr, reversed, 9);
    check_picture(WANTED(INFERD_UINT8, -1, -1, -1, 1), none, greys, 3);
    // The shape has the one channel before height and width.
    check_picture(WANTED(INFERD_UINT8, -1, 1, -1, -1), none, greys, 3);
    check_picture(WANTED(INFERD_UINT8, 1, 3, 3), none, rgb, 9); // the input has no batch dimension
}

Test(tensor_input, planes_come_one_behind_the_other)
{
    write_picture((const uint8_t[]){1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, 2, 2);
    struct picture_options none = {0};
    struct picture_options bgr = {.bgr = true};
    check_picture(WANTED(INFERD_UINT8, 1, 3, 2, 2), none,
                  (uint8_t[]){1, 4, 7, 10, 2, 5, 8, 11, 3, 6, 9, 12}, 12);
    check_picture(WANTED(INFERD_UINT8, 1, 3, 2, 2), bgr,
                  (uint8_t[]){3, 6, 9, 12, 2, 5, 8, 11, 1, 4, 7, 10}, 12);
}

Test(tensor_input, pictures_are_stretched_or_letterboxed)
{
    // The picture has one row of four pixels. If it is stretched, it fills all four rows; if it is
    // letterboxed, it fills only row 1.
    write_picture((const uint8_t[]){9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9}, 4, 1);
    uint8_t all[48];
    memset(all, 9, sizeof all);
    check_picture(WANTED(INFERD_UINT8, 1, 4, 4, 3), (struct picture_options){0}, all, 48);
    uint8_t boxed[48] = {0};
    memset(boxed + 12, 9, 12);
    check_picture(WANTED(INFERD_UINT8, 1, 4, 4, 3), (struct picture_options){.letterbox = true},
                  boxed, 48);
    // The border has the value that `options` assigns to black.
    float floats[48];
    for (int i = 0; i < 48; i++)
        floats[i] = i < 12 || i >= 24 ? -1.0f : (float)(-1 + 2.0 * 9 / 255);
    check_picture(
        WANTED(INFERD_FP32, 1, 4, 4, 3),
        (struct picture_options){.letterbox = true, .has_range = true, .low = -1, .high = 1},
        floats, sizeof floats);
}

Test(tensor_input, inputs_that_take_no_picture_say_so)
{
    write_colours();
    const inferd_tensor inputs[] = {
        WANTED(INFERD_FP32, 1, 9),
        WANTED(INFERD_FP32, 3),
        WANTED(INFERD_FP32, 1, 4, 3, 4),
        WANTED(INFERD_FP32, 1, 1, 1, 1, 3),
        WANTED(INFERD_FP64, 1, 1, 3, 3),
        WANTED(INFERD_BOOL, 1, 1, 3, 3),
        {.name = "x", .dtype = INFERD_FP32, .rank = 0},
    };
    for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++) {
        struct tensor_inputs made = {0};
        cr_expect_eq(add_input(&made, PICTURE, inputs[i], (struct picture_options){0}), EXIT_USAGE,
                     "input %zu", i);
        cr_expect_eq(made.count, 0u);
    }
    // The input has 100000 x 100000 pixels, which exceeds the maximum height of a picture.
    struct tensor_inputs made = {0};
    cr_expect_eq(add_input(&made, PICTURE, WANTED(INFERD_UINT8, 1, 100000, 100000, 3),
                           (struct picture_options){0}),
                 EXIT_FILE);
    cr_expect_eq(
        add_input(&made, PICTURE, WANTED(INFERD_UINT8, 1, 0, 3, 3), (struct picture_options){0}),
        EXIT_FILE);
}

Test(tensor_input, files_that_are_no_use_have_their_exit_code)
{
    write_colours();
    char bytes[4096];
    FILE *file = fopen(PICTURE, "rb");
    size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    write_bytes("empty", "", 0);
    write_bytes("text.png", "hello", 5);
    write_bytes("short.png", bytes, size / 2);
    write_bytes("short.jpg", "\xff\xd8\xff", 3);
    write_bytes("magic.npy", "\x93NUMPY", 6);
    static const char npy[] =
        "\x93NUMPY\x01\x00\x3c\x00{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }  \n";
    write_bytes("short.npy", npy, sizeof npy - 1); // a header without data behind it
    static const struct {
        const char *path;
        int code;
    } files[] = {
        {"missing.npy", EXIT_NOT_FOUND}, {"text.png/x", EXIT_NOT_FOUND}, {".", EXIT_FILE},
        {"/dev/zero", EXIT_FILE},        {"empty", EXIT_FILE},           {"text.png", EXIT_FILE},
        {"short.png", EXIT_FILE},        {"short.jpg", EXIT_FILE},       {"magic.npy", EXIT_FILE},
        {"short.npy", EXIT_FILE}};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        struct tensor_inputs inputs = {0};
        cr_expect_eq(add_input(&inputs, files[i].path, WANTED(INFERD_FP32, 1, 1, 3, 3),
                               (struct picture_options){0}),
                     files[i].code, "%s", files[i].path);
        cr_expect_eq(inputs.count, 0u);
    }
}

Test(tensor_input, npy_files_stay_as_they_are)
{
    // .npy files are not converted. If the dtype or shape is wrong, the daemon reports that.
    static const double numbers[] = {1, 2, 3, 4, 5, 6};
    cr_assert_eq(inf_npy_save("d.npy", INF_DTYPE_F64, &INF_SHAPE(3, 2), numbers, NULL), INF_OK);
    struct tensor_inputs inputs = {0};
    cr_assert_eq(
        add_input(&inputs, "d.npy", WANTED(INFERD_FP32, 1, 1, 3, 3), (struct picture_options){0}),
        EXIT_OK);
    const inferd_tensor *tensor = &inputs.tensors[0];
    cr_assert_str_eq(tensor->name, "x");
    cr_assert_eq(tensor->dtype, INFERD_FP64);
    cr_assert_eq(tensor->rank, 2);
    cr_assert_eq(tensor->shape[0], 3);
    cr_assert_eq(tensor->shape[1], 2);
    cr_assert_arr_eq(tensor->data, numbers, sizeof numbers);
    tensor_inputs_fini(&inputs);
}

Test(tensor_input, assignments_name_inputs)
{
    float one[1] = {1};
    cr_assert_eq(inf_npy_save("f.npy", INF_DTYPE_F32, &INF_SHAPE(1), one, NULL), INF_OK);
    cr_assert_eq(inf_npy_save("q=f.npy", INF_DTYPE_F32, &INF_SHAPE(1), one, NULL), INF_OK);
    inferd_tensor tensors[] = {{.name = "a", .dtype = INFERD_FP32, .rank = 1, .shape = {1}},
                               {.name = "a=b", .dtype = INFERD_FP32, .rank = 1, .shape = {1}},
                               {.name = "in:0", .dtype = INFERD_FP32, .rank = 1, .shape = {1}}};
    inferd_model_info model = {.input_count = 3, .inputs = tensors};
    struct picture_options none = {0};
    struct tensor_inputs inputs = {0};
    cr_expect_eq(tensor_inputs_add(&inputs, "f.npy", &model, &none), EXIT_USAGE);
    cr_expect_eq(tensor_inputs_add(&inputs, "q=f.npy", &model, &none), EXIT_USAGE);
    cr_expect_eq(tensor_inputs_add(&inputs, "", &model, &none), EXIT_USAGE);
    cr_expect_eq(tensor_inputs_add(&inputs, "=f.npy", &model, &none), EXIT_USAGE);
    cr_expect_eq(tensor_inputs_add(&inputs, "a=", &model, &none), EXIT_NOT_FOUND);
    cr_assert_eq(tensor_inputs_add(&inputs, "in:0=f.npy", &model, &none), EXIT_OK);
    cr_assert_str_eq(inputs.tensors[0].name, "in:0");
    // The input "in:0" has a file already.
    cr_expect_eq(tensor_inputs_add(&inputs, "in:0=f.npy", &model, &none), EXIT_USAGE);
    cr_assert_eq(tensor_inputs_add(&inputs, "a=f.npy", &model, &none), EXIT_OK);
    cr_assert_str_eq(inputs.tensors[1].name, "a");
    cr_assert_eq(inputs.count, 2u);
    tensor_inputs_fini(&inputs);
    // If the model has one input, the argument may be a file name that looks like an assignment.
    model.input_count = 1;
    cr_assert_eq(tensor_inputs_add(&inputs, "q=f.npy", &model, &none), EXIT_OK);
    cr_assert_str_eq(inputs.tensors[0].name, "a");
    tensor_inputs_fini(&inputs);
}

Test(tensor_input, what_is_not_given_is_zeros)
{
    inferd_tensor tensors[] = {
        {.name = "a", .dtype = INFERD_INT32, .rank = 3, .shape = {-1, 2, -1}},
        {.name = "b", .dtype = INFERD_FP64, .rank = 0},
        {.name = "c", .dtype = INFERD_FP32, .rank = 2, .shape = {0, 5}}};
    inferd_model_info model = {.input_count = 3, .inputs = tensors};
    struct tensor_inputs inputs = {0};
    cr_assert_eq(tensor_inputs_complete(&inputs, &model, TENSOR_ZEROS), EXIT_OK);
    cr_assert_eq(inputs.count, 3u);
    cr_assert_eq(inputs.tensors[0].size, 8u);
    cr_assert_eq(inputs.tensors[0].shape[0], 1);
    cr_assert_eq(inputs.tensors[0].shape[2], 1);
    cr_assert_arr_eq(inputs.tensors[0].data, ((uint8_t[8]){0}), 8);
    cr_assert_eq(inputs.tensors[1].size, 8u);
    cr_assert_eq(inputs.tensors[2].size, 0u);
    cr_assert_eq(tensor_inputs_complete(&inputs, &model, TENSOR_ZEROS),
                 EXIT_OK); // a second call adds no input
    cr_assert_eq(inputs.count, 3u);
    tensor_inputs_fini(&inputs);
}

Test(tensor_input, random_floats_are_the_same_each_time_and_indices_are_zero)
{
    inferd_tensor tensors[] = {{.name = "f", .dtype = INFERD_FP32, .rank = 1, .shape = {1000}},
                               {.name = "i", .dtype = INFERD_INT32, .rank = 1, .shape = {7}}};
    inferd_model_info model = {.input_count = 2, .inputs = tensors};
    struct tensor_inputs inputs = {0}, again = {0};
    cr_assert_eq(tensor_inputs_complete(&inputs, &model, TENSOR_RANDOM), EXIT_OK);
    cr_assert_eq(tensor_inputs_complete(&again, &model, TENSOR_RANDOM), EXIT_OK);
    cr_assert_arr_eq(inputs.tensors[0].data, again.tensors[0].data, 4000);
    cr_assert_arr_eq(inputs.tensors[1].data, ((uint8_t[28]){0}), 28);
    const float *values = inputs.tensors[0].data;
    double sum = 0;
    for (int i = 0; i < 1000; i++) {
        cr_assert(values[i] >= 0 && values[i] < 1, "%f", (double)values[i]);
        sum += (double)values[i];
    }
    // The tolerance is four standard deviations of the mean of 1000 uniform random numbers.
    cr_assert_float_eq(sum / 1000, 0.5, 0.037);
    tensor_inputs_fini(&inputs);
    tensor_inputs_fini(&again);
}

Test(tensor_input, ranges_are_two_numbers)
{
    static const char *const wrong[] = {"",      "1",     "1:",    ":1",    "a:b", "0:1x",
                                        "0:1:2", "0 : 1", "nan:1", "0:inf", "0,1", "1e999:0"};
    struct picture_options options = {0};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        cr_expect_not(picture_options_range(&options, wrong[i]), "%s", wrong[i]);
    cr_assert_not(options.has_range);
    cr_assert(picture_options_range(&options, "-1:1e3"));
    cr_assert(options.has_range);
    cr_assert_eq(options.low, -1.0);
    cr_assert_eq(options.high, 1000.0);
}
