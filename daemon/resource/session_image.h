// SPDX-License-Identifier: Apache-2.0
// The sessions of a connection as a memfd, so that a restart of the daemon keeps them.
#ifndef INF_DAEMON_RESOURCE_SESSION_IMAGE_H
#define INF_DAEMON_RESOURCE_SESSION_IMAGE_H

#include "daemon/resource/session.h"

// Returns the bytes that a session takes in an image. An image is up to 16 bytes larger than the
// sum of its sessions.
uint64_t inf_session_image_bytes(const struct inf_session *session) INF_ON_LOOP;

// Writes the sessions of a table that inf_session_choice_decide() has chosen to a new sealed memfd.
// None of them has a request in flight.
//
// INF_EXHAUSTED  memory or descriptors are exhausted.
enum inf_code inf_session_image_write(const struct inf_session_table *table, int *out_fd,
                                      struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Opens the sessions that a memfd describes, in a table that has none. The caller closes the memfd.
// On failure the table has those that were read before.
//
// INF_INVALID    the memfd is not one that inf_session_image_write() has written, or damaged.
// INF_EXHAUSTED  the user may not have so many bytes of sessions, or memory is exhausted.
enum inf_code inf_session_image_read(struct inf_session_table *table, int fd,
                                     struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

#endif
