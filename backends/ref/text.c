// SPDX-License-Identifier: Apache-2.0
// Reads, makes and compares strings. Operators that only move strings are in the files of their
// families: they copy handles and need nothing from here.
#include "backends/ref/text.h"

enum inf_code inf_ref_load_string(const struct inf_ref_call *call,
                                  const struct inf_ref_tensor *tensor, size_t index,
                                  struct inf_span *string, struct inf_error *err)
{
    return inf_strings_get(&call->strings, ((const uint64_t *)tensor->data)[index], string, err);
}

enum inf_code inf_ref_reserve_string(const struct inf_ref_call *call, size_t size_bytes,
                                     uint8_t **room, struct inf_error *err)
{
    if (call->strings.run == NULL)
        return inf_fail(err, INF_UNSUPPORTED, "strings can only be made in a run");
    *room = inf_string_pool_reserve(call->strings.run, size_bytes, err);
    return *room == NULL ? INF_EXHAUSTED : INF_OK;
}

void inf_ref_commit_string(const struct inf_ref_call *call, const struct inf_ref_tensor *tensor,
                           size_t index, size_t size_bytes)
{
    ((uint64_t *)tensor->data)[index] = inf_string_pool_commit(call->strings.run, size_bytes);
}

enum inf_code inf_ref_store_string(const struct inf_ref_call *call,
                                   const struct inf_ref_tensor *tensor, size_t index,
                                   struct inf_span string, struct inf_error *err)
{
    uint8_t *room;
    INF_TRY(inf_ref_reserve_string(call, string.size, &room, err));
    if (string.size > 0)
        memcpy(room, string.data, string.size);
    inf_ref_commit_string(call, tensor, index, string.size);
    return INF_OK;
}

int inf_ref_order_strings(const struct inf_strings *strings, uint64_t a, uint64_t b)
{
    struct inf_span left = {0}, right = {0};
    if (inf_strings_get(strings, a, &left, NULL) != INF_OK)
        left = (struct inf_span){0};
    if (inf_strings_get(strings, b, &right, NULL) != INF_OK)
        right = (struct inf_span){0};
    return inf_string_compare(left, right);
}

enum inf_code inf_ref_compare_strings(const struct inf_ref_call *call, struct inf_error *err)
{
    const struct inf_ref_tensor *y = &call->outputs[0];
    bool wants_equal = call->node->attrs.compare.kind == INF_COMPARE_EQUAL;
    struct inf_ref_walk walk;
    struct inf_span a, b;
    inf_ref_walk_init(&walk, y->shape);
    inf_ref_walk_broadcast(&walk, 0, call->inputs[0].shape);
    inf_ref_walk_broadcast(&walk, 1, call->inputs[1].shape);
    for (size_t i = 0; i < y->count; i++, inf_ref_walk_next(&walk)) {
        INF_TRY(inf_ref_load_string(call, &call->inputs[0], (size_t)walk.offsets[0], &a, err));
        INF_TRY(inf_ref_load_string(call, &call->inputs[1], (size_t)walk.offsets[1], &b, err));
        inf_ref_store_int(y, i, (inf_string_compare(a, b) == 0) == wants_equal);
    }
    return INF_OK;
}
