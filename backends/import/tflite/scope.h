// SPDX-License-Identifier: Apache-2.0
// The interface for lowering functions in tflite/ops: one operator whose inputs are values of the
// graph, and functions that add nodes. `b` keeps the first failure, see graph/build/builder.h.
//
// Quantised operators are lowered as float operators: the inputs are dequantised, and the outputs
// are quantised when the function has returned. The pass `quantize` turns this pattern into
// operators on bytes. A lowering function therefore handles floats only.
#ifndef INF_BACKENDS_IMPORT_TFLITE_SCOPE_H
#define INF_BACKENDS_IMPORT_TFLITE_SCOPE_H

#include "backends/graph/build/builder.h"
#include "backends/import/tflite/model.h"

struct inf_tflite_scope;

// What a quantised operator computes on.
enum inf_tflite_mode {
    // Real numbers: inputs are dequantised.
    INF_TFLITE_MODE_REAL,
    // Stored integers, if all quantised inputs and outputs have the same scale: the operator moves
    // or compares elements. Otherwise as INF_TFLITE_MODE_REAL.
    INF_TFLITE_MODE_MOVE,
    // One element at a time: an operator from 8 bits to quantised output becomes a table lookup.
    // The function must treat its input element by element, whatever its shape.
    INF_TFLITE_MODE_TABLE,
    // Stored integers: the function handles quantisation itself.
    INF_TFLITE_MODE_STORED,
};

// How one operator is lowered.
struct inf_tflite_op {
    int32_t builtin;    // enum inf_tflite_builtin
    const char *custom; // name of a custom operator, NULL for builtins
    void (*lower)(struct inf_tflite_scope *s);
    uint32_t inputs_min, inputs_max, outputs_max;
    enum inf_tflite_mode mode;
    enum inf_tflite_options options; // type of the options that the function reads, or NONE
    int32_t kind;                    // parameter of the function, such as an enum inf_unary_kind
    bool has_gaps; // any input but the first may be absent; the function checks what it needs
};

// The most variables of a model, each of which is an input and an output of the graph.
#define INF_TFLITE_VARIABLES_MAX (INF_LIMIT_TENSORS / 2)

// A tensor of the first subgraph, or a resource, that keeps its value between runs.
struct inf_tflite_variable {
    int32_t tensor;  // INF_TFLITE_ABSENT for a resource
    const char *key; // name of the tensor or resource
    // of a resource: its value now and in the first run; INF_VALUE_NONE until they are known
    uint32_t value, first;
    bool has_port, has_flag; // it has an input for its value, and one that says whether that is set
};

// The whole import.
struct inf_tflite_import {
    struct inf_graph *graph; // of the model; branches and loops have graphs of their own
    const struct inf_tflite_model *model;
    struct inf_arena *arena; // for all data that live as long as the import
    // Finds the row of an operator; NULL if the operator is not supported. A function pointer,
    // because operators with subgraphs lower operators themselves, so that the table depends on the
    // lowering code and not the reverse.
    const struct inf_tflite_op *(*find_op)(const struct inf_tflite_code *code);
    // Makes the value that a variable tensor has before an operator changes it. A function pointer
    // for the same reason.
    uint32_t (*begin_variable)(struct inf_tflite_scope *s, int32_t number);
    struct inf_fold fold;
    const atomic_bool *cancelled; // checked between nodes; NULL: not cancellable
    uint64_t node_total;          // nodes made so far
    uint64_t lowered;             // operators lowered so far, those of subgraphs included
    struct inf_tflite_variable variables[INF_TFLITE_VARIABLES_MAX];
    uint32_t variable_count;
    bool initial; // the subgraph of a CALL_ONCE is being lowered
};

// The values of the tensors of a subgraph that is being lowered.
struct inf_tflite_frame {
    const struct inf_tflite_frame *outer; // frame of the operator that runs this subgraph, or NULL
    const struct inf_tflite_subgraph *subgraph;
    uint32_t *values; // by tensor; INF_VALUE_NONE until an operator makes it
    uint32_t *reals;  // dequantised forms; INF_VALUE_NONE until an operator needs one
    // imaginary parts of complex tensors, whose real parts are in `values`; otherwise
    // INF_VALUE_NONE
    uint32_t *imaginary;
    uint32_t *handles; // numbers of the variables of resource tensors; otherwise INF_VALUE_NONE
    uint32_t depth;    // number of frames outside of this one
};

// One operator that is being lowered.
struct inf_tflite_scope {
    struct inf_builder b;
    struct inf_tflite_import *import;
    struct inf_tflite_frame *frame;
    const struct inf_tflite_operator *op;
    const struct inf_tflite_op *row;
    uint32_t outputs[INF_LIMIT_TENSORS]; // the lowering function sets them
    bool as_stored;                      // inf_tflite_data() returns stored integers
    uint32_t replace; // for a table: the value that stands for input 0, else INF_VALUE_NONE
};

// --- operands ---

// Returns true if input `index` is present.
bool inf_tflite_has_input(const struct inf_tflite_scope *s, uint32_t index);
// Returns the tensor of input `index`; NULL if it is absent.
const struct inf_tflite_tensor *inf_tflite_input_tensor(const struct inf_tflite_scope *s,
                                                        uint32_t index);
// Returns the tensor of output `index`, which must exist.
const struct inf_tflite_tensor *inf_tflite_output_tensor(const struct inf_tflite_scope *s,
                                                         uint32_t index);
// Returns input `index` as it is stored; INF_VALUE_NONE if it is absent.
uint32_t inf_tflite_stored(struct inf_tflite_scope *s, uint32_t index);
// Returns input `index` as real numbers: dequantised, or converted from 16-bit floats. Integers
// without scales stay integers. INF_VALUE_NONE if it is absent.
uint32_t inf_tflite_real(struct inf_tflite_scope *s, uint32_t index);
// Returns a tensor of the frame's subgraph as real numbers.
uint32_t inf_tflite_tensor_real(struct inf_tflite_scope *s, int32_t tensor);
// Returns input `index` as the mode of the operator says: stored or real.
uint32_t inf_tflite_data(struct inf_tflite_scope *s, uint32_t index);
// Returns input `index`, a list of integers, as i32.
uint32_t inf_tflite_list(struct inf_tflite_scope *s, uint32_t index);
// Returns the stored value of a tensor of the frame's subgraph. Latches INF_INVALID if nothing has
// made it yet.
uint32_t inf_tflite_tensor_value(struct inf_tflite_scope *s, int32_t tensor);
// Makes `value` the value of a tensor of the frame's subgraph, which must have none yet.
void inf_tflite_bind(struct inf_tflite_scope *s, int32_t tensor, uint32_t value);

// Where the operand of a product goes: axis i of the result is axis perm[i] of the tensor.
struct inf_tflite_layout {
    int32_t rank;
    int64_t perm[INF_LIMIT_RANK];
};

// Returns input `index`, the weights of a product with input `data`, as real numbers with permuted
// axes. Weights of a quantised product stay bytes behind a dequantize node, other quantised
// constants are converted to f32.
uint32_t inf_tflite_weights(struct inf_tflite_scope *s, uint32_t index, uint32_t data,
                            const struct inf_tflite_layout *layout);
// Returns input `index`, the bias of a product of inputs `data` and `weights`, as f32. A quantised
// bias has the product of their scales. INF_VALUE_NONE if it is absent.
uint32_t inf_tflite_bias(struct inf_tflite_scope *s, uint32_t index, uint32_t data,
                         uint32_t weights);

// --- options ---

// Returns an integer, enum or bool option.
int64_t inf_tflite_option(struct inf_tflite_scope *s, enum inf_fb_type type, uint32_t id,
                          const char *field, int64_t fallback);
// Returns an i32 option.
int32_t inf_tflite_option_int(struct inf_tflite_scope *s, uint32_t id, const char *field);
// Returns a bool option.
bool inf_tflite_option_bool(struct inf_tflite_scope *s, uint32_t id, const char *field);
// Returns a float option, which must be finite.
float inf_tflite_option_float(struct inf_tflite_scope *s, uint32_t id, const char *field);
// Returns the element type that an option names.
enum inf_dtype inf_tflite_option_dtype(struct inf_tflite_scope *s, uint32_t id, const char *field,
                                       enum inf_tflite_type fallback);

// Returns an integer of options 2, which must be of that type.
int64_t inf_tflite_option_2_int(struct inf_tflite_scope *s, enum inf_tflite_options_2 type,
                                enum inf_fb_type number, uint32_t id, const char *field);
// Returns a list of i64 of options 2, which must be of that type, with at most INF_LIMIT_RANK * 2
// elements. An absent list is empty.
struct inf_build_ints inf_tflite_option_2_list(struct inf_tflite_scope *s,
                                               enum inf_tflite_options_2 type, uint32_t id,
                                               const char *field);
// Copies the first `count` 32-bit numbers of the options of a custom operator to `words`. The
// options are the bytes of a C structure. Latches INF_INVALID and returns false if they are too
// short.
bool inf_tflite_option_words(struct inf_tflite_scope *s, int32_t *words, size_t count);

// --- results ---

// Stores the bounds of the fused activation that option `id` names; infinite where it cuts nothing.
void inf_tflite_activation_bounds(struct inf_tflite_scope *s, uint32_t id, float *low, float *high);

// Adds the fused activation that option `id` names. For a quantised output 0, an activation that
// cuts nothing off its range is left out.
uint32_t inf_tflite_activate(struct inf_tflite_scope *s, uint32_t value, uint32_t id);

#endif
