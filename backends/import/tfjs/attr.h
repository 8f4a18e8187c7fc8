// SPDX-License-Identifier: Apache-2.0
// Attributes of TensorFlow.js nodes. JSON spells them in two ways: text in base64 and types by name
// ("U0FNRQ==", "DT_FLOAT"), and in older files text as lists of bytes and types as numbers
// ([83,65,77,69], 1). Integers are numbers or strings.
#ifndef INF_BACKENDS_IMPORT_TFJS_ATTR_H
#define INF_BACKENDS_IMPORT_TFJS_ATTR_H

#include <stdbool.h>
#include <stdint.h>

#include "backends/import/tfjs/graph.h"
#include "proto/core/shape.h"

// Bytes of the texts that operators have: "explicit", "fusedbatchnorm".
#define INF_TFJS_TEXT_SIZE 64

struct inf_tfjs_text {
    char text[INF_TFJS_TEXT_SIZE]; // in lower case
};

// *out = the integer attribute `key`, or what *out holds already where the node has none.
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

// As inf_tfjs_attr_int(), for text, which is put into lower case.
enum inf_code inf_tfjs_attr_text(const struct inf_tfjs_node *node, const char *key,
                                 struct inf_tfjs_text *out, struct inf_error *err) INF_NODISCARD;

// The text attribute `key`, decoded, in its own case, into `text` of `size` bytes; "" where the
// node has none.
enum inf_code inf_tfjs_attr_raw(const struct inf_tfjs_node *node, const char *key, char *text,
                                size_t size, struct inf_error *err) INF_NODISCARD;

// *out = the text of attribute `key` as the document has it, undecoded: enough to tell two apart.
// The arena's or the document's.
enum inf_code inf_tfjs_attr_key(const struct inf_tfjs_node *node, const char *key,
                                struct inf_arena *arena, const char **out,
                                struct inf_error *err) INF_NODISCARD;

// *out = the name of the function that attribute `key` is; the document's.
enum inf_code inf_tfjs_attr_function(const struct inf_tfjs_node *node, const char *key,
                                     const char **out, struct inf_error *err) INF_NODISCARD;

// *count = the integers of the list attribute `key`, put into items; 0 where the node has none.
enum inf_code inf_tfjs_attr_ints(const struct inf_tfjs_node *node, const char *key, int32_t *items,
                                 uint32_t capacity, uint32_t *count,
                                 struct inf_error *err) INF_NODISCARD;

// *count = how many elements of `kind` ("i", "type") the list attribute `key` has.
enum inf_code inf_tfjs_attr_list_size(const struct inf_tfjs_node *node, const char *key,
                                      const char *kind, size_t *count,
                                      struct inf_error *err) INF_NODISCARD;

// As inf_tfjs_attr_ints(), for texts.
enum inf_code inf_tfjs_attr_texts(const struct inf_tfjs_node *node, const char *key,
                                  struct inf_tfjs_text *items, uint32_t capacity, uint32_t *count,
                                  struct inf_error *err) INF_NODISCARD;

// *out = the element type attribute `key`, as TensorFlow.js narrows types: all integers are i32,
// all floats f32. Left as it is where the node has none.
//
// INF_UNSUPPORTED  a type that is neither number nor bool.
enum inf_code inf_tfjs_attr_dtype(const struct inf_tfjs_node *node, const char *key,
                                  enum inf_dtype *out, struct inf_error *err) INF_NODISCARD;

// *out = the shape attribute `key`; of unknown rank where the node has none.
enum inf_code inf_tfjs_attr_shape(const struct inf_tfjs_node *node, const char *key,
                                  struct inf_shape *out, struct inf_error *err) INF_NODISCARD;

// *out = a TensorShapeProto: {"dim": [{"size": "1"}, ...]}, {"unknownRank": true}.
enum inf_code inf_tfjs_shape_read(const struct inf_json *json, struct inf_shape *out,
                                  struct inf_error *err) INF_NODISCARD;

// Puts "node 'NAME' (OP)" before the text of an error already set; returns its code.
enum inf_code inf_tfjs_node_error(const struct inf_tfjs_node *node, enum inf_code code,
                                  struct inf_error *err);

#endif
