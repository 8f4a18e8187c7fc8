// SPDX-License-Identifier: Apache-2.0
// Complex numbers. Linear operators are lowered twice, once for each part. Products use the formula
// for complex multiplication.
#include "backends/import/tfjs/complex.h"

#include <string.h>

static const struct inf_tfjs_node *find_source(const struct inf_tfjs_scope *scope, uint32_t input)
{
    return &scope->source->nodes[scope->node->inputs[input].node];
}

bool inf_tfjs_takes_complex(const struct inf_tfjs_scope *scope)
{
    for (uint32_t i = 0; i < scope->input_count; i++)
        if (find_source(scope, i)->is_complex)
            return true;
    return false;
}

enum inf_code inf_tfjs_finish_complex(struct inf_tfjs_scope *scope, uint32_t real,
                                      uint32_t imaginary, struct inf_error *err)
{
    uint32_t *values;
    INF_TRY(inf_tfjs_outputs(scope, 2, &values, err));
    values[0] = real;
    values[1] = imaginary;
    scope->node->is_complex = true;
    return INF_OK;
}

// Lowers a linear operator, such as an addition or a reshape, twice: once for the real parts and
// once for the imaginary parts.
static enum inf_code lower_parts(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    INF_TRY(scope->op->lower(scope, err));
    if (scope->node->value_count != 1)
        return inf_tfjs_fail(scope, err, INF_UNSUPPORTED, "makes %u complex tensors, wanted 1",
                             scope->node->value_count);
    uint32_t real = scope->node->values[0];
    for (uint32_t i = 0; i < scope->input_count; i++)
        if (find_source(scope, i)->is_complex)
            scope->inputs[i] = find_source(scope, i)->values[1];
    INF_TRY(scope->op->lower(scope, err));
    return inf_tfjs_finish_complex(scope, real, scope->node->values[0], err);
}

// Multiplies two complex inputs: (a + ib)(c + id) = (ac - bd) + i(ad + bc).
static enum inf_code lower_mul(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    uint32_t ac, bd, ad, bc, real, imaginary;
    if (!find_source(scope, 0)->is_complex || !find_source(scope, 1)->is_complex)
        return inf_tfjs_fail(scope, err, INF_INVALID, "multiplies real with complex numbers");
    const uint32_t *x = find_source(scope, 0)->values, *y = find_source(scope, 1)->values;
    INF_TRY(inf_tfjs_binary(scope, INF_BINARY_MUL, x[0], y[0], &ac, err));
    INF_TRY(inf_tfjs_binary(scope, INF_BINARY_MUL, x[1], y[1], &bd, err));
    INF_TRY(inf_tfjs_binary(scope, INF_BINARY_MUL, x[0], y[1], &ad, err));
    INF_TRY(inf_tfjs_binary(scope, INF_BINARY_MUL, x[1], y[0], &bc, err));
    INF_TRY(inf_tfjs_binary(scope, INF_BINARY_SUB, ac, bd, &real, err));
    INF_TRY(inf_tfjs_binary(scope, INF_BINARY_ADD, ad, bc, &imaginary, err));
    return inf_tfjs_finish_complex(scope, real, imaginary, err);
}

enum inf_code inf_tfjs_lower_complex(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    static const struct {
        const char *name;
        enum inf_code (*lower)(struct inf_tfjs_scope *scope, struct inf_error *err);
    } rows[] = {
        {"Add", lower_parts},      {"AddV2", lower_parts},        {"Concat", lower_parts},
        {"ConcatV2", lower_parts}, {"ExpandDims", lower_parts},   {"Gather", lower_parts},
        {"GatherV2", lower_parts}, {"Identity", lower_parts},     {"Mul", lower_mul},
        {"Neg", lower_parts},      {"Pack", lower_parts},         {"Pad", lower_parts},
        {"Reshape", lower_parts},  {"ReverseV2", lower_parts},    {"Slice", lower_parts},
        {"Squeeze", lower_parts},  {"StridedSlice", lower_parts}, {"Sub", lower_parts},
        {"Tile", lower_parts},     {"Transpose", lower_parts},
    };
    if (scope->op->takes_complex)
        return scope->op->lower(scope, err);
    for (size_t i = 0; i < INF_ARRAY_LENGTH(rows); i++)
        if (strcmp(rows[i].name, scope->node->op) == 0)
            return rows[i].lower(scope, err);
    return inf_tfjs_fail(scope, err, INF_UNSUPPORTED, "is not built for complex numbers");
}
