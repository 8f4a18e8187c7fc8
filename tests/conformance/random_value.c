// SPDX-License-Identifier: Apache-2.0
// Reads elements of float tensors, and computes nodes in several worlds. A world runs the kernels
// of the reference device `ref` and disturbs rounded results. The spread between worlds bounds the
// errors of devices.
#include "tests/conformance/random_value.h"

#include <math.h>
#include <string.h>

#include "backends/base/half.h"
#include "backends/registry.h"

#define ELEMENTS_MAX 16384

double tensor_element(const struct inf_tensor *tensor, size_t i)
{
    const void *data = tensor->data->data;
    switch (tensor->dtype) {
    case INF_DTYPE_F32:
        return (double)((const float *)data)[i];
    case INF_DTYPE_F64:
        return ((const double *)data)[i];
    case INF_DTYPE_F16:
        return (double)inf_half_to_float(((const uint16_t *)data)[i]);
    default:
        return (double)inf_bf16_to_float(((const uint16_t *)data)[i]);
    }
}

static void set_element(const struct inf_tensor *tensor, size_t i, double value)
{
    void *data = tensor->data->data;
    switch (tensor->dtype) {
    case INF_DTYPE_F32:
        ((float *)data)[i] = (float)value;
        return;
    case INF_DTYPE_F64:
        ((double *)data)[i] = value;
        return;
    case INF_DTYPE_F16:
        ((uint16_t *)data)[i] = inf_half_from_float((float)value);
        return;
    default:
        ((uint16_t *)data)[i] = inf_bf16_from_float((float)value);
        return;
    }
}

// Returns the largest magnitude of the elements. Returns infinity if an element is not finite.
static double find_largest(const struct inf_tensor *tensor)
{
    double most = 0;
    for (size_t i = 0; i < inf_shape_elements(&tensor->shape); i++) {
        double value = fabs(tensor_element(tensor, i));
        most = isfinite(value) ? fmax(most, value) : INFINITY;
    }
    return most;
}

// Returns the relative error of one rounding. The result is at least the error that a device may
// make in one node.
static double rounding_error(enum inf_dtype dtype)
{
    switch (dtype) {
    case INF_DTYPE_F16:
        return 1e-3;
    case INF_DTYPE_BF16:
        return 8e-3;
    case INF_DTYPE_F64:
        return 1e-12;
    default:
        return 4e-6;
    }
}

// Returns the largest difference of an element between two worlds, which disturb rounded results in
// different ways.
static double measure_spread(const struct random_value *value)
{
    const struct inf_tensor *first = &value->worlds[0];
    double most = 0;
    for (size_t i = 0; i < inf_shape_elements(&first->shape); i++)
        for (int world = 1; world < RANDOM_WORLDS; world++)
            most = fmax(most,
                        fabs(tensor_element(&value->worlds[world], i) - tensor_element(first, i)));
    return most;
}

double random_tolerance(const struct random_value *value)
{
    if (value->exact || !inf_dtype_is_float(value->worlds[0].dtype))
        return 0;
    return 8 * measure_spread(value) +
           5 * rounding_error(value->worlds[0].dtype) * fmax(1, find_largest(&value->worlds[0]));
}

static void disturb_tensor(struct world *world, const struct inf_tensor *tensor)
{
    double size = rounding_error(tensor->dtype), most = find_largest(tensor);
    for (size_t i = 0; i < inf_shape_elements(&tensor->shape) && isfinite(most); i++) {
        double value = tensor_element(tensor, i),
               unit = (double)random_in(&world->random, -1000, 1000);
        set_element(tensor, i, value + unit / 1000 * size * (fabs(value) + 0.1 * most));
    }
}

static enum inf_code run_disturbed(void *context, const struct inf_graph *graph, uint32_t index,
                                   struct inf_blob *const *outputs, const atomic_bool *cancelled,
                                   struct inf_error *err)
{
    struct world *world = context;
    const struct inf_evaluator *ref = inf_registry_evaluator();
    const struct inf_node *node = &graph->nodes[index];
    INF_TRY(ref->run(ref->context, graph, index, outputs, cancelled, err));
    enum inf_dtype first = graph->values[node->inputs[0]].dtype;
    if (!world->disturbed ||
        !random_nature(node->op, &node->attrs, first, node->output_count).rounds)
        return INF_OK;
    for (uint32_t i = 0; i < node->output_count; i++) {
        const struct inf_value *value = &graph->values[node->outputs[i]];
        struct inf_tensor tensor = {
            .dtype = value->dtype, .shape = value->shape, .data = outputs[i]};
        if (inf_dtype_is_float(value->dtype))
            disturb_tensor(world, &tensor);
    }
    return INF_OK;
}

static enum inf_code measure_shapes(void *context, const struct inf_graph *graph, uint32_t node,
                                    struct inf_shape *shapes, struct inf_error *err)
{
    (void)context;
    const struct inf_evaluator *ref = inf_registry_evaluator();
    return ref->measure(ref->context, graph, node, shapes, err);
}

struct inf_evaluator world_evaluator(struct world *world)
{
    return (struct inf_evaluator){
        .run = run_disturbed, .measure = measure_shapes, .context = world};
}

void tensor_share(struct inf_tensor *tensor, const struct inf_tensor *of)
{
    *tensor = *of;
    tensor->data = inf_blob_ref(of->data);
}

void random_value_free(struct random_value *value)
{
    for (int world = 0; world < RANDOM_WORLDS; world++)
        inf_tensor_clear(&value->worlds[world]);
}

bool random_value_is_sound(enum inf_op op, const struct random_value *value)
{
    const struct inf_tensor *first = &value->worlds[0];
    if (inf_shape_elements(&first->shape) > ELEMENTS_MAX)
        return false;
    if (value->exact || !inf_dtype_is_float(first->dtype)) {
        for (int world = 1; world < RANDOM_WORLDS; world++)
            must(memcmp(value->worlds[world].data->data, first->data->data,
                        first->data->size_bytes) == 0,
                 "%s: a value said to be exact is not", inf_op_info(op)->name);
        return true;
    }
    for (int world = 0; world < RANDOM_WORLDS; world++)
        if (!(find_largest(&value->worlds[world]) <= RANDOM_LARGEST_MAX))
            return false;
    return measure_spread(value) <=
           250 * rounding_error(first->dtype) * fmax(1e-3, find_largest(first));
}
