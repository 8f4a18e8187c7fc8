// SPDX-License-Identifier: Apache-2.0
// Captures for subgraphs. A subgraph cannot use values of the graph around it, but an ONNX body may
// use any name from outside. The first use of an outside value adds it to the node's list of
// captured values and to the subgraph as a new input; later uses find that input. Example:
//     y = If(c) { then: a + b } { else: a * 2 }    captured: [a, b]
// becomes BRANCH(c, a, b) with subgraphs (a, b) -> a + b and (a, b) -> a * 2.
// All subgraphs of a node share one list, so the second subgraph may add values that the first does
// not use. Therefore the inputs are added to all subgraphs at the end, when the list is complete.
#include "backends/import/onnx/capture.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

void inf_onnx_captured_fini(struct inf_onnx_captured *captured)
{
    free(captured->values);
    *captured = (struct inf_onnx_captured){0};
}

// Returns the index of an outside value in the list of captured values. Appends the value if it is
// new.
static uint32_t find_place(struct inf_onnx_scope *s, struct inf_onnx_captured *captured,
                           uint32_t value)
{
    for (uint32_t i = 0; i < captured->count; i++)
        if (captured->values[i] == value)
            return i;
    // The limit counts one more input, because the condition is an input of the node too.
    if (captured->count + 1 >= INF_LIMIT_NODE_INPUTS) {
        inf_build_fail(&s->b, INF_EXHAUSTED, "a branch takes more than %u values from outside",
                       INF_LIMIT_NODE_INPUTS - 1);
        return 0;
    }
    if (captured->count == captured->capacity) {
        uint32_t wanted = captured->capacity * 2 + 16;
        uint32_t *grown = realloc(captured->values, wanted * sizeof *grown);
        if (grown == NULL) {
            inf_build_fail(&s->b, INF_EXHAUSTED, "no memory for what a branch takes");
            return 0;
        }
        captured->values = grown;
        captured->capacity = wanted;
    }
    captured->values[captured->count] = value;
    return captured->count++;
}

// Grows capture->own, which has one entry for each captured value, to the length of the node's list
// of captured values.
static bool make_room(struct inf_onnx_scope *s, struct inf_onnx_capture *capture)
{
    uint32_t wanted = capture->captured->capacity;
    if (wanted <= capture->own_capacity)
        return true;
    uint32_t *grown = realloc(capture->own, wanted * sizeof *grown);
    if (grown == NULL) {
        inf_build_fail(&s->b, INF_EXHAUSTED, "no memory for what a branch takes");
        return false;
    }
    for (uint32_t i = capture->own_capacity; i < wanted; i++)
        grown[i] = INF_VALUE_NONE;
    capture->own = grown;
    capture->own_capacity = wanted;
    return true;
}

static void add_subgraph_value(struct inf_onnx_scope *s, struct inf_onnx_capture *capture,
                               uint32_t place)
{
    const struct inf_value *outer = &capture->outer->values[capture->captured->values[place]];
    s->b.code = inf_graph_add_value(capture->graph, outer->name, outer->dtype, &outer->shape,
                                    &capture->own[place], s->b.err);
}

uint32_t inf_onnx_capture(struct inf_onnx_scope *s, struct inf_onnx_capture *capture,
                          uint32_t value)
{
    assert(capture->outer != NULL && capture->captured != NULL);
    const struct inf_value *outer = &capture->outer->values[value];
    uint32_t own = INF_VALUE_NONE;
    if (!inf_build_ok(&s->b))
        return own;
    if (outer->data != NULL) {
        s->b.code = inf_graph_add_const(capture->graph, outer->name, outer->dtype, &outer->shape,
                                        inf_blob_ref(outer->data), &own, s->b.err);
        return own;
    }
    uint32_t place = find_place(s, capture->captured, value);
    if (!inf_build_ok(&s->b) || !make_room(s, capture))
        return own;
    if (capture->own[place] == INF_VALUE_NONE)
        add_subgraph_value(s, capture, place);
    return capture->own[place];
}

void inf_onnx_capture_end(struct inf_onnx_scope *s, struct inf_onnx_capture *capture)
{
    char name[16];
    if (inf_build_ok(&s->b) && capture->captured->count > 0)
        (void)make_room(s, capture);
    for (uint32_t i = 0; inf_build_ok(&s->b) && i < capture->captured->count; i++) {
        if (capture->own[i] == INF_VALUE_NONE)
            add_subgraph_value(s, capture, i);
        snprintf(name, sizeof name, "%u", i);
        if (inf_build_ok(&s->b))
            s->b.code = inf_graph_add_input(capture->graph, name, capture->own[i], s->b.err);
    }
}

void inf_onnx_capture_fini(struct inf_onnx_capture *capture)
{
    free(capture->own);
    inf_graph_destroy(&capture->graph);
    *capture = (struct inf_onnx_capture){0};
}
