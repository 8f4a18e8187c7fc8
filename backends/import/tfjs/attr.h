// SPDX-License-Identifier: Apache-2.0
// Attributes of TensorFlow.js nodes. JSON has texts in base64 and types by name ("U0FNRQ==",
// "DT_FLOAT"); older files have texts as lists of bytes and types as numbers ([83,65,77,69], 1).
// Integers are numbers or strings.
#ifndef INF_BACKENDS_IMPORT_TFJS_ATTR_H
#define INF_BACKENDS_IMPORT_TFJS_ATTR_H

#include <stdbool.h>
#include <stdint.h>

#include "backends/import/tfjs/graph.h"
#include "proto/core/shape.h"

// The largest size of a text such as "explicit" or "fusedbatchnorm".
#define INF_TFJS_TEXT_SIZE 64

struct inf_tfjs_text {
    char text[INF_TFJS_TEXT_SIZE]; // in lower case
};

// *out = the integer attribute `key`; unchanged if the node has none.
//
// INF_INVALID  no integer, or out of range.
enum inf_code inf_tfjs_attr_int(const struct inf_tfjs_node *node, const char *key, int32_t min,
                                int32_t max, int32_t *out, struct inf_error *err) INF_NODISCARD;

// As inf_tfjs_attr_int(), for numbers.
enum inf_code inf_tfjs_attr_float(const struct inf_tfjs_node *node, const char *key, float *out,
                                  struct inf_error *err) INF_NODISCARD;

// As inf_tfjs_attr_int(), for true and false.
enum inf_code inf_tfjs_attr_bool(const struct inf_tfjs_node *node, const char *key, bool *out,
                                 struct inf_error *err) INF_NODISCARD;

// As inf_tfjs_attr_int(), for a text, which is converted to lower case.
enum inf_code inf_tfjs_attr_text(const struct inf_tfjs_node *node, const char *key,
                                 struct inf_tfjs_text *out, struct inf_error *err) INF_NODISCARD;

// text = the text attribute `key`, decoded, at most `size` bytes, case unchanged; "" if the node
// has none.
enum inf_code inf_tfjs_attr_raw(const struct inf_tfjs_node *node, const char *key, char *text,
                                size_t size, struct inf_error *err) INF_NODISCARD;

// *out = the text of attribute `key` without decoding, for comparing two of them. It is owned by
// the arena or the document.
enum inf_code inf_tfjs_attr_key(const struct inf_tfjs_node *node, const char *key,
                                struct inf_arena *arena, const char **out,
                                struct inf_error *err) INF_NODISCARD;

// *out = the name of the function in attribute `key`, owned by the document.
enum inf_code inf_tfjs_attr_function(const struct inf_tfjs_node *node, const char *key,
                                     const char **out, struct inf_error *err) INF_NODISCARD;

// items[0..*count-1] = the integers of the list attribute `key`; *count is 0 if the node has none.
enum inf_code inf_tfjs_attr_ints(const struct inf_tfjs_node *node, const char *key, int32_t *items,
                                 uint32_t capacity, uint32_t *count,
                                 struct inf_error *err) INF_NODISCARD;

// *count = number of elements of `kind` ("i", "type") of the list attribute `key`.
enum inf_code inf_tfjs_attr_list_size(const struct inf_tfjs_node *node, const char *key,
                                      const char *kind, size_t *count,
                                      struct inf_error *err) INF_NODISCARD;

// As inf_tfjs_attr_ints(), for texts.
enum inf_code inf_tfjs_attr_texts(const struct inf_tfjs_node *node, const char *key,
                                  struct inf_tfjs_text *items, uint32_t capacity, uint32_t *count,
                                  struct inf_error *err) INF_NODISCARD;

// *out = the element type in attribute `key`, narrowed as in TensorFlow.js: all integers are i32,
// all floats f32. Unchanged if the node has none.
//
// INF_UNSUPPORTED  a type that is neither number nor bool.
enum inf_code inf_tfjs_attr_dtype(const struct inf_tfjs_node *node, const char *key,
                                  enum inf_dtype *out, struct inf_error *err) INF_NODISCARD;

// *out = the shape in attribute `key`; of unknown rank if the node has none.
enum inf_code inf_tfjs_attr_shape(const struct inf_tfjs_node *node, const char *key,
                                  struct inf_shape *out, struct inf_error *err) INF_NODISCARD;

// *out = a TensorShapeProto: {"dim": [{"size": "1"}, ...]}, {"unknownRank": true}.
enum inf_code inf_tfjs_shape_read(const struct inf_json *json, struct inf_shape *out,
                                  struct inf_error *err) INF_NODISCARD;

// Puts "node 'NAME' (OP)" in front of an error's text; returns its code.
enum inf_code inf_tfjs_node_error(const struct inf_tfjs_node *node, enum inf_code code,
                                  struct inf_error *err);

#endif
