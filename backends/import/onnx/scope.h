// SPDX-License-Identifier: Apache-2.0
// The state of an import, and the node that is being lowered. A lowering function gets a scope. The
// scope's inputs are values of the graph, and `b` adds the nodes that compute the ONNX node. `b`
// keeps the first failure, see graph/build/builder.h.
#ifndef INF_BACKENDS_IMPORT_ONNX_SCOPE_H
#define INF_BACKENDS_IMPORT_ONNX_SCOPE_H

#include "backends/graph/build/builder.h"
#include "backends/import/onnx/names.h"
#include "backends/import/onnx/proto.h"
#include "backends/import/onnx/sequence.h"
#include "backends/import/onnx/tensor.h"

// The most outputs of an operator; nodes with more are refused. Calls of functions may have more.
#define INF_ONNX_OUTPUTS_MAX INF_LIMIT_NODE_INPUTS

// What the name of an output stands for if the operator is lowered without this output. Nothing may
// read it. It is larger than any value and sequence, and less than any handle of a narrow
// tensor.
#define INF_ONNX_NOT_BUILT 0xbfffffffu

struct inf_onnx_blocks_list;
struct inf_onnx_capture;
struct inf_onnx_frame;
struct inf_onnx_scope;

// What an operator does with inputs of narrow types, whose names stand for handles (narrow.h).
enum inf_onnx_narrow_use {
    INF_ONNX_NARROW_REFUSED,
    // The operator moves elements of input 0; its outputs have the same type. It gets the value.
    INF_ONNX_NARROW_MOVED,
    INF_ONNX_NARROW_JOINED, // like MOVED, but all inputs have the type
    INF_ONNX_NARROW_READ,   // the operator gets the values; its outputs have other types
    INF_ONNX_NARROW_HANDLE, // the operator gets the handles
};

// How one ONNX operator is lowered.
struct inf_onnx_op {
    const char *name; // with its domain in front unless that is ai.onnx: "ai.onnx.ml::Scaler"
    void (*lower)(struct inf_onnx_scope *s);
    uint32_t inputs_min, inputs_max, outputs_max;
    int32_t kind;         // parameter of the function, such as an enum inf_unary_kind
    bool takes_sequences; // true: inputs may be sequences; other operators refuse sequences
    enum inf_onnx_narrow_use narrow;
};

// The state of the import of one ONNX model.
struct inf_onnx_import {
    struct inf_graph *graph;
    struct inf_arena *arena; // arena for all data that lives as long as the import
    const struct inf_onnx_model *model;
    const struct inf_onnx_files *files; // external data
    // Finds how an operator is lowered; NULL if the operator is not supported. A function pointer,
    // because operators with bodies lower nodes themselves, so that the operator table depends on
    // the lowering code and not the reverse.
    const struct inf_onnx_op *(*find_op)(const char *domain, const char *name);
    struct inf_fold fold;
    const atomic_bool *cancelled; // checked between nodes; NULL: not cancellable
    uint32_t lowered;             // nodes lowered so far, those of functions and branches included
    struct inf_onnx_sequences sequences;
    // Weights in blocks that products may read packed (ops/block_weights.h), in the arena.
    struct inf_onnx_blocks_list *blocks;
};

// The names that nodes can use. Every graph, branch, loop body and function call has its own frame.
struct inf_onnx_frame {
    // For a branch or loop body: frame around it, whose names it can use too; otherwise NULL.
    const struct inf_onnx_frame *outer;
    // For a function: the frame of the node that calls it; otherwise NULL.
    const struct inf_onnx_frame *caller;
    struct inf_onnx_node *call; // for a function: the node that calls it; otherwise NULL
    const struct inf_onnx_function *function;
    const struct inf_onnx_opsets *opsets;
    // For a body that becomes a subgraph: its captured values; otherwise NULL.
    struct inf_onnx_capture *capture;
    const char *const *outputs; // names of the frame's outputs
    uint32_t output_count;
    struct inf_onnx_names names;
    uint32_t depth; // number of functions, branches and bodies around the frame
};

// One node that is being lowered.
struct inf_onnx_scope {
    struct inf_builder b;
    struct inf_onnx_import *import;
    const struct inf_onnx_frame *frame;
    struct inf_onnx_node *node;
    const struct inf_onnx_op *op;
    int64_t opset; // version of the operator set of the node's domain
    // Graph values; INF_VALUE_NONE for absent inputs; at least op->inputs_max entries.
    uint32_t *inputs;
    uint32_t input_count;
    uint32_t *outputs; // the lowering function sets them; one for each output that the node names
    uint32_t output_count;
    // Set by an If whose branches return tensors of different rank and which therefore has no
    // outputs yet. The function lowers the `count` nodes of `frame` after the If, once in each
    // branch. NULL: the node has set its outputs.
    void (*lower_rest)(struct inf_onnx_scope *s, struct inf_onnx_frame *frame,
                       struct inf_onnx_node *nodes, uint32_t count);
};

// Returns a scope for `node`. Nodes that are added through the scope become part of `graph`.
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
