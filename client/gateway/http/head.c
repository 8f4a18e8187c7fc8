// SPDX-License-Identifier: Apache-2.0
// Parses the head of an HTTP/1.1 request.
//
// If a proxy or this server accepts a head that the standard does not allow, the proxy and the
// server can disagree about where a request ends. An attacker can then hide a request inside
// another one ("request smuggling"). The parser therefore accepts only the strict form of RFC 9112
// and refuses everything that implementations interpret in different ways:
//
//   - lines that end with LF alone, CR inside a line, lines that continue the previous line
//   - blanks before the colon of a field, empty names, control characters in values
//   - Content-Length twice, as a list, with a sign, or beside Transfer-Encoding
//   - Transfer-Encoding with any value except "chunked", twice, or in HTTP/1.0
//   - HTTP versions except 1.0 and 1.1, request targets that are no path
//   - Host twice, or HTTP/1.1 without Host
#include "client/gateway/http/head.h"

#include <string.h>
#include <strings.h>

struct parser {
    struct inf_http_head *head;
    struct inf_http_refusal *refusal;
    // How many fields Host, Transfer-Encoding, Content-Encoding and traceparent the head has.
    unsigned hosts, encodings, codings, traces;
    bool old;         // the version is HTTP/1.0
    bool close, keep; // the field Connection has the option "close" or "keep-alive"
};

static bool refuse_head(struct parser *parser, int status, const char *why)
{
    *parser->refusal = (struct inf_http_refusal){status, why};
    return false;
}

static bool is_token_char(uint8_t c)
{
    if ((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'))
        return true;
    return c != 0 && strchr("!#$%&'*+-.^_`|~", c) != NULL;
}

static bool span_is(struct inf_span span, const char *text)
{
    return span.size == strlen(text) && strncasecmp((const char *)span.data, text, span.size) == 0;
}

static struct inf_span trim_blanks(struct inf_span span)
{
    while (span.size > 0 && (span.data[0] == ' ' || span.data[0] == '\t')) {
        span.data++;
        span.size--;
    }
    while (span.size > 0 && (span.data[span.size - 1] == ' ' || span.data[span.size - 1] == '\t'))
        span.size--;
    return span;
}

// Parses a number of 1 to 18 decimal digits, which always fits in 64 bits.
static bool parse_number(struct inf_span text, uint64_t *number)
{
    if (text.size == 0 || text.size > 18)
        return false;
    *number = 0;
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
        *number = *number * 10 + (text.data[i] - '0');
    }
    return true;
}

static bool parse_request_line(struct parser *parser, struct inf_span line)
{
    struct inf_http_head *head = parser->head;
    const uint8_t *space = memchr(line.data, ' ', line.size);
    if (space == NULL || space == line.data)
        return refuse_head(parser, 400, "the request line is invalid");
    struct inf_span method = {line.data, (size_t)(space - line.data)};
    for (size_t i = 0; i < method.size; i++)
        if (!is_token_char(method.data[i]))
            return refuse_head(parser, 400, "the method is invalid");
    head->method = method.size == 3 && memcmp(method.data, "GET", 3) == 0    ? INF_HTTP_GET
                   : method.size == 4 && memcmp(method.data, "HEAD", 4) == 0 ? INF_HTTP_HEAD
                   : method.size == 4 && memcmp(method.data, "POST", 4) == 0 ? INF_HTTP_POST
                                                                             : INF_HTTP_OTHER;
    struct inf_span rest = {space + 1, line.size - method.size - 1};
    static const size_t version_bytes = sizeof " HTTP/1.1" - 1;
    if (rest.size <= version_bytes)
        return refuse_head(parser, 400, "the request line is invalid");
    const uint8_t *version = rest.data + rest.size - version_bytes;
    bool is_new = memcmp(version, " HTTP/1.1", version_bytes) == 0;
    parser->old = memcmp(version, " HTTP/1.0", version_bytes) == 0;
    if (!is_new && !parser->old)
        return refuse_head(parser, 505, "the HTTP version is not 1.0 or 1.1");
    rest.size -= version_bytes;
    if (rest.data[0] != '/')
        return refuse_head(parser, 400, "the target of the request is no path");
    for (size_t i = 0; i < rest.size; i++)
        if (rest.data[i] <= ' ' || rest.data[i] >= 0x7f)
            return refuse_head(parser, 400, "the target of the request is invalid");
    const uint8_t *query = memchr(rest.data, '?', rest.size);
    head->path = (struct inf_span){rest.data, query ? (size_t)(query - rest.data) : rest.size};
    return true;
}

static bool parse_transfer_encoding(struct parser *parser, struct inf_span value)
{
    if (parser->encodings++ > 0 || memchr(value.data, ',', value.size) != NULL || parser->old)
        return refuse_head(parser, 400, "Transfer-Encoding is ambiguous");
    if (!span_is(value, "chunked"))
        return refuse_head(parser, 501, "the only Transfer-Encoding is chunked");
    parser->head->chunked = true;
    return true;
}

static bool parse_coding(struct parser *parser, struct inf_span value)
{
    if (parser->codings++ > 0)
        return refuse_head(parser, 400, "Content-Encoding occurs twice");
    if (span_is(value, "gzip") || span_is(value, "x-gzip"))
        parser->head->coding = INF_HTTP_GZIP;
    else if (span_is(value, "deflate"))
        parser->head->coding = INF_HTTP_DEFLATE;
    else if (!span_is(value, "identity"))
        return refuse_head(parser, 415, "the only values of Content-Encoding are gzip and deflate");
    return true;
}

// Calls handle() for each element of a comma-separated list.
static void for_each_element(struct parser *parser, struct inf_span list,
                             void (*handle)(struct parser *, struct inf_span))
{
    while (list.size > 0) {
        const uint8_t *comma = memchr(list.data, ',', list.size);
        size_t size = comma ? (size_t)(comma - list.data) : list.size;
        handle(parser, trim_blanks((struct inf_span){list.data, size}));
        size_t step = comma ? size + 1 : size;
        list.data += step;
        list.size -= step;
    }
}

static void handle_connection_option(struct parser *parser, struct inf_span option)
{
    parser->close = parser->close || span_is(option, "close");
    parser->keep = parser->keep || span_is(option, "keep-alive");
}

// Handles an element of Accept-Encoding. An element with parameters, such as "gzip;q=0.5", is
// ignored: the response is not compressed with this coding.
static void handle_accepted_coding(struct parser *parser, struct inf_span coding)
{
    parser->head->accepts_gzip = parser->head->accepts_gzip || span_is(coding, "gzip");
    parser->head->accepts_deflate = parser->head->accepts_deflate || span_is(coding, "deflate");
}

bool inf_http_request_id_valid(struct inf_span value)
{
    for (size_t i = 0; i < value.size; i++)
        if (value.data[i] <= ' ' || value.data[i] >= 0x7f)
            return false;
    return value.size <= INF_HTTP_REQUEST_ID_BYTES;
}

static bool parse_request_id(struct parser *parser, struct inf_span value)
{
    if (parser->head->request_id.size != 0 || !inf_http_request_id_valid(value))
        return refuse_head(parser, 400,
                           "X-Request-Id occurs twice, is longer than 128 bytes, or has characters "
                           "that are not printable");
    parser->head->request_id = value;
    return true;
}

bool inf_http_trace_parent_valid(struct inf_span value)
{
    // version 00, id of the trace, id of the parent, flags
    static const char form[] = "00-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx-xxxxxxxxxxxxxxxx-xx";
    bool trace = false, parent = false; // the ids are not only zeros
    if (value.size != INF_HTTP_TRACE_PARENT_BYTES)
        return false;
    for (size_t i = 0; i < value.size; i++) {
        uint8_t c = value.data[i];
        bool hex = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
        if (form[i] == 'x' ? !hex : c != (uint8_t)form[i])
            return false;
        trace = trace || (i >= 3 && i < 35 && c != '0');
        parent = parent || (i >= 36 && i < 52 && c != '0');
    }
    return trace && parent;
}

// Returns the quality (`;q=0.5`) of an element of Accept in thousandths, 1000 if it has none.
static unsigned parse_quality(struct inf_span element)
{
    const uint8_t *q = memmem(element.data, element.size, "q=", 2);
    if (q == NULL)
        return 1000;
    const uint8_t *end = element.data + element.size;
    unsigned value = 0, unit = 1000;
    for (q += 2; q < end && unit > 0; q++) {
        if (*q == '.')
            continue;
        if (*q < '0' || *q > '9')
            break;
        value += (unsigned)(*q - '0') * unit;
        unit /= 10;
    }
    return INF_MIN(value, 1000u);
}

static void handle_accepted_type(struct parser *parser, struct inf_span element)
{
    const uint8_t *semicolon = memchr(element.data, ';', element.size);
    struct inf_span type = {element.data,
                            semicolon != NULL ? (size_t)(semicolon - element.data) : element.size};
    type = trim_blanks(type);
    struct inf_http_head *head = parser->head;
    if (span_is(type, "application/openmetrics-text"))
        head->openmetrics_quality = INF_MAX(head->openmetrics_quality, parse_quality(element));
    else if (span_is(type, "text/plain") || span_is(type, "text/*"))
        head->text_quality = INF_MAX(head->text_quality, parse_quality(element));
}

static bool parse_field_value(struct parser *parser, struct inf_span name, struct inf_span value)
{
    struct inf_http_head *head = parser->head;
    if (span_is(name, "content-length")) {
        if (head->has_length || !parse_number(value, &head->length))
            return refuse_head(parser, 400, "Content-Length is invalid or occurs twice");
        head->has_length = true;
    } else if (span_is(name, "transfer-encoding")) {
        return parse_transfer_encoding(parser, value);
    } else if (span_is(name, "host")) {
        if (parser->hosts++ > 0)
            return refuse_head(parser, 400, "Host occurs twice");
    } else if (span_is(name, "connection")) {
        for_each_element(parser, value, handle_connection_option);
    } else if (span_is(name, "content-encoding")) {
        return parse_coding(parser, value);
    } else if (span_is(name, "accept-encoding")) {
        for_each_element(parser, value, handle_accepted_coding);
    } else if (span_is(name, "inference-header-content-length")) {
        if (head->has_json_length || !parse_number(value, &head->json_length))
            return refuse_head(parser, 400,
                               "Inference-Header-Content-Length is invalid or occurs twice");
        head->has_json_length = true;
    } else if (span_is(name, "x-request-id")) {
        return parse_request_id(parser, value);
    } else if (span_is(name, "traceparent")) {
        // The standard demands that an invalid field is ignored. If there are two fields, both are
        // ignored, because either may be wrong.
        bool valid = parser->traces++ == 0 && inf_http_trace_parent_valid(value);
        head->trace_parent = valid ? value : (struct inf_span){0};
    } else if (span_is(name, "authorization")) {
        if (head->authorization.size != 0)
            return refuse_head(parser, 400, "Authorization occurs twice");
        head->authorization = value;
    } else if (span_is(name, "accept")) {
        for_each_element(parser, value, handle_accepted_type);
    } else if (span_is(name, "expect")) {
        if (!span_is(value, "100-continue"))
            return refuse_head(parser, 417, "the only expectation is 100-continue");
        head->expects_continue = !parser->old;
    }
    return true;
}

static bool parse_field(struct parser *parser, struct inf_span line)
{
    const uint8_t *colon = memchr(line.data, ':', line.size);
    if (colon == NULL || colon == line.data)
        return refuse_head(parser, 400, "a header field has no name");
    struct inf_span name = {line.data, (size_t)(colon - line.data)};
    for (size_t i = 0; i < name.size; i++)
        if (!is_token_char(name.data[i]))
            return refuse_head(parser, 400, "the name of a header field is invalid");
    struct inf_span value = trim_blanks((struct inf_span){colon + 1, line.size - name.size - 1});
    for (size_t i = 0; i < value.size; i++)
        if ((value.data[i] < ' ' && value.data[i] != '\t') || value.data[i] == 0x7f)
            return refuse_head(parser, 400, "the value of a header field is invalid");
    return parse_field_value(parser, name, value);
}

// Removes the next line from the start of *rest, and sets *line to it without its CR LF.
static bool next_line(struct parser *parser, struct inf_span *rest, struct inf_span *line)
{
    const uint8_t *lf = memchr(rest->data, '\n', rest->size);
    const uint8_t *cr = memchr(rest->data, '\r', rest->size);
    if (lf == NULL || cr == NULL || cr + 1 != lf)
        return refuse_head(parser, 400, "a line of the head does not end with CR LF");
    *line = (struct inf_span){rest->data, (size_t)(cr - rest->data)};
    rest->data += line->size + 2;
    rest->size -= line->size + 2;
    return true;
}

static bool parse_lines(struct parser *parser, struct inf_span rest)
{
    struct inf_span line;
    if (!next_line(parser, &rest, &line) || !parse_request_line(parser, line))
        return false;
    unsigned fields = 0;
    while (rest.size > 0) {
        if (!next_line(parser, &rest, &line))
            return false;
        if (++fields > INF_HTTP_FIELDS)
            return refuse_head(parser, 431, "too many header fields");
        if (!parse_field(parser, line))
            return false;
    }
    struct inf_http_head *head = parser->head;
    if (head->has_length && head->chunked)
        return refuse_head(parser, 400, "both Content-Length and Transfer-Encoding");
    if (!parser->old && parser->hosts == 0)
        return refuse_head(parser, 400, "there is no Host");
    head->keep_alive = !parser->close && (!parser->old || parser->keep);
    return true;
}

// Returns false if an incomplete head cannot become valid. A client that speaks another protocol is
// then refused at once instead of after a timeout.
static bool first_line_is_plausible(struct inf_span bytes)
{
    const uint8_t *lf = memchr(bytes.data, '\n', bytes.size);
    if (lf != NULL && (lf == bytes.data || lf[-1] != '\r'))
        return false;
    return bytes.size == 0 || is_token_char(bytes.data[0]);
}

enum inf_http_parse inf_http_head_parse(struct inf_span bytes, size_t scanned,
                                        struct inf_http_head *head,
                                        struct inf_http_refusal *refusal)
{
    struct parser parser = {.head = head, .refusal = refusal};
    size_t from = scanned > 3 ? INF_MIN(scanned - 3, bytes.size) : 0;
    size_t searched = INF_MIN(bytes.size, INF_HTTP_HEAD_BYTES);
    const uint8_t *end =
        from < searched ? memmem(bytes.data + from, searched - from, "\r\n\r\n", 4) : NULL;
    *head = (struct inf_http_head){0};
    if (end == NULL) {
        if (bytes.size >= INF_HTTP_HEAD_BYTES)
            (void)refuse_head(&parser, 431, "the head is too long");
        else if (!first_line_is_plausible(bytes))
            (void)refuse_head(&parser, 400, "the request line is invalid");
        else
            return INF_HTTP_INCOMPLETE;
        return INF_HTTP_REFUSED;
    }
    head->size = (size_t)(end - bytes.data) + 4;
    // The lines of the head, without the empty line at its end.
    return parse_lines(&parser, (struct inf_span){bytes.data, head->size - 2}) ? INF_HTTP_COMPLETE
                                                                               : INF_HTTP_REFUSED;
}
