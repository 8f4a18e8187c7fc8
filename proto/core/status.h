// SPDX-License-Identifier: Apache-2.0
// How functions report failures: a code, a reason for programs, and a line of text for people.
#ifndef INF_PROTO_CORE_STATUS_H
#define INF_PROTO_CORE_STATUS_H

#include <stdarg.h>

#include "proto/core/attributes.h"

// The numbers are those of google.rpc.Code. They are sent on the wire, so codes may only be
// appended.
enum inf_code {
    INF_OK = 0,
    INF_CANCELLED = 1, // The client or an admin cancelled the request.
    INF_INVALID = 3,   // The request is wrong in every state of the daemon: do not retry.
    INF_DEADLINE = 4,  // The client's timeout passed.
    INF_NOT_FOUND = 5, // The named thing does not exist.
    INF_EXISTS = 6,    // A thing with this name exists already.
    INF_DENIED = 7,    // The caller's role does not allow the operation.
    // A limit was reached or memory is exhausted: retry later, or with less data.
    INF_EXHAUSTED = 8,
    INF_PRECONDITION = 9, // The request is valid only in another state: change the state first.
    INF_ABORTED = 10,     // Another request interfered: retry from the beginning.
    INF_RANGE = 11,       // An offset or size is beyond the end of its buffer.
    INF_UNSUPPORTED = 12, // An operator, method or feature is not implemented.
    INF_INTERNAL = 13,    // There is a bug, or a backend is broken.
    INF_UNAVAILABLE = 14, // Temporarily not available (loading, draining, device lost): retry.
};

// A detailed reason that a program can act on. The numbers are sent on the wire, so reasons may
// only be appended. docs/reference/protocol.md says which reasons belong to which code, and which
// of them can be retried.
enum inf_reason {
    INF_REASON_NONE = 0,
    INF_REASON_TENSOR_MISSING = 1,
    INF_REASON_TENSOR_UNKNOWN = 2,
    INF_REASON_DTYPE_MISMATCH = 3,
    INF_REASON_SHAPE_MISMATCH = 4,
    INF_REASON_SIZE_MISMATCH = 5,
    INF_REASON_BAD_PARAMETER = 6,
    INF_REASON_BAD_FRAME = 7,
    INF_REASON_BAD_JSON = 8,
    INF_REASON_IN_QUEUE = 9,
    INF_REASON_IN_EXEC = 10,
    INF_REASON_PREDICTED = 11,
    INF_REASON_LOADING = 12,
    INF_REASON_MODEL_NOT_FOUND = 13,
    INF_REASON_VERSION_NOT_FOUND = 14,
    INF_REASON_LABEL_NOT_FOUND = 15,
    INF_REASON_REGION_NOT_FOUND = 16,
    INF_REASON_REGION_EXISTS = 17,
    INF_REASON_SESSION_EXISTS = 18,
    INF_REASON_ROLE = 19,
    INF_REASON_MODEL_ACL = 20,
    INF_REASON_QUEUE_FULL = 21,
    INF_REASON_QUOTA_REQUESTS = 22,
    INF_REASON_QUOTA_BYTES = 23,
    INF_REASON_DEVICE_OOM = 24,
    INF_REASON_HOST_OOM = 25,
    INF_REASON_FRAME_TOO_LARGE = 26,
    INF_REASON_MODEL_UNLOADED = 27,
    INF_REASON_MODEL_FAILED = 28,
    INF_REASON_SEALS_MISSING = 29,
    INF_REASON_MODEL_SWAPPED = 30,
    INF_REASON_SESSION_LOST = 31,
    INF_REASON_OUTPUT_TOO_SMALL = 32,
    INF_REASON_REGION_BOUNDS = 33,
    INF_REASON_METHOD = 34,
    INF_REASON_FEATURE = 35,
    INF_REASON_OPERATOR = 36,
    INF_REASON_BUG = 37,
    INF_REASON_BACKEND = 38,
    INF_REASON_DRAINING = 39,
    INF_REASON_DEVICE_LOST = 40,
    INF_REASON_DEVICE_HUNG = 41,
    INF_REASON_NO_DEVICE = 42,
    INF_REASON_BY_CLIENT = 43,
    INF_REASON_DISCONNECT = 44,
    INF_REASON_BY_ADMIN = 45,
    INF_REASON_SHUTDOWN = 46,
    INF_REASON_REGION_SPARSE = 47,
    INF_REASON_QUOTA_TIME = 48,
    INF_REASON_NOT_BEGUN = 49,
    INF_REASON_OUTCOME_UNKNOWN = 50,
    INF_REASON_COUNT,
};

// Describes one failure. The struct owns no memory. The text is one lower-case line that names the
// object, the wrong value and the expected one. Clients receive the text unchanged, so it must not
// contain a path of the server or an address.
struct inf_error {
    enum inf_code code;
    enum inf_reason reason;
    char text[1024];  // long enough to name every operator that a model lacks
    const char *file; // source file that reported the failure
    int line;
};

// Fills *err (NULL is allowed) and returns `code`. Call this function at the place that detects a
// failure; use INF_TRY() to forward a failure. Control characters in the text become '?'.
enum inf_code inf_error_set(struct inf_error *err, enum inf_code code, enum inf_reason reason,
                            const char *file, int line, const char *format, ...) INF_PRINTF(6, 7);

// Fills *err and returns `code` as inf_error_set() does, with the arguments of the format in a
// va_list.
enum inf_code inf_error_vset(struct inf_error *err, enum inf_code code, enum inf_reason reason,
                             const char *file, int line, const char *format, va_list arguments)
    INF_PRINTF(6, 0);

// Inserts "<prefix>: " before the text of an error, to name the operation that failed. Returns
// err->code, or `code` if `err` is NULL.
enum inf_code inf_error_prefix(struct inf_error *err, enum inf_code code, const char *format, ...)
    INF_PRINTF(3, 4);

#define inf_fail(err, code, ...)                                                                   \
    inf_error_set((err), (code), INF_REASON_NONE, __FILE__, __LINE__, __VA_ARGS__)
#define inf_fail_reason(err, code, reason, ...)                                                    \
    inf_error_set((err), (code), (reason), __FILE__, __LINE__, __VA_ARGS__)

// Evaluates `expression`, and returns its code from the calling function if it is a failure.
#define INF_TRY(expression)                                                                        \
    do {                                                                                           \
        enum inf_code inf_try_code_ = (expression);                                                \
        if (inf_try_code_ != INF_OK)                                                               \
            return inf_try_code_;                                                                  \
    } while (0)

// Removes an incomplete UTF-8 character from the end of a text that was truncated. The protobuf
// readers of clients refuse incomplete characters.
void inf_text_trim(char *text);

// Returns the name of a code as google.rpc spells it ("INVALID_ARGUMENT"), or "CODE_UNKNOWN".
const char *inf_code_name(enum inf_code code);

// Returns the name of a reason ("TENSOR_MISSING", "NONE" for 0), or "REASON_UNKNOWN".
const char *inf_reason_name(enum inf_reason reason);

#endif
