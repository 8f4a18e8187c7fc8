// SPDX-License-Identifier: Apache-2.0
// Typed access to the configurations of Keras layers. If a key is absent or null, *out keeps its
// value, which is the default. Keys may be spelled as in Python ("pool_size") or as in
// TensorFlow.js ("poolSize"). The same holds for values that are words.
#ifndef INF_BACKENDS_IMPORT_LAYERS_CONFIG_H
#define INF_BACKENDS_IMPORT_LAYERS_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "backends/import/common/json.h"
#include "proto/core/shape.h"

// Sets *out to the member `key` of a configuration. Its value is NULL if the member is absent or
// null.
enum inf_code inf_layers_find(const struct inf_json *config, const char *key, struct inf_json *out,
                              struct inf_error *err) INF_NODISCARD;

// Returns true if a word equals `name` apart from underscores and capitals: "hardSigmoid" is
// "hard_sigmoid".
bool inf_layers_same_word(const char *word, const char *name);

// Sets *out to the integer member `key` of a configuration, which must be from `min` to `max`.
enum inf_code inf_layers_int(const struct inf_json *config, const char *key, int32_t min,
                             int32_t max, int32_t *out, struct inf_error *err) INF_NODISCARD;

// Sets *out to the finite number in member `key` of a configuration.
enum inf_code inf_layers_float(const struct inf_json *config, const char *key, float *out,
                               struct inf_error *err) INF_NODISCARD;

// Sets *out to the boolean member `key` of a configuration.
enum inf_code inf_layers_bool(const struct inf_json *config, const char *key, bool *out,
                              struct inf_error *err) INF_NODISCARD;

// Sets *out to the word (text) in member `key` of a configuration. The document owns the word.
enum inf_code inf_layers_text(const struct inf_json *config, const char *key, const char **out,
                              struct inf_error *err) INF_NODISCARD;

// Sets *out to the index of a word in `words`, a list that ends with NULL.
//
// INF_INVALID  the word is not in the list; the text lists all words.
enum inf_code inf_layers_choice(const struct inf_json *config, const char *key,
                                const char *const *words, int32_t *out,
                                struct inf_error *err) INF_NODISCARD;

// The range that the integers of a list must have.
struct inf_layers_range {
    int32_t min, max;
};

// Sets items[0..count-1] to a list of `count` integers, or all of them to one integer.
enum inf_code inf_layers_ints(const struct inf_json *config, const char *key,
                              struct inf_layers_range range, int32_t *items, uint32_t count,
                              struct inf_error *err) INF_NODISCARD;

// Sets items[0..*count-1] to a list of at most `capacity` integers, or to one integer.
enum inf_code inf_layers_int_list(const struct inf_json *config, const char *key,
                                  struct inf_layers_range range, int32_t *items, uint32_t capacity,
                                  uint32_t *count, struct inf_error *err) INF_NODISCARD;

// Sets items[0..*count-1] to a list of at most `capacity` numbers, or to one number.
enum inf_code inf_layers_floats(const struct inf_json *config, const char *key, float *items,
                                uint32_t capacity, uint32_t *count,
                                struct inf_error *err) INF_NODISCARD;

// Sets before_after[i] to the number of elements to add or cut before and after axis i of `axes` (1
// or 2). The file has one number for everything, one number per axis, or a pair for each axis.
enum inf_code inf_layers_sides(const struct inf_json *config, const char *key, uint32_t axes,
                               int32_t before_after[2][2], struct inf_error *err) INF_NODISCARD;

// Sets *out to a shape, which is a list of sizes; null and -1 are unknown sizes.
enum inf_code inf_layers_shape(const struct inf_json *json, struct inf_shape *out,
                               struct inf_error *err) INF_NODISCARD;

#endif
