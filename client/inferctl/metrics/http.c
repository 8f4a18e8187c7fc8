// SPDX-License-Identifier: Apache-2.0
// One request and one answer of HTTP/1.1. The connection ends with the answer, so there is no body
// to skip and nothing to keep. Every wait has a deadline, and the head has a limit of size.
#include "client/inferctl/metrics/http.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static int64_t read_clock_ms(void)
{
    struct timespec time = {0};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

// Waits for `events` until the time `end_ms`. Returns false if that time came first.
static bool wait_for(int fd, short events, int64_t end_ms)
{
    int64_t rest_ms = end_ms - read_clock_ms();
    struct pollfd poller = {.fd = fd, .events = events};
    int ready = rest_ms > 0 ? poll(&poller, 1, (int)rest_ms) : 0;
    return ready > 0 || (ready < 0 && errno == EINTR);
}

// --- choosing a format ---

#define SPACE " \t"

// Takes the next element of a list; `separator` ends each element. Returns its length without the
// spaces around it; *list is then behind the separator.
static size_t next_element(const char **list, char separator, const char **element)
{
    *element = *list + strspn(*list, SPACE);
    size_t length = strcspn(*element, (const char[]){separator, '\0'});
    *list = *element + length;
    *list += **list == separator;
    while (length > 0 && strchr(SPACE, (*element)[length - 1]) != NULL)
        length--;
    return length;
}

static bool is_text(const char *element, size_t length, const char *text)
{
    return length == strlen(text) && strncasecmp(element, text, length) == 0;
}

// Returns a quality such as "0.75" in thousandths; 0 if it is not one.
static int parse_quality(const char *text, size_t length)
{
    int quality = 0;
    int weight = 1000;
    for (size_t i = 0; i < length && i < 5; i++) {
        if (i == 1 && text[i] == '.')
            continue;
        if (text[i] < '0' || text[i] > '9')
            return 0;
        quality += (text[i] - '0') * weight;
        weight /= 10;
    }
    return quality <= 1000 ? quality : 0;
}

// One element of Accept, such as "text/plain;version=0.0.4;q=0.5".
struct range {
    const char *type;
    size_t type_length;
    int quality;       // in thousandths
    bool version_fits; // its version is absent, or is one that is served
    bool delimited;    // it has the two parameters of Prometheus' protobuf format
};

static void parse_range(const char *text, size_t length, struct range *range)
{
    char copy[256];
    const char *rest = copy, *part;
    const char *encoding = "encoding=delimited", *proto = "proto=io.prometheus.client.MetricFamily";
    int found = 0;
    *range = (struct range){.quality = 1000, .version_fits = true};
    if (length >= sizeof copy)
        length = 0;
    memcpy(copy, text, length);
    copy[length] = '\0';
    range->type = text;
    range->type_length = next_element(&rest, ';', &part);
    while (*rest != '\0') {
        size_t size = next_element(&rest, ';', &part);
        if (size > 2 && strncasecmp(part, "q=", 2) == 0)
            range->quality = parse_quality(part + 2, size - 2);
        else if (size > 8 && strncasecmp(part, "version=", 8) == 0)
            range->version_fits =
                is_text(part + 8, size - 8, "1.0.0") || is_text(part + 8, size - 8, "0.0.4");
        found += is_text(part, size, encoding) || is_text(part, size, proto);
    }
    range->delimited = found == 2;
}

// Returns true and the format if a range of media types contains a format that is served.
static bool match_range(const struct range *range, enum http_format *format)
{
    static const struct {
        const char *type;
        enum http_format format;
    } types[] = {{"application/openmetrics-text", HTTP_FORMAT_OPENMETRICS},
                 {"application/vnd.google.protobuf", HTTP_FORMAT_PROTOBUF},
                 {"text/plain", HTTP_FORMAT_TEXT},
                 {"text/*", HTTP_FORMAT_TEXT},
                 {"*/*", HTTP_FORMAT_TEXT}};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (is_text(range->type, range->type_length, types[i].type)) {
            *format = types[i].format;
            return range->version_fits &&
                   (types[i].format != HTTP_FORMAT_PROTOBUF || range->delimited);
        }
    return false;
}

enum http_format http_choose_format(const char *accept)
{
    enum http_format best = HTTP_FORMAT_TEXT;
    int most = 0;
    while (*accept != '\0') {
        const char *element;
        struct range range;
        enum http_format format;
        size_t length = next_element(&accept, ',', &element);
        parse_range(element, length, &range);
        if (range.quality > most && match_range(&range, &format)) {
            best = format;
            most = range.quality;
        }
    }
    return best;
}

// --- reading a request ---

// Reads until the empty line that ends the head. Returns 200, or the status of the answer.
static int read_head(int fd, int timeout_ms, char head[HTTP_HEAD_MAX + 1])
{
    const int64_t end_ms = read_clock_ms() + timeout_ms;
    size_t size = 0;
    head[0] = '\0';
    while (strstr(head, "\r\n\r\n") == NULL) {
        if (size == HTTP_HEAD_MAX)
            return 431;
        if (!wait_for(fd, POLLIN, end_ms))
            return 408;
        ssize_t got = read(fd, head + size, HTTP_HEAD_MAX - size);
        if (got < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (got <= 0)
            return size > 0 ? 400 : 0;
        if (memchr(head + size, '\0', (size_t)got) != NULL)
            return 400;
        size += (size_t)got;
        head[size] = '\0';
    }
    return 200;
}

// Checks the request line, and returns the status of the answer.
static int check_line(const char *line, bool *head_only)
{
    char method[16], target[256], version[16];
    int length = 0;
    if (sscanf(line, "%15[A-Z] %255[!-~] %15[A-Z0-9./]%n", method, target, version, &length) != 3 ||
        strncmp(line + length, "\r\n", 2) != 0)
        return 400;
    if (strcmp(version, "HTTP/1.1") != 0 && strcmp(version, "HTTP/1.0") != 0)
        return 505;
    *head_only = strcmp(method, "HEAD") == 0;
    if (!*head_only && strcmp(method, "GET") != 0)
        return 405;
    target[strcspn(target, "?")] = '\0';
    return strcmp(target, "/metrics") == 0 ? 200 : 404;
}

// Copies the values of all fields Accept, separated by commas, to `accept`.
static void collect_accept(const char *head, char accept[HTTP_HEAD_MAX + 1])
{
    static const char name[] = "accept:";
    size_t used = 0;
    accept[0] = '\0';
    for (const char *line = head; (line = strstr(line, "\r\n")) != NULL;) {
        line += 2;
        if (strncasecmp(line, name, sizeof name - 1) != 0)
            continue;
        const char *value = line + sizeof name - 1;
        used += (size_t)snprintf(accept + used, HTTP_HEAD_MAX + 1 - used, "%.*s,",
                                 (int)strcspn(value, "\r\n"), value);
    }
}

void http_read(int fd, int timeout_ms, struct http_request *request)
{
    char head[HTTP_HEAD_MAX + 1], accept[HTTP_HEAD_MAX + 1];
    *request = (struct http_request){.status = read_head(fd, timeout_ms, head)};
    if (request->status != 200)
        return;
    request->status = check_line(head, &request->head_only);
    collect_accept(head, accept);
    request->format = http_choose_format(accept);
}

// --- writing an answer ---

static const char *name_status(int status)
{
    static const struct {
        int status;
        const char *name;
    } names[] = {{200, "OK"},
                 {400, "Bad Request"},
                 {404, "Not Found"},
                 {405, "Method Not Allowed"},
                 {408, "Request Timeout"},
                 {431, "Request Header Fields Too Large"},
                 {503, "Service Unavailable"},
                 {505, "HTTP Version Not Supported"}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (names[i].status == status)
            return names[i].name;
    return "Error";
}

static bool write_all(int fd, const char *bytes, size_t size, int64_t end_ms)
{
    while (size > 0) {
        if (!wait_for(fd, POLLOUT, end_ms))
            return false;
        // Without MSG_DONTWAIT a large write would block until the client has taken all of it.
        ssize_t written = send(fd, bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (written < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (written < 0)
            return false;
        bytes += written;
        size -= (size_t)written;
    }
    return true;
}

bool http_write(int fd, int timeout_ms, const struct http_request *request, const char *media_type,
                const char *body, size_t size)
{
    char head[512];
    const int64_t end_ms = read_clock_ms() + timeout_ms;
    int length = snprintf(head, sizeof head,
                          "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
                          "%sConnection: close\r\n\r\n",
                          request->status, name_status(request->status), media_type, size,
                          request->status == 405 ? "Allow: GET, HEAD\r\n" : "");
    return write_all(fd, head, (size_t)length, end_ms) &&
           (request->head_only || write_all(fd, body, size, end_ms));
}
