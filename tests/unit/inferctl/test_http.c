// SPDX-License-Identifier: Apache-2.0
// The requests and answers of `inferctl metrics --http`, over a pair of sockets. Values of Accept
// are those of Prometheus 2.42, curl and browsers, or follow RFC 9110.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/inferctl/metrics/http.h"

Test(http, chooses_the_format_that_the_client_likes_best)
{
    static const struct {
        const char *accept;
        enum http_format format;
    } rows[] = {
        {"application/openmetrics-text;version=1.0.0,"
         "application/openmetrics-text;version=0.0.1;q=0.75,"
         "text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
         HTTP_FORMAT_OPENMETRICS},
        {"application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;"
         "encoding=delimited,application/openmetrics-text;version=1.0.0;q=0.8,"
         "text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
         HTTP_FORMAT_PROTOBUF},
        {"*/*", HTTP_FORMAT_TEXT},
        {"", HTTP_FORMAT_TEXT},
        {"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", HTTP_FORMAT_TEXT},
        {"text/plain;q=0.5, application/openmetrics-text ; q=0.6", HTTP_FORMAT_OPENMETRICS},
        {"text/plain;q=0.6, application/openmetrics-text;q=0.6", HTTP_FORMAT_TEXT},
        {"Application/OpenMetrics-Text", HTTP_FORMAT_OPENMETRICS},
        // Not acceptable: a version that is not served, a quality that is 0 or malformed, another
        // encoding of protobuf.
        {"application/openmetrics-text;version=0.0.1,text/plain;q=0.1", HTTP_FORMAT_TEXT},
        {"application/openmetrics-text;q=0,text/plain;q=0.1", HTTP_FORMAT_TEXT},
        {"application/openmetrics-text;q=x", HTTP_FORMAT_TEXT},
        {"application/openmetrics-text;q=1.5", HTTP_FORMAT_TEXT},
        {"application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=text",
         HTTP_FORMAT_TEXT},
        {"application/vnd.google.protobuf", HTTP_FORMAT_TEXT},
        {"application/vnd.google.protobuf;encoding=delimited,application/openmetrics-text;q=0.001",
         HTTP_FORMAT_OPENMETRICS},
        {",,;;q=,=", HTTP_FORMAT_TEXT},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        cr_expect_eq(http_choose_format(rows[i].accept), rows[i].format, "%s", rows[i].accept);
}

// Sends `text` to http_read() over a pair of sockets, and ends the sending direction if `end` is
// true. Returns the request that http_read() has read.
static struct http_request read_request(const char *text, size_t size, bool end)
{
    int fds[2];
    struct http_request request;
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    cr_assert_eq(write(fds[0], text, size), (ssize_t)size);
    if (end)
        shutdown(fds[0], SHUT_WR);
    http_read(fds[1], 50, &request);
    close(fds[0]);
    close(fds[1]);
    return request;
}

static int status_of(const char *text)
{
    return read_request(text, strlen(text), false).status;
}

Test(http, accepts_get_and_head_of_the_metrics_only)
{
    cr_expect_eq(status_of("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"), 200);
    cr_expect_eq(status_of("GET /metrics?name[]=x HTTP/1.0\r\n\r\n"), 200);
    cr_expect_eq(status_of("GET / HTTP/1.1\r\n\r\n"), 404);
    cr_expect_eq(status_of("GET /metrics/ HTTP/1.1\r\n\r\n"), 404);
    cr_expect_eq(status_of("POST /metrics HTTP/1.1\r\n\r\n"), 405);
    cr_expect_eq(status_of("GET /metrics HTTP/2.0\r\n\r\n"), 505);
    cr_expect_eq(status_of("GET /metrics\r\n\r\n"), 400);
    cr_expect_eq(status_of("GET  /metrics HTTP/1.1 x\r\n\r\n"), 400);
    cr_expect_eq(status_of("get /metrics HTTP/1.1\r\n\r\n"), 400);
    cr_expect_eq(status_of("\r\n\r\n"), 400);
    cr_expect_eq(status_of("\x16\x03\x01\r\n\r\n"), 400, "TLS");
    const char head[] = "HEAD /metrics HTTP/1.1\r\n\r\n";
    struct http_request request = read_request(head, strlen(head), false);
    cr_expect_eq(request.status, 200);
    cr_expect(request.head_only);
}

Test(http, ends_requests_that_are_too_long_or_never_end)
{
    static char text[HTTP_HEAD_MAX + 100];
    cr_expect_eq(status_of("GET /metrics HTTP/1.1\r\n"), 408, "it waited for the rest");
    cr_expect_eq(read_request("", 0, true).status, 0, "a client that only connects");
    cr_expect_eq(read_request("GET /met", 8, true).status, 400);
    cr_expect_eq(read_request("GET /metrics HTTP/1.1\r\nA: \0\r\n\r\n", 31, false).status, 400);
    int length = snprintf(text, sizeof text, "GET /metrics HTTP/1.1\r\nX: ");
    memset(text + length, 'x', sizeof text - 1 - (size_t)length);
    cr_expect_eq(read_request(text, HTTP_HEAD_MAX, false).status, 431);
    // Make the head end at HTTP_HEAD_MAX bytes, the longest head that is allowed.
    memcpy(text + HTTP_HEAD_MAX - 4, "\r\n\r\n", 4);
    cr_expect_eq(read_request(text, HTTP_HEAD_MAX, false).status, 200);
}

Test(http, collects_all_fields_called_accept)
{
    const char text[] =
        "GET /metrics HTTP/1.1\r\nX-Accept: text/plain\r\nACCEPT: text/plain;q=0.1\r\n"
        "Host: a\r\naccept:application/openmetrics-text;q=0.2\r\n\r\n";
    cr_expect_eq(read_request(text, strlen(text), false).format, HTTP_FORMAT_OPENMETRICS);
}

Test(http, writes_the_length_and_leaves_out_the_body_of_head)
{
    static const char expected[] =
        "HTTP/1.1 200 OK\r\nContent-Type: a/b\r\nContent-Length: 3\r\n"
        "Connection: close\r\n\r\n";
    for (int head_only = 0; head_only < 2; head_only++) {
        int fds[2];
        char text[512];
        const struct http_request request = {.status = 200, .head_only = head_only != 0};
        cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
        cr_expect(http_write(fds[1], 1000, &request, "a/b", "xyz", 3));
        close(fds[1]);
        ssize_t size = read(fds[0], text, sizeof text - 1);
        text[size > 0 ? size : 0] = '\0';
        cr_expect_eq(strncmp(text, expected, strlen(expected)), 0, "%s", text);
        cr_expect_str_eq(text + strlen(expected), head_only != 0 ? "" : "xyz");
        close(fds[0]);
    }
}

Test(http, does_not_wait_for_ever_for_a_client_that_does_not_read)
{
    static char body[4 << 20];
    int fds[2];
    const struct http_request request = {.status = 200};
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    cr_expect_not(http_write(fds[1], 50, &request, "a/b", body, sizeof body));
    close(fds[0]);
    cr_expect_not(http_write(fds[1], 1000, &request, "a/b", body, sizeof body), "it is gone");
    close(fds[1]);
}
