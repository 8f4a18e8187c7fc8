// SPDX-License-Identifier: Apache-2.0
// A real daemon that clients attack. While an attack runs, an innocent client sends pings. Tests
// limit the slowest reply to a ping and the memory growth of the daemon.
#ifndef INF_TESTS_DAEMON_SERVING_ATTACKS_CASE_H
#define INF_TESTS_DAEMON_SERVING_ATTACKS_CASE_H

#include <criterion/criterion.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/daemon/fixture.h"
#include "tests/support/sanitized.h"

// Limits for the delay of a ping and the memory growth. They are higher with sanitizers, which make
// everything slower and larger.
#define SCALE        (INF_TESTS_SANITIZED ? 8u : 1u)
#define PING_MS_MAX  (50u * SCALE)
#define GROWTH_BYTES ((uint64_t)64 * SCALE << 20)

static struct inf_fixture fixture;

// --- the innocent client that sends pings ---

static struct {
    struct inf_raw raw;
    pthread_t thread;
    atomic_bool stop;
    // Longest time of a ping, without the time that the two threads waited for a processor, because
    // other processes on this machine cause these waits.
    uint64_t worst_ns;
    // Longest time that usleep(1000) took. It stands for the delays by other processes on this
    // machine that the waits of the two threads do not include: another thread holds a lock while
    // it waits for a processor, and processors share caches.
    uint64_t late_ns;
    uint64_t rss_before;
} innocent;

// Mutex that a thread holds during a ping, and that a test holds while it stops the daemon with
// SIGSTOP, so that no ping is sent to a stopped daemon.
static pthread_mutex_t daemon_runs = PTHREAD_MUTEX_INITIALIZER;

// Stops the daemon until resume_daemon(). Waits until all its threads have stopped, because kill()
// returns earlier, and the daemon could still receive what the test sends next.
static inline void pause_daemon(void)
{
    int status;
    pthread_mutex_lock(&daemon_runs);
    cr_assert_eq(kill(fixture.pid, SIGSTOP), 0);
    cr_assert_eq(waitpid(fixture.pid, &status, WUNTRACED), fixture.pid);
    cr_assert(WIFSTOPPED(status));
}

static inline void resume_daemon(void)
{
    cr_assert_eq(kill(fixture.pid, SIGCONT), 0);
    pthread_mutex_unlock(&daemon_runs);
}

static inline uint64_t clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

// Returns the resident memory of the daemon, in bytes.
static inline uint64_t read_rss(void)
{
    char path[64];
    unsigned long pages = 0;
    snprintf(path, sizeof path, "/proc/%d/statm", (int)fixture.pid);
    FILE *file = fopen(path, "re");
    cr_assert_not_null(file);
    cr_assert_eq(fscanf(file, "%*u %lu", &pages), 1);
    fclose(file);
    return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

// Returns how long a thread has waited for a processor since it began, in nanoseconds. Returns 0 if
// the kernel does not count it.
static inline uint64_t read_run_delay_ns(int thread)
{
    char path[64];
    uint64_t delay_ns = 0;
    snprintf(path, sizeof path, "/proc/%d/schedstat", thread);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return 0;
    if (fscanf(file, "%*u %" SCNu64, &delay_ns) != 1)
        delay_ns = 0;
    fclose(file);
    return delay_ns;
}

// Returns how long the event loop of the daemon, which is its main thread, and this thread have
// waited for a processor.
static inline uint64_t read_delays_ns(void)
{
    return read_run_delay_ns(fixture.pid) + read_run_delay_ns(gettid());
}

// Returns the time since `begin_ns` that is not due to the delays since `delays_ns` was read.
static inline uint64_t measure_ns(uint64_t begin_ns, uint64_t delays_ns)
{
    uint64_t took_ns = clock_ns() - begin_ns;
    uint64_t waited_ns = read_delays_ns() - delays_ns;
    return took_ns - INF_MIN(waited_ns, took_ns);
}

static inline void *send_pings(void *context)
{
    (void)context;
    while (!atomic_load(&innocent.stop)) {
        pthread_mutex_lock(&daemon_runs);
        uint64_t delays_ns = read_delays_ns();
        uint64_t begin_ns = clock_ns();
        const struct inf_frame_header ping = {.type = INF_FRAME_PING, .stream_id = 7};
        inf_raw_send(&innocent.raw, ping, INF_MESSAGE_EMPTY, NULL, (struct inf_span){0}, -1);
        bool answered =
            inf_raw_next(&innocent.raw, 60000) && innocent.raw.frame.header.type == INF_FRAME_PONG;
        uint64_t took_ns = measure_ns(begin_ns, delays_ns);
        pthread_mutex_unlock(&daemon_runs);
        // If a test failed, the daemon may have ended already, so a missing answer is no further
        // error.
        if (!answered)
            break;
        if (took_ns > innocent.worst_ns)
            innocent.worst_ns = took_ns;
        begin_ns = clock_ns();
        usleep(1000);
        took_ns = clock_ns() - begin_ns;
        if (took_ns > innocent.late_ns)
            innocent.late_ns = took_ns;
    }
    return NULL;
}

static inline void start_pings(void)
{
    inf_raw_open(&innocent.raw, fixture.socket);
    atomic_store(&innocent.stop, false);
    innocent.worst_ns = innocent.late_ns = 0;
    innocent.rss_before = read_rss();
    cr_assert_eq(pthread_create(&innocent.thread, NULL, send_pings, NULL), 0);
}

// Stops the pings and checks both limits: ping delay and memory growth.
static inline void check_innocent(void)
{
    uint64_t rss = read_rss();
    uint64_t growth = rss > innocent.rss_before ? rss - innocent.rss_before : 0;
    atomic_store(&innocent.stop, true);
    cr_assert_eq(pthread_join(innocent.thread, NULL), 0);
    inf_raw_close(&innocent.raw);
    fprintf(stderr, "worst ping %.1f ms, worst wake-up %.1f ms, growth %.1f MiB\n",
            (double)innocent.worst_ns / 1e6, (double)innocent.late_ns / 1e6,
            (double)growth / (1 << 20));
    uint64_t worst_ns = innocent.worst_ns - INF_MIN(innocent.late_ns, innocent.worst_ns);
    cr_expect_leq(worst_ns, (uint64_t)PING_MS_MAX * 1000000u, "%.1f ms, wanted at most %u",
                  (double)innocent.worst_ns / 1e6, PING_MS_MAX);
    cr_expect_leq(growth, GROWTH_BYTES, "%" PRIu64 " bytes, wanted at most %" PRIu64, growth,
                  GROWTH_BYTES);
}

static inline void start_server(void)
{
    inf_fixture_start(&fixture, NULL);
    start_pings();
}

static inline void stop_server(void)
{
    inf_fixture_stop(&fixture);
}

#endif
