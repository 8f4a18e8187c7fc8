// SPDX-License-Identifier: Apache-2.0
// ModelInfer: checks a request against its model, makes a job of it, and the job's result a reply.
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/clock.h"
#include "daemon/schedule/job_reply.h"
#include "daemon/service/handlers.h"

static struct inf_job *acquire_job(struct inf_service *service)
{
    struct inf_call *unused = service->unused_jobs;
    struct inf_job *job;
    if (unused != NULL) {
        service->unused_jobs = unused->next;
        job = (struct inf_job *)unused;
    } else {
        job = calloc(1, sizeof *job);
        if (job == NULL)
            return NULL;
        job->call.kind = INF_CALL_INFER;
        atomic_init(&job->cancelled, false);
        atomic_init(&job->answerer, INF_JOB_BY_NOBODY);
    }
    job->call.connection = NULL;
    job->call.answered = false;
    job->place = INF_JOB_LOOP;
    job->kept_input_count = job->kept_output_count = 0;
    job->shadowed = job->traced = false;
    job->result.sample = NULL;
    job->result.flags = job->result.padded_to = 0;
    job->call.previous = job->call.next = NULL;
    atomic_store_explicit(&job->cancelled, false, memory_order_relaxed);
    atomic_store_explicit(&job->answerer, INF_JOB_BY_NOBODY, memory_order_relaxed);
    return job;
}

void inf_service_release_job(struct inf_service *service, struct inf_job *job)
{
    if (job->session != NULL)
        inf_service_leave_session(service, job);
    for (uint32_t i = 0; i < job->input_count; i++)
        inf_region_release(&job->input_regions[i]);
    for (uint32_t i = 0; i < job->output_count; i++)
        inf_region_release(&job->outputs[i].region);
    job->input_count = job->output_count = 0;
    inf_pool_release(service->options.pool, job->data, job->data_bytes);
    inf_pool_release(service->options.pool, job->result.data, job->result.data_capacity);
    job->data = job->result.data = NULL;
    inf_shadow_sample_destroy(&job->result.sample);
    inf_served_unref(&job->served);
    inf_reply_writer_unref(&job->direct.writer);
    job->call.next = service->unused_jobs;
    service->unused_jobs = &job->call;
}

// Clients mostly keep the model's order, which makes `guess` a good one.
uint32_t inf_service_find_port(const struct inf_port *ports, uint32_t count, const char *name,
                               uint32_t guess)
{
    if (guess < count && strcmp(ports[guess].name, name) == 0)
        return guess;
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(ports[i].name, name) == 0)
            return i;
    return count;
}

// What an input has to be, for people: "FP32 [1,?,3]".
#define WANTED_TEXT_SIZE (INF_SHAPE_TEXT_SIZE + 16)
static const char *describe(const struct inf_value *value, char text[WANTED_TEXT_SIZE])
{
    char shape[INF_SHAPE_TEXT_SIZE];
    snprintf(text, WANTED_TEXT_SIZE, "%s %s", inf_dtype_name(value->dtype),
             inf_shape_print(&value->shape, shape));
    return text;
}

static enum inf_code unknown_tensor(const char *what, const char *name,
                                    const struct inf_port *ports, uint32_t count,
                                    struct inf_fault *fault)
{
    char names[512] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < count && used < sizeof names; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s'%s'", i == 0 ? "" : ", ",
                                 ports[i].name);
    inf_text_trim(names);
    inf_fault_tensor(fault, name, NULL, NULL);
    return inf_fail_reason(&fault->err, INF_INVALID, INF_REASON_TENSOR_UNKNOWN,
                           "%s '%s': the model has no such %s; it has %s", what, name, what, names);
}

enum inf_code inf_service_check_input(const struct inf_tensor_entry *entry,
                                      const struct inf_value *value, struct inf_fault *fault)
{
    char expected[INF_SHAPE_TEXT_SIZE];
    char actual[INF_SHAPE_TEXT_SIZE];
    if (entry->dtype != value->dtype) {
        inf_fault_tensor(fault, entry->name, inf_dtype_name(value->dtype),
                         inf_dtype_name(entry->dtype));
        return inf_fail_reason(&fault->err, INF_INVALID, INF_REASON_DTYPE_MISMATCH,
                               "input '%s': datatype is %s, wanted %s", entry->name, fault->actual,
                               fault->expected);
    }
    if (!inf_shape_matches(&entry->shape, &value->shape)) {
        inf_fault_tensor(fault, entry->name, inf_shape_print(&value->shape, expected),
                         inf_shape_print(&entry->shape, actual));
        return inf_fail_reason(&fault->err, INF_INVALID, INF_REASON_SHAPE_MISMATCH,
                               "input '%s': shape is %s, wanted %s", entry->name, actual, expected);
    }
    return INF_OK;
}

static enum inf_code bind_input(struct inf_job *job, uint32_t index,
                                const struct inf_tensor_entry *entry,
                                const struct inf_request *request, struct inf_fault *fault)
    INF_ATTR(requires_capability(inf_role_loop))
{
    job->shapes[index] = entry->shape;
    if (entry->location.region_id == 0) {
        // An empty tensor may lie nowhere; it still gets an address.
        job->inputs[index] = request->data != NULL ? request->data + entry->location.offset
                                                   : (const uint8_t *)job->id;
        return INF_OK;
    }
    const struct inf_region_range range = {.id = entry->location.region_id,
                                           .offset = entry->location.offset,
                                           .length = entry->location.length};
    uint8_t *memory;
    enum inf_code code = inf_region_acquire(request->regions, &range, &job->input_regions[index],
                                            &memory, &fault->err);
    if (code != INF_OK) {
        inf_fault_tensor(fault, entry->name, NULL, NULL);
        return inf_error_prefix(&fault->err, code, "input '%s'", entry->name);
    }
    job->inputs[index] = memory;
    job->mappings[index] = job->input_regions[index]->mapping;
    return INF_OK;
}

// *out_given gets a bit for each input that the request has itself.
static enum inf_code bind_inputs(struct inf_job *job, const struct inf_graph *graph,
                                 const struct inf_infer_request *infer,
                                 const struct inf_request *request, uint64_t *out_given,
                                 struct inf_fault *fault)
    INF_ATTR(requires_capability(inf_role_loop))
{
    uint64_t seen = 0;
    uint64_t given = 0;
    for (uint32_t i = 0; i < infer->input_count; i++) {
        const struct inf_tensor_entry *entry = &infer->inputs[i];
        uint32_t index = inf_service_find_port(graph->inputs, graph->input_count, entry->name, i);
        if (index == graph->input_count)
            return unknown_tensor("input", entry->name, graph->inputs, graph->input_count, fault);
        assert((seen >> index & 1) == 0 && "decoding refuses a name that comes twice");
        seen |= (uint64_t)1 << index;
        if (entry->session_tensor != NULL)
            continue;
        given |= (uint64_t)1 << index;
        INF_TRY(inf_service_check_input(entry, &graph->values[graph->inputs[index].value], fault));
        INF_TRY(bind_input(job, index, entry, request, fault));
    }
    *out_given = given;
    return INF_OK;
}

static enum inf_code check_all_there(const struct inf_job *job, const struct inf_graph *graph,
                                     uint64_t seen, struct inf_fault *fault)
{
    for (uint32_t i = 0; i < job->kept_input_count; i++)
        seen |= (uint64_t)1 << job->kept_inputs[i].port;
    for (uint32_t i = 0; i < graph->input_count; i++) {
        char wanted[WANTED_TEXT_SIZE];
        if ((seen >> i & 1) != 0)
            continue;
        describe(&graph->values[graph->inputs[i].value], wanted);
        inf_fault_tensor(fault, graph->inputs[i].name, wanted, NULL);
        return inf_fail_reason(&fault->err, INF_INVALID, INF_REASON_TENSOR_MISSING,
                               "input '%s' is missing: wanted %s", graph->inputs[i].name, wanted);
    }
    return INF_OK;
}

static bool overlap(const struct inf_location *a, const struct inf_location *b)
{
    // Both lie inside one region, so the sums fit.
    return a->region_id == b->region_id && a->offset < b->offset + b->length &&
           b->offset < a->offset + a->length;
}

// A kernel that writes what it still reads gives garbage: refused, rather than found out.
static enum inf_code check_overlap(const struct inf_infer_request *infer, uint32_t output,
                                   struct inf_fault *fault)
{
    const struct inf_tensor_entry *entry = &infer->outputs[output];
    const char *other = NULL;
    for (uint32_t i = 0; i < infer->input_count && other == NULL; i++)
        if (overlap(&entry->location, &infer->inputs[i].location))
            other = infer->inputs[i].name;
    for (uint32_t i = 0; i < output && other == NULL; i++)
        if (overlap(&entry->location, &infer->outputs[i].location))
            other = infer->outputs[i].name;
    if (other == NULL)
        return INF_OK;
    inf_fault_tensor(fault, entry->name, NULL, NULL);
    return inf_fail_reason(&fault->err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                           "output '%s': its room overlaps that of '%s' in region %" PRIu64,
                           entry->name, other, entry->location.region_id);
}

static enum inf_code bind_output(struct inf_job *job, uint32_t index,
                                 const struct inf_infer_request *infer, uint32_t position,
                                 const struct inf_request *request, struct inf_fault *fault)
    INF_ATTR(requires_capability(inf_role_loop))
{
    const struct inf_tensor_entry *entry = &infer->outputs[position];
    struct inf_job_output *output = &job->outputs[index];
    output->wanted = true;
    output->returned = entry->session_tensor == NULL;
    if (entry->location.region_id == 0)
        return INF_OK;
    const struct inf_region_range range = {.id = entry->location.region_id,
                                           .offset = entry->location.offset,
                                           .length = entry->location.length,
                                           .write = true};
    enum inf_code code =
        inf_region_acquire(request->regions, &range, &output->region, &output->memory, &fault->err);
    if (code != INF_OK) {
        inf_fault_tensor(fault, entry->name, NULL, NULL);
        return inf_error_prefix(&fault->err, code, "output '%s'", entry->name);
    }
    output->room_bytes = range.length;
    output->region_id = range.id;
    output->region_offset = range.offset;
    return check_overlap(infer, position, fault);
}

static enum inf_code bind_outputs(struct inf_job *job, const struct inf_graph *graph,
                                  const struct inf_infer_request *infer,
                                  const struct inf_request *request, struct inf_fault *fault)
    INF_ATTR(requires_capability(inf_role_loop))
{
    bool all = infer->output_count == 0;
    for (uint32_t i = 0; i < graph->output_count; i++) {
        job->outputs[i].wanted = job->outputs[i].returned = all;
        job->outputs[i].memory = NULL;
        job->outputs[i].region = NULL;
        job->outputs[i].kept = NULL;
        job->order[i] = (uint8_t)i;
    }
    job->order_count = all ? graph->output_count : infer->output_count;
    for (uint32_t i = 0; i < infer->output_count; i++) {
        const char *name = infer->outputs[i].name;
        uint32_t index = inf_service_find_port(graph->outputs, graph->output_count, name, i);
        if (index == graph->output_count)
            return unknown_tensor("output", name, graph->outputs, graph->output_count, fault);
        assert(!job->outputs[index].wanted && "decoding refuses a name that comes twice");
        job->order[i] = (uint8_t)index;
        INF_TRY(bind_output(job, index, infer, i, request, fault));
    }
    return INF_OK;
}

// A run of more rows than the last rung is made of several runs only where each is long enough to be
// worth its overhead.
#define SPLIT_RUN_NS INF_NS_PER_MS

// The rows of a job that may run together with those of others; 0 where none may.
static uint32_t shared_rows(const struct inf_job *job)
{
    const struct inf_batch_ladder *ladder = &job->served->ladder;
    if (ladder->count == 0 || job->device != job->served->device ||
        job->precision != INF_PRECISION_AUTO)
        return 0;
    int64_t rows = job->shapes[0].dims[0];
    for (uint32_t i = 1; i < job->input_count; i++)
        if (job->shapes[i].dims[0] != rows)
            return 0;
    if (rows > inf_batch_rows_max(ladder) && ladder->rungs[ladder->count - 1].run_ns < SPLIT_RUN_NS)
        return 0;
    return (uint32_t)rows;
}

static enum inf_priority priority_of(enum inf_wire_priority priority)
{
    static const enum inf_priority priorities[] = {
        [INF_WIRE_PRIORITY_NORMAL] = INF_PRIORITY_NORMAL,
        [INF_WIRE_PRIORITY_HIGH] = INF_PRIORITY_HIGH,
        [INF_WIRE_PRIORITY_LOW] = INF_PRIORITY_LOW,
    };
    return priorities[priority];
}

void inf_service_measure_job(struct inf_job *job)
{
    // What a run in another precision takes says nothing about the others.
    job->estimate_key =
        inf_estimate_key(job->served, job->shapes, job->input_count) ^ (uint64_t)job->precision;
    job->rows = shared_rows(job);
}

static enum inf_code fill_job(struct inf_service *service, struct inf_job *job,
                              struct inf_request *request, struct inf_fault *fault)
    INF_ATTR(requires_capability(inf_role_loop))
{
    const struct inf_infer_request *infer = &service->request.infer_request;
    INF_TRY(inf_model_store_find(service->options.store, infer->model_name, infer->model_version,
                                 &job->served, &fault->err));
    inf_fault_model(fault, NULL, job->served->version);
    INF_TRY(inf_service_choose_run_options(service, job, request, fault));
    const struct inf_graph *graph = inf_model_graph(job->served->model);
    if (graph->input_count > INF_LIMIT_TENSORS || graph->output_count > INF_LIMIT_TENSORS)
        return inf_fail_reason(&fault->err, INF_UNSUPPORTED, INF_REASON_FEATURE,
                               "model '%s': %u inputs and %u outputs, at most %u each can be asked "
                               "for",
                               job->served->name, graph->input_count, graph->output_count,
                               INF_LIMIT_TENSORS);
    memset(job->input_regions, 0, graph->input_count * sizeof job->input_regions[0]);
    memset(job->mappings, 0, graph->input_count * sizeof job->mappings[0]);
    job->input_count = graph->input_count;
    uint64_t given;
    INF_TRY(bind_inputs(job, graph, infer, request, &given, fault));
    job->output_count = graph->output_count;
    INF_TRY(bind_outputs(job, graph, infer, request, fault));
    if (infer->session_id != 0)
        INF_TRY(inf_service_join_session(job, infer, request, given, fault));
    INF_TRY(check_all_there(job, graph, given, fault));

    snprintf(job->id, sizeof job->id, "%s", infer->id);
    job->reply_bytes_max = request->reply_bytes_max;
    job->accepted_ns = inf_clock_ns();
    job->turn.user = request->uid;
    job->turn.model = (uintptr_t)job->served;
    job->turn.priority = priority_of(infer->priority);
    job->deadline.at_ns = inf_deadline_after(job->accepted_ns, infer->timeout_ns);
    job->queue_deadline.at_ns = inf_deadline_after(job->accepted_ns, infer->queue_timeout_ns);
    return INF_OK;
}

// Leaves it to the worker to answer, where nothing has to be done before that only the loop can do.
static void let_worker_answer(const struct inf_service *service, struct inf_job *job,
                              const struct inf_request *request)
{
    if (request->writer == NULL || job->shadowed || job->traced)
        return;
    job->direct.writer = inf_reply_writer_ref(request->writer);
    job->direct.stream_id = request->stream_id;
    job->direct.data_bytes_max =
        INF_MIN(request->frame_bytes_max, service->options.environment->config->direct_reply_bytes);
}

enum inf_code inf_service_model_infer(struct inf_service *service, struct inf_request *request,
                                      struct inf_answer *answer, struct inf_fault *fault)
{
    struct inf_infer_request *infer = &service->request.infer_request;
    answer->order_key = infer->order_key;
    if (infer->order_key != 0)
        request->writer = NULL; // it may have to wait for others
    inf_fault_model(fault, infer->model_name, infer->model_version);
    INF_TRY(inf_infer_request_resolve_inline(infer, request->data_bytes, &fault->err));
    struct inf_job *job = acquire_job(service);
    if (job == NULL)
        return inf_fail_reason(&fault->err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "no memory for a request");
    enum inf_code code = fill_job(service, job, request, fault);
    if (code == INF_OK) {
        job->data = request->data;
        job->data_bytes = request->data_bytes;
        request->data = NULL;
        if (job->session != NULL) {
            code = inf_service_enter_session(service, job, fault);
        } else {
            inf_service_measure_job(job);
            inf_service_route(service, job);
            let_worker_answer(service, job, request);
            code = inf_scheduler_submit(service->scheduler, job, fault);
        }
    }
    if (code == INF_OK)
        answer->call = &job->call;
    else
        inf_service_release_job(service, job);
    return code;
}

// Has devices race anew for a model that has become slower where it runs. Nothing comes of it where
// that cannot be begun: the next runs tell again.
static void watch(struct inf_service *service, struct inf_job *job)
    INF_ATTR(requires_capability(inf_role_loop))
{
    struct inf_served *served = job->served;
    const struct inf_config *config = service->options.environment->config;
    const struct inf_latency_watch_limits limits = {.factor = config->drift_factor,
                                                    .after_ns = (uint64_t)config->drift_after_ms *
                                                                INF_NS_PER_MS};
    // Where the rule stands, since there is nobody to race, there is nothing to find out.
    bool raceable =
        served->placement.source != INF_PLACE_PINNED &&
        (served->placement.source != INF_PLACE_RULE || strcmp(config->race, "always") == 0);
    bool shared = job->result.batch_rows > INF_MAX(job->rows, 1u);
    if (!raceable || job->device != served->device || shared ||
        job->precision != INF_PRECISION_AUTO ||
        !inf_latency_watch_note(&served->latency_watch, &limits, job->estimate_key,
                                job->result.end_ns - job->result.begin_ns, inf_clock_ns()))
        return;
    struct inf_error err = {0};
    bool begun = inf_model_store_race(service->options.store, served->name, &err) == INF_OK;
    inf_log(
        service->options.log, INF_LOG_NOTICE,
        "model drifted name=%s device=%s best_us=%" PRIu64 " median_us=%" PRIu64 " placed_anew=%s",
        served->name, inf_device_info(served->device)->name, served->latency_watch.best_ns / 1000,
        served->latency_watch.median_ns / 1000, begun ? "yes" : "no");
}

// Puts a model into fp32 whose answers had to be computed again.
static void heed_guard(struct inf_service *service, struct inf_served *served)
    INF_ATTR(requires_capability(inf_role_loop))
{
    if (served->demoted || atomic_load_explicit(&served->recomputed, memory_order_relaxed) == 0)
        return;
    char why[INF_PRECISION_REASON];
    served->demoted = true;
    service->models_demoted++;
    snprintf(
        why, sizeof why,
        "%s on %s gave what is not finite while it served: computed again, and from then on, in "
        "fp32",
        inf_precision_name(served->placement.options.precision),
        inf_device_info(served->device)->name);
    inf_log(service->options.log, INF_LOG_WARNING, "model demoted name=%s reason=\"%s\"",
            served->name, why);
    inf_model_store_demote(service->options.store, served, why);
}

void inf_service_note_job(struct inf_service *service, struct inf_job *job)
{
    atomic_fetch_add_explicit(&job->served->request_count, 1, memory_order_relaxed);
    watch(service, job);
    heed_guard(service, job->served);
    if (job->shadowed || job->traced)
        inf_shadow_submit(service->shadow, job,
                          service->options.environment->config->race_tolerance);
    struct inf_served *served = job->served;
    if (served->config.remember_shapes &&
        inf_served_shapes_note(&served->seen, job->estimate_key, job->shapes, job->input_count,
                               job->result.done_ns))
        inf_model_store_remember(service->options.store, served);
}

enum inf_code inf_service_job_result(struct inf_service *service, struct inf_job *job,
                                     struct inf_answer *answer, struct inf_fault *fault)
{
    if (job->result.fault.err.code != INF_OK) {
        *fault = job->result.fault;
        inf_fault_model(fault, job->served->name, job->served->version);
        return fault->err.code;
    }
    if (job->kept_output_count > 0 && inf_service_keep(job, fault) != INF_OK) {
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
