// SPDX-License-Identifier: Apache-2.0
// Reads model files and creates graphs. Importers do not trust the files: every index, size and
// name is checked, and weights are copied.
#ifndef INF_BACKENDS_IMPORT_IMPORT_H
#define INF_BACKENDS_IMPORT_IMPORT_H

#include <stdint.h>

#include "backends/base/role.h"
#include "backends/graph/graph.h"
#include "backends/import/common/contents.h"
#include "backends/import/common/import_options.h"

// Metadata of a model file that the graph does not contain.
struct inf_model_info {
    char format[32];       // "tfjs_graph_model", "tfjs_layers_model", "onnx", "tflite"
    char producer[64];     // the program that wrote the file; "" if the file does not say
    uint64_t file_bytes;   // total size of all files read
    uint64_t content_hash; // hash of the bytes of all files (struct inf_tally)
};

// Reads the model file `name`, with its shards and external data, beneath the directory
// `directory_fd`, and lowers it to a verified graph with inferred shapes. Passes are not run. The
// format is recognised by content, not by name. The caller destroys *out_graph; `info` may be NULL.
//
// INF_NOT_FOUND    the file, or a shard that it names, does not exist.
// INF_DENIED       a shard's name leaves the directory.
// INF_INVALID      malformed; the text names node and field, the actual and the expected value.
// INF_UNSUPPORTED  (OPERATOR) unsupported operators. The text names each once, with the number of
// nodes that use it. If there is not enough room, it ends with the number of omitted operators (see
// `report` in inf_import_options). Also returned for unknown formats.
// INF_EXHAUSTED    a limit of limits.h, or memory.
//
// Blocks (reads files). Any thread except the event loop.
enum inf_code inf_model_import(struct inf_graph **out_graph, struct inf_model_info *info,
                               int directory_fd, const char *name,
                               struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Imports a model like inf_model_import(), with import options such as an evaluator for constants.
enum inf_code inf_model_import_with(struct inf_graph **out_graph, struct inf_model_info *info,
                                    int directory_fd, const char *name,
                                    const struct inf_import_options *options,
                                    struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

#endif
