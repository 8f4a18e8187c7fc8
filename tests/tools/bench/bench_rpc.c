// SPDX-License-Identifier: Apache-2.0
// bench_rpc [--daemon PATH] [--ms N] [--clients N,N...] [--bytes N,N...] [--pin CPU]
//
// Measures the cost of a request without the inference: round trips through libinferd and a daemon
// to a model that does almost nothing. A ping-pong over a bare socket with the same payload in the
// same run is the baseline. The columns:
//   bare      two processes, blocking threads, the payload goes through the socket
//   inline    libinferd, the tensor is in the frame (up to 1 MiB)
//   region    libinferd, the tensor is copied into a memory region that the library owns
//   in place  libinferd, the tensor is in inferd_memory, so nothing is copied
// Each cell shows p50 and p99 in microseconds of the best of three rounds, and p50 as a multiple of
// the p50 of `bare`.
//
// Waking a sleeping processor costs about 20 to 40 us each time, and a processor may sleep or stay
// awake for seconds. Therefore cells of different rows must not be subtracted. The cost of size is
// measured by alternating on one connection, and --pin runs everything on one processor.
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/lib/client.h"
#include "tests/support/models/tfjs_writer.h"
#include "tests/tools/bench/rpc_bare.h"
#include "tests/tools/bench/rpc_daemon.h"
#include "tests/tools/bench/rpc_samples.h"

#define LIST_MAX   16
#define ROUNDS     3
#define PAIRS      8000
#define WARM_PAIRS 200

struct options {
    char daemon[PATH_MAX];
    unsigned ms;
    unsigned clients[LIST_MAX], client_counts;
    unsigned bytes[LIST_MAX], byte_counts;
};

// --- starting the daemon ---

static void start_daemon(struct rpc_daemon *daemon, const char *path)
{
    char directory[96];
    rpc_daemon_make(daemon);
    rpc_daemon_add_model(daemon, "null", directory);
    inf_write_null_model(directory, 0);
    rpc_daemon_start(daemon, path,
                     (const char *[]){"--cpu-threads=1", "--connections-per-uid-max=512", NULL});
}

// --- round trips through libinferd ---

enum place {
    INLINE,
    REGION,
    IN_PLACE
};

struct library {
    const char *socket;
    size_t payload_bytes;
    enum place place;
};

struct caller {
    inferd_client *client;
    inferd_tensor input;
    inferd_request request;
    void *source;
};

static void *open_caller(void *context, unsigned index)
{
    (void)index;
    const struct library *library = context;
    struct inferd_error err;
    struct caller *caller = calloc(1, sizeof *caller);
    if (caller == NULL || inferd_connect(&caller->client, library->socket, &err) != INFERD_OK)
        rpc_die("cannot connect: %s", caller == NULL ? "no memory" : err.text);
    if (library->place == INLINE)
        caller->client->regions.from_bytes = SIZE_MAX;
    if (library->place == REGION)
        caller->client->regions.from_bytes = 1;
    caller->input = (inferd_tensor){.name = "x",
                                    .dtype = INFERD_FP32,
                                    .rank = 1,
                                    .shape = {(int64_t)(library->payload_bytes / 4)},
                                    .size = library->payload_bytes};
    if (library->place == IN_PLACE) {
        if (inferd_memory_alloc(caller->client, library->payload_bytes, &caller->input.memory,
                                &err) != INFERD_OK)
            rpc_die("cannot get shared memory: %s", err.text);
        caller->input.data = inferd_memory_data(caller->input.memory);
    } else {
        caller->input.data = caller->source = malloc(library->payload_bytes);
    }
    memset(caller->input.data, 0, library->payload_bytes);
    caller->request = (inferd_request){.model = "null", .inputs = &caller->input, .input_count = 1};
    return caller;
}

static void make_trip(void *context)
{
    struct caller *caller = context;
    struct inferd_error err;
    inferd_result *result = NULL;
    if (inferd_infer(caller->client, &caller->request, &result, &err) != INFERD_OK)
        rpc_die("inference failed: %s: %s", err.reason, err.text);
    inferd_result_free(result);
}

static void close_caller(void *context)
{
    struct caller *caller = context;
    inferd_memory_free(caller->input.memory);
    inferd_close(caller->client);
    free(caller->source);
    free(caller);
}

// --- printing the table of times ---

// Median times with one client, from which the last lines of output are computed: 1 KiB and 4 MiB
// of payload.
struct goals {
    double bare_1k_us, inline_1k_us, in_place_4m_us;
};

static struct rpc_times measure_bare(size_t bytes, unsigned clients, unsigned ms)
{
    struct rpc_bare bare;
    rpc_bare_start(&bare, bytes, clients);
    struct rpc_way way = rpc_bare_way(&bare);
    struct rpc_times times = rpc_measure(&way, clients, ms);
    rpc_bare_stop(&bare);
    return times;
}

static struct rpc_times measure_library(const struct rpc_daemon *daemon, size_t bytes,
                                        enum place place, unsigned clients, unsigned ms)
{
    struct library library = {daemon->socket, bytes, place};
    struct rpc_way way = {open_caller, make_trip, close_caller, &library};
    return rpc_measure(&way, clients, ms);
}

static int compare_times(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

// Returns the median difference in time between two requests that alternate on one connection: one
// with a 4 MiB tensor in shared memory, and one with a 1 KiB tensor in the frame.
static double measure_size_cost(const struct rpc_daemon *daemon)
{
    static double differences[PAIRS];
    struct library library = {daemon->socket, 4u << 20, IN_PLACE};
    struct caller *large = open_caller(&library, 0);
    struct caller small = {.client = large->client, .input = large->input};
    static float elements[256];
    small.input.memory = NULL;
    small.input.data = elements;
    small.input.size = sizeof elements;
    small.input.shape[0] = 256;
    small.request = (inferd_request){.model = "null", .inputs = &small.input, .input_count = 1};
    for (int i = -WARM_PAIRS; i < PAIRS; i++) {
        uint64_t start_ns = rpc_now_ns();
        make_trip(&small);
        uint64_t middle_ns = rpc_now_ns();
        make_trip(large);
        uint64_t end_ns = rpc_now_ns();
        if (i >= 0)
            differences[i] =
                ((double)(end_ns - middle_ns) - (double)(middle_ns - start_ns)) / 1000.0;
    }
    close_caller(large);
    qsort(differences, PAIRS, sizeof differences[0], compare_times);
    return differences[PAIRS / 2];
}

static void keep_best(struct rpc_times *best, struct rpc_times times)
{
    if (best->count == 0 || times.p50_us < best->p50_us)
        *best = times;
}

static void print_row(size_t bytes, unsigned clients, struct rpc_times bare,
                      const struct rpc_times *times)
{
    printf("%8zu %3u  %9.1f %9.1f", bytes, clients, bare.p50_us, bare.p99_us);
    for (enum place place = INLINE; place <= IN_PLACE; place++)
        if (times[place].count == 0)
            printf("  %9s %9s %6s", "-", "-", "-");
        else
            printf("  %9.1f %9.1f %6.2f", times[place].p50_us, times[place].p99_us,
                   times[place].p50_us / bare.p50_us);
    putchar('\n');
    fflush(stdout);
}

// Measures several rounds of all four columns, and prints the best round of each. The best round is
// used because waking a processor costs more than everything else and happens only in some rounds.
static void measure_row(const struct rpc_daemon *daemon, size_t bytes, unsigned clients,
                        unsigned ms, struct goals *goals)
{
    struct rpc_times bare = {0};
    struct rpc_times times[IN_PLACE + 1] = {{0}};
    for (int round = 0; round < ROUNDS; round++) {
        keep_best(&bare, measure_bare(bytes, clients, ms / ROUNDS));
        for (enum place place = INLINE; place <= IN_PLACE; place++)
            if (place != INLINE || bytes <= INF_LIMIT_DATA_BYTES)
                keep_best(&times[place],
                          measure_library(daemon, bytes, place, clients, ms / ROUNDS));
    }
    print_row(bytes, clients, bare, times);
    if (clients == 1 && bytes == 1024) {
        goals->bare_1k_us = bare.p50_us;
        goals->inline_1k_us = times[INLINE].p50_us;
    }
    if (clients == 1 && bytes == 4u << 20)
        goals->in_place_4m_us = times[IN_PLACE].p50_us;
}

static void print_goals(const struct rpc_daemon *daemon, const struct goals *goals)
{
    if (goals->inline_1k_us > 0)
        printf("1 KiB inline: %.2f times the bare round trip (goal: at most 4)\n",
               goals->inline_1k_us / goals->bare_1k_us);
    printf("4 MiB in place: %+.1f us beside 1 KiB inline, alternating (goal: at most +15)\n",
           measure_size_cost(daemon));
    if (goals->inline_1k_us > 0 && goals->in_place_4m_us > 0)
        printf("                %+.1f us between the cells above, which also tells who slept\n",
               goals->in_place_4m_us - goals->inline_1k_us);
}

// --- parsing the arguments ---

static unsigned parse_list(const char *text, unsigned list[LIST_MAX])
{
    unsigned count = 0;
    while (count < LIST_MAX && isdigit((unsigned char)*text)) {
        char *end = NULL;
        unsigned long value = strtoul(text, &end, 10);
        if (value == 0 || value > 64u << 20)
            break;
        list[count++] = (unsigned)value;
        if (*end == '\0')
            return count;
        text = end + 1;
    }
    rpc_die("'%s' is no list of numbers like 1,8,64", text);
}

// Pins this process and its children to one processor.
static void pin_process(const char *text)
{
    char *end = NULL;
    unsigned long cpu = strtoul(text, &end, 10);
    cpu_set_t set;
    CPU_ZERO(&set);
    if (end == text || *end != '\0' || cpu >= CPU_SETSIZE)
        rpc_die("'%s' is no processor's number", text);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0)
        rpc_die("cannot run on processor %lu: %s", cpu, strerror(errno));
}

static void read_options(struct options *options, int argc, char **argv)
{
    *options = (struct options){
        .ms = 300,
        .clients = {1, 8, 64},
        .client_counts = 3,
        .bytes = {64, 1024, 16384, 65536, 262144, 1048576, 4194304},
        .byte_counts = 7,
    };
    snprintf(options->daemon, sizeof options->daemon, "%s", rpc_daemon_path());
    for (int i = 1; i < argc; i += 2) {
        const char *value = argv[i + 1];
        if (value == NULL)
            rpc_die(
                "%s is not known, or lacks its value; known are --daemon PATH, --ms N, "
                "--clients N,..., --bytes N,..., --pin CPU",
                argv[i]);
        if (strcmp(argv[i], "--daemon") == 0)
            snprintf(options->daemon, sizeof options->daemon, "%s", value);
        else if (strcmp(argv[i], "--ms") == 0)
            options->ms = (unsigned)strtoul(value, NULL, 10);
        else if (strcmp(argv[i], "--clients") == 0)
            options->client_counts = parse_list(value, options->clients);
        else if (strcmp(argv[i], "--bytes") == 0)
            options->byte_counts = parse_list(value, options->bytes);
        else if (strcmp(argv[i], "--pin") == 0)
            pin_process(value);
        else
            rpc_die("%s is not known", argv[i]);
    }
}

int main(int argc, char **argv)
{
    struct options options;
    struct rpc_daemon daemon;
    struct goals goals = {0};
    read_options(&options, argc, argv);
    start_daemon(&daemon, options.daemon);
    printf("%8s %3s  %19s  %26s  %26s  %26s\n", "bytes", "n", "bare p50       p99",
           "inline p50       p99     x", "region p50       p99     x",
           "in place p50     p99     x");
    for (unsigned i = 0; i < options.client_counts; i++)
        for (unsigned j = 0; j < options.byte_counts; j++)
            measure_row(&daemon, options.bytes[j], options.clients[i], options.ms, &goals);
    print_goals(&daemon, &goals);
    rpc_daemon_stop(&daemon);
    return 0;
}
