// SPDX-License-Identifier: Apache-2.0
// Encodes and decodes the lists of requests in flight and of connections, the target of
// RequestCancel and ClientDisconnect, and the request of Report.
#include "proto/wire/message_codec.h"

typedef Inference__RequestListResponse__Request wire_request;
typedef Inference__ClientListResponse__Client wire_client;

#define TAKE(field) to->field = from->field;
#define GIVE(field) to->field = inf_wire_text(from->field);

// --- requests in flight ---

#define REQUEST_NUMBERS(X) X(client_id) X(stream_id) X(uid) X(pid) X(age_ns) X(data_bytes) X(rows)
#define REQUEST_TEXTS(X)   X(method) X(model) X(version) X(device) X(phase) X(id)

static void decode_request(struct inf_request_entry *to, const wire_request *from)
{
    REQUEST_NUMBERS(TAKE)
    REQUEST_TEXTS(TAKE)
}

static void encode_request(wire_request *to, const struct inf_request_entry *from)
{
    REQUEST_NUMBERS(TAKE)
    REQUEST_TEXTS(GIVE)
}

static enum inf_code decode_requests(union inf_message *message, const void *from,
                                     struct inf_scratch *scratch, struct inf_error *err)
{
    const Inference__RequestListResponse *wire = from;
    struct inf_request_list *list = &message->request_list;
    list->left_out = wire->left_out;
    list->count = (uint32_t)wire->n_requests;
    list->entries = inf_scratch_array(scratch, wire->n_requests, sizeof *list->entries, err);
    if (list->entries == NULL)
        return INF_EXHAUSTED;
    for (uint32_t i = 0; i < list->count; i++)
        decode_request(&list->entries[i], wire->requests[i]);
    return INF_OK;
}

static enum inf_code encode_requests(const union inf_message *message, void *to,
                                     struct inf_scratch *scratch, struct inf_error *err)
{
    const struct inf_request_list *list = &message->request_list;
    Inference__RequestListResponse *wire = to;
    wire->left_out = list->left_out;
    wire->n_requests = list->count;
    wire->requests = inf_wire_list(&inference__request_list_response__request__descriptor,
                                   list->count, scratch, err);
    if (wire->requests == NULL)
        return INF_EXHAUSTED;
    for (uint32_t i = 0; i < list->count; i++)
        encode_request(wire->requests[i], &list->entries[i]);
    return INF_OK;
}

const struct inf_message_codec inf_codec_request_list = {
    .descriptor = &inference__request_list_response__descriptor,
    .decode = decode_requests,
    .encode = encode_requests,
};

// --- connections ---

#define CLIENT_NUMBERS(X)                                                                          \
    X(client_id)                                                                                   \
    X(uid)                                                                                         \
    X(pid)                                                                                         \
    X(age_ns)                                                                                      \
    X(requests)                                                                                    \
    X(in_flight)                                                                                   \
    X(data_bytes) X(unread_bytes) X(regions) X(region_bytes) X(sessions)
#define CLIENT_TEXTS(X) X(name) X(role)

static void decode_client(struct inf_client_entry *to, const wire_client *from)
{
    CLIENT_NUMBERS(TAKE)
    CLIENT_TEXTS(TAKE)
}

static void encode_client(wire_client *to, const struct inf_client_entry *from)
{
    CLIENT_NUMBERS(TAKE)
    CLIENT_TEXTS(GIVE)
}

static enum inf_code decode_clients(union inf_message *message, const void *from,
                                    struct inf_scratch *scratch, struct inf_error *err)
{
    const Inference__ClientListResponse *wire = from;
    struct inf_client_list *list = &message->client_list;
    list->left_out = wire->left_out;
    list->count = (uint32_t)wire->n_clients;
    list->entries = inf_scratch_array(scratch, wire->n_clients, sizeof *list->entries, err);
    if (list->entries == NULL)
        return INF_EXHAUSTED;
    for (uint32_t i = 0; i < list->count; i++)
        decode_client(&list->entries[i], wire->clients[i]);
    return INF_OK;
}

static enum inf_code encode_clients(const union inf_message *message, void *to,
                                    struct inf_scratch *scratch, struct inf_error *err)
{
    const struct inf_client_list *list = &message->client_list;
    Inference__ClientListResponse *wire = to;
    wire->left_out = list->left_out;
    wire->n_clients = list->count;
    wire->clients = inf_wire_list(&inference__client_list_response__client__descriptor, list->count,
                                  scratch, err);
    if (wire->clients == NULL)
        return INF_EXHAUSTED;
    for (uint32_t i = 0; i < list->count; i++)
        encode_client(wire->clients[i], &list->entries[i]);
    return INF_OK;
}

const struct inf_message_codec inf_codec_client_list = {
    .descriptor = &inference__client_list_response__descriptor,
    .decode = decode_clients,
    .encode = encode_clients,
};

// --- the request or connection to end ---

static enum inf_code decode_target(union inf_message *message, const void *from,
                                   struct inf_scratch *scratch, struct inf_error *err)
{
    (void)scratch;
    (void)err;
    const Inference__ClientTarget *wire = from;
    message->client_target =
        (struct inf_client_target){.client_id = wire->client_id, .stream_id = wire->stream_id};
    return INF_OK;
}

static enum inf_code encode_target(const union inf_message *message, void *to,
                                   struct inf_scratch *scratch, struct inf_error *err)
{
    (void)scratch;
    (void)err;
    Inference__ClientTarget *wire = to;
    wire->client_id = message->client_target.client_id;
    wire->stream_id = message->client_target.stream_id;
    return INF_OK;
}

const struct inf_message_codec inf_codec_client_target = {
    .descriptor = &inference__client_target__descriptor,
    .decode = decode_target,
    .encode = encode_target,
};

// --- reports ---

static enum inf_code decode_report(union inf_message *message, const void *from,
                                   struct inf_scratch *scratch, struct inf_error *err)
{
    (void)scratch;
    const Inference__ReportRequest *wire = from;
    message->report_request =
        (struct inf_report_request){.topic = wire->topic, .after = wire->after, .wait = wire->wait};
    return inf_check_text("topic", wire->topic, INF_TEXT_LIMIT, err);
}

static enum inf_code encode_report(const union inf_message *message, void *to,
                                   struct inf_scratch *scratch, struct inf_error *err)
{
    (void)scratch;
    (void)err;
    Inference__ReportRequest *wire = to;
    wire->topic = inf_wire_text(message->report_request.topic);
    wire->after = message->report_request.after;
    wire->wait = message->report_request.wait;
    return INF_OK;
}

const struct inf_message_codec inf_codec_report_request = {
    .descriptor = &inference__report_request__descriptor,
    .decode = decode_report,
    .encode = encode_report,
};
