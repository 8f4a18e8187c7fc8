// SPDX-License-Identifier: Apache-2.0
// What the daemon found and what it was told, while it runs: facts, and flags, some of which can be
// changed. The loop's.
#ifndef INF_DAEMON_SERVICE_ENVIRONMENT_H
#define INF_DAEMON_SERVICE_ENVIRONMENT_H

#include "backends/base/role.h"
#include "daemon/config/flag.h"
#include "daemon/store/store.h"
#include "daemon/system/host_info.h"
#include "daemon/system/log.h"

// Everything pointed to outlives it; the config is changed by nobody else.
struct inf_environment {
    struct inf_config *config;
    struct inf_host_info facts;
    struct inf_model_store *store;
    struct inf_log_writer *log_writer; // NULL: the level cannot be changed
    uint32_t queue_requests_most;      // room for so many was made at start
};

// Reads the facts, and replaces what 0 left open in the config (the cpu device's slots and threads)
// by what the devices chose.
void inf_environment_init(struct inf_environment *environment,
                          const struct inf_device_list *devices) INF_MAY_BLOCK;

// The most that a number may be set to while the daemon runs.
uint64_t inf_environment_most(const struct inf_environment *environment,
                              const struct inf_flag *flag) INF_ON_LOOP;

// Fails where inf_environment_set() would refuse this value.
enum inf_code inf_environment_check(const struct inf_environment *environment, const char *name,
                                    const char *value,
                                    struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Changes a flag, at once, for everything that begins from now on. *out_flag is the flag.
//
// INF_NOT_FOUND     there is none of this name; the text gives the nearest.
// INF_INVALID       (BAD_PARAMETER) its value may not be this; the text says what it may be.
// INF_PRECONDITION  it is read at start only.
enum inf_code inf_environment_set(struct inf_environment *environment, const char *name,
                                  const char *value, const struct inf_flag **out_flag,
                                  struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

#endif
