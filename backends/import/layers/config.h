// SPDX-License-Identifier: Apache-2.0
// The configurations of Keras layers, read by type. If a key is absent or null, *out keeps its
// value, which is the default. Keys may be spelled as in Python ("pool_size") or as in
// TensorFlow.js ("poolSize"); so may values that are words.
#ifndef INF_BACKENDS_IMPORT_LAYERS_CONFIG_H
#define INF_BACKENDS_IMPORT_LAYERS_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "backends/import/common/json.h"
#include "proto/core/shape.h"

// *out = the member `key` of a configuration; its value is NULL if it is absent or null.
enum inf_code inf_layers_find(const struct inf_json *config, const char *key, struct inf_json *out,
                              struct inf_error *err) INF_NODISCARD;

// Returns true if a word equals `name` apart from underscores and capitals: "hardSigmoid" is
// "hard_sigmoid".
bool inf_layers_same_word(const char *word, const char *name);

// *out = an integer from `min` to `max`.
enum inf_code inf_layers_int(const struct inf_json *config, const char *key, int32_t min,
                             int32_t max, int32_t *out, struct inf_error *err) INF_NODISCARD;

// *out = a finite number.
enum inf_code inf_layers_float(const struct inf_json *config, const char *key, float *out,
                               struct inf_error *err) INF_NODISCARD;

// *out = true or false.
enum inf_code inf_layers_bool(const struct inf_json *config, const char *key, bool *out,
                              struct inf_error *err) INF_NODISCARD;

// *out = a word, owned by the document.
enum inf_code inf_layers_text(const struct inf_json *config, const char *key, const char **out,
                              struct inf_error *err) INF_NODISCARD;

// *out = the index of a word in `words`, a list that ends with NULL.
//
// INF_INVALID  it is none of them; the text lists them.
enum inf_code inf_layers_choice(const struct inf_json *config, const char *key,
                                const char *const *words, int32_t *out,
                                struct inf_error *err) INF_NODISCARD;

// The range of the integers of a list.
struct inf_layers_range {
    int32_t min, max;
};

// items[0..count-1] = a list of `count` integers, or one integer for all of them.
enum inf_code inf_layers_ints(const struct inf_json *config, const char *key,
                              struct inf_layers_range range, int32_t *items, uint32_t count,
                              struct inf_error *err) INF_NODISCARD;

// items[0..*count-1] = a list of at most `capacity` integers, or one integer.
enum inf_code inf_layers_int_list(const struct inf_json *config, const char *key,
                                  struct inf_layers_range range, int32_t *items, uint32_t capacity,
                                  uint32_t *count, struct inf_error *err) INF_NODISCARD;

// items[0..*count-1] = a list of at most `capacity` numbers, or one number.
enum inf_code inf_layers_floats(const struct inf_json *config, const char *key, float *items,
                                uint32_t capacity, uint32_t *count,
                                struct inf_error *err) INF_NODISCARD;

// before_after[i] = elements to add or cut before and after axis i of `axes` (1 or 2). The file has
// one number for all sides, one per axis for both of its sides, or pairs.
enum inf_code inf_layers_sides(const struct inf_json *config, const char *key, uint32_t axes,
                               int32_t before_after[2][2], struct inf_error *err) INF_NODISCARD;

// *out = a shape: a list of sizes; null and -1 are unknown sizes.
enum inf_code inf_layers_shape(const struct inf_json *json, struct inf_shape *out,
                               struct inf_error *err) INF_NODISCARD;

#endif
