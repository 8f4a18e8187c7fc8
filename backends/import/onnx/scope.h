// SPDX-License-Identifier: Apache-2.0
// The state of an import, and the node that is being lowered. A lowering function gets a scope: its
// inputs are values of the graph, and `b` adds the nodes that compute what the ONNX node stands
// for. Failures latch in `b`, see graph/build/builder.h.
#ifndef INF_BACKENDS_IMPORT_ONNX_SCOPE_H
#define INF_BACKENDS_IMPORT_ONNX_SCOPE_H

#include "backends/graph/build/builder.h"
#include "backends/import/onnx/names.h"
#include "backends/import/onnx/proto.h"
#include "backends/import/onnx/sequence.h"
#include "backends/import/onnx/tensor.h"

// Outputs that an operator may have; nodes with more are refused. Calls of functions may have more.
#define INF_ONNX_OUTPUTS_MAX INF_LIMIT_NODE_INPUTS

struct inf_onnx_capture;
struct inf_onnx_frame;
struct inf_onnx_scope;

// How one ONNX operator is lowered.
struct inf_onnx_op {
    const char *name; // with its domain in front unless that is ai.onnx: "ai.onnx.ml::Scaler"
    void (*lower)(struct inf_onnx_scope *s);
    uint32_t inputs_min, inputs_max, outputs_max;
    int32_t kind;         // parameter of the function, such as an enum inf_unary_kind
    bool takes_sequences; // inputs may be sequences; other operators refuse them
};

// The whole import.
struct inf_onnx_import {
    struct inf_graph *graph;
    struct inf_arena *arena; // everything that lives as long as the import
    const struct inf_onnx_model *model;
    const struct inf_onnx_files *files; // external data
    // Finds the row of an operator; NULL if it is not supported. A pointer because operators with
    // bodies lower nodes themselves: the table depends on lowering, so lowering must not name the
    // table.
    const struct inf_onnx_op *(*find_op)(const char *domain, const char *name);
    struct inf_fold fold;
    uint32_t lowered;       // nodes lowered so far, those of functions and branches included
    uint64_t narrow_checks; // nodes searched so far for uses of initialisers below 8 bits
    struct inf_onnx_sequences sequences;
};

// Where names are looked up: the names of a graph, a branch, a loop body or a function.
struct inf_onnx_frame {
    const struct inf_onnx_frame *outer;  // whose names a branch sees as well; NULL: none
    const struct inf_onnx_frame *caller; // of a function: the frame of its node; else NULL
    struct inf_onnx_node *call;          // of a function: its node; else NULL
    const struct inf_onnx_function *function;
    const struct inf_onnx_opsets *opsets;
    struct inf_onnx_capture *capture; // of a branch that becomes a subgraph; else NULL
    const char *const *outputs;       // names of the frame's outputs
    uint32_t output_count;
    struct inf_onnx_names names;
    uint32_t depth; // of frames within frames
};

// One node that is being lowered.
struct inf_onnx_scope {
    struct inf_builder b;
    struct inf_onnx_import *import;
    const struct inf_onnx_frame *frame;
    struct inf_onnx_node *node;
    const struct inf_onnx_op *op;
    int64_t opset;    // version of the operator set of the node's domain
    uint32_t *inputs; // values; INF_VALUE_NONE for absent ones; at least op->inputs_max
    uint32_t input_count;
    uint32_t *outputs; // to be set by the lowering function; as many as the node names
    uint32_t output_count;
    // Set by an If whose branches make tensors of different rank. It has made no outputs; the
    // function lowers the `count` nodes of `frame` after the If, once in each branch. NULL: the
    // node made its outputs.
    void (*lower_rest)(struct inf_onnx_scope *s, struct inf_onnx_frame *frame,
                       struct inf_onnx_node *nodes, uint32_t count);
};

// Makes a scope for `node`, whose nodes are added to `graph`.
struct inf_onnx_scope inf_onnx_scope_make(struct inf_onnx_import *import, struct inf_graph *graph,
                                          const struct inf_onnx_frame *frame,
                                          struct inf_onnx_node *node, struct inf_error *err);

// Returns input `index`; INF_VALUE_NONE if it is absent.
uint32_t inf_onnx_input(const struct inf_onnx_scope *s, uint32_t index);
// Returns true if the node names output `index`.
bool inf_onnx_wants_output(const struct inf_onnx_scope *s, uint32_t index);
// Returns the names of ports as an array in the import's arena; NULL after a failure.
const char *const *inf_onnx_port_names(struct inf_onnx_scope *s, const struct inf_onnx_port *ports,
                                       uint32_t count);

#endif
