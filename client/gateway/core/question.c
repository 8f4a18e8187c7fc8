// SPDX-License-Identifier: Apache-2.0
// Asks the daemon questions on a thread that has its own connection, so that the loop never blocks.
// The loop puts questions into the list `asked`; the thread moves them to the list `answered` and
// wakes the loop with an eventfd. One mutex protects both lists. Only the loop reads and writes
// `context` of a question, so a question can be forgotten while the thread works on it.
//
// A load can take any time. When the queue is destroyed, the loop shuts down the socket on which
// the thread waits; libinferd then ends the question with an error, and the thread can be joined.
#include "client/gateway/core/question.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/event.h>

#include "client/gateway/oip/response_json.h"

// Longest time to connect to the daemon, in milliseconds. libinferd uses the same limit for the
// answer to each question, except for a load and an unload.
#define CONNECT_MS 1000

struct list {
    struct inf_question *head, **tail;
};

struct inf_question_queue {
    char *path;
    int wake_fd;
    struct event *event;
    pthread_t thread;
    bool started;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct list asked, answered;
    size_t count; // questions in both lists, and the one that the thread works on
    bool ending;
    inferd_client *client; // connection to the daemon; only the thread uses it
    int fd;                // socket of `client`; -1: none. `mutex` protects it.
};

static void push_question(struct list *list, struct inf_question *question)
{
    question->next = NULL;
    *list->tail = question;
    list->tail = &question->next;
}

static struct inf_question *pop_question(struct list *list)
{
    struct inf_question *question = list->head;
    if (question != NULL && (list->head = question->next) == NULL)
        list->tail = &list->head;
    return question;
}

// Reads the statistics of models. The thread parses the daemon's metrics, because they can be long.
static int ask_statistics(inferd_client *client, struct inf_question *question)
{
    const char *version = question->version[0] != '\0' ? question->version : NULL;
    struct inferd_error *err = &question->err;
    struct inf_error failure;
    bool ready;
    // The metrics have no row for a model without requests, so they do not show whether a model
    // exists.
    if ((question->model[0] != '\0' &&
         inferd_model_ready(client, question->model, version, &ready, err) != INFERD_OK) ||
        inferd_metrics(client, "json", &question->text, NULL, err) != INFERD_OK)
        return err->code;
    if (inf_oip_statistics_read(question->text, question->model, question->version,
                                &question->statistics, &failure) != INF_OK)
        inf_oip_error_convert(err, &failure);
    return err->code;
}

// Opens a session on a new connection, so that losing the connection ends this session only.
static int open_session(const char *path, struct inf_question *question)
{
    const char *version = question->version[0] != '\0' ? question->version : NULL;
    struct inferd_error *err = &question->err;
    if (inferd_connect_timeout(&question->client, path, CONNECT_MS, err) != INFERD_OK) {
        question->client = NULL;
        return err->code;
    }
    if (inferd_session_open_model(question->client, question->model, version, &question->session,
                                  err) == INFERD_OK)
        return INFERD_OK;
    inferd_close(question->client);
    question->client = NULL;
    return err->code;
}

static int send_question(inferd_client *client, const char *path, struct inf_question *question)
{
    const char *version = question->version[0] != '\0' ? question->version : NULL;
    struct inferd_error *err = &question->err;
    switch (question->kind) {
    case INF_QUESTION_DESCRIBE:
        return inferd_model_describe(client, question->model, version, &question->info, err);
    case INF_QUESTION_READY:
        return inferd_model_ready(client, question->model, version, &question->ready, err);
    case INF_QUESTION_MODELS:
        return inferd_models(client, &question->rows, &question->row_count, err);
    case INF_QUESTION_METRICS:
        return inferd_metrics(client, question->format, &question->text, &question->text_size, err);
    case INF_QUESTION_STATISTICS:
        return ask_statistics(client, question);
    case INF_QUESTION_SESSION:
        return open_session(path, question);
    case INF_QUESTION_LOAD:
        return inferd_load(client, question->model, NULL, NULL, NULL, NULL, err);
    case INF_QUESTION_UNLOAD:
        return inferd_unload(client, question->model, version, err);
    }
    return INFERD_INTERNAL;
}

// Publishes the socket of the client, so that inf_question_queue_destroy() can shut it down.
// Returns false if the queue is being destroyed.
static bool publish_socket(struct inf_question_queue *queue, int fd)
{
    pthread_mutex_lock(&queue->mutex);
    queue->fd = fd;
    bool go_on = !queue->ending;
    pthread_mutex_unlock(&queue->mutex);
    return go_on;
}

// Asks the daemon a question and stores the answer. If the connection has failed, reconnects and
// asks once more, unless the queue is being destroyed.
static void answer_question(struct inf_question_queue *queue, struct inf_question *question)
{
    for (int attempt = 0; attempt < 2; attempt++) {
        question->err = (struct inferd_error){0};
        if (queue->client == NULL && inferd_connect_timeout(&queue->client, queue->path, CONNECT_MS,
                                                            &question->err) != INFERD_OK) {
            queue->client = NULL;
            return;
        }
        if (!publish_socket(queue, inferd_fd(queue->client)) ||
            send_question(queue->client, queue->path, question) == INFERD_OK ||
            inferd_process(queue->client, NULL) == INFERD_OK)
            return;
        bool go_on = publish_socket(queue, -1);
        inferd_close(queue->client);
        queue->client = NULL;
        if (!go_on)
            return;
    }
}

static void *run_thread(void *context)
{
    struct inf_question_queue *queue = context;
    pthread_mutex_lock(&queue->mutex);
    while (!queue->ending) {
        struct inf_question *question = pop_question(&queue->asked);
        if (question == NULL) {
            pthread_cond_wait(&queue->changed, &queue->mutex);
            continue;
        }
        pthread_mutex_unlock(&queue->mutex);
        answer_question(queue, question);
        pthread_mutex_lock(&queue->mutex);
        push_question(&queue->answered, question);
        uint64_t one = 1;
        (void)!write(queue->wake_fd, &one, sizeof one);
    }
    pthread_mutex_unlock(&queue->mutex);
    return NULL;
}

static void handle_answers(evutil_socket_t fd, short events, void *context)
{
    (void)events;
    struct inf_question_queue *queue = context;
    uint64_t count;
    (void)!read(fd, &count, sizeof count);
    for (;;) {
        pthread_mutex_lock(&queue->mutex);
        struct inf_question *question = pop_question(&queue->answered);
        queue->count -= question != NULL;
        pthread_mutex_unlock(&queue->mutex);
        if (question == NULL)
            return;
        question->callback(question->context, question);
    }
}

// Starts the thread that asks the daemon. All signals are blocked in it, so that the kernel
// delivers them to the thread of the event loop.
static bool start_thread(struct inf_question_queue *queue)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    queue->started = pthread_create(&queue->thread, NULL, run_thread, queue) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return queue->started;
}

enum inf_code inf_question_queue_create(struct inf_question_queue **queue, struct event_base *base,
                                        const char *path, struct inf_error *err)
{
    struct inf_question_queue *made = calloc(1, sizeof *made);
    if (made == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for a queue of questions");
    *queue = made;
    made->fd = -1;
    pthread_mutex_init(&made->mutex, NULL);
    pthread_cond_init(&made->changed, NULL);
    made->asked.tail = &made->asked.head;
    made->answered.tail = &made->answered.head;
    made->path = path != NULL ? strdup(path) : NULL;
    made->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (made->wake_fd >= 0)
        made->event = event_new(base, made->wake_fd, EV_READ | EV_PERSIST, handle_answers, made);
    if ((path != NULL && made->path == NULL) || made->event == NULL ||
        event_add(made->event, NULL) != 0 || !start_thread(made)) {
        inf_question_queue_destroy(queue);
        return inf_fail(err, INF_EXHAUSTED, "a thread for questions cannot be started");
    }
    return INF_OK;
}

void inf_question_queue_destroy(struct inf_question_queue **queue)
{
    struct inf_question_queue *dying = *queue;
    if (dying == NULL)
        return;
    pthread_mutex_lock(&dying->mutex);
    dying->ending = true;
    if (dying->fd >= 0)
        shutdown(dying->fd, SHUT_RDWR);
    pthread_cond_signal(&dying->changed);
    pthread_mutex_unlock(&dying->mutex);
    if (dying->started)
        pthread_join(dying->thread, NULL);
    struct inf_question *question;
    while ((question = pop_question(&dying->asked)) != NULL ||
           (question = pop_question(&dying->answered)) != NULL)
        inf_question_free(question);
    if (dying->event != NULL)
        event_free(dying->event);
    if (dying->wake_fd >= 0)
        close(dying->wake_fd);
    inferd_close(dying->client);
    pthread_mutex_destroy(&dying->mutex);
    pthread_cond_destroy(&dying->changed);
    free(dying->path);
    free(dying);
    *queue = NULL;
}

bool inf_question_ask(struct inf_question_queue *queue, struct inf_question *question)
{
    pthread_mutex_lock(&queue->mutex);
    bool room = queue->count < INF_QUESTIONS_MAX;
    if (room) {
        queue->count++;
        push_question(&queue->asked, question);
        pthread_cond_signal(&queue->changed);
    }
    pthread_mutex_unlock(&queue->mutex);
    return room;
}

void inf_question_forget(struct inf_question *question)
{
    question->context = NULL;
}

void inf_question_free(struct inf_question *question)
{
    if (question == NULL)
        return;
    inferd_model_info_free(question->info);
    free(question->rows);
    free(question->text);
    free(question->statistics.rows);
    inferd_close(question->client);
    free(question);
}
