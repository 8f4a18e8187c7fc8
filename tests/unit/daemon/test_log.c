// SPDX-License-Identifier: Apache-2.0
// The log writer: lines, journal, full pipes and dropped lines.
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "backends/base/clock.h"
#include "backends/base/thread.h"
#include "daemon/system/journal.h"
#include "daemon/system/log.h"

// MESSAGE_ID of the line "model failed" in daemon/system/journal.def; it never changes.
#define MODEL_FAILED_ID "985c8bd85b8f4823bd122f3d0b3cfe77"

static struct inf_log_writer *make_writer(int fd, enum inf_log_level level)
{
    struct inf_log_writer *writer = NULL;
    struct inf_error err = {0};
    struct inf_log_options options = {.fd = fd};
    for (int part = 0; part < INF_LOG_PARTS; part++)
        options.levels[part] = level;
    cr_assert_eq(inf_log_writer_create(&writer, &options, &err), INF_OK, "%s", err.text);
    return writer;
}

// Reads everything from a pipe whose writing end is closed. The caller frees the result.
static char *read_all(int fd)
{
    size_t size = 0;
    char *text = malloc(4u << 20);
    ssize_t got;
    while ((got = read(fd, text + size, (4u << 20) - 1 - size)) > 0)
        size += (size_t)got;
    text[size] = '\0';
    return text;
}

// Counts how often `part` occurs in `text`.
static size_t count_of(const char *text, const char *part)
{
    size_t count = 0;
    for (; (text = strstr(text, part)) != NULL; text++)
        count++;
    return count;
}

// Returns how many lines were dropped according to the log: the sum of the counts in all messages
// about dropped lines.
static uint64_t told_of(const char *text)
{
    static const char part[] = "warning log lines dropped count=";
    uint64_t sum = 0;
    for (; (text = strstr(text, part)) != NULL; text++)
        sum += strtoull(text + strlen(part), NULL, 10);
    return sum;
}

Test(log, lines_carry_their_level_and_stay_one_line)
{
    unsetenv("JOURNAL_STREAM");
    int fds[2];
    cr_assert_eq(pipe(fds), 0);
    struct inf_log_writer *writer = make_writer(fds[1], INF_LOG_INFO);
    const struct inf_log *log = inf_log_writer_logs(writer);
    inf_log(log, INF_LOG_ERROR, "broken thing=%s", "a\nerror fake \x1b[31m\x7f");
    inf_log(log, INF_LOG_WARNING, "w");
    inf_log(log, INF_LOG_NOTICE, "n \xc3\xa9");
    inf_log(log, INF_LOG_INFO, "i");
    inf_log(log, INF_LOG_DEBUG, "not wanted");
    inf_log_writer_destroy(&writer);
    cr_expect_null(writer);
    close(fds[1]);
    char *text = read_all(fds[0]);
    cr_expect_str_eq(text,
                     "error broken thing=a?error fake ?[31m?\n"
                     "warning w\nnotice n \xc3\xa9\ninfo i\n");
    free(text);
}

Test(log, long_lines_are_cut)
{
    int fds[2];
    cr_assert_eq(pipe(fds), 0);
    struct inf_log_writer *writer = make_writer(fds[1], INF_LOG_INFO);
    char longest[5000];
    memset(longest, 'x', sizeof longest);
    longest[4999] = '\0';
    const struct inf_log *log = inf_log_writer_logs(writer);
    log->write(log->context, INF_LOG_INFO, longest);
    inf_log_writer_destroy(&writer);
    close(fds[1]);
    char *text = read_all(fds[0]);
    cr_expect_eq(strlen(text), strlen("info ") + 1023 + 1);
    cr_expect_eq(count_of(text, "\n"), 1u);
    free(text);
}

// Receives one datagram and returns it as a text, which is valid until the next call.
static const char *receive_entry(int fd)
{
    static char entry[8192];
    ssize_t size = recv(fd, entry, sizeof entry - 1, 0);
    cr_assert_gt(size, 0);
    entry[size] = '\0';
    return entry;
}

Test(log, the_socket_of_the_journal_gets_entries_with_fields, .timeout = 30)
{
    int fds[2];
    struct stat status;
    char stream[64];
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char directory[] = "/tmp/inferd-journal-XXXXXX";
    cr_assert_not_null(mkdtemp(directory));
    snprintf(address.sun_path, sizeof address.sun_path, "%s/socket", directory);
    int journal = socket(AF_UNIX, SOCK_DGRAM, 0);
    cr_assert_eq(bind(journal, (struct sockaddr *)&address, sizeof address), 0);
    cr_assert_eq(pipe(fds), 0);
    cr_assert_eq(fstat(fds[1], &status), 0);
    snprintf(stream, sizeof stream, "%llu:%llu", (unsigned long long)status.st_dev,
             (unsigned long long)status.st_ino);
    setenv("JOURNAL_STREAM", stream, 1);
    struct inf_log_writer *writer = NULL;
    struct inf_log_options options = {.fd = fds[1], .journal_socket = address.sun_path};
    options.levels[INF_LOG_PART_DAEMON] = INF_LOG_INFO;
    cr_assert_eq(inf_log_writer_create(&writer, &options, NULL), INF_OK);
    const struct inf_log *log = inf_log_writer_logs(writer);
    inf_log(log, INF_LOG_WARNING, "model failed name=m reason=\"no such file\"");
    cr_expect_str_eq(receive_entry(journal),
                     "MESSAGE=model failed name=m reason=\"no such file\"\n"
                     "SYSLOG_IDENTIFIER=inferd\nPRIORITY=4\n"
                     "MESSAGE_ID=" MODEL_FAILED_ID
                     "\n"
                     "INFERD_MODEL=m\nINFERD_REASON=no such file\n");
    // If the socket of the journal is gone, lines are written to the log's descriptor.
    close(journal);
    unlink(address.sun_path);
    rmdir(directory);
    inf_log(log, INF_LOG_NOTICE, "still here");
    inf_log_writer_destroy(&writer);
    close(fds[1]);
    char *text = read_all(fds[0]);
    cr_expect_str_eq(text, "<5>still here\n");
    free(text);
    close(fds[0]);
}

static const char *encode_line(const char *line)
{
    static char entry[INF_JOURNAL_ENTRY_BYTES + 1];
    entry[inf_journal_encode(entry, INF_LOG_INFO, line)] = '\0';
    const char *fields = strstr(entry, "PRIORITY=6\n");
    cr_assert_not_null(fields, "%s", entry);
    return fields + strlen("PRIORITY=6\n");
}

Test(log, fields_are_read_from_the_line)
{
    cr_expect_str_eq(encode_line("nothing to see"), "");
    cr_expect_str_eq(encode_line("a k=v k2=\"v w\" empty= last"),
                     "INFERD_K=v\nINFERD_K2=v w\nINFERD_EMPTY=\n");
    cr_expect_str_eq(encode_line("x name=n"), "INFERD_NAME=n\n", "no model");
    cr_expect_str_eq(encode_line("A=b 1=2 =3 a-b=4"), "", "no names of fields");
    cr_expect_str_eq(encode_line("model failedx"), "", "another kind of line");
    cr_expect_str_eq(encode_line("x k=\"cut"), "INFERD_K=cut\n");
}

Test(log, a_text_of_a_client_changes_no_field)
{
    cr_expect_str_eq(encode_line("request failed uid=1000 error=\"x\" uid=0 error=\"fine\""),
                     "INFERD_UID=1000\nINFERD_ERROR=x\n");
}

Test(log, the_longest_line_with_the_most_fields_fits_an_entry)
{
    char line[INF_LOG_LINE_BYTES];
    char entry[INF_JOURNAL_ENTRY_BYTES];
    size_t size = 0;
    for (int i = 0; size + 8 < sizeof line; i++)
        size += (size_t)snprintf(line + size, sizeof line - size, "k%d=v ", i);
    cr_expect_lt(inf_journal_encode(entry, INF_LOG_INFO, line), sizeof entry);
    memset(line, 'x', sizeof line - 1);
    memcpy(line, "k=", 2);
    line[sizeof line - 1] = '\0';
    cr_expect_lt(inf_journal_encode(entry, INF_LOG_INFO, line), sizeof entry);
}

Test(log, journal_gets_syslog_levels)
{
    int fds[2];
    cr_assert_eq(pipe(fds), 0);
    struct stat status;
    cr_assert_eq(fstat(fds[1], &status), 0);
    char stream[64];
    snprintf(stream, sizeof stream, "%llu:%llu", (unsigned long long)status.st_dev,
             (unsigned long long)status.st_ino);
    setenv("JOURNAL_STREAM", stream, 1);
    struct inf_log_writer *writer = make_writer(fds[1], INF_LOG_DEBUG);
    inf_log(inf_log_writer_logs(writer), INF_LOG_ERROR, "e");
    inf_log(inf_log_writer_logs(writer), INF_LOG_DEBUG, "d");
    inf_log_writer_destroy(&writer);
    close(fds[1]);
    char *text = read_all(fds[0]);
    cr_expect_str_eq(text, "<3>e\n<7>d\n");
    free(text);

    // JOURNAL_STREAM describes another descriptor than this pipe, so expect the plain format.
    cr_assert_eq(pipe(fds), 0);
    setenv("JOURNAL_STREAM", "1:1", 1);
    writer = make_writer(fds[1], INF_LOG_INFO);
    inf_log(inf_log_writer_logs(writer), INF_LOG_INFO, "i");
    inf_log_writer_destroy(&writer);
    close(fds[1]);
    text = read_all(fds[0]);
    cr_expect_str_eq(text, "info i\n");
    free(text);
}

Test(log, an_unread_pipe_blocks_no_thread, .timeout = 30)
{
    int fds[2];
    cr_assert_eq(pipe(fds), 0);
    struct inf_log_writer *writer = make_writer(fds[1], INF_LOG_INFO);
    const struct inf_log *log = inf_log_writer_logs(writer);
    enum {
        LINES = 20000
    };
    for (int i = 0; i < LINES; i++)
        inf_log(log, INF_LOG_INFO, "line number=%d of a length that fills the pipe", i);
    uint64_t dropped = inf_log_writer_dropped(writer);
    // Expect that most lines are dropped: the pipe of 64 KiB takes fewer than 2000 of them, and the
    // ring INF_LOG_RING_LINES.
    cr_expect_gt(dropped, (uint64_t)LINES - 2000 - INF_LOG_RING_LINES - 2);
    cr_expect_lt(dropped, (uint64_t)LINES);

    uint64_t start_ns = inf_clock_ns();
    inf_log_writer_destroy(&writer);
    cr_expect_lt(inf_clock_ns() - start_ns, 10 * INF_NS_PER_S);
    close(fds[1]);
    char *text = read_all(fds[0]);
    size_t written = count_of(text, "info line number=");
    cr_expect_eq(text[strlen(text) - 1], '\n'); // expect only whole lines
    cr_expect_leq(written + dropped, (size_t)LINES);
    cr_expect_geq(written + dropped + INF_LOG_RING_LINES + 1, (size_t)LINES);
    free(text);
}

Test(log, dropped_lines_are_reported, .timeout = 30)
{
    int fds[2];
    cr_assert_eq(pipe(fds), 0);
    struct inf_log_writer *writer = make_writer(fds[1], INF_LOG_INFO);
    const struct inf_log *log = inf_log_writer_logs(writer);
    for (int i = 0; i < 20000; i++)
        inf_log(log, INF_LOG_INFO, "line number=%d of a length that fills the pipe", i);
    uint64_t dropped = inf_log_writer_dropped(writer);
    // After the pipe was emptied, expect that the remaining lines and the count of dropped lines
    // are written.
    char *text = calloc(1, 4u << 20);
    for (size_t size = 0;
         told_of(text) < dropped || count_of(text, "info line number=") + dropped < 20000;) {
        ssize_t got = read(fds[0], text + size, 8192);
        cr_assert_gt(got, 0);
        size += (size_t)got;
    }
    cr_expect_eq(told_of(text), dropped);
    cr_expect_eq(count_of(text, "info line number=") + dropped, 20000u);
    free(text);
    inf_log(log, INF_LOG_INFO, "and on");
    inf_log_writer_destroy(&writer);
    close(fds[1]);
    char *rest = read_all(fds[0]);
    cr_expect(strstr(rest, "info and on\n") != NULL);
    free(rest);
}

Test(log, a_closed_reader_loses_lines_only)
{
    signal(SIGPIPE, SIG_IGN);
    int fds[2];
    cr_assert_eq(pipe(fds), 0);
    close(fds[0]);
    struct inf_log_writer *writer = make_writer(fds[1], INF_LOG_INFO);
    inf_log(inf_log_writer_logs(writer), INF_LOG_INFO, "without a reader");
    for (int i = 0; i < 1000 && inf_log_writer_dropped(writer) == 0; i++)
        usleep(1000);
    cr_expect_eq(inf_log_writer_dropped(writer), 1u);
    inf_log_writer_destroy(&writer);
}

#define THREADS 4
#define EACH    500

static void log_many(void *context)
{
    for (int i = 0; i < EACH; i++)
        inf_log(context, INF_LOG_INFO, "abcdefghijklmnopqrstuvwxyz");
}

struct drain {
    int fd;
    char *text;
};

static void drain_pipe(void *context)
{
    struct drain *self = context;
    self->text = read_all(self->fd);
}

Test(log, counts_every_line_that_many_threads_lose)
{
    unsetenv("JOURNAL_STREAM");
    int fds[2];
    cr_assert_eq(pipe(fds), 0);
    struct inf_log_writer *writer = make_writer(fds[1], INF_LOG_INFO);
    struct drain reader = {.fd = fds[0]};
    struct inf_thread reading = {0}, logging[THREADS] = {0};
    cr_assert_eq(inf_thread_start(&reading, "reader", drain_pipe, &reader, NULL), INF_OK);
    for (int i = 0; i < THREADS; i++)
        cr_assert_eq(inf_thread_start(&logging[i], "logging", log_many,
                                      (void *)inf_log_writer_logs(writer), NULL),
                     INF_OK);
    for (int i = 0; i < THREADS; i++)
        inf_thread_join(&logging[i]);
    uint64_t dropped = inf_log_writer_dropped(writer);
    inf_log_writer_destroy(&writer);
    close(fds[1]);
    inf_thread_join(&reading);
    cr_expect_eq(told_of(reader.text), dropped);
    size_t whole = 0;
    for (char *line = strtok(reader.text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        whole += strcmp(line, "info abcdefghijklmnopqrstuvwxyz") == 0;
        cr_assert(line[0] == 'w' || strlen(line) == 31, "%s", line);
    }
    cr_expect_eq(whole + dropped, (size_t)THREADS * EACH);
    free(reader.text);
}

Test(log, parts_write_at_their_own_levels)
{
    unsetenv("JOURNAL_STREAM");
    int fds[2];
    cr_assert_eq(pipe(fds), 0);
    struct inf_log_writer *writer = make_writer(fds[1], INF_LOG_NOTICE);
    const struct inf_log *logs = inf_log_writer_logs(writer);
    enum inf_log_level levels[INF_LOG_PARTS];
    for (int part = 0; part < INF_LOG_PARTS; part++)
        levels[part] = INF_LOG_NOTICE;
    levels[INF_LOG_PART_SCHEDULER] = INF_LOG_DEBUG;
    inf_log(&logs[INF_LOG_PART_SCHEDULER], INF_LOG_DEBUG, "before");
    inf_log_writer_set_levels(writer, levels);
    inf_log(&logs[INF_LOG_PART_SCHEDULER], INF_LOG_DEBUG, "scheduler");
    inf_log(&logs[INF_LOG_PART_MODEL], INF_LOG_INFO, "model");
    inf_log(&logs[INF_LOG_PART_MODEL], INF_LOG_NOTICE, "loaded");
    inf_log_writer_destroy(&writer);
    close(fds[1]);
    char *text = read_all(fds[0]);
    cr_expect_str_eq(text, "debug scheduler\nnotice loaded\n");
    free(text);
}

Test(log, warnings_of_one_kind_are_limited_and_counted)
{
    unsetenv("JOURNAL_STREAM");
    int fds[2];
    cr_assert_eq(pipe(fds), 0);
    struct inf_log_writer *writer = make_writer(fds[1], INF_LOG_DEBUG);
    const struct inf_log *log = inf_log_writer_logs(writer);
    inf_log_writer_set_kind_lines(writer, 3);
    for (int i = 0; i < 10; i++) {
        inf_log(log, INF_LOG_WARNING, "client refused uid=%d error=\"x\"", i);
        inf_log(log, INF_LOG_ERROR, "device lost device=%d", i);
        inf_log(log, INF_LOG_NOTICE, "admin act method=%d", i);
    }
    inf_log_writer_destroy(&writer);
    close(fds[1]);
    char *text = read_all(fds[0]);
    cr_expect_eq(count_of(text, "warning client refused uid="), 3u);
    cr_expect_eq(count_of(text, "error device lost device="), 3u);
    cr_expect_eq(count_of(text, "notice admin act method="), 10u, "acts of admins are all logged");
    cr_expect_eq(count_of(text, "warning log lines left out count=7 kind=\"client refused\"\n"),
                 1u);
    cr_expect_eq(count_of(text, "warning log lines left out count=7 kind=\"device lost\"\n"), 1u);
    cr_expect_eq(told_of(text), 0u, "lines that are left out are not dropped");
    free(text);
}
