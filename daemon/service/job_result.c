// SPDX-License-Identifier: Apache-2.0
// Ends an inference: converts its result to the reply, and updates the model. If the model has
// become slower, a new race (a timing comparison of devices) is started. If its results were wrong,
// it runs in fp32 from then on. Its shapes are remembered for the next start.
#include "daemon/service/job_result.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "backends/base/clock.h"
#include "daemon/schedule/job_reply.h"
#include "daemon/service/events.h"
#include "daemon/service/session.h"

// Starts a new race (a timing comparison of devices) for a model that became slower on its device.
// If the race cannot be started, the latency watch reports again after more runs.
static void watch_latency(struct inf_service *service, struct inf_job *job) INF_ON_LOOP
{
    struct inf_served *served = job->served;
    const struct inf_config *config = service->options.environment->config;
    const struct inf_latency_watch_limits limits = {.factor = config->drift_factor,
                                                    .after_ns = (uint64_t)config->drift_after_ms *
                                                                INF_NS_PER_MS};
    // A race is possible only if the settings do not pin the model to a device and the placement
    // has several candidates. A placement that the prior chose without a race may have only one
    // candidate.
    bool raceable =
        served->placement.source != INF_PLACE_PINNED &&
        (served->placement.source != INF_PLACE_RULE || strcmp(config->race, "always") == 0);
    bool batched = job->result.batch_rows > INF_MAX(job->rows, 1u);
    // Runs that share the cores with others are slower than a run alone, whatever the device does.
    bool slowed = job->shared && inf_device_info(job->device)->kind == INF_DEVICE_CPU;
    if (!raceable || job->device != served->device || batched || slowed ||
        job->precision != INF_PRECISION_AUTO ||
        !inf_latency_watch_note(&served->latency_watch, &limits, job->estimate_key,
                                job->result.end_ns - job->result.begin_ns, inf_clock_ns()))
        return;
    struct inf_error err = {0};
    bool started = inf_model_store_race(service->options.store, served->name, &err) == INF_OK;
    inf_service_add_model_event(service, "model_slower", served,
                                started ? "its devices are compared again" : "");
    inf_log(
        service->log, INF_LOG_NOTICE,
        "model drifted name=%s device=%s best_us=%" PRIu64 " median_us=%" PRIu64 " race_started=%s",
        served->name, inf_device_info(served->device)->name, served->latency_watch.best_ns / 1000,
        served->latency_watch.median_ns / 1000, started ? "yes" : "no");
}

// Moves a model to fp32 if the result guard had to repeat one of its runs in fp32.
static void demote_after_bad_results(struct inf_service *service,
                                     struct inf_served *served) INF_ON_LOOP
{
    if (served->demoted || atomic_load_explicit(&served->recomputed, memory_order_relaxed) == 0)
        return;
    char why[INF_PRECISION_REASON];
    served->demoted = true;
    service->models_demoted++;
    snprintf(
        why, sizeof why,
        "%s on %s gave values that are not finite: the answer was computed again in fp32, and the "
        "model stays in fp32",
        inf_precision_name(served->placement.options.precision),
        inf_device_info(served->device)->name);
    inf_log(service->log, INF_LOG_WARNING, "model demoted name=%s reason=\"%s\"", served->name,
            why);
    inf_model_store_demote(service->options.store, served, why);
    inf_service_add_model_event(service, "model_demoted", served, why);
}

void inf_service_note_job(struct inf_service *service, struct inf_job *job)
{
    atomic_fetch_add_explicit(&job->served->request_count, 1, memory_order_relaxed);
    watch_latency(service, job);
    demote_after_bad_results(service, job->served);
    if (job->shadowed || job->traced)
        inf_shadow_submit(service->shadow, job,
                          service->options.environment->config->race_tolerance);
    struct inf_served *served = job->served;
    // The shapes of a step with a history occur once.
    if (served->config.remember_shapes && job->history_room == 0 &&
        inf_served_shapes_note(&served->shapes, job->estimate_key, job->shapes, job->input_count,
                               job->result.done_ns))
        inf_model_store_save_shapes(service->options.store, served);
}

enum inf_code inf_service_job_result(struct inf_service *service, struct inf_job *job,
                                     struct inf_answer *answer, struct inf_fault *fault)
{
    if (job->result.fault.err.code != INF_OK) {
        *fault = job->result.fault;
        inf_fault_model(fault, job->served->name, job->served->version);
        return fault->err.code;
    }
    if (job->kept_output_count > 0 && inf_service_commit_session(job, fault) != INF_OK) {
        inf_fault_model(fault, job->served->name, job->served->version);
        return fault->err.code;
    }
    inf_job_reply_fill(job, &service->reply.infer_reply);
    inf_service_note_job(service, job);
    *answer = (struct inf_answer){.kind = INF_MESSAGE_INFER_REPLY,
                                  .message = &service->reply,
                                  .data = job->result.data,
                                  .data_bytes = job->result.data_bytes,
                                  .data_capacity = job->result.data_capacity};
    job->result.data = NULL;
    return INF_OK;
}
