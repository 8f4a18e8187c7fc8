// SPDX-License-Identifier: Apache-2.0
// The life of a worker thread: pop, run, finish, post.
//
//   inf_device_queue_pop()      waits for jobs; returns several if they can run as one batch
//   run_jobs()                  as a batch, or alone; copies kept outputs and shadow samples
//   inf_device_queue_finish()   charges the users and updates the estimates
//   post_job()                  moves the job to the queue of done jobs; may reply directly
//
// The order matters. Users are charged before the loop sees the job, so that the charge is in place
// for the next request of the same client. A direct reply is written after the job is posted, so
// that the loop has counted the request as done when the client sends its next request. Jobs of a
// batch are not answered directly: the loop writes their replies with fewer system calls while the
// worker starts the next batch. The eventfd is written once per batch (inf_queue_notify()).
#include "daemon/schedule/worker.h"

#include <assert.h>

#include "backends/base/clock.h"
#include "backends/base/system/crash_note.h"
#include "backends/exec/model/model.h"
#include "daemon/schedule/history_run.h"
#include "daemon/schedule/job_output.h"
#include "daemon/schedule/result_guard.h"
#include "daemon/schedule/shadow.h"

// How long decoding steps of a model run one by one after a joined run has failed, if each step of
// that run succeeded when it was repeated alone.
#define JOIN_PAUSE_NS INF_NS_PER_S

// --- running one job alone ---

static enum inf_code run_executable(struct inf_worker *worker, struct inf_job *job,
                                    struct inf_executable *executable)
    INF_ATTR(requires_capability(inf_role_worker))
{
    void *outputs[INF_LIMIT_TENSORS];
    const void *inputs[INF_LIMIT_TENSORS];
    bool late;
    INF_TRY(inf_job_place_outputs(job, inf_executable_graph(executable), 0, worker->pool, &late));
    for (uint32_t i = 0; i < job->output_count; i++)
        outputs[i] = inf_job_output_memory(job, i);
    INF_TRY(inf_run_strings_begin(&worker->strings, job, inf_executable_graph(executable), inputs,
                                  outputs));
    struct inf_execution execution = {.inputs = inputs,
                                      .mappings = job->mappings,
                                      .outputs = outputs,
                                      .slot = worker->slot,
                                      .cancelled = &job->cancelled,
                                      .step = &worker->watch.step,
                                      .strings = &worker->strings.pool,
                                      .core_use = &job->result.core_use};
    job->result.begin_ns = inf_clock_ns();
    enum inf_code code = inf_result_guard_run(job->served, job->device, executable, &execution,
                                              NULL, &job->result.precision, &job->result.fault.err);
    job->result.end_ns = inf_clock_ns();
    if (job->result.precision != inf_executable_precision(executable))
        job->result.flags |= INF_INFER_RECOMPUTED;
    const struct inf_late_source source = {executable, worker->slot, &worker->strings};
    if (code == INF_OK && late)
        code = inf_job_collect_late(job, &source, worker->pool);
    inf_executable_drop_results(executable, worker->slot);
    return code;
}

static enum inf_code acquire_and_execute(struct inf_worker *worker, struct inf_job *job)
    INF_ATTR(requires_capability(inf_role_worker))
{
    struct inf_model *model = job->served->model;
    struct inf_executable *executable = NULL;
    if (atomic_load_explicit(&job->cancelled, memory_order_relaxed))
        return inf_fail(&job->result.fault.err, INF_CANCELLED, "cancelled before it began");
    struct inf_run_options options = inf_model_default_options(model, job->device);
    if (job->precision != INF_PRECISION_AUTO && job->precision != options.precision)
        options = (struct inf_run_options){.precision = job->precision};
    options.cancelled = &job->cancelled;
    options.user = job->queue_entry.user + 1;
    const struct inf_history_resources resources = {.pool = worker->pool,
                                                    .memory = &worker->history_memory,
                                                    .options = &options,
                                                    .slot = worker->slot,
                                                    .step = &worker->watch.step};
    bool done;
    INF_TRY(inf_history_run(job, &resources, &done));
    if (done)
        return INF_OK;
    INF_TRY(inf_history_pack_inputs(job, &worker->history_memory));
    INF_TRY(inf_model_acquire_with(model, job->device, &options, job->shapes, &executable,
                                   &job->result.fault.err));
    enum inf_code code = run_executable(worker, job, executable);
    inf_run_strings_end(&worker->strings);
    // An executable for shapes that take too long is not kept: its memory may be large, and the
    // next request of these shapes would be cancelled too.
    if (code == INF_CANCELLED && inf_run_watch_has_passed(&worker->watch))
        inf_model_discard(model, &executable);
    else
        inf_model_release(model, &executable);
    return code;
}

// Clears what an earlier run left in the result of a job.
static void begin_result(struct inf_job *job)
{
    job->result.begin_ns = job->result.end_ns = 0;
    job->result.core_use = (struct inf_core_use){0};
    job->result.batch_rows = 1;
    job->result.padded_to = 0;
    job->result.flags &= INF_INFER_MOVED;
    job->result.join_outcome = INF_JOIN_ALONE;
    inf_job_forget_history(job);
    inf_fault_init(&job->result.fault);
}

static void run_single_job(struct inf_worker *worker, struct inf_job *job)
    INF_ATTR(requires_capability(inf_role_worker))
{
    begin_result(job);
    enum inf_code code = acquire_and_execute(worker, job);
    // Make sure that a failure without an error text is not mistaken for a success.
    if (code != INF_OK && job->result.fault.err.code == INF_OK)
        inf_fail_reason(&job->result.fault.err, INF_INTERNAL, INF_REASON_BUG,
                        "the run failed without saying why");
    // A step that succeeded in a second way may have left the reason why the first way failed.
    if (code == INF_OK)
        inf_fault_init(&job->result.fault);
}

// --- running decoding steps together ---

// Returns the jobs that have run together: bit i is set for jobs[i].
static uint32_t run_joined(struct inf_worker *worker, struct inf_job *const *jobs, uint32_t count)
    INF_ATTR(requires_capability(inf_role_worker))
{
    if (worker->joined == NULL)
        worker->joined = inf_history_joined_create();
    if (worker->joined == NULL)
        return 0;
    struct inf_run_options options =
        inf_model_default_options(jobs[0]->served->model, jobs[0]->device);
    options.cancelled = &worker->watch.cancelled;
    options.user = jobs[0]->queue_entry.user + 1;
    const struct inf_history_resources resources = {.pool = worker->pool,
                                                    .options = &options,
                                                    .slot = worker->slot,
                                                    .step = &worker->watch.step};
    return inf_history_run_joined(worker->joined, jobs, count, &resources,
                                  &worker->watch.cancelled);
}

// Runs a step alone. Returns true if a joined run with this step has failed, and the step is the
// cause: it fails alone too, or its rows could not be appended to the history in place.
static bool run_step_alone(struct inf_worker *worker, struct inf_job *job)
    INF_ATTR(requires_capability(inf_role_worker))
{
    bool suspected = job->result.join_outcome == INF_JOIN_SPOILED;
    run_single_job(worker, job);
    job->result.helper_share_ns = job->result.core_use.helper_ns;
    enum inf_code code = job->result.fault.err.code;
    bool guilty = suspected && code != INF_CANCELLED && (code != INF_OK || job->history_room == 0);
    job->result.join_outcome = guilty ? INF_JOIN_SPOILED : INF_JOIN_ALONE;
    return guilty;
}

// Runs decoding steps of several sessions together. Steps that cannot share the run, and all steps
// of a run that fails, run one by one.
static void run_steps(struct inf_worker *worker, struct inf_job *const *jobs, uint32_t count)
    INF_ATTR(requires_capability(inf_role_worker))
{
    for (uint32_t i = 0; i < count; i++)
        begin_result(jobs[i]);
    uint32_t done = run_joined(worker, jobs, count);
    uint32_t suspects = 0, guilty = 0;
    for (uint32_t i = 0; i < count; i++) {
        if ((done >> i & 1) != 0)
            continue;
        suspects += jobs[i]->result.join_outcome == INF_JOIN_SPOILED;
        guilty += run_step_alone(worker, jobs[i]);
    }
    // No step is the cause of the failure, so the next joined run may fail too.
    if (suspects > 0 && guilty == 0 && !inf_run_watch_has_passed(&worker->watch))
        atomic_store(&jobs[0]->served->join_after_ns, inf_clock_ns() + JOIN_PAUSE_NS);
}

// --- running and posting popped jobs ---

// Records the times of the jobs, and divides the time of a batch among them in proportion to their
// rows, without the time for which the run paused.
static void note_times(struct inf_job *const *jobs, uint32_t count, uint64_t start_ns,
                       uint64_t paused_ns, uint32_t worker)
{
    uint64_t done_ns = inf_clock_ns();
    uint64_t rows = 0;
    for (uint32_t i = 0; i < count; i++)
        rows += INF_MAX(jobs[i]->rows, 1u);
    uint64_t took_ns = done_ns - start_ns;
    took_ns -= INF_MIN(paused_ns, took_ns);
    for (uint32_t i = 0; i < count; i++) {
        jobs[i]->result.worker = worker;
        jobs[i]->result.start_ns = start_ns;
        jobs[i]->result.done_ns = done_ns;
        uint64_t helper_ns =
            count == 1 ? jobs[i]->result.core_use.helper_ns : jobs[i]->result.helper_share_ns;
        jobs[i]->result.paused_ns = paused_ns;
        jobs[i]->result.device_ns = count == 1 ? took_ns : took_ns / rows * jobs[i]->rows;
        jobs[i]->result.core_ns = jobs[i]->result.device_ns + helper_ns;
        jobs[i]->result.fault.phase = "exec";
    }
}

static void run_jobs(struct inf_worker *worker, struct inf_job *const *jobs, uint32_t count)
    INF_ATTR(requires_capability(inf_role_worker))
{
    uint64_t start_ns = inf_clock_ns();
    for (uint32_t i = 0; i < count; i++) {
        inf_pending_begin(jobs[i]->pending);
        jobs[i]->result.helper_share_ns = 0; // the memory of a job is used again
    }
    bool pauses = jobs[0]->pause_until_ns != 0;
    worker->watch.step.pause = pauses ? &worker->queue->low_runs.pause : NULL;
    worker->watch.step.pause_until_ns = jobs[0]->pause_until_ns;
    worker->watch.step.paused_ns = 0;
    // A pause does not count towards the limit of the run.
    inf_run_watch_begin(&worker->watch, jobs, count, INF_MAX(start_ns, jobs[0]->pause_until_ns));
    inf_crash_note_begin(jobs[0]->served->hang_key);
    if (count > 1 && jobs[0]->join_key != 0) {
        run_steps(worker, jobs, count);
    } else if (jobs[0]->rows > 0 && jobs[0]->join_key == 0) {
        const struct inf_batch_resources resources = {.pool = worker->pool,
                                                      .memory = &worker->batch_memory,
                                                      .slot = worker->slot,
                                                      .cancelled = &worker->watch.cancelled,
                                                      .step = &worker->watch.step};
        inf_batch_run(jobs, count, &resources);
    } else {
        run_single_job(worker, jobs[0]);
    }
    inf_crash_note_end();
    inf_run_watch_end(&worker->watch);
    for (uint32_t i = 0; i < count; i++)
        if (jobs[i]->result.fault.err.code == INF_OK)
            inf_job_keep_outputs(jobs[i]);
    for (uint32_t i = 0; i < count; i++)
        if ((jobs[i]->shadowed || jobs[i]->traced) && jobs[i]->history_room == 0 &&
            jobs[i]->result.fault.err.code == INF_OK)
            jobs[i]->result.sample = inf_shadow_take(jobs[i]);
    // Not earlier, because the inputs of a job may be in this memory.
    inf_batch_memory_trim(&worker->history_memory, INF_LIMIT_KEPT_INPUT_BYTES);
    inf_history_joined_trim(worker->joined, INF_LIMIT_KEPT_INPUT_BYTES);
    note_times(jobs, count, start_ns, worker->watch.step.paused_ns, worker->slot);
}

// Fails a job that would end after its deadline, without running it.
static void refuse_late_job(struct inf_job *job, uint32_t worker)
{
    uint64_t now_ns = inf_clock_ns();
    inf_fault_init(&job->result.fault);
    inf_fail_reason(&job->result.fault.err, INF_DEADLINE, INF_REASON_IN_QUEUE,
                    "the time given would run out before the run ended");
    job->result.fault.phase = "queue";
    job->result.start_ns = job->result.begin_ns = job->result.end_ns = job->result.done_ns = now_ns;
    job->result.device_ns = job->result.core_ns = job->result.paused_ns = 0;
    job->result.core_use = (struct inf_core_use){0};
    job->result.batch_rows = 0;
    job->result.worker = worker;
}

// Posts a finished job to the loop. Writes its reply directly if the job allows that and ran alone.
static void post_job(struct inf_worker *worker, struct inf_job *job, bool alone)
    INF_ATTR(requires_capability(inf_role_worker))
{
    struct inf_job_direct_reply direct_reply;
    bool mine = alone && inf_job_replier_begin(worker->replier, job, &direct_reply);
    bool posted =
        mine ? inf_queue_push_deferred(worker->done, job) : inf_queue_push(worker->done, job);
    assert(posted && "the queue has room for every job there can be");
    (void)posted;
    if (mine)
        inf_job_replier_end(worker->replier, &direct_reply);
}

static void run_worker(void *context) INF_ATTR(no_thread_safety_analysis)
{
    struct inf_worker *worker = context;
    inf_role_enter_worker();
    struct inf_job *jobs[INF_QUEUE_BATCH_JOBS];
    uint32_t count;
    while ((count = inf_device_queue_pop(worker->queue, jobs)) > 0) {
        if (jobs[0]->skip_run)
            refuse_late_job(jobs[0], worker->slot);
        else
            run_jobs(worker, jobs, count);
        inf_device_queue_finish(worker->queue, jobs, count);
        for (uint32_t i = 0; i < count; i++)
            post_job(worker, jobs[i], count == 1);
        inf_queue_notify(worker->done);
    }
    inf_batch_memory_fini(&worker->batch_memory);
    inf_batch_memory_fini(&worker->history_memory);
    inf_history_joined_destroy(&worker->joined);
    inf_string_pool_fini(&worker->strings.pool);
}

enum inf_code inf_worker_start(struct inf_worker *worker, struct inf_error *err)
{
    INF_TRY(inf_job_replier_create(&worker->replier, worker->pool, err));
    enum inf_code code =
        inf_thread_start(&worker->thread, "inferd-worker", run_worker, worker, err);
    if (code != INF_OK)
        inf_job_replier_destroy(&worker->replier);
    return code;
}

void inf_worker_join(struct inf_worker *worker)
{
    inf_thread_join(&worker->thread);
    inf_job_replier_destroy(&worker->replier);
}
