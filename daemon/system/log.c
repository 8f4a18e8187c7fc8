// SPDX-License-Identifier: Apache-2.0
// A ring of log lines and the thread that writes them. The thread calls poll() before each write,
// so that it can stop in time even if the reader of the log hangs.
//
// Warnings and errors are limited by kind (log_limit.h), so that a client that provokes one of them
// again and again neither fills the journal nor displaces other lines. When the minute of a kind is
// over, the thread logs how many of its lines were left out.
#include "daemon/system/log.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/base/clock.h"
#include "backends/base/thread.h"
#include "daemon/system/journal.h"
#include "daemon/system/log_limit.h"

// When the log writer is destroyed, it spends at most this time on writing the remaining lines.
#define FLUSH_NS (INF_NS_PER_S / 2)
// How often the writer thread checks whether it has to stop, if the log accepts no line.
#define POLL_MS 50

struct line {
    enum inf_log_level level;
    char text[INF_LOG_LINE_BYTES];
};

struct inf_log_writer {
    struct inf_log logs[INF_LOG_PARTS];
    struct inf_thread thread;
    int fd;
    bool journal; // fd is the stream of the journal: the level is written as "<N>"
    int entry_fd; // socket that takes lines as journal entries with fields; -1: lines go to `fd`

    struct inf_mutex mutex; // guards the fields from `first` to `lines`
    struct inf_cond filled;
    uint32_t first; // index of the oldest line in the ring
    uint32_t count;
    bool stopping;
    uint32_t kind_lines; // the most warnings and errors of one kind in a minute; 0: no limit
    struct inf_log_limit limit;
    // Time at which the writer thread must stop writing; valid if `stopping` is set.
    uint64_t stop_ns;
    struct line lines[INF_LOG_RING_LINES];

    _Atomic uint64_t dropped;
    // The writer thread alone uses `logged_count` and `logged_ns`.
    uint64_t logged_count; // number of dropped lines that were already reported in the log
    uint64_t logged_ns;    // time of the last message about dropped lines
};

static const char *find_level_name(enum inf_log_level level)
{
    switch (level) {
    case INF_LOG_ERROR:
        return "error";
    case INF_LOG_WARNING:
        return "warning";
    case INF_LOG_NOTICE:
        return "notice";
    case INF_LOG_INFO:
        return "info";
    case INF_LOG_DEBUG:
        return "debug";
    }
    return "log";
}

// Copies a log line. Characters that could start another line or control a terminal are replaced.
static void copy_clean(char *to, const char *from)
{
    size_t length = strnlen(from, INF_LOG_LINE_BYTES - 1);
    for (size_t i = 0; i < length; i++)
        to[i] = (unsigned char)from[i] < 0x20 || from[i] == 0x7f ? '?' : from[i];
    to[length] = '\0';
}

// Puts one log line into the ring. This callback of the log sink may run on any thread, and never
// blocks for long.
static void push_line(void *context, enum inf_log_level level, const char *text)
{
    struct inf_log_writer *writer = context;
    inf_mutex_lock(&writer->mutex);
    bool left_out = level <= INF_LOG_WARNING &&
                    !inf_log_limit_admit(&writer->limit, text, writer->kind_lines, inf_clock_ns());
    bool room = writer->count < INF_LOG_RING_LINES;
    if (room && !left_out) {
        struct line *line = &writer->lines[(writer->first + writer->count) % INF_LOG_RING_LINES];
        line->level = level;
        copy_clean(line->text, text);
        writer->count++;
    }
    // The first line that is left out wakes the thread, which must then wait with a timeout.
    bool wake = left_out ? writer->limit.left_out == 1 : room;
    inf_mutex_unlock(&writer->mutex);
    if (wake)
        inf_cond_signal(&writer->filled);
    else if (!left_out)
        atomic_fetch_add(&writer->dropped, 1);
}

// --- the writer thread ---

// Returns true if the writer thread is stopping and its time for the remaining lines is up.
static bool is_out_of_time(struct inf_log_writer *writer)
{
    inf_mutex_lock(&writer->mutex);
    bool over = writer->stopping && inf_clock_ns() >= writer->stop_ns;
    inf_mutex_unlock(&writer->mutex);
    return over;
}

// Waits until the descriptor accepts a line without blocking. If poll() reports it writable, a pipe
// has room for 4096 bytes, and the journal's socket for half a send buffer. O_NONBLOCK cannot be
// used, because the process that started the daemon shares stderr. Returns false if the line cannot
// be written.
static bool wait_writable(struct inf_log_writer *writer, int fd)
{
    while (!is_out_of_time(writer)) {
        struct pollfd poller = {.fd = fd, .events = POLLOUT};
        int ready = poll(&poller, 1, POLL_MS);
        if (ready > 0)
            return (poller.revents & POLLOUT) != 0 && (poller.revents & (POLLERR | POLLNVAL)) == 0;
        if (ready < 0 && errno != EINTR)
            return false;
    }
    return false;
}

// Sends a line to entry_fd as a journal entry with fields. If that fails, closes entry_fd and
// returns false; then this line and all later lines go to `fd`.
static bool send_entry(struct inf_log_writer *writer, const struct line *line)
{
    char entry[INF_JOURNAL_ENTRY_BYTES];
    size_t size = inf_journal_encode(entry, line->level, line->text);
    while (wait_writable(writer, writer->entry_fd)) {
        if (send(writer->entry_fd, entry, size, MSG_NOSIGNAL) == (ssize_t)size)
            return true;
        if (errno != EINTR && errno != EAGAIN)
            break;
    }
    close(writer->entry_fd);
    writer->entry_fd = -1;
    return false;
}

// Writes one line. Returns false if it is lost.
static bool write_line(struct inf_log_writer *writer, const struct line *line)
{
    if (writer->entry_fd >= 0 && send_entry(writer, line))
        return true;
    char text[INF_LOG_LINE_BYTES + 16];
    int size =
        writer->journal
            ? snprintf(text, sizeof text, "<%d>%s\n", (int)line->level, line->text)
            : snprintf(text, sizeof text, "%s %s\n", find_level_name(line->level), line->text);
    for (int done = 0; done < size;) {
        if (!wait_writable(writer, writer->fd))
            return false;
        ssize_t written = write(writer->fd, text + done, (size_t)(size - done));
        if (written < 0 && errno != EINTR && errno != EAGAIN)
            return false;
        done += written > 0 ? (int)written : 0;
    }
    return true;
}

// Logs how many lines were dropped since the last such message. This happens at most once a second,
// or when no other line is left to write.
static void log_dropped(struct inf_log_writer *writer, bool idle)
{
    uint64_t dropped = atomic_load(&writer->dropped);
    if (dropped == writer->logged_count ||
        (!idle && inf_clock_ns() - writer->logged_ns < INF_NS_PER_S))
        return;
    struct line line = {.level = INF_LOG_WARNING};
    snprintf(line.text, sizeof line.text, "log lines dropped count=%llu",
             (unsigned long long)(dropped - writer->logged_count));
    writer->logged_ns = inf_clock_ns();
    if (write_line(writer, &line))
        writer->logged_count = dropped;
}

// Takes the oldest line of the ring, or if the ring is empty, a report about lines that were left
// out. Returns false if there is no such report either.
static bool take_line(struct inf_log_writer *writer, struct line *line)
    INF_ATTR(requires_capability(writer->mutex))
{
    if (writer->count > 0) {
        *line = writer->lines[writer->first];
        writer->first = (writer->first + 1) % INF_LOG_RING_LINES;
        writer->count--;
        return true;
    }
    line->level = INF_LOG_WARNING;
    return inf_log_limit_next_report(&writer->limit, writer->stopping, inf_clock_ns(), line->text,
                                     sizeof line->text);
}

// Waits for a line and takes it. *last tells whether the ring is empty afterwards. Returns false if
// the writer is stopping and nothing is left.
static bool pop_line(struct inf_log_writer *writer, struct line *line, bool *last)
{
    inf_mutex_lock(&writer->mutex);
    bool found;
    while (!(found = take_line(writer, line)) && !writer->stopping) {
        if (writer->limit.left_out > 0)
            (void)inf_cond_wait_until(&writer->filled, &writer->mutex,
                                      inf_clock_ns() + INF_NS_PER_S);
        else
            inf_cond_wait(&writer->filled, &writer->mutex);
    }
    *last = writer->count == 0;
    inf_mutex_unlock(&writer->mutex);
    return found;
}

static void write_lines(void *context)
{
    struct inf_log_writer *writer = context;
    struct line line;
    bool last;
    while (pop_line(writer, &line, &last)) {
        if (!write_line(writer, &line))
            atomic_fetch_add(&writer->dropped, 1);
        log_dropped(writer, last);
    }
}

// --- creating and destroying a log writer ---

// Returns true if systemd connected this descriptor to the journal. In that case JOURNAL_STREAM
// holds the device and inode of the descriptor.
static bool is_journal(int fd)
{
    const char *stream = getenv("JOURNAL_STREAM");
    unsigned long long device, inode;
    struct stat status;
    return stream != NULL && sscanf(stream, "%llu:%llu", &device, &inode) == 2 &&
           fstat(fd, &status) == 0 && status.st_dev == device && status.st_ino == inode;
}

enum inf_code inf_log_writer_create(struct inf_log_writer **out_writer,
                                    const struct inf_log_options *options, struct inf_error *err)
{
    struct inf_log_writer *writer = calloc(1, sizeof *writer);
    if (writer == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for the log");
    inf_mutex_init(&writer->mutex);
    inf_cond_init(&writer->filled);
    for (int part = 0; part < INF_LOG_PARTS; part++)
        writer->logs[part] = (struct inf_log){options->levels[part], push_line, writer};
    writer->kind_lines = options->kind_lines;
    writer->fd = options->fd;
    writer->journal = is_journal(options->fd);
    writer->entry_fd = writer->journal && options->journal_socket != NULL
                           ? inf_journal_open(options->journal_socket)
                           : -1;
    enum inf_code code = inf_thread_start(&writer->thread, "inferd-log", write_lines, writer, err);
    if (code != INF_OK) {
        inf_log_writer_destroy(&writer);
        return code;
    }
    *out_writer = writer;
    return INF_OK;
}

void inf_log_writer_destroy(struct inf_log_writer **writer)
{
    struct inf_log_writer *self = *writer;
    if (self == NULL)
        return;
    inf_mutex_lock(&self->mutex);
    self->stopping = true;
    self->stop_ns = inf_clock_ns() + FLUSH_NS;
    inf_mutex_unlock(&self->mutex);
    inf_cond_broadcast(&self->filled);
    inf_thread_join(&self->thread);
    if (self->entry_fd >= 0)
        close(self->entry_fd);
    inf_cond_fini(&self->filled);
    inf_mutex_fini(&self->mutex);
    free(self);
    *writer = NULL;
}

void inf_log_writer_set_levels(struct inf_log_writer *writer,
                               const enum inf_log_level levels[INF_LOG_PARTS])
{
    for (int part = 0; part < INF_LOG_PARTS; part++)
        atomic_store_explicit(&writer->logs[part].level, levels[part], memory_order_relaxed);
}

void inf_log_writer_set_kind_lines(struct inf_log_writer *writer, uint32_t kind_lines)
{
    inf_mutex_lock(&writer->mutex);
    writer->kind_lines = kind_lines;
    inf_mutex_unlock(&writer->mutex);
}

const struct inf_log *inf_log_writer_logs(const struct inf_log_writer *writer)
{
    return writer->logs;
}

uint64_t inf_log_writer_dropped(const struct inf_log_writer *writer)
{
    return atomic_load(&writer->dropped);
}
