// SPDX-License-Identifier: Apache-2.0
// The environment of the running daemon: facts about the host, and the flags, some of which can be
// changed at run time. Used by the loop only.
#ifndef INF_DAEMON_SERVICE_ENVIRONMENT_H
#define INF_DAEMON_SERVICE_ENVIRONMENT_H

#include "backends/base/role.h"
#include "daemon/config/flag.h"
#include "daemon/store/store.h"
#include "daemon/system/host_info.h"
#include "daemon/system/log.h"

// The facts and flags of the running daemon. All objects that the pointers refer to outlive the
// struct. No other module changes the configuration.
struct inf_environment {
    struct inf_config *config;
    struct inf_host_info facts;
    struct inf_model_store *store;
    struct inf_log_writer *log_writer; // NULL: the log level cannot be changed
    // The configuration as it was last read from its sources, without values that the host or an
    // admin chose. A reload applies only the flags whose sources changed.
    struct inf_config sources;
    // Value of the flag queue_requests_max at start. Afterwards the flag can only be lowered.
    uint32_t queue_requests_most;
};

// Collects the facts about the host. `sources` is the configuration without what admins made
// persistent. If the number of slots or threads of the cpu device is 0
// (automatic) in the configuration, replaces it by the number that the device chose.
void inf_environment_init(struct inf_environment *environment, const struct inf_config *sources,
                          const struct inf_device_list *devices) INF_MAY_BLOCK;

// Returns the largest value that a flag may be set to while the daemon runs.
uint64_t inf_environment_most(const struct inf_environment *environment,
                              const struct inf_flag *flag) INF_ON_LOOP;

// Fails if inf_environment_set() would refuse this value of the flag. Changes nothing.
enum inf_code inf_environment_check(const struct inf_environment *environment, const char *name,
                                    const char *value,
                                    struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Changes a flag; `origin` says who changes it. Every operation that starts afterwards uses the new
// value. *out_flag is set to the flag.
//
// INF_NOT_FOUND     there is no such flag; the text names the most similar one.
// INF_INVALID       (BAD_PARAMETER) the value is not allowed; the text says what is allowed.
// INF_PRECONDITION  the flag is read at start only.
enum inf_code inf_environment_set(struct inf_environment *environment, const char *name,
                                  const char *value, enum inf_origin origin,
                                  const struct inf_flag **out_flag,
                                  struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

#endif
