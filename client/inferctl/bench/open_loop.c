// SPDX-License-Identifier: Apache-2.0
// An open loop sends each request at its scheduled time. If the credit of all connections is used
// up, the loop waits for answers, and the latency of the delayed requests grows by that time.
#include "client/inferctl/bench/open_loop.h"

#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// One open loop (requests sent by a schedule), from its first request to its last answer.
struct loop {
    inferd_client *const *clients;
    size_t client_count, turn; // `turn` is the index of the client that sends the next request
    const inferd_request *request;
    struct pending *pending; // one element for each request
    double *total_ms, *refused_ms;
    struct open_loop_result *result;
    unsigned long wanted, sent, ended;
    double next_ms; // the time at which the next request is scheduled
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
    // The generator of random numbers is splitmix64. Its values are scaled to (0, 1).
    uint64_t value = *state += 0x9e3779b97f4a7c15u;
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
    value = (value ^ value >> 27) * 0x94d049bb133111ebu;
    value ^= value >> 31;
    return -log(((double)(value >> 11) + 1) / 9007199254740992.0) * 1e3 / rate;
}

// Counts a request that the daemon refused. Returns false if it failed in another way.
static bool handle_refusal(struct loop *loop, double meant_ms, const struct inferd_error *err)
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

static void on_answer(void *context, inferd_result *result, const struct inferd_error *err)
{
    const struct pending *pending = context;
    struct loop *loop = pending->loop;
    loop->ended++;
    if (result != NULL)
        loop->total_ms[loop->result->answered++] = now_ms() - pending->meant_ms;
    else if (!handle_refusal(loop, pending->meant_ms, err) && loop->result->err.code == 0)
        loop->result->err = *err;
    inferd_result_free(result);
}

// Sends one request on the first connection that has credit, beginning with the connection `turn`.
// Returns false if no connection has credit, or if sending fails.
static bool send_one(struct loop *loop, struct pending *pending)
{
    struct inferd_error err = {0};
    for (size_t i = 0; i < loop->client_count; i++) {
        inferd_client *client = loop->clients[loop->turn];
        loop->turn = (loop->turn + 1) % loop->client_count;
        if (inferd_infer_async(client, loop->request, on_answer, pending, NULL, &err) == 0)
            return true;
        if (err.code != INFERD_RESOURCE_EXHAUSTED)
            break;
    }
    if (err.code != INFERD_RESOURCE_EXHAUSTED || loop->sent == loop->ended)
        loop->result->err = err;
    return false;
}

// Sends the requests that are due. Returns false if the credit is used up, so that answers must be
// read first.
static bool send_due(struct loop *loop, const struct open_loop_options *options, uint64_t *state)
{
    while (loop->sent < loop->wanted && loop->next_ms <= now_ms() && loop->result->err.code == 0) {
        struct pending *pending = &loop->pending[loop->sent];
        *pending = (struct pending){.loop = loop, .meant_ms = loop->next_ms};
        if (!send_one(loop, pending))
            return false;
        loop->result->late_ms = fmax(loop->result->late_ms, now_ms() - loop->next_ms);
        loop->sent++;
        loop->next_ms += open_loop_gap_ms(options->rate, options->poisson, state);
    }
    return true;
}

// Waits until an answer arrives or until the next request is due, and handles the answers.
static void wait_and_process(struct loop *loop, bool for_credit)
{
    struct pollfd pollers[OPEN_LOOP_CLIENTS_MAX];
    double wait_ms = 1e3;
    for (size_t i = 0; i < loop->client_count; i++)
        pollers[i] = (struct pollfd){.fd = inferd_fd(loop->clients[i]),
                                     .events = inferd_events(loop->clients[i])};
    if (!for_credit && loop->sent < loop->wanted)
        wait_ms = fmin(fmax(loop->next_ms - now_ms(), 0), 1e3);
    const struct timespec wait = {.tv_sec = (time_t)(wait_ms / 1e3),
                                  .tv_nsec = (long)(fmod(wait_ms, 1e3) * 1e6)};
    struct inferd_error err;
    if (ppoll(pollers, loop->client_count, &wait, NULL) <= 0)
        return;
    for (size_t i = 0; i < loop->client_count; i++)
        if (pollers[i].revents != 0 && inferd_process(loop->clients[i], &err) != 0 &&
            loop->result->err.code == 0)
            loop->result->err = err;
}

int open_loop_run(inferd_client *const *clients, size_t client_count, const inferd_request *request,
                  const struct open_loop_options *options, double *total_ms,
                  struct open_loop_result *result)
{
    double started_ms = now_ms();
    uint64_t state = options->seed;
    *result = (struct open_loop_result){0};
    struct loop loop = {.clients = clients,
                        .client_count = client_count,
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
    // After a failure, wait for the answers to requests in flight, because their callbacks use
    // `loop`.
    struct inferd_error ignored;
    for (size_t i = 0; i < client_count && result->err.code != 0; i++)
        (void)inferd_wait(clients[i], &ignored);
    result->elapsed_ms = now_ms() - started_ms;
    free(loop.pending);
    return result->err.code;
}
