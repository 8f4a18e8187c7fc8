// SPDX-License-Identifier: Apache-2.0
// Sends texts and errors. Responses with the status 429 or 503 have a Retry-After field.
#include "client/gateway/rest/reply.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/gateway/http/content_coding.h"
#include "client/gateway/oip/response_json.h"

// Sizes of texts that are compressed, in bytes. Compressing a smaller text gains nothing;
// compressing a larger text would block the event loop for too long.
#define COMPRESS_MIN_BYTES ((size_t)1 << 10)
#define COMPRESS_MAX_BYTES ((size_t)256 << 10)

// Compresses a response that has one piece and sets its Content-Encoding. Leaves the response as it
// is if there is no memory.
static void compress_piece(struct inf_http_response *response, enum inf_http_coding coding)
{
    struct iovec *piece = &response->pieces[0];
    size_t size;
    uint8_t *data =
        inf_http_coding_deflate(coding, (struct inf_span){piece->iov_base, piece->iov_len}, &size);
    if (data == NULL)
        return;
    free(piece->iov_base);
    *piece = (struct iovec){data, size};
    response->context = data;
    response->fields =
        coding == INF_HTTP_GZIP ? "Content-Encoding: gzip\r\n" : "Content-Encoding: deflate\r\n";
}

static void send_text(struct inf_http_exchange *exchange, int status, const char *content_type,
                      const char *fields, char *text, size_t size)
{
    struct inf_http_response response = {
        .status = text != NULL ? status : 500,
        .content_type = content_type,
        .fields = fields,
        .pieces = {{text, size}},
        .piece_count = text != NULL ? 1 : 0,
        .release = free,
        .context = text,
    };
    const struct inf_http_head *head = &exchange->head;
    if (status == 200 && size >= COMPRESS_MIN_BYTES && size <= COMPRESS_MAX_BYTES &&
        (head->accepts_gzip || head->accepts_deflate))
        compress_piece(&response, head->accepts_gzip ? INF_HTTP_GZIP : INF_HTTP_DEFLATE);
    inf_http_respond(exchange, &response);
}

void inf_rest_reply_text(struct inf_http_exchange *exchange, const char *content_type, char *text,
                         size_t size)
{
    send_text(exchange, 200, content_type, NULL, text, size);
}

void inf_rest_reply_json(struct inf_http_exchange *exchange, char *text)
{
    send_text(exchange, 200, "application/json", NULL, text, text != NULL ? strlen(text) : 0);
}

static void send_error(struct inf_http_exchange *exchange, int status, const char *message,
                       uint32_t retry_after_ms)
{
    char fields[64] = "";
    char allowed[64];
    if (status == 405) {
        snprintf(fields, sizeof fields, "Allow: %s\r\n", message);
        snprintf(allowed, sizeof allowed, "this path takes the methods %s", message);
        message = allowed;
    } else if (status == 429 || status == 503) {
        snprintf(fields, sizeof fields, "Retry-After: %u\r\n",
                 INF_MAX(retry_after_ms / 1000 + (retry_after_ms % 1000 != 0), 1u));
    }
    char *text = inf_oip_error_encode(message);
    send_text(exchange, status, "application/json", fields, text, text != NULL ? strlen(text) : 0);
}

void inf_rest_reply_status(struct inf_http_exchange *exchange, int status, const char *message)
{
    send_error(exchange, status, message, 0);
}

void inf_rest_reply_error(struct inf_http_exchange *exchange, const struct inferd_error *err)
{
    send_error(exchange, inf_oip_http_status(err), err->text, err->retry_after_ms);
}

void inf_rest_reply_failure(struct inf_http_exchange *exchange, const struct inf_error *err)
{
    struct inferd_error converted;
    inf_oip_error_convert(&converted, err);
    inf_rest_reply_error(exchange, &converted);
}
