// SPDX-License-Identifier: Apache-2.0
// Converts the entries of the timeline to events of Chrome's trace format, and writes them at once,
// so that memory does not grow with the length of a trace.
//
// Every track is a "thread" of a "process" in the file:
//
//   process "loop"                 one thread, with slices "read" and "finish"
//   process "workers"              a thread for each worker of each device; slice: a batch, in it
//                                  the run of the model
//   process "queue DEVICE"         requests from their arrival until a worker takes them
//   process "connection N uid U"   requests from their arrival until their answer
//
// Slices of a thread must nest. Requests of a queue or a connection overlap, so they are
// asynchronous events with an id each, which the viewers stack.
#include "client/inferctl/text/trace_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/inferctl/text/json_value.h"

// Numbers of processes in the file.
#define LOOP_PROCESS       1
#define WORKER_PROCESS     2
#define QUEUE_PROCESS      10   // plus the index of the device
#define CONNECTION_PROCESS 1000 // plus the number of the connection

// The most devices of a daemon, workers of a device, and connections that get a name.
#define DEVICES_MAX     64
#define WORKERS_MAX     1024
#define CONNECTIONS_MAX 65536

// Elements of an entry, see docs/reference/protocol.md.
enum element {
    ENTRY_KIND,
    ENTRY_CLIENT,
    ENTRY_BEGIN,
    ENTRY_END,
    ENTRY_STREAM,
    ENTRY_UID,
    ENTRY_DEVICE,
    ENTRY_WORKER,
    ENTRY_ROWS,
    ENTRY_BATCH_ROWS,
    ENTRY_START,
    ENTRY_RUN_BEGIN,
    ENTRY_RUN_END,
    ENTRY_DONE,
    ENTRY_MODEL,
    ENTRY_CODE,
    ENTRY_ELEMENTS
};
enum entry_kind {
    KIND_READ,
    KIND_FINISH,
    KIND_REQUEST
};

struct trace_file {
    FILE *out;
    bool first; // no event was written yet
    int error;  // errno of the first failure; 0: none
    uint64_t requests, lost;
    // The start of the batch that was written last, for each worker; 0: none, and the worker has no
    // name yet. Requests of one batch have the same start.
    uint64_t batches[DEVICES_MAX][WORKERS_MAX];
    bool named_queues[DEVICES_MAX];
    uint64_t *connections; // sorted numbers of the connections that have a name
    size_t connection_count;
};

struct trace_file *trace_file_create(const char *path)
{
    struct trace_file *file = json_value_must(calloc(1, sizeof *file));
    file->out = fopen(path, "we");
    if (file->out == NULL) {
        int error = errno;
        free(file);
        errno = error;
        return NULL;
    }
    file->first = true;
    fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n", file->out);
    return file;
}

bool trace_file_close(struct trace_file **file)
{
    struct trace_file *self = *file;
    fprintf(self->out, "],\"otherData\":{\"requests\":%" PRIu64 ",\"lost\":%" PRIu64 "}}\n",
            self->requests, self->lost);
    bool failed = ferror(self->out) != 0;
    failed |= fclose(self->out) != 0;
    free(self->connections);
    free(self);
    *file = NULL;
    return !failed;
}

uint64_t trace_file_requests(const struct trace_file *file)
{
    return file->requests;
}

uint64_t trace_file_lost(const struct trace_file *file)
{
    return file->lost;
}

// --- writing events ---

// Begins an event; the caller writes further members and ends it with end_event().
static void begin_event(struct trace_file *file, const char *phase, int process, uint64_t thread)
{
    fprintf(file->out, "%s{\"ph\":\"%s\",\"pid\":%d,\"tid\":%" PRIu64, file->first ? "" : ",\n",
            phase, process, thread);
    file->first = false;
}

// Writes a text of the daemon, which is a name of letters, digits and a few signs.
static void add_quoted(struct trace_file *file, const char *text)
{
    putc('"', file->out);
    for (const char *at = text; *at != '\0'; at++)
        putc(*at < ' ' || *at == '"' || *at == '\\' || *at == 0x7f ? '?' : *at, file->out);
    putc('"', file->out);
}

static void add_text(struct trace_file *file, const char *key, const char *text)
{
    fprintf(file->out, ",\"%s\":", key);
    add_quoted(file, text);
}

// Writes a time or a duration in microseconds.
static void add_time(struct trace_file *file, const char *key, uint64_t ns)
{
    fprintf(file->out, ",\"%s\":%" PRIu64 ".%03u", key, ns / 1000, (unsigned)(ns % 1000));
}

static void end_event(struct trace_file *file)
{
    putc('}', file->out);
}

static void name_track(struct trace_file *file, const char *what, int process, uint64_t thread,
                       const char *name)
{
    begin_event(file, "M", process, thread);
    add_text(file, "name", what);
    fputs(",\"args\":{\"name\":", file->out);
    add_quoted(file, name);
    putc('}', file->out);
    end_event(file);
}

static void add_slice(struct trace_file *file, int process, uint64_t thread, const char *name,
                      uint64_t begin_ns, uint64_t end_ns)
{
    if (end_ns < begin_ns)
        return;
    begin_event(file, "X", process, thread);
    add_text(file, "name", name);
    add_time(file, "ts", begin_ns);
    add_time(file, "dur", end_ns - begin_ns);
    end_event(file);
}

// Writes the begin and the end of an asynchronous slice. Slices of one process that have the same
// id are nested.
static void add_async(struct trace_file *file, int process, uint64_t id, const char *name,
                      uint64_t begin_ns, uint64_t end_ns)
{
    for (int end = 0; end < 2 && begin_ns <= end_ns; end++) {
        begin_event(file, end ? "e" : "b", process, 1);
        add_text(file, "cat", "request");
        add_text(file, "name", name);
        fprintf(file->out, ",\"id2\":{\"local\":\"0x%" PRIx64 "\"}", id);
        add_time(file, "ts", end ? end_ns : begin_ns);
        end_event(file);
    }
}

// --- naming tracks when they are first used ---

static void name_loop(struct trace_file *file)
{
    name_track(file, "process_name", LOOP_PROCESS, 1, "loop");
    name_track(file, "thread_name", LOOP_PROCESS, 1, "loop");
    name_track(file, "process_name", WORKER_PROCESS, 1, "workers");
}

static void name_worker(struct trace_file *file, uint64_t thread, const char *device,
                        uint64_t worker)
{
    char name[96];
    snprintf(name, sizeof name, "%.60s worker %" PRIu64, device, worker);
    name_track(file, "thread_name", WORKER_PROCESS, thread, name);
}

static void name_queue(struct trace_file *file, uint64_t device_index, const char *device)
{
    char name[96];
    if (file->named_queues[device_index])
        return;
    file->named_queues[device_index] = true;
    snprintf(name, sizeof name, "queue %.60s", device);
    name_track(file, "process_name", QUEUE_PROCESS + (int)device_index, 1, name);
}

static void name_connection(struct trace_file *file, uint64_t client, uint64_t uid)
{
    char name[96];
    size_t low = 0;
    size_t high = file->connection_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (file->connections[middle] < client)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < file->connection_count && file->connections[low] == client)
        return;
    if (file->connections == NULL)
        file->connections = json_value_must(calloc(CONNECTIONS_MAX, sizeof *file->connections));
    if (file->connection_count == CONNECTIONS_MAX)
        return;
    memmove(&file->connections[low + 1], &file->connections[low],
            (file->connection_count++ - low) * sizeof *file->connections);
    file->connections[low] = client;
    snprintf(name, sizeof name, "connection %" PRIu64 " uid %" PRIu64, client, uid);
    name_track(file, "process_name", CONNECTION_PROCESS + (int)client, 1, name);
}

// --- reading reports ---

static uint64_t number_at(const json_t *entry, enum element element)
{
    return (uint64_t)json_integer_value(json_array_get(entry, (size_t)element));
}

static const char *text_at(const json_t *entry, enum element element)
{
    const char *text = json_string_value(json_array_get(entry, (size_t)element));
    return text != NULL ? text : "";
}

// Writes the slice of a batch when its first request is seen, and the run of the model in it.
static void add_batch(struct trace_file *file, const json_t *entry, const char *device)
{
    uint64_t worker = number_at(entry, ENTRY_WORKER);
    uint64_t thread = number_at(entry, ENTRY_DEVICE) * WORKERS_MAX + worker + 1;
    uint64_t *last = &file->batches[number_at(entry, ENTRY_DEVICE)][worker];
    uint64_t start_ns = number_at(entry, ENTRY_START);
    if (*last == start_ns)
        return;
    if (*last == 0)
        name_worker(file, thread, device, worker);
    *last = start_ns;
    add_slice(file, WORKER_PROCESS, thread, text_at(entry, ENTRY_MODEL), start_ns,
              number_at(entry, ENTRY_DONE));
    if (number_at(entry, ENTRY_RUN_BEGIN) != 0)
        add_slice(file, WORKER_PROCESS, thread, "run", number_at(entry, ENTRY_RUN_BEGIN),
                  number_at(entry, ENTRY_RUN_END));
}

// Writes a request on the tracks of its connection, its queue and its worker.
static bool add_request(struct trace_file *file, const json_t *entry, const json_t *devices)
{
    uint64_t device_index = number_at(entry, ENTRY_DEVICE);
    uint64_t client = number_at(entry, ENTRY_CLIENT);
    const char *device = json_string_value(json_array_get(devices, device_index));
    if (json_array_size(entry) != ENTRY_ELEMENTS || device == NULL || device_index >= DEVICES_MAX ||
        number_at(entry, ENTRY_WORKER) >= WORKERS_MAX || client >= INT32_MAX - CONNECTION_PROCESS)
        return false;
    uint64_t id = ++file->requests;
    uint64_t begin_ns = number_at(entry, ENTRY_BEGIN);
    uint64_t end_ns = number_at(entry, ENTRY_END);
    uint64_t start_ns = number_at(entry, ENTRY_START);
    bool ran = start_ns != 0;
    char name[192];
    snprintf(name, sizeof name, "%.64s stream %" PRIu64 " %.40s", text_at(entry, ENTRY_MODEL),
             number_at(entry, ENTRY_STREAM), text_at(entry, ENTRY_CODE));
    name_connection(file, client, number_at(entry, ENTRY_UID));
    add_async(file, CONNECTION_PROCESS + (int)client, id, name, begin_ns, end_ns);
    name_queue(file, device_index, device);
    add_async(file, QUEUE_PROCESS + (int)device_index, id, name, begin_ns, ran ? start_ns : end_ns);
    if (ran)
        add_batch(file, entry, device);
    return true;
}

bool trace_file_add(struct trace_file *file, const json_t *report)
{
    size_t i;
    const json_t *entry;
    const json_t *entries = json_object_get(report, "entries");
    const json_t *devices = json_object_get(report, "devices");
    if (!json_is_array(entries) || !json_is_array(devices))
        return false;
    if (file->first)
        name_loop(file);
    file->lost += (uint64_t)json_integer_value(json_object_get(report, "lost"));
    json_array_foreach(entries, i, entry)
    {
        uint64_t kind = number_at(entry, ENTRY_KIND);
        uint64_t begin_ns = number_at(entry, ENTRY_BEGIN);
        uint64_t end_ns = number_at(entry, ENTRY_END);
        if (kind > KIND_REQUEST || begin_ns > end_ns)
            return false;
        if (kind != KIND_REQUEST)
            add_slice(file, LOOP_PROCESS, 1, kind == KIND_READ ? "read" : "finish", begin_ns,
                      end_ns);
        else if (!add_request(file, entry, devices))
            return false;
    }
    return true;
}
