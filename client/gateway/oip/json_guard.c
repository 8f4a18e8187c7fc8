// SPDX-License-Identifier: Apache-2.0
// Parses JSON from clients. A value that takes two bytes of text takes 40 bytes of memory, and an
// empty array takes 128; the limit on the size of a text bounds both. jansson limits the depth only
// to 2048, so that depth is checked before.
#include "client/gateway/oip/json_guard.h"

#include <stdbool.h>

// Fails if a text nests too deeply. For a text that is no valid JSON the depth has no meaning;
// jansson refuses it.
static enum inf_code check_depth(struct inf_span text, struct inf_error *err)
{
    size_t depth = 0;
    bool in_string = false;
    for (size_t i = 0; i < text.size; i++) {
        uint8_t c = text.data[i];
        if (in_string) {
            i += c == '\\';
            in_string = c != '"';
            continue;
        }
        in_string = c == '"';
        if (c == '[' || c == '{')
            depth++;
        else if ((c == ']' || c == '}') && depth > 0)
            depth--;
        if (depth > INF_OIP_JSON_DEPTH)
            return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_JSON,
                                   "the JSON text nests deeper than %u levels", INF_OIP_JSON_DEPTH);
    }
    return INF_OK;
}

enum inf_code inf_oip_json_parse(struct inf_span text, json_t **json, struct inf_error *err)
{
    *json = NULL;
    if (text.size > INF_OIP_JSON_OUTLINE_BYTES)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_FRAME_TOO_LARGE,
                               "the JSON text has %zu bytes, the maximum is %zu", text.size,
                               INF_OIP_JSON_OUTLINE_BYTES);
    INF_TRY(check_depth(text, err));
    json_error_t error;
    *json = json_loadb((const char *)text.data, text.size, JSON_REJECT_DUPLICATES, &error);
    if (*json == NULL)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_JSON,
                               "the JSON text is invalid: %s", error.text);
    return INF_OK;
}
