// SPDX-License-Identifier: Apache-2.0
// Prints a graph and the plan of a device as JSON, for `inferctl inspect`.
#include "daemon/check/inspect.h"

#include <stdio.h>
#include <stdlib.h>

#include "backends/graph/print.h"
#include "proto/core/utf8.h"

json_t *inf_inspect_graph(const struct inf_graph *graph)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    if (file == NULL)
        return NULL;
    inf_graph_print(graph, file);
    json_t *string = fclose(file) == 0 ? json_stringn(text, size) : NULL;
    free(text);
    return string;
}

static const char *name_place(enum inf_place place)
{
    static const char *const names[] = {
        [INF_PLACE_NONE] = "none",     [INF_PLACE_CONST] = "const", [INF_PLACE_INPUT] = "input",
        [INF_PLACE_OUTPUT] = "output", [INF_PLACE_ARENA] = "arena",
    };
    return (size_t)place < INF_ARRAY_LENGTH(names) ? names[place] : "?";
}

// Describes a value as JSON: data type, shape, and where a run stores it, that is, an offset in the
// arena or the index of an input or output.
static json_t *describe_value(const struct inf_graph *graph, const struct inf_plan *plan,
                              uint32_t index)
{
    char shape[INF_SHAPE_TEXT_SIZE];
    const struct inf_value *value = &graph->values[index];
    const struct inf_storage *storage = &plan->storage[index];
    json_t *row =
        json_pack("{s:I,s:s,s:s,s:s,s:I}", "value", (json_int_t)index, "datatype",
                  inf_dtype_name(value->dtype), "shape", inf_shape_print(&value->shape, shape),
                  "place", name_place(storage->place), "bytes", (json_int_t)storage->size_bytes);
    if (storage->place == INF_PLACE_ARENA)
        json_object_set_new(row, "offset", json_integer((json_int_t)storage->offset));
    if (storage->place == INF_PLACE_INPUT || storage->place == INF_PLACE_OUTPUT)
        json_object_set_new(row, "index", json_integer(storage->index));
    return row;
}

// Makes a JSON string from a name in the model file. The name may contain bytes that JSON does not
// allow.
static json_t *describe_name(const char *name)
{
    char text[512];
    snprintf(text, sizeof text, "%s", name);
    inf_text_trim(text);
    inf_text_clean(text);
    return json_string(text);
}

static json_t *describe_step(const struct inf_graph *graph, const struct inf_plan *plan,
                             uint32_t step, const char *device)
{
    const struct inf_node *node = &graph->nodes[plan->steps[step]];
    json_t *outputs = json_array();
    for (uint32_t i = 0; i < node->output_count; i++)
        json_array_append_new(outputs, describe_value(graph, plan, node->outputs[i]));
    return json_pack(
        "{s:I,s:o,s:s,s:s,s:I,s:o}", "step", (json_int_t)step, "node", describe_name(node->name),
        "operator", inf_op_info(node->op)->name, "device", device, "macs",
        (json_int_t)INF_MIN(inf_node_macs(graph, node), (uint64_t)INT64_MAX), "outputs", outputs);
}

json_t *inf_inspect_plan(const struct inf_executable *executable)
{
    const struct inf_graph *graph = inf_executable_planned_graph(executable);
    const struct inf_plan *plan = inf_executable_plan(executable);
    json_t *steps = json_array();
    for (uint32_t s = 0; s < plan->segment_count; s++) {
        const struct inf_plan_segment *segment = &plan->segments[s];
        const char *device = inf_executable_device(executable, segment->device)->name;
        for (uint32_t i = 0; i < segment->count; i++)
            json_array_append_new(steps, describe_step(graph, plan, segment->first + i, device));
    }
    return steps;
}

static void print_output(const json_t *output)
{
    const char *place = json_string_value(json_object_get(output, "place"));
    const json_t *offset = json_object_get(output, "offset"),
                 *index = json_object_get(output, "index");
    printf("  %s %s in %s", json_string_value(json_object_get(output, "datatype")),
           json_string_value(json_object_get(output, "shape")), place);
    if (offset != NULL)
        printf(" at %lld", (long long)json_integer_value(offset));
    if (index != NULL)
        printf(" %lld", (long long)json_integer_value(index));
    printf(", %lld bytes", (long long)json_integer_value(json_object_get(output, "bytes")));
}

void inf_inspect_print_plan(const json_t *plan)
{
    size_t s, i;
    const json_t *step, *output;
    json_array_foreach(plan, s, step)
    {
        printf("%6zu %-8s %-20s %s", s, json_string_value(json_object_get(step, "device")),
               json_string_value(json_object_get(step, "operator")),
               json_string_value(json_object_get(step, "node")));
        json_array_foreach(json_object_get(step, "outputs"), i, output) print_output(output);
        putchar('\n');
    }
}
