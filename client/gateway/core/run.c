// SPDX-License-Identifier: Apache-2.0
// Runs inferences on the link to the daemon and counts them. REST and gRPC share this code, so that
// limits and counters are the same for both.
#include "client/gateway/core/run.h"

#include <stdlib.h>

#include "client/gateway/http/clock.h"

struct inf_run {
    struct inf_gateway *gateway;
    struct inf_link_call *call;         // NULL: the request belongs to a sequence
    struct inf_sequence_call *sequence; // NULL: the request belongs to no sequence
    bool ended;                         // the callback was called; `call` is not valid any longer
    inferd_result *result;
    inf_run_callback callback;
    void *context;
    uint64_t begin_ns;
};

static void handle_answer(void *context, inferd_result *result, const struct inferd_error *err)
{
    struct inf_run *run = context;
    struct inf_gateway_counters *counters = &run->gateway->counters;
    run->ended = true;
    run->result = result;
    counters->duration_ns += inf_http_clock_ns() - run->begin_ns;
    if (result != NULL)
        counters->succeeded++;
    else
        counters->failed++;
    run->callback(run->context, result, err);
}

// Sends the request of a run: on the connection of its sequence if it names one, otherwise on the
// link that all such requests share.
static int send_run(struct inf_run *run, const struct inf_oip_request *request,
                    const inferd_request *wanted, struct inferd_error *err)
{
    struct inf_gateway *gateway = run->gateway;
    if (request->sequence[0] != '\0')
        return inf_sequences_infer(gateway->sequences, request, wanted, handle_answer, run,
                                   &run->sequence, err);
    return inf_link_infer(gateway->link, wanted, request->trace_parent, handle_answer, run,
                          &run->call, err);
}

int inf_run_start(struct inf_gateway *gateway, struct inf_oip_request *request,
                  const char *other_id, inf_run_callback callback, void *context,
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
        *made = (struct inf_run){.gateway = gateway,
                                 .callback = callback,
                                 .context = context,
                                 .begin_ns = inf_http_clock_ns()};
        if (send_run(made, request, &wanted, err) == INFERD_OK) {
            *run = made;
            return INFERD_OK;
        }
    }
    gateway->counters.failed++;
    free(made);
    return err->code;
}

void inf_run_free(struct inf_run *run)
{
    if (run == NULL)
        return;
    if (!run->ended) {
        run->gateway->counters.cancelled++;
        if (run->call != NULL)
            inf_link_cancel(run->call);
    }
    // The result lies in memory of the sequence's connection.
    inferd_result_free(run->result);
    if (run->sequence != NULL)
        inf_sequences_release(run->sequence);
    free(run);
}
