// SPDX-License-Identifier: Apache-2.0
// Resource variables. A handle is no tensor of the graph: the frame has the number of its variable
// in place of a value.
#include "backends/import/tflite/variable.h"

#include "backends/import/tflite/callees.h"
#include "backends/import/tflite/lower.h"
#include "backends/import/tflite/op_table.h"

// Handles are lowered in the graph of the model only, because a branch or loop has no variables.
static void check_graph(struct inf_tflite_scope *s)
{
    if (s->b.graph != s->import->graph)
        inf_build_fail(&s->b, INF_UNSUPPORTED, "is in a branch or loop");
}

// Returns the number of the variable whose handle is input 0.
static uint32_t find_variable(struct inf_tflite_scope *s)
{
    uint32_t number = s->frame->handles[s->op->inputs.items[0]];
    check_graph(s);
    if (number == INF_VALUE_NONE)
        inf_build_fail(&s->b, INF_INVALID, "its input 0 is no handle");
    return number;
}

static void lower_handle(struct inf_tflite_scope *s)
{
    const char *name = inf_fb_string(&s->op->options, 1, "shared_name", s->import->arena);
    check_graph(s);
    if (inf_build_ok(&s->b))
        s->frame->handles[s->op->outputs.items[0]] = inf_tflite_variable_find(s, name);
}

static void lower_read(struct inf_tflite_scope *s)
{
    uint32_t number = find_variable(s);
    if (inf_build_ok(&s->b))
        s->outputs[0] = inf_tflite_variable_read(s, number, inf_tflite_output_tensor(s, 0));
}

static void lower_assign(struct inf_tflite_scope *s)
{
    uint32_t number = find_variable(s), value = inf_tflite_stored(s, 1);
    if (inf_build_ok(&s->b))
        inf_tflite_variable_assign(s, number, value);
}

// The subgraph of CALL_ONCE runs before the first request only: it sets first values.
static void lower_call_once(struct inf_tflite_scope *s)
{
    int32_t callees[INF_TFLITE_CALLEES_MAX];
    (void)inf_tflite_callees(s->op, callees);
    s->import->initial = true;
    inf_tflite_lower_inline(s, callees[0], NULL, 0, NULL, 0);
    s->import->initial = false;
}

static const struct inf_tflite_op ops[] = {
    {INF_TFLITE_VAR_HANDLE, NULL, lower_handle, 0, 0, 1, INF_TFLITE_MODE_STORED,
     INF_TFLITE_OPTIONS_VAR_HANDLE, 0},
    {INF_TFLITE_READ_VARIABLE, NULL, lower_read, 1, 1, 1, INF_TFLITE_MODE_STORED, 0, 0},
    {INF_TFLITE_ASSIGN_VARIABLE, NULL, lower_assign, 2, 2, 0, INF_TFLITE_MODE_STORED, 0, 0},
    {INF_TFLITE_CALL_ONCE, NULL, lower_call_once, 0, 0, 0, INF_TFLITE_MODE_STORED,
     INF_TFLITE_OPTIONS_CALL_ONCE, 0},
};

const struct inf_tflite_op_table inf_tflite_ops_variable = {ops, INF_ARRAY_LENGTH(ops)};
