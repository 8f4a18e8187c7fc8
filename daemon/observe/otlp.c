// SPDX-License-Identifier: Apache-2.0
// Prints the spans of one request. Ids are hexadecimal texts, and times are texts with decimal
// digits, as the JSON mapping of OTLP demands for 64-bit numbers.
#include "daemon/observe/otlp.h"

#include <inttypes.h>
#include <stdio.h>

#include "daemon/observe/report_text.h"

// Values of SpanKind and StatusCode in OTLP.
enum span_kind {
    SPAN_INTERNAL = 1,
    SPAN_SERVER = 2
};
enum span_status {
    STATUS_UNSET = 0,
    STATUS_ERROR = 2
};

// The id of a child span is the id of the request's span plus this number.
enum span_number {
    SPAN_REQUEST,
    SPAN_QUEUE,
    SPAN_BATCH,
    SPAN_DEVICE,
    SPAN_WRITE
};

struct span {
    const char *name;
    enum span_kind kind;
    enum span_number number;
    enum span_number parent; // of a span that is not SPAN_REQUEST
    uint64_t begin_ns, end_ns;
};

// A line that is being printed.
struct printer {
    struct inf_report_text text;
    const struct inf_request_record *record;
    const struct inf_otlp_source *source;
};

static void add_bytes(struct printer *printer, const char *key, const uint8_t *bytes,
                      uint32_t count)
{
    char digits[2 * INF_TRACE_ID_BYTES + 1];
    for (uint32_t i = 0; i < count; i++)
        snprintf(digits + (size_t)2 * i, 3, "%02x", bytes[i]);
    inf_report_add_text(&printer->text, key, digits);
}

static void add_span_id(struct printer *printer, const char *key, enum span_number number)
{
    uint64_t id = printer->record->trace.span_id + (uint64_t)number;
    char digits[24];
    snprintf(digits, sizeof digits, "%016" PRIx64, id);
    inf_report_add_text(&printer->text, key, digits);
}

// Adds a number as a text.
static void add_long(struct printer *printer, const char *key, uint64_t value)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%" PRIu64, value);
    inf_report_add_text(&printer->text, key, digits);
}

static void add_time(struct printer *printer, const char *key, uint64_t ns)
{
    add_long(printer, key, ns + (uint64_t)printer->source->wall_offset_ns);
}

static void add_text_attribute(struct printer *printer, const char *key, const char *value)
{
    inf_report_open(&printer->text, NULL, '{');
    inf_report_add_text(&printer->text, "key", key);
    inf_report_open(&printer->text, "value", '{');
    inf_report_add_text(&printer->text, "stringValue", value);
    inf_report_close(&printer->text, '}');
    inf_report_close(&printer->text, '}');
}

static void add_number_attribute(struct printer *printer, const char *key, uint64_t value)
{
    inf_report_open(&printer->text, NULL, '{');
    inf_report_add_text(&printer->text, "key", key);
    inf_report_open(&printer->text, "value", '{');
    add_long(printer, "intValue", value);
    inf_report_close(&printer->text, '}');
    inf_report_close(&printer->text, '}');
}

static void add_request_attributes(struct printer *printer)
{
    const struct inf_request_record *record = printer->record;
    add_text_attribute(printer, "inferd.model", record->model);
    add_text_attribute(printer, "inferd.version", record->version);
    add_text_attribute(printer, "inferd.device", record->device);
    add_number_attribute(printer, "inferd.uid", record->uid);
    add_number_attribute(printer, "inferd.client", record->client_id);
    add_number_attribute(printer, "inferd.stream", record->stream_id);
    add_number_attribute(printer, "inferd.rows", record->rows);
    if (record->code != INF_OK)
        add_text_attribute(printer, "inferd.reason", inf_reason_name(record->reason));
}

static void add_attributes(struct printer *printer, enum span_number number)
{
    inf_report_open(&printer->text, "attributes", '[');
    if (number == SPAN_REQUEST)
        add_request_attributes(printer);
    if (number == SPAN_BATCH) {
        add_number_attribute(printer, "inferd.worker", printer->record->worker);
        add_number_attribute(printer, "inferd.batch_rows", printer->record->batch_rows);
    }
    inf_report_close(&printer->text, ']');
}

static void add_status(struct printer *printer)
{
    bool failed = printer->record->code != INF_OK;
    inf_report_open(&printer->text, "status", '{');
    inf_report_add_number(&printer->text, "code", failed ? STATUS_ERROR : STATUS_UNSET);
    if (failed)
        inf_report_add_text(&printer->text, "message", inf_code_name(printer->record->code));
    inf_report_close(&printer->text, '}');
}

// Returns whether the client has sent the id of its span.
static bool has_parent(const struct inf_trace_context *trace)
{
    for (uint32_t i = 0; i < INF_SPAN_ID_BYTES; i++)
        if (trace->parent_id[i] != 0)
            return true;
    return false;
}

static void add_span(struct printer *printer, const struct span *span)
{
    const struct inf_trace_context *trace = &printer->record->trace;
    if (span->begin_ns == 0 || span->end_ns < span->begin_ns)
        return;
    inf_report_open(&printer->text, NULL, '{');
    add_bytes(printer, "traceId", trace->trace_id, INF_TRACE_ID_BYTES);
    add_span_id(printer, "spanId", span->number);
    if (span->number != SPAN_REQUEST)
        add_span_id(printer, "parentSpanId", span->parent);
    else if (has_parent(trace))
        add_bytes(printer, "parentSpanId", trace->parent_id, INF_SPAN_ID_BYTES);
    if (trace->state[0] != '\0')
        inf_report_add_text(&printer->text, "traceState", trace->state);
    inf_report_add_text(&printer->text, "name", span->name);
    inf_report_add_number(&printer->text, "kind", span->kind);
    add_time(printer, "startTimeUnixNano", span->begin_ns);
    add_time(printer, "endTimeUnixNano", span->end_ns);
    add_attributes(printer, span->number);
    add_status(printer);
    inf_report_close(&printer->text, '}');
}

static void add_spans(struct printer *printer)
{
    const struct inf_request_record *record = printer->record;
    char name[sizeof record->model + 8];
    snprintf(name, sizeof name, "infer %s", record->model);
    const struct span spans[] = {
        {name, SPAN_SERVER, SPAN_REQUEST, SPAN_REQUEST, record->accepted_ns, record->ended_ns},
        {"queue", SPAN_INTERNAL, SPAN_QUEUE, SPAN_REQUEST, record->accepted_ns,
         record->ran ? record->start_ns : record->ended_ns},
        {"batch", SPAN_INTERNAL, SPAN_BATCH, SPAN_REQUEST, record->start_ns, record->done_ns},
        {"device", SPAN_INTERNAL, SPAN_DEVICE, SPAN_BATCH, record->begin_ns, record->end_ns},
        {"write", SPAN_INTERNAL, SPAN_WRITE, SPAN_REQUEST, record->done_ns, record->ended_ns},
    };
    inf_report_open(&printer->text, "spans", '[');
    for (size_t i = 0; i < sizeof spans / sizeof spans[0]; i++)
        add_span(printer, &spans[i]);
    inf_report_close(&printer->text, ']');
}

static void add_resource(struct printer *printer)
{
    inf_report_open(&printer->text, "resource", '{');
    inf_report_open(&printer->text, "attributes", '[');
    add_text_attribute(printer, "service.name", "inferd");
    add_text_attribute(printer, "service.version", printer->source->version);
    add_number_attribute(printer, "process.pid", (uint64_t)printer->source->process);
    inf_report_close(&printer->text, ']');
    inf_report_close(&printer->text, '}');
}

size_t inf_otlp_print_line(const struct inf_request_record *record,
                           const struct inf_otlp_source *source, char line[INF_OTLP_LINE_BYTES])
{
    struct printer printer = {.record = record, .source = source};
    inf_report_begin(&printer.text, line, INF_OTLP_LINE_BYTES - 1);
    inf_report_open(&printer.text, NULL, '{');
    inf_report_open(&printer.text, "resourceSpans", '[');
    inf_report_open(&printer.text, NULL, '{');
    add_resource(&printer);
    inf_report_open(&printer.text, "scopeSpans", '[');
    inf_report_open(&printer.text, NULL, '{');
    inf_report_open(&printer.text, "scope", '{');
    inf_report_add_text(&printer.text, "name", "inferd");
    inf_report_close(&printer.text, '}');
    add_spans(&printer);
    inf_report_close(&printer.text, '}');
    inf_report_close(&printer.text, ']');
    inf_report_close(&printer.text, '}');
    inf_report_close(&printer.text, ']');
    inf_report_close(&printer.text, '}');
    if (printer.text.full)
        return 0;
    line[printer.text.size] = '\n';
    return printer.text.size + 1;
}
