// SPDX-License-Identifier: Apache-2.0
// Converts one case of shared/contrib-ops, a node with recorded inputs and outputs, to an ONNX
// model of that node and to tensors.
#ifndef INF_TESTS_TOOLS_RUN_CONTRIB_CASE_H
#define INF_TESTS_TOOLS_RUN_CONTRIB_CASE_H

#include <jansson.h>

#include "backends/base/blob.h"
#include "backends/base/string_pool.h"
#include "proto/core/shape.h"
#include "proto/core/status.h"
#include "tests/support/models/onnx_writer.h"

// The most inputs or outputs of a case.
#define CONTRIB_TENSORS 24

// One recorded tensor.
struct contrib_tensor {
    int index;            // position among the node's inputs or outputs; 2 is named "i2" or "o2"
    enum inf_dtype dtype; // INF_DTYPE_NONE: a type that inferd's tensors cannot have
    struct inf_shape shape;
    struct inf_blob *data; // NULL if dtype is INF_DTYPE_NONE
};

struct contrib_case {
    struct inf_pb_writer model; // the bytes of the ModelProto
    struct contrib_tensor inputs[CONTRIB_TENSORS], outputs[CONTRIB_TENSORS];
    uint32_t input_count, output_count; // without absent tensors and initialisers
    struct inf_string_pool strings;     // the strings of inputs and outputs, and of the run
};

// Reads a line of cases.jsonl. If `open` is true, the model does not give the sizes of its inputs
// and outputs of rank 2 and more. The caller calls contrib_case_fini(), also after a failure.
//
// INF_INVALID      the line is no case, or a tensor has an unknown type or wrong size.
// INF_UNSUPPORTED  the case has too many tensors, or a tensor has too many dimensions.
// INF_EXHAUSTED
enum inf_code contrib_case_init(struct contrib_case *subject, const json_t *line, bool open,
                                struct inf_error *err) INF_NODISCARD;

// Frees what a case holds.
void contrib_case_fini(struct contrib_case *subject);

#endif
