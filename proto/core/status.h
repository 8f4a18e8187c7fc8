// SPDX-License-Identifier: Apache-2.0
// How functions fail: a code, a reason for machines, a line of text for people.
#ifndef INF_PROTO_CORE_STATUS_H
#define INF_PROTO_CORE_STATUS_H

#include <stdarg.h>

#include "proto/core/attributes.h"

// The numbers are those of google.rpc.Code and go over the wire as they are: append only.
enum inf_code {
    INF_OK = 0,
    INF_CANCELLED = 1,    // The caller, or an operator, no longer wants the answer.
    INF_INVALID = 3,      // The request is wrong whatever the state: do not retry.
    INF_DEADLINE = 4,     // The time the caller gave ran out.
    INF_NOT_FOUND = 5,    // The named thing does not exist.
    INF_EXISTS = 6,       // The named thing exists already.
    INF_DENIED = 7,       // The caller's role does not allow it.
    INF_EXHAUSTED = 8,    // A limit or memory: retry later, or smaller.
    INF_PRECONDITION = 9, // Right request, wrong state: change the state first.
    INF_ABORTED = 10,     // Lost to something concurrent: retry the whole.
    INF_RANGE = 11,       // An offset or size beyond what it points into.
    INF_UNSUPPORTED = 12, // Understood, but not built: operator, method, feature.
    INF_INTERNAL = 13,    // A bug or a broken backend.
    INF_UNAVAILABLE = 14, // Not now (loading, draining, device lost): retry later.
};

// The detail that a program can act on. Wire numbers: append only. docs/reference/protocol.md tells which
// reasons go with which code, and which of them are safe to retry.
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
    INF_REASON_COUNT,
};

// One failure. Owned by whoever declared it; nothing in it needs freeing. The text is one lower-case
// line that names the object, the offending value and what was wanted; it goes to clients
// unchanged, so it never holds a path of the server's or an address.
struct inf_error {
    enum inf_code code;
    enum inf_reason reason;
    char text[1024];  // long enough to name every operator that a model lacks
    const char *file; // where it was raised
    int line;
};

// Fills `err` (NULL allowed) and returns `code`. Call it where a failure starts, never to forward.
enum inf_code inf_error_set(struct inf_error *err, enum inf_code code, enum inf_reason reason,
                            const char *file, int line, const char *format, ...) INF_PRINTF(6, 7);

// As inf_error_set(), with the arguments in a va_list.
enum inf_code inf_error_vset(struct inf_error *err, enum inf_code code, enum inf_reason reason,
                             const char *file, int line, const char *format, va_list arguments)
    INF_PRINTF(6, 0);

// Puts "<prefix>: " before the text of an error already set, to say what was being done.
// Returns err->code (`code` where err is NULL), so that it can stand in a return.
enum inf_code inf_error_prefix(struct inf_error *err, enum inf_code code, const char *format, ...)
    INF_PRINTF(3, 4);

#define inf_fail(err, code, ...)                                                                   \
    inf_error_set((err), (code), INF_REASON_NONE, __FILE__, __LINE__, __VA_ARGS__)
#define inf_fail_reason(err, code, reason, ...)                                                    \
    inf_error_set((err), (code), (reason), __FILE__, __LINE__, __VA_ARGS__)

// Forwards a failure to the caller.
#define INF_TRY(expression)                                                                        \
    do {                                                                                           \
        enum inf_code inf_try_code_ = (expression);                                                \
        if (inf_try_code_ != INF_OK)                                                               \
            return inf_try_code_;                                                                  \
    } while (0)

// Takes off the end of a text that was cut to fit what is left of a UTF-8 character: texts go to
// clients, whose protobuf readers refuse half of one.
void inf_text_trim(char *text);

// The name of a code as google.rpc spells it ("INVALID_ARGUMENT"); "CODE_UNKNOWN" for others.
const char *inf_code_name(enum inf_code code);

// The name of a reason ("TENSOR_MISSING"); "NONE" for 0, "REASON_UNKNOWN" for others.
const char *inf_reason_name(enum inf_reason reason);

#endif
