// SPDX-License-Identifier: Apache-2.0
// Whole connections: the HTTP/1.1 server with all paths of REST, compressed bodies, HTTP/2 frames,
// header fields and messages of gRPC. There is no daemon, so requests are decoded and then fail.
//
// The first byte of the input chooses the size of the pieces in which the rest arrives. After each
// input the gateway must hold no memory of bodies, and the end of the input must end the
// connection.
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <event2/event.h>

#include "client/gateway/core/gateway.h"
#include "client/gateway/core/sequences.h"
#include "client/gateway/grpc/session.h"
#include "client/gateway/grpc/stream.h"
#include "client/gateway/rest/routes.h"
#include "tests/tools/fuzz/fuzz.h"

#define PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0"
// Header fields of a gRPC request, encoded by HPACK: the method ModelInfer and the content type.
#define FIELDS                                                                                     \
    "\x83\x86\x44\x2a/inference.GRPCInferenceService/ModelInfer\x5f\x10"                           \
    "application/grpc"

const struct fuzz_seed fuzz_seeds[] = {
    FUZZ_SEED(
        "\0GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\nGET /v2 HTTP/1.1\r\nHost: x\r\n\r\n"),
    FUZZ_SEED("\7GET /v2/models/m/versions/1/ready HTTP/1.1\r\nHost: x\r\n\r\n"),
    FUZZ_SEED("\0POST /v2/repository/index HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"),
    FUZZ_SEED(
        "\0POST /v2/models/m/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 73\r\n\r\n"
        "{\"inputs\":[{\"name\":\"x\",\"shape\":[2],\"datatype\":\"FP32\",\"data\":[1,2]}]}     "),
    FUZZ_SEED("\3POST /v2/models/m/infer HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
              "Content-Encoding: gzip\r\n\r\n5\r\n\x1f\x8b\x08\0\0\r\n0\r\n\r\n"),
    FUZZ_SEED("\0" PREFACE "\0\0\x40\1\4\0\0\0\1" FIELDS "\0\0\x08\0\1\0\0\0\1\0\0\0\0\3\x0a\1m"),
    FUZZ_SEED("\5" PREFACE "\0\0\x40\1\4\0\0\0\1" FIELDS
              "\0\0\x22\0\1\0\0\0\1\0\0\0\0\x1d\x0a\1m\x2a\x0b\x0a\1x\x12\4FP32\x18\2\x3a\x08"
              "ABCDEFGH\0\0\4\3\0\0\0\0\1\0\0\0\x08"),
};
const size_t fuzz_seed_count = sizeof fuzz_seeds / sizeof fuzz_seeds[0];
const bool fuzz_has_positions = false;

struct fixture {
    struct inf_gateway gateway;
    struct event_base *base;
    struct sockaddr_un name; // address of the listening socket; the kernel chose the name
    socklen_t name_size;
};

static void start_gateway(struct fixture *fixture)
{
    struct inf_gateway *gateway = &fixture->gateway;
    const struct inf_http_limits limits = {.connections_max = 16,
                                           .body_bytes_max = 1 << 20,
                                           .total_body_bytes_max = 4 << 20,
                                           .head_ms = 10000,
                                           .body_ms = 10000,
                                           .idle_ms = 10000,
                                           .write_ms = 10000};
    const struct inf_http_handler handler = {.check_head = inf_rest_check_head,
                                             .place_body = inf_rest_place_body,
                                             .handle = inf_rest_handle,
                                             .takeover = inf_grpc_takeover,
                                             .context = gateway};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    fixture->base = event_base_new();
    fixture->name.sun_family = AF_UNIX;
    fixture->name_size = sizeof fixture->name;
    gateway->timeout_ms = 1; // no daemon answers an inference
    gateway->begin_call = inf_grpc_method_begin;
    gateway->handle_call = inf_grpc_method_handle;
    if (fd < 0 || bind(fd, (struct sockaddr *)&fixture->name, sizeof(sa_family_t)) != 0 ||
        listen(fd, 16) != 0 ||
        getsockname(fd, (struct sockaddr *)&fixture->name, &fixture->name_size) != 0 ||
        inf_link_create(&gateway->link, fixture->base, "/nonexistent", NULL) != INF_OK ||
        inf_question_queue_create(&gateway->questions, fixture->base, "/nonexistent", NULL) !=
            INF_OK ||
        inf_question_queue_create(&gateway->administration, fixture->base, "/nonexistent", NULL) !=
            INF_OK ||
        inf_sequences_create(&gateway->sequences, fixture->base, gateway->questions, 16, 1000,
                             NULL) != INF_OK ||
        inf_http_server_create(&gateway->server, fixture->base, &limits, &handler, NULL) !=
            INF_OK ||
        inf_http_server_add_listener(gateway->server, fd, true, NULL) != INF_OK)
        abort();
}

static int connect_client(const struct fixture *fixture)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&fixture->name, fixture->name_size) != 0)
        abort();
    return fd;
}

// Runs the loop until nothing happens, and drops what the gateway sends.
static void run_loop(struct event_base *base, int fd)
{
    uint8_t bytes[65536];
    for (int i = 0; i < 4; i++) {
        event_base_loop(base, EVLOOP_NONBLOCK);
        while (recv(fd, bytes, sizeof bytes, 0) > 0)
            ;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static struct fixture fixture; // one gateway for all inputs of this process
    if (fixture.base == NULL)
        start_gateway(&fixture);
    int fd = connect_client(&fixture);
    size_t step = size > 0 && bytes[0] != 0 ? bytes[0] : size + 1;
    for (size_t at = 1; at < size; at += step) {
        size_t count = size - at < step ? size - at : step;
        if (send(fd, bytes + at, count, MSG_NOSIGNAL) < 0)
            break;
        run_loop(fixture.base, fd);
    }
    run_loop(fixture.base, fd);
    close(fd);
    // Another thread answers some requests, and their connections may stay open until then.
    const struct inf_http_counters *counters = inf_http_server_counters(fixture.gateway.server);
    for (int i = 0; i < 1000 && counters->connections_open > 0; i++)
        event_base_loop(fixture.base, EVLOOP_NONBLOCK);
    if (counters->connections_open > 0 || counters->body_bytes > 0)
        abort();
    return 0;
}
