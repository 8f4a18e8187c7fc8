// SPDX-License-Identifier: Apache-2.0
// The inputs and outputs of a graph model and their names, from the model's signature or its
// metadata. If it has neither, they are the placeholders and the nodes whose value no other node
// uses.
#ifndef INF_BACKENDS_IMPORT_TFJS_SIGNATURE_H
#define INF_BACKENDS_IMPORT_TFJS_SIGNATURE_H

#include "backends/import/tfjs/graph.h"
#include "proto/core/shape.h"

struct inf_tfjs_port {
    const char *name; // key in the signature, or name of the node; owned by the document
    struct inf_tfjs_ref ref;
    struct inf_shape shape; // from the signature; unknown rank if the signature has no shape
};

struct inf_tfjs_signature {
    struct inf_tfjs_port inputs[INF_LIMIT_TENSORS];
    uint32_t input_count;
    struct inf_tfjs_port outputs[INF_LIMIT_TENSORS];
    uint32_t output_count;
};

// Fills *signature and marks the nodes on which outputs depend as reachable. Reachable placeholders
// that the signature does not list become inputs too.
//
// INF_INVALID    a name without a node, an input that is not a placeholder, or no outputs.
// INF_EXHAUSTED  more than INF_LIMIT_TENSORS inputs or outputs.
enum inf_code inf_tfjs_signature_read(struct inf_tfjs_signature *signature,
                                      const struct inf_json *document, struct inf_tfjs_graph *graph,
                                      struct inf_error *err) INF_NODISCARD;

#endif
