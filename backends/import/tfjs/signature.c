// SPDX-License-Identifier: Apache-2.0
// Finds the inputs and outputs of a model: from its signature or, if it has none, the placeholders
// and the nodes whose value no other node uses.
#include "backends/import/tfjs/signature.h"

#include <string.h>

#include "backends/import/tfjs/attr.h"
#include "proto/core/limits.h"

static bool is_placeholder(const struct inf_tfjs_node *node)
{
    return strcmp(node->op, "Placeholder") == 0 || strcmp(node->op, "PlaceholderWithDefault") == 0;
}

// The list of inputs or the list of outputs in a signature, while it is being read.
struct side {
    const char *name; // "inputs", "outputs"
    struct inf_tfjs_port *ports;
    uint32_t *count;
};

static enum inf_code add_port(const struct side *side, const struct inf_tfjs_port *port,
                              struct inf_error *err)
{
    if (strlen(port->name) > INF_LIMIT_TENSOR_NAME)
        return inf_fail(err, INF_EXHAUSTED, "signature: '%.100s...' in %s is longer than %u bytes",
                        port->name, side->name, INF_LIMIT_TENSOR_NAME);
    if (*side->count == INF_LIMIT_TENSORS)
        return inf_fail(err, INF_EXHAUSTED, "signature: more than %u %s", INF_LIMIT_TENSORS,
                        side->name);
    side->ports[(*side->count)++] = *port;
    return INF_OK;
}

// Reads one entry: {"name": "x:0", "tensorShape": {...}}. If it has no name, its key is used.
static enum inf_code read_entry(const struct side *side, const struct inf_json *entry,
                                struct inf_tfjs_graph *graph, struct inf_error *err)
{
    struct inf_tfjs_port port = {.name = entry->key, .shape = {.rank = INF_RANK_UNKNOWN}};
    struct inf_json name, shape;
    const char *text = entry->key;
    char where[INF_JSON_PATH_SIZE];
    INF_TRY(inf_json_find(entry, "name", &name, err));
    if (name.value != NULL)
        INF_TRY(inf_json_name(&name, &text, err));
    for (const char *c = port.name; *c != '\0'; c++)
        if ((unsigned char)*c < ' ' || *c == 127)
            return inf_json_fail(entry, err, "a key without control characters");
    if (*port.name == '\0')
        return inf_json_fail(entry, err, "a key that is not empty");
    INF_TRY(inf_tfjs_graph_resolve(graph, text, &port.ref, inf_json_path(entry, where), err));
    if (graph->nodes[port.ref.node].table != NULL)
        return INF_OK; // skip a resource, which is not a tensor
    INF_TRY(inf_json_find(entry, "tensorShape", &shape, err));
    if (shape.value != NULL)
        INF_TRY(inf_tfjs_shape_read(&shape, &port.shape, err));
    return add_port(side, &port, err);
}

static enum inf_code read_side(const struct side *side, const struct inf_json *signature,
                               struct inf_tfjs_graph *graph, struct inf_error *err)
{
    struct inf_json entries, entry;
    void *iterator = NULL;
    INF_TRY(inf_json_find(signature, side->name, &entries, err));
    if (entries.value == NULL)
        return INF_OK;
    if (!inf_json_is_object(&entries))
        return inf_json_fail(&entries, err, "an object");
    while (inf_json_next(&entries, &iterator, &entry))
        INF_TRY(read_entry(side, &entry, graph, err));
    return INF_OK;
}

// Checks that all inputs are placeholders and that no two are the same.
static enum inf_code check_inputs(const struct inf_tfjs_signature *signature,
                                  const struct inf_tfjs_graph *graph, struct inf_error *err)
{
    for (uint32_t i = 0; i < signature->input_count; i++) {
        const struct inf_tfjs_port *port = &signature->inputs[i];
        const struct inf_tfjs_node *node = &graph->nodes[port->ref.node];
        if (!is_placeholder(node) || port->ref.port != 0)
            return inf_fail(err, INF_INVALID,
                            "signature: input '%s' is output %u of node '%.200s' (%.40s), wanted a "
                            "Placeholder",
                            port->name, port->ref.port, node->name, node->op);
        for (uint32_t j = 0; j < i; j++)
            if (signature->inputs[j].ref.node == port->ref.node)
                return inf_fail(err, INF_INVALID,
                                "signature: inputs '%s' and '%s' are the same node '%.200s'",
                                signature->inputs[j].name, port->name, node->name);
    }
    return INF_OK;
}

static bool is_input(const struct inf_tfjs_signature *signature, uint32_t node)
{
    for (uint32_t i = 0; i < signature->input_count; i++)
        if (signature->inputs[i].ref.node == node)
            return true;
    return false;
}

// Makes every node that computes a value and whose value no node uses an output of the model.
static enum inf_code add_ends(const struct side *outputs, const struct inf_tfjs_graph *graph,
                              struct inf_error *err)
{
    static const char *const no_ends[] = {"Const", "Placeholder", "PlaceholderWithDefault", "NoOp",
                                          "Assert"};
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct inf_tfjs_node *node = &graph->nodes[i];
        bool is_end = !node->used;
        for (size_t j = 0; j < INF_ARRAY_LENGTH(no_ends); j++)
            is_end = is_end && strcmp(node->op, no_ends[j]) != 0;
        struct inf_tfjs_port port = {.name = node->name,
                                     .ref = {.node = i, .output_name = ""},
                                     .shape = {.rank = INF_RANK_UNKNOWN}};
        if (is_end)
            INF_TRY(add_port(outputs, &port, err));
    }
    return INF_OK;
}

// Adds the placeholders on which outputs depend as inputs. Without a signature, adds unused
// placeholders too.
static enum inf_code add_placeholders(const struct side *inputs,
                                      const struct inf_tfjs_signature *signature,
                                      const struct inf_tfjs_graph *graph, struct inf_error *err)
{
    bool any = signature->input_count == 0;
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct inf_tfjs_node *node = &graph->nodes[i];
        if (strcmp(node->op, "Placeholder") != 0 || node->table != NULL ||
            !(any || node->reachable) || is_input(signature, i))
            continue;
        struct inf_tfjs_port port = {.name = node->name,
                                     .ref = {.node = i, .output_name = ""},
                                     .shape = {.rank = INF_RANK_UNKNOWN}};
        INF_TRY(add_port(inputs, &port, err));
    }
    return INF_OK;
}

// Sets *out to the signature object, which is at the top level or in the metadata; its value is
// NULL if there is none.
static enum inf_code find_signature(const struct inf_json *document, struct inf_json *metadata,
                                    struct inf_json *out, struct inf_error *err)
{
    INF_TRY(inf_json_find(document, "signature", out, err));
    if (out->value != NULL)
        return INF_OK;
    INF_TRY(inf_json_find(document, "userDefinedMetadata", metadata, err));
    return inf_json_is_object(metadata) ? inf_json_find(metadata, "signature", out, err) : INF_OK;
}

enum inf_code inf_tfjs_signature_read(struct inf_tfjs_signature *signature,
                                      const struct inf_json *document, struct inf_tfjs_graph *graph,
                                      struct inf_error *err)
{
    struct inf_json metadata, json;
    struct side inputs = {"inputs", signature->inputs, &signature->input_count};
    struct side outputs = {"outputs", signature->outputs, &signature->output_count};
    signature->input_count = 0;
    signature->output_count = 0;
    INF_TRY(find_signature(document, &metadata, &json, err));
    if (json.value != NULL) {
        INF_TRY(read_side(&inputs, &json, graph, err));
        INF_TRY(read_side(&outputs, &json, graph, err));
    }
    INF_TRY(check_inputs(signature, graph, err));
    if (signature->output_count == 0)
        INF_TRY(add_ends(&outputs, graph, err));
    if (signature->output_count == 0)
        return inf_fail(err, INF_INVALID,
                        "the model has no outputs: no signature names one, and "
                        "every node's result goes into another");
    struct inf_tfjs_ref roots[INF_LIMIT_TENSORS];
    for (uint32_t i = 0; i < signature->output_count; i++)
        roots[i] = signature->outputs[i].ref;
    INF_TRY(inf_tfjs_graph_reach(graph, roots, signature->output_count, err));
    return add_placeholders(&inputs, signature, graph, err);
}
