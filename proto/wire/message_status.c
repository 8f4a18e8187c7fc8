// SPDX-License-Identifier: Apache-2.0
// Failures, the list of devices, and the state of the server.
#include <string.h>

#include "proto/wire/message_codec.h"

typedef Inference__DeviceListResponse__Device wire_device;

// --- failures ---

// Returns `code` as an enum inf_code. Unknown codes, which a newer peer may send, become
// INF_INTERNAL.
static enum inf_code known_code(int32_t code)
{
    if (code < 0 || strcmp(inf_code_name((enum inf_code)code), "CODE_UNKNOWN") == 0)
        return INF_INTERNAL;
    return (enum inf_code)code;
}

static enum inf_code decode_status(union inf_message *message, const void *from,
                                   struct inf_scratch *scratch, struct inf_error *err)
{
    (void)scratch;
    (void)err;
    const Inference__Status *wire = from;
    message->status = (struct inf_status){
        .code = known_code(wire->code),
        .reason = wire->reason < INF_REASON_COUNT ? (enum inf_reason)wire->reason : INF_REASON_NONE,
        .message = wire->message,
        .retry_after_ms = wire->retry_after_ms,
        .model = wire->model,
        .version = wire->version,
        .tensor = wire->tensor,
        .expected = wire->expected,
        .actual = wire->actual,
        .phase = wire->phase,
    };
    return INF_OK;
}

static enum inf_code encode_status(const union inf_message *message, void *to,
                                   struct inf_scratch *scratch, struct inf_error *err)
{
    (void)scratch;
    (void)err;
    const struct inf_status *status = &message->status;
    Inference__Status *wire = to;
    wire->code = (int32_t)status->code;
    wire->reason = (uint32_t)status->reason;
    wire->message = inf_wire_text(status->message);
    wire->retry_after_ms = status->retry_after_ms;
    wire->model = inf_wire_text(status->model);
    wire->version = inf_wire_text(status->version);
    wire->tensor = inf_wire_text(status->tensor);
    wire->expected = inf_wire_text(status->expected);
    wire->actual = inf_wire_text(status->actual);
    wire->phase = inf_wire_text(status->phase);
    return INF_OK;
}

const struct inf_message_codec inf_codec_status = {
    .descriptor = &inference__status__descriptor,
    .decode = decode_status,
    .encode = encode_status,
};

void inf_status_from_error(struct inf_status *status, const struct inf_error *err)
{
    *status = (struct inf_status){
        .code = err->code,
        .reason = err->reason,
        .message = err->text,
        .model = "",
        .version = "",
        .tensor = "",
        .expected = "",
        .actual = "",
        .phase = "",
    };
}

enum inf_code inf_error_from_status(struct inf_error *err, const struct inf_status *status)
{
    enum inf_code code = status->code != INF_OK ? status->code : INF_INTERNAL;
    return inf_fail_reason(err, code, status->reason, "%s", inf_wire_text(status->message));
}

// --- the list of devices ---

static enum inf_code decode_devices(union inf_message *message, const void *from,
                                    struct inf_scratch *scratch, struct inf_error *err)
{
    const Inference__DeviceListResponse *wire = from;
    struct inf_device_index *index = &message->device_index;
    index->count = (uint32_t)wire->n_devices;
    index->entries = inf_scratch_array(scratch, wire->n_devices, sizeof *index->entries, err);
    if (index->entries == NULL)
        return INF_EXHAUSTED;
    for (size_t i = 0; i < wire->n_devices; i++) {
        const wire_device *device = wire->devices[i];
        index->entries[i] = (struct inf_device_entry){
            .name = device->name,
            .backend = device->backend,
            .kind = device->kind,
            .description = device->description,
            .health = device->health,
            .precisions = device->precisions,
            .priority = device->priority,
            .slots = device->slots,
            .threads = device->threads,
            .queue_depth = device->queue_depth,
            .queue_limit = device->queue_limit,
            .requests = device->requests,
            .busy_ns = device->busy_ns,
            .memory_bytes = device->memory_bytes,
        };
    }
    return INF_OK;
}

static void encode_device(wire_device *wire, const struct inf_device_entry *device)
{
    wire->name = inf_wire_text(device->name);
    wire->backend = inf_wire_text(device->backend);
    wire->kind = inf_wire_text(device->kind);
    wire->description = inf_wire_text(device->description);
    wire->health = inf_wire_text(device->health);
    wire->precisions = inf_wire_text(device->precisions);
    wire->priority = device->priority;
    wire->slots = device->slots;
    wire->threads = device->threads;
    wire->queue_depth = device->queue_depth;
    wire->queue_limit = device->queue_limit;
    wire->requests = device->requests;
    wire->busy_ns = device->busy_ns;
    wire->memory_bytes = device->memory_bytes;
}

static enum inf_code encode_devices(const union inf_message *message, void *to,
                                    struct inf_scratch *scratch, struct inf_error *err)
{
    const struct inf_device_index *index = &message->device_index;
    Inference__DeviceListResponse *wire = to;
    wire->n_devices = index->count;
    wire->devices = inf_wire_list(&inference__device_list_response__device__descriptor,
                                  index->count, scratch, err);
    if (wire->devices == NULL)
        return INF_EXHAUSTED;
    for (uint32_t i = 0; i < index->count; i++)
        encode_device(wire->devices[i], &index->entries[i]);
    return INF_OK;
}

const struct inf_message_codec inf_codec_device_index = {
    .descriptor = &inference__device_list_response__descriptor,
    .decode = decode_devices,
    .encode = encode_devices,
};

// --- the state of the server ---

static enum inf_code decode_server(union inf_message *message, const void *from,
                                   struct inf_scratch *scratch, struct inf_error *err)
{
    (void)scratch;
    (void)err;
    const Inference__ServerStatusResponse *wire = from;
    message->server_status = (struct inf_server_status){
        .version = wire->version,
        .state = wire->state,
        .uptime_ns = wire->uptime_ns,
        .connections = wire->connections,
        .requests_in_flight = wire->requests_in_flight,
        .regions = wire->regions,
        .models_ready = wire->models_ready,
        .connections_total = wire->connections_total,
        .requests_accepted = wire->requests_accepted,
        .requests_ok = wire->requests_ok,
        .requests_failed = wire->requests_failed,
        .region_bytes = wire->region_bytes,
        .resident_bytes = wire->resident_bytes,
        .log_lines_dropped = wire->log_lines_dropped,
        .answers_checked = wire->answers_checked,
        .answers_drifted = wire->answers_drifted,
        .answers_unchecked = wire->answers_unchecked,
        .models_demoted = wire->models_demoted,
    };
    return INF_OK;
}

static enum inf_code encode_server(const union inf_message *message, void *to,
                                   struct inf_scratch *scratch, struct inf_error *err)
{
    (void)scratch;
    (void)err;
    const struct inf_server_status *status = &message->server_status;
    Inference__ServerStatusResponse *wire = to;
    wire->version = inf_wire_text(status->version);
    wire->state = inf_wire_text(status->state);
    wire->uptime_ns = status->uptime_ns;
    wire->connections = status->connections;
    wire->requests_in_flight = status->requests_in_flight;
    wire->regions = status->regions;
    wire->models_ready = status->models_ready;
    wire->connections_total = status->connections_total;
    wire->requests_accepted = status->requests_accepted;
    wire->requests_ok = status->requests_ok;
    wire->requests_failed = status->requests_failed;
    wire->region_bytes = status->region_bytes;
    wire->resident_bytes = status->resident_bytes;
    wire->log_lines_dropped = status->log_lines_dropped;
    wire->answers_checked = status->answers_checked;
    wire->answers_drifted = status->answers_drifted;
    wire->answers_unchecked = status->answers_unchecked;
    wire->models_demoted = status->models_demoted;
    return INF_OK;
}

const struct inf_message_codec inf_codec_server_status = {
    .descriptor = &inference__server_status_response__descriptor,
    .decode = decode_server,
    .encode = encode_server,
};
