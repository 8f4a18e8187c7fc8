// SPDX-License-Identifier: Apache-2.0
// Parses JSON from clients. jansson limits only the depth of a text, to 2048. A value that takes
// two bytes of text takes 40 bytes of memory, and an empty array takes 128. The values and arrays
// of a text are therefore counted before jansson parses it.
#include "client/gateway/oip/json_guard.h"

#include <stdbool.h>

// Fails if a text has too many containers (arrays and objects) or values (counted by their commas),
// or nests too deeply. For a text that is no valid JSON the counts have no meaning; jansson refuses
// it.
static enum inf_code count_values(struct inf_span text, struct inf_error *err)
{
    size_t containers = 0, values = 0, depth = 0;
    bool in_string = false;
    for (size_t i = 0; i < text.size; i++) {
        uint8_t c = text.data[i];
        if (in_string) {
            i += c == '\\';
            in_string = c != '"';
            continue;
        }
        in_string = c == '"';
        values += c == ',';
        if (c == '[' || c == '{') {
            containers++;
            depth++;
        } else if ((c == ']' || c == '}') && depth > 0) {
            depth--;
        }
        if (depth > INF_OIP_JSON_DEPTH)
            return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_JSON,
                                   "the JSON text nests deeper than %u levels", INF_OIP_JSON_DEPTH);
    }
    if (containers > INF_OIP_JSON_CONTAINERS || values > INF_OIP_JSON_VALUES)
        return inf_fail_reason(
            err, INF_INVALID, INF_REASON_BAD_JSON,
            "the JSON text has too many values; send the tensors as binary data");
    return INF_OK;
}

enum inf_code inf_oip_json_parse(struct inf_span text, json_t **json, struct inf_error *err)
{
    if (text.size > INF_OIP_JSON_BYTES)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_FRAME_TOO_LARGE,
                               "the JSON text has %zu bytes, the maximum is %zu; send the tensors "
                               "as binary data",
                               text.size, INF_OIP_JSON_BYTES);
    INF_TRY(count_values(text, err));
    json_error_t error;
    *json = json_loadb((const char *)text.data, text.size, JSON_REJECT_DUPLICATES, &error);
    if (*json == NULL)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_JSON,
                               "the JSON text is invalid at byte %d: %s", error.position,
                               error.text);
    return INF_OK;
}
