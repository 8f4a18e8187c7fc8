// SPDX-License-Identifier: Apache-2.0
// bench_gateway [--ms N] [--rounds N] [--json FILE] [--part small,large,loop,rate,idle]
//
// Measures what inferd-gateway adds to a request, with a model that does almost nothing: REST with
// binary tensors, REST with JSON and gRPC, tensors of 1 KiB and 600 KiB, 1 and 16 clients. Rounds
// of the gateway alternate with rounds of servers that answer every request with the same bytes
// (evhttp and libnghttp2), and of libinferd without a gateway. Each figure is the median of the
// rounds; a ratio is the median of the ratios of the rounds. Processor times are those of the
// process divided by its requests, and depend less on the load of the machine than times on the
// clock. The part `loop` shows how long other clients wait while the gateway handles large tensors.
//
// $INFERD and $GATEWAY name other programs than those of the build directory.
#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/models/tfjs_writer.h"
#include "tests/tools/bench/gateway/gateway_echo.h"
#include "tests/tools/bench/gateway/gateway_pool.h"
#include "tests/tools/bench/gateway/gateway_requests.h"
#include "tests/tools/bench/serving_parts.h"

#define ROUNDS_MAX  25
#define SMALL_BYTES ((size_t)1024)
#define LARGE_BYTES ((size_t)600 << 10)
#define IDLE_COUNT  1000u
#define READY_S     30 // maximum time until the gateway is connected to the daemon, in seconds

struct bench {
    unsigned ms, rounds;
    const char *parts;
    struct figures figures;
    struct rpc_daemon daemon;
    pid_t gateway;
    uint16_t port;
};

static const char *const form_names[GATEWAY_FORMS] = {"REST binary", "REST JSON", "gRPC"};

// --- processes ---

static int open_listener(uint16_t *port)
{
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof name;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&name, size) != 0 || listen(fd, 1024) != 0 ||
        getsockname(fd, (struct sockaddr *)&name, &size) != 0)
        rpc_die("cannot listen: %s", strerror(errno));
    *port = ntohs(name.sin_port);
    return fd;
}

// Returns the path of inferd-gateway: $GATEWAY, or the inferd-gateway of this program's build
// directory.
static const char *find_gateway(void)
{
    static char path[PATH_MAX + 64];
    const char *named = getenv("GATEWAY");
    ssize_t size = readlink("/proc/self/exe", path, PATH_MAX - 1);
    if (named != NULL || size < 0)
        return named != NULL ? named : "inferd-gateway";
    path[size] = '\0';
    for (int i = 0; i < 3; i++) {
        char *slash = strrchr(path, '/');
        if (slash != NULL)
            *slash = '\0';
    }
    strcat(path, "/client/gateway/inferd-gateway");
    return path;
}

// Runs the gateway with the listening socket, as systemd would pass it.
static void run_gateway(const struct bench *bench, int listener)
{
    char pid[16], socket_option[96];
    prctl(PR_SET_PDEATHSIG, SIGTERM); // the gateway ends with the benchmark
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    snprintf(socket_option, sizeof socket_option, "--socket=%s", bench->daemon.socket);
    setenv("LISTEN_FDS", "1", 1);
    setenv("LISTEN_PID", pid, 1);
    unsetenv("LISTEN_FDNAMES");
    if (dup2(listener, 3) == 3)
        execl(find_gateway(), "inferd-gateway", socket_option, "--connections-max=4096",
              (char *)NULL);
    fprintf(stderr, "bench_gateway: %s: %s\n", find_gateway(), strerror(errno));
    _exit(127);
}

// Requests whose answers need no daemon.
static const char live_request[] = "GET /v2/health/live HTTP/1.1\r\nHost: localhost\r\n\r\n";
static const char ready_request[] =
    "GET /v2/health/ready HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

// Returns true if the gateway answers that it is connected to the daemon.
static bool ask_ready(uint16_t port)
{
    struct sockaddr_in name = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(port)};
    char answer[64] = "";
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    bool sent = fd >= 0 && connect(fd, (struct sockaddr *)&name, sizeof name) == 0 &&
                send(fd, ready_request, sizeof ready_request - 1, MSG_NOSIGNAL) > 0;
    if (sent && recv(fd, answer, sizeof answer - 1, 0) < 0)
        answer[0] = '\0';
    close(fd);
    return strncmp(answer, "HTTP/1.1 200 ", 13) == 0;
}

static void wait_until_ready(uint16_t port)
{
    for (uint64_t begin_ns = rpc_now_ns(); !ask_ready(port); usleep(5000))
        if (rpc_now_ns() - begin_ns > (uint64_t)READY_S * 1000000000)
            rpc_die("the gateway is not ready after %d s", READY_S);
}

static void start_servers(struct bench *bench)
{
    static const char *const arguments[] = {"--cpu-threads=1", "--race=never",
                                            "--connections-per-uid-max=512", NULL};
    char directory[96];
    rpc_daemon_make(&bench->daemon);
    rpc_daemon_add_model(&bench->daemon, "null", directory);
    inf_write_null_model(directory, 0);
    rpc_daemon_start(&bench->daemon, rpc_daemon_path(), arguments);
    int listener = open_listener(&bench->port);
    bench->gateway = fork();
    if (bench->gateway == 0)
        run_gateway(bench, listener);
    if (bench->gateway < 0)
        rpc_die("cannot fork: %s", strerror(errno));
    close(listener);
    wait_until_ready(bench->port);
}

static void stop_process(pid_t pid)
{
    kill(pid, SIGTERM);
    waitpid(pid, NULL, 0);
}

// Returns the processor time of a process in microseconds, or of this process if `pid` is 0.
static double read_cpu_us(pid_t pid)
{
    char path[64], text[1024];
    unsigned long user = 0, system = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)(pid != 0 ? pid : getpid()));
    FILE *file = fopen(path, "r");
    size_t size = file != NULL ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file != NULL)
        fclose(file);
    text[size] = '\0';
    const char *fields = strrchr(text, ')');
    if (fields == NULL || sscanf(fields + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
                                 &user, &system) != 2)
        rpc_die("cannot read %s", path);
    return (double)(user + system) * 1e6 / (double)sysconf(_SC_CLK_TCK);
}

static double read_resident_kib(pid_t pid)
{
    char path[64];
    unsigned long pages = 0;
    snprintf(path, sizeof path, "/proc/%d/statm", (int)pid);
    FILE *file = fopen(path, "r");
    if (file == NULL || fscanf(file, "%*u %lu", &pages) != 1)
        rpc_die("cannot read %s", path);
    fclose(file);
    return (double)pages * (double)sysconf(_SC_PAGESIZE) / 1024;
}

// --- latency ---

// Percentiles of the latency of one server in microseconds, for each round.
struct column {
    double p50[ROUNDS_MAX], p99[ROUNDS_MAX];
};

static void note_times(struct column *column, unsigned round, struct rpc_times times)
{
    column->p50[round] = times.p50_us;
    column->p99[round] = times.p99_us;
}

static double find_median(const double *values, unsigned count)
{
    double sorted[ROUNDS_MAX];
    memcpy(sorted, values, count * sizeof *values);
    return serving_quantile(sorted, count, 0.5);
}

static double find_median_ratio(const double *values, const double *base, unsigned count)
{
    double ratios[ROUNDS_MAX];
    for (unsigned i = 0; i < count; i++)
        ratios[i] = values[i] / base[i];
    return serving_quantile(ratios, count, 0.5);
}

static void show_cell(struct bench *bench, enum gateway_form form, size_t bytes, unsigned clients)
{
    static struct column gateway, echo, direct;
    struct gateway_load load = {
        .port = bench->port, .grpc = form == GATEWAY_GRPC, .connections = clients, .depth = 1};
    uint8_t *request = gateway_request_make(form, bytes, &load.request_size);
    load.request = request;
    struct gateway_load echo_load = load;
    int listener = open_listener(&echo_load.port);
    struct gateway_pool *pool = gateway_pool_open(&load);
    pid_t server = gateway_echo_start(listener, load.grpc, gateway_pool_body_size(pool));
    close(listener);
    struct gateway_pool *echo_pool = gateway_pool_open(&echo_load);
    struct serving_target target = {.socket = bench->daemon.socket,
                                    .model = "null",
                                    .input = "x",
                                    .rank = 1,
                                    .shape = {(int64_t)(bytes / sizeof(float))}};
    struct rpc_way way = serving_way(&target);
    for (unsigned round = 0; round < bench->rounds; round++) {
        note_times(&echo, round, gateway_pool_run(echo_pool, bench->ms));
        note_times(&gateway, round, gateway_pool_run(pool, bench->ms));
        note_times(&direct, round, rpc_measure(&way, clients, bench->ms));
    }
    gateway_pool_close(echo_pool);
    gateway_pool_close(pool);
    stop_process(server);
    free(request);

    char what[2][80];
    bool bounded = form == GATEWAY_BINARY && bytes == SMALL_BYTES;
    snprintf(what[0], sizeof what[0], "%s, %zu KiB, %u clients: p50 over the echo's",
             form_names[form], bytes >> 10, clients);
    snprintf(what[1], sizeof what[1], "  p50: echo %.0f, libinferd %.0f us; the gateway's",
             find_median(echo.p50, bench->rounds), find_median(direct.p50, bench->rounds));
    const struct figure ratio = {what[0], find_median_ratio(gateway.p50, echo.p50, bench->rounds),
                                 "x", bounded ? FIGURE_AT_MOST : FIGURE_NONE, 2.5};
    const struct figure p50 = {what[1], find_median(gateway.p50, bench->rounds), "us", FIGURE_NONE,
                               0};
    figures_add(&bench->figures, &ratio);
    figures_add(&bench->figures, &p50);
    snprintf(what[1], sizeof what[1], "  p99: echo %.0f, libinferd %.0f us; the gateway's",
             find_median(echo.p99, bench->rounds), find_median(direct.p99, bench->rounds));
    const struct figure p99 = {what[1], find_median(gateway.p99, bench->rounds), "us", FIGURE_NONE,
                               0};
    figures_add(&bench->figures, &p99);
}

static void show_latency(struct bench *bench, size_t bytes)
{
    for (unsigned clients = 1; clients <= 16; clients += 15)
        for (enum gateway_form form = 0; form < GATEWAY_FORMS; form++)
            show_cell(bench, form, bytes, clients);
}

// --- requests per second ---

static void show_rate_of(struct bench *bench, enum gateway_form form, unsigned connections,
                         unsigned depth, double bound)
{
    struct gateway_load load = {.port = bench->port,
                                .grpc = form == GATEWAY_GRPC,
                                .connections = connections,
                                .depth = depth};
    uint8_t *request = gateway_request_make(form, SMALL_BYTES, &load.request_size);
    load.request = request;
    struct gateway_pool *pool = gateway_pool_open(&load);
    const pid_t pids[] = {bench->gateway, bench->daemon.pid, 0};
    double rates[ROUNDS_MAX], cpu_us[3] = {0}, done = 0;
    for (unsigned round = 0; round < bench->rounds; round++) {
        for (unsigned i = 0; i < 3; i++)
            cpu_us[i] -= read_cpu_us(pids[i]);
        struct rpc_times times = gateway_pool_run(pool, bench->ms * 3);
        rates[round] = (double)times.count * 1000 / (bench->ms * 3);
        // Count the requests of the warm-up too, which takes a tenth of the measured time.
        done += (double)times.count * 1.1;
        for (unsigned i = 0; i < 3; i++)
            cpu_us[i] += read_cpu_us(pids[i]);
    }
    gateway_pool_close(pool);
    free(request);
    char what[2][80];
    snprintf(what[0], sizeof what[0], "%s, 1 KiB, %u connections, %u in flight each",
             form_names[form], connections, depth);
    snprintf(what[1], sizeof what[1], "  processor: daemon %.1f, client %.1f us; the gateway's",
             cpu_us[1] / done, cpu_us[2] / done);
    const struct figure lines[] = {
        {what[0], find_median(rates, bench->rounds), "/s",
         bound > 0 ? FIGURE_AT_LEAST : FIGURE_NONE, bound},
        {what[1], cpu_us[0] / done, "us", FIGURE_NONE, 0},
    };
    figures_add(&bench->figures, &lines[0]);
    figures_add(&bench->figures, &lines[1]);
}

static void show_rate(struct bench *bench)
{
    show_rate_of(bench, GATEWAY_BINARY, 64, 1, 15000);
    show_rate_of(bench, GATEWAY_JSON, 64, 1, 0);
    show_rate_of(bench, GATEWAY_GRPC, 64, 1, 0);
    show_rate_of(bench, GATEWAY_GRPC, 4, 32, 25000);
}

// --- other clients beside large tensors ---

// Makes requests with tensors of 600 KiB until it is killed.
static void run_large(const struct bench *bench, enum gateway_form form)
{
    struct gateway_load load = {
        .port = bench->port, .grpc = form == GATEWAY_GRPC, .connections = 4, .depth = 1};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    load.request = gateway_request_make(form, LARGE_BYTES, &load.request_size);
    struct gateway_pool *pool = gateway_pool_open(&load);
    for (;;)
        gateway_pool_run(pool, 1000);
}

// Shows the times of requests that only the gateway answers, alone or beside another process.
static void show_waits(struct bench *bench, struct gateway_pool *pool, const char *beside)
{
    double p50[ROUNDS_MAX], p99[ROUNDS_MAX], max[ROUNDS_MAX];
    for (unsigned round = 0; round < bench->rounds; round++) {
        struct rpc_times times = gateway_pool_run(pool, bench->ms);
        p50[round] = times.p50_us;
        p99[round] = times.p99_us;
        max[round] = times.max_us;
    }
    char what[80];
    snprintf(what, sizeof what, "health beside %s: p50 %.0f, max %.0f us; p99", beside,
             find_median(p50, bench->rounds), find_median(max, bench->rounds));
    const struct figure line = {what, find_median(p99, bench->rounds), "us", FIGURE_NONE, 0};
    figures_add(&bench->figures, &line);
}

static void show_loop(struct bench *bench)
{
    const struct gateway_load load = {.port = bench->port,
                                      .request = (const uint8_t *)live_request,
                                      .request_size = sizeof live_request - 1,
                                      .connections = 1,
                                      .depth = 1};
    struct gateway_pool *pool = gateway_pool_open(&load);
    show_waits(bench, pool, "nothing");
    for (enum gateway_form form = 0; form < GATEWAY_FORMS; form++) {
        char beside[40];
        snprintf(beside, sizeof beside, "4 clients of %s", form_names[form]);
        pid_t process = fork();
        if (process == 0)
            run_large(bench, form);
        if (process < 0)
            rpc_die("cannot fork: %s", strerror(errno));
        usleep(200000);
        show_waits(bench, pool, beside);
        kill(process, SIGKILL);
        waitpid(process, NULL, 0);
    }
    gateway_pool_close(pool);
}

// --- memory of idle connections ---

static void show_idle(struct bench *bench)
{
    for (int grpc = 0; grpc <= 1; grpc++) {
        struct gateway_load load = {
            .port = bench->port, .grpc = grpc, .connections = 1, .depth = 1};
        uint8_t *request = gateway_request_make(grpc ? GATEWAY_GRPC : GATEWAY_BINARY, SMALL_BYTES,
                                                &load.request_size);
        load.request = request;
        gateway_pool_close(gateway_pool_open(&load));
        double before = read_resident_kib(bench->gateway);
        load.connections = IDLE_COUNT;
        struct gateway_pool *pool = gateway_pool_open(&load);
        const struct figure grown = {
            grpc ? "1,000 idle connections of HTTP/2" : "1,000 idle connections of HTTP/1.1",
            (read_resident_kib(bench->gateway) - before) / 1000, "MB", FIGURE_AT_MOST, 20};
        gateway_pool_close(pool);
        free(request);
        figures_add(&bench->figures, &grown);
    }
}

static bool has_part(const struct bench *bench, const char *name)
{
    return bench->parts == NULL || strstr(bench->parts, name) != NULL;
}

int main(int argc, char **argv)
{
    struct bench bench = {.ms = 200, .rounds = 5};
    const char *json = NULL;
    for (int i = 1; i < argc; i += 2) {
        const char *value = argv[i + 1];
        if (value != NULL && strcmp(argv[i], "--ms") == 0 && atoi(value) > 0)
            bench.ms = (unsigned)atoi(value);
        else if (value != NULL && strcmp(argv[i], "--rounds") == 0 && atoi(value) > 0 &&
                 atoi(value) <= ROUNDS_MAX)
            bench.rounds = (unsigned)atoi(value);
        else if (value != NULL && strcmp(argv[i], "--json") == 0)
            json = value;
        else if (value != NULL && strcmp(argv[i], "--part") == 0)
            bench.parts = value;
        else
            rpc_die("%s: wanted --ms N, --rounds N (1 to %d), --json FILE or --part PART,...",
                    argv[i], ROUNDS_MAX);
    }
    start_servers(&bench);
    figures_begin(&bench.figures, json);
    if (has_part(&bench, "small"))
        show_latency(&bench, SMALL_BYTES);
    if (has_part(&bench, "large"))
        show_latency(&bench, LARGE_BYTES);
    if (has_part(&bench, "loop"))
        show_loop(&bench);
    if (has_part(&bench, "rate"))
        show_rate(&bench);
    if (has_part(&bench, "idle"))
        show_idle(&bench);
    figures_end(&bench.figures);
    stop_process(bench.gateway);
    rpc_daemon_stop(&bench.daemon);
    return 0;
}
