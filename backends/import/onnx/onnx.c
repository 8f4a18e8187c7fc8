// SPDX-License-Identifier: Apache-2.0
// Imports an ONNX model: reads it, checks that all operators are supported, and lowers inputs,
// nodes and outputs.
#include "backends/import/onnx/onnx.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/graph/shape/infer.h"
#include "backends/graph/shape/verify.h"
#include "backends/import/common/contents.h"
#include "backends/import/common/missing.h"
#include "backends/import/onnx/functions.h"
#include "backends/import/onnx/hint.h"
#include "backends/import/onnx/list.h"
#include "backends/import/onnx/lower.h"
#include "backends/import/onnx/narrow.h"
#include "backends/import/onnx/op_table.h"

#define FIELD_GRAPH 6 // field number of AttributeProto.g

// --- refusing unsupported operators ---

// The names of unsupported operators that the model uses, one entry for each node.
struct lacking {
    const char **names;
    size_t count, capacity;
    bool certainly;   // true: a missing operator is outside of branches, so every run needs it
    const char *hint; // advice for the first missing operator that has advice; NULL: none
    FILE *all;        // receives the names of all operators; NULL: not wanted
};

// Returns the name of a node's operator, as "DOMAIN::NAME" unless the domain is ai.onnx. Returns
// NULL if there is no memory.
static const char *print_operator(struct inf_arena *arena, const struct inf_onnx_node *node)
{
    size_t size = strlen(node->domain) + strlen(node->op) + sizeof "::";
    char *text = *node->domain != '\0' ? inf_arena_alloc(arena, size) : NULL;
    if (text != NULL)
        snprintf(text, size, "%s::%s", node->domain, node->op);
    return *node->domain != '\0' ? text : node->op;
}

// Prints the name of a node's operator and a newline.
static void print_line(FILE *file, const struct inf_onnx_node *node)
{
    fprintf(file, "%s%s%s\n", node->domain, *node->domain != '\0' ? "::" : "", node->op);
}

static enum inf_code append_operator(struct lacking *lacking, struct inf_arena *arena,
                                     const struct inf_onnx_node *node, struct inf_error *err)
{
    const char *name = print_operator(arena, node);
    if (name == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for names of operators");
    if (lacking->hint == NULL)
        lacking->hint = inf_onnx_find_hint(node->domain, node->op);
    if (lacking->count == lacking->capacity) {
        size_t capacity = 2 * lacking->capacity + 64;
        const char **names = realloc(lacking->names, capacity * sizeof *names);
        if (names == NULL)
            return inf_fail(err, INF_EXHAUSTED, "no memory for %zu names of operators", capacity);
        lacking->names = names;
        lacking->capacity = capacity;
    }
    lacking->names[lacking->count++] = name;
    return INF_OK;
}

struct where {
    uint32_t depth; // nesting depth of the graph that is being searched
    bool in_branch;
};

static enum inf_code find_unsupported(struct lacking *lacking, struct inf_onnx_import *import,
                                      const struct inf_onnx_node *nodes, uint32_t count,
                                      struct where where, struct inf_error *err);

// Searches the graphs that a node has as attributes. Graphs that are nested too deep are skipped,
// because lowering fails for them.
static enum inf_code find_unsupported_in_bodies(struct lacking *lacking,
                                                struct inf_onnx_import *import,
                                                const struct inf_onnx_node *node,
                                                struct where where, struct inf_error *err)
{
    where.depth++;
    where.in_branch |= strcmp(node->op, "If") == 0;
    for (uint32_t i = 0; i < node->attr_count && where.depth <= INF_LIMIT_GRAPH_DEPTH; i++) {
        struct inf_onnx_graph body;
        struct inf_pb_field field;
        if (node->attrs[i].type != INF_ONNX_ATTR_GRAPH)
            continue;
        inf_onnx_field(node->attrs[i].body, FIELD_GRAPH, &field);
        INF_TRY(inf_onnx_graph_read(&body, import->arena, field.bytes, err));
        INF_TRY(find_unsupported(lacking, import, body.nodes, body.node_count, where, err));
    }
    return INF_OK;
}

static enum inf_code find_unsupported(struct lacking *lacking, struct inf_onnx_import *import,
                                      const struct inf_onnx_node *nodes, uint32_t count,
                                      struct where where, struct inf_error *err)
{
    for (uint32_t i = 0; i < count; i++) {
        INF_TRY(find_unsupported_in_bodies(lacking, import, &nodes[i], where, err));
        if (lacking->all != NULL)
            print_line(lacking->all, &nodes[i]);
        if (inf_onnx_op_find(nodes[i].domain, nodes[i].op) != NULL ||
            inf_onnx_function_find(import->model, nodes[i].domain, nodes[i].op, NULL) != NULL)
            continue;
        INF_TRY(append_operator(lacking, import->arena, &nodes[i], err));
        lacking->certainly |= !where.in_branch;
    }
    return INF_OK;
}

// Fails if nodes have unsupported operators, and names all these operators.
static enum inf_code check_operators(struct inf_onnx_import *import,
                                     const struct inf_import_options *options,
                                     struct inf_error *err)
{
    const struct inf_onnx_model *model = import->model;
    struct inf_missing missing = {.separator = ", ",
                                  .report = options != NULL ? options->report : NULL};
    struct lacking lacking = {0};
    if (options != NULL && options->contents != NULL)
        lacking.all = options->contents->operators;
    enum inf_code code = find_unsupported(&lacking, import, model->graph.nodes,
                                          model->graph.node_count, (struct where){0}, err);
    for (uint32_t i = 0; i < model->function_count && code == INF_OK; i++)
        code = find_unsupported(&lacking, import, model->functions[i].nodes,
                                model->functions[i].node_count, (struct where){0}, err);
    if (lacking.certainly)
        inf_missing_add_names(&missing, lacking.names, lacking.count, "node");
    free(lacking.names);
    missing.hint = lacking.hint;
    return code == INF_OK ? inf_missing_check(&missing, "operators", err) : code;
}

// --- adding inputs and outputs ---

static enum inf_code name_value(struct inf_onnx_frame *frame, const char *name, uint32_t value,
                                struct inf_error *err)
{
    bool known = false;
    if (!inf_onnx_names_add(&frame->names, name, value, &known))
        return inf_fail(err, INF_EXHAUSTED, "no memory for names");
    if (known)
        return inf_fail(err, INF_INVALID, "input '%.200s' is there twice", name);
    return INF_OK;
}

// Makes an input of the model a constant, if the caller has given a value for it.
static enum inf_code bind_input(struct inf_onnx_scope *s, struct inf_onnx_frame *frame,
                                const struct inf_onnx_port *port,
                                const struct inf_bound_input *bound)
{
    enum inf_dtype narrow = inf_onnx_narrow_dtype(port->type);
    uint32_t value;
    if (narrow != INF_DTYPE_NONE && narrow != bound->dtype)
        return inf_fail(s->b.err, INF_INVALID, "input '%.200s' is %s, wanted %s", bound->name,
                        inf_dtype_name(bound->dtype), inf_dtype_name(narrow));
    INF_TRY(inf_graph_add_const(s->b.graph, bound->name, bound->dtype, &bound->shape,
                                inf_blob_ref(bound->data), &value, s->b.err));
    if (narrow != INF_DTYPE_NONE)
        value = inf_onnx_narrow_input(s, value, port->type);
    INF_TRY(s->b.code);
    return name_value(frame, bound->name, value, s->b.err);
}

static enum inf_code add_input(struct inf_onnx_scope *s, struct inf_onnx_frame *frame,
                               const struct inf_onnx_port *port)
{
    struct inf_error *err = s->b.err;
    uint32_t value;
    bool is_narrow = inf_onnx_narrow_dtype(port->type) != INF_DTYPE_NONE;
    enum inf_dtype dtype =
        is_narrow ? inf_onnx_narrow_dtype(port->type) : inf_onnx_dtype(port->type);
    if (port->not_tensor != NULL)
        return inf_fail_reason(err, INF_UNSUPPORTED, INF_REASON_OPERATOR,
                               "input '%.200s': is %s, wanted a tensor", port->name,
                               port->not_tensor);
    if (dtype == INF_DTYPE_NONE)
        return inf_fail_reason(err, INF_UNSUPPORTED, INF_REASON_DTYPE_MISMATCH,
                               "input '%.200s': element type %s (%d)", port->name,
                               inf_onnx_type_name(port->type), port->type);
    INF_TRY(inf_graph_add_value(s->b.graph, port->name, dtype, &port->shape, &value, err));
    INF_TRY(inf_graph_add_input(s->b.graph, port->name, value, err));
    if (is_narrow)
        value = inf_onnx_narrow_input(s, value, port->type);
    INF_TRY(s->b.code);
    return name_value(frame, port->name, value, err);
}

// Adds an input that is a tensor, or a constant if the caller has bound it to one.
static enum inf_code add_tensor_input(struct inf_onnx_scope *s, struct inf_onnx_frame *frame,
                                      const struct inf_onnx_port *port,
                                      const struct inf_import_options *options)
{
    for (uint32_t i = 0; options != NULL && i < options->bound_count; i++)
        if (strcmp(options->bound[i].name, port->name) == 0)
            return bind_input(s, frame, port, &options->bound[i]);
    return add_input(s, frame, port);
}

// Returns the number of tensors that the caller gives for an input; -1 if it gives none.
static int64_t find_length(const struct inf_import_options *options, const char *name)
{
    for (uint32_t i = 0; options != NULL && i < options->length_count; i++)
        if (strcmp(options->lengths[i].name, name) == 0)
            return options->lengths[i].count;
    return -1;
}

// Adds the inputs NAME.0, NAME.1 and so on for an input that is a sequence.
static enum inf_code add_sequence_input(struct inf_onnx_scope *s, struct inf_onnx_frame *frame,
                                        const struct inf_onnx_port *port,
                                        const struct inf_import_options *options)
{
    int64_t count = find_length(options, port->name);
    if (count < 0 || count > INF_LIMIT_TENSORS)
        return inf_fail_reason(s->b.err, INF_UNSUPPORTED, INF_REASON_OPERATOR,
                               "input '%.200s': is a sequence, whose length (at most %u) must be "
                               "set by sequence_lengths",
                               port->name, INF_LIMIT_TENSORS);
    if (inf_onnx_narrow_dtype(port->type) != INF_DTYPE_NONE)
        return inf_fail_reason(s->b.err, INF_UNSUPPORTED, INF_REASON_DTYPE_MISMATCH,
                               "input '%.200s': is a sequence of %s, which is not built",
                               port->name, inf_onnx_type_name(port->type));
    uint32_t *values = inf_onnx_list_make(s, (uint32_t)count);
    for (uint32_t i = 0; inf_build_ok(&s->b) && i < count; i++) {
        struct inf_onnx_port item = *port;
        size_t size = strlen(port->name) + sizeof ".4294967295";
        char *name = inf_arena_alloc(s->import->arena, size);
        if (name == NULL)
            return inf_fail(s->b.err, INF_EXHAUSTED, "no memory for names");
        snprintf(name, size, "%s.%u", port->name, i);
        item.name = name;
        INF_TRY(add_tensor_input(s, frame, &item, options));
        if (!inf_onnx_names_find(&frame->names, name, &values[i]))
            return inf_fail(s->b.err, INF_INTERNAL, "input '%.200s' got no value", name);
    }
    uint32_t sequence = inf_onnx_sequence_add(s, values, (uint32_t)count);
    INF_TRY(s->b.code);
    return name_value(frame, port->name, sequence, s->b.err);
}

static enum inf_code add_port(struct inf_onnx_scope *s, struct inf_onnx_frame *frame,
                              const struct inf_onnx_port *port,
                              const struct inf_import_options *options)
{
    if (port->is_optional && find_length(options, port->name) == 0) {
        uint32_t absent = inf_onnx_absent_add(s);
        INF_TRY(s->b.code);
        return name_value(frame, port->name, absent, s->b.err);
    }
    return port->is_sequence && port->not_tensor == NULL
               ? add_sequence_input(s, frame, port, options)
               : add_tensor_input(s, frame, port, options);
}

static enum inf_code add_inputs(struct inf_onnx_scope *s, struct inf_onnx_frame *frame,
                                const struct inf_import_options *options)
{
    const struct inf_onnx_graph *graph = &s->import->model->graph;
    for (uint32_t i = 0; i < graph->input_count; i++) {
        uint32_t ignored;
        // Skip an initialiser, which is a constant. Up to IR version 3, initialisers had to be
        // listed as inputs too.
        if (!inf_onnx_names_find(&frame->names, graph->inputs[i].name, &ignored))
            INF_TRY(add_port(s, frame, &graph->inputs[i], options));
    }
    return INF_OK;
}

// Makes `value` an output called `name`. A node must compute each output, so an output that is an
// input or constant gets an identity node.
static enum inf_code add_output(struct inf_onnx_scope *s, const char *name, uint32_t value)
{
    value = inf_onnx_narrow_value(value);
    if (s->b.graph->values[value].producer == INF_NODE_NONE) {
        uint32_t node;
        INF_TRY(inf_graph_add_node(s->b.graph, INF_OP_IDENTITY, name, "", &value, 1, 1, &node,
                                   s->b.err));
        value = s->b.graph->nodes[node].outputs[0];
        INF_TRY(inf_shape_infer_node(s->b.graph, node, s->b.err));
    }
    return inf_graph_add_output(s->b.graph, name, value, s->b.err);
}

// Makes the tensors of a sequence the outputs NAME.0, NAME.1 and so on. An empty optional has none.
static enum inf_code add_sequence_output(struct inf_onnx_scope *s, const char *name,
                                         uint32_t number)
{
    const struct inf_onnx_sequence *sequence =
        &s->import->sequences.items[number - INF_ONNX_SEQUENCE_FIRST];
    char item[INF_LIMIT_TENSOR_NAME + 16];
    for (uint32_t i = 0; i < sequence->count; i++) {
        if (inf_onnx_is_sequence(sequence->values[i]))
            return inf_fail_reason(s->b.err, INF_UNSUPPORTED, INF_REASON_OPERATOR,
                                   "output '%.200s': is a sequence of sequences", name);
        snprintf(item, sizeof item, "%.*s.%u", (int)INF_LIMIT_TENSOR_NAME, name, i);
        INF_TRY(add_output(s, item, sequence->values[i]));
    }
    return INF_OK;
}

static enum inf_code add_outputs(struct inf_onnx_scope *s, const struct inf_onnx_frame *frame)
{
    const struct inf_onnx_graph *graph = &s->import->model->graph;
    for (uint32_t i = 0; i < graph->output_count; i++) {
        uint32_t value = INF_VALUE_NONE;
        const struct inf_onnx_port *port = &graph->outputs[i];
        if (!inf_onnx_names_find(&frame->names, port->name, &value) || value == INF_VALUE_NONE)
            return inf_fail(s->b.err, INF_INVALID, "output '%.200s': no node makes it", port->name);
        if (value == INF_ONNX_NOT_BUILT)
            return inf_fail(s->b.err, INF_UNSUPPORTED,
                            "output '%.200s': is not built for its operator", port->name);
        if (inf_onnx_is_sequence(value))
            INF_TRY(add_sequence_output(s, port->name, value));
        else
            INF_TRY(add_output(s, port->name, value));
    }
    return INF_OK;
}

// --- importing the model ---

static enum inf_code lower_model(struct inf_onnx_import *import, struct inf_onnx_frame *frame,
                                 const struct inf_import_options *options, struct inf_error *err)
{
    const struct inf_onnx_graph *graph = &import->model->graph;
    struct inf_onnx_node model = {.name = graph->name, .op = "model", .domain = ""};
    struct inf_onnx_scope scope = inf_onnx_scope_make(import, import->graph, frame, &model, err);
    frame->outputs = inf_onnx_port_names(&scope, graph->outputs, graph->output_count);
    frame->output_count = graph->output_count;
    inf_onnx_lower_initializers(&scope, frame, graph);
    INF_TRY(scope.b.code);
    INF_TRY(add_inputs(&scope, frame, options));
    inf_onnx_lower_nodes(&scope, frame, graph->nodes, graph->node_count);
    INF_TRY(scope.b.code);
    INF_TRY(add_outputs(&scope, frame));
    INF_TRY(inf_shape_infer(import->graph, err));
    return inf_graph_verify(import->graph, err);
}

// Prints the version of the format and of each set of operators.
static void print_version(struct inf_file_contents *contents, const struct inf_onnx_model *model)
{
    size_t size = sizeof contents->version, used;
    used = (size_t)snprintf(contents->version, size, "IR %lld", (long long)model->ir_version);
    for (uint32_t i = 0; i < model->opsets.count && used < size; i++) {
        const struct inf_onnx_opset *set = &model->opsets.items[i];
        used +=
            (size_t)snprintf(contents->version + used, size - used, ", %.40s %lld",
                             *set->domain != '\0' ? set->domain : "opset", (long long)set->version);
    }
}

static enum inf_code read_model(struct inf_onnx_import *import, struct inf_onnx_model *model,
                                struct inf_span bytes, const struct inf_import_options *options,
                                struct inf_error *err)
{
    struct inf_onnx_frame frame = {.opsets = &model->opsets};
    INF_TRY(inf_onnx_model_read(model, import->arena, bytes, err));
    INF_TRY(inf_onnx_functions_sort(model, err));
    if (options != NULL && options->contents != NULL)
        print_version(options->contents, model);
    INF_TRY(check_operators(import, options, err));
    enum inf_code code = lower_model(import, &frame, options, err);
    inf_onnx_names_fini(&frame.names);
    return code;
}

enum inf_code inf_onnx_import(struct inf_graph **out_graph, char producer[64],
                              struct inf_span bytes, const struct inf_onnx_files *files,
                              const struct inf_import_options *options, struct inf_error *err)
{
    struct inf_arena arena = {0};
    struct inf_onnx_model model;
    struct inf_onnx_import import = {
        .arena = &arena, .model = &model, .files = files, .find_op = inf_onnx_op_find};
    if (options != NULL) {
        import.fold.evaluator = options->evaluator;
        import.cancelled = options->cancelled;
    }
    INF_TRY(inf_graph_create(&import.graph, err));
    enum inf_code code = read_model(&import, &model, bytes, options, err);
    if (code == INF_OK) {
        snprintf(producer, 64, "%s", model.producer);
        *out_graph = import.graph;
    } else {
        inf_graph_destroy(&import.graph);
    }
    inf_arena_fini(&arena);
    return code;
}
