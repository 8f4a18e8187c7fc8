// SPDX-License-Identifier: Apache-2.0
// Runs inferences on the link to the daemon and counts them. REST and gRPC share this code, so that
// limits and counters are the same for both.
#include "client/gateway/core/run.h"

#include <stdlib.h>
#include <time.h>

struct inf_run {
    struct inf_gateway *gateway;
    struct inf_link_call *call;
    inf_link_callback callback;
    void *context;
    uint64_t begin_ns;
};

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void handle_answer(void *context, inferd_result *result, const struct inferd_error *err)
{
    struct inf_run *run = context;
    struct inf_run ended = *run;
    struct inf_gateway_counters *counters = &run->gateway->counters;
    counters->duration_ns += now_ns() - run->begin_ns;
    if (result != NULL)
        counters->succeeded++;
    else
        counters->failed++;
    free(run);
    ended.callback(ended.context, result, err);
}

int inf_run_start(struct inf_gateway *gateway, struct inf_oip_request *request,
                  const char *other_id, inf_link_callback callback, void *context,
                  struct inf_run **run, struct inferd_error *err)
{
    struct inf_run *made = calloc(1, sizeof *made);
    inferd_request wanted;
    gateway->counters.started++;
    if (request->timeout_ms == 0 || request->timeout_ms > gateway->timeout_ms)
        request->timeout_ms = gateway->timeout_ms;
    inf_oip_request_build(request, other_id, &wanted);
    *err = (struct inferd_error){INFERD_RESOURCE_EXHAUSTED, "HOST_OOM", "no memory", 1000};
    if (made != NULL) {
        *made = (struct inf_run){
            .gateway = gateway, .callback = callback, .context = context, .begin_ns = now_ns()};
        if (inf_link_infer(gateway->link, &wanted, handle_answer, made, &made->call, err) ==
            INFERD_OK) {
            *run = made;
            return INFERD_OK;
        }
    }
    gateway->counters.failed++;
    free(made);
    return err->code;
}

void inf_run_cancel(struct inf_run *run)
{
    if (run == NULL)
        return;
    run->gateway->counters.cancelled++;
    inf_link_cancel(run->call);
    free(run);
}
