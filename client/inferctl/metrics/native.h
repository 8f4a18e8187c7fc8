// SPDX-License-Identifier: Apache-2.0
// Encodes metrics as Prometheus' protobuf messages, the only format that has native histograms.
#ifndef INF_CLIENT_INFERCTL_METRICS_NATIVE_H
#define INF_CLIENT_INFERCTL_METRICS_NATIVE_H

#include <jansson.h>
#include <stddef.h>

// The media type of the encoding.
#define NATIVE_MEDIA_TYPE                                                                          \
    "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"

// Encodes `metrics`, the daemon's answer in the format json, parsed: one message MetricFamily for
// each metric, each behind its length. Sets *size and returns the bytes, which the caller frees.
// Ends the program if there is no memory.
char *native_encode(const json_t *metrics, size_t *size);

#endif
