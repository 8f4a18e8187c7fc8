// SPDX-License-Identifier: Apache-2.0
// Prints the gateway's metrics in Prometheus' text format. Only the thread of the event loop
// changes and reads the counters, so they need no lock.
#include "client/gateway/core/metrics.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct text {
    FILE *out;
    bool openmetrics;
};

// Prints the lines that describe a metric. OpenMetrics names a counter without its "_total".
static void print_description(struct text *text, const char *name, const char *type,
                              const char *help)
{
    size_t length = strlen(name), suffix = sizeof "_total" - 1;
    if (text->openmetrics && length > suffix && strcmp(name + length - suffix, "_total") == 0)
        length -= suffix;
    fprintf(text->out, "# HELP inferd_gateway_%.*s %s\n# TYPE inferd_gateway_%.*s %s\n",
            (int)length, name, help, (int)length, name, type);
}

static void print_metric(struct text *text, const char *name, const char *type, const char *help,
                         uint64_t value)
{
    print_description(text, name, type, help);
    fprintf(text->out, "inferd_gateway_%s %" PRIu64 "\n", name, value);
}

static void print_http(struct text *text, const struct inf_http_counters *http)
{
    print_metric(text, "connections", "gauge", "Connections of clients that are open.",
                 http->connections_open);
    print_metric(text, "connections_total", "counter", "Connections of clients.",
                 http->connections_total);
    print_metric(text, "connections_evicted_total", "counter",
                 "Idle connections closed because a listener had reached its limit.",
                 http->evicted);
    print_metric(text, "timeouts_total", "counter",
                 "Connections closed, and gRPC calls reset, because the client was too slow.",
                 http->timeouts);
    print_metric(text, "abandoned_total", "counter",
                 "Requests whose client went away before the response.", http->abandoned);
    print_metric(text, "body_bytes", "gauge", "Memory of requests and of texts of responses.",
                 http->body_bytes);
    print_metric(text, "received_bytes_total", "counter", "Bytes received from clients.",
                 http->bytes_received);
    print_metric(text, "sent_bytes_total", "counter", "Bytes sent to clients.", http->bytes_sent);
    print_description(text, "responses_total", "counter", "Responses by class of their status.");
    for (int class = 2; class <= 5; class ++)
        fprintf(text->out, "inferd_gateway_responses_total{class=\"%dxx\"} %" PRIu64 "\n", class,
                http->responses[class]);
}

static void print_inferences(struct text *text, const struct inf_gateway *gateway)
{
    const struct inf_gateway_counters *counters = &gateway->counters;
    print_metric(text, "inferences_started_total", "counter", "Inferences sent to the daemon.",
                 counters->started);
    print_metric(text, "inferences_succeeded_total", "counter", "Inferences with a result.",
                 counters->succeeded);
    print_metric(text, "inferences_failed_total", "counter", "Inferences with an error.",
                 counters->failed);
    print_metric(text, "inferences_cancelled_total", "counter",
                 "Inferences cancelled because the client went away.", counters->cancelled);
    print_metric(text, "inferences_waiting", "gauge",
                 "Inferences that wait because the daemon allows no more in flight.",
                 inf_link_waiting_count(gateway->link));
    print_metric(text, "sequences", "gauge", "Sequences that are open or being opened.",
                 inf_sequences_count(gateway->sequences));
    print_metric(text, "daemon_connected", "gauge", "Whether the daemon answers.",
                 inf_link_is_ready(gateway->link));
    print_description(text, "inference_seconds_total", "counter",
                      "Time of inferences in the daemon.");
    fprintf(text->out, "inferd_gateway_inference_seconds_total %.9f\n",
            (double)counters->duration_ns / 1e9);
}

char *inf_gateway_metrics_print(const struct inf_gateway *gateway, const char *daemon,
                                bool openmetrics, size_t *size)
{
    static const char end[] = "# EOF\n"; // the last line of OpenMetrics
    char *bytes = NULL;
    struct text text = {open_memstream(&bytes, size), openmetrics};
    if (text.out == NULL)
        return NULL;
    size_t length = strlen(daemon);
    if (openmetrics && length >= sizeof end - 1 &&
        strcmp(daemon + length - sizeof end + 1, end) == 0)
        length -= sizeof end - 1;
    fwrite(daemon, 1, length, text.out);
    print_http(&text, inf_http_server_counters(gateway->server));
    print_inferences(&text, gateway);
    if (openmetrics)
        fputs(end, text.out);
    if (fclose(text.out) != 0) {
        free(bytes);
        return NULL;
    }
    return bytes;
}
