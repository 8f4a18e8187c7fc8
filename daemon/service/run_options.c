// SPDX-License-Identifier: Apache-2.0
// Chooses device, precision and mode of a request, moves it to another device after a failure, and
// routes it to a replica.
#include <string.h>

#include "daemon/model/devices.h"
#include "daemon/service/job_estimate.h"
#include "daemon/service/run_options.h"

// --- choosing the device ---

static void set_device(struct inf_job *job, const struct inf_device_list *devices, uint32_t index)
{
    job->device = devices->devices[index];
    job->device_index = index;
}

// Moves the job to the best other device that works. Returns false if no other device works.
static bool move_job(const struct inf_service *service, struct inf_job *job)
{
    const struct inf_device_list *devices = service->options.devices;
    uint32_t other =
        job->movable ? inf_model_device_find_other(devices, job->device) : INF_DEVICE_INDEX_NONE;
    if (other == INF_DEVICE_INDEX_NONE)
        return false;
    set_device(job, devices, other);
    job->movable = false;
    return true;
}

// Chooses the device that the request names, or else the device of the model. If that device is
// lost, chooses another one.
static enum inf_code choose_device(const struct inf_service *service, struct inf_job *job,
                                   const char *name, struct inf_fault *fault)
{
    const struct inf_device_list *devices = service->options.devices;
    for (uint32_t i = 0; i < devices->count; i++) {
        bool chosen = name[0] == '\0'
                          ? devices->devices[i] == job->served->device
                          : strcmp(inf_device_info(devices->devices[i])->name, name) == 0;
        if (!chosen)
            continue;
        set_device(job, devices, i);
        job->movable = name[0] == '\0';
        if (inf_device_health(job->device) != INF_DEVICE_OK)
            (void)move_job(service, job);
        return INF_OK;
    }
    // Call this only for its error text, which lists the devices; the device is not used.
    struct inf_device *none;
    return inf_model_device_find(devices, name, &none, &fault->err);
}

// --- choosing the precision ---

enum inf_code inf_service_choose_precision(const struct inf_device *device, const char *name,
                                           enum inf_precision *out_precision, struct inf_error *err)
{
    const struct inf_device_info *info = inf_device_info(device);
    *out_precision = INF_PRECISION_AUTO;
    if (name[0] == '\0')
        return INF_OK;
    if (!inf_precision_parse(name, out_precision) || *out_precision == INF_PRECISION_AUTO)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                               "precision '%.32s': wanted fp32, fp16, bf16 or int8", name);
    if (*out_precision != INF_PRECISION_FP32 &&
        (info->precisions & INF_PRECISION_BIT(*out_precision)) == 0)
        return inf_fail_reason(err, INF_UNSUPPORTED, INF_REASON_FEATURE,
                               "precision '%s': device '%s' does not compute in it", name,
                               info->name);
    return INF_OK;
}

// --- choosing shadow checks and tracing ---

// Returns true if the shadow check should check the answer of this request. Answers of the
// reference device are never checked.
static bool is_check_due(struct inf_service *service, struct inf_job *job)
    INF_ATTR(requires_capability(inf_role_loop))
{
    const struct inf_device_list *devices = service->options.devices;
    uint32_t interval = job->served->config.shadow_interval;
    if (interval == 0)
        interval = service->options.environment->config->shadow_interval;
    return job->device != devices->devices[devices->count - 1] &&
           inf_shadow_should_sample(service->shadow, job->served, ++job->served->shadow.requests,
                                    interval);
}

// Allow tracing to admins only, because it writes details of the model to the log and occupies a
// thread.
static enum inf_code choose_mode(struct inf_service *service, struct inf_job *job, const char *name,
                                 bool admin, struct inf_fault *fault)
    INF_ATTR(requires_capability(inf_role_loop))
{
    enum inf_run_mode mode = INF_RUN_NORMAL;
    // Parsing cannot fail here, because the settings were validated when they were read.
    (void)inf_run_mode_parse(job->served->config.mode, &mode);
    if (name[0] != '\0' && !inf_run_mode_parse(name, &mode))
        return inf_fail_reason(&fault->err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                               "mode '%.32s': wanted normal, debug or prod", name);
    if (name[0] != '\0' && mode == INF_RUN_DEBUG && !admin)
        return inf_fail_reason(&fault->err, INF_DENIED, INF_REASON_ROLE,
                               "mode 'debug' is for admins: use the admin socket");
    job->shadowed = mode != INF_RUN_PROD && is_check_due(service, job);
    job->traced =
        mode == INF_RUN_DEBUG && inf_shadow_should_sample(service->shadow, job->served, 1, 1);
    return INF_OK;
}

enum inf_code inf_service_choose_run_options(struct inf_service *service, struct inf_job *job,
                                             const struct inf_request *request,
                                             struct inf_fault *fault)
{
    const struct inf_infer_request *infer = &service->request.infer_request;
    INF_TRY(choose_device(service, job, infer->device, fault));
    INF_TRY(
        inf_service_choose_precision(job->device, infer->precision, &job->precision, &fault->err));
    return choose_mode(service, job, infer->mode, request->caller->admin, fault);
}

// --- moving a job to another device or to a replica ---

bool inf_service_retry_job(struct inf_service *service, struct inf_job *job)
{
    const struct inf_error *err = &job->result.fault.err;
    if (err->code == INF_OK || !inf_device_caused_error(err) || job->call.answered ||
        atomic_load_explicit(&job->cancelled, memory_order_relaxed) || !move_job(service, job))
        return false;
    inf_service_estimate_job(job);
    job->result.flags = INF_INFER_MOVED;
    job->queue_deadline.at_ns = 0; // the first attempt met this deadline, so it no longer applies
    // If the other device refuses the job too, the client gets the error of the first device.
    struct inf_fault refused;
    inf_fault_init(&refused);
    return inf_scheduler_submit(service->scheduler, job, &refused) == INF_OK;
}

void inf_service_route_job(struct inf_service *service, struct inf_job *job)
{
    const struct inf_device_list *devices = service->options.devices;
    const struct inf_replicas *replicas = &job->served->replicas;
    if (replicas->count == 0 || !job->movable || job->device != job->served->device)
        return;
    uint64_t best_ns = inf_scheduler_finish_ns(service->scheduler, job->device_index, job, 0);
    for (uint32_t i = 0; i < replicas->count; i++) {
        const struct inf_replica *entry = &replicas->entries[i];
        if (entry->key != job->estimate_key ||
            inf_device_health(devices->devices[entry->device_index]) != INF_DEVICE_OK)
            continue;
        uint64_t ns =
            inf_scheduler_finish_ns(service->scheduler, entry->device_index, job, entry->run_ns);
        if (ns >= best_ns)
            continue;
        best_ns = ns;
        set_device(job, devices, entry->device_index);
    }
    if (job->device != job->served->device)
        inf_service_estimate_job(job);
}
