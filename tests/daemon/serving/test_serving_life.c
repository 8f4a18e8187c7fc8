// SPDX-License-Identifier: Apache-2.0
// The daemon as a whole: roles, models, connection limits, shutdown.
#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/daemon/fixture.h"

static struct inf_fixture fixture;
static struct inf_raw raw;
static const float rows[32];

static void start_with(const char *const *arguments)
{
    inf_fixture_start(&fixture, arguments);
    inf_raw_open(&raw, fixture.socket);
}

static void start_server(void)
{
    start_with(NULL);
}

static void stop_server(void)
{
    inf_raw_close(&raw);
    inf_fixture_stop(&fixture);
}

TestSuite(serving_life, .init = start_server, .fini = stop_server, .timeout = 120);

static uint64_t send_add(struct inf_raw *client)
{
    union inf_message message;
    inf_add_request(&message, 2);
    return inf_raw_request(client, INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST, &message,
                           (struct inf_span){(const uint8_t *)rows, 96});
}

static uint64_t send_slow(struct inf_raw *client, const char *model)
{
    union inf_message message;
    inf_slow_request(&message);
    message.infer_request.model_name = model;
    return inf_raw_request(client, INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST, &message,
                           inf_slow_data());
}

static void call_method(struct inf_raw *client, uint16_t method, enum inf_message_kind kind,
                        const union inf_message *message)
{
    inf_raw_call(client, method, kind, message, (struct inf_span){0});
}

Test(serving_life, reports_its_metadata)
{
    call_method(&raw, INF_METHOD_SERVER_LIVE, INF_MESSAGE_EMPTY, NULL);
    inf_raw_decode(&raw, INF_MESSAGE_LIVE_REPLY);
    cr_assert(raw.message.flag.value);
    call_method(&raw, INF_METHOD_SERVER_READY, INF_MESSAGE_EMPTY, NULL);
    inf_raw_decode(&raw, INF_MESSAGE_READY_REPLY);
    cr_assert(raw.message.flag.value);
    call_method(&raw, INF_METHOD_SERVER_METADATA, INF_MESSAGE_EMPTY, NULL);
    inf_raw_decode(&raw, INF_MESSAGE_SERVER_METADATA);
    cr_assert_str_eq(raw.message.server_metadata.name, "inferd");
    cr_assert_gt(raw.message.server_metadata.extension_count, 0);

    union inf_message message = {.model = {.name = "conv"}};
    call_method(&raw, INF_METHOD_MODEL_METADATA, INF_MESSAGE_MODEL_METADATA_REQUEST, &message);
    inf_raw_decode(&raw, INF_MESSAGE_MODEL_METADATA);
    const struct inf_model_metadata *model = &raw.message.model_metadata;
    cr_assert_str_eq(model->name, "conv");
    cr_assert_str_eq(model->version, "1");
    cr_assert_eq(model->input_count, 1);
    cr_assert_str_eq(model->inputs[0].name, "x");
    cr_assert_eq(model->inputs[0].dtype, INF_DTYPE_F32);
    cr_assert(inf_shape_equal(&model->inputs[0].shape, &INF_SHAPE(INF_DIM_UNKNOWN, 8, 8, 3)));
    cr_assert_eq(model->output_count, 1);

    call_method(&raw, INF_METHOD_REPOSITORY_INDEX, INF_MESSAGE_EMPTY, NULL);
    inf_raw_decode(&raw, INF_MESSAGE_MODEL_INDEX);
    cr_assert_eq(raw.message.model_index.count, 4);
    cr_assert_str_eq(raw.message.model_index.entries[0].name, "add");
    cr_assert_str_eq(raw.message.model_index.entries[0].state, "READY");
    cr_assert_str_eq(raw.message.model_index.entries[3].name, "slow");

    call_method(&raw, INF_METHOD_DEVICE_LIST, INF_MESSAGE_EMPTY, NULL);
    inf_raw_decode(&raw, INF_MESSAGE_DEVICE_INDEX);
    const struct inf_device_index *devices = &raw.message.device_index;
    cr_assert_geq(devices->count, 1);
    cr_assert_str_eq(devices->entries[devices->count - 1].name, "ref");
    cr_assert_str_eq(devices->entries[devices->count - 1].health, "ok");

    struct inf_server_status status = inf_raw_server_status(&raw);
    cr_assert_str_eq(status.state, "ready");
    cr_assert_eq(status.models_ready, 4);
    cr_assert_gt(status.uptime_ns, 0);
    cr_assert_gt(status.resident_bytes, 1 << 20);

    message.model.name = "absent";
    call_method(&raw, INF_METHOD_MODEL_METADATA, INF_MESSAGE_MODEL_METADATA_REQUEST, &message);
    inf_raw_check_failure(&raw, INF_NOT_FOUND, INF_REASON_MODEL_NOT_FOUND);
    // Send data in a request whose method takes none, and expect an error.
    inf_raw_call(&raw, INF_METHOD_SERVER_LIVE, INF_MESSAGE_EMPTY, NULL,
                 (struct inf_span){(const uint8_t *)rows, 4});
    inf_raw_check_failure(&raw, INF_INVALID, INF_REASON_SIZE_MISMATCH);
}

Test(serving_life, lets_only_admins_load_and_unload)
{
    const union inf_message message = {.model = {.name = "add"}};
    call_method(&raw, INF_METHOD_REPOSITORY_MODEL_LOAD, INF_MESSAGE_MODEL_LOAD_REQUEST, &message);
    inf_raw_check_failure(&raw, INF_DENIED, INF_REASON_ROLE);
    call_method(&raw, INF_METHOD_REPOSITORY_MODEL_UNLOAD, INF_MESSAGE_MODEL_UNLOAD_REQUEST,
                &message);
    inf_raw_check_failure(&raw, INF_DENIED, INF_REASON_ROLE);

    struct inf_raw admin;
    inf_raw_open(&admin, fixture.admin_socket);
    cr_assert_str_eq(admin.message.hello_ack.role, "admin");
    call_method(&admin, INF_METHOD_REPOSITORY_MODEL_UNLOAD, INF_MESSAGE_MODEL_UNLOAD_REQUEST,
                &message);
    cr_assert_eq(admin.frame.header.flags, INF_FRAME_FINAL);
    send_add(&raw);
    inf_raw_expect(&raw, INF_FRAME_RESPONSE);
    cr_assert_eq(raw.frame.header.flags, INF_FRAME_FINAL | INF_FRAME_FLAG_ERROR);

    // Expect progress events from a load, and then its end.
    uint64_t stream =
        inf_raw_request(&admin, INF_METHOD_REPOSITORY_MODEL_LOAD, INF_MESSAGE_MODEL_LOAD_REQUEST,
                        &message, (struct inf_span){0});
    int progress = 0;
    for (;;) {
        inf_raw_expect(&admin, INF_FRAME_RESPONSE);
        cr_assert_eq(admin.frame.header.stream_id, stream);
        if ((admin.frame.header.flags & INF_FRAME_FINAL) != 0)
            break;
        inf_raw_decode(&admin, INF_MESSAGE_LOAD_PROGRESS);
        cr_assert_gt(strlen(admin.message.load_progress.stage), 0);
        progress++;
    }
    cr_assert_eq(admin.frame.header.flags, INF_FRAME_FINAL);
    cr_assert_gt(progress, 0);
    inf_raw_expect_infer(&raw, send_add(&raw));

    const union inf_message absent = {.model = {.name = "absent"}};
    call_method(&admin, INF_METHOD_REPOSITORY_MODEL_LOAD, INF_MESSAGE_MODEL_LOAD_REQUEST, &absent);
    inf_raw_check_failure(&admin, INF_NOT_FOUND, INF_REASON_MODEL_NOT_FOUND);
    // A model that exists nowhere does not stay in the list.
    call_method(&admin, INF_METHOD_REPOSITORY_MODEL_UNLOAD, INF_MESSAGE_MODEL_UNLOAD_REQUEST,
                &absent);
    inf_raw_check_failure(&admin, INF_NOT_FOUND, INF_REASON_MODEL_NOT_FOUND);
    inf_raw_close(&admin);
}

// Makes each further load of the model slow take a second or more.
static void make_slow_load_long(void)
{
    inf_fixture_write_settings(&fixture, "slow", "device = ref\nwarmup = yes\n");
}

Test(serving_life, a_request_waits_while_its_model_loads)
{
    const union inf_message slow = {.model = {.name = "slow"}};
    union inf_message message;
    struct inf_raw admin;
    inf_raw_open(&admin, fixture.admin_socket);
    call_method(&admin, INF_METHOD_REPOSITORY_MODEL_UNLOAD, INF_MESSAGE_MODEL_UNLOAD_REQUEST,
                &slow);
    cr_assert_eq(admin.frame.header.flags, INF_FRAME_FINAL);
    make_slow_load_long();
    inf_raw_request(&admin, INF_METHOD_REPOSITORY_MODEL_LOAD, INF_MESSAGE_MODEL_LOAD_REQUEST, &slow,
                    (struct inf_span){0});
    inf_slow_request(&message);
    uint64_t early = inf_raw_request(&admin, INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST,
                                     &message, inf_slow_data());
    do {
        inf_raw_expect(&admin, INF_FRAME_RESPONSE);
    } while (admin.frame.header.stream_id != early);
    cr_expect_eq(admin.frame.header.flags, INF_FRAME_FINAL);
    inf_raw_close(&admin);
}

Test(serving_life, finishes_a_load_whose_client_disconnected)
{
    const union inf_message message = {.model = {.name = "slow"}};
    make_slow_load_long();
    for (int i = 0; i < 5; i++) {
        struct inf_raw admin;
        inf_raw_open(&admin, fixture.admin_socket);
        inf_raw_request(&admin, INF_METHOD_REPOSITORY_MODEL_LOAD, INF_MESSAGE_MODEL_LOAD_REQUEST,
                        &message, (struct inf_span){0});
        inf_raw_close(&admin);
    }
    inf_raw_wait_for(&raw, 0, 0);
    inf_raw_expect_infer(&raw, send_add(&raw));
}

Test(serving_life, keeps_serving_while_a_model_is_swapped_under_load)
{
    struct inf_raw admin;
    const union inf_message message = {.model = {.name = "add"}};
    inf_raw_open(&admin, fixture.admin_socket);
    for (int i = 0; i < 20; i++) {
        inf_raw_request(&admin, INF_METHOD_REPOSITORY_MODEL_LOAD, INF_MESSAGE_MODEL_LOAD_REQUEST,
                        &message, (struct inf_span){0});
        for (int k = 0; k < 50; k++)
            inf_raw_expect_infer(&raw, send_add(&raw));
        do
            inf_raw_expect(&admin, INF_FRAME_RESPONSE);
        while ((admin.frame.header.flags & INF_FRAME_FINAL) == 0);
        cr_assert_eq(admin.frame.header.flags & INF_FRAME_FLAG_ERROR, 0);
    }
    inf_raw_close(&admin);
}

Test(serving_life, creates_sockets_with_the_right_permissions)
{
    struct stat file;
    cr_assert_eq(stat(fixture.socket, &file), 0);
    cr_assert_eq(file.st_mode & 0777, 0660);
    cr_assert_eq(stat(fixture.admin_socket, &file), 0);
    cr_assert_eq(file.st_mode & 0777, 0600);
}

// Starts a second daemon in the directory of the first. Returns the exit status of the second.
static int run_second(void)
{
    char runtime[128];
    snprintf(runtime, sizeof runtime, "--runtime-dir=%s", fixture.directory);
    pid_t pid = fork();
    if (pid == 0) {
        int null = open("/dev/null", O_WRONLY);
        dup2(null, STDERR_FILENO);
        execl(getenv("INFERD"), "inferd", runtime, (char *)NULL);
        _exit(127);
    }
    int status;
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

Test(serving_life, never_takes_a_socket_from_a_living_daemon)
{
    for (int i = 0; i < 5; i++)
        cr_assert_eq(run_second(), 4);
    inf_raw_expect_infer(&raw, send_add(&raw));
    struct inf_raw other;
    inf_raw_open(&other, fixture.socket);
    inf_raw_close(&other);
}

// Starts a daemon with a low limit of connections. Expect that further connections are refused.
Test(serving_limit, of_connections_is_kept, .timeout = 120)
{
    static const char *const arguments[] = {"--connections-max=4", NULL};
    struct inf_raw others[4];
    start_with(arguments);
    for (int i = 0; i < 3; i++)
        inf_raw_open(&others[i], fixture.socket);
    inf_raw_connect(&others[3], fixture.socket);
    inf_raw_expect_error(&others[3], INF_EXHAUSTED, INF_REASON_QUOTA_REQUESTS);
    for (int i = 0; i < 4; i++)
        inf_raw_close(&others[i]);
    inf_raw_wait_for(&raw, 0, 0);
    for (int i = 0; i < 1000 && inf_raw_server_status(&raw).connections > 1; i++)
        ;
    inf_raw_open(&others[0], fixture.socket);
    inf_raw_close(&others[0]);
    stop_server();
}

// Sends a request with the descriptor of a directory, and waits for the answer.
static void send_with_descriptor(struct inf_raw *client, uint64_t stream, uint16_t method,
                                 enum inf_message_kind kind, const union inf_message *message)
{
    const struct inf_frame_header header = {
        .type = INF_FRAME_REQUEST, .method = method, .stream_id = stream};
    int fd = open("/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC);
    cr_assert_geq(fd, 0);
    inf_raw_send(client, header, kind, message, (struct inf_span){0}, fd);
    close(fd);
    inf_raw_expect(client, INF_FRAME_RESPONSE);
}

// Sends a request with a descriptor, and expects that it is refused and the connection goes on.
static void expect_descriptor_refused(struct inf_raw *client, uint16_t method,
                                      enum inf_message_kind kind, const union inf_message *message,
                                      enum inf_code code, enum inf_reason reason)
{
    send_with_descriptor(client, 1000, method, kind, message);
    inf_raw_check_failure(client, code, reason);
}

Test(serving_life, takes_descriptors_with_loads_of_admins_only)
{
    struct inf_raw admin;
    const union inf_message load = {.model = {.name = "m", .file = "model.json"}};
    const union inf_message both = {.model = {.name = "m", .file = "a", .path = "/tmp/a"}};
    const union inf_message file_only = {.model = {.name = "m", .file = "model.json"}};
    uint32_t fds = inf_fixture_fds(&fixture);
    expect_descriptor_refused(&raw, INF_METHOD_SERVER_LIVE, INF_MESSAGE_EMPTY, NULL, INF_INVALID,
                              INF_REASON_BAD_PARAMETER);
    inf_raw_close(&raw);
    inf_raw_open(&raw, fixture.socket);
    expect_descriptor_refused(&raw, INF_METHOD_REPOSITORY_MODEL_LOAD,
                              INF_MESSAGE_MODEL_LOAD_REQUEST, &load, INF_DENIED, INF_REASON_ROLE);
    inf_raw_open(&admin, fixture.admin_socket);
    call_method(&admin, INF_METHOD_REPOSITORY_MODEL_LOAD, INF_MESSAGE_MODEL_LOAD_REQUEST,
                &file_only);
    inf_raw_check_failure(&admin, INF_INVALID, INF_REASON_BAD_PARAMETER);
    // The name of the file must not lead out of the directory.
    for (size_t i = 0; i < 3; i++) {
        static const char *const names[] = {"..", "../etc/passwd", "."};
        const union inf_message outside = {.model = {.name = "m", .file = names[i]}};
        send_with_descriptor(&admin, 500 + i, INF_METHOD_REPOSITORY_MODEL_LOAD,
                             INF_MESSAGE_MODEL_LOAD_REQUEST, &outside);
        inf_raw_check_failure(&admin, INF_INVALID, INF_REASON_BAD_PARAMETER);
        cr_assert_not_null(strstr(admin.message.status.message, "without a directory"));
    }
    expect_descriptor_refused(&admin, INF_METHOD_REPOSITORY_MODEL_LOAD,
                              INF_MESSAGE_MODEL_LOAD_REQUEST, &both, INF_INVALID,
                              INF_REASON_BAD_PARAMETER);
    inf_raw_close(&admin);
    inf_fixture_expect_fds(&fixture, fds);
}

Test(serving_life, serves_on_without_descriptors_for_new_clients)
{
    struct inf_raw others[64];
    struct rlimit before;
    struct rlimit now = {.rlim_cur = inf_fixture_fds(&fixture) + 2};
    cr_assert_eq(prlimit(fixture.pid, RLIMIT_NOFILE, NULL, &before), 0);
    now.rlim_max = before.rlim_max;
    cr_assert_eq(prlimit(fixture.pid, RLIMIT_NOFILE, &now, NULL), 0);
    for (int i = 0; i < 64; i++)
        inf_raw_connect(&others[i], fixture.socket);
    for (int i = 0; i < 100; i++)
        inf_raw_expect_infer(&raw, send_add(&raw));
    // If the daemon cannot receive a descriptor, expect that the connection fails and the daemon
    // survives.
    int fd = inf_memfd(4096, 0);
    const union inf_message message = {.region = {.region_id = 1, .size = 4096}};
    const struct inf_frame_header header = {.type = INF_FRAME_MEM_REGISTER, .stream_id = 1000};
    inf_raw_send(&raw, header, INF_MESSAGE_REGION_REGISTER, &message, (struct inf_span){0}, fd);
    close(fd);
    inf_raw_expect_error(&raw, INF_INVALID, INF_REASON_BAD_FRAME);
    for (int i = 0; i < 64; i++)
        inf_raw_close(&others[i]);
    cr_assert_eq(prlimit(fixture.pid, RLIMIT_NOFILE, &before, NULL), 0);
    inf_raw_close(&raw);
    inf_raw_open(&raw, fixture.socket);
    inf_raw_expect_infer(&raw, send_add(&raw));
}

Test(serving_life, survives_a_storm_of_connections)
{
    uint32_t fds = inf_fixture_fds(&fixture);
    for (int i = 0; i < 3000; i++) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        snprintf(address.sun_path, sizeof address.sun_path, "%s", fixture.socket);
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);
        cr_assert_eq(connect(fd, (const struct sockaddr *)&address, sizeof address), 0);
        close(fd);
        if (i % 500 == 0)
            inf_raw_expect_infer(&raw, send_add(&raw));
    }
    inf_raw_wait_for(&raw, 0, 0);
    for (int i = 0; i < 1000 && inf_raw_server_status(&raw).connections > 1; i++)
        ;
    cr_assert_eq(inf_raw_server_status(&raw).connections, 1);
    inf_fixture_expect_fds(&fixture, fds);
}

static void check_gone(void)
{
    cr_assert_eq(access(fixture.socket, F_OK), -1);
    cr_assert_eq(access(fixture.admin_socket, F_OK), -1);
    inf_fixture_remove(&fixture);
    inf_raw_close(&raw);
}

Test(serving_end, loses_nothing, .timeout = 120)
{
    static const char *const arguments[] = {"--drain-timeout-ms=60000", NULL};
    start_with(arguments);
    enum {
        COUNT = 200
    };
    uint64_t slow = send_slow(&raw, "brief");
    uint64_t first = raw.last_stream + 1;
    for (int i = 0; i < COUNT; i++)
        send_add(&raw);
    // Wait until all requests are accepted. The replies of the model `add` may come before that of
    // `slow`.
    bool answered[COUNT] = {false};
    for (int i = 0; i < 10; i++) {
        inf_raw_expect(&raw, INF_FRAME_RESPONSE);
        answered[raw.frame.header.stream_id - first] = true;
    }
    struct inf_raw other;
    inf_raw_open(&other, fixture.socket);
    inf_raw_server_status(&other);
    cr_assert_eq(kill(fixture.pid, SIGTERM), 0);
    inf_raw_expect(&other, INF_FRAME_GOAWAY);
    inf_raw_decode(&other, INF_MESSAGE_GOAWAY);
    cr_assert_eq(other.message.goaway.last_stream, other.last_stream);
    send_add(&other);
    inf_raw_expect(&other, INF_FRAME_RESPONSE);
    inf_raw_check_failure(&other, INF_UNAVAILABLE, INF_REASON_DRAINING);
    bool goaway = false;
    bool slow_answered = false;
    for (int left = COUNT - 10 + 1; left > 0;) {
        cr_assert(inf_raw_next(&raw, 30000), "the connection ended with %d replies missing", left);
        if (raw.frame.header.type == INF_FRAME_GOAWAY) {
            goaway = true;
            continue;
        }
        cr_assert_eq(raw.frame.header.flags, INF_FRAME_FINAL, "a request was lost");
        if (raw.frame.header.stream_id == slow) {
            slow_answered = true;
        } else {
            cr_assert_not(answered[raw.frame.header.stream_id - first]);
            answered[raw.frame.header.stream_id - first] = true;
        }
        left--;
    }
    cr_assert(goaway && slow_answered);
    cr_assert_eq(inf_fixture_wait(&fixture), 0);
    inf_raw_close(&other);
    check_gone();
}

Test(serving_end, cancels_what_takes_longer_than_it_may, .timeout = 120)
{
    static const char *const arguments[] = {"--drain-timeout-ms=100", NULL};
    start_with(arguments);
    uint64_t slow = send_slow(&raw, "slow");
    uint64_t waiting = send_slow(&raw, "slow");
    inf_raw_server_status(&raw);
    cr_assert_eq(kill(fixture.pid, SIGTERM), 0);
    inf_raw_expect(&raw, INF_FRAME_GOAWAY);
    for (int i = 0; i < 2; i++) {
        inf_raw_expect(&raw, INF_FRAME_RESPONSE);
        cr_assert(raw.frame.header.stream_id == slow || raw.frame.header.stream_id == waiting);
        inf_raw_check_failure(&raw, INF_CANCELLED, INF_REASON_SHUTDOWN);
    }
    cr_assert_eq(inf_fixture_wait(&fixture), 0);
    check_gone();
}

Test(serving_end, does_not_wait_for_clients_that_have_gone, .timeout = 120)
{
    start_server();
    send_slow(&raw, "slow");
    inf_raw_server_status(&raw);
    cr_assert_eq(kill(fixture.pid, SIGTERM), 0);
    inf_raw_expect(&raw, INF_FRAME_GOAWAY);
    struct timespec before;
    struct timespec after;
    clock_gettime(CLOCK_MONOTONIC, &before);
    inf_raw_close(&raw);
    cr_assert_eq(inf_fixture_wait(&fixture), 0);
    clock_gettime(CLOCK_MONOTONIC, &after);
    cr_assert_lt(after.tv_sec - before.tv_sec, 6, "it waited for its drain timeout");
    inf_fixture_remove(&fixture);
}

Test(serving_end, comes_at_once_when_asked_twice, .timeout = 120)
{
    start_server();
    send_slow(&raw, "slow");
    inf_raw_server_status(&raw);
    cr_assert_eq(kill(fixture.pid, SIGTERM), 0);
    inf_raw_expect(&raw, INF_FRAME_GOAWAY);
    cr_assert_eq(kill(fixture.pid, SIGTERM), 0);
    inf_raw_expect(&raw, INF_FRAME_RESPONSE);
    inf_raw_check_failure(&raw, INF_CANCELLED, INF_REASON_SHUTDOWN);
    cr_assert_eq(inf_fixture_wait(&fixture), 0);
    check_gone();
}
