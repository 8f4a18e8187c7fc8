// SPDX-License-Identifier: Apache-2.0
// Errors: formatting their text, and the names of codes and reasons. Control characters and invalid
// UTF-8 in the texts are replaced, because the texts may quote names from model files and clients.
#include "proto/core/status.h"

#include <stdio.h>
#include <string.h>

#include "proto/core/utf8.h"

enum inf_code inf_error_vset(struct inf_error *err, enum inf_code code, enum inf_reason reason,
                             const char *file, int line, const char *format, va_list arguments)
{
    if (err == NULL)
        return code;
    err->code = code;
    err->reason = reason;
    err->file = file;
    err->line = line;
    vsnprintf(err->text, sizeof err->text, format, arguments);
    inf_text_trim(err->text);
    // Replace invalid bytes, because the text may quote a name from a file or a client.
    inf_text_clean(err->text);
    return code;
}

enum inf_code inf_error_set(struct inf_error *err, enum inf_code code, enum inf_reason reason,
                            const char *file, int line, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    inf_error_vset(err, code, reason, file, line, format, arguments);
    va_end(arguments);
    return code;
}

enum inf_code inf_error_prefix(struct inf_error *err, enum inf_code code, const char *format, ...)
{
    if (err == NULL)
        return code;
    char prefix[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(prefix, sizeof prefix, format, arguments);
    va_end(arguments);
    inf_text_trim(prefix);
    inf_text_clean(prefix);

    size_t prefix_size = strlen(prefix);
    size_t text_size = strlen(err->text);
    size_t room = sizeof err->text - 1 - prefix_size - 2;
    if (text_size > room)
        text_size = room;
    memmove(err->text + prefix_size + 2, err->text, text_size);
    memcpy(err->text, prefix, prefix_size);
    memcpy(err->text + prefix_size, ": ", 2);
    err->text[prefix_size + 2 + text_size] = '\0';
    inf_text_trim(err->text);
    return err->code;
}

void inf_text_trim(char *text)
{
    size_t size = strlen(text);
    size_t tail = 0; // number of UTF-8 continuation bytes at the end of the text
    while (tail < size && tail < 3 && ((unsigned char)text[size - 1 - tail] & 0xc0) == 0x80)
        tail++;
    if (tail == size)
        return;
    unsigned char lead = (unsigned char)text[size - 1 - tail];
    size_t wanted = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : lead >= 0xc0 ? 1 : 0;
    if (wanted > tail)
        text[size - 1 - tail] = '\0';
}

const char *inf_code_name(enum inf_code code)
{
    static const char *const names[] = {
        [INF_OK] = "OK",
        [INF_CANCELLED] = "CANCELLED",
        [INF_INVALID] = "INVALID_ARGUMENT",
        [INF_DEADLINE] = "DEADLINE_EXCEEDED",
        [INF_NOT_FOUND] = "NOT_FOUND",
        [INF_EXISTS] = "ALREADY_EXISTS",
        [INF_DENIED] = "PERMISSION_DENIED",
        [INF_EXHAUSTED] = "RESOURCE_EXHAUSTED",
        [INF_PRECONDITION] = "FAILED_PRECONDITION",
        [INF_ABORTED] = "ABORTED",
        [INF_RANGE] = "OUT_OF_RANGE",
        [INF_UNSUPPORTED] = "UNIMPLEMENTED",
        [INF_INTERNAL] = "INTERNAL",
        [INF_UNAVAILABLE] = "UNAVAILABLE",
    };
    if ((size_t)code < INF_ARRAY_LENGTH(names) && names[code] != NULL)
        return names[code];
    return "CODE_UNKNOWN";
}

const char *inf_reason_name(enum inf_reason reason)
{
    static const char *const names[INF_REASON_COUNT] = {
        [INF_REASON_NONE] = "NONE",
        [INF_REASON_TENSOR_MISSING] = "TENSOR_MISSING",
        [INF_REASON_TENSOR_UNKNOWN] = "TENSOR_UNKNOWN",
        [INF_REASON_DTYPE_MISMATCH] = "DTYPE_MISMATCH",
        [INF_REASON_SHAPE_MISMATCH] = "SHAPE_MISMATCH",
        [INF_REASON_SIZE_MISMATCH] = "SIZE_MISMATCH",
        [INF_REASON_BAD_PARAMETER] = "BAD_PARAMETER",
        [INF_REASON_BAD_FRAME] = "BAD_FRAME",
        [INF_REASON_BAD_JSON] = "BAD_JSON",
        [INF_REASON_IN_QUEUE] = "IN_QUEUE",
        [INF_REASON_IN_EXEC] = "IN_EXEC",
        [INF_REASON_PREDICTED] = "PREDICTED",
        [INF_REASON_LOADING] = "LOADING",
        [INF_REASON_MODEL_NOT_FOUND] = "MODEL_NOT_FOUND",
        [INF_REASON_VERSION_NOT_FOUND] = "VERSION_NOT_FOUND",
        [INF_REASON_LABEL_NOT_FOUND] = "LABEL_NOT_FOUND",
        [INF_REASON_REGION_NOT_FOUND] = "REGION_NOT_FOUND",
        [INF_REASON_REGION_EXISTS] = "REGION_EXISTS",
        [INF_REASON_SESSION_EXISTS] = "SESSION_EXISTS",
        [INF_REASON_ROLE] = "ROLE",
        [INF_REASON_MODEL_ACL] = "MODEL_ACL",
        [INF_REASON_QUEUE_FULL] = "QUEUE_FULL",
        [INF_REASON_QUOTA_REQUESTS] = "QUOTA_REQUESTS",
        [INF_REASON_QUOTA_BYTES] = "QUOTA_BYTES",
        [INF_REASON_DEVICE_OOM] = "DEVICE_OOM",
        [INF_REASON_HOST_OOM] = "HOST_OOM",
        [INF_REASON_FRAME_TOO_LARGE] = "FRAME_TOO_LARGE",
        [INF_REASON_MODEL_UNLOADED] = "MODEL_UNLOADED",
        [INF_REASON_MODEL_FAILED] = "MODEL_FAILED",
        [INF_REASON_SEALS_MISSING] = "SEALS_MISSING",
        [INF_REASON_MODEL_SWAPPED] = "MODEL_SWAPPED",
        [INF_REASON_SESSION_LOST] = "SESSION_LOST",
        [INF_REASON_OUTPUT_TOO_SMALL] = "OUTPUT_TOO_SMALL",
        [INF_REASON_REGION_BOUNDS] = "REGION_BOUNDS",
        [INF_REASON_METHOD] = "METHOD",
        [INF_REASON_FEATURE] = "FEATURE",
        [INF_REASON_OPERATOR] = "OPERATOR",
        [INF_REASON_BUG] = "BUG",
        [INF_REASON_BACKEND] = "BACKEND",
        [INF_REASON_DRAINING] = "DRAINING",
        [INF_REASON_DEVICE_LOST] = "DEVICE_LOST",
        [INF_REASON_DEVICE_HUNG] = "DEVICE_HUNG",
        [INF_REASON_NO_DEVICE] = "NO_DEVICE",
        [INF_REASON_BY_CLIENT] = "BY_CLIENT",
        [INF_REASON_DISCONNECT] = "DISCONNECT",
        [INF_REASON_BY_ADMIN] = "BY_ADMIN",
        [INF_REASON_SHUTDOWN] = "SHUTDOWN",
        [INF_REASON_REGION_SPARSE] = "REGION_SPARSE",
        [INF_REASON_QUOTA_TIME] = "QUOTA_TIME",
        [INF_REASON_NOT_BEGUN] = "NOT_BEGUN",
        [INF_REASON_OUTCOME_UNKNOWN] = "OUTCOME_UNKNOWN",
    };
    if ((size_t)reason < INF_ARRAY_LENGTH(names))
        return names[reason];
    return "REASON_UNKNOWN";
}
