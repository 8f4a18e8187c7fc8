// SPDX-License-Identifier: Apache-2.0
// What a TensorFlow.js graph model takes and gives, under which names. Written in the model's
// signature, or in the metadata, or nowhere: then placeholders and the ends of the graph must do.
#ifndef INF_BACKENDS_IMPORT_TFJS_SIGNATURE_H
#define INF_BACKENDS_IMPORT_TFJS_SIGNATURE_H

#include "backends/import/tfjs/graph.h"
#include "proto/core/shape.h"

struct inf_tfjs_port {
    const char *name; // the signature's key, or the node's name; the document's
    struct inf_tfjs_ref ref;
    struct inf_shape shape; // as the signature says; of unknown rank where it does not
};

struct inf_tfjs_signature {
    struct inf_tfjs_port inputs[INF_LIMIT_TENSORS];
    uint32_t input_count;
    struct inf_tfjs_port outputs[INF_LIMIT_TENSORS];
    uint32_t output_count;
};

// Fills *signature from the document and the graph, and marks the nodes that outputs hang on as
// reachable. Placeholders among them that the signature forgets become inputs too.
//
// INF_INVALID    a name that is no node, an input that is no placeholder, no output at all.
// INF_EXHAUSTED  more than INF_LIMIT_TENSORS inputs or outputs.
enum inf_code inf_tfjs_signature_read(struct inf_tfjs_signature *signature,
                                      const struct inf_json *document, struct inf_tfjs_graph *graph,
                                      struct inf_error *err) INF_NODISCARD;

#endif
