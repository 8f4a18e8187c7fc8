// SPDX-License-Identifier: Apache-2.0
// Collects the strings of a tensor, wherever they are, and writes them in the form of libinferd.
#include "client/gateway/oip/strings.h"

#include <stdlib.h>
#include <string.h>

#include "client/gateway/oip/proto_reader.h"
#include "proto/core/bytes_tensor.h"
#include "proto/core/utf8.h"

// The field of InferTensorContents that holds strings.
#define BYTES_CONTENTS 8u

// The strings that were found so far; they point into the request.
struct list {
    inferd_string *strings;
    size_t count, capacity;
};

static size_t count_elements(const inferd_tensor *tensor)
{
    size_t count = 1;
    for (int i = 0; i < tensor->rank; i++)
        count *= (size_t)tensor->shape[i]; // inf_oip_tensor_set_shape() has checked the product
    return count;
}

static enum inf_code fail_count(const inferd_tensor *tensor, struct inf_error *err)
{
    return inf_fail_reason(err, INF_INVALID, INF_REASON_SIZE_MISMATCH,
                           "input '%s': the contents are not %zu strings", tensor->name,
                           count_elements(tensor));
}

static enum inf_code add_string(struct list *list, const inferd_tensor *tensor, const void *data,
                                size_t size, struct inf_error *err)
{
    if (list->count == list->capacity) {
        size_t capacity = 2 * list->capacity + 16;
        inferd_string *grown = realloc(list->strings, capacity * sizeof *grown);
        if (grown == NULL)
            return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                                   "no memory for input '%s'", tensor->name);
        list->strings = grown;
        list->capacity = capacity;
    }
    list->strings[list->count++] = (inferd_string){data, size};
    return INF_OK;
}

// Sets data and size of the tensor to the strings of the list, and frees the list.
static enum inf_code pack_list(inferd_tensor *tensor, struct list *list, enum inf_code code,
                               struct inf_error *err)
{
    size_t size = inferd_strings_write(list->strings, list->count, NULL, 0);
    if (code == INF_OK && list->count != count_elements(tensor))
        code = fail_count(tensor, err);
    if (code == INF_OK) {
        tensor->data = size < SIZE_MAX ? malloc(size + 1) : NULL;
        tensor->size = size;
    }
    if (code == INF_OK && tensor->data == NULL)
        code = inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "no memory for input '%s'",
                               tensor->name);
    if (code == INF_OK)
        inferd_strings_write(list->strings, list->count, tensor->data, size);
    free(list->strings);
    return code;
}

// Reads four hexadecimal digits.
static bool read_hex(const char *at, const char *end, uint32_t *unit)
{
    *unit = 0;
    if (end - at < 4)
        return false;
    for (int i = 0; i < 4; i++) {
        char c = at[i];
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
        if (digit < 0)
            return false;
        *unit = *unit << 4 | (uint32_t)digit;
    }
    return true;
}

static uint8_t *put_utf8(uint8_t *to, uint32_t code)
{
    if (code < 0x80) {
        *to++ = (uint8_t)code;
        return to;
    }
    if (code < 0x800) {
        *to++ = (uint8_t)(0xC0 | code >> 6);
    } else {
        if (code < 0x10000) {
            *to++ = (uint8_t)(0xE0 | code >> 12);
        } else {
            *to++ = (uint8_t)(0xF0 | code >> 18);
            *to++ = (uint8_t)(0x80 | (code >> 12 & 0x3F));
        }
        *to++ = (uint8_t)(0x80 | (code >> 6 & 0x3F));
    }
    *to++ = (uint8_t)(0x80 | (code & 0x3F));
    return to;
}

// Reads the four digits of an escape \u at *at, or those of a surrogate pair with its second
// escape.
static bool read_unicode(struct inf_json_strings *strings, const char **at, const char *end)
{
    uint32_t code, low;
    if (!read_hex(*at, end, &code))
        return false;
    *at += 4;
    if (code >= 0xD800 && code < 0xE000) {
        if (code >= 0xDC00 || end - *at < 6 || (*at)[0] != '\\' || (*at)[1] != 'u' ||
            !read_hex(*at + 2, end, &low) || low < 0xDC00 || low >= 0xE000)
            return false;
        *at += 6;
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    }
    strings->to = put_utf8(strings->to, code);
    return true;
}

// Reads the escape sequence behind the backslash before *at.
static bool read_escape(struct inf_json_strings *strings, const char **at, const char *end)
{
    static const char letters[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    if (*at == end)
        return false;
    char c = *(*at)++;
    if (c == 'u')
        return read_unicode(strings, at, end);
    const char *letter = c == '\0' ? NULL : strchr(letters, c);
    if (letter == NULL)
        return false;
    *strings->to++ = (uint8_t)values[letter - letters];
    return true;
}

// Reads a character of the open string that is neither a quote nor an escape.
static bool read_character(struct inf_json_strings *strings, const char **at, const char *end)
{
    const uint8_t *from = (const uint8_t *)*at;
    size_t size = *from < 0x20   ? 0
                  : *from < 0x80 ? 1
                                 : inf_utf8_character_size(from, (size_t)(end - *at));
    memcpy(strings->to, from, size);
    strings->to += size;
    *at += size;
    return size > 0;
}

static void close_string(struct inf_json_strings *strings)
{
    uint8_t *text = strings->length + INF_BYTES_LENGTH_SIZE;
    // The length of the text is that of a request at most, so it has 32 bits.
    size_t size = (size_t)(strings->to - text);
    for (unsigned i = 0; i < INF_BYTES_LENGTH_SIZE; i++)
        strings->length[i] = (uint8_t)(size >> 8 * i);
    strings->length = NULL;
}

bool inf_json_string_read(struct inf_json_strings *strings, const char **at, const char *stop,
                          const char *end)
{
    if (strings->length == NULL) {
        if (**at != '"')
            return false;
        ++*at;
        strings->length = strings->to;
        strings->to += INF_BYTES_LENGTH_SIZE;
    }
    while (*at < stop) {
        char c = **at;
        bool valid = true;
        if (c == '"') {
            ++*at;
            close_string(strings);
            return true;
        }
        if (c == '\\') {
            ++*at;
            valid = read_escape(strings, at, end);
        } else {
            valid = read_character(strings, at, end);
        }
        if (!valid)
            return false;
    }
    return true;
}

size_t inf_json_string_print(char *to, inferd_string string)
{
    const uint8_t *at = string.data, *end = at + string.size;
    char *begin = to;
    *to++ = '"';
    while (at < end) {
        size_t size = *at < 0x80 ? 1 : inf_utf8_character_size(at, (size_t)(end - at));
        if (size == 0)
            return 0;
        if (*at < 0x20) {
            static const char digits[] = "0123456789abcdef";
            memcpy(to, "\\u00", 4);
            to[4] = digits[*at >> 4];
            to[5] = digits[*at & 15];
            to += 6;
        } else {
            if (*at == '"' || *at == '\\')
                *to++ = '\\';
            memcpy(to, at, size);
            to += size;
        }
        at += size;
    }
    *to++ = '"';
    return (size_t)(to - begin);
}

enum inf_code inf_oip_strings_from_contents(inferd_tensor *tensor, struct inf_span contents,
                                            struct inf_error *err)
{
    struct list list = {0};
    struct inf_proto_field field;
    enum inf_code code = INF_OK;
    int more = 0;
    while (code == INF_OK && (more = inf_proto_read_field(&contents, &field)) > 0)
        code = field.number == BYTES_CONTENTS && field.wire == INF_PROTO_BYTES
                   ? add_string(&list, tensor, field.bytes.data, field.bytes.size, err)
                   : fail_count(tensor, err);
    if (code == INF_OK && more < 0)
        code = fail_count(tensor, err);
    return pack_list(tensor, &list, code, err);
}
