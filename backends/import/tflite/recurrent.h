// SPDX-License-Identifier: Apache-2.0
// What recurrent operators share: sequences, states, activations and products.
#ifndef INF_BACKENDS_IMPORT_TFLITE_RECURRENT_H
#define INF_BACKENDS_IMPORT_TFLITE_RECURRENT_H

#include "backends/import/tflite/scope.h"

// The most time steps that are lowered one by one.
#define INF_TFLITE_STEPS_MAX 1024

// A sequence [time, batch, features] as its time steps [batch, features].
struct inf_tflite_sequence {
    uint32_t *steps; // in the import's arena
    uint32_t count;
};

// Cuts input `index` into time steps. Its axes are [time, batch, features] if `time_major`, else
// [batch, time, features].
struct inf_tflite_sequence inf_tflite_sequence_cut(struct inf_tflite_scope *s, uint32_t index,
                                                   bool time_major);

// Joins time steps to one tensor with the same order of axes.
uint32_t inf_tflite_sequence_join(struct inf_tflite_scope *s,
                                  const struct inf_tflite_sequence *sequence, bool time_major);

// Returns input `index` as f32, converted at import if it is a constant; INF_VALUE_NONE if it is
// absent.
uint32_t inf_tflite_weight(struct inf_tflite_scope *s, uint32_t index);

// Adds x [batch, n] times the transposed weights [m, n], plus `sum` unless that is INF_VALUE_NONE.
uint32_t inf_tflite_project(struct inf_tflite_scope *s, uint32_t x, uint32_t weights, uint32_t sum);

// Adds the activation with number `kind` of the enum ActivationFunctionType.
uint32_t inf_tflite_activate_real(struct inf_tflite_scope *s, uint32_t x, int64_t kind);

// Returns the value of the state in input `index` as real numbers.
uint32_t inf_tflite_state(struct inf_tflite_scope *s, uint32_t index);

// Rounds x to the numbers that a quantised tensor can hold; returns x for other tensors.
uint32_t inf_tflite_round_to(struct inf_tflite_scope *s, uint32_t x,
                             const struct inf_tflite_tensor *tensor);

#endif
