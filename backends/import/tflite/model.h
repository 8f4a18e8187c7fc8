// SPDX-License-Identifier: Apache-2.0
// A TFLite file as structs: tensors, operators and subgraphs with all indices checked. Nothing is
// copied from the buffers: constants are read when an operator needs them (tensor.h).
#ifndef INF_BACKENDS_IMPORT_TFLITE_MODEL_H
#define INF_BACKENDS_IMPORT_TFLITE_MODEL_H

#include "backends/import/tflite/external.h"
#include "backends/import/tflite/flatbuffer.h"
#include "backends/import/tflite/schema.h"
#include "proto/core/shape.h"

// An operand index that means "absent".
#define INF_TFLITE_ABSENT (-1)

// real = scale * (stored - zero point), with one scale or one for each index of an axis.
struct inf_tflite_quantization {
    uint32_t count;       // number of scales; 0: the tensor is not quantised
    const float *scales;  // finite and not negative
    const int64_t *zeros; // as many as scales
    int32_t axis;
    // Blockwise quantisation: the tensor with the scales, and how many neighbours along the last
    // axis share one; otherwise `block` is 0 and `count` is not.
    int32_t block, block_scales, block_zeros;
};

struct inf_tflite_tensor {
    const char *name;       // "" if the file has none
    int32_t type;           // enum inf_tflite_type, or another number of the schema
    struct inf_shape shape; // without unknown dimensions
    struct inf_shape
        signature;        // with unknown dimensions; of a dynamic tensor, otherwise as `shape`
    struct inf_span data; // borrowed from the file; empty if the tensor is no constant
    struct inf_tflite_quantization quantization;
    struct inf_fb_table sparsity; // absent unless the data are sparse
    bool is_variable;             // keeps its value between runs
};

// A list of tensor indices of a subgraph. Inputs may be INF_TFLITE_ABSENT.
struct inf_tflite_indices {
    const int32_t *items;
    uint32_t count;
};

// How an operator code is called: a builtin or a custom operator.
struct inf_tflite_code {
    int32_t builtin;    // INF_TFLITE_CUSTOM for a custom operator
    const char *custom; // name of the custom operator; "" for builtins
    int32_t version;
};

struct inf_tflite_operator {
    const struct inf_tflite_code *code;
    struct inf_tflite_indices inputs, outputs, intermediates;
    int32_t options_type, options_2_type; // numbers of the unions; 0: absent
    struct inf_fb_table options, options_2;
    struct inf_span custom_options;
};

struct inf_tflite_subgraph {
    const char *name;
    struct inf_tflite_tensor *tensors;
    uint32_t tensor_count;
    struct inf_tflite_operator *operators;
    uint32_t operator_count;
    struct inf_tflite_indices inputs, outputs;
};

// A name that a signature gives to a tensor.
struct inf_tflite_binding {
    const char *name;
    uint32_t tensor;
};

struct inf_tflite_signature {
    const char *key;
    uint32_t subgraph;
    struct inf_tflite_binding *inputs, *outputs;
    uint32_t input_count, output_count;
};

struct inf_tflite_model {
    const char *description;
    struct inf_tflite_code *codes;
    uint32_t code_count;
    struct inf_tflite_subgraph *subgraphs;
    uint32_t subgraph_count; // at least 1
    struct inf_tflite_signature *signatures;
    uint32_t signature_count;
    struct inf_span metadata; // the buffer TFLITE_METADATA, borrowed from the file; empty: none
    struct inf_tflite_external external; // constants in other files
};

// Returns true if the first bytes of a file are those of a TFLite model.
bool inf_tflite_looks_like(struct inf_span beginning);

// Reads the model of `file`. All memory is in `arena`; strings are copied, data are borrowed.
// `files` (NULL: none may be read) is where other files with constants are; it outlives the model.
// The caller calls inf_tflite_model_fini(), also after a failure.
//
// INF_INVALID      malformed; the text names table and field, or tensor or operator.
// INF_UNSUPPORTED  data in other files without `files`, more axes than INF_LIMIT_RANK.
// INF_NOT_FOUND, INF_DENIED  another file is missing, or is outside of the folder.
// INF_EXHAUSTED    a limit of limits.h, or memory.
enum inf_code inf_tflite_model_read(struct inf_tflite_model *model, struct inf_fb_file *file,
                                    const struct inf_tflite_files *files,
                                    struct inf_arena *arena) INF_NODISCARD INF_MAY_BLOCK;

// Frees what a model has outside of its arena.
void inf_tflite_model_fini(struct inf_tflite_model *model);

#endif
