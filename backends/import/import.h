// SPDX-License-Identifier: Apache-2.0
// Model files to graphs. Importers trust nothing in the files: every index, size and name is
// checked, and weights are copied.
#ifndef INF_BACKENDS_IMPORT_IMPORT_H
#define INF_BACKENDS_IMPORT_IMPORT_H

#include <stdint.h>
#include <stdio.h>

#include "backends/base/role.h"
#include "backends/graph/graph.h"
#include "backends/graph/pass.h"

// Everything about a model that its file says and the graph does not.
struct inf_model_info {
    char format[32];       // "tfjs_graph_model", "tfjs_layers_model", "onnx"
    char producer[64];     // what wrote the file, "" where it does not say
    uint64_t file_bytes;   // all files read
    uint64_t content_hash; // FNV-1a over the bytes of all files, in the order read
};

// Reads the model file `name` (its shards and side files too) beneath the directory `directory_fd`
// and lowers it to a graph whose shapes are inferred and which is verified. Passes are not run.
// The format is chosen by content, not by name. *out_graph is the caller's to destroy; `info` may
// be NULL.
//
// INF_NOT_FOUND    the file, or a shard it names, does not exist.
// INF_DENIED       a shard's name leaves the directory.
// INF_INVALID      malformed: the text names node and field, what it has and what was wanted.
// INF_UNSUPPORTED  (OPERATOR) operators that are not built; the text names each once, with how many
//                  nodes use it, as far as there is room (see `report` below), and the number of
//                  the rest. Also formats that are not known.
// INF_EXHAUSTED    a limit of limits.h, or memory.
//
// Blocks (reads files). Any thread but the loop.
enum inf_code inf_model_import(struct inf_graph **out_graph, struct inf_model_info *info,
                               int directory_fd, const char *name,
                               struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// An input that is a constant from the beginning: the graph does not ask for it.
struct inf_bound_input {
    const char *name;
    enum inf_dtype dtype;
    struct inf_shape shape;
    struct inf_blob *data; // the caller's reference
};

// How to import. All zero is a good default.
struct inf_import_options {
    // NULL, or what computes constants while the file is read: axes and shapes that other nodes
    // make, and conditions of branches. Models that need none of it do without.
    const struct inf_evaluator *evaluator;
    const struct inf_bound_input *bound; // ONNX only
    uint32_t bound_count;
    // NULL, or where the operators that a refused model lacks are written, a line each, all of them
    // up to INF_LIMIT_REPORTED_OPERATORS: an error's text may have no room for all.
    FILE *report;
};

// As inf_model_import(), with options.
enum inf_code inf_model_import_with(struct inf_graph **out_graph, struct inf_model_info *info,
                                    int directory_fd, const char *name,
                                    const struct inf_import_options *options,
                                    struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

#endif
