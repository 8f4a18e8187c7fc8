// SPDX-License-Identifier: Apache-2.0
// Texts that are compressed in slices: other clients are served meanwhile, and the memory that
// compressing needs is charged and given back.
#include <criterion/criterion.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "client/gateway/http/content_coding.h"
#include "client/gateway/rest/reply.h"

// Two slices and more in each turn of the loop, and many turns.
#define TEXT_BYTES  ((size_t)4 << 20)
#define LIMIT_BYTES ((size_t)16 << 20)

struct fixture {
    struct inf_gateway gateway;
    struct event_base *base;
    struct sockaddr_un address; // in the abstract namespace
    socklen_t address_size;
    size_t charged_max; // the most bytes that were charged when a small text was asked for
};

// Byte i of the large text, which compresses to about 60 %.
static uint8_t make_letter(size_t i)
{
    return (uint8_t)('a' + ((uint32_t)(i * i * 2654435761u) >> 16) % 26);
}

// Replies to "/large" with TEXT_BYTES of text, and to "/" with a short one.
static void handle_request(void *context, struct inf_http_exchange *exchange)
{
    struct fixture *fixture = context;
    struct inf_gateway *gateway = &fixture->gateway;
    if (exchange->head.path.size == 1) {
        size_t charged = inf_http_server_counters(gateway->server)->body_bytes;
        fixture->charged_max = INF_MAX(fixture->charged_max, charged);
        inf_rest_reply_json(gateway, exchange, strdup("{}"));
        return;
    }
    uint8_t *data = malloc(TEXT_BYTES);
    for (size_t i = 0; i < TEXT_BYTES; i++)
        data[i] = make_letter(i);
    const struct inf_rest_text text = {"text/plain", (char *)data, TEXT_BYTES, 0};
    inf_rest_reply_text(gateway, exchange, &text);
}

static bool accept_head(void *context, const struct inf_http_head *head,
                        struct inf_http_refusal *refusal)
{
    (void)context;
    (void)head;
    (void)refusal;
    return true;
}

static void open_server(struct fixture *fixture, size_t limit)
{
    const struct inf_http_limits limits = {
        .connections_max = 10,
        .body_bytes_max = limit,
        .total_body_bytes_max = limit,
        .head_ms = 60000,
        .body_ms = 60000,
        .idle_ms = 60000,
        .write_ms = 60000,
    };
    const struct inf_http_handler handler = {
        .check_head = accept_head, .handle = handle_request, .context = fixture};
    *fixture = (struct fixture){.base = event_base_new(), .address.sun_family = AF_UNIX};
    // The kernel chooses an abstract name for an address without a path.
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    fixture->address_size = sizeof fixture->address;
    cr_assert_eq(bind(fd, (struct sockaddr *)&fixture->address, sizeof(sa_family_t)), 0);
    cr_assert_eq(getsockname(fd, (struct sockaddr *)&fixture->address, &fixture->address_size), 0);
    cr_assert_eq(listen(fd, 10), 0);
    struct inf_gateway *gateway = &fixture->gateway;
    cr_assert_eq(inf_slices_create(&gateway->slices, fixture->base, NULL), INF_OK);
    cr_assert_eq(inf_http_server_create(&gateway->server, fixture->base, &limits, &handler, NULL),
                 INF_OK);
    cr_assert_eq(inf_http_server_add_listener(gateway->server, fd, false, NULL), INF_OK);
}

static void close_server(struct fixture *fixture)
{
    inf_http_server_destroy(&fixture->gateway.server);
    inf_slices_destroy(&fixture->gateway.slices);
    event_base_free(fixture->base);
}

static uint64_t count_responses(const struct fixture *fixture)
{
    return inf_http_server_counters(fixture->gateway.server)->responses[2];
}

// Connects and sends a request for `path` that accepts gzip. Returns the socket.
static int send_request(const struct fixture *fixture, const char *path)
{
    char text[128];
    int size = snprintf(text, sizeof text,
                        "GET %s HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip\r\n\r\n", path);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    cr_assert_eq(connect(fd, (const struct sockaddr *)&fixture->address, fixture->address_size), 0);
    cr_assert_eq(send(fd, text, (size_t)size, 0), size);
    return fd;
}

// Runs the loop until `count` responses have begun.
static void run_until(struct fixture *fixture, uint64_t count)
{
    while (count_responses(fixture) < count)
        event_base_loop(fixture->base, EVLOOP_ONCE);
}

// Receives a response while the loop runs. Returns the size of its body, whose bytes are at *body
// within `received`, and frees nothing.
static size_t receive_body(struct fixture *fixture, int fd, char *received, size_t room,
                           char **body)
{
    size_t size = 0, wanted = room;
    *body = NULL;
    while (size < wanted) {
        event_base_loop(fixture->base, EVLOOP_NONBLOCK);
        ssize_t more = recv(fd, received + size, room - size, MSG_DONTWAIT);
        size += more > 0 ? (size_t)more : 0;
        received[size] = '\0';
        char *end = strstr(received, "\r\n\r\n");
        if (*body != NULL || end == NULL)
            continue;
        *body = end + 4;
        const char *length = strstr(received, "Content-Length: ");
        cr_assert_not_null(length);
        wanted =
            (size_t)(*body - received) + strtoul(length + strlen("Content-Length: "), NULL, 10);
    }
    return size - (size_t)(*body - received);
}

Test(rest_reply, others_are_served_while_a_text_is_compressed)
{
    struct fixture fixture;
    open_server(&fixture, LIMIT_BYTES);
    int large = send_request(&fixture, "/large");
    event_base_loop(fixture.base, EVLOOP_ONCE); // accepts the connection
    event_base_loop(fixture.base, EVLOOP_ONCE); // begins to compress
    int small = send_request(&fixture, "/");
    run_until(&fixture, 1);
    cr_assert_eq(recv(small, &(char){0}, 1, MSG_DONTWAIT), 1, "the large text was sent first");
    cr_assert_geq(fixture.charged_max, INF_HTTP_DEFLATE_STATE_BYTES);

    // The client does not read the text, whose compressed form fits no socket, so its memory stays
    // charged; zlib's does not.
    run_until(&fixture, 2);
    const size_t charged = inf_http_server_counters(fixture.gateway.server)->body_bytes;
    cr_assert(charged > 0 && (charged & (charged - 1)) == 0, "%zu bytes", charged);

    char *received = malloc(2 * TEXT_BYTES), *body;
    size_t size = receive_body(&fixture, large, received, 2 * TEXT_BYTES - 1, &body);
    cr_assert_not_null(strstr(received, "Content-Encoding: gzip\r\n"));
    struct inf_http_coder coder = {0};
    bool done;
    cr_assert_eq(inf_http_inflate_begin(&coder, INF_HTTP_GZIP,
                                        (struct inf_span){(uint8_t *)body, size}, NULL),
                 INF_OK);
    cr_assert_eq(inf_http_code(&coder, SIZE_MAX, &done, NULL), INF_OK);
    cr_assert(done && coder.size == TEXT_BYTES, "%zu bytes", coder.size);
    for (size_t i = 0; i < TEXT_BYTES; i++)
        cr_assert_eq(coder.data[i], make_letter(i), "byte %zu", i);
    cr_assert_eq(inf_http_server_counters(fixture.gateway.server)->body_bytes, 0u);
    inf_http_coder_fini(&coder);
    free(received);
    close(small);
    close(large);
    close_server(&fixture);
}

// The limit allows zlib's memory and the first bytes of the result.
Test(rest_reply, a_text_whose_compressed_form_exceeds_the_limit_is_sent_as_it_is)
{
    struct fixture fixture;
    open_server(&fixture, INF_HTTP_DEFLATE_STATE_BYTES + 10000);
    int large = send_request(&fixture, "/large");
    char *received = malloc(TEXT_BYTES + 4096), *body;
    run_until(&fixture, 1);
    // The response has begun, but the client has not read it. Nothing is charged for compressing.
    cr_assert_eq(inf_http_server_counters(fixture.gateway.server)->body_bytes, 0u);
    cr_assert_eq(receive_body(&fixture, large, received, TEXT_BYTES + 4095, &body), TEXT_BYTES);
    cr_assert_null(strstr(received, "Content-Encoding"));
    cr_assert_eq(inf_http_server_counters(fixture.gateway.server)->body_bytes, 0u);
    free(received);
    close(large);
    close_server(&fixture);
}

Test(rest_reply, a_client_that_goes_away_frees_its_text)
{
    struct fixture fixture;
    open_server(&fixture, LIMIT_BYTES);
    int large = send_request(&fixture, "/large");
    while (inf_http_server_counters(fixture.gateway.server)->body_bytes == 0)
        event_base_loop(fixture.base, EVLOOP_ONCE);
    close(large);
    while (inf_http_server_counters(fixture.gateway.server)->connections_open > 0)
        event_base_loop(fixture.base, EVLOOP_ONCE);
    cr_assert_eq(inf_http_server_counters(fixture.gateway.server)->body_bytes, 0u);
    cr_assert_eq(count_responses(&fixture), 0u, "the text was compressed at once");
    close_server(&fixture);
}
