// SPDX-License-Identifier: Apache-2.0
// Reads the configuration again while the daemon runs. A thread of its own reads the files, because
// the event loop must not wait for a disk.
#ifndef INF_DAEMON_CONFIG_REREAD_H
#define INF_DAEMON_CONFIG_REREAD_H

#include "backends/base/role.h"
#include "daemon/config/config.h"

struct inf_config_reread;

// Creates a reader for the sources that inf_config_read() reads with these arguments; argv outlives
// it. The caller destroys *out_reread.
//
// INF_EXHAUSTED  memory, or file descriptors.
enum inf_code inf_config_reread_create(struct inf_config_reread **out_reread, int argc, char **argv,
                                       struct inf_error *err) INF_NODISCARD;

// Waits until a reading in progress ends, and frees the reader. NULL is allowed.
void inf_config_reread_destroy(struct inf_config_reread **reread);

// Returns a descriptor that becomes readable when a reading has ended. It belongs to the reader.
int inf_config_reread_fd(const struct inf_config_reread *reread);

// Starts a reading. If one is in progress, another one follows it, because the files may have
// changed since.
//
// INF_EXHAUSTED  the system refuses a thread.
enum inf_code inf_config_reread_start(struct inf_config_reread *reread,
                                      struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Call when the descriptor is readable. Returns false if no reading has ended, or if it was started
// again because another reload was requested meanwhile. Otherwise *out_config is the configuration,
// valid until the next start, or NULL if the configuration is wrong; *err then says what is wrong.
bool inf_config_reread_finish(struct inf_config_reread *reread,
                              const struct inf_config **out_config,
                              struct inf_error *err) INF_ON_LOOP;

#endif
