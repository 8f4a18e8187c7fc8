// SPDX-License-Identifier: Apache-2.0
// Typed access to JSON from untrusted files. Every getter checks the type. The error text says
// where in the document the value is ("weightsManifest[0].weights[3].shape[1]"), which value it is
// and which one was expected.
#ifndef INF_BACKENDS_IMPORT_COMMON_JSON_H
#define INF_BACKENDS_IMPORT_COMMON_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/core/status.h"

struct json_t;

// The largest number of values in one document. It limits what the parser allocates, about 300
// bytes per value.
#define INF_JSON_VALUES_MAX ((size_t)4 << 20)

// A JSON value and the path to it, for error texts. The struct may be copied. It is valid as long
// as the document and the structs of its parents are.
struct inf_json {
    const struct json_t *value;    // owned by the document; NULL if an optional member is absent
    const struct inf_json *parent; // NULL at the root
    const char *key;               // key in the parent object; NULL in arrays and at the root
    size_t index;                  // index in the parent array
};

// Parses `size` bytes of text; a NUL byte must follow them. The caller frees *out_root with
// inf_json_destroy().
//
// INF_INVALID    (BAD_JSON) no JSON, a duplicate key in an object, or a NUL in a string; the text
// gives line and column. `name` is the name of the document in the text.
// INF_EXHAUSTED  nested deeper than INF_LIMIT_JSON_DEPTH, or more than INF_JSON_VALUES_MAX values.
enum inf_code inf_json_parse(struct json_t **out_root, const char *text, size_t size,
                             const char *name, struct inf_error *err) INF_NODISCARD;

// Frees a document. NULL is allowed.
void inf_json_destroy(struct json_t **root);

// Returns the root value of a document.
struct inf_json inf_json_root(const struct json_t *root);

// Sets *out to the member `key` of an object. Its value is NULL if the member is absent or null.
//
// INF_INVALID  `object` is not an object.
enum inf_code inf_json_find(const struct inf_json *object, const char *key, struct inf_json *out,
                            struct inf_error *err) INF_NODISCARD;

// Sets *out to the member `key` of an object. Fails if the member is absent or null.
enum inf_code inf_json_get(const struct inf_json *object, const char *key, struct inf_json *out,
                           struct inf_error *err) INF_NODISCARD;

// Returns true if `object` is an object with the member `key` that is not null.
bool inf_json_has(const struct inf_json *object, const char *key);

// Sets *count to the number of elements of an array, or of members of an object.
enum inf_code inf_json_array(const struct inf_json *array, size_t *count,
                             struct inf_error *err) INF_NODISCARD;

// Returns an element of an array. `index` must be below the count that inf_json_array() returned.
struct inf_json inf_json_at(const struct inf_json *array, size_t index);

// Iterates over the members of an object in the order of the document. *iterator is NULL at first.
// Returns false after the last member, and at once if `object` is no object.
bool inf_json_next(const struct inf_json *object, void **iterator, struct inf_json *out);

// Returns true if the value is an array.
bool inf_json_is_array(const struct inf_json *json);
// Returns true if the value is an object.
bool inf_json_is_object(const struct inf_json *json);
// Returns true if the value is null or absent.
bool inf_json_is_null(const struct inf_json *json);
// Returns true if the value is a string.
bool inf_json_is_string(const struct inf_json *json);

// Sets *out to the text of a JSON string without NUL bytes. The document owns the text.
enum inf_code inf_json_string(const struct inf_json *json, const char **out,
                              struct inf_error *err) INF_NODISCARD;

// Sets *out to a string that may appear in messages: 1 to INF_JSON_NAME_MAX bytes and no control
// characters. The document owns the string.
enum inf_code inf_json_name(const struct inf_json *json, const char **out,
                            struct inf_error *err) INF_NODISCARD;
#define INF_JSON_NAME_MAX 512u

// Sets *out to an integer from `min` to `max`. A string such as "-1" is accepted, because protobuf
// writes 64-bit integers as strings.
enum inf_code inf_json_int(const struct inf_json *json, int64_t min, int64_t max, int64_t *out,
                           struct inf_error *err) INF_NODISCARD;

// Sets *out to a finite number. A string that contains a number is accepted.
enum inf_code inf_json_number(const struct inf_json *json, double *out,
                              struct inf_error *err) INF_NODISCARD;

// Sets *out to the value of a JSON boolean.
enum inf_code inf_json_bool(const struct inf_json *json, bool *out,
                            struct inf_error *err) INF_NODISCARD;

#define INF_JSON_PATH_SIZE 256

// Writes the path of a value ("signature.inputs.x", "modelTopology.node[3 'conv'].op") and returns
// `text`. The root is "the document". If a path is too long, only its end is written.
const char *inf_json_path(const struct inf_json *json, char text[INF_JSON_PATH_SIZE]);

// Writes the value as one line of ASCII JSON, truncated with "..." if it does not fit. `size` must
// be at least 8.
void inf_json_print(const struct inf_json *json, char *text, size_t size);

// Fails with INF_INVALID (BAD_JSON) and the text "PATH: has VALUE, wanted WANTED".
enum inf_code inf_json_fail(const struct inf_json *json, struct inf_error *err,
                            const char *wanted) INF_NODISCARD;

#endif
