// SPDX-License-Identifier: Apache-2.0
// Requests that wait until their model is loaded. A request that its handler refuses with LOADING
// becomes a call, which keeps the request as it came. When a load ends, the requests that wait for
// the model are handed to their handlers again: they find the model, the reason why it did not
// load, or that it is gone. A request that is refused with LOADING once more waits further.
//
// Requests wait in a queue of their model. If the model is not known yet, because the repository is
// being read, or if it is being unloaded to make room, they wait for the end of any load.
#include "daemon/service/model_wait.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/clock.h"
#include "proto/wire/frame.h"

// Returns the earlier of two times on the clock, of which 0 is none.
static uint64_t choose_earlier(uint64_t a_ns, uint64_t b_ns)
{
    return a_ns == 0 || (b_ns != 0 && b_ns < a_ns) ? b_ns : a_ns;
}

// Returns the time until which a decoded request may wait; 0: no limit.
static uint64_t find_end_ns(const struct inf_service *service, uint16_t method, uint64_t now_ns)
{
    const struct inf_infer_request *infer = &service->request.infer_request;
    if (method != INF_METHOD_MODEL_INFER)
        return 0;
    return choose_earlier(inf_deadline_after(now_ns, infer->timeout_ns),
                          inf_deadline_after(now_ns, infer->queue_timeout_ns));
}

static bool enter_queue(struct inf_service *service,
                        struct inf_waiting_request *waiting) INF_ON_LOOP
{
    char name[INF_LIMIT_MODEL_NAME + 1];
    // Each load in `pending` ends with an event, which wakes requests; without one they would wait
    // for ever.
    return !service->draining && inf_model_store_pending(service->options.store) > 0 &&
           inf_model_waits_add(&service->model_waits, &waiting->wait,
                               inf_model_store_await(service->options.store, waiting->model, name));
}

bool inf_service_wait_for_model(struct inf_service *service, struct inf_request *request,
                                const struct inf_fault *fault, struct inf_answer *answer)
{
    struct inf_waiting_request *waiting = calloc(1, sizeof *waiting + request->meta.size);
    if (waiting == NULL)
        return false;
    if (request->meta.size > 0)
        memcpy(waiting->meta, request->meta.data, request->meta.size);
    memcpy(waiting->model, fault->model, sizeof waiting->model);
    waiting->call.kind = INF_CALL_WAIT;
    waiting->wait.client_count = request->waiting;
    waiting->wait.meta_bytes = (uint32_t)request->meta.size;
    waiting->request = *request;
    waiting->request.meta.data = waiting->meta;
    waiting->request.accepted_ns = inf_clock_ns();
    // Other replies may be due on the connection when the model is loaded, so the loop writes this
    // one.
    waiting->request.writer = NULL;
    waiting->deadline.at_ns = find_end_ns(service, request->method, waiting->request.accepted_ns);
    if (!enter_queue(service, waiting)) {
        free(waiting);
        return false;
    }
    inf_deadlines_add(service->wait_deadlines, &waiting->deadline);
    request->data = NULL;
    answer->call = &waiting->call;
    return true;
}

bool inf_service_wait_again(struct inf_service *service, struct inf_waiting_request *waiting)
{
    return enter_queue(service, waiting);
}

void inf_service_wake_waiting(struct inf_service *service, const char *name,
                              const struct inf_error *err)
{
    // A load that was cancelled has not failed: the model was unloaded, or the daemon ends.
    bool failed = err->code != INF_OK && err->code != INF_CANCELLED;
    if (service->model_waits.count == 0)
        return;
    if (name[0] != '\0')
        inf_model_waits_wake(&service->model_waits, name, failed ? err->text : "");
    inf_model_waits_wake(&service->model_waits, "", "");
}

void inf_service_release_waiting(struct inf_service *service, struct inf_waiting_request *waiting)
{
    inf_model_waits_remove(&service->model_waits, &waiting->wait);
    inf_deadlines_remove(service->wait_deadlines, &waiting->deadline);
    inf_pool_release(service->options.pool, waiting->request.data, waiting->request.data_bytes);
    free(waiting);
}

struct inf_call *inf_service_next_woken(struct inf_service *service)
{
    struct inf_model_wait *wait = inf_model_waits_next(&service->model_waits);
    if (wait == NULL)
        return NULL;
    return (struct inf_call *)((char *)wait - offsetof(struct inf_waiting_request, wait));
}

struct inf_call *inf_service_next_expired_wait(struct inf_service *service)
{
    struct inf_deadline *passed = inf_deadlines_next(service->wait_deadlines);
    if (passed == NULL)
        return NULL;
    return (struct inf_call *)((char *)passed - offsetof(struct inf_waiting_request, deadline));
}

int inf_service_wait_timer_fd(const struct inf_service *service)
{
    return inf_deadlines_fd(service->wait_deadlines);
}
