// SPDX-License-Identifier: Apache-2.0
// Writes the timeline of the daemon as a trace file, in the JSON format of Chrome that Perfetto
// (ui.perfetto.dev) and chrome://tracing load.
#ifndef INF_CLIENT_INFERCTL_TEXT_TRACE_FILE_H
#define INF_CLIENT_INFERCTL_TEXT_TRACE_FILE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct trace_file;

// Creates the file. Returns NULL if it cannot be created; errno says why.
struct trace_file *trace_file_create(const char *path);

// Writes the entries of a report of the daemon about the timeline. Returns false if the report is
// malformed.
bool trace_file_add(struct trace_file *file, const json_t *report);

// Returns the number of requests that were written.
uint64_t trace_file_requests(const struct trace_file *file);

// Returns the number of entries that the daemon could not keep until they were read.
uint64_t trace_file_lost(const struct trace_file *file);

// Ends the file, and frees *file. Returns false if something could not be written; errno says why.
bool trace_file_close(struct trace_file **file);

#endif
