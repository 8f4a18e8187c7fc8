// SPDX-License-Identifier: Apache-2.0
// Lists of strings in attributes, as constants of BYTES, and looking up strings in them.
#ifndef INF_BACKENDS_IMPORT_ONNX_KEYS_H
#define INF_BACKENDS_IMPORT_ONNX_KEYS_H

#include "backends/import/onnx/scope.h"

// Adds a BYTES constant of shape [count] with the strings of a list attribute. Returns the
// constant; INF_VALUE_NONE if the attribute is absent.
uint32_t inf_onnx_attr_strings(struct inf_onnx_scope *s, const char *name);

// Adds a BYTES constant of rank 0 with the string of an attribute, or with `fallback` (text without
// NUL) if it is absent.
uint32_t inf_onnx_attr_string(struct inf_onnx_scope *s, const char *name, const char *fallback);

// Returns the labels of classes: the integers of attribute `ints` (I64) or the strings of attribute
// `strings` (BYTES), a constant of shape [count]. Latches a failure if both are absent.
uint32_t inf_onnx_attr_labels(struct inf_onnx_scope *s, const char *ints, const char *strings);

// Adds nodes that compute the index (i32) of each element of x in the list `keys`, a constant of
// the type of x; of equal keys the first one. The index of an element that is not in the list is
// the number of keys. NaN is equal to NaN.
uint32_t inf_onnx_find_keys(struct inf_onnx_scope *s, uint32_t x, uint32_t keys);

// Latches a failure if a regular expression is wrong, or uses what is not built, so that a model
// with it is refused. `patterns` is a BYTES constant.
void inf_onnx_check_patterns(struct inf_onnx_scope *s, uint32_t patterns);

// Sets places[i] to the index of the first key that is equal to key i. `handles` are `count`
// strings of `pool`. Latches a failure if there is no memory.
void inf_onnx_number_keys(const struct inf_string_pool *pool, const uint64_t *handles,
                          uint32_t count, int64_t *places, struct inf_builder *b);

#endif
