// SPDX-License-Identifier: Apache-2.0
// Lists the unsupported operators of a model with the reason for each.
#include "backends/import/tfjs/missing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/import/common/missing.h"
#include "backends/import/tfjs/lower.h"

#define ATTRIBUTES_MAX 120

static const char text[] = "its regular expressions are RE2's with references to groups";
static const char forest[] = "decision forests come as a program of their own, not as a graph";

const char *inf_tfjs_missing_reason(const char *name)
{
    static const struct {
        const char *name, *reason;
    } rows[] = {
        {"StaticRegexReplace", text},
        {"SimpleMLCreateModelResource", forest},
        {"SimpleMLLoadModelFromPathWithHandle", forest},
        {"SimpleMLInferenceOpWithHandle", forest},
    };
    for (size_t i = 0; i < INF_ARRAY_LENGTH(rows); i++)
        if (strcmp(rows[i].name, name) == 0)
            return rows[i].reason;
    return "no operator that TensorFlow.js converts";
}

static int compare_nodes(const void *a, const void *b)
{
    const struct inf_tfjs_node *left = *(struct inf_tfjs_node *const *)a;
    const struct inf_tfjs_node *right = *(struct inf_tfjs_node *const *)b;
    int order = strcmp(left->op, right->op);
    // Compare addresses. This sorts equal names in the order of the file, because all nodes are in
    // one array.
    return order != 0 ? order : (left > right) - (left < right);
}

// Writes "Foo (3 nodes, first 'a' with {...}): REASON".
static void print_operator(const struct inf_tfjs_node *first, size_t count, char *out, size_t size)
{
    char attributes[ATTRIBUTES_MAX] = "{}", number[48] = "1 node:";
    struct inf_json attr;
    if (inf_json_find(&first->json, "attr", &attr, NULL) == INF_OK && attr.value != NULL)
        inf_json_print(&attr, attributes, sizeof attributes);
    if (count > 1)
        snprintf(number, sizeof number, "%zu nodes, first", count);
    snprintf(out, size, "%.80s (%s '%.80s' with %s): %s", first->op, number, first->name,
             attributes, inf_tfjs_missing_reason(first->op));
}

enum inf_code inf_tfjs_missing_check(struct inf_tfjs_graph *graph,
                                     const struct inf_tfjs_op *(*find_op)(const char *name),
                                     FILE *report, struct inf_error *err)
{
    struct inf_missing missing = {.separator = "; ", .report = report};
    struct inf_tfjs_node **nodes =
        inf_arena_alloc(&graph->arena, (graph->node_count + 1) * sizeof *nodes);
    size_t count = 0;
    if (nodes == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory to check the operators");
    for (uint32_t i = 0; i < graph->node_count; i++)
        if (graph->nodes[i].reachable && find_op(graph->nodes[i].op) == NULL)
            nodes[count++] = &graph->nodes[i];
    if (count > 0)
        qsort(nodes, count, sizeof *nodes, compare_nodes);
    for (size_t i = 0, next; i < count; i = next) {
        char item[512];
        for (next = i + 1; next < count && strcmp(nodes[i]->op, nodes[next]->op) == 0;)
            next++;
        print_operator(nodes[i], next - i, item, sizeof item);
        inf_missing_add(&missing, item);
    }
    return inf_missing_check(&missing, "operators", err);
}
