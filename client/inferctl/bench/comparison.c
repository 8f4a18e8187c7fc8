// SPDX-License-Identifier: Apache-2.0
// Measures round trips through a bare socket pair to a thread that computes nothing. The time is a
// lower bound for a request to any daemon, because every request needs such a round trip.
#include "client/inferctl/bench/comparison.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

struct echo {
    int fd;
    size_t read_bytes, write_bytes;
    char *buffer; // one buffer for sending and for receiving
};

static double now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static bool move_all(int fd, char *bytes, size_t size, bool out)
{
    while (size > 0) {
        ssize_t moved = out ? send(fd, bytes, size, MSG_NOSIGNAL) : recv(fd, bytes, size, 0);
        if (moved < 0 && errno == EINTR)
            continue;
        if (moved <= 0)
            return false;
        bytes += moved;
        size -= (size_t)moved;
    }
    return true;
}

static void *answer_messages(void *context)
{
    const struct echo *echo = context;
    while (move_all(echo->fd, echo->buffer, echo->read_bytes, false) &&
           move_all(echo->fd, echo->buffer, echo->write_bytes, true))
        ;
    return NULL;
}

static int measure_round_trips(struct echo *here, struct echo *there, unsigned long runs,
                               double *total_ms)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, answer_messages, there) != 0)
        return -1;
    bool moved = true;
    for (unsigned long i = 0; i < runs && moved; i++) {
        double start_ms = now_ms();
        moved = move_all(here->fd, here->buffer, here->write_bytes, true) &&
                move_all(here->fd, here->buffer, here->read_bytes, false);
        total_ms[i] = now_ms() - start_ms;
    }
    shutdown(here->fd, SHUT_RDWR);
    pthread_join(thread, NULL);
    return moved ? 0 : -1;
}

int beside_socket(size_t send_bytes, size_t receive_bytes, unsigned long runs, double *total_ms)
{
    int fds[2];
    // Send at least one byte in each direction. With zero bytes, one thread would not wait for the
    // other, so no round trip would be measured.
    size_t out = send_bytes + 1, in = receive_bytes + 1;
    size_t room = out > in ? out : in;
    struct echo here = {.read_bytes = in, .write_bytes = out, .buffer = calloc(1, room)};
    struct echo there = {.read_bytes = out, .write_bytes = in, .buffer = calloc(1, room)};
    int code = -1;
    if (here.buffer != NULL && there.buffer != NULL &&
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0) {
        here.fd = fds[0];
        there.fd = fds[1];
        code = measure_round_trips(&here, &there, runs, total_ms);
        close(fds[0]);
        close(fds[1]);
    }
    free(here.buffer);
    free(there.buffer);
    return code;
}
