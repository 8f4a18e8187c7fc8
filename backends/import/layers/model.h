// SPDX-License-Identifier: Apache-2.0
// The layers of a layers model and their connections, as in the document. Sequential and functional
// models have the same form: layers, calls of layers (a layer that is called twice shares its
// weights), and references from calls to outputs of calls.
#ifndef INF_BACKENDS_IMPORT_LAYERS_MODEL_H
#define INF_BACKENDS_IMPORT_LAYERS_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "backends/base/arena.h"
#include "backends/import/common/json.h"

struct inf_layers_class;

// A reference to tensor `tensor` of call `call` of layer `layer`. All three are indices in the
// model.
struct inf_layers_ref {
    uint32_t layer, call, tensor;
    // Keyword under which the call passes the tensor; NULL: passed by position or as "inputs".
    const char *argument;
};

// A list of references, allocated in the arena of the document.
struct inf_layers_refs {
    struct inf_layers_ref *items;
    uint32_t count, capacity;
};

// One call of a layer: the layer, and the tensors on which it is called.
struct inf_layers_call {
    uint32_t layer;
    struct inf_layers_refs inputs;
    struct inf_json arguments; // keyword arguments, an object; no value if there are none
};

// One layer of a model, or a layer that another layer wraps.
struct inf_layers_layer {
    const char *name;
    const char *class_name;
    struct inf_json json; // {"class_name": ..., "config": ...}
    struct inf_json
        // For the implied input of a Sequential model: configuration of the layer that follows it.
        config;
    const struct inf_layers_class *class; // NULL for models and for unsupported classes
    struct inf_layers_model *model;       // set if the layer is a model; otherwise NULL
    struct inf_layers_layer *parts;       // wrapped layers: one or two layers, or cells
    uint32_t part_count;
    uint32_t first_call, call_count; // the layer's calls: a range of the model's `calls`
    uint32_t first_index;            // number that the document gives to the layer's first call
    bool is_input;
};

struct inf_layers_model {
    const char *name;
    struct inf_json config; // configuration of the model
    struct inf_json list;   // the array of layers
    struct inf_layers_layer *layers;
    uint32_t layer_count;
    uint32_t *by_name; // indices of the layers, sorted by name of the layer
    struct inf_layers_call *calls;
    uint32_t call_count;
    struct inf_layers_refs inputs, outputs;
    uint32_t *order; // the calls on which outputs depend, ordered so that inputs come first
    uint32_t order_count;
};

// All models and layers of a model.json. The JSON document, and the struct inf_json from which it
// was read, must outlive it.
struct inf_layers_document {
    struct inf_arena arena; // arena for everything in the document
    struct inf_json topology, json;
    struct inf_layers_model *model;
    uint32_t layer_count; // total number of layers in all models and wrappers
    // Finds how a class of layers is lowered; NULL if the class is not supported. A function
    // pointer, because wrappers lower layers themselves, so that the table of classes depends on
    // this module.
    const struct inf_layers_class *(*find_class)(const char *name);
};

// Reads `document` (model.json). The caller destroys *out_document, which keeps `find_class`.
//
// INF_INVALID    wrong types, a duplicate name, a reference to nothing, or a cycle.
// INF_EXHAUSTED  more than INF_LAYERS_MAX, or memory.
enum inf_code
inf_layers_document_create(struct inf_layers_document **out_document,
                           const struct inf_json *document,
                           const struct inf_layers_class *(*find_class)(const char *name),
                           struct inf_error *err) INF_NODISCARD;

// The largest number of layers in one document. The largest published models have a few thousand.
#define INF_LAYERS_MAX (1u << 16)

// Frees the document. NULL is allowed.
void inf_layers_document_destroy(struct inf_layers_document **document);

// Returns true if `topology`, a modelTopology, belongs to a layers model and not to a graph model.
bool inf_layers_is_topology(const struct inf_json *topology);

#endif
