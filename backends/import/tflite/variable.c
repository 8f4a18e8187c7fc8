// SPDX-License-Identifier: Apache-2.0
// Variables become inputs and outputs of the graph. A session begins with zeros, so that two kinds
// of variables need more than one input:
//
// - A quantised variable is 0 where its bytes are the zero point. Its input and output are f32.
// - A variable with a first value has a second input NAME_set_in, which is 0 in the first request
//   of a session and 1 in all others: value = NAME_set_in ? NAME_in : first value.
#include "backends/import/tflite/variable.h"

#include <stdio.h>
#include <string.h>

#include "backends/graph/build/operators.h"
#include "backends/import/tflite/quantize.h"
#include "backends/import/tflite/tensor.h"

// Room for the endings of a port's name.
#define ENDING_ROOM 16

// Returns the variable of a tensor or the resource `key`, which is added if it is new; NULL after a
// failure.
static struct inf_tflite_variable *obtain_variable(struct inf_tflite_scope *s, int32_t tensor,
                                                   const char *key)
{
    struct inf_tflite_import *import = s->import;
    for (uint32_t i = 0; i < import->variable_count; i++) {
        struct inf_tflite_variable *known = &import->variables[i];
        if (known->tensor == tensor && strcmp(known->key, key) == 0)
            return known;
    }
    if (import->variable_count == INF_ARRAY_LENGTH(import->variables)) {
        inf_build_fail(&s->b, INF_UNSUPPORTED, "the model has more than %zu variables",
                       INF_ARRAY_LENGTH(import->variables));
        return NULL;
    }
    struct inf_tflite_variable *added = &import->variables[import->variable_count++];
    *added = (struct inf_tflite_variable){
        .tensor = tensor, .key = key, .value = INF_VALUE_NONE, .first = INF_VALUE_NONE};
    return added;
}

static void name_port(char name[INF_LIMIT_TENSOR_NAME], const struct inf_tflite_import *import,
                      const struct inf_tflite_variable *variable, const char *ending)
{
    size_t length = strlen(variable->key);
    if (length == 0 || length >= INF_LIMIT_TENSOR_NAME - ENDING_ROOM)
        snprintf(name, INF_LIMIT_TENSOR_NAME, "state_%u%s",
                 (unsigned)(variable - import->variables), ending);
    else
        snprintf(name, INF_LIMIT_TENSOR_NAME, "%s%s", variable->key, ending);
}

// Adds an input of the graph for a variable.
static uint32_t add_port(struct inf_tflite_scope *s, const struct inf_tflite_variable *variable,
                         const char *ending, enum inf_dtype dtype, const struct inf_shape *shape)
{
    char name[INF_LIMIT_TENSOR_NAME];
    uint32_t value = INF_VALUE_NONE;
    name_port(name, s->import, variable, ending);
    if (dtype == INF_DTYPE_NONE)
        inf_build_fail(&s->b, INF_UNSUPPORTED, "variable '%.200s' has an unsupported type",
                       variable->key);
    if (inf_build_ok(&s->b))
        s->b.code = inf_graph_add_value(s->b.graph, name, dtype, shape, &value, s->b.err);
    if (inf_build_ok(&s->b))
        s->b.code = inf_graph_add_input(s->b.graph, name, value, s->b.err);
    return inf_build_ok(&s->b) ? value : INF_VALUE_NONE;
}

// --- variable tensors ---

uint32_t inf_tflite_variable_begin(struct inf_tflite_scope *s, int32_t number)
{
    const struct inf_tflite_tensor *tensor = &s->frame->subgraph->tensors[number];
    bool is_quantized = inf_tflite_tensor_is_quantized(tensor);
    enum inf_dtype dtype = inf_tflite_type_info(tensor->type).dtype;
    if (s->b.graph != s->import->graph || s->frame->outer != NULL)
        return inf_tflite_add_zeros(&s->b, tensor);
    struct inf_tflite_variable *variable = obtain_variable(s, number, tensor->name);
    if (variable == NULL)
        return INF_VALUE_NONE;
    variable->has_port = true;
    uint32_t value =
        add_port(s, variable, "_in", is_quantized ? INF_DTYPE_F32 : dtype, &tensor->shape);
    return is_quantized ? inf_tflite_quantize(&s->b, value, tensor) : value;
}

void inf_tflite_variable_set(struct inf_tflite_scope *s, uint32_t index, uint32_t real)
{
    const struct inf_tflite_tensor *tensor = inf_tflite_input_tensor(s, index);
    if (tensor == NULL || !tensor->is_variable || !inf_build_ok(&s->b))
        return;
    int32_t number = s->op->inputs.items[index];
    bool is_quantized = inf_tflite_tensor_is_quantized(tensor);
    s->frame->values[number] = is_quantized ? inf_tflite_quantize(&s->b, real, tensor) : real;
    s->frame->reals[number] = real;
}

// --- resource variables ---

uint32_t inf_tflite_variable_find(struct inf_tflite_scope *s, const char *name)
{
    const struct inf_tflite_variable *variable = obtain_variable(s, INF_TFLITE_ABSENT, name);
    return variable != NULL ? (uint32_t)(variable - s->import->variables) : 0;
}

uint32_t inf_tflite_variable_read(struct inf_tflite_scope *s, uint32_t number,
                                  const struct inf_tflite_tensor *tensor)
{
    struct inf_tflite_variable *variable = &s->import->variables[number];
    enum inf_dtype dtype = inf_tflite_type_info(tensor->type).dtype;
    if (variable->value != INF_VALUE_NONE || !inf_build_ok(&s->b))
        return variable->value;
    variable->has_port = true;
    variable->value = add_port(s, variable, "_in", dtype, &tensor->signature);
    if (variable->first == INF_VALUE_NONE || !inf_build_ok(&s->b))
        return variable->value;
    variable->has_flag = true;
    uint32_t flag = add_port(s, variable, "_set_in", INF_DTYPE_F32, &(struct inf_shape){0});
    uint32_t is_set = inf_build_compare(&s->b, INF_COMPARE_NOT_EQUAL, flag,
                                        inf_build_scalar(&s->b, INF_DTYPE_F32, 0));
    variable->value = inf_build_select(&s->b, is_set, variable->value, variable->first);
    return variable->value;
}

void inf_tflite_variable_assign(struct inf_tflite_scope *s, uint32_t number, uint32_t value)
{
    struct inf_tflite_variable *variable = &s->import->variables[number];
    if (!s->import->initial)
        variable->value = value;
    else if (inf_build_is_const(&s->b, value))
        variable->first = value;
    else
        inf_build_fail(&s->b, INF_UNSUPPORTED, "the first value of variable '%.200s' is computed",
                       variable->key);
}

// --- outputs ---

static void add_output(struct inf_tflite_scope *s, const struct inf_tflite_variable *variable,
                       const char *ending, uint32_t value)
{
    char name[INF_LIMIT_TENSOR_NAME];
    struct inf_build_node node =
        inf_build_describe(INF_OP_IDENTITY, value, INF_VALUE_NONE, INF_VALUE_NONE);
    name_port(name, s->import, variable, ending);
    s->b.name = name;
    s->b.fold = NULL; // a node must compute every output
    value = inf_build_value(&s->b, &node);
    if (inf_build_ok(&s->b))
        s->b.code = inf_graph_add_output(s->b.graph, name, value, s->b.err);
}

void inf_tflite_variables_finish(struct inf_tflite_scope *s)
{
    for (uint32_t i = 0; inf_build_ok(&s->b) && i < s->import->variable_count; i++) {
        const struct inf_tflite_variable *variable = &s->import->variables[i];
        if (!variable->has_port)
            continue;
        uint32_t value = variable->value;
        if (variable->tensor != INF_TFLITE_ABSENT)
            value = inf_tflite_tensor_real(s, variable->tensor);
        add_output(s, variable, "_out", value);
        if (variable->has_flag)
            add_output(s, variable, "_set_out", inf_build_scalar(&s->b, INF_DTYPE_F32, 1));
    }
}
