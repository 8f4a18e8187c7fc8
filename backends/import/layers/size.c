// SPDX-License-Identifier: Apache-2.0
// Sizes that may depend on the request: a number, or the size of an axis of a value, times a scale,
// plus an offset. Sizes are computed at import if possible, so that shapes stay known.
#include "backends/graph/build/operators.h"
#include "backends/import/layers/lower.h"

struct inf_layers_dim inf_layers_dim_fixed(int64_t number)
{
    return (struct inf_layers_dim){.value = INF_VALUE_NONE, .offset = number};
}

struct inf_layers_dim inf_layers_dim_of(uint32_t value, int32_t axis)
{
    return (struct inf_layers_dim){.value = value, .axis = axis, .scale = 1};
}

// Replaces a size by a number if it is known.
static enum inf_code resolve_dim(struct inf_layers_scope *scope, struct inf_layers_dim *dim,
                                 struct inf_error *err)
{
    if (dim->value != INF_VALUE_NONE) {
        int64_t size = inf_layers_shape_of(scope, dim->value)->dims[dim->axis];
        if (size == INF_DIM_UNKNOWN)
            return INF_OK;
        // The result cannot overflow, because sizes are below 2^31, and scales and offsets are
        // below 2^17.
        *dim = inf_layers_dim_fixed(size * dim->scale + dim->offset);
    }
    if (dim->offset < -1 || dim->offset >= INF_LIMIT_DIM)
        return inf_layers_fail(scope, err, INF_INVALID, "has a size of %lld, wanted 0 to 2^31 - 1",
                               (long long)dim->offset);
    return INF_OK;
}

// Adds one size as a value of shape [1].
static enum inf_code emit_dim(struct inf_layers_scope *scope, const struct inf_layers_dim *dim,
                              uint32_t *out_value, struct inf_error *err)
{
    struct inf_builder b = inf_layers_builder(scope, err);
    if (dim->value == INF_VALUE_NONE) {
        *out_value = inf_build_list(&b, &dim->offset, 1);
        return b.code;
    }
    uint32_t size = inf_build_dim_value(&b, dim->value, dim->axis);
    if (dim->scale != 1)
        size = inf_build_mul(&b, size, inf_build_list(&b, &dim->scale, 1));
    if (dim->offset != 0)
        size = inf_build_add(&b, size, inf_build_list(&b, &dim->offset, 1));
    *out_value = size;
    return b.code;
}

enum inf_code inf_layers_dims(struct inf_layers_scope *scope, const struct inf_layers_dim *dims,
                              uint32_t count, uint32_t *out_value, struct inf_error *err)
{
    struct inf_layers_dim resolved[INF_LIMIT_RANK + 1];
    uint32_t parts[INF_LIMIT_RANK + 1];
    int64_t numbers[INF_LIMIT_RANK + 1];
    uint32_t unknown = 0;
    if (count > INF_LIMIT_RANK)
        return inf_layers_fail(scope, err, INF_INVALID, "has %u dimensions, wanted at most %d",
                               count, INF_LIMIT_RANK);
    for (uint32_t i = 0; i < count; i++) {
        resolved[i] = dims[i];
        INF_TRY(resolve_dim(scope, &resolved[i], err));
        unknown += resolved[i].value != INF_VALUE_NONE;
        numbers[i] = resolved[i].offset;
    }
    struct inf_builder b = inf_layers_builder(scope, err);
    if (unknown == 0) {
        *out_value = inf_build_list(&b, numbers, count);
        return b.code;
    }
    for (uint32_t i = 0; i < count; i++)
        INF_TRY(emit_dim(scope, &resolved[i], &parts[i], err));
    *out_value = inf_build_concat(&b, parts, count, 0);
    return b.code;
}

enum inf_code inf_layers_reshape(struct inf_layers_scope *scope, uint32_t x,
                                 const struct inf_layers_dim *dims, uint32_t count,
                                 uint32_t *out_value, struct inf_error *err)
{
    struct inf_layers_dim resolved[INF_LIMIT_RANK];
    uint32_t unknown = 0, last = 0;
    bool has_hole = false, has_zero = false;
    for (uint32_t i = 0; i < count && i < INF_LIMIT_RANK; i++) {
        resolved[i] = dims[i];
        INF_TRY(resolve_dim(scope, &resolved[i], err));
        if (resolved[i].value != INF_VALUE_NONE) {
            unknown++;
            last = i;
        } else {
            has_hole |= resolved[i].offset == -1;
            has_zero |= resolved[i].offset == 0;
        }
    }
    // If only one size is unknown, the reshape computes it (-1), and all other sizes stay known.
    if (unknown == 1 && !has_hole && !has_zero && count <= INF_LIMIT_RANK)
        resolved[last] = inf_layers_dim_fixed(-1);
    struct inf_build_node node =
        inf_build_describe(INF_OP_RESHAPE, x, INF_VALUE_NONE, INF_VALUE_NONE);
    node.input_count = 2;
    INF_TRY(inf_layers_dims(scope, count <= INF_LIMIT_RANK ? resolved : dims, count,
                            &node.inputs[1], err));
    return inf_layers_emit(scope, &node, out_value, err);
}
