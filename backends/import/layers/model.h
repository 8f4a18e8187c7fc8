// SPDX-License-Identifier: Apache-2.0
// The layers of a TensorFlow.js layers model and how they hang together, before anything is known
// about what they compute. Sequential and functional models become the same: layers, calls of them
// (a layer that is called twice shares its weights), and references from calls to outputs of calls.
#ifndef INF_BACKENDS_IMPORT_LAYERS_MODEL_H
#define INF_BACKENDS_IMPORT_LAYERS_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "backends/base/arena.h"
#include "backends/import/common/json.h"

struct inf_layers_class;

// A reference to an output: tensor `tensor` of call `call` of layer `layer`, indices in the model.
struct inf_layers_ref {
    uint32_t layer, call, tensor;
    const char *argument; // what the call gives it as, where that has a name; else NULL
};

// References, the arena's.
struct inf_layers_refs {
    struct inf_layers_ref *items;
    uint32_t count, capacity;
};

// One application of a layer.
struct inf_layers_call {
    uint32_t layer;
    struct inf_layers_refs inputs;
    struct inf_json arguments; // all that is given by name, an object; without a value: nothing is
};

// One layer, also one that another layer wraps.
struct inf_layers_layer {
    const char *name;
    const char *class_name;
    struct inf_json json; // {"class_name": ..., "config": ...}
    struct inf_json
        config; // for an input that Sequential implies, that of the layer it stands before
    const struct inf_layers_class *class; // NULL for models, and for classes that are not built
    struct inf_layers_model *model;       // where the layer is a model; else NULL
    struct inf_layers_layer *parts;       // what it wraps: a layer (or two), cells
    uint32_t part_count;
    uint32_t first_call, call_count; // in the model's calls
    uint32_t first_index;            // what the document calls its first call
    bool is_input;
};

struct inf_layers_model {
    const char *name;
    struct inf_json config; // of the model
    struct inf_json list;   // the array of layers
    struct inf_layers_layer *layers;
    uint32_t layer_count;
    uint32_t *by_name; // layer indices, sorted by name
    struct inf_layers_call *calls;
    uint32_t call_count;
    struct inf_layers_refs inputs, outputs;
    uint32_t *order; // calls that outputs hang on, each after those it takes its inputs from
    uint32_t order_count;
};

// A whole document. The JSON document, and the view it was made from, must outlive it.
struct inf_layers_document {
    struct inf_arena arena; // everything
    struct inf_json topology, json;
    struct inf_layers_model *model;
    uint32_t layer_count; // in all models, and in wrappers
    // Finds the row of a class; NULL if it is not supported. A pointer because wrappers lower
    // layers themselves: the table of classes depends on the reader of models.
    const struct inf_layers_class *(*find_class)(const char *name);
};

// Reads `document` (model.json). The caller destroys *out_document. `find_class` is kept.
//
// INF_INVALID    wrong types, a name twice, references to nothing, a cycle.
// INF_EXHAUSTED  more than INF_LAYERS_MAX, or memory.
enum inf_code
inf_layers_document_create(struct inf_layers_document **out_document,
                           const struct inf_json *document,
                           const struct inf_layers_class *(*find_class)(const char *name),
                           struct inf_error *err) INF_NODISCARD;

// Layers of one document. The largest published ones have some thousand.
#define INF_LAYERS_MAX (1u << 16)

// Frees the document. NULL is fine.
void inf_layers_document_destroy(struct inf_layers_document **document);

// Whether a modelTopology is that of a layers model, and not of a graph model.
bool inf_layers_is_topology(const struct inf_json *topology);

#endif
