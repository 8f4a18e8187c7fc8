// SPDX-License-Identifier: Apache-2.0
// The interface for lowering functions in layers/ops: one call of a layer whose inputs are values
// of the graph, and functions that add nodes.
#ifndef INF_BACKENDS_IMPORT_LAYERS_LOWER_H
#define INF_BACKENDS_IMPORT_LAYERS_LOWER_H

#include "backends/graph/build/builder.h"
#include "backends/import/layers/config.h"
#include "backends/import/layers/model.h"
#include "backends/import/layers/weights.h"

// A tensor between layers. Its mask, bool [batch, time], is true for valid time steps.
struct inf_layers_tensor {
    uint32_t value;
    uint32_t mask; // INF_VALUE_NONE: all time steps are valid
    // Keyword under which the call passes the tensor; NULL: passed by position or as "inputs".
    const char *argument;
};

// The mask of a tensor that was computed from tensors with different masks. Only layers that need
// the mask refuse such a tensor.
#define INF_LAYERS_MASK_MIXED (UINT32_MAX - 1)

// The output tensors of a layer call, allocated in the arena of the import.
struct inf_layers_result {
    struct inf_layers_tensor *items;
    uint32_t count;
};

// State of the import of one layers model.
struct inf_layers_context {
    struct inf_graph *graph;
    struct inf_arena *arena;
    struct inf_layers_weights *weights;
    // Number of calls and time steps that the import may still lower. The limit is needed because a
    // model that calls a model several times multiplies the calls at each level.
    uint32_t steps_left;
    const atomic_bool *cancelled; // checked between nodes; NULL: not cancellable
};

#define INF_LAYERS_STEPS_MAX (1u << 16)

// One call of a layer that is being lowered.
struct inf_layers_scope {
    struct inf_layers_context *context;
    const struct inf_layers_layer *layer;
    // Possible prefixes for the names of the layer's weights; the first one with a weight is used.
    const char *prefixes[4];
    const struct inf_layers_tensor *inputs;
    uint32_t input_count;
    // The keyword arguments, a JSON object; its value is NULL if there are none.
    struct inf_json arguments;
    struct inf_layers_result result;
};

// How a class of layers is lowered.
struct inf_layers_class {
    const char *name;
    enum inf_code (*lower)(struct inf_layers_scope *scope, struct inf_error *err);
    uint32_t inputs_min, inputs_max;
    int32_t kind;             // parameter of `lower`, which serves several classes
    bool keeps_mask;          // true: the output has the mask of input 0
    const char *const *named; // keywords of tensors that a call may pass, ended by NULL; NULL: none
};

// Lowers a call of `scope->layer`, which is a layer or a model, and fills scope->result.
enum inf_code inf_layers_apply(struct inf_layers_scope *scope, struct inf_error *err) INF_NODISCARD;

// Subtracts `count` from the number of calls and time steps that the import may still lower.
//
// INF_EXHAUSTED  fewer than `count` remain.
enum inf_code inf_layers_spend(struct inf_layers_scope *scope, uint64_t count,
                               struct inf_error *err) INF_NODISCARD;

// Prepends "layer 'NAME' (CLASS)" to an error's text, and returns its code.
enum inf_code inf_layers_error(const struct inf_layers_layer *layer, enum inf_code code,
                               struct inf_error *err);

#define inf_layers_fail(scope, err, code, ...)                                                     \
    (inf_fail((err), (code), __VA_ARGS__), inf_layers_error((scope)->layer, (code), (err)))

// --- adding nodes to the graph ---

// Returns a builder whose nodes have the name of the scope's layer. The builder keeps its first
// failure, so test its `code` before calling anything else that may set `err`.
struct inf_builder inf_layers_builder(const struct inf_layers_scope *scope, struct inf_error *err);

// Adds a node with one output and infers its shape.
enum inf_code inf_layers_emit(struct inf_layers_scope *scope, const struct inf_build_node *node,
                              uint32_t *out_value, struct inf_error *err) INF_NODISCARD;

// Adds a node with `count` outputs and infers their shapes.
enum inf_code inf_layers_emit_many(struct inf_layers_scope *scope,
                                   const struct inf_build_node *node, uint32_t *out_values,
                                   uint32_t count, struct inf_error *err) INF_NODISCARD;

// Adds a unary node that computes kind(x).
enum inf_code inf_layers_unary(struct inf_layers_scope *scope, enum inf_unary_kind kind, uint32_t x,
                               uint32_t *out_value, struct inf_error *err) INF_NODISCARD;

// Adds a binary node that computes kind(x, y).
enum inf_code inf_layers_binary(struct inf_layers_scope *scope, enum inf_binary_kind kind,
                                uint32_t a, uint32_t b, uint32_t *out_value,
                                struct inf_error *err) INF_NODISCARD;

// Adds a binary node that computes kind(x, number).
enum inf_code inf_layers_binary_number(struct inf_layers_scope *scope, enum inf_binary_kind kind,
                                       uint32_t x, float number, uint32_t *out_value,
                                       struct inf_error *err) INF_NODISCARD;

// Adds a cast of x to `dtype`. If x already has that type, sets *out_value to x.
enum inf_code inf_layers_cast(struct inf_layers_scope *scope, enum inf_dtype dtype, uint32_t x,
                              uint32_t *out_value, struct inf_error *err) INF_NODISCARD;

// Adds a transpose of x. `perm` has one element per axis.
enum inf_code inf_layers_transpose(struct inf_layers_scope *scope, uint32_t x, const int64_t *perm,
                                   uint32_t *out_value, struct inf_error *err) INF_NODISCARD;

// Adds a node that inserts an axis of size 1 into x.
enum inf_code inf_layers_expand(struct inf_layers_scope *scope, uint32_t x, int64_t axis,
                                uint32_t *out_value, struct inf_error *err) INF_NODISCARD;

// Adds a node that removes an axis of size 1 from x.
enum inf_code inf_layers_squeeze(struct inf_layers_scope *scope, uint32_t x, int64_t axis,
                                 uint32_t *out_value, struct inf_error *err) INF_NODISCARD;

// Adds a reduction of x with the attributes `how`.
enum inf_code inf_layers_reduce(struct inf_layers_scope *scope, const struct inf_attrs_reduce *how,
                                uint32_t x, uint32_t *out_value,
                                struct inf_error *err) INF_NODISCARD;

// --- constants and sizes ---

// Adds an f32 constant of rank 0.
enum inf_code inf_layers_add_float(struct inf_layers_scope *scope, float number,
                                   uint32_t *out_value, struct inf_error *err) INF_NODISCARD;

// Adds an f32 constant of shape [count].
enum inf_code inf_layers_add_floats(struct inf_layers_scope *scope, const float *numbers,
                                    uint32_t count, uint32_t *out_value,
                                    struct inf_error *err) INF_NODISCARD;

// A size that may depend on the request. It is the size of an axis of a value, times `scale`, plus
// `offset`, or just the number `offset`.
struct inf_layers_dim {
    uint32_t value; // INF_VALUE_NONE: the size is the number `offset`
    int32_t axis;
    int64_t scale, offset;
};

// Returns a size that is a number.
struct inf_layers_dim inf_layers_dim_fixed(int64_t number);

// Returns the size of an axis of a value.
struct inf_layers_dim inf_layers_dim_of(uint32_t value, int32_t axis);

// Adds a list of sizes as a value, which is a constant if all sizes are known.
enum inf_code inf_layers_dims(struct inf_layers_scope *scope, const struct inf_layers_dim *dims,
                              uint32_t count, uint32_t *out_value,
                              struct inf_error *err) INF_NODISCARD;

// Adds a reshape of x. One of the sizes may be the number -1.
enum inf_code inf_layers_reshape(struct inf_layers_scope *scope, uint32_t x,
                                 const struct inf_layers_dim *dims, uint32_t count,
                                 uint32_t *out_value, struct inf_error *err) INF_NODISCARD;

// --- reading the inputs and arguments of the call, and setting its outputs ---

// Returns the shape of a value as far as it is known.
const struct inf_shape *inf_layers_shape_of(const struct inf_layers_scope *scope, uint32_t value);

// Returns the value of input 0.
uint32_t inf_layers_x(const struct inf_layers_scope *scope);

// Returns the input with the keyword `name`. If there is none, returns the input at position
// `place`; NULL if that is absent too.
const struct inf_layers_tensor *inf_layers_argument(const struct inf_layers_scope *scope,
                                                    uint32_t place, const char *name);

// Sets *out to the boolean keyword argument `name`. If the call does not have the argument, *out is
// unchanged.
enum inf_code inf_layers_argument_flag(const struct inf_layers_scope *scope, const char *name,
                                       bool *out, struct inf_error *err) INF_NODISCARD;

// Returns `format` with two texts inserted, in the arena; NULL if there is no memory.
const char *inf_layers_join(struct inf_layers_scope *scope, const char *format, const char *a,
                            const char *b);

// Converts an axis from -rank to rank-1 to *out_axis from 0 to rank-1.
//
// INF_INVALID  input 0 has no such axis.
enum inf_code inf_layers_axis(const struct inf_layers_scope *scope, int32_t axis, int32_t *out_axis,
                              struct inf_error *err) INF_NODISCARD;

// Fails unless input 0 has `rank` axes.
enum inf_code inf_layers_require_rank(const struct inf_layers_scope *scope, int32_t rank,
                                      struct inf_error *err) INF_NODISCARD;

// Makes a weight of the layer a value. Its shape must match `want`, in which unknown sizes match
// any size. If `as` is not NULL, the value gets that shape, which must have the same number of
// elements.
//
// INF_INVALID  there is no such weight, or it has another shape.
enum inf_code inf_layers_weight(struct inf_layers_scope *scope, const char *name,
                                const struct inf_shape *want, const struct inf_shape *as,
                                uint32_t *out_value, struct inf_error *err) INF_NODISCARD;

// Sets *out to the f32 data of a weight, which is found as in inf_layers_weight().
enum inf_code inf_layers_weight_data(struct inf_layers_scope *scope, const char *name,
                                     const struct inf_shape *want, const struct inf_weight **out,
                                     struct inf_error *err) INF_NODISCARD;

// Makes `value` the only output of the call.
enum inf_code inf_layers_finish(struct inf_layers_scope *scope, uint32_t value,
                                struct inf_error *err) INF_NODISCARD;

// Makes `value` the only output of the call, with a mask of valid time steps.
enum inf_code inf_layers_finish_masked(struct inf_layers_scope *scope, uint32_t value,
                                       uint32_t mask, struct inf_error *err) INF_NODISCARD;

// Allocates `count` outputs in scope->result, without masks.
enum inf_code inf_layers_outputs(struct inf_layers_scope *scope, uint32_t count,
                                 struct inf_error *err) INF_NODISCARD;

// --- activation functions ---

// An activation function that is named in a configuration.
struct inf_layers_activation;

// Sets *out to the activation named by the member `key`; `standard` if the member is absent.
//
// INF_UNSUPPORTED  the activation is unknown.
enum inf_code inf_layers_activation_read(const struct inf_layers_scope *scope, const char *key,
                                         const char *standard,
                                         const struct inf_layers_activation **out,
                                         struct inf_error *err) INF_NODISCARD;

// Returns true if the activation is a single unary operator, and sets *out to its kind and
// parameters.
bool inf_layers_activation_is_unary(const struct inf_layers_activation *activation,
                                    struct inf_attrs_unary *out);

// Adds nodes that apply the activation function to x.
enum inf_code inf_layers_activate(struct inf_layers_scope *scope,
                                  const struct inf_layers_activation *activation, uint32_t x,
                                  uint32_t *out_value, struct inf_error *err) INF_NODISCARD;

// Applies the layer's "activation" to `value` and makes the result the only output.
enum inf_code inf_layers_finish_activated(struct inf_layers_scope *scope, uint32_t value,
                                          struct inf_error *err) INF_NODISCARD;

// --- transposing between channels first and channels last ---

// Sets *out to true if the configuration says channels_first.
enum inf_code inf_layers_channels_first(const struct inf_layers_scope *scope, bool *out,
                                        struct inf_error *err) INF_NODISCARD;

// If `first` is set, adds a transpose of x that moves its channels from axis 1 to the end.
// Otherwise sets *out_value to x.
enum inf_code inf_layers_to_last(struct inf_layers_scope *scope, bool first, uint32_t x,
                                 uint32_t *out_value, struct inf_error *err) INF_NODISCARD;

// Adds the transpose that reverses inf_layers_to_last().
enum inf_code inf_layers_from_last(struct inf_layers_scope *scope, bool first, uint32_t x,
                                   uint32_t *out_value, struct inf_error *err) INF_NODISCARD;

#endif
