// SPDX-License-Identifier: Apache-2.0
// One-shot timers for the event loop, which need no memory to be set: a timerfd is registered with
// libevent once and stays registered, while event_add() may fail for a timer of libevent.
#ifndef INF_DAEMON_SYSTEM_TIMER_FD_H
#define INF_DAEMON_SYSTEM_TIMER_FD_H

#include <stdint.h>

#include "proto/core/status.h"

// Creates a timer that is not set. The caller closes *out_fd.
//
// INF_EXHAUSTED  file descriptors.
enum inf_code inf_timer_fd_create(int *out_fd, struct inf_error *err) INF_NODISCARD;

// Sets a timer: the descriptor becomes readable once, in `ms` milliseconds, which is not 0. This
// cannot fail.
void inf_timer_fd_set(int fd, uint32_t ms);

// Reads a timer that fired, so that the descriptor is not readable until the timer fires again.
void inf_timer_fd_clear(int fd);

#endif
