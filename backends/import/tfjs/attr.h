// SPDX-License-Identifier: Apache-2.0
// Attributes of TensorFlow.js nodes. In JSON, strings are base64 and types are names ("U0FNRQ==",
// "DT_FLOAT"). In older files, strings are lists of bytes and types are numbers ([83,65,77,69], 1).
// Integers are numbers or strings.
#ifndef INF_BACKENDS_IMPORT_TFJS_ATTR_H
#define INF_BACKENDS_IMPORT_TFJS_ATTR_H

#include <stdbool.h>
#include <stdint.h>

#include "backends/import/tfjs/graph.h"
#include "proto/core/shape.h"

// The largest size of a string such as "explicit" or "fusedbatchnorm".
#define INF_TFJS_TEXT_SIZE 64

struct inf_tfjs_text {
    char text[INF_TFJS_TEXT_SIZE]; // in lower case
};

// Sets *out to the integer attribute `key`; *out is unchanged if the node has no such attribute.
//
// INF_INVALID  not an integer, or out of range.
enum inf_code inf_tfjs_attr_int(const struct inf_tfjs_node *node, const char *key, int32_t min,
                                int32_t max, int32_t *out, struct inf_error *err) INF_NODISCARD;

// Sets *out to the floating-point attribute `key`; *out is unchanged if the node has no such
// attribute.
enum inf_code inf_tfjs_attr_float(const struct inf_tfjs_node *node, const char *key, float *out,
                                  struct inf_error *err) INF_NODISCARD;

// Sets *out to the boolean attribute `key`; *out is unchanged if the node has no such attribute.
enum inf_code inf_tfjs_attr_bool(const struct inf_tfjs_node *node, const char *key, bool *out,
                                 struct inf_error *err) INF_NODISCARD;

// Sets *out to the string attribute `key` in lower case; *out is unchanged if the node has no such
// attribute.
enum inf_code inf_tfjs_attr_text(const struct inf_tfjs_node *node, const char *key,
                                 struct inf_tfjs_text *out, struct inf_error *err) INF_NODISCARD;

// Sets `text` to the decoded string attribute `key`, at most `size` bytes, without changing case;
// "" if the node has no such attribute.
enum inf_code inf_tfjs_attr_raw(const struct inf_tfjs_node *node, const char *key, char *text,
                                size_t size, struct inf_error *err) INF_NODISCARD;

// Sets *out to the encoded string of attribute `key`, for comparing two attributes. The string is
// owned by the arena or the document.
enum inf_code inf_tfjs_attr_key(const struct inf_tfjs_node *node, const char *key,
                                struct inf_arena *arena, const char **out,
                                struct inf_error *err) INF_NODISCARD;

// Sets *out to the name of the function in attribute `key`, owned by the document.
enum inf_code inf_tfjs_attr_function(const struct inf_tfjs_node *node, const char *key,
                                     const char **out, struct inf_error *err) INF_NODISCARD;

// Sets items[0..*count-1] to the integers of the list attribute `key`; *count is 0 if the node has
// no such attribute.
enum inf_code inf_tfjs_attr_ints(const struct inf_tfjs_node *node, const char *key, int32_t *items,
                                 uint32_t capacity, uint32_t *count,
                                 struct inf_error *err) INF_NODISCARD;

// Sets *count to the number of elements of `kind` ("i", "type") in the list attribute `key`.
enum inf_code inf_tfjs_attr_list_size(const struct inf_tfjs_node *node, const char *key,
                                      const char *kind, size_t *count,
                                      struct inf_error *err) INF_NODISCARD;

// Sets items[0..*count-1] to the strings of the list attribute `key`; *count is 0 if the node has
// no such attribute.
enum inf_code inf_tfjs_attr_texts(const struct inf_tfjs_node *node, const char *key,
                                  struct inf_tfjs_text *items, uint32_t capacity, uint32_t *count,
                                  struct inf_error *err) INF_NODISCARD;

// Sets *out to the element type in attribute `key`, narrowed as in TensorFlow.js: all integers
// become i32 and all floats f32. *out is unchanged if the node has no such attribute.
//
// INF_UNSUPPORTED  the type is neither a number nor bool.
enum inf_code inf_tfjs_attr_dtype(const struct inf_tfjs_node *node, const char *key,
                                  enum inf_dtype *out, struct inf_error *err) INF_NODISCARD;

// Sets *out to the shape in attribute `key`; the rank is unknown if the node has no such attribute.
enum inf_code inf_tfjs_attr_shape(const struct inf_tfjs_node *node, const char *key,
                                  struct inf_shape *out, struct inf_error *err) INF_NODISCARD;

// Sets *out to the shape in a TensorShapeProto: {"dim": [{"size": "1"}, ...]} or {"unknownRank":
// true}.
enum inf_code inf_tfjs_shape_read(const struct inf_json *json, struct inf_shape *out,
                                  struct inf_error *err) INF_NODISCARD;

// Prepends "node 'NAME' (OP)" to an error's text, and returns its code.
enum inf_code inf_tfjs_node_error(const struct inf_tfjs_node *node, enum inf_code code,
                                  struct inf_error *err);

#endif
