// SPDX-License-Identifier: Apache-2.0
// Prints the daemon's and the gateway's metrics as one text.
#ifndef INF_GATEWAY_METRICS_H
#define INF_GATEWAY_METRICS_H

#include "client/gateway/core/gateway.h"

// Returns the daemon's metrics, `daemon`, followed by those of the gateway, or NULL if there is no
// memory. `daemon` may be empty. Both have the format OpenMetrics if `openmetrics` is true, else
// Prometheus' text format. *size is the length without the NUL. The caller frees the text with
// free().
char *inf_gateway_metrics_print(const struct inf_gateway *gateway, const char *daemon,
                                bool openmetrics, size_t *size);

#endif
