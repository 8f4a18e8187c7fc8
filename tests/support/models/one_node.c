// SPDX-License-Identifier: Apache-2.0
// Runs a graph of one node on a device, with guarded operands.
#include "tests/support/models/one_node.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/half.h"
#include "backends/graph/shape/infer.h"

// Guard bytes before and after every operand. Kernels may read guards behind inputs but must not
// use the values, which are NaN as floats.
#define GUARD_BYTES 64
#define GUARD       0xff

static void *guarded_alloc(size_t size_bytes)
{
    size_t total = (size_bytes + 3 * GUARD_BYTES - 1) / GUARD_BYTES * GUARD_BYTES;
    unsigned char *memory = aligned_alloc(GUARD_BYTES, total);
    cr_assert_not_null(memory);
    memset(memory, GUARD, total);
    return memory + GUARD_BYTES;
}

static void free_tensor(struct one_tensor *tensor)
{
    if (tensor->fence.memory != NULL)
        fence_fini(&tensor->fence);
    else if (tensor->data != NULL)
        free((unsigned char *)tensor->data - GUARD_BYTES);
    tensor->data = NULL;
}

static void check_guards(const struct one_tensor *tensor, const char *what)
{
    const unsigned char *bytes = tensor->data;
    for (size_t i = 0; i < GUARD_BYTES; i++) {
        cr_assert_eq(bytes[-(ptrdiff_t)i - 1], GUARD, "%s: byte -%zu is written", what, i + 1);
        if (tensor->fence.memory == NULL)
            cr_assert_eq(bytes[tensor->size_bytes + i], GUARD,
                         "%s: byte %zu behind the end is written", what, i);
    }
}

void one_node_init(struct one_node *one, enum inf_op op)
{
    memset(one, 0, sizeof(*one));
    one->op = op;
    one->output_count = 1;
    inf_attrs_init(&one->attrs, op);
}

void one_node_round(struct one_node *one)
{
    for (uint32_t i = 0; i < one->input_count; i++) {
        struct one_tensor *tensor = &one->inputs[i];
        for (size_t k = 0; tensor->dtype == INF_DTYPE_F32 && k < tensor->size_bytes / 4; k++)
            ((float *)tensor->data)[k] =
                inf_half_to_float(inf_half_from_float(((float *)tensor->data)[k]));
    }
}

void one_node_fini(struct one_node *one)
{
    for (uint32_t i = 0; i < one->input_count; i++)
        free_tensor(&one->inputs[i]);
    one_node_drop_outputs(one);
    one->input_count = 0;
}

void one_node_drop_outputs(struct one_node *one)
{
    for (uint32_t i = 0; i < ONE_NODE_OUTPUTS; i++) {
        free_tensor(&one->outputs[i]);
    }
}

void one_node_fence(struct one_node *one)
{
    one->fenced = true;
    for (uint32_t i = 0; i < one->input_count; i++) {
        struct one_tensor *tensor = &one->inputs[i];
        if (tensor->data == NULL)
            continue;
        struct fence fence = {0};
        void *data = fence_bytes(&fence, tensor->size_bytes, GUARD_BYTES, GUARD);
        memcpy(data, tensor->data, tensor->size_bytes);
        free_tensor(tensor);
        tensor->fence = fence;
        tensor->data = data;
    }
}

static struct one_tensor *add_input(struct one_node *one)
{
    cr_assert_lt(one->input_count, ONE_NODE_INPUTS);
    return &one->inputs[one->input_count++];
}

void one_node_input(struct one_node *one, enum inf_dtype dtype, struct inf_shape shape,
                    const void *data)
{
    struct one_tensor *tensor = add_input(one);
    tensor->dtype = dtype;
    tensor->shape = shape;
    cr_assert(inf_shape_bytes(&shape, dtype, &tensor->size_bytes));
    tensor->data = guarded_alloc(tensor->size_bytes);
    if (tensor->size_bytes != 0)
        memcpy(tensor->data, data, tensor->size_bytes);
}

void one_node_const(struct one_node *one, enum inf_dtype dtype, struct inf_shape shape,
                    const void *data)
{
    one_node_input(one, dtype, shape, data);
    one->inputs[one->input_count - 1].constant = true;
}

void one_node_absent(struct one_node *one)
{
    add_input(one)->absent = true;
}

static uint32_t add_value(struct inf_graph *graph, const struct one_tensor *tensor)
{
    uint32_t value = INF_VALUE_NONE;
    enum inf_code code = INF_OK;
    if (tensor->absent)
        return value;
    if (tensor->constant) {
        struct inf_blob *blob = inf_blob_create(tensor->size_bytes);
        cr_assert_not_null(blob);
        if (tensor->size_bytes != 0)
            memcpy(blob->data, tensor->data, tensor->size_bytes);
        code =
            inf_graph_add_const(graph, "const", tensor->dtype, &tensor->shape, blob, &value, NULL);
    } else {
        code = inf_graph_add_value(graph, "x", tensor->dtype, &tensor->shape, &value, NULL);
    }
    cr_assert_eq(code, INF_OK);
    return value;
}

static enum inf_code fill_graph(const struct one_node *one, struct inf_graph *graph,
                                struct inf_error *err)
{
    uint32_t values[ONE_NODE_INPUTS], node;
    for (uint32_t i = 0; i < one->input_count; i++)
        values[i] = add_value(graph, &one->inputs[i]);
    INF_TRY(inf_graph_add_node(graph, one->op, "node", "", values, one->input_count,
                               one->output_count, &node, err));
    graph->nodes[node].attrs = one->attrs;
    return inf_shape_infer(graph, err);
}

enum inf_code one_node_graph(const struct one_node *one, struct inf_graph **out_graph,
                             struct inf_error *err)
{
    struct inf_graph *graph = NULL;
    cr_assert_eq(inf_graph_create(&graph, err), INF_OK);
    enum inf_code code = fill_graph(one, graph, err);
    if (code == INF_OK)
        *out_graph = graph;
    else
        inf_graph_destroy(&graph);
    return code;
}

// Binds every operand of the node: inputs to their memory, outputs to new memory.
static void bind_operands(struct one_node *one, const struct inf_graph *graph,
                          struct inf_binding *bindings)
{
    const struct inf_node *node = &graph->nodes[0];
    for (uint32_t i = 0; i < one->input_count; i++)
        if (!one->inputs[i].absent)
            bindings[node->inputs[i]].host = one->inputs[i].data;
    one_node_drop_outputs(one);
    for (uint32_t i = 0; i < one->output_count; i++) {
        const struct inf_value *value = &graph->values[node->outputs[i]];
        struct one_tensor *output = &one->outputs[i];
        output->dtype = value->dtype;
        output->shape = value->shape;
        cr_assert(inf_shape_bytes(&value->shape, value->dtype, &output->size_bytes));
        output->data = one->fenced
                           ? fence_bytes(&output->fence, output->size_bytes, GUARD_BYTES, GUARD)
                           : guarded_alloc(output->size_bytes);
        bindings[node->outputs[i]].host = output->data;
    }
}

// Copies an operand to a guarded buffer of the device, for devices with their own memory.
static void copy_in(struct inf_device *device, struct inf_binding *binding, size_t size_bytes)
{
    struct inf_error err = {0};
    size_t total = (size_bytes + 3 * GUARD_BYTES - 1) / GUARD_BYTES * GUARD_BYTES;
    cr_assert_eq(inf_buffer_alloc(&binding->buffer, device, total + 256, INF_BUFFER_STAGING, &err),
                 INF_OK, "%s", err.text);
    // Choose an offset that leaves room for the guard bytes before the operand and is aligned as
    // the device requires.
    size_t alignment = inf_device_info(device)->alignment;
    binding->offset = (GUARD_BYTES + alignment - 1) / alignment * alignment;
    memcpy((char *)inf_buffer_host(binding->buffer) + binding->offset - GUARD_BYTES,
           (char *)binding->host - GUARD_BYTES, total);
    binding->host = NULL;
}

// Copies an operand back from the device. The guard behind it is not copied, because devices with
// their own memory may write whole vectors into the padding of a tensor.
static void copy_out(struct inf_binding *binding, void *data, size_t size_bytes)
{
    const char *moved = (char *)inf_buffer_host(binding->buffer) + binding->offset;
    memcpy((char *)data - GUARD_BYTES, moved - GUARD_BYTES, GUARD_BYTES + size_bytes);
    inf_buffer_free(&binding->buffer);
}

// Returns true if the device stores this tensor in 16 bits.
static bool is_lowered(const struct one_node *one, const struct one_tensor *tensor)
{
    return one->lowered && !tensor->constant && tensor->dtype == INF_DTYPE_F32;
}

// Converts `count` floats at `moved` to 16 bits in place if `in` is true, or back to floats
// otherwise.
static void convert_halves(char *moved, size_t count, bool in)
{
    uint16_t *halves = malloc((count + 1) * sizeof(*halves));
    float *floats = (float *)moved;
    cr_assert_not_null(halves);
    if (in) {
        for (size_t i = 0; i < count; i++)
            halves[i] = inf_half_from_float(floats[i]);
        memset(moved, GUARD, count * sizeof(float));
        memcpy(moved, halves, count * sizeof(*halves));
    } else {
        memcpy(halves, moved, count * sizeof(*halves));
        for (size_t i = 0; i < count; i++)
            floats[i] = inf_half_to_float(halves[i]);
    }
    free(halves);
}

// Copies all operands to the device, or back to the host.
static void move_all(struct one_node *one, const struct inf_graph *graph, struct inf_device *device,
                     struct inf_binding *bindings, bool in)
{
    const struct inf_node *node = &graph->nodes[0];
    if (inf_device_info(device)->host_memory)
        return;
    for (uint32_t i = 0; i < one->input_count + one->output_count; i++) {
        bool output = i >= one->input_count;
        struct one_tensor *tensor = output ? &one->outputs[i - one->input_count] : &one->inputs[i];
        if (!output && tensor->absent)
            continue;
        struct inf_binding *binding =
            &bindings[output ? node->outputs[i - one->input_count] : node->inputs[i]];
        if (in)
            copy_in(device, binding, tensor->size_bytes);
        if (is_lowered(one, tensor))
            convert_halves((char *)inf_buffer_host(binding->buffer) + binding->offset,
                           tensor->size_bytes / sizeof(float), in);
        if (!in)
            copy_out(binding, tensor->data, tensor->size_bytes);
    }
}

static enum inf_code run_graph(struct one_node *one, const struct inf_graph *graph,
                               struct inf_device *device, struct inf_error *err)
{
    uint32_t nodes[] = {0};
    bool lowered[ONE_NODE_INPUTS + ONE_NODE_OUTPUTS] = {0};
    struct inf_segment segment = {.graph = graph,
                                  .nodes = nodes,
                                  .node_count = 1,
                                  .slots = 1,
                                  .precision =
                                      one->lowered ? INF_PRECISION_FP16 : INF_PRECISION_FP32,
                                  .lowered = one->lowered ? lowered : NULL};
    for (uint32_t v = 0; v < graph->value_count; v++)
        lowered[v] = graph->values[v].dtype == INF_DTYPE_F32 && graph->values[v].data == NULL;
    struct inf_program *program = NULL;
    INF_TRY(inf_program_compile(&program, device, &segment, 0, err));
    struct inf_binding bindings[ONE_NODE_INPUTS + ONE_NODE_OUTPUTS] = {0};
    bind_operands(one, graph, bindings);
    move_all(one, graph, device, bindings, true);
    struct inf_run run = {.bindings = bindings,
                          .cancelled = one->cancelled,
                          .profile = one->profiled || inf_device_info(device)->host_memory};
    struct inf_ticket ticket;
    enum inf_code code = inf_program_run(program, &run, &ticket, err);
    if (code == INF_OK)
        code = inf_device_wait(device, ticket, UINT64_MAX, err);
    if (code == INF_OK)
        code = inf_program_finish(program, &run, err);
    move_all(one, graph, device, bindings, false);
    struct inf_step_profile step = {0};
    (void)inf_program_profile(program, 0, &step, 1);
    one->kernel = step.kernel;
    inf_program_destroy(&program);
    return code;
}

enum inf_code one_node_run(struct one_node *one, struct inf_device *device, struct inf_error *err)
{
    INF_CLEANUP(inf_graph_destroy) struct inf_graph *graph = NULL;
    INF_TRY(one_node_graph(one, &graph, err));
    void *before[ONE_NODE_INPUTS] = {0};
    for (uint32_t i = 0; i < one->input_count; i++) {
        before[i] = malloc(one->inputs[i].size_bytes + 1);
        cr_assert_not_null(before[i]);
        if (!one->inputs[i].absent)
            memcpy(before[i], one->inputs[i].data, one->inputs[i].size_bytes);
    }
    enum inf_code code = run_graph(one, graph, device, err);
    for (uint32_t i = 0; i < one->input_count; i++) {
        if (!one->inputs[i].absent)
            cr_assert_eq(memcmp(before[i], one->inputs[i].data, one->inputs[i].size_bytes), 0,
                         "input %u is changed", i);
        free(before[i]);
    }
    for (uint32_t i = 0; code == INF_OK && i < one->output_count; i++)
        check_guards(&one->outputs[i], inf_op_info(one->op)->name);
    return code;
}

bool one_node_near(double got, double wanted, double absolute, double relative)
{
    if (isnan(wanted) || isinf(wanted))
        return isnan(wanted) ? isnan(got) : got == wanted;
    return fabs(got - wanted) <= absolute + relative * fabs(wanted);
}

void one_node_expect(const struct one_node *one, uint32_t output, enum inf_dtype dtype,
                     struct inf_shape shape, const void *elements)
{
    const struct one_tensor *got = &one->outputs[output];
    char has[INF_SHAPE_TEXT_SIZE], wanted[INF_SHAPE_TEXT_SIZE];
    const char *op = inf_op_info(one->op)->name;
    cr_assert(got->dtype == dtype && inf_shape_equal(&got->shape, &shape),
              "%s: output %u is %s %s, wanted %s %s", op, output, inf_dtype_name(got->dtype),
              inf_shape_print(&got->shape, has), inf_dtype_name(dtype),
              inf_shape_print(&shape, wanted));
    if (dtype != INF_DTYPE_F32) {
        size_t size = inf_dtype_size(dtype);
        for (size_t i = 0; i < got->size_bytes; i += size)
            cr_assert_eq(memcmp((char *)got->data + i, (const char *)elements + i, size), 0,
                         "%s: output %u: element %zu differs", op, output, i / size);
        return;
    }
    for (size_t i = 0; i < got->size_bytes / sizeof(float); i++) {
        float value = ((const float *)got->data)[i], want = ((const float *)elements)[i];
        cr_assert(one_node_near(value, want, 1e-6, 1e-5),
                  "%s: output %u: element %zu is %.9g, wanted %.9g", op, output, i, (double)value,
                  (double)want);
    }
}
