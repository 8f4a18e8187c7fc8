// SPDX-License-Identifier: Apache-2.0
// One test of ONNX's backend test data: the ports of its model, and the tensors of one data set.
#ifndef INF_TESTS_TOOLS_RUN_ONNX_CASE_H
#define INF_TESTS_TOOLS_RUN_ONNX_CASE_H

#include "backends/import/common/import_options.h"
#include "backends/import/onnx/proto.h"
#include "backends/import/onnx/tensor.h"

#define ONNX_CASE_PATH_SIZE 4096

// One test: the inputs of its model by name, and one data set.
struct onnx_case {
    const char *name;
    char directory[ONNX_CASE_PATH_SIZE];
    char model[256];
    struct inf_arena arena;
    struct inf_string_pool strings; // the strings of inputs and outputs, and of the run
    struct inf_onnx_port ports[INF_LIMIT_TENSORS]; // the model's inputs, in the order of the file
    uint32_t port_count;
    struct inf_onnx_port *outputs;
    uint32_t output_count;
    // The inputs of one data set. A sequence is several inputs, an optional one or none.
    const char *inputs[INF_LIMIT_TENSORS];
    enum inf_dtype dtypes[INF_LIMIT_TENSORS];
    uint32_t input_count;
    struct inf_sequence_length lengths[INF_LIMIT_TENSORS]; // of sequences and optionals
    uint32_t length_count;
    struct inf_onnx_tensor given[INF_LIMIT_TENSORS];
    bool is_bound[INF_LIMIT_TENSORS];
    bool is_light;
    uint32_t nodes, transposes; // number of nodes and transposes in the graph after the passes
};

// A list of tensors that is being read.
struct onnx_items {
    struct inf_onnx_tensor *tensors;
    uint32_t count, room;
};

// Reads the inputs of the model, in the order of the file, and its outputs.
enum inf_code onnx_case_read_ports(struct onnx_case *test, struct inf_error *err) INF_NODISCARD;

// Reads the inputs of data set `set`, and names the tensors of sequences as the importer does. The
// caller calls onnx_case_drop_set(), also after a failure.
enum inf_code onnx_case_read_set(struct onnx_case *test, unsigned set,
                                 struct inf_error *err) INF_NODISCARD;

// Frees the tensors and strings of the data set.
void onnx_case_drop_set(struct onnx_case *test);

// Appends the tensors of all outputs of data set `set` to `items`. The caller frees them, also
// after a failure.
enum inf_code onnx_case_read_wanted(struct onnx_case *test, unsigned set, struct onnx_items *items,
                                    struct inf_error *err) INF_NODISCARD;

// Sets the type of a tensor to BF16 if the model declares BF16 (`wanted`) and the file has UINT16,
// because old test data stores the bits of BF16 as UINT16.
void onnx_case_correct_type(struct inf_onnx_tensor *tensor, enum inf_dtype wanted);

#endif
