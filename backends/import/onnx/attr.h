// SPDX-License-Identifier: Apache-2.0
// Attributes of the node of a scope. If an attribute is absent, the fallback is returned; a wrong
// type records a failure. Attributes that were never read are refused by name after the node is
// lowered.
#ifndef INF_BACKENDS_IMPORT_ONNX_ATTR_H
#define INF_BACKENDS_IMPORT_ONNX_ATTR_H

#include "backends/import/onnx/scope.h"

// Returns the integer attribute `name`, or `fallback` if it is absent; values beyond int32 are
// clamped.
int32_t inf_onnx_attr_int(struct inf_onnx_scope *s, const char *name, int32_t fallback);
// Returns the float attribute `name`, or `fallback` if it is absent.
float inf_onnx_attr_float(struct inf_onnx_scope *s, const char *name, float fallback);
// Returns the string attribute `name` as a copy in the import's arena, or `fallback` if it is
// absent.
const char *inf_onnx_attr_text(struct inf_onnx_scope *s, const char *name, const char *fallback);
// Returns true if the attribute is present, and marks it as used.
bool inf_onnx_has_attr(struct inf_onnx_scope *s, const char *name);
// Sets *out to the integers of a list attribute. Returns false if the attribute is absent.
bool inf_onnx_attr_ints(struct inf_onnx_scope *s, const char *name, struct inf_build_ints *out);
// Adds an i64 constant of shape [count] with the integers of a list attribute, which may be longer
// than INF_BUILD_INTS_MAX. Returns the constant; INF_VALUE_NONE if the attribute is absent.
uint32_t inf_onnx_attr_long_ints(struct inf_onnx_scope *s, const char *name);
// Sets *out to the texts of a list attribute and returns the number of texts; 0 if the attribute is
// absent. The array and the texts are copies in the arena of the import.
uint32_t inf_onnx_attr_texts(struct inf_onnx_scope *s, const char *name, const char *const **out);
// Adds an f32 constant of shape [count] with the floats of a list attribute. Returns the constant;
// INF_VALUE_NONE if the attribute is absent.
uint32_t inf_onnx_attr_floats(struct inf_onnx_scope *s, const char *name);
// Adds a constant with the tensor in attribute `name`. Returns the constant, or its handle if its
// type is narrow (narrow.h); INF_VALUE_NONE if the attribute is absent.
uint32_t inf_onnx_attr_tensor(struct inf_onnx_scope *s, const char *name);
// Sets *out to the graph in attribute `name`, as the bytes of a GraphProto. Returns false if the
// attribute is absent.
bool inf_onnx_attr_graph(struct inf_onnx_scope *s, const char *name, struct inf_span *out);
// Returns the attribute, of any type, after following references to the function's call; NULL if it
// is absent.
const struct inf_onnx_attr *inf_onnx_find_attr(struct inf_onnx_scope *s, const char *name);

#endif
