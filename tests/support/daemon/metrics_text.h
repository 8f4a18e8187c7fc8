// SPDX-License-Identifier: Apache-2.0
// Reads the metrics of a daemon in the Prometheus text format.
#ifndef INF_TESTS_SUPPORT_DAEMON_METRICS_TEXT_H
#define INF_TESTS_SUPPORT_DAEMON_METRICS_TEXT_H

// Returns the sum of the samples of metric `name` whose lines contain `part` ("": of all samples).
double inf_metrics_text_sum(const char *text, const char *name, const char *part);

#endif
