// SPDX-License-Identifier: Apache-2.0
// Collects the reports about the nodes of a model, and writes them as a trace in the Trace Event
// Format.
#include "client/inferctl/text/node_list.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/inferctl/text/json_value.h"

static void add_node(void *context, const inferd_node *node)
{
    struct node_list *list = context;
    if (list->count == list->capacity) {
        list->capacity = list->capacity * 2 + 64;
        list->nodes = json_value_must(realloc(list->nodes, list->capacity * sizeof *list->nodes));
    }
    list->nodes[list->count++] = *node;
}

int node_list_collect(struct node_list *list, inferd_client *client,
                      const inferd_inspect_request *request)
{
    struct inferd_error err;
    if (inferd_inspect(client, request, add_node, list, &err) != 0)
        return command_failed(&err);
    return EXIT_OK;
}

void node_list_fini(struct node_list *list)
{
    free(list->nodes);
    *list = (struct node_list){0};
}

uint64_t node_list_total_ns(const struct node_list *list)
{
    uint64_t total_ns = 0;
    for (size_t i = 0; i < list->count; i++)
        total_ns += list->nodes[i].time_ns;
    return total_ns;
}

// Returns the number of the node's device in the trace: the index of the first node in the list
// that runs on the same device.
static int device_number(const struct node_list *list, const inferd_node *node)
{
    size_t i = 0;
    while (strcmp(list->nodes[i].device, node->device) != 0)
        i++;
    return (int)i;
}

static json_t *make_event(const struct node_list *list, const inferd_node *node)
{
    json_t *event = json_value_must(json_object()), *details = json_value_must(json_object());
    json_object_set_new(details, "node", json_value_text(node->name));
    json_object_set_new(details, "kernel", json_value_text(node->kernel));
    json_object_set_new(details, "inputs", json_value_text(node->inputs));
    json_object_set_new(details, "output", json_value_text(node->shape));
    json_object_set_new(details, "multiply_adds", json_value_whole((int64_t)node->macs));
    json_object_set_new(details, "output_bytes", json_value_whole((int64_t)node->bytes));
    json_object_set_new(event, "name", json_value_text(node->op));
    json_object_set_new(event, "cat", json_value_text("node"));
    json_object_set_new(event, "ph", json_value_text("X"));
    json_object_set_new(event, "ts", json_value_real((double)node->start_ns / 1e3));
    json_object_set_new(event, "dur", json_value_real((double)node->time_ns / 1e3));
    json_object_set_new(event, "pid", json_value_whole(1));
    json_object_set_new(event, "tid", json_value_whole(device_number(list, node)));
    json_object_set_new(event, "args", details);
    return event;
}

// Makes the trace event that gives a name to one line of the trace, or to the whole trace.
static json_t *make_name(const char *what, const char *name, int line)
{
    json_t *event = json_value_must(json_object()), *details = json_value_must(json_object());
    json_object_set_new(details, "name", json_value_text(name));
    json_object_set_new(event, "name", json_value_text(what));
    json_object_set_new(event, "ph", json_value_text("M"));
    json_object_set_new(event, "pid", json_value_whole(1));
    json_object_set_new(event, "tid", json_value_whole(line));
    json_object_set_new(event, "args", details);
    return event;
}

int node_list_trace(const struct node_list *list, const char *model, const char *path)
{
    json_t *events = json_value_must(json_array()), *trace = json_value_must(json_object());
    json_array_append_new(events, make_name("process_name", model, 0));
    for (size_t i = 0; i < list->count; i++) {
        const inferd_node *node = &list->nodes[i];
        if (node->kernel[0] == '\0')
            continue; // the node is fused into another node
        if (device_number(list, node) == (int)i)
            json_array_append_new(events, make_name("thread_name", node->device, (int)i));
        json_array_append_new(events, make_event(list, node));
    }
    json_object_set_new(trace, "traceEvents", events);
    json_object_set_new(trace, "displayTimeUnit", json_value_text("ns"));
    int failed = json_dump_file(trace, path, JSON_INDENT(1));
    json_decref(trace);
    return failed == 0 ? EXIT_OK : command_say(EXIT_FILE, "'%s': %s", path, strerror(errno));
}
