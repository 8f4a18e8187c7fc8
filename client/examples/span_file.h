// SPDX-License-Identifier: Apache-2.0
// The client's spans of inferences, written as OTLP/JSON: one line each, as the daemon's trace_file
// has them. Copy this pair of files into a program that has no tracing library.
#ifndef SPAN_FILE_H
#define SPAN_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

// Size of a traceparent of W3C Trace Context, with its NUL.
#define SPAN_PARENT_BYTES 56

// One span, the root of its trace. It may be copied.
struct span {
    uint64_t trace_id[2], id;
    uint64_t start_ns; // since 1970
    uint64_t begin_ns; // the same time on the monotonic clock, from which the duration is computed
};

// Begins a span with random ids, and writes the traceparent for inferd_set_trace_context(). Returns
// false if the system has no random numbers.
bool span_begin(struct span *span, char traceparent[SPAN_PARENT_BYTES]);

// Ends a span, and writes it to `out`. It is called "infer MODEL". `failure` is the text of an
// error; NULL: the inference succeeded. Threads may share `out`.
void span_end(const struct span *span, FILE *out, const char *model, const char *failure);

#endif
