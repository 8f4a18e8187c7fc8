// SPDX-License-Identifier: Apache-2.0
// A ring of records and the thread that writes them. The file is opened with O_NONBLOCK, which
// has no effect on regular files. If a FIFO is full, write() fails with EAGAIN, and the thread
// waits for it in steps, so that it can stop in time.
#include "daemon/observe/trace_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "backends/base/clock.h"
#include "backends/base/thread.h"
#include "daemon/observe/otlp.h"

// When the writer is destroyed, it spends at most this time on writing the remaining records.
#define FLUSH_NS (INF_NS_PER_S / 2)
// How often the thread checks whether it has to stop, if the file accepts no bytes.
#define POLL_MS 50
// The longest path of a file: ".1" is appended to it.
#define PATH_BYTES 4096

struct inf_trace_writer {
    struct inf_trace_writer_options options;
    struct inf_thread thread;
    struct inf_mutex mutex; // guards `first`, `count`, `stopping`, `stop_ns` and `ring`
    struct inf_cond filled;
    uint32_t first; // index of the oldest record
    uint32_t count;
    bool stopping;
    uint64_t stop_ns; // time at which the thread must stop writing; valid if `stopping` is set
    struct inf_request_record *ring;

    _Atomic uint64_t written, dropped;

    // Used by the thread only, after the writer was created.
    int file_fd;         // -1: none
    bool regular;        // the file is a regular one, whose size is limited
    uint64_t file_bytes; // size of a regular file
    int socket_fd;       // -1: none
    struct sockaddr_un address;
    bool broken; // the last line was not written, and this was logged
};

// --- the thread ---

static bool is_out_of_time(struct inf_trace_writer *writer)
{
    inf_mutex_lock(&writer->mutex);
    bool over = writer->stopping && inf_clock_ns() >= writer->stop_ns;
    inf_mutex_unlock(&writer->mutex);
    return over;
}

static enum inf_code open_file(struct inf_trace_writer *writer, struct inf_error *err)
{
    const char *path = writer->options.file;
    struct stat status;
    writer->file_fd =
        open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW, 0640);
    if (writer->file_fd < 0)
        return inf_fail(err, INF_INVALID, "trace_file: %s", strerror(errno));
    writer->regular = fstat(writer->file_fd, &status) == 0 && S_ISREG(status.st_mode);
    writer->file_bytes = writer->regular ? (uint64_t)status.st_size : 0;
    return INF_OK;
}

// Renames a file that would become too long, and begins a new one. Returns false if there is no
// file afterwards.
static bool rotate_file(struct inf_trace_writer *writer, size_t more)
{
    if (writer->file_fd >= 0 && writer->file_bytes + more <= writer->options.file_bytes_max)
        return true;
    if (writer->file_fd >= 0) {
        char old[PATH_BYTES];
        snprintf(old, sizeof old, "%s.1", writer->options.file);
        // If the file cannot be renamed, it is emptied, so that it does not fill the disk.
        if (rename(writer->options.file, old) != 0)
            (void)!ftruncate(writer->file_fd, 0);
        close(writer->file_fd);
        writer->file_fd = -1;
    }
    return open_file(writer, NULL) == INF_OK;
}

// Writes a line to the file. If the line cannot be written completely, removes the written part.
static bool write_file(struct inf_trace_writer *writer, const char *line, size_t size)
{
    if (!rotate_file(writer, size))
        return false;
    for (size_t done = 0; done < size;) {
        ssize_t count = write(writer->file_fd, line + done, size - done);
        if (count > 0) {
            done += (size_t)count;
            continue;
        }
        struct pollfd poller = {.fd = writer->file_fd, .events = POLLOUT};
        bool full = count < 0 && errno == EAGAIN;
        if (full)
            (void)poll(&poller, 1, POLL_MS);
        if ((!full && errno != EINTR) || is_out_of_time(writer)) {
            (void)!ftruncate(writer->file_fd, (off_t)writer->file_bytes);
            return false;
        }
    }
    if (writer->regular)
        writer->file_bytes += size;
    return true;
}

// Sends a line to the socket. If the receiver is absent or its queue is full, the line is lost.
static bool send_line(struct inf_trace_writer *writer, const char *line, size_t size)
{
    return sendto(writer->socket_fd, line, size, MSG_NOSIGNAL | MSG_DONTWAIT,
                  (const struct sockaddr *)&writer->address,
                  sizeof writer->address) == (ssize_t)size;
}

// Logs when writing fails for the first time, and when it works again.
static void note_outcome(struct inf_trace_writer *writer, bool written, int error)
{
    if (written == !writer->broken)
        return;
    writer->broken = !written;
    if (written)
        inf_log(writer->options.log, INF_LOG_NOTICE, "traces are written again");
    else
        inf_log(writer->options.log, INF_LOG_WARNING, "traces are not written error=\"%s\"",
                strerror(error));
}

static void write_record(struct inf_trace_writer *writer, const struct inf_request_record *record,
                         const struct inf_otlp_source *source)
{
    char line[INF_OTLP_LINE_BYTES];
    size_t size = inf_otlp_print_line(record, source, line);
    bool written = size > 0;
    errno = EMSGSIZE;
    if (written && writer->options.file[0] != '\0')
        written = write_file(writer, line, size);
    int error = errno;
    if (size > 0 && writer->socket_fd >= 0 && !send_line(writer, line, size)) {
        written = false;
        error = errno;
    }
    note_outcome(writer, written, error);
    atomic_fetch_add_explicit(written ? &writer->written : &writer->dropped, 1,
                              memory_order_relaxed);
}

// Waits for a record and takes the oldest one. Returns false if the writer is stopping, and the
// ring is empty or the time is up.
static bool pop_record(struct inf_trace_writer *writer, struct inf_request_record *record)
{
    inf_mutex_lock(&writer->mutex);
    while (writer->count == 0 && !writer->stopping)
        inf_cond_wait(&writer->filled, &writer->mutex);
    bool found = writer->count > 0 && !(writer->stopping && inf_clock_ns() >= writer->stop_ns);
    if (found) {
        *record = writer->ring[writer->first];
        writer->first = (writer->first + 1) % INF_TRACE_WRITER_RING;
        writer->count--;
    }
    inf_mutex_unlock(&writer->mutex);
    return found;
}

// Returns what is to be added to times of inf_clock_ns() to get times since 1970. It is read for
// each record, because the wall clock may be set.
static int64_t read_wall_offset_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * (int64_t)INF_NS_PER_S + now.tv_nsec - (int64_t)inf_clock_ns();
}

static void write_records(void *context)
{
    struct inf_trace_writer *writer = context;
    struct inf_request_record record;
    struct inf_otlp_source source = {.version = writer->options.version, .process = (int)getpid()};
    while (pop_record(writer, &record)) {
        source.wall_offset_ns = read_wall_offset_ns();
        write_record(writer, &record, &source);
    }
}

// --- creating and destroying ---

static enum inf_code open_socket(struct inf_trace_writer *writer, struct inf_error *err)
{
    writer->address = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (strlen(writer->options.socket) >= sizeof writer->address.sun_path)
        return inf_fail(err, INF_INVALID, "trace_socket: wanted at most %zu characters",
                        sizeof writer->address.sun_path - 1);
    snprintf(writer->address.sun_path, sizeof writer->address.sun_path, "%s",
             writer->options.socket);
    writer->socket_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    return writer->socket_fd >= 0
               ? INF_OK
               : inf_fail(err, INF_EXHAUSTED, "trace_socket: %s", strerror(errno));
}

static enum inf_code open_targets(struct inf_trace_writer *writer, struct inf_error *err)
{
    writer->ring = calloc(INF_TRACE_WRITER_RING, sizeof *writer->ring);
    if (writer->ring == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for traces");
    if (writer->options.file[0] != '\0')
        INF_TRY(open_file(writer, err));
    if (writer->options.socket[0] != '\0')
        INF_TRY(open_socket(writer, err));
    return inf_thread_start(&writer->thread, "inferd-trace", write_records, writer, err);
}

enum inf_code inf_trace_writer_create(struct inf_trace_writer **out_writer,
                                      const struct inf_trace_writer_options *options,
                                      struct inf_error *err)
{
    struct inf_trace_writer *writer = calloc(1, sizeof *writer);
    if (writer == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for traces");
    writer->options = *options;
    writer->file_fd = writer->socket_fd = -1;
    inf_mutex_init(&writer->mutex);
    inf_cond_init(&writer->filled);
    enum inf_code code = open_targets(writer, err);
    if (code != INF_OK) {
        inf_trace_writer_destroy(&writer);
        return code;
    }
    *out_writer = writer;
    return INF_OK;
}

void inf_trace_writer_destroy(struct inf_trace_writer **writer)
{
    struct inf_trace_writer *self = *writer;
    if (self == NULL)
        return;
    inf_mutex_lock(&self->mutex);
    self->stopping = true;
    self->stop_ns = inf_clock_ns() + FLUSH_NS;
    inf_mutex_unlock(&self->mutex);
    inf_cond_broadcast(&self->filled);
    inf_thread_join(&self->thread);
    if (self->file_fd >= 0)
        close(self->file_fd);
    if (self->socket_fd >= 0)
        close(self->socket_fd);
    inf_cond_fini(&self->filled);
    inf_mutex_fini(&self->mutex);
    free(self->ring);
    free(self);
    *writer = NULL;
}

void inf_trace_writer_push(struct inf_trace_writer *writer, const struct inf_request_record *record)
{
    inf_mutex_lock(&writer->mutex);
    bool room = writer->count < INF_TRACE_WRITER_RING;
    if (room)
        writer->ring[(writer->first + writer->count++) % INF_TRACE_WRITER_RING] = *record;
    inf_mutex_unlock(&writer->mutex);
    if (room)
        inf_cond_signal(&writer->filled);
    else
        atomic_fetch_add_explicit(&writer->dropped, 1, memory_order_relaxed);
}

struct inf_trace_writer_totals inf_trace_writer_read_totals(const struct inf_trace_writer *writer)
{
    return (struct inf_trace_writer_totals){
        .written = atomic_load_explicit(&writer->written, memory_order_relaxed),
        .dropped = atomic_load_explicit(&writer->dropped, memory_order_relaxed)};
}
