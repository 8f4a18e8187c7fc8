// SPDX-License-Identifier: Apache-2.0
// Inputs from files. A picture is scaled to the size of the input, and a table of 256 levels
// converts each of its bytes to an element. Inputs without a file are filled with zeros or
// pseudo-random values. Strings are given as text (strings.c).
#include "client/inferctl/tensor/input.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/inferctl/cli/command.h"
#include "client/inferctl/tensor/strings.h"
#include "client/inferctl/tensor/text.h"
#include "client/picture/picture.h"
#include "proto/core/bytes_tensor.h"
#include "proto/core/shape.h"
#include "proto/core/tensor_name.h"
#include "proto/npy/npy.h"

static int file_failed(const struct inf_error *err)
{
    return command_say(err->code == INF_NOT_FOUND ? EXIT_NOT_FOUND : EXIT_FILE, "%s", err->text);
}

bool picture_options_range(struct picture_options *options, const char *text)
{
    char *colon;
    char *end;
    double low = strtod(text, &colon);
    if (colon != text && *colon == ':') {
        double high = strtod(colon + 1, &end);
        if (end != colon + 1 && *end == '\0' && isfinite(low) && isfinite(high)) {
            options->has_range = true;
            options->low = low;
            options->high = high;
            return true;
        }
    }
    command_say(EXIT_USAGE, "--range '%s': wanted LOW:HIGH, as in -1:1", text);
    return false;
}

static bool is_given(const struct tensor_inputs *inputs, const char *name)
{
    for (size_t i = 0; i < inputs->count; i++)
        if (strcmp(inputs->tensors[i].name, name) == 0)
            return true;
    return false;
}

// Finds which input of the model is named in an assignment ("NAME=FILE" or "FILE"), and where FILE
// starts in the text.
static const inferd_tensor *find_input(const char *assignment, const inferd_model_info *model,
                                       const char **file)
{
    // Names and files may contain '=': try each '=' as the end of the name.
    for (const char *end = strchr(assignment, '='); end != NULL; end = strchr(end + 1, '=')) {
        uint32_t index = inf_tensor_names_find(INF_TENSOR_NAMES(model->inputs, model->input_count),
                                               assignment, (size_t)(end - assignment));
        if (index == model->input_count)
            continue;
        *file = end + 1;
        return &model->inputs[index];
    }
    // A single "FILE" argument may contain '=' as a part of the file name.
    if (model->input_count == 1 &&
        (strchr(assignment, '=') == NULL || access(assignment, F_OK) == 0)) {
        *file = assignment;
        return &model->inputs[0];
    }
    fprintf(stderr, "inferctl: -i '%s': wanted NAME=FILE, the model's inputs are", assignment);
    for (size_t i = 0; i < model->input_count; i++)
        fprintf(stderr, "%s '%s'", i > 0 ? "," : "", model->inputs[i].name);
    fputc('\n', stderr);
    return NULL;
}

enum file_kind {
    FILE_NPY,
    FILE_PICTURE, // a picture: any file that does not start like a .npy file
};

// Determines the kind of a file by its first bytes. Returns an exit code, and prints a message on
// failure.
static int look_at_file(const char *path, enum file_kind *kind)
{
    *kind = FILE_PICTURE;
    char magic[6] = {0};
    struct stat status;
    FILE *file = fopen(path, "rbe");
    if (file == NULL)
        return command_say(errno == ENOENT || errno == ENOTDIR ? EXIT_NOT_FOUND : EXIT_FILE,
                           "'%s': %s", path, strerror(errno));
    int code = EXIT_OK;
    if (fstat(fileno(file), &status) != 0 || !S_ISREG(status.st_mode))
        code = command_say(EXIT_FILE, "'%s': no regular file", path);
    size_t got = code == EXIT_OK ? fread(magic, 1, sizeof magic, file) : 0;
    fclose(file);
    if (got == sizeof magic && memcmp(magic, "\x93NUMPY", sizeof magic) == 0)
        *kind = FILE_NPY;
    return code;
}

// Allocates a tensor with this type and shape. Its elements are zero.
static bool allocate_tensor(inferd_tensor *tensor, const char *name, enum inf_dtype dtype,
                            const struct inf_shape *shape)
{
    *tensor = (inferd_tensor){
        .name = name, .dtype = inferd_dtype_parse(inf_dtype_name(dtype)), .rank = shape->rank};
    memcpy(tensor->shape, shape->dims, sizeof tensor->shape);
    if (!inf_shape_bytes(shape, dtype, &tensor->size))
        return false;
    if (dtype == INF_DTYPE_BYTES) // the lengths of empty strings
        tensor->size = inf_shape_elements(shape) * INF_BYTES_LENGTH_SIZE;
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
    if (allocate_tensor(tensor, name, npy.dtype, &npy.shape))
        memcpy(tensor->data, npy.data, npy.size_bytes);
    else
        code = command_say(EXIT_FAILED, "'%s': no memory", path);
    inf_npy_unload(&npy);
    return code;
}

// Which axes of an input tensor are the rows, columns and channels of a picture.
struct picture_layout {
    int height, width, channel; // indices of the axes
    bool channels_first;
};

// Finds the layout of an input: its last three axes are a picture, and an axis before them is the
// batch. Returns false if the input cannot be a picture.
static bool find_layout(const inferd_tensor *wanted, struct picture_layout *layout)
{
    int first = wanted->rank - 3;
    if (first != 0 && first != 1)
        return false;
    const int64_t *dims = wanted->shape + first;
    if (dims[2] == 3 || dims[2] == 1)
        *layout = (struct picture_layout){first, first + 1, first + 2, false};
    else if (dims[0] == 3 || dims[0] == 1)
        *layout = (struct picture_layout){first + 1, first + 2, first, true};
    else
        return false;
    return true;
}

// The smallest and the largest value that an element of a dtype can have.
struct element_range {
    double least, most;
};

// Returns the range of elements of a dtype. The range is 0 to 0 if pictures cannot be converted to
// the dtype.
static struct element_range element_range(inferd_dtype dtype)
{
    switch (dtype) {
    case INFERD_FP32:
        return (struct element_range){-(double)FLT_MAX, (double)FLT_MAX};
    case INFERD_UINT8:
        return (struct element_range){0, UINT8_MAX};
    case INFERD_INT8:
        return (struct element_range){INT8_MIN, INT8_MAX};
    case INFERD_INT32:
        return (struct element_range){INT32_MIN, INT32_MAX};
    default:
        return (struct element_range){0, 0};
    }
}

// Computes, for each of the 256 values of channel `channel` of a picture, the tensor element that
// it becomes. `normalisation` is NULL if the model does not say how its input is normalised.
static void fill_levels(double levels[256], inferd_dtype dtype,
                        const struct picture_options *options,
                        const struct normalisation *normalisation, size_t channel)
{
    struct element_range range = element_range(dtype);
    if (normalisation != NULL && dtype == INFERD_FP32 && !options->has_range) {
        for (int i = 0; i < 256; i++)
            levels[i] = (i - normalisation->mean[channel]) / normalisation->deviation[channel];
        return;
    }
    double low = dtype == INFERD_INT8 ? range.least : 0;
    double high = dtype == INFERD_FP32 ? 1 : low + 255;
    if (options->has_range) {
        low = options->low;
        high = options->high;
    }
    for (int i = 0; i < 256; i++) {
        double level = fmin(fmax(low + (high - low) * i / 255, range.least), range.most);
        levels[i] = dtype == INFERD_FP32 ? level : floor(level + 0.5);
    }
}

static void store_element(inferd_tensor *tensor, size_t index, double level)
{
    if (tensor->dtype == INFERD_FP32)
        ((float *)tensor->data)[index] = (float)level;
    else if (tensor->dtype == INFERD_INT32)
        ((int32_t *)tensor->data)[index] = (int32_t)level;
    else if (tensor->dtype == INFERD_INT8)
        ((int8_t *)tensor->data)[index] = (int8_t)level;
    else
        ((uint8_t *)tensor->data)[index] = (uint8_t)level;
}

static uint8_t convert_to_grey(const uint8_t *pixel)
{
    return (uint8_t)(0.299 * pixel[0] + 0.587 * pixel[1] + 0.114 * pixel[2] + 0.5);
}

static void convert_picture(inferd_tensor *tensor, const struct inf_picture *picture,
                            const struct picture_layout *layout,
                            const struct picture_options *options)
{
    double levels[DESCRIPTION_CHANNELS][256];
    struct normalisation normalisation;
    size_t area = (size_t)picture->width * picture->height;
    size_t channels = (size_t)tensor->shape[layout->channel];
    bool normalised =
        options->description != NULL &&
        description_normalisation(options->description, tensor->name, channels, &normalisation);
    for (size_t c = 0; c < channels; c++)
        fill_levels(levels[c], tensor->dtype, options, normalised ? &normalisation : NULL, c);
    for (size_t i = 0; i < area; i++) {
        const uint8_t *pixel = picture->pixels + i * 3;
        for (size_t c = 0; c < channels; c++) {
            uint8_t value =
                channels == 1 ? convert_to_grey(pixel) : pixel[options->bgr ? 2 - c : c];
            store_element(tensor, layout->channels_first ? c * area + i : i * channels + c,
                          levels[c][value]);
        }
    }
}

static enum inf_code fit_picture(struct inf_picture **out, const struct inf_picture *picture,
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
    char text[TENSOR_SHAPE_TEXT];
    if (!find_layout(wanted, &layout) || element_range(wanted->dtype).most == 0)
        return command_say(EXIT_USAGE, "input '%s' takes no picture: it is %s %s; give a .npy file",
                           wanted->name, inferd_dtype_name(wanted->dtype),
                           tensor_shape_text(wanted, text));
    struct inf_shape shape = {.rank = wanted->rank};
    memcpy(shape.dims, wanted->shape, sizeof shape.dims);
    if (shape.rank == 4)
        shape.dims[0] = 1;
    if (shape.dims[layout.height] < 0) // the input accepts any size, so use the size of the picture
        shape.dims[layout.height] = picture->height;
    if (shape.dims[layout.width] < 0)
        shape.dims[layout.width] = picture->width;
    struct inf_error err;
    struct inf_picture *fitted;
    if (fit_picture(&fitted, picture, &shape, &layout, options->letterbox, &err) != INF_OK)
        return command_say(EXIT_FILE, "input '%s': %s", wanted->name, err.text);
    int code = EXIT_OK;
    if (allocate_tensor(tensor, wanted->name, inf_dtype_parse(inferd_dtype_name(wanted->dtype)),
                        &shape))
        convert_picture(tensor, fitted, &layout, options);
    else
        code = command_say(EXIT_FAILED, "input '%s': no memory", wanted->name);
    inf_picture_destroy(&fitted);
    return code;
}

static int load_picture(inferd_tensor *tensor, const inferd_tensor *wanted, const char *path,
                        const struct picture_options *options)
{
    struct inf_error err;
    struct inf_picture *picture;
    enum inf_code loaded = inf_picture_load(&picture, path, &err);
    if (loaded == INF_UNSUPPORTED)
        return command_say(EXIT_FILE, "'%s': neither .npy nor JPEG nor PNG", path);
    if (loaded != INF_OK)
        return file_failed(&err);
    int code = picture_to_tensor(tensor, wanted, picture, options);
    inf_picture_destroy(&picture);
    return code;
}

int tensor_inputs_add(struct tensor_inputs *inputs, const char *assignment,
                      const inferd_model_info *model, const struct picture_options *options)
{
    const char *file;
    enum file_kind kind;
    const inferd_tensor *wanted = find_input(assignment, model, &file);
    if (wanted == NULL)
        return EXIT_USAGE;
    if (is_given(inputs, wanted->name))
        return command_say(EXIT_USAGE, "-i '%s': input '%s' is given twice", assignment,
                           wanted->name);
    if (inputs->count == TENSOR_INPUTS_MAX)
        return command_say(EXIT_USAGE, "more than %d inputs", TENSOR_INPUTS_MAX);
    inferd_tensor *tensor = &inputs->tensors[inputs->count];
    bool is_text = wanted->dtype == INFERD_BYTES;
    int code = is_text ? strings_load(tensor, wanted, file) : look_at_file(file, &kind);
    if (code == EXIT_OK && !is_text)
        code = kind == FILE_NPY ? load_npy(tensor, wanted->name, file)
                                : load_picture(tensor, wanted, file, options);
    inputs->count += code == EXIT_OK;
    return code;
}

// Xorshift generator of Marsaglia, "Xorshift RNGs", J. Statistical Software 8 (14), 2003.
static uint32_t next_random(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

static void fill_random(const inferd_tensor *tensor)
{
    uint32_t state = 2463534242u;
    size_t count = tensor_count(tensor);
    for (size_t i = 0; i < count; i++) {
        uint32_t bits = next_random(&state);
        if (tensor->dtype == INFERD_FP32)
            ((float *)tensor->data)[i] = (float)(bits >> 8) / 16777216.f;
        else if (tensor->dtype == INFERD_FP64)
            ((double *)tensor->data)[i] = bits / 4294967296.0;
        else if (tensor->dtype == INFERD_UINT8)
            ((uint8_t *)tensor->data)[i] = (uint8_t)(bits >> 24);
    }
}

int tensor_inputs_complete(struct tensor_inputs *inputs, const inferd_model_info *model,
                           enum tensor_fill fill)
{
    for (size_t i = 0; i < model->input_count && inputs->count < TENSOR_INPUTS_MAX; i++) {
        const inferd_tensor *wanted = &model->inputs[i];
        if (is_given(inputs, wanted->name))
            continue;
        struct inf_shape shape = {.rank = wanted->rank};
        for (int d = 0; d < wanted->rank; d++)
            shape.dims[d] = wanted->shape[d] < 0 ? 1 : wanted->shape[d];
        if (!allocate_tensor(&inputs->tensors[inputs->count], wanted->name,
                             inf_dtype_parse(inferd_dtype_name(wanted->dtype)), &shape))
            return command_say(EXIT_FAILED, "input '%s': no memory", wanted->name);
        if (fill == TENSOR_RANDOM)
            fill_random(&inputs->tensors[inputs->count]);
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
