// SPDX-License-Identifier: Apache-2.0
// Reads the metrics of a daemon in the Prometheus text format.
#ifndef INF_TESTS_SUPPORT_DAEMON_METRICS_TEXT_H
#define INF_TESTS_SUPPORT_DAEMON_METRICS_TEXT_H

#include <stdbool.h>

// Returns the beginning of the line after `line`, or the end of the text.
const char *inf_metrics_text_next(const char *line);

// Returns whether `line` begins with `start`.
bool inf_metrics_text_begins(const char *line, const char *start);

// Returns the value of the sample whose line ends before `next`: the number after the last space.
double inf_metrics_text_value(const char *next);

// Returns the sum of the samples of metric `name` whose lines contain `part` ("": of all samples).
double inf_metrics_text_sum(const char *text, const char *name, const char *part);

#endif
