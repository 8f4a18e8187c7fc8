// SPDX-License-Identifier: Apache-2.0
// Writes outputs to .npy files that are named after the outputs; strings to .json files.
#include "client/inferctl/tensor/output_files.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "client/inferctl/cli/command.h"
#include "client/inferctl/tensor/strings.h"
#include "client/inferctl/tensor/text.h"
#include "client/inferctl/text/json_value.h"
#include "proto/npy/npy.h"

#define FILE_NAME_SIZE 200

int output_files_prepare(const char *directory)
{
    struct stat status;
    if (mkdir(directory, 0777) != 0 && errno != EEXIST)
        return command_say(EXIT_FILE, "-o '%s': %s", directory, strerror(errno));
    if (stat(directory, &status) != 0 || !S_ISDIR(status.st_mode))
        return command_say(EXIT_FILE, "-o '%s': no directory", directory);
    return EXIT_OK;
}

// Copies the name of an output, with unusual characters replaced by '_'.
static void plain_name(const char *name, char out[FILE_NAME_SIZE])
{
    snprintf(out, FILE_NAME_SIZE, "%s", name[0] != '\0' ? name : "_");
    for (char *at = out; *at != '\0'; at++) {
        bool plain = strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_",
                            *at) != NULL;
        if (!plain || (at == out && *at == '.'))
            *at = '_';
    }
}

const char *output_files_path(const char *directory, const inferd_result *result, size_t index,
                              char path[PATH_MAX])
{
    char name[FILE_NAME_SIZE];
    char other[FILE_NAME_SIZE];
    bool taken = false;
    plain_name(inferd_result_output(result, index)->name, name);
    for (size_t i = 0; i < index && !taken; i++) {
        plain_name(inferd_result_output(result, i)->name, other);
        taken = strcmp(name, other) == 0;
    }
    bool is_text = inferd_result_output(result, index)->dtype == INFERD_BYTES;
    const char *end = is_text ? "json" : "npy";
    if (taken)
        snprintf(path, PATH_MAX, "%s/%s-%zu.%s", directory, name, index, end);
    else
        snprintf(path, PATH_MAX, "%s/%s.%s", directory, name, end);
    return path;
}

static enum inf_code save_as_float(const char *path, const struct inf_shape *shape,
                                   const inferd_tensor *tensor, struct inf_error *err)
{
    size_t count = tensor_count(tensor);
    float *wide = json_value_must(malloc((count + 1) * sizeof *wide));
    for (size_t i = 0; i < count; i++)
        wide[i] = (float)tensor_element(tensor, i);
    enum inf_code code = inf_npy_save(path, INF_DTYPE_F32, shape, wide, err);
    free(wide);
    return code;
}

int output_files_save(const char *directory, const inferd_result *result)
{
    for (size_t i = 0; i < inferd_result_output_count(result); i++) {
        char path[PATH_MAX];
        struct inf_error err;
        const inferd_tensor *tensor = inferd_result_output(result, i);
        output_files_path(directory, result, i, path);
        if (tensor->dtype == INFERD_BYTES) {
            if (!strings_save(tensor, path))
                return command_say(EXIT_FILE, "'%s': %s", path, strerror(errno));
            continue;
        }
        struct inf_shape shape = {.rank = tensor->rank};
        memcpy(shape.dims, tensor->shape, sizeof shape.dims);
        enum inf_dtype dtype = inf_dtype_parse(inferd_dtype_name(tensor->dtype));
        enum inf_code code = dtype == INF_DTYPE_BF16
                                 ? save_as_float(path, &shape, tensor, &err)
                                 : inf_npy_save(path, dtype, &shape, tensor->data, &err);
        if (code != INF_OK)
            return command_say(EXIT_FILE, "%s", err.text);
    }
    return EXIT_OK;
}
