// SPDX-License-Identifier: Apache-2.0
// Splits the JSON text of an inference request. jansson makes an object of 40 bytes or more of each
// value, so it reads only the outline, which is small. The numbers of the tensors stay in the text,
// and elements_json.c reads them when the outline has given their shape and type: the members of an
// input can have any order.
//
//   {"inputs":[{"name":"x","data":[[1,2],[3,4]],"shape":[2,2]}]}      the text
//   {"inputs":[{"name":"x","data":0,"shape":[2,2]}]}                  the outline
//
// The scan tracks strings and brackets only. It looks for no other errors: jansson finds those of
// the outline, and elements_json.c finds those of the data. A key that is written with escapes is
// not recognised, so its array stays in the outline, and the request is refused later because its
// data is no index.
#include "client/gateway/oip/json_outline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Depth of the members of an input: the request, the array "inputs" and the input.
#define INPUT_DEPTH 3u

static enum inf_code fail_depth(struct inf_error *err)
{
    return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_JSON,
                           "the JSON text nests deeper than %u levels", INF_OIP_JSON_DEPTH);
}

static enum inf_code add_byte(struct inf_json_outline *outline, char byte, struct inf_error *err)
{
    if (outline->size == INF_OIP_JSON_OUTLINE_BYTES)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_JSON,
                               "the JSON text has too many values besides the data of its inputs");
    outline->bytes[outline->size++] = byte;
    return INF_OK;
}

// Returns true if the last string of the outline is `text`.
static bool last_string_is(const struct inf_json_outline *outline, const char *text)
{
    return outline->string_size == strlen(text) &&
           memcmp(outline->bytes + outline->string_begin, text, outline->string_size) == 0;
}

// Handles the colon behind a key.
static void handle_key(struct inf_json_outline *outline)
{
    if (outline->depth == 1)
        outline->in_inputs = last_string_is(outline, "inputs");
    bool in_input = outline->in_inputs && outline->depth == INPUT_DEPTH &&
                    memcmp(outline->opened, "{[{", INPUT_DEPTH) == 0;
    outline->after_key = in_input && last_string_is(outline, "data");
}

// Handles the quote at the start or at the end of a string in the outline.
static void handle_quote(struct inf_json_outline *outline)
{
    outline->after_key = outline->after_space = false;
    outline->in_string = !outline->in_string;
    if (outline->in_string)
        outline->string_begin = outline->size + 1;
    else
        outline->string_size = outline->size - outline->string_begin;
}

// Begins an array of data, whose bracket is at outline->at, and writes its index to the outline.
static enum inf_code begin_data(struct inf_json_outline *outline, struct inf_error *err)
{
    char index[24];
    snprintf(index, sizeof index, "%zu", outline->data_count);
    if (outline->data_count == INF_LIMIT_TENSORS)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_JSON,
                               "the request is invalid: 'inputs' has more than %u tensors",
                               (unsigned)INF_LIMIT_TENSORS);
    for (const char *c = index; *c != '\0'; c++)
        INF_TRY(add_byte(outline, *c, err));
    outline->data_begin = outline->at;
    outline->data_depth = 1;
    return INF_OK;
}

// Skips bytes of an array of data up to `end`, or up to its last bracket.
static enum inf_code skip_data(struct inf_json_outline *outline, size_t end, struct inf_error *err)
{
    static const bool special[256] = {
        ['['] = true, [']'] = true, ['{'] = true, ['}'] = true, ['"'] = true, ['\\'] = true};
    const uint8_t *text = outline->text.data;
    while (outline->at < end) {
        uint8_t c = text[outline->at++];
        if (!special[c])
            continue;
        if (outline->in_string) {
            // The byte behind a backslash is skipped, which can be behind `end`.
            outline->at += c == '\\';
            outline->in_string = c != '"';
        } else if (c == '"') {
            outline->in_string = true;
        } else if (c == '[' || c == '{') {
            if (outline->depth + ++outline->data_depth > INF_OIP_JSON_DEPTH)
                return fail_depth(err);
        } else if (c != '\\' && --outline->data_depth == 0) {
            outline->data[outline->data_count++] =
                (struct inf_span){text + outline->data_begin, outline->at - outline->data_begin};
            return INF_OK;
        }
    }
    return INF_OK;
}

// Handles a byte outside of strings. Sets *copied to false if the outline does not get it.
static enum inf_code handle_byte(struct inf_json_outline *outline, char c, bool *copied,
                                 struct inf_error *err)
{
    if (c == ' ' || c == '\n' || c == '\r' || c == '\t') {
        // Consecutive spaces become one, so that a text with much space has a small outline.
        *copied = !outline->after_space;
        outline->after_space = true;
        return INF_OK;
    }
    outline->after_space = false;
    if (c == '[' && outline->after_key) {
        *copied = false;
        outline->after_key = false;
        return begin_data(outline, err);
    }
    outline->after_key = false;
    if (c == ':') {
        handle_key(outline);
    } else if (c == '[' || c == '{') {
        if (outline->depth == INF_OIP_JSON_DEPTH)
            return fail_depth(err);
        outline->opened[outline->depth++] = c;
    } else if (c == ']' || c == '}') {
        outline->depth -= outline->depth > 0;
    }
    return INF_OK;
}

// Reads one byte of the outline, or two in an escape sequence.
static enum inf_code read_byte(struct inf_json_outline *outline, struct inf_error *err)
{
    const uint8_t *text = outline->text.data;
    char c = (char)text[outline->at];
    bool copied = true;
    if (c == '"')
        handle_quote(outline);
    else if (!outline->in_string)
        INF_TRY(handle_byte(outline, c, &copied, err));
    outline->at++;
    if (copied)
        INF_TRY(add_byte(outline, c, err));
    if (c == '\\' && outline->in_string && outline->at < outline->text.size)
        return add_byte(outline, (char)text[outline->at++], err);
    return INF_OK;
}

enum inf_code inf_json_outline_read(struct inf_json_outline *outline, size_t bytes_max, bool *done,
                                    struct inf_error *err)
{
    if (outline->bytes == NULL)
        outline->bytes = malloc(INF_OIP_JSON_OUTLINE_BYTES);
    if (outline->bytes == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "no memory for the JSON text");
    size_t size = outline->text.size, left = size - outline->at;
    size_t end = left > bytes_max ? outline->at + bytes_max : size;
    while (outline->at < end) {
        if (outline->data_depth > 0)
            INF_TRY(skip_data(outline, end, err));
        else
            INF_TRY(read_byte(outline, err));
    }
    *done = outline->at >= size;
    return INF_OK;
}

void inf_json_outline_fini(struct inf_json_outline *outline)
{
    free(outline->bytes);
    outline->bytes = NULL;
}
