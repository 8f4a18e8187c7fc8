// SPDX-License-Identifier: Apache-2.0
// Makes the ids of spans and prints spans. A line is printed by one call of fputs(), which locks
// the file, so that lines of several threads do not mix.
#include "span_file.h"

#include <inttypes.h>
#include <sys/random.h>
#include <time.h>

// Size of a line, without the texts that the caller gives.
#define LINE_BYTES 1024

static uint64_t read_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

bool span_begin(struct span *span, char traceparent[SPAN_PARENT_BYTES])
{
    uint64_t random[3];
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return false;
    // An id must not be 0.
    *span = (struct span){{random[0] | 1, random[1]},
                          random[2] | 1,
                          read_ns(CLOCK_REALTIME),
                          read_ns(CLOCK_MONOTONIC)};
    snprintf(traceparent, SPAN_PARENT_BYTES, "00-%016" PRIx64 "%016" PRIx64 "-%016" PRIx64 "-01",
             span->trace_id[0], span->trace_id[1], span->id);
    return true;
}

// Copies a text as the inside of a JSON string, as far as it fits.
static void escape_text(char *to, size_t room, const char *text)
{
    size_t size = 0;
    for (; *text != '\0' && size + 7 <= room; text++) {
        const unsigned char byte = (unsigned char)*text;
        const char *format = byte < ' ' ? "\\u%04x" : byte == '"' || byte == '\\' ? "\\%c" : "%c";
        size += (size_t)snprintf(to + size, room - size, format, byte);
    }
    to[size] = '\0';
}

void span_end(const struct span *span, FILE *out, const char *model, const char *failure)
{
    const uint64_t end_ns = span->start_ns + read_ns(CLOCK_MONOTONIC) - span->begin_ns;
    char line[LINE_BYTES + 1024], name[256], message[768];
    escape_text(name, sizeof name, model);
    escape_text(message, sizeof message, failure != NULL ? failure : "");
    // The kind 3 is that of a client. The status code 2 is that of an error, 1 that of success.
    snprintf(line, sizeof line,
             "{\"resourceSpans\":[{\"resource\":{\"attributes\":[{\"key\":\"service.name\","
             "\"value\":{\"stringValue\":\"inferd-client\"}}]},\"scopeSpans\":[{\"scope\":{"
             "\"name\":\"inferd\"},\"spans\":[{\"traceId\":\"%016" PRIx64 "%016" PRIx64
             "\",\"spanId\":\"%016" PRIx64
             "\",\"name\":\"infer %s\",\"kind\":3,"
             "\"startTimeUnixNano\":\"%" PRIu64 "\",\"endTimeUnixNano\":\"%" PRIu64
             "\",\"status\":{\"code\":%d,\"message\":\"%s\"}}]}]}]}\n",
             span->trace_id[0], span->trace_id[1], span->id, name, span->start_ns, end_ns,
             failure != NULL ? 2 : 1, message);
    fputs(line, out);
}
