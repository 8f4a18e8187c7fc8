// SPDX-License-Identifier: Apache-2.0
// Prints the gateway's metrics in Prometheus' text format. Only the thread of the event loop
// changes and reads the counters, so they need no lock.
#include "client/gateway/core/metrics.h"

#include <inttypes.h>
#include <stdio.h>

static void print_metric(FILE *out, const char *name, const char *type, const char *help,
                         uint64_t value)
{
    fprintf(out, "# HELP inferd_gateway_%s %s\n# TYPE inferd_gateway_%s %s\n", name, help, name,
            type);
    fprintf(out, "inferd_gateway_%s %" PRIu64 "\n", name, value);
}

static void print_http(FILE *out, const struct inf_http_counters *http)
{
    print_metric(out, "connections", "gauge", "Connections of clients that are open.",
                 http->connections_open);
    print_metric(out, "connections_total", "counter", "Connections of clients.",
                 http->connections_total);
    print_metric(out, "connections_evicted_total", "counter",
                 "Idle connections closed because a listener had reached its limit.",
                 http->evicted);
    print_metric(out, "timeouts_total", "counter",
                 "Connections closed, and gRPC calls reset, because the client was too slow.",
                 http->timeouts);
    print_metric(out, "abandoned_total", "counter",
                 "Requests whose client went away before the response.", http->abandoned);
    print_metric(out, "body_bytes", "gauge", "Memory of request bodies.", http->body_bytes);
    print_metric(out, "received_bytes_total", "counter", "Bytes received from clients.",
                 http->bytes_received);
    print_metric(out, "sent_bytes_total", "counter", "Bytes sent to clients.", http->bytes_sent);
    fputs(
        "# HELP inferd_gateway_responses_total Responses by class of their status.\n"
        "# TYPE inferd_gateway_responses_total counter\n",
        out);
    for (int class = 2; class <= 5; class ++)
        fprintf(out, "inferd_gateway_responses_total{class=\"%dxx\"} %" PRIu64 "\n", class,
                http->responses[class]);
}

char *inf_gateway_metrics_print(const struct inf_gateway *gateway, const char *daemon, size_t *size)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, size);
    if (out == NULL)
        return NULL;
    fputs(daemon, out);
    print_http(out, inf_http_server_counters(gateway->server));
    const struct inf_gateway_counters *counters = &gateway->counters;
    print_metric(out, "inferences_started_total", "counter", "Inferences sent to the daemon.",
                 counters->started);
    print_metric(out, "inferences_succeeded_total", "counter", "Inferences with a result.",
                 counters->succeeded);
    print_metric(out, "inferences_failed_total", "counter", "Inferences with an error.",
                 counters->failed);
    print_metric(out, "inferences_cancelled_total", "counter",
                 "Inferences cancelled because the client went away.", counters->cancelled);
    print_metric(out, "inferences_waiting", "gauge",
                 "Inferences that wait because the daemon allows no more in flight.",
                 inf_link_waiting_count(gateway->link));
    print_metric(out, "daemon_connected", "gauge", "Whether the daemon answers.",
                 inf_link_is_ready(gateway->link));
    fputs(
        "# HELP inferd_gateway_inference_seconds_total Time of inferences in the daemon.\n"
        "# TYPE inferd_gateway_inference_seconds_total counter\n",
        out);
    fprintf(out, "inferd_gateway_inference_seconds_total %.9f\n",
            (double)counters->duration_ns / 1e9);
    if (fclose(out) != 0)
        return NULL;
    return text;
}
