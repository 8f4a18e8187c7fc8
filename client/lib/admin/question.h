// SPDX-License-Identifier: Apache-2.0
// Questions (such as "list the models") and orders (such as "load a model") to the daemon, for
// functions that block until the answer has arrived.
#ifndef INF_CLIENT_LIB_ADMIN_QUESTION_H
#define INF_CLIENT_LIB_ADMIN_QUESTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/inferd.h"
#include "proto/core/status.h"
#include "proto/wire/message.h"

// The fields of a question's message. Each member has the same name as the member of union
// inf_message with the same type.
union inf_client_question_body {
    struct inf_model_request model;
    struct inf_placement_request placement_request;
    struct inf_flag_set_request flag_set;
    struct inf_precompile_message precompile;
    struct inf_metrics_request metrics_request;
    struct inf_client_target client_target;
    struct inf_report_request report_request;
};

struct inf_client_question {
    uint16_t method;
    enum inf_message_kind kind;
    // Fields of the message. Not used if the kind has no fields, or if `session`, `limits` or
    // `infer` is set.
    union inf_client_question_body body;
    // Messages that are too large for `body`; at most one of them is set instead of `body`.
    const struct inf_session_message *session;
    const struct inf_limit_list *limits;
    const struct inf_infer_request *infer;
    const void *data; // data that is sent after the metadata; NULL: no data
    size_t data_bytes;
    const int *fd; // a descriptor to send with the question; borrowed; NULL: none
    enum inf_message_kind reply_kind;
    uint64_t limit_ns; // how many nanoseconds to wait for an answer; 0: no limit
    // Called with each answer. Several answers with `final` false may come before the last one.
    // NULL: answers are ignored.
    enum inf_code (*on_reply)(void *context, const union inf_message *message, bool final,
                              struct inf_error *err);
    void *context;
};

// Sends the question as soon as there is credit, and blocks until the answer has come. Sends the
// question again if retry_wait.h allows it. The deadline is `limit_ns` after the call (0: 10 s), or
// the limit of inferd_set_retry() if that is longer. Returns a code of enum inferd_code.
int inf_client_question_ask(inferd_client *client, const struct inf_client_question *question,
                            struct inferd_error *err);

// Reports the error that `name` (which may be NULL) is not the name of a model. Returns the error
// code.
int inf_client_question_refuse_name(struct inferd_error *err, const char *name);

// Returns whether `name` (which may be NULL) has the form NAME or NAME@VERSION.
bool inf_client_question_is_model_name(const char *name);

// Reports that there is no memory for the answer. Returns the error code.
enum inf_code inf_client_question_fail_memory(struct inf_error *err);

// Copies a string to a fixed array, and truncates it if it is too long.
#define INF_COPY_TEXT(field, text) snprintf((field), sizeof(field), "%s", (text))

#endif
