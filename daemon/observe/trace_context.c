// SPDX-License-Identifier: Apache-2.0
// Parses traceparent: VERSION-TRACE_ID-PARENT_ID-FLAGS in lower-case hexadecimal digits, such as
// 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01. Version 00 has nothing after the flags;
// a later version may have more fields, which are ignored.
#include "daemon/observe/trace_context.h"

#include <string.h>

// Lengths of the fields in characters, and offsets of the dashes behind them.
#define VERSION_END 2
#define TRACE_END   35
#define PARENT_END  52
#define FLAGS_END   55

#define FLAG_SAMPLED 1u

// Returns the value of a lower-case hexadecimal digit; -1 if it is none.
static int parse_digit(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

// Parses 2 * `count` digits. Returns false if a character is no digit. *zero tells whether all
// bytes are 0.
static bool parse_bytes(const char *digits, uint8_t *bytes, uint32_t count, bool *zero)
{
    *zero = true;
    for (uint32_t i = 0; i < count; i++) {
        int high = parse_digit(digits[2 * i]);
        int low = high < 0 ? -1 : parse_digit(digits[2 * i + 1]);
        if (low < 0)
            return false;
        bytes[i] = (uint8_t)(high * 16 + low);
        *zero = *zero && bytes[i] == 0;
    }
    return true;
}

bool inf_trace_context_parse(struct inf_trace_context *context, const char *traceparent,
                             bool *sampled)
{
    uint8_t version;
    uint8_t flags;
    bool no_version;
    bool no_trace;
    bool no_parent;
    bool no_flags;
    if (strnlen(traceparent, FLAGS_END + 1) < FLAGS_END || traceparent[VERSION_END] != '-' ||
        traceparent[TRACE_END] != '-' || traceparent[PARENT_END] != '-')
        return false;
    if (!parse_bytes(traceparent, &version, 1, &no_version) ||
        !parse_bytes(traceparent + VERSION_END + 1, context->trace_id, INF_TRACE_ID_BYTES,
                     &no_trace) ||
        !parse_bytes(traceparent + TRACE_END + 1, context->parent_id, INF_SPAN_ID_BYTES,
                     &no_parent) ||
        !parse_bytes(traceparent + PARENT_END + 1, &flags, 1, &no_flags))
        return false;
    char after = traceparent[FLAGS_END];
    if (no_trace || no_parent || version == 0xff || (after != '\0' && (no_version || after != '-')))
        return false;
    *sampled = (flags & FLAG_SAMPLED) != 0;
    return true;
}

void inf_trace_context_set_state(struct inf_trace_context *context, const char *tracestate)
{
    size_t length = strnlen(tracestate, INF_LIMIT_TRACE_STATE + 1);
    bool printable = length <= INF_LIMIT_TRACE_STATE;
    for (size_t i = 0; i < length && printable; i++)
        printable = tracestate[i] >= ' ' && tracestate[i] <= '~';
    if (!printable)
        length = 0;
    memcpy(context->state, tracestate, length);
    context->state[length] = '\0';
}
