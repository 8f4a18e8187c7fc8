// SPDX-License-Identifier: Apache-2.0
// Spans as OTLP/JSON lines, in a file that is rotated, in a FIFO without a reader, and in
// datagrams. Expected lines are written by hand from the protocol of OpenTelemetry.
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "backends/base/clock.h"
#include "backends/base/role.h"
#include "daemon/observe/otlp.h"
#include "daemon/observe/trace_writer.h"

static struct inf_request_record make_record(void)
{
    return (struct inf_request_record){
        .client_id = 3,
        .stream_id = 7,
        .uid = 1000,
        .model = "m",
        .version = "2",
        .device = "cpu",
        .rows = 1,
        .accepted_ns = 100,
        .ran = true,
        .worker = 5,
        .batch_rows = 4,
        .start_ns = 200,
        .begin_ns = 300,
        .end_ns = 400,
        .done_ns = 500,
        .ended_ns = 600,
        .trace = {.recorded = true,
                  .trace_id = {0x4b, 0xf9, 0x2f, 0x35, 0x77, 0xb3, 0x4d, 0xa6, 0xa3, 0xce, 0x92,
                               0x9d, 0x0e, 0x0e, 0x47, 0x36},
                  .parent_id = {0x00, 0xf0, 0x67, 0xaa, 0x0b, 0xa9, 0x02, 0xb7},
                  .span_id = 0x10,
                  .state = "a=\"b\""},
    };
}

// The pieces of the line that must be printed for the record of make_record(). Spans differ in
// their ids, names, times and attributes.
static const char *const wanted_pieces[] = {
    "{\"resourceSpans\":[{\"resource\":{\"attributes\":[",
    "{\"key\":\"service.name\",\"value\":{\"stringValue\":\"inferd\"}},",
    "{\"key\":\"service.version\",\"value\":{\"stringValue\":\"9.8\"}},",
    "{\"key\":\"process.pid\",\"value\":{\"intValue\":\"42\"}}",
    "]},\"scopeSpans\":[{\"scope\":{\"name\":\"inferd\"},\"spans\":[",
    "{\"traceId\":\"4bf92f3577b34da6a3ce929d0e0e4736\",\"spanId\":\"0000000000000010\",",
    "\"parentSpanId\":\"00f067aa0ba902b7\",\"traceState\":\"a=\\\"b\\\"\",",
    "\"name\":\"infer m\",\"kind\":2,",
    "\"startTimeUnixNano\":\"1700000000000000100\",",
    "\"endTimeUnixNano\":\"1700000000000000600\",\"attributes\":[",
    "{\"key\":\"inferd.model\",\"value\":{\"stringValue\":\"m\"}},",
    "{\"key\":\"inferd.version\",\"value\":{\"stringValue\":\"2\"}},",
    "{\"key\":\"inferd.device\",\"value\":{\"stringValue\":\"cpu\"}},",
    "{\"key\":\"inferd.uid\",\"value\":{\"intValue\":\"1000\"}},",
    "{\"key\":\"inferd.client\",\"value\":{\"intValue\":\"3\"}},",
    "{\"key\":\"inferd.stream\",\"value\":{\"intValue\":\"7\"}},",
    "{\"key\":\"inferd.rows\",\"value\":{\"intValue\":\"1\"}}",
    "],\"status\":{\"code\":0}},",
    "{\"traceId\":\"4bf92f3577b34da6a3ce929d0e0e4736\",\"spanId\":\"0000000000000011\",",
    "\"parentSpanId\":\"0000000000000010\",\"traceState\":\"a=\\\"b\\\"\",",
    "\"name\":\"queue\",\"kind\":1,",
    "\"startTimeUnixNano\":\"1700000000000000100\",",
    "\"endTimeUnixNano\":\"1700000000000000200\",\"attributes\":[",
    "],\"status\":{\"code\":0}},",
    "{\"traceId\":\"4bf92f3577b34da6a3ce929d0e0e4736\",\"spanId\":\"0000000000000012\",",
    "\"parentSpanId\":\"0000000000000010\",\"traceState\":\"a=\\\"b\\\"\",",
    "\"name\":\"batch\",\"kind\":1,",
    "\"startTimeUnixNano\":\"1700000000000000200\",",
    "\"endTimeUnixNano\":\"1700000000000000500\",\"attributes\":[",
    "{\"key\":\"inferd.worker\",\"value\":{\"intValue\":\"5\"}},",
    "{\"key\":\"inferd.batch_rows\",\"value\":{\"intValue\":\"4\"}}",
    "],\"status\":{\"code\":0}},",
    "{\"traceId\":\"4bf92f3577b34da6a3ce929d0e0e4736\",\"spanId\":\"0000000000000013\",",
    "\"parentSpanId\":\"0000000000000012\",\"traceState\":\"a=\\\"b\\\"\",",
    "\"name\":\"device\",\"kind\":1,",
    "\"startTimeUnixNano\":\"1700000000000000300\",",
    "\"endTimeUnixNano\":\"1700000000000000400\",\"attributes\":[",
    "],\"status\":{\"code\":0}},",
    "{\"traceId\":\"4bf92f3577b34da6a3ce929d0e0e4736\",\"spanId\":\"0000000000000014\",",
    "\"parentSpanId\":\"0000000000000010\",\"traceState\":\"a=\\\"b\\\"\",",
    "\"name\":\"write\",\"kind\":1,",
    "\"startTimeUnixNano\":\"1700000000000000500\",",
    "\"endTimeUnixNano\":\"1700000000000000600\",\"attributes\":[",
    "],\"status\":{\"code\":0}}",
    "]}]}]}\n",
};

Test(otlp, a_request_is_one_line_of_nested_spans)
{
    struct inf_request_record record = make_record();
    char line[INF_OTLP_LINE_BYTES];
    char wanted[INF_OTLP_LINE_BYTES] = "";
    const struct inf_otlp_source source = {
        .version = "9.8", .wall_offset_ns = 1700000000000000000, .process = 42};
    for (size_t i = 0; i < sizeof wanted_pieces / sizeof wanted_pieces[0]; i++)
        strcat(wanted, wanted_pieces[i]);
    size_t size = inf_otlp_print_line(&record, &source, line);
    cr_assert_gt(size, 0u);
    line[size] = '\0';
    cr_expect_str_eq(line, wanted);
}

Test(otlp, a_request_that_never_ran_has_two_spans_and_an_error)
{
    struct inf_request_record record = make_record();
    char line[INF_OTLP_LINE_BYTES];
    const struct inf_otlp_source source = {.version = "9.8", .wall_offset_ns = 0, .process = 42};
    record.ran = false;
    record.start_ns = record.begin_ns = record.end_ns = record.done_ns = 0;
    record.code = INF_DEADLINE;
    record.reason = INF_REASON_IN_QUEUE;
    memset(record.trace.parent_id, 0, sizeof record.trace.parent_id);
    size_t size = inf_otlp_print_line(&record, &source, line);
    cr_assert_gt(size, 0u);
    line[size] = '\0';
    cr_expect_not_null(strstr(line, "\"name\":\"infer m\""));
    cr_expect_not_null(strstr(line,
                              "\"name\":\"queue\",\"kind\":1,\"startTimeUnixNano\":\"100\","
                              "\"endTimeUnixNano\":\"600\""));
    cr_expect_null(strstr(line, "\"name\":\"batch\""));
    cr_expect_null(strstr(line, "\"name\":\"device\""));
    cr_expect_null(strstr(line, "\"name\":\"write\""));
    cr_expect_not_null(strstr(line, "\"status\":{\"code\":2,\"message\":\"DEADLINE_EXCEEDED\"}"));
    cr_expect_not_null(
        strstr(line, "{\"key\":\"inferd.reason\",\"value\":{\"stringValue\":\"IN_QUEUE\"}}"));
    const char *parent = strstr(line, "parentSpanId");
    cr_assert_not_null(parent);
    cr_expect_gt(parent, strstr(line, "\"name\":\"infer m\""), "the first span has no parent");
}

Test(otlp, the_longest_texts_fit)
{
    struct inf_request_record record = make_record();
    char line[INF_OTLP_LINE_BYTES];
    const struct inf_otlp_source source = {
        .version = "0.1.0", .wall_offset_ns = 1700000000000000000, .process = 4194304};
    memset(record.model, 'm', sizeof record.model - 1);
    memset(record.version, '1', sizeof record.version - 1);
    memset(record.device, 'd', sizeof record.device - 1);
    memset(record.trace.state, '"', INF_LIMIT_TRACE_STATE);
    record.client_id = record.stream_id = record.accepted_ns = UINT64_MAX / 4;
    record.start_ns = record.begin_ns = record.end_ns = UINT64_MAX / 4;
    record.done_ns = record.ended_ns = UINT64_MAX / 4;
    record.code = INF_CANCELLED;
    record.reason = INF_REASON_BY_ADMIN;
    cr_expect_gt(inf_otlp_print_line(&record, &source, line), 0u);
}

// --- the writer ---

static char folder[64];

static void make_folder(void)
{
    snprintf(folder, sizeof folder, "/tmp/inferd-trace-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
}

static struct inf_trace_writer *make_writer(const char *file, uint64_t bytes_max,
                                            const char *socket)
{
    struct inf_trace_writer *writer = NULL;
    struct inf_error err = {0};
    const struct inf_trace_writer_options options = {
        .file = file, .file_bytes_max = bytes_max, .socket = socket, .version = "9.8"};
    cr_assert_eq(inf_trace_writer_create(&writer, &options, &err), INF_OK, "%s", err.text);
    return writer;
}

// Waits until `count` records are written or dropped.
static struct inf_trace_writer_totals wait_for(const struct inf_trace_writer *writer,
                                               uint64_t count)
{
    struct inf_trace_writer_totals totals;
    do {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        totals = inf_trace_writer_read_totals(writer);
    } while (totals.written + totals.dropped < count);
    return totals;
}

static off_t size_of(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 ? status.st_size : -1;
}

Test(trace_writer, rotates_its_file, .init = make_folder, .timeout = 30)
{
    char path[128];
    char old[128];
    snprintf(path, sizeof path, "%s/spans", folder);
    snprintf(old, sizeof old, "%s/spans.1", folder);
    struct inf_request_record record = make_record();
    struct inf_trace_writer *writer = make_writer(path, 6000, "");
    inf_role_enter_loop();
    inf_trace_writer_push(writer, &record);
    (void)wait_for(writer, 1);
    off_t line = size_of(path);
    cr_assert_gt(line, 1000);
    uint64_t lines = (uint64_t)(6000 / line);
    for (uint64_t i = 1; i < lines; i++)
        inf_trace_writer_push(writer, &record);
    (void)wait_for(writer, lines);
    cr_expect_eq(size_of(path), (off_t)lines * line);
    cr_expect_eq(size_of(old), -1);
    inf_trace_writer_push(writer, &record);
    struct inf_trace_writer_totals totals = wait_for(writer, lines + 1);
    cr_expect_eq(totals.written, lines + 1);
    cr_expect_eq(size_of(path), line);
    cr_expect_eq(size_of(old), (off_t)lines * line);
    inf_role_leave();
    inf_trace_writer_destroy(&writer);
    cr_expect_null(writer);
    // A second writer appends to the file that the first writer left.
    writer = make_writer(path, 6000, "");
    inf_role_enter_loop();
    inf_trace_writer_push(writer, &record);
    inf_role_leave();
    inf_trace_writer_destroy(&writer);
    cr_expect_eq(size_of(path), 2 * line, "the rest is written at the end");
}

// The FIFO is not read: its buffer fills, then the ring; further records are dropped and counted.
// It has no size that is limited, so that it is not renamed.
Test(trace_writer, drops_and_counts_what_is_not_read, .init = make_folder, .timeout = 30)
{
    char path[128];
    char old[128];
    snprintf(path, sizeof path, "%s/fifo", folder);
    snprintf(old, sizeof old, "%s/fifo.1", folder);
    cr_assert_eq(mkfifo(path, 0600), 0);
    int reader = open(path, O_RDONLY | O_NONBLOCK);
    cr_assert_geq(reader, 0);
    struct inf_request_record record = make_record();
    struct inf_trace_writer *writer = make_writer(path, 6000, "");
    inf_role_enter_loop();
    for (int i = 0; i < 10000; i++)
        inf_trace_writer_push(writer, &record);
    struct inf_trace_writer_totals totals = inf_trace_writer_read_totals(writer);
    cr_expect_geq(totals.dropped, 10000u - 1024u - 64u, "a pipe has room for fewer than 64 lines");
    cr_expect_leq(totals.dropped, 10000u - 1024u);
    uint64_t before_ns = inf_clock_ns();
    inf_role_leave();
    inf_trace_writer_destroy(&writer);
    cr_expect_lt(inf_clock_ns() - before_ns, 5 * INF_NS_PER_S, "the end does not wait");
    cr_expect_eq(size_of(old), -1);
    close(reader);
}

Test(trace_writer, sends_datagrams, .init = make_folder, .timeout = 30)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char line[INF_OTLP_LINE_BYTES];
    snprintf(address.sun_path, sizeof address.sun_path, "%s/socket", folder);
    struct inf_request_record record = make_record();
    struct inf_trace_writer *writer = make_writer("", 0, address.sun_path);
    inf_role_enter_loop();
    inf_trace_writer_push(writer, &record);
    cr_expect_eq(wait_for(writer, 1).dropped, 1u, "the socket does not exist yet");
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    cr_assert_eq(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    inf_trace_writer_push(writer, &record);
    struct inf_trace_writer_totals totals = wait_for(writer, 2);
    cr_expect_eq(totals.written, 1u);
    ssize_t size = recv(fd, line, sizeof line, MSG_DONTWAIT);
    cr_assert_gt(size, 0);
    cr_expect_eq(line[size - 1], '\n');
    cr_expect_eq(memcmp(line, "{\"resourceSpans\":[", 18), 0);
    inf_role_leave();
    inf_trace_writer_destroy(&writer);
    close(fd);
}

Test(trace_writer, names_what_cannot_be_opened)
{
    struct inf_trace_writer *writer = NULL;
    struct inf_error err = {0};
    struct inf_trace_writer_options options = {
        .file = "/nowhere/at/all", .file_bytes_max = 65536, .socket = "", .version = "1"};
    cr_expect_eq(inf_trace_writer_create(&writer, &options, &err), INF_INVALID);
    cr_expect_not_null(strstr(err.text, "trace_file: No such file"), "%s", err.text);
    cr_expect_null(writer);
    char path[256];
    memset(path, 'x', sizeof path);
    path[sizeof path - 1] = '\0';
    options.file = "";
    options.socket = path;
    cr_expect_eq(inf_trace_writer_create(&writer, &options, &err), INF_INVALID);
    cr_expect_not_null(strstr(err.text, "at most 107"), "%s", err.text);
}
