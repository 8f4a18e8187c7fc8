// SPDX-License-Identifier: Apache-2.0
// Splits strings at a delimiter. A splitter returns one part after the other; the first pass over
// all strings counts them, which gives the size of the result, and the second one stores them. A
// part is a handle into the same bytes, so nothing is copied.
#include "backends/ref/dynamic.h"
#include "backends/ref/text.h"

struct splitter {
    enum inf_split_kind kind;
    int64_t splits_left; // below 0: no limit
    bool skip_empty;
    struct inf_span delimiter, rest;
    bool ended;
};

static bool is_space(uint8_t byte)
{
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

// Returns whether a part ends at byte `at` of the rest.
static bool is_delimiter(const struct splitter *splitter, size_t at)
{
    const struct inf_span *delimiter = &splitter->delimiter;
    const uint8_t *here = splitter->rest.data + at;
    switch (splitter->kind) {
    case INF_SPLIT_DELIMITER:
        return delimiter->size > 0 && delimiter->size <= splitter->rest.size - at &&
               memcmp(here, delimiter->data, delimiter->size) == 0;
    case INF_SPLIT_ANY_BYTE:
        return delimiter->size > 0 && memchr(delimiter->data, *here, delimiter->size) != NULL;
    case INF_SPLIT_SPACE:
        return is_space(*here);
    default:
        return at > 0; // after every byte
    }
}

// Removes `size` bytes from the begin of the rest.
static void skip_bytes(struct splitter *splitter, size_t size)
{
    splitter->rest.data += size;
    splitter->rest.size -= size;
}

// Takes the next part from the rest, which is not ended.
static struct inf_span take_part(struct splitter *splitter)
{
    size_t size = 0, gap = splitter->kind == INF_SPLIT_DELIMITER ? splitter->delimiter.size
                           : splitter->kind == INF_SPLIT_BYTES   ? 0
                                                                 : 1;
    if (splitter->splits_left == 0)
        size = splitter->rest.size;
    while (size < splitter->rest.size && !is_delimiter(splitter, size))
        size++;
    struct inf_span part = {splitter->rest.data, size};
    splitter->ended = size == splitter->rest.size;
    if (splitter->ended)
        return part;
    skip_bytes(splitter, size + gap);
    splitter->splits_left--;
    while (splitter->kind == INF_SPLIT_SPACE && splitter->rest.size > 0 &&
           is_space(splitter->rest.data[0]))
        skip_bytes(splitter, 1);
    splitter->ended = splitter->rest.size == 0 && splitter->kind == INF_SPLIT_SPACE;
    return part;
}

static void begin_split(struct splitter *splitter, const struct inf_attrs_string_split *attrs,
                        struct inf_span string, struct inf_span delimiter)
{
    *splitter = (struct splitter){.kind = attrs->kind,
                                  .splits_left = attrs->splits_max,
                                  .skip_empty = attrs->skip_empty,
                                  .delimiter = delimiter,
                                  .rest = string};
    while (attrs->kind == INF_SPLIT_SPACE && splitter->rest.size > 0 &&
           is_space(splitter->rest.data[0]))
        skip_bytes(splitter, 1);
    splitter->ended = splitter->rest.size == 0 && attrs->kind != INF_SPLIT_ANY_BYTE;
}

// Sets *part to the next part. Returns false if there is none. An empty string has no parts in
// ONNX, and an empty part in TensorFlow, which splits at any of several bytes.
static bool next_part(struct splitter *splitter, struct inf_span *part)
{
    while (!splitter->ended) {
        *part = take_part(splitter);
        if (part->size > 0 || !splitter->skip_empty)
            return true;
    }
    return false;
}

// Begins to split element `index` of x. The strings are valid until a string is made.
static enum inf_code load_splitter(const struct inf_ref_call *call, size_t index,
                                   struct splitter *splitter, struct inf_error *err)
{
    struct inf_span string, delimiter;
    INF_TRY(inf_ref_load_string(call, &call->inputs[0], index, &string, err));
    INF_TRY(inf_ref_load_string(call, &call->inputs[1], 0, &delimiter, err));
    begin_split(splitter, &call->node->attrs.string_split, string, delimiter);
    return INF_OK;
}

enum inf_code inf_ref_string_split_rows(const struct inf_ref_call *call, int64_t *rows,
                                        struct inf_error *err)
{
    *rows = 0;
    for (size_t i = 0; i < call->inputs[0].count; i++) {
        struct splitter splitter;
        struct inf_span part;
        int64_t count = 0;
        INF_TRY(load_splitter(call, i, &splitter, err));
        while (next_part(&splitter, &part))
            count++;
        *rows = INF_MAX(*rows, count);
    }
    return INF_OK;
}

enum inf_code inf_ref_string_split(const struct inf_ref_call *call, struct inf_error *err)
{
    const struct inf_ref_tensor *x = &call->inputs[0];
    uint64_t *parts = call->outputs[0].data;
    size_t columns = x->count == 0 ? 0 : call->outputs[0].count / x->count;
    for (size_t i = 0; i < x->count; i++) {
        struct splitter splitter;
        struct inf_span part;
        size_t count = 0;
        INF_TRY(load_splitter(call, i, &splitter, err));
        const uint8_t *begin = splitter.rest.data;
        uint64_t whole = ((const uint64_t *)x->data)[i];
        size_t skipped = inf_string_handle_size(whole) - splitter.rest.size;
        for (; next_part(&splitter, &part); count++) {
            if (count == columns)
                return inf_fail(err, INF_INVALID, "more than %zu parts", columns);
            parts[i * columns + count] =
                inf_string_handle_part(whole, skipped + (size_t)(part.data - begin), part.size);
        }
        inf_ref_store_int(&call->outputs[1], i, (int64_t)count);
        memset(parts + i * columns + count, 0, (columns - count) * sizeof *parts);
    }
    return INF_OK;
}
