// SPDX-License-Identifier: Apache-2.0
// Runs client threads and sorts the times of their round trips.
#include "tests/tools/bench/rpc_samples.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define CLIENTS_MAX 256u

struct client {
    const struct rpc_way *way;
    pthread_barrier_t *barrier;
    unsigned index;
    uint64_t warm_ns, run_ns;
    float *samples; // round-trip times in microseconds
    size_t count, capacity;
};

uint64_t rpc_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void rpc_die(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("bench_rpc: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(1);
}

static void keep_sample(struct client *client, uint64_t ns)
{
    if (client->count == client->capacity) {
        client->capacity = client->capacity == 0 ? 8192 : client->capacity * 2;
        client->samples = realloc(client->samples, client->capacity * sizeof(float));
        if (client->samples == NULL)
            rpc_die("no memory for samples");
    }
    client->samples[client->count++] = (float)ns / 1000.0f;
}

static void *run_client(void *context)
{
    struct client *client = context;
    void *connection = client->way->open(client->way->context, client->index);
    // the first trip is not measured, because it fills pools and compiles plans
    client->way->trip(connection);
    pthread_barrier_wait(client->barrier);
    uint64_t now_ns = rpc_now_ns();
    uint64_t begin_ns = now_ns + client->warm_ns;
    uint64_t end_ns = begin_ns + client->run_ns;
    while (now_ns < end_ns) {
        uint64_t start_ns = now_ns;
        client->way->trip(connection);
        now_ns = rpc_now_ns();
        if (start_ns >= begin_ns)
            keep_sample(client, now_ns - start_ns);
    }
    client->way->close(connection);
    return NULL;
}

static int compare_samples(const void *a, const void *b)
{
    float x = *(const float *)a;
    float y = *(const float *)b;
    return (x > y) - (x < y);
}

static struct rpc_times merge_samples(struct client *clients, unsigned count)
{
    struct rpc_times times = {0};
    for (unsigned i = 0; i < count; i++)
        times.count += clients[i].count;
    float *all = malloc((times.count + 1) * sizeof *all);
    if (all == NULL || times.count == 0)
        rpc_die("no samples");
    size_t end = 0;
    for (unsigned i = 0; i < count; i++) {
        for (size_t j = 0; j < clients[i].count; j++)
            all[end++] = clients[i].samples[j];
        free(clients[i].samples);
    }
    qsort(all, times.count, sizeof *all, compare_samples);
    times.p50_us = all[times.count / 2];
    times.p99_us = all[times.count * 99 / 100];
    times.max_us = all[times.count - 1];
    free(all);
    return times;
}

struct rpc_times rpc_measure(const struct rpc_way *way, unsigned clients, unsigned ms)
{
    static struct client all[CLIENTS_MAX];
    pthread_t threads[CLIENTS_MAX];
    pthread_barrier_t barrier;
    if (clients == 0 || clients > CLIENTS_MAX)
        rpc_die("%u clients, wanted 1 to %u", clients, CLIENTS_MAX);
    pthread_barrier_init(&barrier, NULL, clients);
    for (unsigned i = 0; i < clients; i++) {
        all[i] = (struct client){.way = way,
                                 .barrier = &barrier,
                                 .index = i,
                                 .warm_ns = (uint64_t)ms * 100000,
                                 .run_ns = (uint64_t)ms * 1000000};
        if (pthread_create(&threads[i], NULL, run_client, &all[i]) != 0)
            rpc_die("cannot start thread %u", i);
    }
    for (unsigned i = 0; i < clients; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&barrier);
    return merge_samples(all, clients);
}
