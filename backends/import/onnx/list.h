// SPDX-License-Identifier: Apache-2.0
// Makes sequences, and the lists of values that they and other operators have. sequence.h says what
// they are.
#ifndef INF_BACKENDS_IMPORT_ONNX_LIST_H
#define INF_BACKENDS_IMPORT_ONNX_LIST_H

#include "backends/import/onnx/scope.h"

// Allocates a list of `count` values in the import's arena. Adds `count` to the total length of all
// lists, which is limited, because a short node can request a long list. Latches a failure and
// returns NULL beyond the limit.
uint32_t *inf_onnx_list_make(struct inf_onnx_scope *s, uint32_t count);

// Adds a sequence of the `count` tensors in `values`, a list made by inf_onnx_list_make(). Returns
// its number.
uint32_t inf_onnx_sequence_add(struct inf_onnx_scope *s, const uint32_t *values, uint32_t count);

// Adds an optional without element. Returns its number, for which inf_onnx_is_sequence() is true
// too.
uint32_t inf_onnx_absent_add(struct inf_onnx_scope *s);

// Returns true if `value` is an optional without element.
bool inf_onnx_is_absent(const struct inf_onnx_scope *s, uint32_t value);

#endif
