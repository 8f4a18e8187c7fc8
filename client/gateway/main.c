// SPDX-License-Identifier: Apache-2.0
// inferd-gateway: serves the Open Inference Protocol over HTTP and gRPC, and passes requests to the
// daemon.
//
// The gateway is a separate process, so that a fault in its HTTP parser does not expose the models.
// One event loop serves all clients. Two more threads ask the daemon questions and wait for the
// answers: one on the data socket (models and metrics), the other on the admin socket (loads and
// unloads).
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <event2/event.h>

#include "client/gateway/core/gateway.h"
#include "client/gateway/grpc/session.h"
#include "client/gateway/grpc/stream.h"
#include "client/gateway/listen.h"
#include "client/gateway/options.h"
#include "client/gateway/rest/routes.h"
#include "proto/core/fd_table.h"

// Maximum time that the gateway waits for requests in flight after SIGTERM or SIGINT, in seconds.
#define DRAIN_S 10

struct process {
    struct inf_gateway gateway;
    struct event_base *base;
    struct event *terminate, *interrupt, *check;
    unsigned checks_left;
};

static enum inf_code add_listener(void *context, int fd, bool admin, struct inf_error *err)
{
    struct process *process = context;
    return inf_http_server_add_listener(process->gateway.server, fd, admin, err);
}

// Ends the event loop if no connection is left, or if DRAIN_S seconds have passed since the signal.
static void check_drained(evutil_socket_t fd, short events, void *context)
{
    (void)fd;
    (void)events;
    struct process *process = context;
    if (inf_http_server_counters(process->gateway.server)->connections_open == 0 ||
        process->checks_left-- == 0)
        event_base_loopbreak(process->base);
}

static void handle_signal(evutil_socket_t fd, short events, void *context)
{
    (void)fd;
    (void)events;
    struct process *process = context;
    inf_gateway_notify("STOPPING=1");
    inf_http_server_drain(process->gateway.server);
    process->checks_left = DRAIN_S * 20;
    struct timeval time = {.tv_usec = 50000};
    event_add(process->check, &time);
}

static enum inf_code open_listeners(struct process *process,
                                    const struct inf_gateway_options *options,
                                    struct inf_error *err)
{
    unsigned passed = 0;
    INF_TRY(inf_gateway_listen_passed(add_listener, process, &passed, err));
    for (unsigned i = 0; i < options->address_count; i++) {
        int fd;
        INF_TRY(inf_gateway_listen(options->addresses[i].text, &fd, err));
        INF_TRY(add_listener(process, fd, options->addresses[i].admin, err));
    }
    if (passed + options->address_count == 0)
        return inf_fail(err, INF_INVALID,
                        "no address to listen on: --listen, or a socket of systemd, is wanted");
    return INF_OK;
}

static enum inf_code init_process(struct process *process,
                                  const struct inf_gateway_options *options, struct inf_error *err)
{
    struct inf_gateway *gateway = &process->gateway;
    gateway->timeout_ms = options->timeout_ms;
    gateway->begin_call = inf_grpc_method_begin;
    gateway->handle_call = inf_grpc_method_handle;
    process->base = event_base_new();
    if (process->base == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for an event loop");
    if (options->tokens != NULL)
        INF_TRY(inf_tokens_load(&gateway->tokens, options->tokens, err));
    const struct inf_http_handler handler = {.check_head = inf_rest_check_head,
                                             .place_body = inf_rest_place_body,
                                             .handle = inf_rest_handle,
                                             .takeover = inf_grpc_takeover,
                                             .context = gateway};
    process->terminate = evsignal_new(process->base, SIGTERM, handle_signal, process);
    process->interrupt = evsignal_new(process->base, SIGINT, handle_signal, process);
    process->check = event_new(process->base, -1, EV_PERSIST, check_drained, process);
    if (process->terminate == NULL || process->interrupt == NULL || process->check == NULL ||
        event_add(process->terminate, NULL) != 0 || event_add(process->interrupt, NULL) != 0)
        return inf_fail(err, INF_EXHAUSTED, "no memory for events");
    INF_TRY(inf_slices_create(&gateway->slices, process->base, err));
    INF_TRY(inf_link_create(&gateway->link, process->base, options->socket, err));
    INF_TRY(inf_question_queue_create(&gateway->questions, process->base, options->socket, err));
    INF_TRY(inf_question_queue_create(&gateway->administration, process->base,
                                      options->admin_socket, err));
    INF_TRY(inf_sequences_create(&gateway->sequences, process->base, gateway->questions,
                                 options->sequences_max, options->sequence_idle_ms, err));
    INF_TRY(
        inf_http_server_create(&gateway->server, process->base, &options->limits, &handler, err));
    return open_listeners(process, options, err);
}

static void free_event(struct event *event)
{
    if (event != NULL)
        event_free(event);
}

static void fini_process(struct process *process)
{
    struct inf_gateway *gateway = &process->gateway;
    inf_http_server_destroy(&gateway->server);
    inf_sequences_destroy(&gateway->sequences);
    inf_question_queue_destroy(&gateway->questions);
    inf_question_queue_destroy(&gateway->administration);
    inf_link_destroy(&gateway->link);
    inf_slices_destroy(&gateway->slices);
    inf_tokens_free(gateway->tokens);
    free_event(process->terminate);
    free_event(process->interrupt);
    free_event(process->check);
    if (process->base != NULL)
        event_base_free(process->base);
}

int main(int argc, char **argv)
{
    struct inf_gateway_options options;
    int status = inf_gateway_options_parse(&options, argc, argv);
    if (status >= 0)
        return status;
    signal(SIGPIPE, SIG_IGN);
    inf_fd_table_reserve();
    struct process process = {0};
    struct inf_error err;
    status = 0;
    if (init_process(&process, &options, &err) == INF_OK) {
        inf_gateway_notify("READY=1");
        (void)event_base_dispatch(process.base);
    } else {
        fprintf(stderr, "inferd-gateway: %s\n", err.text);
        status = 1;
    }
    fini_process(&process);
    return status;
}
