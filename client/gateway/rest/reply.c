// SPDX-License-Identifier: Apache-2.0
// Sends texts and errors. Responses with the status 429 or 503 have a Retry-After field.
//
// A text is compressed in slices if the client accepts that. The memory of zlib and of the
// compressed text is charged to the server's total for bodies. If the total does not allow it, the
// text is sent as it is.
#include "client/gateway/rest/reply.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/gateway/http/content_coding.h"
#include "client/gateway/oip/response_json.h"

// Minimum size of a text that is compressed, in bytes. Compressing a smaller one gains nothing.
#define COMPRESS_MIN_BYTES ((size_t)1 << 10)
// What a slice compresses, in bytes. It takes 0.1 to 0.2 ms.
#define DEFLATE_BYTES ((size_t)16 << 10)

// A text that is being compressed or sent.
struct text_reply {
    struct inf_gateway *gateway;
    struct inf_http_exchange *exchange;
    const char *content_type;
    const char *fields; // NULL: the text is not compressed
    char *text;
    size_t size;
    size_t text_charged; // bytes of `text` that are charged to the server
    size_t charged;      // bytes that are charged in all
    struct inf_http_coder coder;
    struct inf_slice_task task;
};

static void free_reply(void *context)
{
    struct text_reply *reply = context;
    inf_slices_cancel(reply->gateway->slices, &reply->task);
    inf_http_coder_fini(&reply->coder);
    inf_http_server_release(reply->gateway->server, reply->charged);
    free(reply->text);
    free(reply);
}

static void send_reply(struct text_reply *reply)
{
    const struct inf_http_response response = {
        .status = 200,
        .content_type = reply->content_type,
        .fields = reply->fields,
        .pieces = {{reply->text, reply->size}},
        .piece_count = 1,
        .release = free_reply,
        .context = reply,
    };
    reply->exchange->user = NULL;
    inf_http_respond(reply->exchange, &response);
}

static bool charge_reply(struct text_reply *reply, size_t size)
{
    if (!inf_http_server_charge(reply->gateway->server, size))
        return false;
    reply->charged += size;
    return true;
}

// Frees the memory that only compressing needs. Only what is charged for the text stays charged.
static void end_compressing(struct text_reply *reply)
{
    inf_http_coder_fini(&reply->coder);
    inf_http_server_release(reply->gateway->server, reply->charged - reply->text_charged);
    reply->charged = reply->text_charged;
}

// Replaces the text by its compressed form.
static void take_compressed(struct text_reply *reply)
{
    struct inf_http_coder *coder = &reply->coder;
    free(reply->text);
    reply->text = (char *)coder->data;
    reply->size = coder->size;
    reply->text_charged = coder->capacity;
    coder->data = NULL;
}

// Compresses the next part of a text, and sends the text when it is complete.
static bool compress_slice(void *context)
{
    struct text_reply *reply = context;
    size_t before = reply->coder.capacity;
    bool done;
    bool ok = inf_http_code(&reply->coder, DEFLATE_BYTES, &done, NULL) == INF_OK &&
              charge_reply(reply, reply->coder.capacity - before);
    if (ok && !done)
        return true;
    if (ok)
        take_compressed(reply);
    else
        reply->fields = NULL;
    end_compressing(reply);
    send_reply(reply);
    return false;
}

// Begins to compress the text if the client accepts that and there is memory for it. Returns false
// if the text must be sent as it is.
static bool begin_compressing(struct text_reply *reply)
{
    const struct inf_http_head *head = &reply->exchange->head;
    const enum inf_http_coding coding = head->accepts_gzip ? INF_HTTP_GZIP : INF_HTTP_DEFLATE;
    const struct inf_span text = {(const uint8_t *)reply->text, reply->size};
    if (reply->size < COMPRESS_MIN_BYTES || (!head->accepts_gzip && !head->accepts_deflate) ||
        !charge_reply(reply, INF_HTTP_DEFLATE_STATE_BYTES))
        return false;
    if (inf_http_deflate_begin(&reply->coder, coding, text, NULL) != INF_OK) {
        end_compressing(reply);
        return false;
    }
    reply->fields =
        coding == INF_HTTP_GZIP ? "Content-Encoding: gzip\r\n" : "Content-Encoding: deflate\r\n";
    reply->exchange->user = reply;
    reply->exchange->abandon = free_reply;
    reply->task.step = compress_slice;
    reply->task.context = reply;
    inf_slices_start(reply->gateway->slices, &reply->task);
    return true;
}

void inf_rest_reply_text(struct inf_gateway *gateway, struct inf_http_exchange *exchange,
                         const struct inf_rest_text *text)
{
    struct text_reply *reply = calloc(1, sizeof *reply);
    if (text->data == NULL || reply == NULL) {
        free(reply);
        free(text->data);
        inf_http_server_release(gateway->server, text->charged);
        inf_rest_reply_status(exchange, 503, "no memory for the response");
        return;
    }
    *reply = (struct text_reply){.gateway = gateway,
                                 .exchange = exchange,
                                 .content_type = text->content_type,
                                 .text = text->data,
                                 .size = text->size,
                                 .text_charged = text->charged,
                                 .charged = text->charged};
    if (!begin_compressing(reply))
        send_reply(reply);
}

void inf_rest_reply_json(struct inf_gateway *gateway, struct inf_http_exchange *exchange,
                         char *text)
{
    const struct inf_rest_text json = {
        .content_type = "application/json", .data = text, .size = text != NULL ? strlen(text) : 0};
    inf_rest_reply_text(gateway, exchange, &json);
}

// Sends the body of an error; NULL: there is no memory for it.
static void send_error_text(struct inf_http_exchange *exchange, int status, const char *fields,
                            char *text)
{
    const struct inf_http_response response = {
        .status = text != NULL ? status : 500,
        .content_type = "application/json",
        .fields = fields,
        .pieces = {{text, text != NULL ? strlen(text) : 0}},
        .piece_count = text != NULL ? 1 : 0,
        .release = free,
        .context = text,
    };
    inf_http_respond(exchange, &response);
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
    send_error_text(exchange, status, fields, inf_oip_error_encode(message));
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
