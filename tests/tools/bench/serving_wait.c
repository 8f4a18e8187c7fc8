// SPDX-License-Identifier: Apache-2.0
// Measures requests that are answered while the device is busy, the duration of a loop iteration
// meanwhile, and the resources of an idle daemon.
#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "proto/wire/frame.h"
#include "tests/support/models/tfjs_writer.h"
#include "tests/tools/bench/serving_parts.h"

#define WIDTH 256

static void sleep_until(uint64_t at_ns)
{
    const struct timespec at = {.tv_sec = (time_t)(at_ns / 1000000000u),
                                .tv_nsec = (long)(at_ns % 1000000000u)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) != 0)
        ;
}

// --- deadlines and cancels while the device is busy ---

// Four threads that keep the device busy. Each sends its next request when the last one is
// answered.
struct crowd {
    struct serving_target target;
    atomic_bool over;
    pthread_t threads[4];
};

static void *keep_busy(void *context)
{
    struct crowd *crowd = context;
    struct serving_caller *caller = serving_open(&crowd->target);
    while (!atomic_load(&crowd->over))
        serving_trip(caller);
    serving_close(caller);
    return NULL;
}

// A thread that regularly sends a request which the daemon's event loop answers without a worker,
// and its measured round trips. A round trip is at least as long as the current iteration of the
// loop.
struct pings {
    const char *socket;
    atomic_bool over;
    size_t count;
    double us[60000];
};

static void *send_ping(void *context)
{
    struct pings *pings = context;
    inferd_client *client = NULL;
    struct inferd_error err;
    if (inferd_connect(&client, pings->socket, &err) != INFERD_OK)
        rpc_die("cannot connect: %s", err.text);
    while (!atomic_load(&pings->over) && pings->count < sizeof pings->us / sizeof pings->us[0]) {
        bool ready;
        uint64_t start_ns = rpc_now_ns();
        if (inferd_model_ready(client, "null", NULL, &ready, &err) != INFERD_OK)
            rpc_die("ping: %s", err.text);
        pings->us[pings->count++] = (double)(rpc_now_ns() - start_ns) / 1e3;
        sleep_until(start_ns + 200000);
    }
    inferd_close(client);
    return NULL;
}

// Two threads: one sends as many requests as the thread of struct pings, and the other waits in
// read() and answers at once. They measure the cost of two wake-ups without a daemon.
struct bare_pings {
    int there, back;   // eventfds that wake the answering thread and the sender
    atomic_bool over;  // the sender has stopped
    atomic_bool ended; // the answering thread has stopped
    size_t count;
    double us[60000];
};

static void cross_threads(int fd, bool out)
{
    uint64_t one = 1;
    if ((out ? write(fd, &one, sizeof one) : read(fd, &one, sizeof one)) != sizeof one)
        rpc_die("an eventfd does not work");
}

static void *answer_bare(void *context)
{
    struct bare_pings *pings = context;
    for (;;) {
        cross_threads(pings->there, false);
        if (atomic_load(&pings->ended))
            return NULL;
        cross_threads(pings->back, true);
    }
}

static void *ping_bare(void *context)
{
    struct bare_pings *pings = context;
    pthread_t other;
    pings->there = eventfd(0, EFD_CLOEXEC);
    pings->back = eventfd(0, EFD_CLOEXEC);
    if (pthread_create(&other, NULL, answer_bare, pings) != 0)
        rpc_die("cannot start a thread");
    while (!atomic_load(&pings->over)) {
        uint64_t start_ns = rpc_now_ns();
        cross_threads(pings->there, true);
        cross_threads(pings->back, false);
        if (pings->count < sizeof pings->us / sizeof pings->us[0])
            pings->us[pings->count++] = (double)(rpc_now_ns() - start_ns) / 1e3;
        sleep_until(start_ns + 200000);
    }
    atomic_store(&pings->ended, true);
    cross_threads(pings->there, true);
    pthread_join(other, NULL);
    close(pings->there);
    close(pings->back);
    return NULL;
}

struct late {
    double slept_ms[1000], deadline_ms[1000], cancel_ms[1000];
    size_t count, deadlines, cancels;
};

struct answer {
    bool there;
    int code;
};

static void take_answer(void *context, inferd_result *result, const struct inferd_error *err)
{
    struct answer *answer = context;
    *answer = (struct answer){.there = true, .code = result == NULL ? err->code : 0};
    inferd_result_free(result);
}

// Sends one request and waits for the answer. If the request is to be cancelled, cancels it after 2
// ms. Returns the milliseconds from the time at which the request should end (its deadline, or the
// cancellation) to the answer; negative if the answer was not the expected one.
static double time_answer(struct serving_caller *caller, uint64_t timeout_ms)
{
    struct inferd_error err;
    struct answer answer = {0};
    uint64_t stream;
    // Use a shape that never ran. The daemon has no estimate for it, so it cannot refuse the
    // request early.
    caller->input.shape[0]--;
    caller->input.size -= sizeof(float);
    caller->request.timeout_ms = timeout_ms;
    uint64_t due_ns = rpc_now_ns() + (timeout_ms != 0 ? timeout_ms : 2) * 1000000;
    if (inferd_infer_async(caller->client, &caller->request, take_answer, &answer, &stream, &err) !=
        INFERD_OK)
        rpc_die("cannot send: %s", err.text);
    if (timeout_ms == 0) {
        sleep_until(due_ns);
        due_ns = rpc_now_ns();
        if (inferd_cancel(caller->client, stream, &err) != INFERD_OK)
            rpc_die("cannot cancel: %s", err.text);
    }
    while (!answer.there) {
        struct pollfd poller = {inferd_fd(caller->client), inferd_events(caller->client), 0};
        (void)poll(&poller, 1, 1000);
        if (inferd_process(caller->client, &err) != INFERD_OK)
            rpc_die("cannot process: %s", err.text);
    }
    int wanted = timeout_ms != 0 ? INFERD_DEADLINE_EXCEEDED : INFERD_CANCELLED;
    return answer.code == wanted ? (double)((int64_t)rpc_now_ns() - (int64_t)due_ns) / 1e6 : -1;
}

static void measure_late(const struct rpc_daemon *daemon, unsigned rounds, struct late *late)
{
    struct serving_target target = {
        .socket = daemon->socket, .model = "null", .input = "x", .rank = 1, .shape = {3000}};
    struct serving_caller *caller = serving_open(&target);
    caller->request.priority = INFERD_PRIORITY_LOW;
    for (unsigned i = 0; i < rounds; i++) {
        uint64_t at_ns = rpc_now_ns() + (4 + i % 5) * 1000000;
        sleep_until(at_ns);
        late->slept_ms[late->count++] = (double)(rpc_now_ns() - at_ns) / 1e6;
        double ms = time_answer(caller, 4 + i % 5);
        if (ms >= 0)
            late->deadline_ms[late->deadlines++] = ms;
        ms = time_answer(caller, 0);
        if (ms >= 0)
            late->cancel_ms[late->cancels++] = ms;
    }
    serving_close(caller);
}

void serving_show_deadlines(struct figures *figures, const struct serving_options *options)
{
    static struct late late;
    static struct pings pings;
    static struct bare_pings bare;
    struct rpc_daemon daemon;
    char directory[96];
    pthread_t pinger;
    pthread_t bare_pinger;
    rpc_daemon_make(&daemon);
    rpc_daemon_add_model(&daemon, "null", directory);
    inf_write_null_model(directory, 0);
    rpc_daemon_add_model(&daemon, "slow", directory);
    serving_write_chain(directory, WIDTH, 2000, false);
    rpc_daemon_start(&daemon, rpc_daemon_path(),
                     (const char *[]){"--cpu-threads=1", "--cpu-slots=1", "--backends=cpu,ref",
                                      "--race=never", "--batch-rows-max=1", NULL});
    struct crowd crowd = {.target = {.socket = daemon.socket,
                                     .model = "slow",
                                     .input = "x",
                                     .rank = 2,
                                     .shape = {8, WIDTH}}};
    pings.socket = daemon.socket;
    for (int i = 0; i < 4; i++)
        pthread_create(&crowd.threads[i], NULL, keep_busy, &crowd);
    pthread_create(&pinger, NULL, send_ping, &pings);
    pthread_create(&bare_pinger, NULL, ping_bare, &bare);
    sleep_until(rpc_now_ns() + 500000000);
    measure_late(&daemon, 250 * options->seconds < 1000 ? 250 * options->seconds : 1000, &late);
    atomic_store(&pings.over, true);
    atomic_store(&bare.over, true);
    atomic_store(&crowd.over, true);
    for (int i = 0; i < 4; i++)
        pthread_join(crowd.threads[i], NULL);
    pthread_join(pinger, NULL);
    pthread_join(bare_pinger, NULL);
    const struct figure lines[] = {
        {"a bare sleep meanwhile, late by, p99", serving_quantile(late.slept_ms, late.count, 0.99),
         "ms", FIGURE_NONE, 0},
        {"deadlines in the queue that were seen", (double)late.deadlines, "", FIGURE_AT_LEAST,
         (double)late.count / 2},
        {"a deadline's answer, late by, p50",
         serving_quantile(late.deadline_ms, late.deadlines, 0.5), "ms", FIGURE_NONE, 0},
        {"a deadline's answer, late by, p99",
         serving_quantile(late.deadline_ms, late.deadlines, 0.99), "ms", FIGURE_AT_MOST, 1},
        {"a queued request's answer after CANCEL, p99",
         serving_quantile(late.cancel_ms, late.cancels, 0.99), "ms", FIGURE_AT_MOST, 2},
        {"a question meanwhile (a turn of the loop and two wake-ups), p50",
         serving_quantile(pings.us, pings.count, 0.5), "us", FIGURE_NONE, 0},
        {"a question to a bare thread meanwhile, p50", serving_quantile(bare.us, bare.count, 0.5),
         "us", FIGURE_NONE, 0},
        {"a question to a bare thread meanwhile, p99.9",
         serving_quantile(bare.us, bare.count, 0.999) / 1e3, "ms", FIGURE_NONE, 0},
        {"a question meanwhile, p99.9", serving_quantile(pings.us, pings.count, 0.999) / 1e3, "ms",
         FIGURE_AT_MOST, 1},
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        figures_add(figures, &lines[i]);
    rpc_daemon_stop(&daemon);
}

// --- the resources of an idle daemon ---

static long read_status(const char *path, const char *key)
{
    char line[256];
    long value = -1;
    FILE *file = fopen(path, "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, key, strlen(key)) == 0)
            value = strtol(line + strlen(key) + 1, NULL, 10);
    if (file != NULL)
        fclose(file);
    return value;
}

static double resident_kib(const struct rpc_daemon *daemon)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/status", (int)daemon->pid);
    return (double)read_status(path, "VmRSS");
}

// Returns how many times the threads of the daemon have gone to sleep so far.
static double count_switches(const struct rpc_daemon *daemon)
{
    char path[320];
    double sum = 0;
    snprintf(path, sizeof path, "/proc/%d/task", (int)daemon->pid);
    DIR *tasks = opendir(path);
    struct dirent *entry;
    while (tasks != NULL && (entry = readdir(tasks)) != NULL) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "/proc/%d/task/%s/status", (int)daemon->pid, entry->d_name);
        sum += (double)read_status(path, "voluntary_ctxt_switches");
    }
    if (tasks != NULL)
        closedir(tasks);
    return sum;
}

static int connect_greeted(const char *path)
{
    // A HELLO message: major 1, client_name "py".
    static const uint8_t meta[] = {0x08, 0x01, 0x1a, 0x02, 'p', 'y'};
    uint8_t bytes[INF_FRAME_HEADER_BYTES + sizeof meta];
    uint8_t reply[4096];
    const struct inf_frame_header header = {.meta_bytes = sizeof meta, .type = INF_FRAME_HELLO};
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    inf_frame_header_encode(&header, bytes);
    memcpy(bytes + INF_FRAME_HEADER_BYTES, meta, sizeof meta);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0 ||
        send(fd, bytes, sizeof bytes, MSG_NOSIGNAL) != (ssize_t)sizeof bytes ||
        recv(fd, reply, sizeof reply, 0) < (ssize_t)INF_FRAME_HEADER_BYTES)
        return -1;
    return fd;
}

static void show_connections(struct figures *figures, const struct rpc_daemon *daemon,
                             unsigned count)
{
    int *fds = calloc(count, sizeof *fds);
    unsigned held = 0;
    double before_kib = resident_kib(daemon);
    double thousand_kib = 0;
    uint64_t begin_ns = rpc_now_ns();
    while (fds != NULL && held < count && (fds[held] = connect_greeted(daemon->socket)) >= 0)
        if (++held == 1000)
            thousand_kib = resident_kib(daemon) - before_kib;
    double seconds = (double)(rpc_now_ns() - begin_ns) / 1e9;
    figures_add(figures, &(struct figure){"1,000 greeted connections, resident each",
                                          thousand_kib * 1.024, "bytes", FIGURE_AT_MOST, 10240});
    figures_add(figures, &(struct figure){"connections accepted and held", held, "",
                                          FIGURE_AT_LEAST, 10000});
    figures_add(figures, &(struct figure){"each of them after, mean", seconds * 1e6 / held, "us",
                                          FIGURE_NONE, 0});
    for (unsigned i = 0; i < held; i++)
        close(fds[i]);
    free(fds);
}

void serving_show_idle(struct figures *figures, const struct serving_options *options)
{
    const unsigned connections = 10000;
    struct rpc_daemon daemon;
    struct rlimit limit;
    double seconds = 3.0 * options->seconds;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    rpc_daemon_make(&daemon);
    rpc_daemon_start(
        &daemon, rpc_daemon_path(),
        (const char *[]){"--connections-max=10010", "--connections-per-uid-max=10010", NULL});
    sleep_until(rpc_now_ns() + 1000000000);
    double before = count_switches(&daemon);
    figures_add(figures, &(struct figure){"resident, devices found, no model",
                                          resident_kib(&daemon) / 1024, "MiB", FIGURE_AT_MOST, 12});
    sleep_until(rpc_now_ns() + (uint64_t)(seconds * 1e9));
    figures_add(figures, &(struct figure){"wake-ups of an idle daemon, all threads",
                                          (count_switches(&daemon) - before) / seconds, "/s",
                                          FIGURE_AT_MOST, 0});
    show_connections(figures, &daemon, connections);
    rpc_daemon_stop(&daemon);
}
