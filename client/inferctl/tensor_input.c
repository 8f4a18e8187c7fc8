// SPDX-License-Identifier: Apache-2.0
#include "client/inferctl/tensor_input.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/inferctl/command.h"
#include "client/inferctl/npy.h"
#include "client/picture/picture.h"
#include "proto/core/shape.h"

static int file_failed(const struct inf_error *err)
{
    fprintf(stderr, "inferctl: %s\n", err->text);
    return err->code == INF_NOT_FOUND ? EXIT_NOT_FOUND : EXIT_FILE;
}

bool picture_options_range(struct picture_options *options, const char *text)
{
    char *colon;
    char *end;
    double low = strtod(text, &colon);
    if (colon != text && *colon == ':') {
        double high = strtod(colon + 1, &end);
        if (end != colon + 1 && *end == '\0') {
            options->low = low;
            options->high = high;
            return true;
        }
    }
    command_wrong("--range '%s': wanted LOW:HIGH, as in -1:1", text);
    return false;
}

// Finds the model's input that an assignment means, and where its file name starts.
static const inferd_tensor *find_input(const char *assignment, const inferd_model_info *model,
                                       const char **file)
{
    for (size_t i = 0; i < model->input_count; i++) {
        size_t length = strlen(model->inputs[i].name);
        if (strncmp(assignment, model->inputs[i].name, length) == 0 && assignment[length] == '=') {
            *file = assignment + length + 1;
            return &model->inputs[i];
        }
    }
    const char *equals = strchr(assignment, '=');
    if (model->input_count == 1 && equals == NULL) {
        *file = assignment;
        return &model->inputs[0];
    }
    fprintf(stderr, "inferctl: -i '%s': wanted NAME=FILE, the model's inputs are", assignment);
    for (size_t i = 0; i < model->input_count; i++)
        fprintf(stderr, "%s '%s'", i > 0 ? "," : "", model->inputs[i].name);
    fputc('\n', stderr);
    return NULL;
}

static bool is_npy(const char *path)
{
    char magic[6] = {0};
    FILE *file = fopen(path, "rbe");
    if (file == NULL)
        return false;
    size_t got = fread(magic, 1, sizeof magic, file);
    fclose(file);
    return got == sizeof magic && memcmp(magic, "\x93NUMPY", sizeof magic) == 0;
}

// Fills a tensor from a dtype and shape of proto/core; its elements are left zero.
static bool allocate(inferd_tensor *tensor, const char *name, enum inf_dtype dtype,
                     const struct inf_shape *shape)
{
    *tensor = (inferd_tensor){
        .name = name, .dtype = inferd_dtype_parse(inf_dtype_name(dtype)), .rank = shape->rank};
    memcpy(tensor->shape, shape->dims, sizeof tensor->shape);
    if (!inf_shape_bytes(shape, dtype, &tensor->size))
        return false;
    tensor->data = calloc(1, tensor->size + 1);
    return tensor->data != NULL;
}

static int load_npy(inferd_tensor *tensor, const char *name, const char *path)
{
    struct inf_npy npy;
    struct inf_error err;
    if (inf_npy_load(&npy, path, &err) != INF_OK)
        return file_failed(&err);
    int code = EXIT_OK;
    if (allocate(tensor, name, npy.dtype, &npy.shape))
        memcpy(tensor->data, npy.data, npy.size_bytes);
    else
        code = command_wrong("'%s': no memory", path);
    inf_npy_unload(&npy);
    return code;
}

// Where channels, rows and columns are in an input that takes pictures.
struct picture_layout {
    int height, width, channel; // axes
    bool channels_first;
};

static bool find_layout(const inferd_tensor *wanted, struct picture_layout *layout)
{
    if (wanted->rank != 4)
        return false;
    if (wanted->shape[3] == 3 || wanted->shape[3] == 1)
        *layout = (struct picture_layout){.height = 1, .width = 2, .channel = 3};
    else if (wanted->shape[1] == 3 || wanted->shape[1] == 1)
        *layout =
            (struct picture_layout){.height = 2, .width = 3, .channel = 1, .channels_first = true};
    else
        return false;
    return true;
}

static double grey(const uint8_t *pixel)
{
    return (double)(uint8_t)(0.299 * pixel[0] + 0.587 * pixel[1] + 0.114 * pixel[2] + 0.5);
}

static void store(inferd_tensor *tensor, size_t index, double pixel,
                  const struct picture_options *options)
{
    if (tensor->dtype == INFERD_FP32)
        ((float *)tensor->data)[index] =
            (float)(options->low + (options->high - options->low) * pixel / 255);
    else if (tensor->dtype == INFERD_INT32)
        ((int32_t *)tensor->data)[index] = (int32_t)pixel;
    else
        ((uint8_t *)tensor->data)[index] = (uint8_t)pixel;
}

static void convert(inferd_tensor *tensor, const struct inf_picture *picture,
                    const struct picture_layout *layout, const struct picture_options *options)
{
    size_t area = (size_t)picture->width * picture->height;
    size_t channels = (size_t)tensor->shape[layout->channel];
    for (size_t i = 0; i < area; i++) {
        const uint8_t *pixel = picture->pixels + i * 3;
        for (size_t c = 0; c < channels; c++) {
            double value = channels == 1 ? grey(pixel) : pixel[options->bgr ? 2 - c : c];
            store(tensor, layout->channels_first ? c * area + i : i * channels + c, value, options);
        }
    }
}

static enum inf_code fit(struct inf_picture **out, const struct inf_picture *picture,
                         const struct inf_shape *shape, const struct picture_layout *layout,
                         bool letterbox, struct inf_error *err)
{
    uint32_t width = (uint32_t)shape->dims[layout->width];
    uint32_t height = (uint32_t)shape->dims[layout->height];
    struct inf_picture_box inside;
    return letterbox ? inf_picture_letterbox(out, picture, width, height, &inside, err)
                     : inf_picture_resize(out, picture, width, height, err);
}

static int picture_to_tensor(inferd_tensor *tensor, const inferd_tensor *wanted,
                             const struct inf_picture *picture,
                             const struct picture_options *options)
{
    struct picture_layout layout;
    if (!find_layout(wanted, &layout) ||
        (wanted->dtype != INFERD_FP32 && wanted->dtype != INFERD_UINT8 &&
         wanted->dtype != INFERD_INT32))
        return command_wrong("input '%s' takes no picture (%s, rank %d); give a .npy file",
                             wanted->name, inferd_dtype_name(wanted->dtype), wanted->rank);
    struct inf_shape shape = {.rank = 4};
    memcpy(shape.dims, wanted->shape, sizeof shape.dims);
    shape.dims[0] = 1;
    if (shape.dims[layout.height] < 0) // any size: the picture's own
        shape.dims[layout.height] = picture->height;
    if (shape.dims[layout.width] < 0)
        shape.dims[layout.width] = picture->width;
    struct inf_error err;
    struct inf_picture *fitted;
    if (fit(&fitted, picture, &shape, &layout, options->letterbox, &err) != INF_OK)
        return file_failed(&err);
    int code = EXIT_OK;
    if (allocate(tensor, wanted->name, inf_dtype_parse(inferd_dtype_name(wanted->dtype)), &shape))
        convert(tensor, fitted, &layout, options);
    else
        code = command_wrong("input '%s': no memory", wanted->name);
    inf_picture_destroy(&fitted);
    return code;
}

int tensor_inputs_add(struct tensor_inputs *inputs, const char *assignment,
                      const inferd_model_info *model, const struct picture_options *options)
{
    const char *file;
    const inferd_tensor *wanted = find_input(assignment, model, &file);
    if (wanted == NULL)
        return EXIT_USAGE;
    if (inputs->count == TENSOR_INPUTS_MAX)
        return command_wrong("more than %d inputs", TENSOR_INPUTS_MAX);
    inferd_tensor *tensor = &inputs->tensors[inputs->count];
    if (is_npy(file)) {
        int code = load_npy(tensor, wanted->name, file);
        inputs->count += code == EXIT_OK;
        return code;
    }
    struct inf_error err;
    struct inf_picture *picture;
    if (inf_picture_load(&picture, file, &err) != INF_OK)
        return file_failed(&err);
    int code = picture_to_tensor(tensor, wanted, picture, options);
    inputs->count += code == EXIT_OK;
    inf_picture_destroy(&picture);
    return code;
}

static bool is_given(const struct tensor_inputs *inputs, const char *name)
{
    for (size_t i = 0; i < inputs->count; i++)
        if (strcmp(inputs->tensors[i].name, name) == 0)
            return true;
    return false;
}

int tensor_inputs_complete(struct tensor_inputs *inputs, const inferd_model_info *model)
{
    for (size_t i = 0; i < model->input_count && inputs->count < TENSOR_INPUTS_MAX; i++) {
        const inferd_tensor *wanted = &model->inputs[i];
        if (is_given(inputs, wanted->name))
            continue;
        struct inf_shape shape = {.rank = wanted->rank};
        for (int d = 0; d < wanted->rank; d++)
            shape.dims[d] = wanted->shape[d] < 0 ? 1 : wanted->shape[d];
        if (!allocate(&inputs->tensors[inputs->count], wanted->name,
                      inf_dtype_parse(inferd_dtype_name(wanted->dtype)), &shape))
            return command_wrong("input '%s': no memory", wanted->name);
        inputs->count++;
    }
    return EXIT_OK;
}

void tensor_inputs_fini(struct tensor_inputs *inputs)
{
    for (size_t i = 0; i < inputs->count; i++)
        free(inputs->tensors[i].data);
    inputs->count = 0;
}
