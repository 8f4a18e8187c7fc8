// SPDX-License-Identifier: Apache-2.0
// A table of sequences by owner, model, version and name. Opening a session with libinferd blocks,
// so the thread for questions connects and opens it. The loop then drives the connection with a
// link. A connection for each sequence makes a sequence independent of the others: it is lost if
// its own connection is lost, and closing the connection ends the session without a wait.
//
//   opening: calls wait in `calls`  ->  open: calls are sent  ->  retired: not in the table, ends
//                                                                 with its last call
//
// A sequence can end inside a callback of its own link. It is therefore only retired there, and
// freed later from the event loop.
#include "client/gateway/core/sequences.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include <event2/event.h>

#include "client/gateway/http/clock.h"

// Number of lists in the table.
#define BUCKETS 256u
// Interval at which the table is searched for idle sequences, in milliseconds.
#define CHECK_MS 200

struct inf_sequence_call {
    struct sequence *sequence;
    inferd_request wanted;
    const char *trace_parent;
    inf_link_callback callback;
    void *context;
    struct inf_link_call *call; // NULL: the session is being opened
    bool ended;                 // the callback was called, and the call is in no list
    uint64_t begin_ms;
    TAILQ_ENTRY(inf_sequence_call) next;
};

struct sequence {
    struct inf_sequences *owner;
    char model[INF_LIMIT_MODEL_NAME + 1], version[24], name[INF_OIP_SEQUENCE_BYTES];
    unsigned owner_token;          // request->owner
    struct inf_question *question; // opens the session; NULL: the daemon has answered
    struct inf_link *link;         // NULL: the session is not open
    inferd_session *session;       // belongs to the client of the link
    TAILQ_HEAD(, inf_sequence_call) calls;
    unsigned call_count;
    unsigned held; // calls that have ended and were not released: their results may be in use
    bool sending;  // handle_session() sends the calls that wait
    bool retired;
    uint64_t used_ms;               // when the last request was sent or answered
    LIST_ENTRY(sequence) in_bucket; // entry in a bucket, unless retired
    TAILQ_ENTRY(sequence) in_order; // entry in the list `used` or `retired`
};

TAILQ_HEAD(sequence_list, sequence);

struct inf_sequences {
    struct event_base *base;
    struct inf_question_queue *questions;
    struct event *timer;
    size_t max, count;
    uint64_t idle_ms;
    LIST_HEAD(, sequence) buckets[BUCKETS];
    struct sequence_list used; // sequences that are not retired, the least recently used first
    struct sequence_list retired;
};

static void set_timer(struct inf_sequences *sequences, unsigned ms)
{
    struct timeval time = {0, (suseconds_t)ms * 1000};
    event_add(sequences->timer, &time);
}

static void free_sequence(struct sequence *sequence)
{
    struct inf_sequences *owner = sequence->owner;
    if (sequence->question != NULL)
        inf_question_forget(sequence->question);
    while (!TAILQ_EMPTY(&sequence->calls)) {
        struct inf_sequence_call *call = TAILQ_FIRST(&sequence->calls);
        TAILQ_REMOVE(&sequence->calls, call, next);
        free(call);
    }
    if (sequence->retired)
        TAILQ_REMOVE(&owner->retired, sequence, in_order);
    else
        TAILQ_REMOVE(&owner->used, sequence, in_order);
    if (!sequence->retired)
        LIST_REMOVE(sequence, in_bucket);
    inf_link_destroy(&sequence->link); // closes the connection, which ends the session
    owner->count--;
    free(sequence);
}

// Removes a sequence from the table. The sequence ends when it has no calls.
static void retire_sequence(struct sequence *sequence)
{
    struct inf_sequences *owner = sequence->owner;
    if (sequence->retired)
        return;
    LIST_REMOVE(sequence, in_bucket);
    TAILQ_REMOVE(&owner->used, sequence, in_order);
    TAILQ_INSERT_TAIL(&owner->retired, sequence, in_order);
    sequence->retired = true;
    set_timer(owner, 0);
}

// Marks a sequence as used at this time.
static void touch_sequence(struct sequence *sequence)
{
    sequence->used_ms = inf_http_clock_ms();
    if (sequence->retired)
        return;
    TAILQ_REMOVE(&sequence->owner->used, sequence, in_order);
    TAILQ_INSERT_TAIL(&sequence->owner->used, sequence, in_order);
}

// Frees retired sequences without calls, and retires sequences that are idle for too long.
static void check_sequences(evutil_socket_t fd, short events, void *context)
{
    (void)fd;
    (void)events;
    struct inf_sequences *sequences = context;
    uint64_t now = inf_http_clock_ms();
    struct sequence *sequence, *next;
    while ((sequence = TAILQ_FIRST(&sequences->used)) != NULL &&
           now - sequence->used_ms > sequences->idle_ms) {
        if (sequence->call_count == 0)
            retire_sequence(sequence);
        else
            touch_sequence(sequence);
    }
    for (sequence = TAILQ_FIRST(&sequences->retired); sequence != NULL; sequence = next) {
        next = TAILQ_NEXT(sequence, in_order);
        if (sequence->call_count == 0 && sequence->held == 0)
            free_sequence(sequence);
    }
    if (!TAILQ_EMPTY(&sequences->used))
        set_timer(sequences, CHECK_MS);
    else
        event_del(sequences->timer);
}

enum inf_code inf_sequences_create(struct inf_sequences **sequences, struct event_base *base,
                                   struct inf_question_queue *questions, size_t max,
                                   uint64_t idle_ms, struct inf_error *err)
{
    struct inf_sequences *made = calloc(1, sizeof *made);
    if (made != NULL)
        made->timer = evtimer_new(base, check_sequences, made);
    if (made == NULL || made->timer == NULL) {
        free(made);
        return inf_fail(err, INF_EXHAUSTED, "no memory for the table of sequences");
    }
    made->base = base;
    made->questions = questions;
    made->max = max;
    made->idle_ms = idle_ms;
    TAILQ_INIT(&made->used);
    TAILQ_INIT(&made->retired);
    *sequences = made;
    return INF_OK;
}

void inf_sequences_destroy(struct inf_sequences **sequences)
{
    struct inf_sequences *dying = *sequences;
    if (dying == NULL)
        return;
    while (!TAILQ_EMPTY(&dying->used))
        free_sequence(TAILQ_FIRST(&dying->used));
    while (!TAILQ_EMPTY(&dying->retired))
        free_sequence(TAILQ_FIRST(&dying->retired));
    event_free(dying->timer);
    free(dying);
    *sequences = NULL;
}

size_t inf_sequences_count(const struct inf_sequences *sequences)
{
    return sequences->count;
}

// Frees a retired sequence soon if nothing needs it.
static void check_soon(struct sequence *sequence)
{
    if (sequence->retired && sequence->call_count == 0 && sequence->held == 0)
        set_timer(sequence->owner, 0);
}

// Removes a call from the list of its sequence.
static void end_call(struct inf_sequence_call *call)
{
    struct sequence *sequence = call->sequence;
    TAILQ_REMOVE(&sequence->calls, call, next);
    call->ended = true;
    sequence->call_count--;
    sequence->held++;
    touch_sequence(sequence);
}

static void handle_answer(void *context, inferd_result *result, const struct inferd_error *err)
{
    struct inf_sequence_call *call = context;
    end_call(call);
    call->callback(call->context, result, err);
}

static void fail_call(struct inf_sequence_call *call, const struct inferd_error *err)
{
    end_call(call);
    call->callback(call->context, NULL, err);
}

// Sends a call on the open connection of its sequence.
static int send_call(struct inf_sequence_call *call, struct inferd_error *err)
{
    struct sequence *sequence = call->sequence;
    uint64_t waited_ms = inf_http_clock_ms() - call->begin_ms;
    call->wanted.session = sequence->session;
    if (call->wanted.timeout_ms != 0)
        call->wanted.timeout_ms -= INF_MIN(waited_ms, call->wanted.timeout_ms - 1);
    if (inf_link_infer(sequence->link, &call->wanted, call->trace_parent, handle_answer, call,
                       &call->call, err) == INFERD_OK)
        return INFERD_OK;
    if (!inf_link_is_ready(sequence->link)) {
        retire_sequence(sequence);
        *err = (struct inferd_error){INFERD_ABORTED, "",
                                     "the sequence was lost with its connection to the daemon; it "
                                     "must be started again",
                                     0};
    }
    return err->code;
}

// Sends, or fails with *opened, the calls that wait for the session. A callback can start and
// cancel calls, so the search begins again after each call; INF_SEQUENCE_CALLS_MAX bounds it.
static void send_calls(struct sequence *sequence, const struct inferd_error *opened)
{
    sequence->sending = true;
    for (;;) {
        struct inf_sequence_call *call;
        struct inferd_error err = *opened;
        TAILQ_FOREACH(call, &sequence->calls, next)
        if (call->call == NULL)
            break;
        if (call == NULL)
            break;
        if (err.code != INFERD_OK || send_call(call, &err) != INFERD_OK)
            fail_call(call, &err);
    }
    sequence->sending = false;
}

// Called when the session is open or could not be opened.
static void handle_session(void *context, struct inf_question *question)
{
    struct sequence *sequence = context;
    struct inferd_error err = question->err;
    if (sequence != NULL) {
        sequence->question = NULL;
        sequence->session = question->session;
        if (err.code == INFERD_OK &&
            !inf_link_adopt(&sequence->link, sequence->owner->base, question->client))
            err = (struct inferd_error){INFERD_RESOURCE_EXHAUSTED, "HOST_OOM", "no memory", 1000};
        else if (err.code == INFERD_OK)
            question->client = NULL;
        if (err.code != INFERD_OK)
            retire_sequence(sequence);
        send_calls(sequence, &err);
    }
    inf_question_free(question);
}

// Returns the number of the list that holds a sequence (FNV-1a of its names).
static size_t hash_names(const struct inf_oip_request *request)
{
    const char *names[] = {request->model, request->version, request->sequence};
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < INF_ARRAY_LENGTH(names); i++)
        for (const char *c = names[i]; *c != '\0'; c++)
            hash = (hash ^ (uint8_t)*c) * 16777619u;
    return hash % BUCKETS;
}

static struct sequence *find_sequence(struct inf_sequences *sequences,
                                      const struct inf_oip_request *request)
{
    struct sequence *sequence;
    LIST_FOREACH(sequence, &sequences->buckets[hash_names(request)], in_bucket)
    if (sequence->owner_token == request->owner && strcmp(sequence->name, request->sequence) == 0 &&
        strcmp(sequence->model, request->model) == 0 &&
        strcmp(sequence->version, request->version) == 0)
        return sequence;
    return NULL;
}

// Begins a sequence: asks the thread for questions to open its session. `replaced` is true if an
// older sequence of this name is about to end. Returns NULL if there is no memory, or if too many
// sequences are open or too many questions wait.
static struct sequence *begin_sequence(struct inf_sequences *sequences,
                                       const struct inf_oip_request *request, bool replaced)
{
    if (sequences->count >= sequences->max + replaced)
        return NULL;
    struct sequence *sequence = calloc(1, sizeof *sequence);
    struct inf_question *question = calloc(1, sizeof *question);
    if (sequence != NULL && question != NULL) {
        *question = (struct inf_question){
            .kind = INF_QUESTION_SESSION, .callback = handle_session, .context = sequence};
        snprintf(question->model, sizeof question->model, "%s", request->model);
        snprintf(question->version, sizeof question->version, "%s", request->version);
    }
    if (sequence == NULL || question == NULL || !inf_question_ask(sequences->questions, question)) {
        free(sequence);
        free(question);
        return NULL;
    }
    sequence->owner = sequences;
    sequence->owner_token = request->owner;
    sequence->question = question;
    snprintf(sequence->model, sizeof sequence->model, "%s", request->model);
    snprintf(sequence->version, sizeof sequence->version, "%s", request->version);
    snprintf(sequence->name, sizeof sequence->name, "%s", request->sequence);
    TAILQ_INIT(&sequence->calls);
    LIST_INSERT_HEAD(&sequences->buckets[hash_names(request)], sequence, in_bucket);
    TAILQ_INSERT_TAIL(&sequences->used, sequence, in_order);
    sequences->count++;
    set_timer(sequences, CHECK_MS);
    return sequence;
}

int inf_sequences_infer(struct inf_sequences *sequences, const struct inf_oip_request *request,
                        const inferd_request *wanted, inf_link_callback callback, void *context,
                        struct inf_sequence_call **call, struct inferd_error *err)
{
    struct sequence *sequence = find_sequence(sequences, request);
    *err = (struct inferd_error){INFERD_RESOURCE_EXHAUSTED, "QUOTA_SESSIONS",
                                 "too many sequences, or requests of one sequence, are open", 1000};
    if (request->sequence_start) {
        bool replaced = sequence != NULL;
        if (replaced)
            retire_sequence(sequence);
        sequence = begin_sequence(sequences, request, replaced);
    } else if (sequence == NULL) {
        *err = (struct inferd_error){.code = INFERD_INVALID_ARGUMENT};
        snprintf(err->text, sizeof err->text,
                 "model '%s' has no sequence '%s': the first request of a sequence needs "
                 "sequence_start",
                 request->model, request->sequence + 1);
    }
    if (sequence == NULL || sequence->call_count == INF_SEQUENCE_CALLS_MAX)
        return err->code;
    struct inf_sequence_call *made = calloc(1, sizeof *made);
    if (made == NULL)
        return err->code;
    *made = (struct inf_sequence_call){.sequence = sequence,
                                       .wanted = *wanted,
                                       .trace_parent = request->trace_parent,
                                       .callback = callback,
                                       .context = context,
                                       .begin_ms = inf_http_clock_ms()};
    TAILQ_INSERT_TAIL(&sequence->calls, made, next);
    sequence->call_count++;
    touch_sequence(sequence);
    if (request->sequence_end)
        retire_sequence(sequence);
    if (sequence->link != NULL && !sequence->sending && send_call(made, err) != INFERD_OK) {
        inf_sequences_release(made);
        return err->code;
    }
    *call = made;
    return INFERD_OK;
}

void inf_sequences_release(struct inf_sequence_call *call)
{
    struct sequence *sequence = call->sequence;
    if (!call->ended) {
        if (call->call != NULL)
            inf_link_cancel(call->call);
        end_call(call);
    }
    sequence->held--;
    check_soon(sequence);
    free(call);
}
