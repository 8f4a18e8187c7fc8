// SPDX-License-Identifier: Apache-2.0
// Lowers nodes one after the other: looks up their inputs by name, calls the operator's function
// and names its outputs. A call of a model function is replaced by the function's nodes. Functions
// and branches may be nested, so lowering recurses, at most FRAME_DEPTH_MAX deep.
#include "backends/import/onnx/lower.h"

#include <stdlib.h>
#include <string.h>

#include "backends/import/onnx/attr.h"
#include "backends/import/onnx/capture.h"
#include "backends/import/onnx/functions.h"
#include "backends/import/onnx/narrow.h"

// The deepest nesting of functions and branches.
#define FRAME_DEPTH_MAX 24u
// The largest number of nodes lowered in one import. The limit is needed because a function that
// calls another one twice doubles the work at every level.
#define LOWERED_MAX (1u << 18)

uint32_t inf_onnx_lookup(struct inf_onnx_scope *s, const struct inf_onnx_frame *frame,
                         const char *name)
{
    uint32_t value;
    if (inf_onnx_names_find(&frame->names, name, &value)) {
        if (value != INF_ONNX_NOT_BUILT)
            return value;
        inf_build_fail(&s->b, INF_UNSUPPORTED,
                       "takes '%.200s', an output that is not built for its operator", name);
        return INF_VALUE_NONE;
    }
    if (frame->outer == NULL) {
        inf_build_fail(&s->b, INF_INVALID, "takes '%.200s', which nothing before it makes", name);
        return INF_VALUE_NONE;
    }
    // The recursion is as deep as frames (sets of names) are nested.
    value = inf_onnx_lookup(s, frame->outer, name);
    if (frame->capture != NULL && inf_onnx_is_sequence(value)) {
        inf_build_fail(&s->b, INF_UNSUPPORTED, "takes the sequence '%.200s' into a branch or loop",
                       name);
        return INF_VALUE_NONE;
    }
    if (frame->capture == NULL || value == INF_VALUE_NONE)
        return value;
    uint32_t own = inf_onnx_capture(s, frame->capture, inf_onnx_narrow_value(value));
    return inf_onnx_is_narrow(value) ? inf_onnx_narrow_wrap(s, own, inf_onnx_narrow_type(value))
                                     : own;
}

static void name_value(struct inf_onnx_scope *s, struct inf_onnx_frame *frame, const char *name,
                       uint32_t value)
{
    bool known = false;
    if (!inf_build_ok(&s->b))
        return;
    if (!inf_onnx_names_add(&frame->names, name, value, &known))
        inf_build_fail(&s->b, INF_EXHAUSTED, "no memory for names");
    else if (known)
        inf_build_fail(&s->b, INF_INVALID, "makes '%.200s', which is there already", name);
}

void inf_onnx_lower_initializers(struct inf_onnx_scope *s, struct inf_onnx_frame *frame,
                                 const struct inf_onnx_graph *graph)
{
    // Return an initialiser's pages of the file to the system only if the initialiser belongs to
    // the model. A branch may be lowered more than once, so its initialisers must stay in the
    // file's memory.
    bool is_model = frame->outer == NULL && frame->call == NULL;
    if (graph->sparse_count > 0)
        inf_build_fail(&s->b, INF_UNSUPPORTED, "%u sparse initialisers", graph->sparse_count);
    for (uint32_t i = 0; inf_build_ok(&s->b) && i < graph->initializer_count; i++) {
        struct inf_onnx_tensor tensor;
        uint32_t value;
        s->b.code = (is_model ? inf_onnx_tensor_take : inf_onnx_tensor_read)(
            &tensor, s->import->arena, s->import->files, graph->initializers[i],
            inf_shared_strings_pool(s->b.graph->strings), s->b.err);
        if (!inf_build_ok(&s->b))
            inf_blob_unref(&tensor.data);
        else
            s->b.code = inf_graph_add_const(s->b.graph, tensor.name, tensor.dtype, &tensor.shape,
                                            tensor.data, &value, s->b.err);
        if (inf_build_ok(&s->b) && tensor.narrow != 0)
            value = inf_onnx_narrow_wrap(s, value, tensor.narrow);
        if (inf_build_ok(&s->b))
            name_value(s, frame, tensor.name, value);
    }
}

// --- replacing a call by the nodes of the function ---

static void lower_call(struct inf_onnx_scope *s, const struct inf_onnx_function *function)
{
    struct inf_onnx_frame frame = {.caller = s->frame,
                                   .call = s->node,
                                   .function = function,
                                   .opsets = &function->opsets,
                                   .outputs = function->outputs,
                                   .output_count = function->output_count,
                                   .depth = s->frame->depth + 1};
    if (s->node->input_count > function->input_count ||
        s->node->output_count > function->output_count)
        inf_build_fail(&s->b, INF_INVALID, "has %u inputs and %u outputs, its function %u and %u",
                       s->node->input_count, s->node->output_count, function->input_count,
                       function->output_count);
    for (uint32_t i = 0; inf_build_ok(&s->b) && i < function->input_count; i++)
        name_value(s, &frame, function->inputs[i], inf_onnx_input(s, i));
    inf_onnx_lower_nodes(s, &frame, function->nodes, function->node_count);
    for (uint32_t i = 0; inf_build_ok(&s->b) && i < s->output_count; i++)
        if (inf_onnx_wants_output(s, i))
            s->outputs[i] = inf_onnx_lookup(s, &frame, function->outputs[i]);
    // Mark all attributes of the call as used, because ONNX ignores attributes that the function
    // does not use.
    for (uint32_t i = 0; i < s->node->attr_count; i++)
        s->node->attrs[i].used = true;
    inf_onnx_names_fini(&frame.names);
}

// --- lowering one node ---

static int64_t find_opset(const struct inf_onnx_frame *frame, const char *domain)
{
    for (uint32_t i = 0; i < frame->opsets->count; i++)
        if (strcmp(frame->opsets->items[i].domain, domain) == 0)
            return frame->opsets->items[i].version;
    return 1;
}

static void check_counts(struct inf_onnx_scope *s)
{
    uint32_t present = s->input_count;
    while (present > 0 && s->inputs[present - 1] == INF_VALUE_NONE)
        present--;
    if (present > s->op->inputs_max || s->input_count < s->op->inputs_min)
        inf_build_fail(&s->b, INF_INVALID, "has %u inputs, wanted %u to %u", s->input_count,
                       s->op->inputs_min, s->op->inputs_max);
    for (uint32_t i = 0; inf_build_ok(&s->b) && i < s->op->inputs_min; i++)
        if (s->inputs[i] == INF_VALUE_NONE)
            inf_build_fail(&s->b, INF_INVALID, "lacks input %u", i);
}

// Refuses sequences as inputs, unless the operator supports them.
static void check_sequences(struct inf_onnx_scope *s)
{
    for (uint32_t i = 0; inf_build_ok(&s->b) && !s->op->takes_sequences && i < s->input_count; i++)
        if (inf_onnx_is_sequence(s->inputs[i]))
            inf_build_fail(&s->b, INF_UNSUPPORTED,
                           "input %u is a sequence or an empty optional, wanted a tensor", i);
}

// Replaces the handles of narrow inputs by their values, unless the operator takes handles. Returns
// the type of the outputs: a TensorProto.DataType, or 0 if they are not narrow.
static int32_t unwrap_narrow(struct inf_onnx_scope *s)
{
    enum inf_onnx_narrow_use use = s->op->narrow;
    uint32_t first = s->input_count > 0 ? s->inputs[0] : INF_VALUE_NONE;
    bool moves = use == INF_ONNX_NARROW_MOVED || use == INF_ONNX_NARROW_JOINED;
    int32_t type = moves && inf_onnx_is_narrow(first) ? inf_onnx_narrow_type(first) : 0;
    for (uint32_t i = 0; inf_build_ok(&s->b) && i < s->input_count; i++) {
        bool is_narrow = inf_onnx_is_narrow(s->inputs[i]);
        int32_t own = is_narrow ? inf_onnx_narrow_type(s->inputs[i]) : 0;
        bool mixes = use == INF_ONNX_NARROW_JOINED && own != type;
        if ((is_narrow &&
             (use == INF_ONNX_NARROW_REFUSED || (use == INF_ONNX_NARROW_MOVED && i > 0))) ||
            mixes)
            inf_build_fail(&s->b, INF_UNSUPPORTED, "input %u is %s, which it does not take%s", i,
                           is_narrow ? inf_onnx_type_name(own) : "of another type",
                           mixes ? " beside input 0" : "");
        if (use != INF_ONNX_NARROW_HANDLE)
            s->inputs[i] = inf_onnx_narrow_value(s->inputs[i]);
    }
    return type;
}

static void check_attrs(struct inf_onnx_scope *s)
{
    for (uint32_t i = 0; inf_build_ok(&s->b) && i < s->node->attr_count; i++)
        if (!s->node->attrs[i].used)
            inf_build_fail(&s->b, INF_UNSUPPORTED,
                           "attribute '%.80s' is not supported in opset %lld",
                           s->node->attrs[i].name, (long long)s->opset);
}

static void lower_op(struct inf_onnx_scope *s)
{
    check_counts(s);
    check_sequences(s);
    int32_t narrow = inf_build_ok(&s->b) ? unwrap_narrow(s) : 0;
    // Mark this attribute of old versions as used and ignore it. It names inputs that may be
    // overwritten.
    (void)inf_onnx_find_attr(s, "consumed_inputs");
    if (inf_build_ok(&s->b))
        s->op->lower(s);
    for (uint32_t i = 0; inf_build_ok(&s->b) && narrow != 0 && i < s->output_count; i++)
        if (s->outputs[i] != INF_VALUE_NONE)
            s->outputs[i] = inf_onnx_narrow_wrap(s, s->outputs[i], narrow);
    check_attrs(s);
}

// Finds the operands of a node, lowers it and names its outputs.
static void lower_node(struct inf_onnx_scope *s, struct inf_onnx_frame *frame)
{
    struct inf_onnx_node *node = s->node;
    for (uint32_t i = 0; inf_build_ok(&s->b) && i < node->input_count; i++)
        if (*node->inputs[i] != '\0')
            s->inputs[i] = inf_onnx_lookup(s, frame, node->inputs[i]);
    const struct inf_onnx_function *function =
        inf_onnx_function_find(s->import->model, node->domain, node->op, node->overload);
    s->op = s->import->find_op(node->domain, node->op);
    if (function != NULL)
        lower_call(s, function);
    else if (s->op != NULL)
        lower_op(s);
    else
        inf_build_fail(&s->b, INF_UNSUPPORTED, "operator %.80s%s%.80s is not built", node->domain,
                       *node->domain != '\0' ? "::" : "", node->op);
    for (uint32_t i = 0; inf_build_ok(&s->b) && s->lower_rest == NULL && i < node->output_count;
         i++) {
        bool is_built = s->outputs[i] != INF_VALUE_NONE;
        if (inf_onnx_wants_output(s, i))
            name_value(s, frame, node->outputs[i], is_built ? s->outputs[i] : INF_ONNX_NOT_BUILT);
    }
}

// Allocates the arrays for the operands of a node.
static bool make_operands(struct inf_onnx_scope *s)
{
    // Allocate for inputs_min at least, because lowering functions may read any input up to it.
    size_t count = (size_t)s->input_count + s->output_count + 1;
    s->inputs = malloc(count * sizeof *s->inputs);
    if (s->inputs == NULL) {
        inf_build_fail(&s->b, INF_EXHAUSTED, "no memory for its operands");
        return false;
    }
    s->outputs = s->inputs + s->input_count;
    for (size_t i = 0; i < count; i++)
        s->inputs[i] = INF_VALUE_NONE;
    return true;
}

void inf_onnx_lower_nodes(struct inf_onnx_scope *s, struct inf_onnx_frame *frame,
                          struct inf_onnx_node *nodes, uint32_t count)
{
    if (frame->depth > FRAME_DEPTH_MAX)
        inf_build_fail(&s->b, INF_EXHAUSTED, "functions and branches nest more than %u deep",
                       FRAME_DEPTH_MAX);
    for (uint32_t i = 0; inf_build_ok(&s->b) && i < count; i++) {
        struct inf_onnx_scope inner =
            inf_onnx_scope_make(s->import, s->b.graph, frame, &nodes[i], s->b.err);
        inner.opset = find_opset(frame, nodes[i].domain);
        if (++s->import->lowered > LOWERED_MAX)
            inf_build_fail(&inner.b, INF_EXHAUSTED,
                           "more than %u nodes, those of functions included", LOWERED_MAX);
        if (make_operands(&inner))
            lower_node(&inner, frame);
        bool is_done = inner.lower_rest != NULL && inf_build_ok(&inner.b);
        if (is_done)
            inner.lower_rest(&inner, frame, &nodes[i + 1], count - i - 1);
        free(inner.inputs);
        s->b.code = inner.b.code;
        if (is_done)
            return;
    }
}
