// SPDX-License-Identifier: Apache-2.0
// Imports a TFLite model: reads it, checks that all operators and types are supported, and lowers
// the first subgraph with those that it runs.
#include "backends/import/tflite/tflite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/graph/shape/infer.h"
#include "backends/graph/shape/verify.h"
#include "backends/import/common/missing.h"
#include "backends/import/tflite/callees.h"
#include "backends/import/tflite/lower.h"
#include "backends/import/tflite/metadata.h"
#include "backends/import/tflite/op_table.h"
#include "backends/import/tflite/variable.h"
#include "proto/core/limits.h"

// --- unsupported operators and types ---

// A list of names, one entry for each use.
struct names {
    const char **items;
    size_t count, capacity;
};

// The search for unsupported operators and types. Each subgraph is searched once.
struct search {
    struct inf_tflite_import *import;
    struct names operators, types;
    bool *visited;     // by subgraph
    uint32_t *waiting; // numbers of the subgraphs that are to be searched; room for each once
    uint32_t waiting_count;
    struct inf_error *err;
};

static enum inf_code append_name(struct names *names, const char *name, struct inf_error *err)
{
    if (names->count == names->capacity) {
        size_t capacity = 2 * names->capacity + 64;
        const char **items = realloc(names->items, capacity * sizeof *items);
        if (items == NULL)
            return inf_fail(err, INF_EXHAUSTED, "no memory for %zu names", capacity);
        names->items = items;
        names->capacity = capacity;
    }
    names->items[names->count++] = name;
    return INF_OK;
}

static void visit_later(struct search *search, int32_t subgraph)
{
    if (subgraph < 0 || (uint32_t)subgraph >= search->import->model->subgraph_count ||
        search->visited[subgraph])
        return; // lowering refuses a wrong number
    search->visited[subgraph] = true;
    search->waiting[search->waiting_count++] = (uint32_t)subgraph;
}

static const char *name_unknown(struct search *search, const struct inf_tflite_code *code)
{
    char text[96];
    const char *name = inf_tflite_builtin_name(code->builtin);
    if (code->builtin == INF_TFLITE_CUSTOM)
        snprintf(text, sizeof text, "custom operator %.70s", code->custom);
    else if (name != NULL)
        return name;
    else
        snprintf(text, sizeof text, "builtin operator %d", code->builtin);
    name = inf_arena_strdup(search->import->arena, text);
    return name != NULL ? name : "?";
}

static enum inf_code search_operator(struct search *search, const struct inf_tflite_operator *op)
{
    int32_t callees[INF_TFLITE_CALLEES_MAX];
    uint32_t count = inf_tflite_callees(op, callees);
    for (uint32_t i = 0; i < count; i++)
        visit_later(search, callees[i]);
    if (inf_tflite_op_find(op->code) != NULL)
        return INF_OK;
    return append_name(&search->operators, name_unknown(search, op->code), search->err);
}

static enum inf_code search_subgraph(struct search *search,
                                     const struct inf_tflite_subgraph *subgraph)
{
    for (uint32_t i = 0; i < subgraph->operator_count; i++)
        INF_TRY(search_operator(search, &subgraph->operators[i]));
    for (uint32_t i = 0; i < subgraph->tensor_count; i++) {
        int32_t type = subgraph->tensors[i].type;
        struct inf_tflite_type_info info = inf_tflite_type_info(type);
        if (info.dtype == INF_DTYPE_NONE && type != INF_TFLITE_TYPE_COMPLEX64 &&
            type != INF_TFLITE_TYPE_RESOURCE)
            INF_TRY(append_name(&search->types, info.name, search->err));
    }
    return INF_OK;
}

static enum inf_code search_model(struct search *search, uint32_t subgraph)
{
    uint32_t count = search->import->model->subgraph_count;
    search->visited = inf_arena_alloc(search->import->arena, count * sizeof *search->visited);
    search->waiting = inf_arena_alloc(search->import->arena, count * sizeof *search->waiting);
    if (search->visited == NULL || search->waiting == NULL)
        return inf_fail(search->err, INF_EXHAUSTED, "no memory for %u subgraphs", count);
    visit_later(search, (int32_t)subgraph);
    while (search->waiting_count > 0) {
        uint32_t next = search->waiting[--search->waiting_count];
        INF_TRY(search_subgraph(search, &search->import->model->subgraphs[next]));
    }
    return INF_OK;
}

// Fails if the model has unsupported operators or types, and names all of them.
static enum inf_code check_operators(struct inf_tflite_import *import, uint32_t subgraph,
                                     FILE *report, struct inf_error *err)
{
    struct inf_missing missing = {.separator = ", ", .report = report};
    struct search search = {.import = import, .err = err};
    enum inf_code code = search_model(&search, subgraph);
    if (code == INF_OK) {
        inf_missing_add_names(&missing, search.operators.items, search.operators.count, "node");
        inf_missing_add_names(&missing, search.types.items, search.types.count, "tensor");
    }
    free(search.operators.items);
    free(search.types.items);
    bool only_types = search.operators.count == 0;
    return code == INF_OK
               ? inf_missing_check(&missing, only_types ? "tensor types" : "operators", err)
               : code;
}

// --- inputs and outputs ---

// Writes the name of a port to `name`, different from the first `count` names of `ports`.
static void name_port(char name[INF_LIMIT_TENSOR_NAME], const char *kind,
                      const struct inf_tflite_tensor *tensor, uint32_t position,
                      const struct inf_port *ports, uint32_t count)
{
    // Leaves room for a number. A long name is a list of the operators that a converter fused,
    // separated by ";", and the first is kept. Otherwise the name is cut between UTF-8 characters.
    int length = (int)strnlen(tensor->name, INF_LIMIT_TENSOR_NAME - 16);
    if (tensor->name[length] != '\0' && strcspn(tensor->name, ";") < (size_t)length)
        length = (int)strcspn(tensor->name, ";");
    while (length > 0 && ((uint8_t)tensor->name[length] & 0xc0) == 0x80)
        length--;
    if (length == 0)
        snprintf(name, INF_LIMIT_TENSOR_NAME, "%s_%u", kind, position);
    else
        snprintf(name, INF_LIMIT_TENSOR_NAME, "%.*s", length, tensor->name);
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(ports[i].name, name) == 0) {
            snprintf(name, INF_LIMIT_TENSOR_NAME, "%.*s:%u", length, tensor->name, position);
            return;
        }
}

static enum inf_code add_inputs(struct inf_tflite_frame *frame, struct inf_graph *graph,
                                struct inf_error *err)
{
    const struct inf_tflite_subgraph *subgraph = frame->subgraph;
    for (uint32_t i = 0; i < subgraph->inputs.count; i++) {
        const struct inf_tflite_tensor *tensor = &subgraph->tensors[subgraph->inputs.items[i]];
        struct inf_tflite_type_info type = inf_tflite_type_info(tensor->type);
        uint32_t *value = &frame->values[subgraph->inputs.items[i]];
        char name[INF_LIMIT_TENSOR_NAME];
        name_port(name, "input", tensor, i, graph->inputs, graph->input_count);
        if (type.element_bits < 8)
            return inf_fail_reason(err, INF_UNSUPPORTED, INF_REASON_DTYPE_MISMATCH,
                                   "input '%.200s': element type %s", name, type.name);
        if (*value != INF_VALUE_NONE)
            return inf_fail(err, INF_INVALID, "input '%.200s' is there twice", name);
        INF_TRY(inf_graph_add_value(graph, name, type.dtype, &tensor->signature, value, err));
        INF_TRY(inf_graph_add_input(graph, name, *value, err));
    }
    return INF_OK;
}

static enum inf_code add_outputs(struct inf_tflite_import *import, struct inf_tflite_frame *frame,
                                 struct inf_graph *graph, struct inf_error *err)
{
    static const struct inf_tflite_code code = {.builtin = INF_TFLITE_CUSTOM, .custom = "model"};
    static const struct inf_tflite_operator op = {.code = &code};
    const struct inf_tflite_subgraph *subgraph = frame->subgraph;
    struct inf_tflite_scope s = inf_tflite_scope_make(import, frame, graph, &op, err);
    for (uint32_t i = 0; i < subgraph->outputs.count; i++) {
        char name[INF_LIMIT_TENSOR_NAME];
        uint32_t value = inf_tflite_tensor_value(&s, subgraph->outputs.items[i]);
        INF_TRY(s.b.code);
        name_port(name, "output", &subgraph->tensors[subgraph->outputs.items[i]], i, graph->outputs,
                  graph->output_count);
        bool is_output = false;
        for (uint32_t k = 0; k < graph->output_count; k++)
            is_output |= graph->outputs[k].value == value;
        // A node of its own must compute each output.
        if (is_output || graph->values[value].producer == INF_NODE_NONE) {
            struct inf_build_node node =
                inf_build_describe(INF_OP_IDENTITY, value, INF_VALUE_NONE, INF_VALUE_NONE);
            s.b.name = name;
            s.b.fold = NULL;
            value = inf_build_value(&s.b, &node);
            INF_TRY(s.b.code);
        }
        INF_TRY(inf_graph_add_output(graph, name, value, err));
    }
    inf_tflite_variables_finish(&s);
    return s.b.code;
}

// --- the model ---

// Finds the subgraph of a signature.
static enum inf_code find_subgraph(const struct inf_tflite_model *model, const char *signature,
                                   uint32_t *out_subgraph, struct inf_error *err)
{
    char known[256] = "";
    size_t used = 0;
    *out_subgraph = 0;
    if (signature == NULL || *signature == '\0')
        return INF_OK;
    for (uint32_t i = 0; i < model->signature_count; i++) {
        *out_subgraph = model->signatures[i].subgraph;
        if (strcmp(model->signatures[i].key, signature) == 0)
            return INF_OK;
        if (used < sizeof known)
            used += (size_t)snprintf(known + used, sizeof known - used, "%s'%.60s'",
                                     i > 0 ? ", " : "", model->signatures[i].key);
    }
    return inf_fail(err, INF_INVALID, "signature '%.100s' is not in the model, which has %s",
                    signature, model->signature_count > 0 ? known : "none");
}

static enum inf_code lower_model(struct inf_tflite_import *import, uint32_t subgraph,
                                 struct inf_graph *graph, struct inf_error *err)
{
    struct inf_tflite_frame frame;
    INF_TRY(inf_tflite_frame_init(&frame, import, NULL, &import->model->subgraphs[subgraph], err));
    INF_TRY(add_inputs(&frame, graph, err));
    INF_TRY(inf_tflite_lower_subgraph(import, &frame, graph, err));
    INF_TRY(add_outputs(import, &frame, graph, err));
    INF_TRY(inf_shape_infer(graph, err));
    return inf_graph_verify(graph, err);
}

// Makes the description of an imported model, if the caller wants it.
static enum inf_code describe_model(const struct inf_tflite_model *model, uint32_t subgraph,
                                    struct inf_span bytes, const struct inf_import_options *options,
                                    struct inf_error *err)
{
    struct inf_model_description *description;
    if (options == NULL || options->description == NULL)
        return INF_OK;
    INF_TRY(inf_model_description_create(&description, err));
    inf_tflite_describe(description, model, subgraph, bytes);
    *options->description = description;
    return INF_OK;
}

static enum inf_code read_model(struct inf_tflite_import *import, struct inf_tflite_model *model,
                                struct inf_span bytes, const struct inf_tflite_files *files,
                                const struct inf_import_options *options, struct inf_graph *graph,
                                struct inf_error *err)
{
    struct inf_fb_file file;
    uint32_t subgraph;
    inf_fb_file_init(&file, bytes, err);
    INF_TRY(inf_tflite_model_read(model, &file, files, import->arena));
    INF_TRY(find_subgraph(model, options != NULL ? options->signature : NULL, &subgraph, err));
    if (options != NULL && options->contents != NULL)
        inf_tflite_contents_print(options->contents, model);
    INF_TRY(check_operators(import, subgraph, options != NULL ? options->report : NULL, err));
    INF_TRY(lower_model(import, subgraph, graph, err));
    return describe_model(model, subgraph, bytes, options, err);
}

enum inf_code inf_tflite_import(struct inf_graph **out_graph, char producer[64],
                                struct inf_span bytes, const struct inf_tflite_files *files,
                                const struct inf_import_options *options, struct inf_error *err)
{
    struct inf_arena arena = {0};
    struct inf_tflite_model model = {0};
    struct inf_graph *graph;
    struct inf_tflite_import import = {.arena = &arena,
                                       .model = &model,
                                       .find_op = inf_tflite_op_find,
                                       .begin_variable = inf_tflite_variable_begin};
    if (options != NULL) {
        import.fold.evaluator = options->evaluator;
        import.cancelled = options->cancelled;
    }
    INF_TRY(inf_graph_create(&graph, err));
    import.graph = graph;
    enum inf_code code = read_model(&import, &model, bytes, files, options, graph, err);
    if (code == INF_OK) {
        snprintf(producer, 64, "%.63s", model.description);
        *out_graph = graph;
    } else {
        inf_graph_destroy(&graph);
    }
    inf_tflite_model_fini(&model);
    inf_arena_fini(&arena);
    return code;
}
