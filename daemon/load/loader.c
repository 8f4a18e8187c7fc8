// SPDX-License-Identifier: Apache-2.0
#include "daemon/load/loader.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "backends/base/clock.h"
#include "backends/base/thread.h"
#include "daemon/load/background_race.h"
#include "daemon/load/load.h"

struct inf_loader {
    struct inf_loader_options options;
    struct inf_thread thread;
    int fd; // readable while there are messages

    struct inf_mutex mutex; // guards the lists and `stopping`
    struct inf_cond wanted; // there is work, or the end
    bool stopping;
    struct inf_load_job *jobs, **jobs_tail;
    struct inf_load_message *messages, **messages_tail;
    struct inf_served *retired; // to be freed, in any order
};

// --- models ---

struct inf_served *inf_served_ref(struct inf_served *served)
{
    // Relaxed: whoever hands us the model holds a reference.
    atomic_fetch_add_explicit(&served->references, 1, memory_order_relaxed);
    return served;
}

void inf_served_unref(struct inf_served **served)
{
    struct inf_served *self = *served;
    *served = NULL;
    // Acquire-release: the loader sees what every other holder did.
    if (self == NULL || atomic_fetch_sub_explicit(&self->references, 1, memory_order_acq_rel) != 1)
        return;
    struct inf_loader *loader = self->loader;
    inf_mutex_lock(&loader->mutex);
    self->next = loader->retired;
    loader->retired = self;
    // Under the mutex: this may be the last one the loader waits for before it goes away.
    inf_cond_signal(&loader->wanted);
    inf_mutex_unlock(&loader->mutex);
}

// --- messages ---

// Appends a message and makes the eventfd readable.
static void post(struct inf_loader *from, struct inf_load_message *message)
{
    struct inf_loader *loader = from->options.reports_to != NULL ? from->options.reports_to : from;
    inf_mutex_lock(&loader->mutex);
    *loader->messages_tail = message;
    loader->messages_tail = &message->next;
    inf_mutex_unlock(&loader->mutex);
    const uint64_t one = 1;
    while (write(loader->fd, &one, sizeof one) < 0 && errno == EINTR)
        ;
}

struct inf_load_message *inf_loader_receive(struct inf_loader *loader)
{
    // Cleared before the list is looked at: what is posted in between only wakes once too often.
    uint64_t count;
    while (read(loader->fd, &count, sizeof count) < 0 && errno == EINTR)
        ;
    inf_mutex_lock(&loader->mutex);
    struct inf_load_message *message = loader->messages;
    if (message != NULL)
        loader->messages = message->next;
    if (loader->messages == NULL)
        loader->messages_tail = &loader->messages;
    inf_mutex_unlock(&loader->mutex);
    return message;
}

int inf_loader_fd(const struct inf_loader *loader)
{
    return loader->fd;
}

// Who hears of the progress of a job.
struct listener {
    struct inf_loader *loader;
    const struct inf_load_job *job;
};

static void report(void *context, const char *version, const char *stage, uint32_t percent)
{
    const struct listener *listener = context;
    struct inf_load_message *message = calloc(1, sizeof *message);
    if (message == NULL)
        return; // progress is only news
    message->event =
        (struct inf_load_event){.token = listener->job->token, .stage = stage, .percent = percent};
    snprintf(message->event.name, sizeof message->event.name, "%s", listener->job->name);
    snprintf(message->event.version, sizeof message->event.version, "%s", version);
    post(listener->loader, message);
}

// --- the thread ---

static void log_outcome(const struct inf_loader *loader, const struct inf_load_job *job,
                        uint64_t start_ns)
{
    const struct inf_error *err = &job->message.event.err;
    if (err->code != INF_OK) {
        inf_log(loader->options.log, INF_LOG_WARNING, "model failed name=%s reason=\"%s\"",
                job->name, err->text);
        return;
    }
    if (job->served == NULL)
        return;
    struct inf_model_memory memory = inf_model_memory(job->served->model);
    inf_log(loader->options.log, INF_LOG_INFO,
            "model loaded name=%s version=%s device=%s ms=%llu memory_bytes=%llu packed_bytes=%llu "
            "packing_us=%llu",
            job->name, job->version, inf_device_info(job->served->device)->name,
            (unsigned long long)((inf_clock_ns() - start_ns) / INF_NS_PER_MS),
            (unsigned long long)(memory.const_bytes + memory.weight_bytes + memory.arena_bytes),
            (unsigned long long)memory.weight_bytes,
            (unsigned long long)(memory.packing_ns / 1000));
}

static void load(struct inf_loader *loader, struct inf_load_job *job) INF_MAY_BLOCK
{
    struct inf_error *err = &job->message.event.err;
    struct listener listener = {loader, job};
    const struct inf_load_progress_sink progress = {report, &listener};
    uint64_t start_ns = inf_clock_ns();
    // After a success, what is left in `err` is from a warm-up that was given up.
    if (inf_model_load(job, &loader->options, &progress, err) == INF_OK)
        *err = (struct inf_error){0};
    if (job->served != NULL)
        job->served->loader = loader;
    log_outcome(loader, job, start_ns);
}

// Posts some rows of a dissection.
static void report_rows(void *context, struct inf_inspect_rows *rows, uint32_t percent)
{
    const struct listener *listener = context;
    struct inf_load_message *message = calloc(1, sizeof *message);
    if (message == NULL) {
        free(rows); // whoever asked sees that nodes are missing by the count
        return;
    }
    message->event = (struct inf_load_event){
        .token = listener->job->token, .stage = "nodes", .percent = percent, .rows = rows};
    snprintf(message->event.name, sizeof message->event.name, "%s", listener->job->name);
    post(listener->loader, message);
}

static void dissect(struct inf_loader *loader, struct inf_load_job *job) INF_MAY_BLOCK
{
    struct listener listener = {loader, job};
    const struct inf_inspect_sink sink = {report_rows, &listener};
    snprintf(job->version, sizeof job->version, "%s", job->base->version);
    struct inf_error err = {0};
    if (inf_model_inspect(job->base->model, job->dissect, &sink, &err) != INF_OK)
        job->message.event.err = err;
}

static void precompile(struct inf_loader *loader, struct inf_load_job *job) INF_MAY_BLOCK
{
    struct inf_error err = {0};
    struct listener listener = {loader, job};
    const struct inf_load_progress_sink progress = {report, &listener};
    snprintf(job->version, sizeof job->version, "%s", job->base->version);
    if (inf_model_precompile(job, &progress, &err) != INF_OK)
        job->message.event.err = err;
}

static void scan(struct inf_loader *loader, struct inf_load_job *job) INF_MAY_BLOCK
{
    struct inf_error *err = &job->message.event.err;
    if (loader->options.repository != NULL &&
        inf_model_names_scan(&job->names, loader->options.repository, err) != INF_OK)
        inf_log(loader->options.log, INF_LOG_WARNING, "repository not read reason=\"%s\"",
                err->text);
}

static void race(struct inf_loader *loader, struct inf_load_job *job) INF_MAY_BLOCK
{
    const struct inf_served *base = job->base;
    struct inf_error *err = &job->message.event.err;
    snprintf(job->version, sizeof job->version, "%s", base->version);
    if (inf_model_race(job, &loader->options, err) != INF_OK) {
        inf_log(loader->options.log, INF_LOG_INFO, "no race name=%s reason=\"%s\"", base->name,
                err->text);
        return;
    }
    const struct inf_race *raced = &job->decision->race;
    const struct inf_race_entry *chosen = &raced->entries[raced->chosen];
    inf_log(loader->options.log, INF_LOG_INFO,
            "race over name=%s device=%s precision=%s threads=%u candidates=%u ms=%llu", base->name,
            inf_device_info(chosen->device)->name, inf_precision_name(chosen->options.precision),
            chosen->options.threads, raced->count,
            (unsigned long long)(raced->took_ns / INF_NS_PER_MS));
}

static void run_job(struct inf_loader *loader, struct inf_load_job *job) INF_MAY_BLOCK
{
    if (job->scan)
        scan(loader, job);
    else if (job->race)
        race(loader, job);
    else if (job->keep)
        inf_tune_add(loader->options.place.tune, job->decision->key, &job->decision->race);
    else if (job->dissect != NULL)
        dissect(loader, job);
    else if (job->precompile_on != NULL)
        precompile(loader, job);
    else if (job->remember)
        inf_served_shapes_keep(loader->options.seen, job->base->content_hash, job->shapes);
    else
        load(loader, job);
    struct inf_load_event *event = &job->message.event;
    event->token = job->token;
    event->final = true;
    snprintf(event->name, sizeof event->name, "%s", job->name);
    snprintf(event->version, sizeof event->version, "%s", job->version);
    job->message.job = job;
    post(loader, &job->message);
}

// Writes down what a model served that was not written yet.
static void remember(struct inf_loader *loader, const struct inf_served *served) INF_MAY_BLOCK
{
    char text[INF_SERVED_SHAPES_TEXT];
    if (served->seen.changed && served->config.remember_shapes)
        inf_served_shapes_keep(loader->options.seen, served->content_hash,
                               inf_served_shapes_print(&served->seen, text));
}

// Frees a list of models that nobody refers to.
static void free_retired(struct inf_served *retired) INF_MAY_BLOCK
{
    while (retired != NULL) {
        struct inf_served *next = retired->next;
        inf_log(retired->loader->options.log, INF_LOG_DEBUG, "model freed name=%s version=%s",
                retired->name, retired->version);
        remember(retired->loader, retired);
        inf_served_destroy(&retired);
        retired = next;
    }
}

// Waits for work: takes everything that is to be freed, or else one job. False at the end, when
// there is nothing to free either.
static bool take_work(struct inf_loader *loader, struct inf_load_job **job,
                      struct inf_served **retired)
{
    inf_mutex_lock(&loader->mutex);
    while (!loader->stopping && loader->jobs == NULL && loader->retired == NULL)
        inf_cond_wait(&loader->wanted, &loader->mutex);
    *retired = loader->retired;
    loader->retired = NULL;
    *job = NULL;
    if (*retired == NULL && !loader->stopping) {
        *job = loader->jobs;
        loader->jobs = (*job)->next;
        if (loader->jobs == NULL)
            loader->jobs_tail = &loader->jobs;
    }
    inf_mutex_unlock(&loader->mutex);
    return *job != NULL || *retired != NULL;
}

// Whether a job only writes down what was found out: that is not lost at the end.
static bool writes_down(const struct inf_load_job *job)
{
    return job->keep || job->remember;
}

static void run_loader(void *context)
{
    inf_role_enter_worker();
    struct inf_loader *loader = context;
    struct inf_load_job *job;
    struct inf_served *retired;
    if (loader->options.gives_way)
        inf_thread_give_way();
    while (take_work(loader, &job, &retired)) {
        free_retired(retired);
        if (job != NULL)
            run_job(loader, job);
    }
    // The end. Models that only jobs and messages refer to come back as retired ones.
    while ((job = loader->jobs) != NULL) {
        loader->jobs = job->next;
        if (writes_down(job))
            run_job(loader, job);
        else
            inf_load_job_destroy(&job);
    }
    struct inf_load_message *message;
    while ((message = inf_loader_receive(loader)) != NULL)
        inf_load_message_destroy(&message);
    if (take_work(loader, &job, &retired))
        free_retired(retired);
}

// --- making and freeing ---

enum inf_code inf_loader_create(struct inf_loader **out_loader,
                                const struct inf_loader_options *options, struct inf_error *err)
{
    struct inf_loader *loader = calloc(1, sizeof *loader);
    if (loader == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for the loader");
    inf_mutex_init(&loader->mutex);
    inf_cond_init(&loader->wanted);
    loader->options = *options;
    loader->jobs_tail = &loader->jobs;
    loader->messages_tail = &loader->messages;
    loader->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    enum inf_code code =
        loader->fd < 0
            ? inf_fail(err, INF_EXHAUSTED, "eventfd: %s", strerror(errno))
            : inf_thread_start(&loader->thread, "inferd-loader", run_loader, loader, err);
    if (code != INF_OK) {
        inf_loader_destroy(&loader);
        return code;
    }
    *out_loader = loader;
    return INF_OK;
}

void inf_loader_destroy(struct inf_loader **loader)
{
    struct inf_loader *self = *loader;
    if (self == NULL)
        return;
    inf_mutex_lock(&self->mutex);
    self->stopping = true;
    inf_cond_signal(&self->wanted);
    inf_mutex_unlock(&self->mutex);
    inf_thread_join(&self->thread);
    if (self->fd >= 0)
        close(self->fd);
    inf_cond_fini(&self->wanted);
    inf_mutex_fini(&self->mutex);
    free(self);
    *loader = NULL;
}

void inf_loader_submit(struct inf_loader *loader, struct inf_load_job *job)
{
    inf_mutex_lock(&loader->mutex);
    job->next = NULL;
    *loader->jobs_tail = job;
    loader->jobs_tail = &job->next;
    inf_cond_signal(&loader->wanted);
    inf_mutex_unlock(&loader->mutex);
}

void inf_load_job_destroy(struct inf_load_job **job)
{
    struct inf_load_job *self = *job;
    if (self == NULL)
        return;
    inf_served_unref(&self->served);
    inf_served_unref(&self->known);
    inf_served_unref(&self->base);
    inf_inspect_order_destroy(&self->dissect);
    free(self->names);
    free(self->decision);
    free(self);
    *job = NULL;
}

void inf_load_message_destroy(struct inf_load_message **message)
{
    if (*message == NULL)
        return;
    struct inf_load_job *job = (*message)->job;
    free((*message)->event.rows);
    if (job != NULL)
        inf_load_job_destroy(&job); // the message is a part of it
    else
        free(*message);
    *message = NULL;
}
