// SPDX-License-Identifier: Apache-2.0
// N-grams of strings, as TensorFlow's StringNGrams defines them. Per row, and per length in the
// order of the attribute, each window over the row, padded at both ends, is one n-gram. A window
// that has only pads does not occur, because there are fewer pads than the window is long.
#include <inttypes.h>

#include "backends/ref/dynamic.h"
#include "backends/ref/text.h"

// The part of the strings that one row has.
struct row {
    int64_t begin, size;
};

// Returns how many pads are at each end for n-grams of this length.
static int64_t count_pads(const struct inf_attrs_string_ngrams *attrs, int64_t width)
{
    return attrs->pads_max < 0 ? width - 1 : INF_MIN((int64_t)attrs->pads_max, width - 1);
}

static int64_t count_grams(const struct inf_attrs_string_ngrams *attrs, const struct row *row,
                           int64_t width)
{
    return INF_MAX(row->size + 2 * count_pads(attrs, width) - width + 1, (int64_t)0);
}

static enum inf_code read_row(const struct inf_ref_call *call, size_t index, struct row *row,
                              struct inf_error *err)
{
    int64_t begin = inf_ref_index(&call->inputs[1], index);
    int64_t end = inf_ref_index(&call->inputs[1], index + 1);
    if (begin < 0 || end < begin || end > (int64_t)call->inputs[0].count)
        return inf_fail(err, INF_INVALID,
                        "row %zu is from %" PRId64 " to %" PRId64 " of %zu strings", index, begin,
                        end, call->inputs[0].count);
    *row = (struct row){begin, end - begin};
    return INF_OK;
}

static size_t count_rows(const struct inf_ref_call *call)
{
    return call->inputs[1].count == 0 ? 0 : call->inputs[1].count - 1;
}

// Returns true if the row has too few strings for all lengths and becomes one n-gram.
static bool is_kept_whole(const struct inf_attrs_string_ngrams *attrs, const struct row *row)
{
    bool has_grams = false;
    for (int32_t i = 0; i < attrs->widths.count; i++)
        has_grams |= count_grams(attrs, row, attrs->widths.values[i]) > 0;
    return attrs->keep_short && row->size > 0 && !has_grams;
}

enum inf_code inf_ref_string_ngrams_rows(const struct inf_ref_call *call, int64_t *rows,
                                         struct inf_error *err)
{
    const struct inf_attrs_string_ngrams *attrs = &call->node->attrs.string_ngrams;
    *rows = 0;
    for (size_t i = 0; i < count_rows(call); i++) {
        struct row row;
        INF_TRY(read_row(call, i, &row, err));
        for (int32_t k = 0; k < attrs->widths.count; k++)
            *rows += count_grams(attrs, &row, attrs->widths.values[k]);
        *rows += is_kept_whole(attrs, &row);
        if (*rows >= INF_LIMIT_DIM)
            return inf_fail(err, INF_EXHAUSTED, "more than %" PRId64 " n-grams", INF_LIMIT_DIM);
    }
    return INF_OK;
}

// Sets *part to string `at` of the padded row: a pad if it is before or behind the row.
static enum inf_code load_part(const struct inf_ref_call *call, const struct row *row, int64_t at,
                               struct inf_span *part, struct inf_error *err)
{
    if (at < 0 || at >= row->size)
        return inf_ref_load_string(call, &call->inputs[at < 0 ? 3 : 4], 0, part, err);
    return inf_ref_load_string(call, &call->inputs[0], (size_t)(row->begin + at), part, err);
}

// Makes element `index` of y the strings `at` to `at` + width of the padded row, joined.
static enum inf_code join_parts(const struct inf_ref_call *call, const struct row *row, int64_t at,
                                int64_t width, size_t index, struct inf_error *err)
{
    struct inf_span part, separator;
    size_t size = 0;
    uint8_t *room = NULL, *to = NULL;
    if (index >= call->outputs[0].count)
        return inf_fail(err, INF_INVALID, "more than %zu n-grams", call->outputs[0].count);
    for (int pass = 0; pass < 2; pass++) { // measures, then writes: the strings may move between
        if (pass == 1)
            INF_TRY(inf_ref_reserve_string(call, size, &room, err));
        to = room;
        INF_TRY(inf_ref_load_string(call, &call->inputs[2], 0, &separator, err));
        for (int64_t i = 0; i < width; i++) {
            INF_TRY(load_part(call, row, at + i, &part, err));
            const struct inf_span pieces[] = {i == 0 ? (struct inf_span){0} : separator, part};
            for (size_t k = 0; k < 2; k++) {
                if (pass == 0 && !inf_size_add(size, pieces[k].size, &size))
                    return inf_fail(err, INF_EXHAUSTED, "an n-gram is too long");
                if (pass == 1 && pieces[k].size > 0)
                    to = (uint8_t *)memcpy(to, pieces[k].data, pieces[k].size) + pieces[k].size;
            }
        }
    }
    inf_ref_commit_string(call, &call->outputs[0], index, size);
    return INF_OK;
}

enum inf_code inf_ref_string_ngrams(const struct inf_ref_call *call, struct inf_error *err)
{
    const struct inf_attrs_string_ngrams *attrs = &call->node->attrs.string_ngrams;
    size_t index = 0;
    if (call->outputs[1].count > 0)
        inf_ref_store_int(&call->outputs[1], 0, 0);
    for (size_t i = 0; i < count_rows(call); i++) {
        struct row row;
        INF_TRY(inf_ref_check_cancelled(call, err));
        INF_TRY(read_row(call, i, &row, err));
        for (int32_t k = 0; k < attrs->widths.count; k++) {
            int64_t width = attrs->widths.values[k], grams = count_grams(attrs, &row, width);
            for (int64_t at = 0; at < grams; at++)
                INF_TRY(join_parts(call, &row, at - count_pads(attrs, width), width, index++, err));
        }
        if (is_kept_whole(attrs, &row))
            INF_TRY(join_parts(call, &row, 0, row.size, index++, err));
        inf_ref_store_int(&call->outputs[1], i + 1, (int64_t)index);
    }
    return INF_OK;
}
