// SPDX-License-Identifier: Apache-2.0
// Prints a graph as text, one line per value or node.
#include "backends/graph/print.h"

#include <stdlib.h>
#include <string.h>

// Writes `text` in quotes. Bytes that are not printable ASCII become \xNN, so that a name stays on
// one line.
static void print_text(const char *text, FILE *file)
{
    fputc('"', file);
    for (const unsigned char *at = (const unsigned char *)text; *at != '\0'; at++) {
        if (*at == '"' || *at == '\\')
            fprintf(file, "\\%c", *at);
        else if (*at < 0x20 || *at >= 0x7f)
            fprintf(file, "\\x%02x", *at);
        else
            fputc(*at, file);
    }
    fputc('"', file);
}

static void print_type(const struct inf_value *value, FILE *file)
{
    char text[INF_SHAPE_TEXT_SIZE];
    fprintf(file, "%s %s", inf_dtype_name(value->dtype), inf_shape_print(&value->shape, text));
}

static void print_list(const uint32_t *values, uint32_t count, FILE *file)
{
    for (uint32_t i = 0; i < count; i++) {
        fputs(i > 0 ? ", " : "", file);
        if (values[i] == INF_VALUE_NONE)
            fputc('_', file);
        else
            fprintf(file, "%%%u", values[i]);
    }
}

static void print_ints(const struct inf_ints *ints, FILE *file)
{
    fputc('[', file);
    for (int32_t i = 0; i < ints->count; i++)
        fprintf(file, "%s%lld", i > 0 ? "," : "", (long long)ints->values[i]);
    fputc(']', file);
}

// Returns the size of an attribute in bytes.
static size_t attr_size(const struct inf_attr_info *attr)
{
    switch (attr->type) {
    case INF_ATTR_TYPE_BOOL:
        return sizeof(bool);
    case INF_ATTR_TYPE_FLOAT:
        return sizeof(float);
    case INF_ATTR_TYPE_INTS:
        return sizeof(struct inf_ints);
    default:
        return sizeof(int32_t);
    }
}

static void print_attr(const struct inf_attr_info *attr, const unsigned char *at, FILE *file)
{
    int32_t integer = *at;
    float real;
    struct inf_ints ints;
    fprintf(file, "%s=", attr->name);
    switch (attr->type) {
    case INF_ATTR_TYPE_INT:
        memcpy(&integer, at, sizeof integer);
        fprintf(file, "%d", integer);
        break;
    case INF_ATTR_TYPE_BOOL:
        fputs(integer != 0 ? "true" : "false", file);
        break;
    case INF_ATTR_TYPE_FLOAT:
        memcpy(&real, at, sizeof real);
        fprintf(file, "%.9g", (double)real);
        break;
    case INF_ATTR_TYPE_ENUM:
        memcpy(&integer, at, sizeof integer);
        fputs(integer >= 0 && integer <= attr->max ? attr->names[integer] : "?", file);
        break;
    case INF_ATTR_TYPE_INTS:
        memcpy(&ints, at, sizeof ints);
        print_ints(&ints, file);
        break;
    }
}

// Prints the attributes that differ from their default.
static void print_attrs(const struct inf_node *node, FILE *file)
{
    union inf_attrs initial;
    inf_attrs_init(&initial, node->op);
    const struct inf_op_info *info = inf_op_info(node->op);
    const char *before = " {";
    for (size_t i = 0; i < info->attr_count; i++) {
        const struct inf_attr_info *attr = &info->attrs[i];
        const unsigned char *at = (const unsigned char *)&node->attrs + attr->offset;
        if (memcmp(at, (unsigned char *)&initial + attr->offset, attr_size(attr)) == 0)
            continue;
        fputs(before, file);
        print_attr(attr, at, file);
        before = ", ";
    }
    if (before[0] == ',')
        fputc('}', file);
}

static void print_node(const struct inf_graph *graph, const struct inf_node *node, FILE *file)
{
    print_list(node->outputs, node->output_count, file);
    fprintf(file, " = %s(", inf_op_info(node->op)->name);
    print_list(node->inputs, node->input_count, file);
    fputc(')', file);
    print_attrs(node, file);
    for (uint32_t i = 0; i < node->output_count; i++) {
        fputs(i > 0 ? ", " : " ", file);
        print_type(&graph->values[node->outputs[i]], file);
    }
    fputc(' ', file);
    print_text(node->name, file);
    fputc('\n', file);
}

// Prints one line for each constant that a node or an output uses.
static void print_consts(const struct inf_graph *graph, FILE *file)
{
    bool *used = calloc((size_t)graph->value_count + 1, sizeof *used);
    if (used == NULL)
        return;
    for (uint32_t i = 0; i < graph->node_count; i++)
        for (uint32_t j = 0; j < graph->nodes[i].input_count; j++)
            if (graph->nodes[i].inputs[j] != INF_VALUE_NONE)
                used[graph->nodes[i].inputs[j]] = true;
    for (uint32_t i = 0; i < graph->output_count; i++)
        used[graph->outputs[i].value] = true;
    for (uint32_t i = 0; i < graph->value_count; i++) {
        if (!used[i] || graph->values[i].data == NULL)
            continue;
        fprintf(file, "const  %%%u ", i);
        print_text(graph->values[i].name, file);
        fputc(' ', file);
        print_type(&graph->values[i], file);
        fputc('\n', file);
    }
    free(used);
}

// Subgraphs follow the graph, each after a line with its number. For example, "graph 0.1" is the
// second subgraph of the first subgraph.
static void print_graph(const struct inf_graph *graph, const char *number, FILE *file)
{
    for (uint32_t i = 0; i < graph->input_count; i++) {
        fprintf(file, "input  %%%u ", graph->inputs[i].value);
        print_text(graph->inputs[i].name, file);
        fputc(' ', file);
        print_type(&graph->values[graph->inputs[i].value], file);
        fputc('\n', file);
    }
    print_consts(graph, file);
    for (uint32_t i = 0; i < graph->node_count; i++)
        print_node(graph, &graph->nodes[i], file);
    for (uint32_t i = 0; i < graph->output_count; i++) {
        fprintf(file, "output %%%u ", graph->outputs[i].value);
        print_text(graph->outputs[i].name, file);
        fputc('\n', file);
    }
    for (uint32_t i = 0; i < graph->subgraph_count; i++) {
        char inner[64];
        snprintf(inner, sizeof inner, "%s%s%u", number, *number != '\0' ? "." : "", i);
        fprintf(file, "graph %s\n", inner);
        print_graph(graph->subgraphs[i], inner, file);
    }
}

void inf_graph_print(const struct inf_graph *graph, FILE *file)
{
    print_graph(graph, "", file);
}
