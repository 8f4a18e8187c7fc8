// SPDX-License-Identifier: Apache-2.0
// State that a model keeps between the requests of one client.
//
// The problem: the next request of a session needs the outputs of the previous one. Sending them to
// the client and back costs time, and a request that fails half-way must not leave half of the new
// state.
//
// The idea: each tensor has two buffers. Requests read `now`. A running request writes its new
// value into `next`. If the request succeeds, inf_session_commit() swaps both buffers for all
// tensors at once; if it fails, a later request overwrites `next`. Only one request of a session
// runs at a time, so no lock is needed: the worker owns `next` while a job runs, and the loop owns
// everything else.
//
//   request 1: reads h.now, writes h.next --commit: swap--> request 2: reads h.now (the new value)
//
// If a request writes a few rows over a tensor, the buffer that it replaces differs by these rows
// only. They are noted, and the next request copies them instead of the tensor (cache_rows.h).
//
// A history, to which each request appends rows, stays in `now`: a request writes its rows behind
// those in use, and inf_session_commit() makes them count. Rewinding counts fewer rows. A
// forked session shares the buffers of the other one; whichever is changed first gets a copy then.
//
// Both buffers are charged to the user and limited per session. The session itself and the names of
// its tensors are charged too, so that many empty sessions cost their user something. The worker
// charges the user for `next` before it allocates the memory. When the job has ended, the loop
// makes the present size of both buffers the charge.
#include "daemon/resource/session.h"

#include <assert.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "proto/core/span.h"

void inf_session_table_init(struct inf_session_table *table, struct inf_counters *counters,
                            struct inf_quota_user *user)
{
    *table = (struct inf_session_table){.counters = counters, .user = user};
}

void inf_session_table_fini(struct inf_session_table *table)
{
    while (table->sessions != NULL) {
        struct inf_session *session = table->sessions;
        table->sessions = session->next;
        session->next = NULL;
        inf_session_unref(&session);
    }
    table->count = 0;
}

// --- counting the references of a session, and finding its tensors ---

// Refunds memory to the user, and to the model that the session belongs to.
static void refund_bytes(struct inf_session *session, uint64_t bytes)
{
    inf_quota_refund_session(session->user, bytes);
    if (session->model != NULL)
        inf_model_quota_refund_session(session->model, bytes);
}

// Charges memory to the user, and to the model that the session belongs to.
static enum inf_code charge_bytes(struct inf_session *session, uint64_t bytes,
                                  struct inf_error *err)
{
    INF_TRY(inf_quota_charge_session(session->user, bytes, err));
    if (session->model == NULL)
        return INF_OK;
    enum inf_code code = inf_model_quota_charge_session(session->model, bytes, err);
    if (code != INF_OK)
        inf_quota_refund_session(session->user, bytes);
    return code;
}

enum inf_code inf_session_bind_model(struct inf_session *session, struct inf_model_quota *model,
                                     struct inf_error *err)
{
    if (session->model != NULL)
        return INF_OK;
    enum inf_code code =
        inf_model_quota_charge_session(model, session->charged_bytes + session->fixed_bytes, err);
    if (code != INF_OK)
        return inf_error_prefix(err, code, "session %" PRIu64, session->id);
    session->model = inf_model_quota_ref(model);
    return INF_OK;
}

static void free_session(struct inf_session *session) INF_ON_LOOP
{
    assert(session->reserved_bytes == 0 && "nothing is reserved after the last job");
    for (uint32_t i = 0; i < session->tensor_count; i++) {
        struct inf_session_tensor *tensor = session->tensors[i];
        free(tensor->name);
        free(tensor->output);
        inf_session_buffer_drop(&tensor->now);
        inf_session_buffer_drop(&tensor->next);
        free(tensor);
    }
    session->counters->sessions--;
    session->counters->session_bytes -= session->charged_bytes;
    refund_bytes(session, session->charged_bytes + session->fixed_bytes);
    inf_model_quota_unref(&session->model);
    inf_quota_unref(&session->user);
    free(session);
}

uint32_t inf_session_max_length(const struct inf_session *session, uint32_t rows_max)
{
    if (session->max_length == 0 || rows_max == 0)
        return INF_MAX(session->max_length, rows_max);
    return INF_MIN(session->max_length, rows_max);
}

void inf_session_note_use(struct inf_session *session)
{
    session->last_use = ++session->counters->session_uses;
}

struct inf_session *inf_session_ref(struct inf_session *session)
{
    session->references++;
    return session;
}

void inf_session_unref(struct inf_session **pointer)
{
    struct inf_session *session = *pointer;
    *pointer = NULL;
    if (session == NULL)
        return;
    assert(session->references > 0);
    if (--session->references == 0)
        free_session(session);
}

// Charges the user for memory that is freed with the session.
static enum inf_code charge_fixed(struct inf_session *session, uint64_t bytes,
                                  struct inf_error *err) INF_ON_LOOP
{
    INF_TRY(charge_bytes(session, bytes, err));
    session->fixed_bytes += bytes;
    return INF_OK;
}

enum inf_code inf_session_obtain_tensor(struct inf_session *session, const char *name,
                                        uint32_t *out_index, struct inf_error *err)
{
    for (uint32_t i = 0; i < session->tensor_count; i++) {
        *out_index = i;
        if (strcmp(session->tensors[i]->name, name) == 0)
            return INF_OK;
    }
    if (session->tensor_count == INF_LIMIT_SESSION_TENSORS)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_QUOTA_BYTES,
                               "session %" PRIu64 ": '%s' would be one more than its %u tensors",
                               session->id, name, INF_LIMIT_SESSION_TENSORS);
    struct inf_session_tensor *tensor = NULL;
    INF_TRY(charge_fixed(session, sizeof *tensor + strlen(name) + 1, err));
    tensor = calloc(1, sizeof *tensor);
    char *copy = strdup(name);
    if (tensor == NULL || copy == NULL) {
        free(tensor);
        free(copy);
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "session %" PRIu64 ": no memory for '%s'", session->id, name);
    }
    tensor->name = copy;
    *out_index = session->tensor_count++;
    session->tensors[*out_index] = tensor;
    return INF_OK;
}

static enum inf_code add_pair(struct inf_session *session, const struct inf_session_state *state,
                              struct inf_error *err) INF_ON_LOOP
{
    uint32_t index;
    INF_TRY(inf_session_obtain_tensor(session, state->input, &index, err));
    struct inf_session_tensor *tensor = session->tensors[index];
    tensor->shaped = state->shaped;
    tensor->first_shape = state->shape;
    INF_TRY(charge_fixed(session, strlen(state->output) + 1, err));
    tensor->output = strdup(state->output);
    if (tensor->output == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "session %" PRIu64 ": no memory", session->id);
    return INF_OK;
}

// --- charging and committing the values of tensors ---

// Charges the user for `more` bytes of a tensor, if the limit of the session allows them. The
// caller adds them to the sums of the session and of the tensor.
static enum inf_code charge_more(struct inf_session *session,
                                 const struct inf_session_tensor *tensor, uint64_t more,
                                 struct inf_error *err)
{
    uint64_t held = session->charged_bytes + session->reserved_bytes;
    if (!inf_range_ok(held, more, INF_LIMIT_SESSION_BYTES))
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_QUOTA_BYTES,
                               "session %" PRIu64 ": '%s' would bring it to %" PRIu64
                               " bytes, the limit is %" PRIu64,
                               session->id, tensor->name, held + more, INF_LIMIT_SESSION_BYTES);
    INF_TRY(charge_bytes(session, more, err));
    atomic_fetch_add_explicit(&session->counters->session_bytes, more, memory_order_relaxed);
    return INF_OK;
}

// Makes `bytes` the whole charge for a tensor, that is, for its buffers `now` and `next` together.
// Bytes that a worker has reserved are part of the previous charge; afterwards none are reserved.
static enum inf_code charge_tensor_for(struct inf_session *session,
                                       struct inf_session_tensor *tensor, uint64_t bytes,
                                       struct inf_error *err) INF_ON_LOOP
{
    uint64_t before = tensor->charged_bytes + tensor->reserved_bytes;
    if (bytes > before) {
        INF_TRY(charge_more(session, tensor, bytes - before, err));
    } else {
        refund_bytes(session, before - bytes);
        atomic_fetch_sub_explicit(&session->counters->session_bytes, before - bytes,
                                  memory_order_relaxed);
    }
    session->charged_bytes += bytes - tensor->charged_bytes;
    session->reserved_bytes -= tensor->reserved_bytes;
    tensor->charged_bytes = bytes;
    tensor->reserved_bytes = 0;
    return INF_OK;
}

// Makes the present size of both buffers the charge for a tensor.
static enum inf_code charge_tensor(struct inf_session *session, struct inf_session_tensor *tensor,
                                   struct inf_error *err) INF_ON_LOOP
{
    return charge_tensor_for(session, tensor,
                             (uint64_t)tensor->now.capacity + tensor->next.capacity, err);
}

enum inf_code inf_session_reserve_bytes(struct inf_session *session,
                                        struct inf_session_tensor *tensor, size_t size_bytes,
                                        struct inf_error *err)
{
    uint64_t bytes =
        (uint64_t)tensor->now.capacity + inf_session_buffer_capacity(&tensor->next, size_bytes);
    uint64_t before = tensor->charged_bytes + tensor->reserved_bytes;
    if (bytes <= before)
        return INF_OK;
    INF_TRY(charge_more(session, tensor, bytes - before, err));
    tensor->reserved_bytes += bytes - before;
    session->reserved_bytes += bytes - before;
    return INF_OK;
}

// Frees the buffer for the tensor's next value.
static void drop_next(struct inf_session *session, struct inf_session_tensor *tensor) INF_ON_LOOP
{
    inf_session_buffer_drop(&tensor->next);
    enum inf_code code = charge_tensor(session, tensor, NULL);
    assert(code == INF_OK && "less than before");
    (void)code;
}

void inf_session_charge_next(struct inf_session *session, uint32_t index)
{
    assert(index < session->tensor_count);
    struct inf_session_tensor *tensor = session->tensors[index];
    if (charge_tensor(session, tensor, NULL) != INF_OK)
        drop_next(session, tensor);
}

// A value for a tensor; data is NULL: zeros.
struct tensor_value {
    enum inf_dtype dtype;
    struct inf_shape shape;
    const void *data;
    size_t size_bytes;
};

static enum inf_code set_value(struct inf_session *session, struct inf_session_tensor *tensor,
                               const struct tensor_value *value, struct inf_error *err) INF_ON_LOOP
{
    uint64_t capacity = inf_session_buffer_capacity(&tensor->now, value->size_bytes);
    INF_TRY(charge_tensor_for(session, tensor, capacity + tensor->next.capacity, err));
    tensor->next.lags = false;
    enum inf_code code = inf_session_buffer_reserve(&tensor->now, value->size_bytes, NULL, err);
    if (code != INF_OK) {
        (void)!charge_tensor(session, tensor, NULL); // less than before
        return code;
    }
    if (value->data != NULL)
        memcpy(tensor->now.data, value->data, value->size_bytes);
    else
        memset(tensor->now.data, 0, value->size_bytes);
    tensor->present = true;
    tensor->dtype = value->dtype;
    tensor->shape = value->shape;
    tensor->string_bytes = value->dtype == INF_DTYPE_BYTES ? value->size_bytes : 0;
    return INF_OK;
}

// Finds the size of a tensor; for BYTES, that of empty strings with their lengths. Returns false if
// it is too large.
static bool find_least_bytes(enum inf_dtype dtype, const struct inf_shape *shape, size_t *size)
{
    return inf_shape_bytes(shape, dtype == INF_DTYPE_BYTES ? INF_DTYPE_U32 : dtype, size);
}

enum inf_code inf_session_init_tensor(struct inf_session *session, uint32_t index,
                                      enum inf_dtype dtype, const struct inf_shape *wanted,
                                      struct inf_error *err)
{
    assert(index < session->tensor_count && !session->tensors[index]->present);
    struct inf_session_tensor *tensor = session->tensors[index];
    const struct inf_shape *shape = tensor->shaped ? &tensor->first_shape : wanted;
    size_t size;
    if (tensor->output == NULL || !inf_shape_known(shape))
        return inf_fail_reason(err, INF_INVALID, INF_REASON_TENSOR_MISSING,
                               "session %" PRIu64 ": it holds no '%s' yet, and %s; send it once",
                               session->id, tensor->name,
                               tensor->output == NULL ? "nothing was kept there"
                                                      : "the shape of the first one is not known");
    if (!find_least_bytes(dtype, shape, &size))
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                               "session %" PRIu64 ": '%s' is too large", session->id, tensor->name);
    return set_value(session, tensor, &(struct tensor_value){dtype, *shape, NULL, size}, err);
}

enum inf_code inf_session_set_tensor(struct inf_session *session, uint32_t index,
                                     enum inf_dtype dtype, const struct inf_shape *shape,
                                     const void *data, size_t size_bytes, struct inf_error *err)
{
    assert(index < session->tensor_count);
    size_t least;
    if (!find_least_bytes(dtype, shape, &least) || size_bytes < least ||
        (dtype != INF_DTYPE_BYTES && size_bytes != least))
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                               "session %" PRIu64 ": '%s' has %zu bytes, which its shape does not",
                               session->id, session->tensors[index]->name, size_bytes);
    return set_value(session, session->tensors[index],
                     &(struct tensor_value){dtype, *shape, data, size_bytes}, err);
}

static enum inf_code check_kept(struct inf_session *session, const struct inf_session_kept *kept,
                                struct inf_error *err) INF_ON_LOOP
{
    struct inf_session_tensor *tensor = session->tensors[kept->index];
    if (kept->is_history && kept->rows_max > 0 && kept->shape.dims[kept->axis] > kept->rows_max)
        return inf_fail_reason(
            err, INF_RANGE, INF_REASON_BAD_PARAMETER,
            "session %" PRIu64 ": '%s' would have %" PRId64 " rows, and max_length is %u",
            session->id, tensor->name, kept->shape.dims[kept->axis], kept->rows_max);
    return charge_tensor(session, tensor, err);
}

enum inf_code inf_session_commit(struct inf_session *session, const struct inf_session_kept *kept,
                                 uint32_t count, struct inf_error *err)
{
    for (uint32_t i = 0; i < count; i++) {
        enum inf_code code = check_kept(session, &kept[i], err);
        if (code == INF_OK)
            continue;
        for (uint32_t k = 0; k < count; k++) {
            struct inf_session_tensor *tensor = session->tensors[kept[k].index];
            tensor->is_stale |= kept[k].is_extended;
            drop_next(session, tensor);
        }
        return code;
    }
    for (uint32_t i = 0; i < count; i++) {
        struct inf_session_tensor *tensor = session->tensors[kept[i].index];
        struct inf_session_buffer previous = tensor->now;
        if (!kept[i].is_extended) {
            tensor->now = tensor->next;
            tensor->next = previous;
        }
        tensor->next.lags = kept[i].lags;
        tensor->present = true;
        tensor->dtype = kept[i].dtype;
        tensor->shape = kept[i].shape;
        tensor->string_bytes = kept[i].string_bytes;
        tensor->room = kept[i].room;
        tensor->axis = kept[i].axis;
        tensor->is_history = kept[i].is_history;
        tensor->is_stale = tensor->shrinks = false;
        // A tensor that is extended in place needs no second buffer.
        if (tensor->room != 0)
            drop_next(session, tensor);
    }
    return INF_OK;
}

// --- rewinding and copying sessions ---

static enum inf_code check_idle(const struct inf_session *session, struct inf_error *err)
{
    if (session->active == NULL)
        return INF_OK;
    return inf_fail_reason(err, INF_PRECONDITION, INF_REASON_BAD_PARAMETER,
                           "session %" PRIu64 ": requests of it are not answered yet", session->id);
}

static enum inf_code check_length(const struct inf_session *session, uint64_t length,
                                  struct inf_error *err)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < session->tensor_count; i++) {
        const struct inf_session_tensor *tensor = session->tensors[i];
        if (!tensor->is_history || !tensor->present)
            continue;
        count++;
        if (length > (uint64_t)tensor->shape.dims[tensor->axis])
            return inf_fail_reason(
                err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                "session %" PRIu64 ": '%s' has %" PRId64 " rows, wanted %" PRIu64 " or more",
                session->id, tensor->name, tensor->shape.dims[tensor->axis], length);
    }
    if (count == 0)
        return inf_fail_reason(err, INF_PRECONDITION, INF_REASON_BAD_PARAMETER,
                               "session %" PRIu64 ": it keeps no history", session->id);
    return INF_OK;
}

enum inf_code inf_session_rewind(struct inf_session *session, uint64_t length, bool release,
                                 struct inf_error *err)
{
    INF_TRY(check_idle(session, err));
    INF_TRY(check_length(session, length, err));
    for (uint32_t i = 0; i < session->tensor_count; i++) {
        struct inf_session_tensor *tensor = session->tensors[i];
        if (!tensor->is_history || !tensor->present)
            continue;
        int64_t *rows = &tensor->shape.dims[tensor->axis];
        if (tensor->room == 0)
            tensor->room = (uint32_t)*rows;
        tensor->is_stale |= length < (uint64_t)*rows;
        tensor->shrinks |= release;
        *rows = (int64_t)length;
        if (!release || length > 0)
            continue;
        // The next request begins with an empty history.
        tensor->present = tensor->is_history = tensor->is_stale = tensor->shrinks = false;
        tensor->room = 0;
        inf_session_buffer_drop(&tensor->now);
        drop_next(session, tensor);
    }
    return INF_OK;
}

static enum inf_code copy_tensor(struct inf_session *session,
                                 const struct inf_session_tensor *tensor,
                                 struct inf_error *err) INF_ON_LOOP
{
    uint32_t index;
    const struct inf_session_state state = {.output = tensor->output,
                                            .input = tensor->name,
                                            .shaped = tensor->shaped,
                                            .shape = tensor->first_shape};
    if (tensor->output != NULL)
        INF_TRY(add_pair(session, &state, err));
    INF_TRY(inf_session_obtain_tensor(session, tensor->name, &index, err));
    struct inf_session_tensor *copy = session->tensors[index];
    copy->present = tensor->present;
    copy->dtype = tensor->dtype;
    copy->shape = tensor->shape;
    copy->string_bytes = tensor->string_bytes;
    copy->room = tensor->room;
    copy->axis = tensor->axis;
    copy->is_history = tensor->is_history;
    copy->is_stale = tensor->is_stale;
    copy->shrinks = tensor->shrinks;
    copy->now = inf_session_buffer_share(&tensor->now);
    return charge_tensor(session, copy, err);
}

// Gives a new session the pairs and tensors of another one.
static enum inf_code copy_session(struct inf_session_table *table, struct inf_session *session,
                                  uint64_t source_id, struct inf_error *err) INF_ON_LOOP
{
    struct inf_session *source;
    INF_TRY(inf_session_find(table, source_id, &source, err));
    INF_TRY(check_idle(source, err));
    session->max_length = inf_session_max_length(source, session->max_length);
    if (source->model != NULL)
        INF_TRY(inf_session_bind_model(session, source->model, err));
    for (uint32_t i = 0; i < source->tensor_count; i++)
        INF_TRY(copy_tensor(session, source->tensors[i], err));
    return INF_OK;
}

// --- opening and closing sessions ---

static enum inf_code create_session(struct inf_session_table *table,
                                    const struct inf_session_message *message,
                                    struct inf_session **out_session,
                                    struct inf_error *err) INF_ON_LOOP
{
    struct inf_session *session = calloc(1, sizeof *session);
    if (session == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "session %" PRIu64 ": no memory", message->session_id);
    session->id = message->session_id;
    session->references = 1;
    session->user = inf_quota_ref(table->user);
    session->counters = table->counters;
    session->max_length = message->max_length;
    session->counters->sessions++;
    inf_session_note_use(session);
    enum inf_code code = charge_fixed(session, sizeof *session, err);
    for (uint32_t i = 0; code == INF_OK && i < message->state_count; i++)
        code = add_pair(session, &message->states[i], err);
    if (code == INF_OK && message->fork_of != 0)
        code = copy_session(table, session, message->fork_of, err);
    if (code == INF_OK)
        *out_session = session;
    else
        inf_session_unref(&session);
    return code;
}

static struct inf_session **find_link(struct inf_session_table *table, uint64_t id)
{
    struct inf_session **link = &table->sessions;
    while (*link != NULL && (*link)->id != id)
        link = &(*link)->next;
    return link;
}

enum inf_code inf_session_open(struct inf_session_table *table,
                               const struct inf_session_message *message, struct inf_error *err)
{
    struct inf_session *session = NULL;
    if (*find_link(table, message->session_id) != NULL)
        return inf_fail_reason(err, INF_EXISTS, INF_REASON_SESSION_EXISTS,
                               "session %" PRIu64 ": there is one of this id", message->session_id);
    if (table->count >= INF_LIMIT_SESSIONS)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_QUOTA_REQUESTS,
                               "session %" PRIu64 ": the connection has %" PRIu32 " already",
                               message->session_id, table->count);
    INF_TRY(create_session(table, message, &session, err));
    session->next = table->sessions;
    table->sessions = session;
    table->count++;
    return INF_OK;
}

static enum inf_code refuse_unknown(const struct inf_session_table *table, uint64_t id,
                                    struct inf_error *err)
{
    return inf_fail_reason(err, INF_ABORTED, INF_REASON_SESSION_LOST,
                           "session %" PRIu64
                           ": this connection has none of this id%s; open it, "
                           "and begin the sequence again",
                           id, table->is_restored ? ", or a restart of the daemon lost it" : "");
}

enum inf_code inf_session_close(struct inf_session_table *table, uint64_t id, struct inf_error *err)
{
    struct inf_session **link = find_link(table, id);
    struct inf_session *session = *link;
    if (session == NULL)
        return refuse_unknown(table, id, err);
    *link = session->next;
    session->next = NULL;
    table->count--;
    inf_session_unref(&session);
    return INF_OK;
}

enum inf_code inf_session_find(struct inf_session_table *table, uint64_t id,
                               struct inf_session **out_session, struct inf_error *err)
{
    *out_session = *find_link(table, id);
    return *out_session != NULL ? INF_OK : refuse_unknown(table, id, err);
}
