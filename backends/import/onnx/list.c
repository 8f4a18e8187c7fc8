// SPDX-License-Identifier: Apache-2.0
// Makes sequences, and the lists of values that they and other operators have.
#include "backends/import/onnx/list.h"

#include <string.h>

uint32_t *inf_onnx_list_make(struct inf_onnx_scope *s, uint32_t count)
{
    uint32_t *used = &s->import->sequences.item_count;
    if (count > INF_ONNX_SEQUENCE_ITEMS_MAX - *used)
        inf_build_fail(&s->b, INF_EXHAUSTED, "sequences hold more than %u tensors",
                       INF_ONNX_SEQUENCE_ITEMS_MAX);
    if (!inf_build_ok(&s->b))
        return NULL;
    *used += count;
    uint32_t *list = inf_arena_alloc(s->import->arena, ((size_t)count + 1) * sizeof *list);
    if (list == NULL)
        inf_build_fail(&s->b, INF_EXHAUSTED, "no memory");
    return list;
}

uint32_t inf_onnx_sequence_add(struct inf_onnx_scope *s, const uint32_t *values, uint32_t count)
{
    struct inf_onnx_sequences *all = &s->import->sequences;
    if (all->count == INF_ONNX_SEQUENCES_MAX)
        inf_build_fail(&s->b, INF_EXHAUSTED, "makes more than %u sequences",
                       INF_ONNX_SEQUENCES_MAX);
    if (!inf_build_ok(&s->b))
        return INF_VALUE_NONE;
    if (all->count == all->capacity) {
        uint32_t wanted = all->capacity * 2 + 16;
        struct inf_onnx_sequence *grown = inf_arena_alloc(s->import->arena, wanted * sizeof *grown);
        if (grown == NULL) {
            inf_build_fail(&s->b, INF_EXHAUSTED, "no memory");
            return INF_VALUE_NONE;
        }
        if (all->count > 0)
            memcpy(grown, all->items, all->count * sizeof *grown);
        all->items = grown;
        all->capacity = wanted;
    }
    all->items[all->count] = (struct inf_onnx_sequence){.values = values, .count = count};
    return INF_ONNX_SEQUENCE_FIRST + all->count++;
}

uint32_t inf_onnx_absent_add(struct inf_onnx_scope *s)
{
    uint32_t number = inf_onnx_sequence_add(s, NULL, 0);
    if (inf_build_ok(&s->b))
        s->import->sequences.items[number - INF_ONNX_SEQUENCE_FIRST].is_absent = true;
    return number;
}

bool inf_onnx_is_absent(const struct inf_onnx_scope *s, uint32_t value)
{
    return inf_onnx_is_sequence(value) &&
           s->import->sequences.items[value - INF_ONNX_SEQUENCE_FIRST].is_absent;
}
