// SPDX-License-Identifier: Apache-2.0
// One question to the daemon and its answer, for those who block until it is there.
#ifndef INF_CLIENT_LIB_QUESTION_H
#define INF_CLIENT_LIB_QUESTION_H

#include "client/lib/client.h"

// What goes along; the members are those of union inf_message.
union inf_question_body {
    struct inf_model_request model;
    struct inf_placement_request placement_request;
    struct inf_flag_set_request flag_set;
    struct inf_precompile_message precompile;
};

struct inf_question {
    uint16_t method;
    enum inf_message_kind kind;
    union inf_question_body body;              // where the kind has one
    const struct inf_session_message *session; // instead of a body, being large; NULL: none
    const struct inf_limit_list *limits;       // as session
    const struct inf_infer_request *infer;     // instead of it; NULL: none
    const void *data;                          // to go behind the metadata
    size_t data_bytes;
    enum inf_message_kind reply_kind;
    uint64_t limit_ns; // how long to wait; 0: as long as it takes
    // Takes the answer, and what comes before it.
    enum inf_code (*take)(void *context, const union inf_message *message, bool final,
                          struct inf_error *err);
    void *context;
};

// Asks, as soon as there is credit, and waits for the answer. Returns an error code, as functions of
// the library do.
int inf_client_ask(inferd_client *client, const struct inf_question *question,
                   struct inferd_error *err);

// Fails since `name` is no model's.
int inf_client_refuse_name(struct inferd_error *err, const char *name);

// Fails for lack of memory.
enum inf_code inf_client_fail_memory(struct inf_error *err);

// Whom to tell of a load's progress. A callback that uses the client may be overtaken by further
// progress: the last of it is told afterwards.
struct inf_progress {
    inferd_client *client;
    inferd_progress call; // NULL: nobody
    void *context;
    bool running, waiting;
    char stage[64];
    unsigned percent;
};

// Takes the progress of a load; `context` is a struct inf_progress.
enum inf_code inf_client_take_progress(void *context, const union inf_message *message, bool final,
                                       struct inf_error *err);

#define INF_COPY_TEXT(field, text) snprintf((field), sizeof(field), "%s", (text))

#endif
