// SPDX-License-Identifier: Apache-2.0
// Divides strings into tokens: characters, what regular expressions match, or what is left between
// their matches. The tokens of one string are collected as handles into its bytes, so no byte is
// copied. The first pass over all strings counts, the second one stores.
#include <stdlib.h>

#include "backends/base/pattern/pattern.h"
#include "backends/base/pattern/pattern_parse.h"
#include "backends/ref/dynamic.h"
#include "backends/ref/text.h"

// The first and the last token of a string if its tokens are marked.
#define MARK_BEGIN 2
#define MARK_END   3

// A token or a piece of a string: its place in the string.
struct piece {
    size_t begin, size;
};

struct pieces {
    struct piece *list;
    size_t count, capacity;
};

struct tokenizer {
    const struct inf_ref_call *call;
    const struct inf_attrs_string_tokens *attrs;
    struct inf_pattern **patterns; // call->inputs[1].count of them, if they are used
    struct pieces pieces, others;  // of the string that is divided
    struct inf_error *err;
};

static enum inf_code add_piece(struct tokenizer *tokenizer, struct pieces *pieces, size_t begin,
                               size_t end)
{
    if (pieces->count == pieces->capacity) {
        size_t capacity = INF_MAX(pieces->capacity * 2, (size_t)16);
        struct piece *grown = realloc(pieces->list, capacity * sizeof *grown);
        if (grown == NULL)
            return inf_fail_reason(tokenizer->err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                                   "no memory for %zu tokens", capacity);
        pieces->list = grown;
        pieces->capacity = capacity;
    }
    pieces->list[pieces->count++] = (struct piece){begin, end - begin};
    return INF_OK;
}

// --- the three kinds of tokens ---

static enum inf_code divide_characters(struct tokenizer *tokenizer, struct inf_span string)
{
    for (size_t at = 0, size; at < string.size; at += size) {
        uint32_t ignored;
        size = inf_pattern_character(string, at, &ignored);
        INF_TRY(add_piece(tokenizer, &tokenizer->pieces, at, at + size));
    }
    return INF_OK;
}

// Adds the matches of a pattern in a piece of the string to `out` or, with `between`, the pieces
// between them that are not empty. An empty match is skipped.
static enum inf_code divide_piece(struct tokenizer *tokenizer, struct inf_pattern *pattern,
                                  struct inf_span string, const struct piece *piece, bool between,
                                  struct pieces *out)
{
    struct inf_span part = {string.data + piece->begin, piece->size};
    size_t at = 0, last = 0;
    while (at < part.size) {
        size_t begin, end;
        bool found;
        INF_TRY(inf_pattern_find(pattern, part, at, tokenizer->call->cancelled, &found, &begin,
                                 &end, tokenizer->err));
        if (!found)
            break;
        at = end;
        if (end == begin) {
            uint32_t ignored;
            at += at < part.size ? inf_pattern_character(part, at, &ignored) : 0;
            continue;
        }
        if (!between)
            INF_TRY(add_piece(tokenizer, out, piece->begin + begin, piece->begin + end));
        else if (begin > last)
            INF_TRY(add_piece(tokenizer, out, piece->begin + last, piece->begin + begin));
        last = end;
    }
    if (between && part.size > last)
        INF_TRY(add_piece(tokenizer, out, piece->begin + last, piece->begin + part.size));
    return INF_OK;
}

static enum inf_code divide_by_patterns(struct tokenizer *tokenizer, struct inf_span string)
{
    bool between = tokenizer->attrs->kind == INF_TOKENS_SEPARATED;
    size_t patterns = tokenizer->call->inputs[1].count;
    if (string.size > 0)
        INF_TRY(add_piece(tokenizer, &tokenizer->pieces, 0, string.size));
    for (size_t k = 0; k < (between ? patterns : INF_MIN(patterns, (size_t)1)); k++) {
        tokenizer->others.count = 0;
        for (size_t i = 0; i < tokenizer->pieces.count; i++)
            INF_TRY(divide_piece(tokenizer, tokenizer->patterns[k], string,
                                 &tokenizer->pieces.list[i], between, &tokenizer->others));
        struct pieces swapped = tokenizer->pieces;
        tokenizer->pieces = tokenizer->others;
        tokenizer->others = swapped;
    }
    return INF_OK;
}

static size_t count_characters(struct inf_span string)
{
    size_t count = 0;
    uint32_t ignored;
    for (size_t at = 0; at < string.size; count++)
        at += inf_pattern_character(string, at, &ignored);
    return count;
}

// Finds the tokens of element `index` of x: tokenizer->pieces.
static enum inf_code find_tokens(struct tokenizer *tokenizer, size_t index)
{
    struct inf_span string;
    tokenizer->pieces.count = 0;
    INF_TRY(inf_ref_load_string(tokenizer->call, &tokenizer->call->inputs[0], index, &string,
                                tokenizer->err));
    INF_TRY(tokenizer->attrs->kind == INF_TOKENS_CHARACTERS
                ? divide_characters(tokenizer, string)
                : divide_by_patterns(tokenizer, string));
    size_t kept = 0, least = (size_t)tokenizer->attrs->characters_min;
    for (size_t i = 0; i < tokenizer->pieces.count; i++) {
        struct piece piece = tokenizer->pieces.list[i];
        struct inf_span token = {string.data + piece.begin, piece.size};
        if (least <= 1 || count_characters(token) >= least)
            tokenizer->pieces.list[kept++] = piece;
    }
    tokenizer->pieces.count = kept;
    return INF_OK;
}

// --- all strings of a tensor ---

static enum inf_code compile_patterns(struct tokenizer *tokenizer)
{
    const struct inf_ref_tensor *patterns = &tokenizer->call->inputs[1];
    if (tokenizer->attrs->kind == INF_TOKENS_CHARACTERS)
        return INF_OK;
    tokenizer->patterns = calloc(patterns->count + 1, sizeof(*tokenizer->patterns));
    if (tokenizer->patterns == NULL)
        return inf_fail(tokenizer->err, INF_EXHAUSTED, "no memory for %zu patterns",
                        patterns->count);
    for (size_t i = 0; i < patterns->count; i++) {
        struct inf_span text;
        INF_TRY(inf_ref_load_string(tokenizer->call, patterns, i, &text, tokenizer->err));
        INF_TRY(inf_pattern_compile(&tokenizer->patterns[i], text, tokenizer->err));
    }
    return INF_OK;
}

static void end_tokenizer(struct tokenizer *tokenizer)
{
    for (size_t i = 0; tokenizer->patterns != NULL && i < tokenizer->call->inputs[1].count; i++)
        inf_pattern_destroy(&tokenizer->patterns[i]);
    free(tokenizer->patterns);
    free(tokenizer->pieces.list);
    free(tokenizer->others.list);
}

static struct tokenizer begin_tokenizer(const struct inf_ref_call *call, struct inf_error *err)
{
    return (struct tokenizer){.call = call, .attrs = &call->node->attrs.string_tokens, .err = err};
}

// Counts the tokens of the string that has most, with the marks. If no string has a token, there
// are no marks either, as in ONNX Runtime.
static enum inf_code count_tokens(struct tokenizer *tokenizer, int64_t *rows)
{
    INF_TRY(compile_patterns(tokenizer));
    for (size_t i = 0; i < tokenizer->call->inputs[0].count; i++) {
        INF_TRY(find_tokens(tokenizer, i));
        *rows = INF_MAX(*rows, (int64_t)tokenizer->pieces.count);
    }
    if (tokenizer->attrs->mark && *rows > 0)
        *rows += 2;
    return INF_OK;
}

enum inf_code inf_ref_string_tokens_rows(const struct inf_ref_call *call, int64_t *rows,
                                         struct inf_error *err)
{
    struct tokenizer tokenizer = begin_tokenizer(call, err);
    *rows = 0;
    enum inf_code code = count_tokens(&tokenizer, rows);
    end_tokenizer(&tokenizer);
    return code;
}

// Makes the two strings that mark the begin and the end.
static enum inf_code make_marks(const struct inf_ref_call *call, uint64_t marks[2],
                                struct inf_error *err)
{
    static const uint8_t bytes[] = {MARK_BEGIN, MARK_END};
    const struct inf_ref_tensor tensor = {.data = marks, .dtype = INF_DTYPE_BYTES};
    for (size_t i = 0; i < 2; i++)
        INF_TRY(inf_ref_store_string(call, &tensor, i, (struct inf_span){&bytes[i], 1}, err));
    return INF_OK;
}

static enum inf_code store_tokens(struct tokenizer *tokenizer)
{
    const struct inf_ref_call *call = tokenizer->call;
    const struct inf_ref_tensor *x = &call->inputs[0];
    uint64_t *to = call->outputs[0].data, marks[2] = {0};
    size_t columns = x->count == 0 ? 0 : call->outputs[0].count / x->count;
    bool mark = tokenizer->attrs->mark && columns > 0;
    INF_TRY(compile_patterns(tokenizer));
    if (mark)
        INF_TRY(make_marks(call, marks, tokenizer->err));
    for (size_t i = 0; i < x->count; i++, to += columns) {
        size_t at = 0;
        INF_TRY(find_tokens(tokenizer, i));
        if (tokenizer->pieces.count + (mark ? 2 : 0) > columns)
            return inf_fail(tokenizer->err, INF_INVALID, "more than %zu tokens", columns);
        if (mark)
            to[at++] = marks[0];
        for (size_t k = 0; k < tokenizer->pieces.count; k++)
            to[at++] = inf_string_handle_part(((const uint64_t *)x->data)[i],
                                              tokenizer->pieces.list[k].begin,
                                              tokenizer->pieces.list[k].size);
        if (mark)
            to[at++] = marks[1];
        while (at < columns)
            to[at++] = *(const uint64_t *)call->inputs[2].data;
    }
    return INF_OK;
}

enum inf_code inf_ref_string_tokens(const struct inf_ref_call *call, struct inf_error *err)
{
    struct tokenizer tokenizer = begin_tokenizer(call, err);
    enum inf_code code = store_tokens(&tokenizer);
    end_tokenizer(&tokenizer);
    return code;
}
