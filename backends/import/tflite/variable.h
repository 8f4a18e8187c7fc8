// SPDX-License-Identifier: Apache-2.0
// Variables: tensors that keep their value between runs. The graph has no memory, so a variable
// becomes an input NAME_in and an output NAME_out. A session feeds the output of one request to the
// next one, and zeros to the first.
#ifndef INF_BACKENDS_IMPORT_TFLITE_VARIABLE_H
#define INF_BACKENDS_IMPORT_TFLITE_VARIABLE_H

#include "backends/import/tflite/scope.h"

// Returns the stored value that variable tensor `number` of the frame's subgraph has before the
// first operator changes it. Variables of subgraphs that run inside of others are 0 in every run.
uint32_t inf_tflite_variable_begin(struct inf_tflite_scope *s, int32_t number);

// Changes the variable that is input `index`, given as real numbers.
void inf_tflite_variable_set(struct inf_tflite_scope *s, uint32_t index, uint32_t real);

// Returns the number of the resource variable called `name`, which is added if it is new.
uint32_t inf_tflite_variable_find(struct inf_tflite_scope *s, const char *name);

// Returns the value of resource variable `number`. Its type and shape are those of `tensor`, the
// result of the operator that reads it.
uint32_t inf_tflite_variable_read(struct inf_tflite_scope *s, uint32_t number,
                                  const struct inf_tflite_tensor *tensor);

// Changes resource variable `number`. While s->import->initial is set, sets its first value
// instead.
void inf_tflite_variable_assign(struct inf_tflite_scope *s, uint32_t number, uint32_t value);

// Adds the outputs of all variables that have an input. `s` is a scope of the first subgraph.
void inf_tflite_variables_finish(struct inf_tflite_scope *s);

#endif
