// SPDX-License-Identifier: Apache-2.0
// Sessions: opens and closes them, binds their tensors to requests, and runs the requests of each
// session one after another.
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "daemon/model/state_pairs.h"
#include "daemon/service/handlers.h"
#include "daemon/service/job_estimate.h"
#include "daemon/service/session.h"
#include "daemon/service/tensor_check.h"

// Finds the state pairs of the model that a session is opened for. *out_served is a reference to
// the model, even on failure; the names of the pairs point into the model.
static enum inf_code find_state_pairs(struct inf_service *service, struct inf_caller *caller,
                                      struct inf_session_message *message,
                                      struct inf_served **out_served,
                                      struct inf_fault *fault) INF_ON_LOOP
{
    struct inf_state_pair pairs[INF_LIMIT_TENSORS];
    uint32_t count = 0;
    inf_fault_model(fault, message->model_name, message->model_version);
    INF_TRY(inf_model_store_find(service->options.store, caller, message->model_name,
                                 message->model_version, out_served, &fault->err));
    const struct inf_graph *graph = inf_model_graph((*out_served)->model);
    INF_TRY(inf_state_pairs_find(graph, (*out_served)->config.session_pairs, pairs, &count,
                                 &fault->err));
    if (count == 0)
        return inf_fail_reason(&fault->err, INF_PRECONDITION, INF_REASON_BAD_PARAMETER,
                               "model '%s': neither its settings nor its names tell which outputs "
                               "feed which inputs: give states",
                               (*out_served)->name);
    for (uint32_t i = 0; i < count; i++)
        message->states[i] =
            (struct inf_session_state){.output = graph->outputs[pairs[i].output].name,
                                       .input = graph->inputs[pairs[i].input].name};
    message->state_count = count;
    return INF_OK;
}

// Returns the bytes that a session will keep at least: those of its states whose shapes the model
// knows, once; 1 if none is known, so that a session is refused when nothing is left.
static uint64_t count_state_bytes(const struct inf_served *served,
                                  const struct inf_session_message *message)
{
    uint64_t sum = 0;
    size_t bytes;
    const struct inf_graph *graph = served != NULL ? inf_model_graph(served->model) : NULL;
    for (uint32_t i = 0; graph != NULL && i < message->state_count; i++) {
        uint32_t port =
            inf_service_find_port(graph->inputs, graph->input_count, message->states[i].input, i);
        if (port == graph->input_count)
            continue;
        const struct inf_value *value = &graph->values[graph->inputs[port].value];
        if (value->dtype != INF_DTYPE_BYTES && inf_shape_bytes(&value->shape, value->dtype, &bytes))
            sum += bytes;
    }
    return INF_MAX(sum, UINT64_C(1));
}

enum inf_code inf_service_session_open(struct inf_service *service, struct inf_request *request,
                                       struct inf_answer *answer, struct inf_fault *fault)
{
    (void)answer;
    struct inf_session_message *message = &service->request.session;
    struct inf_served *served = NULL;
    enum inf_code code = INF_OK;
    if (message->model_name[0] != '\0')
        code = find_state_pairs(service, request->caller, message, &served, fault);
    if (code == INF_OK)
        code = inf_service_claim_memory(service, count_state_bytes(served, message), "the session",
                                        &fault->err);
    if (code == INF_OK)
        code = inf_session_open(request->sessions, message, &fault->err);
    inf_served_unref(&served);
    return code;
}

enum inf_code inf_service_session_close(struct inf_service *service, struct inf_request *request,
                                        struct inf_answer *answer, struct inf_fault *fault)
{
    (void)answer;
    return inf_session_close(request->sessions, service->request.session.session_id, &fault->err);
}

enum inf_code inf_service_session_rewind(struct inf_service *service, struct inf_request *request,
                                         struct inf_answer *answer, struct inf_fault *fault)
{
    (void)answer;
    const struct inf_session_message *message = &service->request.session;
    struct inf_session *session;
    INF_TRY(inf_session_find(request->sessions, message->session_id, &session, &fault->err));
    return inf_session_rewind(session, message->length, message->release, &fault->err);
}

// --- binding the tensors of a job ---

static void bind_kept_input(struct inf_job *job, uint32_t port, uint32_t tensor)
{
    job->kept_inputs[job->kept_input_count++] =
        (struct inf_session_port){(uint8_t)port, (uint8_t)tensor};
}

static void keep_output(struct inf_job *job, uint32_t port, uint32_t tensor)
{
    struct inf_job_output *output = &job->outputs[port];
    output->wanted = true;
    output->kept = job->session->tensors[tensor];
    job->kept_outputs[job->kept_output_count++] =
        (struct inf_session_port){(uint8_t)port, (uint8_t)tensor};
}

static bool is_tensor_kept(const struct inf_job *job, uint32_t tensor)
{
    for (uint32_t i = 0; i < job->kept_output_count; i++)
        if (job->kept_outputs[i].tensor == tensor)
            return true;
    return false;
}

// Binds the inputs and outputs for which the request names a session tensor.
static enum inf_code join_named_tensors(struct inf_job *job, const struct inf_graph *graph,
                                        const struct inf_infer_request *infer,
                                        struct inf_error *err) INF_ON_LOOP
{
    uint32_t tensor;
    for (uint32_t i = 0; i < infer->input_count; i++) {
        const struct inf_tensor_entry *entry = &infer->inputs[i];
        if (entry->session_tensor == NULL)
            continue;
        INF_TRY(inf_session_obtain_tensor(job->session, entry->session_tensor, &tensor, err));
        bind_kept_input(
            job, inf_service_find_port(graph->inputs, graph->input_count, entry->name, i), tensor);
    }
    for (uint32_t i = 0; i < infer->output_count; i++) {
        const struct inf_tensor_entry *entry = &infer->outputs[i];
        if (entry->session_tensor == NULL)
            continue;
        INF_TRY(inf_session_obtain_tensor(job->session, entry->session_tensor, &tensor, err));
        if (is_tensor_kept(job, tensor))
            return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                                   "output '%s': another one is to be kept as '%s' already",
                                   entry->name, entry->session_tensor);
        keep_output(job, inf_service_find_port(graph->outputs, graph->output_count, entry->name, i),
                    tensor);
    }
    return INF_OK;
}

// Binds the output and the input of a state pair to its session tensor. Does nothing if the model
// lacks the output or the input. Bit i of *taken is set if input i has a tensor already, which it
// keeps.
static void join_pair(struct inf_job *job, const struct inf_graph *graph, uint32_t tensor,
                      bool all_outputs, uint64_t *taken)
{
    const struct inf_session_tensor *pair = job->session->tensors[tensor];
    uint32_t input = inf_service_find_port(graph->inputs, graph->input_count, pair->name, 0);
    uint32_t output = inf_service_find_port(graph->outputs, graph->output_count, pair->output, 0);
    if (input == graph->input_count || output == graph->output_count)
        return;
    if ((*taken >> input & 1) == 0)
        bind_kept_input(job, input, tensor);
    *taken |= (uint64_t)1 << input;
    if (job->outputs[output].kept != NULL || is_tensor_kept(job, tensor))
        return;
    keep_output(job, output, tensor);
    if (all_outputs)
        job->outputs[output].returned = false;
}

enum inf_code inf_service_join_session(struct inf_job *job, const struct inf_infer_request *infer,
                                       const struct inf_request *request, uint64_t given,
                                       struct inf_fault *fault)
{
    const struct inf_graph *graph = inf_model_graph(job->served->model);
    struct inf_session *session = NULL;
    INF_TRY(inf_session_find(request->sessions, infer->session_id, &session, &fault->err));
    job->session = inf_session_ref(session);
    if (job->served->quota != NULL)
        INF_TRY(inf_session_bind_model(session, job->served->quota, &fault->err));
    INF_TRY(join_named_tensors(job, graph, infer, &fault->err));
    for (uint32_t i = 0; i < job->kept_input_count; i++)
        given |= (uint64_t)1 << job->kept_inputs[i].port;
    for (uint32_t i = 0; i < session->tensor_count; i++)
        if (session->tensors[i]->output != NULL)
            join_pair(job, graph, i, infer->output_count == 0, &given);
    return INF_OK;
}

// Returns the shape of the first value of an input. It is that of the model; a history is empty at
// first, and has one sequence.
static struct inf_shape first_shape(const struct inf_job *job, uint32_t input)
{
    const struct inf_graph *graph = inf_model_graph(job->served->model);
    const struct inf_history *history = inf_model_history(job->served->model);
    struct inf_shape shape = graph->values[graph->inputs[input].value].shape;
    if (history == NULL || history->outputs[input] == INF_HISTORY_NONE)
        return shape;
    shape.dims[history->axes[input]] = 0;
    if (shape.dims[0] == INF_DIM_UNKNOWN)
        shape.dims[0] = 1;
    return shape;
}

// Binds an input to the present value of a session tensor. Called when the earlier requests of the
// session are done.
static enum inf_code bind_session_input(struct inf_job *job, const struct inf_session_port *port,
                                        struct inf_fault *fault) INF_ON_LOOP
{
    const struct inf_graph *graph = inf_model_graph(job->served->model);
    const struct inf_port *input = &graph->inputs[port->port];
    const struct inf_value *value = &graph->values[input->value];
    struct inf_session_tensor *tensor = job->session->tensors[port->tensor];
    enum inf_code code = INF_OK;
    const struct inf_shape first = first_shape(job, port->port);
    if (!tensor->present)
        code =
            inf_session_init_tensor(job->session, port->tensor, value->dtype, &first, &fault->err);
    if (code != INF_OK) {
        inf_fault_tensor(fault, input->name, NULL, NULL);
        return inf_error_prefix(&fault->err, code, "input '%s'", input->name);
    }
    const struct inf_tensor_entry entry = {
        .name = input->name, .dtype = tensor->dtype, .shape = tensor->shape};
    INF_TRY(inf_service_check_input(&entry, value, fault));
    job->shapes[port->port] = tensor->shape;
    job->inputs[port->port] = tensor->now.data;
    job->string_bytes[port->port] = tensor->string_bytes;
    return INF_OK;
}

static enum inf_code bind_session_inputs(struct inf_job *job, struct inf_fault *fault) INF_ON_LOOP
{
    fault->phase = "queue";
    for (uint32_t i = 0; i < job->kept_input_count; i++)
        INF_TRY(bind_session_input(job, &job->kept_inputs[i], fault));
    inf_service_estimate_job(job);
    // A batch copies whole inputs; it does not know of buffers with unused rows.
    for (uint32_t i = 0; i < job->kept_input_count; i++)
        if (job->session->tensors[job->kept_inputs[i].tensor]->room != 0 && job->join_key == 0)
            job->rows = 0;
    return INF_OK;
}

// --- running the jobs of a session in order ---

enum inf_code inf_service_enter_session(struct inf_service *service, struct inf_job *job,
                                        struct inf_fault *fault)
{
    struct inf_session *session = job->session;
    job->session_next = NULL;
    inf_session_note_use(session);
    if (session->active == NULL) {
        INF_TRY(bind_session_inputs(job, fault));
        INF_TRY(inf_scheduler_submit(service->scheduler, job, fault));
        session->active = job;
        return INF_OK;
    }
    INF_TRY(inf_scheduler_hold(service->scheduler, job, fault));
    if (session->last != NULL)
        session->last->session_next = job;
    else
        session->first = job;
    session->last = job;
    return INF_OK;
}

static void start_next_job(struct inf_service *service, struct inf_session *session) INF_ON_LOOP
{
    struct inf_job *job = session->first;
    session->active = job;
    if (job == NULL)
        return;
    session->first = job->session_next;
    if (session->first == NULL)
        session->last = NULL;
    inf_fault_init(&job->result.fault);
    if (bind_session_inputs(job, &job->result.fault) == INF_OK)
        inf_scheduler_resume(service->scheduler, job);
    else
        inf_scheduler_fail(service->scheduler, job);
}

// Removes a waiting job from the queue of its session. Does nothing if the session never accepted
// the job.
static void unlink_job(struct inf_session *session, const struct inf_job *job)
{
    struct inf_job *previous = NULL;
    struct inf_job **link = &session->first;
    while (*link != NULL && *link != job) {
        previous = *link;
        link = &(*link)->session_next;
    }
    if (*link == NULL)
        return;
    *link = job->session_next;
    if (session->last == job)
        session->last = previous;
}

void inf_service_leave_session(struct inf_service *service, struct inf_job *job)
{
    struct inf_session *session = job->session;
    if (session->active == job) {
        inf_join_back_off_note(&session->join_back_off, job->result.join_outcome);
        for (uint32_t i = 0; i < job->kept_output_count; i++)
            inf_session_charge_next(session, job->kept_outputs[i].tensor);
        start_next_job(service, session);
    } else {
        unlink_job(session, job);
    }
    inf_session_unref(&job->session);
}

// Returns true if an output of a job is a history: input `input` with new rows behind it. If the
// output may also be a cache, its size decides: an output of the size of the input is a cache,
// unless the session tensor is a history already.
static bool is_history_output(const struct inf_job *job, const struct inf_session_port *port,
                              uint32_t input)
{
    const struct inf_history *history = inf_model_history(job->served->model);
    const struct inf_job_output *output = &job->outputs[port->port];
    if (history == NULL || history->outputs[input] != port->port || output->overwrites)
        return false;
    return history->caches[input] != port->port ||
           job->session->tensors[port->tensor]->is_history ||
           !inf_shape_equal(&output->shape, &job->shapes[input]);
}

enum inf_code inf_service_commit_session(struct inf_job *job, struct inf_fault *fault)
{
    struct inf_session_kept kept[INF_LIMIT_TENSORS];
    const struct inf_history *history = inf_model_history(job->served->model);
    for (uint32_t i = 0; i < job->kept_output_count; i++) {
        const struct inf_session_port *port = &job->kept_outputs[i];
        const struct inf_job_output *output = &job->outputs[port->port];
        kept[i] = (struct inf_session_kept){
            .index = port->tensor, .dtype = output->dtype, .shape = output->shape};
        if (output->dtype == INF_DTYPE_BYTES)
            kept[i].string_bytes = output->size_bytes;
        for (uint32_t k = 0; k < job->input_count; k++)
            if (is_history_output(job, port, k)) {
                kept[i].is_history = true;
                kept[i].rows_max =
                    inf_session_max_length(job->session, job->served->config.max_length);
                kept[i].axis = history->axes[k];
            }
        kept[i].lags = output->lags;
        if (!output->in_place || output->overwrites)
            continue;
        kept[i].room = job->history_room;
        kept[i].is_extended = !output->moved;
    }
    return inf_session_commit(job->session, kept, job->kept_output_count, &fault->err);
}
