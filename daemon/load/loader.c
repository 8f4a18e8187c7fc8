// SPDX-License-Identifier: Apache-2.0
// The loader thread: two queues and a dispatch table.
//
//   loop        --inf_loader_submit()-->  jobs      --> loader thread
//   any thread  --last reference------->  retired   --> loader thread
//   loop        <--inf_loader_receive()-- messages  <-- loader thread   (announced by an eventfd)
//
// One mutex guards all three lists. Nothing is computed while a thread holds it, so no thread waits
// long for it. Retired models, which have no reference left, are freed before jobs are run, because
// the next load may need their memory. A second loader with low priority runs the races. It posts
// its messages to the first loader (`reports_to`), so that the loop reads only one queue. The kinds
// of jobs are implemented in load.c, background_race.c, inspect.c and precompile.c; loader_state.h
// lists what the other files of the loader do.
#include "daemon/load/loader.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "backends/base/clock.h"
#include "backends/base/system/crash_note.h"
#include "backends/storage/file.h"
#include "daemon/load/load.h"
#include "daemon/load/load_order.h"
#include "daemon/load/loader_state.h"
#include "daemon/load/precompile.h"
#include "daemon/load/race/background_kernels.h"
#include "daemon/load/race/background_race.h"
#include "daemon/load/source/scan.h"
#include "daemon/load/trial/join_compile.h"
#include "daemon/load/trial/step_trial.h"
#include "daemon/model/fingerprint.h"

static void report_progress(void *context, const char *version, const char *stage, uint32_t percent)
{
    const struct inf_loader_listener *listener = context;
    struct inf_load_message *message = calloc(1, sizeof *message);
    if (message == NULL)
        return; // without memory the progress report is dropped, which is harmless
    message->event =
        (struct inf_load_event){.token = listener->job->token, .stage = stage, .percent = percent};
    snprintf(message->event.name, sizeof message->event.name, "%s", listener->job->name);
    snprintf(message->event.pin, sizeof message->event.pin, "%s", listener->job->pin);
    snprintf(message->event.version, sizeof message->event.version, "%s", version);
    inf_loader_post(listener->loader, message);
}

// --- running a job: one function per kind ---

static void log_outcome(const struct inf_loader *loader, const struct inf_load_job *job,
                        uint64_t start_ns)
{
    const struct inf_error *err = &job->message.event.err;
    const struct inf_served *served = job->model.served;
    if (err->code != INF_OK) {
        inf_log(loader->options.load.log, INF_LOG_WARNING, "model failed name=%s reason=\"%s\"",
                job->name, err->text);
        return;
    }
    if (job->model.room == INF_ROOM_DEFERRED)
        inf_log(loader->options.load.log, INF_LOG_INFO,
                "model not loaded until a request needs it, because memory_max has no room name=%s",
                job->name);
    if (served == NULL)
        return;
    struct inf_model_memory memory = inf_model_memory(served->model);
    inf_log(loader->options.load.log, INF_LOG_INFO,
            "model loaded name=%s version=%s device=%s ms=%llu memory_bytes=%llu packed_bytes=%llu "
            "packing_us=%llu",
            job->name, job->version, inf_device_info(served->device)->name,
            (unsigned long long)((inf_clock_ns() - start_ns) / INF_NS_PER_MS),
            (unsigned long long)(memory.const_bytes + memory.weight_bytes + memory.arena_bytes),
            (unsigned long long)memory.weight_bytes,
            (unsigned long long)(memory.packing_ns / 1000));
}

// If the job failed because it was cancelled, puts the reason before the text that says how far the
// job came.
static void explain_cancellation(const struct inf_load_job *job, struct inf_error *err)
{
    struct inf_error reason = {0};
    if (err->code != INF_CANCELLED || inf_load_job_check(job, &reason) == INF_OK)
        return;
    err->code = reason.code;
    err->reason = reason.reason;
    (void)inf_error_prefix(err, reason.code, "%.200s", reason.text);
}

// Makes a new model return to the loader when its last reference is dropped.
static void adopt_model(struct inf_loader *loader, struct inf_served *served, uint64_t load_number,
                        uint64_t load_ns)
{
    served->loader = loader;
    served->load_number = load_number;
    served->load_ns = load_ns;
    served->retire = inf_loader_retire;
}

static void run_model_job(struct inf_loader *loader, struct inf_load_job *job) INF_MAY_BLOCK
{
    struct inf_error *err = &job->message.event.err;
    struct inf_loader_listener listener = {loader, job};
    const struct inf_load_progress_sink progress = {
        .report = report_progress, .reserve = inf_loader_reserve_room, .context = &listener};
    uint64_t start_ns = inf_clock_ns();
    // On success, clear `err`: it may still hold the error of a warm-up on another device, which
    // was given up.
    if (inf_load_model(job, &loader->options.load, &progress, err) == INF_OK)
        *err = (struct inf_error){0};
    else
        explain_cancellation(job, err);
    struct inf_served *served = job->model.served;
    uint64_t load_number = job->base != NULL ? job->base->load_number : ++loader->load_count;
    if (served != NULL)
        adopt_model(loader, served, load_number, inf_clock_ns() - start_ns);
    for (uint32_t i = 0; served != NULL && i < served->signature_count; i++)
        if (served->signatures[i].served != NULL)
            adopt_model(loader, served->signatures[i].served, load_number, 0);
    log_outcome(loader, job, start_ns);
}

static void run_scan_job(struct inf_loader *loader, struct inf_load_job *job) INF_MAY_BLOCK
{
    const struct inf_load_options *options = &loader->options.load;
    struct inf_error *err = &job->message.event.err;
    if (options->repository != NULL && inf_scan_run(options, &job->scan, err) != INF_OK)
        inf_log(options->log, INF_LOG_WARNING, "repository not read reason=\"%s\"", err->text);
}

static void run_kernel_race(struct inf_loader *loader, struct inf_load_job *job) INF_MAY_BLOCK
{
    const struct inf_log *log = loader->options.load.log;
    struct inf_error *err = &job->message.event.err;
    uint64_t start_ns = inf_clock_ns();
    if (inf_background_kernels_run(job, &loader->options.load, err) != INF_OK) {
        inf_log(log, INF_LOG_INFO, "kernels not raced name=%s reason=\"%s\"", job->base->name,
                err->text);
        return;
    }
    inf_log(log, INF_LOG_INFO, "kernels raced name=%s changed=%s disturbed=%s ms=%llu",
            job->base->name, job->race.kernels_changed ? "yes" : "no",
            job->race.disturbed ? "yes" : "no",
            (unsigned long long)((inf_clock_ns() - start_ns) / INF_NS_PER_MS));
}

static void run_race_job(struct inf_loader *loader, struct inf_load_job *job) INF_MAY_BLOCK
{
    const struct inf_log *log = loader->options.load.log;
    struct inf_error *err = &job->message.event.err;
    if (job->race.kernels) {
        run_kernel_race(loader, job);
        return;
    }
    if (inf_background_race_run(job, &loader->options.load, err) != INF_OK) {
        inf_log(log, INF_LOG_INFO, "no race name=%s reason=\"%s\"", job->base->name, err->text);
        return;
    }
    const struct inf_race *race = &job->race.decision->race;
    const struct inf_race_entry *chosen = &race->entries[race->chosen];
    inf_log(log, INF_LOG_INFO,
            "race over name=%s device=%s precision=%s threads=%u candidates=%u ms=%llu",
            job->base->name, inf_device_info(chosen->device)->name,
            inf_precision_name(chosen->options.precision), chosen->options.threads, race->count,
            (unsigned long long)(race->took_ns / INF_NS_PER_MS));
}

static void run_steps_job(struct inf_loader *loader, struct inf_load_job *job) INF_MAY_BLOCK
{
    const struct inf_load_options *options = &loader->options.load;
    struct inf_error *err = &job->message.event.err;
    const struct inf_step_trial trial = {.served = job->base,
                                         .idle_gate = options->idle_gate,
                                         .stop = &job->cancelled,
                                         .log = options->log};
    if (inf_step_trial_run(&trial, &job->steps.findings, err) == INF_OK)
        return;
    if (inf_load_job_check(job, err) == INF_OK)
        inf_log(options->log, INF_LOG_INFO, "joined steps not measured name=%s reason=\"%s\"",
                job->base->name, err->text);
}

static void run_join_job(struct inf_loader *loader, struct inf_load_job *job) INF_MAY_BLOCK
{
    struct inf_error *err = &job->message.event.err;
    if (inf_join_compile_run(job, loader->options.load.log, err) == INF_OK)
        *err = (struct inf_error){0};
}

// Posts one report about some nodes of an inspected model to the loop.
static void report_rows(void *context, struct inf_inspect_rows *rows, uint32_t percent)
{
    const struct inf_loader_listener *listener = context;
    struct inf_load_message *message = calloc(1, sizeof *message);
    if (message == NULL) {
        // There is no memory for the message, so the report about these nodes is lost. The client
        // notices that nodes are missing.
        free(rows);
        return;
    }
    message->event = (struct inf_load_event){
        .token = listener->job->token, .stage = "nodes", .percent = percent, .rows = rows};
    snprintf(message->event.name, sizeof message->event.name, "%s", listener->job->name);
    snprintf(message->event.pin, sizeof message->event.pin, "%s", listener->job->pin);
    inf_loader_post(listener->loader, message);
}

static void run_inspect_job(struct inf_loader *loader, struct inf_load_job *job) INF_MAY_BLOCK
{
    struct inf_loader_listener listener = {loader, job};
    const struct inf_inspect_sink sink = {report_rows, &listener};
    struct inf_error err = {0};
    if (inf_inspect_run(job->base->model, job->inspect.request, &sink, &err) != INF_OK)
        job->message.event.err = err;
}

static void run_precompile_job(struct inf_loader *loader, struct inf_load_job *job) INF_MAY_BLOCK
{
    struct inf_error err = {0};
    struct inf_loader_listener listener = {loader, job};
    const struct inf_load_progress_sink progress = {.report = report_progress,
                                                    .context = &listener};
    if (inf_precompile_run(job, &progress, &err) != INF_OK) {
        explain_cancellation(job, &err);
        job->message.event.err = err;
    }
}

static void run_standby_job(struct inf_loader *loader, struct inf_load_job *job) INF_MAY_BLOCK
{
    inf_precompile_standby(job, loader->options.load.log);
}

static void run_persist_job(struct inf_loader *loader, struct inf_load_job *job) INF_MAY_BLOCK
{
    const struct inf_persisted_setting *setting = &job->persist.setting;
    struct inf_persisted *persisted = loader->options.load.persisted;
    struct inf_error err = {0};
    enum inf_code code;
    if (persisted == NULL)
        code = inf_fail(&err, INF_PRECONDITION, "not persistent: there is no place for settings");
    else if (job->persist.forgets)
        code = inf_persisted_remove(persisted, setting->model, setting->name, &err);
    else
        code = inf_persisted_set(persisted, setting, &err);
    if (code != INF_OK)
        job->message.event.err = err;
}

static void run_deletion_job(struct inf_loader *loader, struct inf_load_job *job) INF_MAY_BLOCK
{
    const struct inf_load_options *options = &loader->options.load;
    struct inf_saved_version_rest *rest = &job->deletion.rest;
    struct inf_error err = {0};
    int fd = -1;
    enum inf_code code =
        options->repository != NULL
            ? inf_directory_open(&fd, options->repository, &err)
            : inf_fail(&err, INF_NOT_FOUND, "model '%s': there is no repository", job->name);
    if (code == INF_OK)
        code = inf_saved_version_remove(fd, job->name, job->deletion.version, rest, &err);
    if (fd >= 0)
        close(fd);
    if (code == INF_OK)
        inf_log(options->log, INF_LOG_NOTICE, "model deleted name=%s version=%s%s", job->name,
                rest->version, rest->has_files ? " (files of others stay)" : "");
    else
        job->message.event.err = err;
    snprintf(job->version, sizeof job->version, "%s", rest->version);
}

static const struct {
    void (*run)(struct inf_loader *loader, struct inf_load_job *job);
    bool on_base; // jobs of this kind need job->base, and their events report its version
    bool saves;   // jobs of this kind save results; they run even if the loader is stopping
    bool limited; // the time of the job is limited
} job_kinds[] = {
    [INF_LOAD_JOB_MODEL] = {.run = run_model_job, .limited = true},
    [INF_LOAD_JOB_SCAN] = {.run = run_scan_job},
    [INF_LOAD_JOB_RACE] = {.run = run_race_job, .on_base = true},
    [INF_LOAD_JOB_STEPS] = {.run = run_steps_job, .on_base = true},
    [INF_LOAD_JOB_JOIN] = {.run = run_join_job, .on_base = true},
    [INF_LOAD_JOB_SAVE_DECISION] = {.run = inf_loader_run_saving_job, .saves = true},
    [INF_LOAD_JOB_SAVE_SHAPES] = {.run = inf_loader_run_saving_job, .saves = true},
    [INF_LOAD_JOB_SAVE_PLAN] = {.run = inf_loader_run_saving_job},
    [INF_LOAD_JOB_SAVE_USES] = {.run = inf_loader_run_saving_job, .saves = true},
    [INF_LOAD_JOB_SAVE_HANG] = {.run = inf_loader_run_saving_job, .saves = true},
    [INF_LOAD_JOB_INSPECT] = {.run = run_inspect_job, .on_base = true},
    [INF_LOAD_JOB_PRECOMPILE] = {.run = run_precompile_job, .on_base = true, .limited = true},
    [INF_LOAD_JOB_STANDBY] = {.run = run_standby_job, .on_base = true},
    [INF_LOAD_JOB_PERSIST] = {.run = run_persist_job},
    [INF_LOAD_JOB_DELETE] = {.run = run_deletion_job},
};
_Static_assert(INF_ARRAY_LENGTH(job_kinds) == INF_LOAD_JOB_KINDS,
               "every kind of job has a function");

// Marks that the running job is over, so that no other thread can cancel it.
static void forget_running(struct inf_loader *loader)
{
    inf_mutex_lock(&loader->mutex);
    loader->running = NULL;
    inf_mutex_unlock(&loader->mutex);
}

// Runs a job and posts its outcome.
static void run_job(struct inf_loader *loader, struct inf_load_job *job) INF_MAY_BLOCK
{
    assert(job->kind < INF_LOAD_JOB_KINDS);
    if (job_kinds[job->kind].on_base)
        snprintf(job->version, sizeof job->version, "%s", job->base->version);
    struct inf_load_event *event = &job->message.event;
    uint32_t limit_ms = atomic_load(&loader->limit_ms);
    bool limited = job_kinds[job->kind].limited && limit_ms > 0;
    if (limited)
        inf_load_limit_begin(&loader->limit, job, limit_ms);
    // A job that was cancelled in the queue only reports that.
    if (inf_load_job_check(job, &event->err) == INF_OK) {
        // A race runs the model in the background.
        inf_crash_note_begin(job->base != NULL ? job->base->hang_key : 0);
        job_kinds[job->kind].run(loader, job);
        inf_crash_note_end();
    }
    if (limited)
        inf_load_limit_end(&loader->limit);
    forget_running(loader);
    inf_loader_post_outcome(loader, job);
}

// --- the loader thread ---

// Waits until there is a model to free or a job. Takes all models that are to be freed, or if there
// are none, one job. Returns false if the loader is stopping and there is nothing to free.
static bool take_work(struct inf_loader *loader, struct inf_load_job **job,
                      struct inf_served **retired)
{
    inf_mutex_lock(&loader->mutex);
    struct inf_load_job **link = NULL;
    while (!loader->stopping && loader->retired == NULL &&
           (link = inf_load_order_choose(&loader->jobs, inf_clock_ns())) == NULL) {
        uint64_t next_ns = inf_load_order_next_ns(loader->jobs);
        if (next_ns == UINT64_MAX)
            inf_cond_wait(&loader->wanted, &loader->mutex);
        else
            (void)!inf_cond_wait_until(&loader->wanted, &loader->mutex, next_ns);
    }
    *retired = loader->retired;
    loader->retired = NULL;
    *job = NULL;
    if (*retired == NULL && !loader->stopping) {
        *job = *link;
        *link = (*job)->next;
        if (*link == NULL)
            loader->jobs_tail = link;
        loader->running = *job;
    }
    inf_mutex_unlock(&loader->mutex);
    return *job != NULL || *retired != NULL;
}

// Puts off a load of files of the repository that change: their model would be loaded in part, and
// then again. Returns false if the job runs now.
//
// Files that changed less than settle_ms ago are looked at again when they would have settled. If
// they have changed meanwhile, the repository watch reports when they have settled
// (inf_loader_has_first_load()); the time limit here is longer, for what the watch does not see.
static bool put_off(struct inf_loader *loader, struct inf_load_job *job) INF_MAY_BLOCK
{
    const struct inf_load_options *options = &loader->options.load;
    struct inf_load_model_job *model = &job->model;
    const uint64_t settle_ns = options->settle_ms * INF_NS_PER_MS;
    uint64_t age_ns, wait_ns = 0;
    int fd = -1;
    if (job->kind != INF_LOAD_JOB_MODEL || settle_ns == 0 || model->by_admin || model->settled ||
        job->base != NULL || options->repository == NULL || atomic_load(&job->cancelled) ||
        inf_directory_open(&fd, options->repository, NULL) != INF_OK)
        return false;
    uint64_t files = inf_fingerprint_model(fd, job->name, &age_ns);
    close(fd);
    if (model->files_seen == 0) {
        wait_ns = age_ns < settle_ns ? settle_ns - age_ns : 0;
    } else if (model->files_seen != files) {
        wait_ns = 2 * settle_ns;
    }
    if (wait_ns == 0)
        return false;
    if (model->files_seen == 0)
        inf_log(options->log, INF_LOG_INFO, "model put off, because its files change name=%s",
                job->name);
    model->files_seen = files;
    inf_mutex_lock(&loader->mutex);
    loader->running = NULL;
    model->not_before_ns = inf_clock_ns() + wait_ns;
    job->next = NULL;
    *loader->jobs_tail = job;
    loader->jobs_tail = &job->next;
    inf_mutex_unlock(&loader->mutex);
    return true;
}

static void run_loader(void *context)
{
    inf_role_enter_worker();
    struct inf_loader *loader = context;
    struct inf_load_job *job;
    struct inf_served *retired;
    if (loader->options.low_priority)
        inf_thread_set_background();
    while (take_work(loader, &job, &retired)) {
        inf_load_pace_begin(&loader->pace,
                            job != NULL && job->kind == INF_LOAD_JOB_MODEL && job->model.wanted);
        inf_loader_free_retired(retired);
        if (job != NULL && !put_off(loader, job))
            run_job(loader, job);
        inf_load_pace_end(&loader->pace);
    }
    // The loader is stopping. Destroying the remaining jobs and messages may retire further models,
    // so models are freed last. Freeing a model retires those of its further signatures.
    while ((job = loader->jobs) != NULL) {
        loader->jobs = job->next;
        if (job_kinds[job->kind].saves)
            run_job(loader, job);
        else
            inf_load_job_destroy(&job);
    }
    struct inf_load_message *message;
    while ((message = inf_loader_receive(loader)) != NULL)
        inf_load_message_destroy(&message);
    while (take_work(loader, &job, &retired))
        inf_loader_free_retired(retired);
}

// --- creating and using a loader ---

enum inf_code inf_loader_create(struct inf_loader **out_loader,
                                const struct inf_loader_options *options, struct inf_error *err)
{
    struct inf_loader *loader = calloc(1, sizeof *loader);
    if (loader == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for the loader");
    inf_mutex_init(&loader->mutex);
    inf_cond_init(&loader->wanted);
    loader->options = *options;
    atomic_init(&loader->limit_ms, options->limit_ms);
    loader->jobs_tail = &loader->jobs;
    loader->messages_tail = &loader->messages;
    loader->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    enum inf_code code = loader->fd < 0
                             ? inf_fail(err, INF_EXHAUSTED, "eventfd: %s", strerror(errno))
                             : inf_load_limit_init(&loader->limit, err);
    if (code == INF_OK)
        code = options->low_priority
                   ? INF_OK
                   : inf_load_pace_init(&loader->pace, options->load.idle_gate, err);
    if (code == INF_OK)
        code = inf_thread_start(&loader->thread, "inferd-loader", run_loader, loader, err);
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
    inf_loader_cancel(self, NULL, INF_LOAD_STOP_SHUTDOWN);
    inf_mutex_lock(&self->mutex);
    self->stopping = true;
    inf_cond_signal(&self->wanted);
    inf_mutex_unlock(&self->mutex);
    inf_thread_join(&self->thread);
    inf_load_pace_fini(&self->pace);
    inf_load_limit_fini(&self->limit);
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

void inf_loader_note_hang(struct inf_served *served)
{
    struct inf_load_job *job = served->hang_key != 0 && served->loader != NULL
                                   ? inf_load_job_create(INF_LOAD_JOB_SAVE_HANG)
                                   : NULL;
    if (job == NULL)
        return;
    job->base = inf_served_ref(served);
    inf_loader_submit(served->loader, job);
}

void inf_loader_want(struct inf_loader *loader, const char *name)
{
    inf_mutex_lock(&loader->mutex);
    for (struct inf_load_job *job = loader->jobs; job != NULL; job = job->next)
        if (job->kind == INF_LOAD_JOB_MODEL && strcmp(job->name, name) == 0) {
            job->model.wanted = true;
            job->model.may_defer = false;
        }
    inf_mutex_unlock(&loader->mutex);
}

bool inf_loader_has_first_load(struct inf_loader *loader, const char *name, bool settled)
{
    bool found = false;
    inf_mutex_lock(&loader->mutex);
    for (struct inf_load_job *job = loader->jobs; job != NULL && !found; job = job->next) {
        found = job->kind == INF_LOAD_JOB_MODEL && strcmp(job->name, name) == 0 &&
                job->pin[0] == '\0' && job->token == 0 && job->base == NULL &&
                job->model.known_files == NULL && job->model.path[0] == '\0' &&
                job->model.directory_fd < 0 && !atomic_load(&job->cancelled);
        if (found && settled) {
            job->model.settled = true;
            job->model.not_before_ns = 0;
            inf_cond_signal(&loader->wanted);
        }
    }
    inf_mutex_unlock(&loader->mutex);
    return found;
}

static bool is_about(const struct inf_load_job *job, const char *name)
{
    return !job_kinds[job->kind].saves && (name == NULL || strcmp(job->name, name) == 0);
}

void inf_loader_cancel(struct inf_loader *loader, const char *name, enum inf_load_stop why)
{
    inf_mutex_lock(&loader->mutex);
    for (struct inf_load_job *job = loader->jobs; job != NULL; job = job->next)
        if (is_about(job, name))
            inf_load_job_cancel(job, why);
    if (loader->running != NULL && is_about(loader->running, name))
        inf_load_job_cancel(loader->running, why);
    inf_cond_signal(&loader->wanted);
    inf_mutex_unlock(&loader->mutex);
}

void inf_loader_set_limit(struct inf_loader *loader, uint32_t limit_ms)
{
    atomic_store(&loader->limit_ms, limit_ms);
}
