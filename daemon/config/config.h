// SPDX-License-Identifier: Apache-2.0
// What the daemon is told: a file and arguments, read once, validated whole, passed down as a
// struct. Unknown keys are refused with the nearest known name.
#ifndef INF_DAEMON_CONFIG_CONFIG_H
#define INF_DAEMON_CONFIG_CONFIG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "backends/base/log.h"
#include "proto/core/limits.h"
#include "proto/core/status.h"

// Where the file is looked for; naming it with --config makes it an error that it is missing.
#define INF_CONFIG_FILE "/etc/inferd/inferd.conf"

// Settings from the environment: "name=value,name=value".
#define INF_CONFIG_VARIABLE "INFERD_FLAGS"

// Text of a setting, and of a path of ours, its end included.
#define INF_CONFIG_TEXT 256
#define INF_CONFIG_PATH 4096

// The settings by number, in the order of the list.
enum inf_flag_id {
#define INF_FLAG(name, type, initial, min, max, reach, stability, argument, help, words)           \
    INF_FLAG_ID_##name,
#include "daemon/config/flags.def"
    INF_FLAG_COUNT
};

// Where a setting's value came from; what comes later overrides what comes before.
enum inf_origin {
    INF_ORIGIN_DEFAULT,
    INF_ORIGIN_HOST,    // 0 stood for "chosen": this was, from what the machine is
    INF_ORIGIN_DERIVED, // follows from another setting
    INF_ORIGIN_FILE,
    INF_ORIGIN_DROP_IN,
    INF_ORIGIN_ENVIRONMENT,
    INF_ORIGIN_ARGUMENT,
    INF_ORIGIN_MODEL, // a model's own file
    INF_ORIGIN_ADMIN, // inferctl flags set, inferctl place
};

// Every setting. flags.def gives name, default, range and help of each; inferd.8 lists them (a
// test compares).
struct inf_config {
    char repository[INF_CONFIG_TEXT];     // directory of models; "": none
    char cache_dir[INF_CONFIG_TEXT];      // what a next start need not compile again; "": nowhere
    char runtime_dir[INF_CONFIG_TEXT];    // private run: both sockets lie here; "": see sockets
    char socket[INF_CONFIG_TEXT];         // data socket, 0660
    char admin_socket[INF_CONFIG_TEXT];   // admin socket, 0600
    char admin_group[INF_CONFIG_TEXT];    // "": only the daemon's user and root are admins
    char backends[INF_CONFIG_TEXT];       // comma-separated; "": all
    char device[INF_CONFIG_TEXT];         // default device; "auto"
    char devices[INF_CONFIG_TEXT];        // comma-separated; "": all
    char devices_denied[INF_CONFIG_TEXT]; // comma-separated; "": none
    char power[INF_CONFIG_TEXT];          // "any", "low", "high"
    char race[INF_CONFIG_TEXT];           // "auto", "always", "never"
    double race_tolerance;                // how far an answer may be from the judge's
    double drift_factor;                  // of a model's best median: slower is drift; 0: none is
    uint32_t drift_after_ms;              // how long it has to be slower
    uint32_t shadow_interval;
    uint32_t cpu_slots;                   // 0: chosen
    uint32_t cpu_threads;                 // 0: chosen
    char cpu_isa_max[INF_CONFIG_TEXT];    // best instruction set of cpu's own loops; "auto"
    uint32_t gpu_handoff_elements;        // steps on fewer stay on the CPU; 0: none
    uint64_t gpu_memory_bytes;            // used on each GPU at most; 0: what its driver allows
    char vulkan_loader[INF_CONFIG_TEXT];  // its library; "": where the system has it
    char vulkan_drivers[INF_CONFIG_TEXT]; // manifests, with colons between; "": all there are
    uint32_t connections_max;             // open at once
    // What one connection may have at once:
    uint32_t requests_per_connection_max;      // in flight
    uint64_t request_bytes_per_connection_max; // inline bytes of those
    uint64_t reply_bytes_soft_max;             // of replies that it has not read ...
    uint32_t reply_soft_ms;                    // ... for so long
    uint64_t reply_bytes_hard_max;             // ... for no time at all
    uint32_t direct_reply_bytes; // replies of so many bytes are written by workers; 0: none
    // What one user may have at once:
    uint32_t connections_per_uid_max;
    uint32_t fds_per_uid_max;           // connections, and what comes with frames
    uint32_t device_ms_per_uid_max;     // device time of a second; 0: any
    uint32_t requests_per_uid_max;      // in flight
    uint64_t request_bytes_per_uid_max; // inline bytes of those
    uint32_t regions_per_uid_max;
    uint64_t region_bytes_per_uid_max;
    uint64_t session_bytes_per_uid_max; // of tensors kept in sessions
    uint32_t queue_requests_max;        // waiting per device
    uint64_t queue_bytes_max;           // inline bytes waiting per device
    uint32_t batch_rows_max;         // rows of different requests that run at once; 1: no batches
    uint32_t drain_timeout_ms;       // SIGTERM: requests in flight may take this long
    uint32_t run_limit_ms;           // a run that takes longer is hung
    char log_level[INF_CONFIG_TEXT]; // "error", "warning", "notice", "info", "debug"
    bool load_all;                   // load everything in the repository at start
    bool help, version, check;       // asked for on the command line only
    uint8_t origins[INF_FLAG_COUNT]; // enum inf_origin of each
};

// Reads the defaults, then the file that --config names (or /etc/inferd/inferd.conf where it
// exists, but not in a private run) and the *.conf beside it in FILE.d, then $INFERD_FLAGS, then
// the arguments; later ones win. The file has "key = value" lines and # comments; arguments are
// --key=value or --key value, with - or _. With runtime_dir, the sockets are
// runtime_dir/inferd.sock and runtime_dir/admin.sock unless they are named, and there is no
// repository and no cache unless one is named. --help and --version end the reading at once.
//
// INF_INVALID  the text gives file and line (or the argument), the key or value, and what was
//              wanted.
enum inf_code inf_config_read(struct inf_config *config, int argc, char **argv,
                              struct inf_error *err) INF_NODISCARD;

// The number of the log level that the text names (log_level is always valid once it was read).
enum inf_log_level inf_config_log_level(const struct inf_config *config);

// Prints usage with every setting, its default and its help to `out`.
void inf_config_help(FILE *out);

#endif
