// SPDX-License-Identifier: Apache-2.0
// Prints metrics as a table for people.
#ifndef INF_CLIENT_INFERCTL_METRICS_SAMPLE_TABLE_H
#define INF_CLIENT_INFERCTL_METRICS_SAMPLE_TABLE_H

#include <jansson.h>

// Prints one row for each sample of `metrics`, the daemon's answer in the format json, parsed. A
// histogram has the number of its values as its value, and bounds of quantiles. `before` is the
// same answer from `seconds` earlier, for the column RATE; NULL: there is no such column.
void sample_table_print(const json_t *metrics, const json_t *before, double seconds);

#endif
