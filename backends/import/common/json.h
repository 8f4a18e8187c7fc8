// SPDX-License-Identifier: Apache-2.0
// JSON from outside, read by type: every getter checks, and its error tells where in the document
// the value stands ("weightsManifest[0].weights[3].shape[1]"), what it is and what was wanted.
#ifndef INF_BACKENDS_IMPORT_COMMON_JSON_H
#define INF_BACKENDS_IMPORT_COMMON_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/core/status.h"

struct json_t;

// Values in one document: bounds what the parser allocates (at most some 300 bytes a value).
#define INF_JSON_VALUES_MAX ((size_t)4 << 20)

// A value and the way to it. A plain view: copy it freely, as long as the document and the parents
// it was reached through stay where they are.
struct inf_json {
    const struct json_t *value;    // the document's; NULL where an optional member is absent
    const struct inf_json *parent; // NULL at the root
    const char *key;               // in the parent object; NULL in arrays and at the root
    size_t index;                  // in the parent array
};

// Parses `size` bytes of text that a NUL follows. *out_root is the caller's, freed with
// inf_json_destroy().
//
// INF_INVALID    (BAD_JSON) no JSON, a key twice in one object, a NUL in a string; the text gives
//                line and column. `name` is what the text calls the document.
// INF_EXHAUSTED  nested deeper than INF_LIMIT_JSON_DEPTH, more than INF_JSON_VALUES_MAX values.
enum inf_code inf_json_parse(struct json_t **out_root, const char *text, size_t size,
                             const char *name, struct inf_error *err) INF_NODISCARD;

// Frees a document. NULL is fine.
void inf_json_destroy(struct json_t **root);

// The view of a whole document.
struct inf_json inf_json_root(const struct json_t *root);

// *out = the member `key` of an object; its value is NULL where the member is absent or null.
//
// INF_INVALID  `object` is no object.
enum inf_code inf_json_find(const struct inf_json *object, const char *key, struct inf_json *out,
                            struct inf_error *err) INF_NODISCARD;

// As inf_json_find(), but the member must be there.
enum inf_code inf_json_get(const struct inf_json *object, const char *key, struct inf_json *out,
                           struct inf_error *err) INF_NODISCARD;

// Whether `object` is an object with the member `key`, of any type but null.
bool inf_json_has(const struct inf_json *object, const char *key);

// *count = elements of an array, or members of an object.
enum inf_code inf_json_array(const struct inf_json *array, size_t *count,
                             struct inf_error *err) INF_NODISCARD;

// The element of an array that inf_json_array() has approved; `index` must be below its count.
struct inf_json inf_json_at(const struct inf_json *array, size_t index);

// Steps through the members of an object in the order of the document. Start with *iterator NULL;
// false after the last one, and at once where `object` is no object.
bool inf_json_next(const struct inf_json *object, void **iterator, struct inf_json *out);

// Whether the value is an array.
bool inf_json_is_array(const struct inf_json *json);
// Whether the value is an object.
bool inf_json_is_object(const struct inf_json *json);
// Whether the value is null, or absent.
bool inf_json_is_null(const struct inf_json *json);
// Whether the value is a string.
bool inf_json_is_string(const struct inf_json *json);

// *out = a string, the document's, without NUL bytes.
enum inf_code inf_json_string(const struct inf_json *json, const char **out,
                              struct inf_error *err) INF_NODISCARD;

// As inf_json_string(), for names: at most INF_JSON_NAME_MAX bytes, not empty, no control
// characters, so that they can stand in messages.
enum inf_code inf_json_name(const struct inf_json *json, const char **out,
                            struct inf_error *err) INF_NODISCARD;
#define INF_JSON_NAME_MAX 512u

// *out = an integer from `min` to `max`; protobuf's JSON writes int64 as strings, so "-1" is one.
enum inf_code inf_json_int(const struct inf_json *json, int64_t min, int64_t max, int64_t *out,
                           struct inf_error *err) INF_NODISCARD;

// *out = a finite number, or a string that is one.
enum inf_code inf_json_number(const struct inf_json *json, double *out,
                              struct inf_error *err) INF_NODISCARD;

// *out = true or false.
enum inf_code inf_json_bool(const struct inf_json *json, bool *out,
                            struct inf_error *err) INF_NODISCARD;

#define INF_JSON_PATH_SIZE 256

// Writes the way to a value ("signature.inputs.x", "modelTopology.node[3 'conv'].op") and returns `text`; "the document" for the root.
// The end of a way that is too long is what stays.
const char *inf_json_path(const struct inf_json *json, char text[INF_JSON_PATH_SIZE]);

// Writes the value as one line of JSON in ASCII, cut with "..." where it does not fit; `size` is 8 or
// more.
void inf_json_print(const struct inf_json *json, char *text, size_t size);

// Fails with INF_INVALID (BAD_JSON): "PATH: has WHAT IT IS, wanted WANTED".
enum inf_code inf_json_fail(const struct inf_json *json, struct inf_error *err,
                            const char *wanted) INF_NODISCARD;

#endif
