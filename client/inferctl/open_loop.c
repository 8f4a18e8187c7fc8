// SPDX-License-Identifier: Apache-2.0
#include "client/inferctl/open_loop.h"

#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// One run.
struct loop {
    inferd_client *client;
    const inferd_request *request;
    struct pending *pending; // by request
    double *total_ms, *refused_ms;
    struct open_loop_result *result;
    unsigned long wanted, sent, ended;
    double next_ms; // when the next one is meant to be sent
};

struct pending {
    struct loop *loop;
    double meant_ms;
};

static double now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

double open_loop_gap_ms(double rate, bool poisson, uint64_t *state)
{
    if (!poisson)
        return 1e3 / rate;
    // splitmix64: a number in (0, 1].
    uint64_t value = *state += 0x9e3779b97f4a7c15u;
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
    value = (value ^ value >> 27) * 0x94d049bb133111ebu;
    value ^= value >> 31;
    return -log(((double)(value >> 11) + 1) / 9007199254740992.0) * 1e3 / rate;
}

// Counts a request that the daemon would not serve; false where it failed in another way.
static bool refused(struct loop *loop, double meant_ms, const struct inferd_error *err)
{
    if (err->code == INFERD_DEADLINE_EXCEEDED && strcmp(err->reason, "PREDICTED") != 0) {
        loop->result->expired++;
        return true;
    }
    if (err->code != INFERD_RESOURCE_EXHAUSTED && err->code != INFERD_DEADLINE_EXCEEDED)
        return false;
    if (loop->refused_ms != NULL)
        loop->refused_ms[loop->result->refused] = now_ms() - meant_ms;
    loop->result->refused++;
    return true;
}

static void answered(void *context, inferd_result *result, const struct inferd_error *err)
{
    const struct pending *pending = context;
    struct loop *loop = pending->loop;
    loop->ended++;
    if (result != NULL)
        loop->total_ms[loop->result->answered++] = now_ms() - pending->meant_ms;
    else if (!refused(loop, pending->meant_ms, err) && loop->result->err.code == 0)
        loop->result->err = *err;
    inferd_result_free(result);
}

// Sends what is due; false where the credit is used up, so that answers have to be read first.
static bool send_due(struct loop *loop, const struct open_loop_options *options, uint64_t *state)
{
    while (loop->sent < loop->wanted && loop->next_ms <= now_ms() && loop->result->err.code == 0) {
        struct pending *pending = &loop->pending[loop->sent];
        struct inferd_error err;
        *pending = (struct pending){.loop = loop, .meant_ms = loop->next_ms};
        if (inferd_infer_async(loop->client, loop->request, answered, pending, NULL, &err) != 0) {
            if (err.code == INFERD_RESOURCE_EXHAUSTED && loop->sent > loop->ended)
                return false;
            loop->result->err = err;
            break;
        }
        loop->result->late_ms = fmax(loop->result->late_ms, now_ms() - loop->next_ms);
        loop->sent++;
        loop->next_ms += open_loop_gap_ms(options->rate, options->poisson, state);
    }
    return true;
}

// Waits for answers, or for the time of the next request.
static void wait_and_process(struct loop *loop, bool for_credit)
{
    struct pollfd poller = {.fd = inferd_fd(loop->client), .events = inferd_events(loop->client)};
    double wait_ms = 1e3;
    if (!for_credit && loop->sent < loop->wanted)
        wait_ms = fmin(fmax(loop->next_ms - now_ms(), 0), 1e3);
    const struct timespec wait = {.tv_sec = (time_t)(wait_ms / 1e3),
                                  .tv_nsec = (long)(fmod(wait_ms, 1e3) * 1e6)};
    struct inferd_error err;
    if (ppoll(&poller, 1, &wait, NULL) > 0 && inferd_process(loop->client, &err) != 0 &&
        loop->result->err.code == 0)
        loop->result->err = err;
}

int open_loop_run(inferd_client *client, const inferd_request *request,
                  const struct open_loop_options *options, double *total_ms,
                  struct open_loop_result *result)
{
    double started_ms = now_ms();
    uint64_t state = options->seed;
    *result = (struct open_loop_result){0};
    struct loop loop = {.client = client,
                        .request = request,
                        .pending = calloc(options->requests, sizeof(struct pending)),
                        .total_ms = total_ms,
                        .refused_ms = options->refused_ms,
                        .result = result,
                        .wanted = options->requests,
                        .next_ms = started_ms};
    if (loop.pending == NULL)
        result->err = (struct inferd_error){.code = INFERD_RESOURCE_EXHAUSTED,
                                            .text = "no memory for so many requests"};
    while (result->err.code == 0 && loop.ended < loop.wanted)
        wait_and_process(&loop, !send_due(&loop, options, &state));
    // After a failure, answers that still come must find their context.
    struct inferd_error ignored;
    if (result->err.code != 0 && loop.sent > loop.ended)
        (void)inferd_wait(client, &ignored);
    result->elapsed_ms = now_ms() - started_ms;
    free(loop.pending);
    return result->err.code;
}
