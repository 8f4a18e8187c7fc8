// SPDX-License-Identifier: Apache-2.0
// A queue of questions to the daemon (about models, metrics, loading and unloading). libinferd
// blocks until a question is answered, so each queue has a thread that asks them.
#ifndef INF_GATEWAY_QUESTION_H
#define INF_GATEWAY_QUESTION_H

#include "client/gateway/oip/statistics.h"
#include "client/inferd.h"
#include "proto/core/attributes.h"
#include "proto/core/status.h"

struct event_base;
struct inf_question_queue;

// Maximum number of unanswered questions in a queue. The daemon answers a health check or a
// metadata request in well below a millisecond, so a full queue means that the daemon hangs.
#define INF_QUESTIONS_MAX 256u

enum inf_question_kind {
    INF_QUESTION_DESCRIBE, // metadata of a model
    INF_QUESTION_READY,    // whether a model can answer requests
    INF_QUESTION_MODELS,   // the list of models
    INF_QUESTION_METRICS,
    INF_QUESTION_STATISTICS, // statistics of `model`; "": of all models
    INF_QUESTION_SESSION,    // opens a session on a connection of its own
    INF_QUESTION_LOAD,
    INF_QUESTION_UNLOAD,
};

// A question to the daemon. When `callback` is called, the struct also holds the answer.
struct inf_question {
    enum inf_question_kind kind;
    char model[65];
    char version[24];   // "": the newest version
    const char *format; // format of metrics; NULL: the default
    // Called on the thread of the loop when the question is answered. The callback must free the
    // question with inf_question_free(). `context` is NULL if inf_question_forget() was called.
    void (*callback)(void *context, struct inf_question *question);
    void *context;
    // The answer. It is valid if err.code is INFERD_OK.
    struct inferd_error err;
    bool ready;
    inferd_model_info *info;
    inferd_model_row *rows;
    size_t row_count;
    char *text;
    size_t text_size;
    struct inf_oip_statistics statistics;
    inferd_client *client; // connection of a new session; the callback may take it
    inferd_session *session;
    struct inf_question *next; // next question in a list of the queue
};

// Creates a queue and its thread. The thread connects to the daemon's socket at `path` (NULL: the
// default path) when a question arrives, and reconnects if the connection failed.
enum inf_code inf_question_queue_create(struct inf_question_queue **queue, struct event_base *base,
                                        const char *path, struct inf_error *err) INF_NODISCARD;

// Ends the thread and frees the queue with all its questions; their callbacks are not called. A
// question that waits for the daemon is given up, so the function blocks for at most the time of
// one attempt to connect, about 1 s. The daemon may still finish a load that was given up. Sets
// *queue to NULL.
void inf_question_queue_destroy(struct inf_question_queue **queue);

// Puts a question into the queue. The question must have been allocated with calloc(). The queue
// owns the question until it calls question->callback. Returns false if the queue has
// INF_QUESTIONS_MAX questions; the caller then still owns the question.
bool inf_question_ask(struct inf_question_queue *queue, struct inf_question *question);

// Sets `context` of a question to NULL. The caller must call this before it frees the object that
// `context` points to. The callback is still called, with NULL as its context.
void inf_question_forget(struct inf_question *question);

// Frees a question and its answer.
void inf_question_free(struct inf_question *question);

#endif
