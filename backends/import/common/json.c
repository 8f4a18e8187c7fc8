// SPDX-License-Identifier: Apache-2.0
// Typed access to JSON from untrusted files, based on jansson. Every struct inf_json points to its
// parent, so that an error can print the path from the root to the faulty value.
#include "backends/import/common/json.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/core/limits.h"

// Checks nesting and the number of values before the parser runs, because the parser recurses and
// allocates without limits.
static enum inf_code check_extent(const char *text, size_t size, const char *name,
                                  struct inf_error *err)
{
    size_t depth = 0, values = 1;
    bool in_string = false;
    for (size_t i = 0; i < size; i++) {
        char c = text[i];
        if (in_string) {
            if (c == '\\')
                i++;
            else if (c == '"')
                in_string = false;
        } else if (c == '"') {
            in_string = true;
        } else if (c == '[' || c == '{') {
            values++;
            if (++depth > INF_LIMIT_JSON_DEPTH)
                return inf_fail(err, INF_EXHAUSTED,
                                "'%s': nested deeper than %u levels at byte %zu", name,
                                INF_LIMIT_JSON_DEPTH, i);
        } else if ((c == ']' || c == '}') && depth > 0) {
            depth--;
        } else if (c == ',' || c == ':') {
            values++;
        }
    }
    if (values > INF_JSON_VALUES_MAX)
        return inf_fail(err, INF_EXHAUSTED, "'%s': about %zu values, at most %zu are allowed", name,
                        values, INF_JSON_VALUES_MAX);
    return INF_OK;
}

enum inf_code inf_json_parse(struct json_t **out_root, const char *text, size_t size,
                             const char *name, struct inf_error *err)
{
    INF_TRY(check_extent(text, size, name, err));
    json_error_t fault;
    json_t *root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &fault);
    // The parser reports all failures except lack of memory.
    if (root == NULL && fault.text[0] == '\0')
        return inf_fail(err, INF_EXHAUSTED, "'%s': no memory for the document", name);
    if (root == NULL) {
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_JSON,
                               "'%s': line %d, column %d: %s", name, fault.line, fault.column,
                               fault.text);
    }
    *out_root = root;
    return INF_OK;
}

void inf_json_destroy(struct json_t **root)
{
    json_decref(*root);
    *root = NULL;
}

struct inf_json inf_json_root(const struct json_t *root)
{
    return (struct inf_json){.value = root};
}

// Writes the part of a path that selects an array element: "[3]", or "[3 'conv']" if the element
// has a name.
static void print_element(const struct inf_json *json, char *text, size_t size)
{
    enum {
        NAME_MAX_SHOWN = 80
    };
    const char *name = json_string_value(json_object_get(json->value, "name"));
    if (name != NULL && name[0] != '\0')
        snprintf(text, size, "[%zu '%.*s']", json->index, NAME_MAX_SHOWN, name);
    else
        snprintf(text, size, "[%zu]", json->index);
}

// Writes one part of a path: ".key" or "[index]". If the key is long, only its end is written.
static void print_step(const struct inf_json *json, char *text, size_t size)
{
    enum {
        KEY_MAX = 100
    };
    if (json->key == NULL) {
        print_element(json, text, size);
        return;
    }
    size_t length = strlen(json->key);
    const char *end = length > KEY_MAX ? json->key + length - KEY_MAX : json->key;
    snprintf(text, size, "%s%s%s", json->parent->parent != NULL ? "." : "",
             end != json->key ? "..." : "", end);
}

const char *inf_json_path(const struct inf_json *json, char text[INF_JSON_PATH_SIZE])
{
    static const char root[] = "the document";
    if (json->parent == NULL)
        return memcpy(text, root, sizeof root);
    // The buffer is filled from its end, because the parts of the path are visited from the value
    // to the root.
    char buffer[INF_JSON_PATH_SIZE];
    size_t at = sizeof buffer - 1;
    buffer[at] = '\0';
    for (; json->parent != NULL; json = json->parent) {
        char step[128];
        print_step(json, step, sizeof step);
        size_t length = strlen(step);
        if (length > at - 2) {
            at -= 2;
            memcpy(buffer + at, "..", 2);
            break;
        }
        at -= length;
        memcpy(buffer + at, step, length);
    }
    return memcpy(text, buffer + at, sizeof buffer - at);
}

// Writes a value and its type: `"text" (a string)`.
static void describe_value(const struct json_t *value, char *text, size_t size)
{
    enum {
        STRING_MAX = 60
    };
    switch (value != NULL ? json_typeof(value) : JSON_NULL) {
    case JSON_OBJECT:
        snprintf(text, size, "an object");
        return;
    case JSON_ARRAY:
        snprintf(text, size, "an array of %zu", json_array_size(value));
        return;
    case JSON_STRING:
        snprintf(text, size, "the string \"%.*s\"%s", STRING_MAX, json_string_value(value),
                 json_string_length(value) > STRING_MAX ? "..." : "");
        return;
    case JSON_INTEGER:
        snprintf(text, size, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
        return;
    case JSON_REAL:
        snprintf(text, size, "%g", json_real_value(value));
        return;
    case JSON_TRUE:
        snprintf(text, size, "true");
        return;
    case JSON_FALSE:
        snprintf(text, size, "false");
        return;
    case JSON_NULL:
        break;
    }
    snprintf(text, size, "nothing");
}

enum inf_code inf_json_fail(const struct inf_json *json, struct inf_error *err, const char *wanted)
{
    char path[INF_JSON_PATH_SIZE], what[128];
    describe_value(json->value, what, sizeof what);
    return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_JSON, "%s: has %s, wanted %s",
                           inf_json_path(json, path), what, wanted);
}

enum inf_code inf_json_find(const struct inf_json *object, const char *key, struct inf_json *out,
                            struct inf_error *err)
{
    if (!json_is_object(object->value))
        return inf_json_fail(object, err, "an object");
    const json_t *value = json_object_get(object->value, key);
    *out = (struct inf_json){
        .value = json_is_null(value) ? NULL : value, .parent = object, .key = key};
    return INF_OK;
}

enum inf_code inf_json_get(const struct inf_json *object, const char *key, struct inf_json *out,
                           struct inf_error *err)
{
    INF_TRY(inf_json_find(object, key, out, err));
    if (out->value != NULL)
        return INF_OK;
    char path[INF_JSON_PATH_SIZE];
    return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_JSON, "%s: is missing",
                           inf_json_path(out, path));
}

bool inf_json_has(const struct inf_json *object, const char *key)
{
    const json_t *value = json_object_get(object->value, key);
    return value != NULL && !json_is_null(value);
}

enum inf_code inf_json_array(const struct inf_json *array, size_t *count, struct inf_error *err)
{
    if (!json_is_array(array->value))
        return inf_json_fail(array, err, "an array");
    *count = json_array_size(array->value);
    return INF_OK;
}

struct inf_json inf_json_at(const struct inf_json *array, size_t index)
{
    return (struct inf_json){
        .value = json_array_get(array->value, index), .parent = array, .index = index};
}

bool inf_json_next(const struct inf_json *object, void **iterator, struct inf_json *out)
{
    // jansson's iterators take a mutable object but do not change it.
    json_t *value = (json_t *)object->value;
    *iterator =
        *iterator == NULL ? json_object_iter(value) : json_object_iter_next(value, *iterator);
    if (*iterator == NULL)
        return false;
    *out = (struct inf_json){.value = json_object_iter_value(*iterator),
                             .parent = object,
                             .key = json_object_iter_key(*iterator)};
    return true;
}

bool inf_json_is_array(const struct inf_json *json)
{
    return json_is_array(json->value);
}

bool inf_json_is_object(const struct inf_json *json)
{
    return json_is_object(json->value);
}

bool inf_json_is_null(const struct inf_json *json)
{
    return json->value == NULL || json_is_null(json->value);
}

bool inf_json_is_string(const struct inf_json *json)
{
    return json_is_string(json->value);
}

enum inf_code inf_json_string(const struct inf_json *json, const char **out, struct inf_error *err)
{
    if (!json_is_string(json->value))
        return inf_json_fail(json, err, "a string");
    *out = json_string_value(json->value);
    return INF_OK;
}

enum inf_code inf_json_name(const struct inf_json *json, const char **out, struct inf_error *err)
{
    const char *name = NULL;
    INF_TRY(inf_json_string(json, &name, err));
    if (*name == '\0' || strlen(name) > INF_JSON_NAME_MAX)
        return inf_json_fail(json, err, "a name of 1 to 512 bytes");
    for (const char *c = name; *c != '\0'; c++)
        if ((unsigned char)*c < ' ' || *c == 127)
            return inf_json_fail(json, err, "a name without control characters");
    *out = name;
    return INF_OK;
}

// Returns true if all of `text` is a decimal integer.
static bool parse_int(const char *text, int64_t *out)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || (*text != '-' && (*text < '0' || *text > '9')))
        return false;
    *out = value;
    return true;
}

enum inf_code inf_json_int(const struct inf_json *json, int64_t min, int64_t max, int64_t *out,
                           struct inf_error *err)
{
    int64_t value = 0;
    bool ok = json_is_integer(json->value);
    if (ok)
        value = json_integer_value(json->value);
    else if (json_is_string(json->value))
        ok = parse_int(json_string_value(json->value), &value);
    if (ok && value >= min && value <= max) {
        *out = value;
        return INF_OK;
    }
    char wanted[80];
    snprintf(wanted, sizeof wanted, "an integer from %" PRId64 " to %" PRId64, min, max);
    return inf_json_fail(json, err, wanted);
}

// Returns true if all of `text` is a finite decimal number.
static bool parse_number(const char *text, double *out)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || *text == ' ' || !isfinite(value))
        return false;
    *out = value;
    return true;
}

enum inf_code inf_json_number(const struct inf_json *json, double *out, struct inf_error *err)
{
    if (json_is_number(json->value)) {
        *out = json_number_value(json->value);
        return INF_OK;
    }
    if (json_is_string(json->value) && parse_number(json_string_value(json->value), out))
        return INF_OK;
    return inf_json_fail(json, err, "a number");
}

enum inf_code inf_json_bool(const struct inf_json *json, bool *out, struct inf_error *err)
{
    if (!json_is_boolean(json->value))
        return inf_json_fail(json, err, "true or false");
    *out = json_is_true(json->value);
    return INF_OK;
}

void inf_json_print(const struct inf_json *json, char *text, size_t size)
{
    const size_t flags = JSON_COMPACT | JSON_ENCODE_ANY | JSON_ENSURE_ASCII;
    // The last piece of text did not fit, so end the truncated text with dots.
    memset(text, '.', size);
    size_t length = json_dumpb(json->value, text, size, flags);
    if (length >= size) {
        length = size - 1;
        memcpy(text + length - 3, "...", 3);
        while (length > 3 && text[length - 4] == '.')
            length--;
    }
    text[length] = '\0';
}
