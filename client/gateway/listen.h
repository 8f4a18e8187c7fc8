// SPDX-License-Identifier: Apache-2.0
// Opens the listening sockets of the gateway, and reports its state to systemd.
#ifndef INF_GATEWAY_LISTEN_H
#define INF_GATEWAY_LISTEN_H

#include <stdbool.h>

#include "proto/core/attributes.h"
#include "proto/core/status.h"

// Opens a listening socket at an address: "HOST:PORT", "[HOST]:PORT" or "unix:PATH". A socket file
// that exists at PATH is replaced. On success the caller owns *fd.
enum inf_code inf_gateway_listen(const char *address, int *fd, struct inf_error *err) INF_NODISCARD;

// Calls add() for each listening socket that systemd passed, until one call fails. `admin` is true
// if the socket's name (FileDescriptorName=) ends with "-admin". *count is the number of successful
// calls.
enum inf_code inf_gateway_listen_passed(enum inf_code (*add)(void *context, int fd, bool admin,
                                                             struct inf_error *err),
                                        void *context, unsigned *count,
                                        struct inf_error *err) INF_NODISCARD;

// Sends a state to systemd, such as "READY=1".
void inf_gateway_notify(const char *state);

#endif
