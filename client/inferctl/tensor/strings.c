// SPDX-License-Identifier: Apache-2.0
// Tensors of strings. libinferd has the form of their bytes; here they come from the command line
// or a file of lines, and become text.
#include "client/inferctl/tensor/strings.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/inferctl/cli/command.h"
#include "client/inferctl/tensor/text.h"
#include "client/inferctl/text/json_value.h"
#include "proto/core/utf8.h"

// Sets the shape of *tensor: that of `wanted`, whose first open dimension becomes what `count`
// strings need, and whose other open dimensions become 1. Returns false if `count` does not fit.
static bool fit_shape(inferd_tensor *tensor, const inferd_tensor *wanted, size_t count)
{
    size_t others = 1;
    int open = -1;
    tensor->rank = wanted->rank < 0 ? 1 : wanted->rank;
    for (int i = 0; i < tensor->rank; i++) {
        bool is_open = wanted->rank < 0 || wanted->shape[i] < 0;
        tensor->shape[i] = is_open ? 1 : wanted->shape[i];
        if (is_open && open < 0)
            open = i;
        else if (__builtin_mul_overflow(others, (size_t)tensor->shape[i], &others))
            return false;
    }
    if (open < 0 || others == 0)
        return others == count;
    tensor->shape[open] = (int64_t)(count / others);
    return count % others == 0;
}

static int make_tensor(inferd_tensor *tensor, const inferd_tensor *wanted,
                       const inferd_string *strings, size_t count)
{
    char shape[TENSOR_SHAPE_TEXT];
    *tensor = (inferd_tensor){.name = wanted->name, .dtype = INFERD_BYTES};
    if (!fit_shape(tensor, wanted, count))
        return command_say(EXIT_USAGE, "input '%s': %zu strings do not fit its shape %s",
                           wanted->name, count, tensor_shape_text(wanted, shape));
    tensor->size = inferd_strings_write(strings, count, NULL, 0);
    tensor->data = json_value_must(malloc(tensor->size + 1));
    inferd_strings_write(strings, count, tensor->data, tensor->size);
    return EXIT_OK;
}

// Divides a text into lines without their ends. A last line may lack its end. The caller frees the
// result.
static inferd_string *split_lines(const char *text, size_t size, size_t *out_count)
{
    size_t count = 0;
    for (size_t i = 0; i < size; i++)
        count += text[i] == '\n';
    inferd_string *lines = json_value_must(calloc(count + 1, sizeof *lines));
    *out_count = 0;
    for (size_t begin = 0; begin < size;) {
        const char *end = memchr(text + begin, '\n', size - begin);
        size_t length = end != NULL ? (size_t)(end - text) - begin : size - begin;
        bool has_return = end != NULL && length > 0 && text[begin + length - 1] == '\r';
        lines[(*out_count)++] = (inferd_string){text + begin, length - has_return};
        begin += length + 1;
    }
    return lines;
}

static int load_lines(inferd_tensor *tensor, const inferd_tensor *wanted, const char *path)
{
    FILE *file = fopen(path, "re");
    size_t size = 0;
    if (file == NULL)
        return command_say(errno == ENOENT || errno == ENOTDIR ? EXIT_NOT_FOUND : EXIT_FILE,
                           "'%s': %s", path, strerror(errno));
    size_t capacity = 4096, got;
    char *text = json_value_must(malloc(capacity));
    while ((got = fread(text + size, 1, capacity - size, file)) > 0) {
        size += got;
        if (size == capacity)
            text = json_value_must(realloc(text, capacity *= 2));
    }
    int code = ferror(file) ? command_say(EXIT_FILE, "'%s': %s", path, strerror(errno)) : EXIT_OK;
    fclose(file);
    if (code == EXIT_OK) {
        size_t count;
        inferd_string *lines = split_lines(text, size, &count);
        code = make_tensor(tensor, wanted, lines, count);
        free(lines);
    }
    free(text);
    return code;
}

int strings_load(inferd_tensor *tensor, const inferd_tensor *wanted, const char *text)
{
    if (text[0] == '@' && text[1] != '@')
        return load_lines(tensor, wanted, text + 1);
    text += text[0] == '@';
    const inferd_string string = {text, strlen(text)};
    return make_tensor(tensor, wanted, &string, 1);
}

// Returns a copy of a string with a NUL at its end; NULs in the string become '?'.
static char *copy_string(const inferd_string *string)
{
    char *copy = json_value_must(malloc(string->size + 1));
    for (size_t i = 0; i < string->size; i++) {
        char byte = ((const char *)string->data)[i];
        copy[i] = (char)(byte == '\0' ? '?' : byte);
    }
    copy[string->size] = '\0';
    return copy;
}

void strings_print(const inferd_tensor *tensor, size_t count)
{
    size_t offset = 0;
    inferd_string string;
    printf("\nstrings of %s\n", tensor->name);
    for (size_t i = 0; i < count && inferd_string_next(tensor, &offset, &string); i++) {
        char *text = copy_string(&string);
        inf_text_clean(text);
        printf("%s\n", text);
        free(text);
    }
}

json_t *strings_json(const inferd_tensor *tensor)
{
    size_t offset = 0;
    inferd_string string;
    json_t *values = json_value_must(json_array());
    while (inferd_string_next(tensor, &offset, &string)) {
        json_t *value = json_stringn(string.data, string.size);
        if (value == NULL) {
            char *text = copy_string(&string);
            value = json_value_text(text);
            free(text);
        }
        json_array_append_new(values, value);
    }
    return values;
}

bool strings_save(const inferd_tensor *tensor, const char *path)
{
    json_t *values = strings_json(tensor);
    bool saved = json_dump_file(values, path, JSON_INDENT(1)) == 0;
    json_decref(values);
    return saved;
}
