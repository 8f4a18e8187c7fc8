// SPDX-License-Identifier: Apache-2.0
// The configuration of the daemon: files, environment and arguments, read once, validated as a
// whole, and passed down as a struct. Unknown keys are refused with the most similar name.
#ifndef INF_DAEMON_CONFIG_CONFIG_H
#define INF_DAEMON_CONFIG_CONFIG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "backends/base/log.h"
#include "proto/core/limits.h"
#include "proto/core/status.h"

// The default path of the file. A missing file is an error only if --config names it.
#define INF_CONFIG_FILE "/etc/inferd/inferd.conf"

// Settings from the environment: "name=value,name=value".
#define INF_CONFIG_VARIABLE "INFERD_FLAGS"

// Buffer sizes for the text value of a flag and for a path, including the final NUL byte.
#define INF_CONFIG_TEXT 256
#define INF_CONFIG_PATH 4096

// Index of each daemon flag in inf_flags[], in the order of flags.def.
enum inf_flag_id {
#define INF_FLAG(name, type, initial, min, max, reach, stability, argument, help, words)           \
    INF_FLAG_ID_##name,
#include "daemon/config/flags.def"
    INF_FLAG_COUNT
};

// Where the value of a flag came from. Later origins override earlier ones.
enum inf_origin {
    INF_ORIGIN_DEFAULT,
    // The configured value is 0 (automatic), and the daemon chose the value from the host's
    // hardware.
    INF_ORIGIN_HOST,
    INF_ORIGIN_DERIVED, // computed from the value of another flag
    INF_ORIGIN_FILE,
    INF_ORIGIN_DROP_IN,
    INF_ORIGIN_ENVIRONMENT,
    INF_ORIGIN_ARGUMENT,
    INF_ORIGIN_MODEL, // the settings file of a model
    INF_ORIGIN_ADMIN, // inferctl flags set, or inferctl place
};

// All flags. flags.def has the name, default, range and help of each; inferd.8 lists them (a test
// compares).
struct inf_config {
    char repository[INF_CONFIG_TEXT]; // directory of models; "": none
    char cache_dir[INF_CONFIG_TEXT];  // compiled code and measurements for the next start; "": none
    // Directory of both sockets; if set, the run is private, that is, it ignores the system-wide
    // files.
    char runtime_dir[INF_CONFIG_TEXT];
    char socket[INF_CONFIG_TEXT];         // data socket, 0660
    char admin_socket[INF_CONFIG_TEXT];   // admin socket, 0600
    char admin_group[INF_CONFIG_TEXT];    // "": only the daemon's user and root are admins
    char backends[INF_CONFIG_TEXT];       // comma-separated; "": all
    char device[INF_CONFIG_TEXT];         // default device; "auto"
    char devices[INF_CONFIG_TEXT];        // comma-separated; "": all
    char devices_denied[INF_CONFIG_TEXT]; // comma-separated; "": none
    char power[INF_CONFIG_TEXT];          // "any", "low", "high"
    char race[INF_CONFIG_TEXT];           // "auto", "always", "never"
    // Largest allowed error of a candidate's outputs, compared with the reference device.
    double race_tolerance;
    // A model is reported as slow if its median run time exceeds its best median times this factor;
    // 0: never.
    double drift_factor;
    uint32_t drift_after_ms; // how long a model must be slow before this is reported
    uint32_t shadow_interval;
    // Number of concurrent runs on the CPU; 0: chosen automatically.
    uint32_t cpu_slots;
    uint32_t cpu_threads;              // number of CPU threads; 0: chosen automatically
    char cpu_isa_max[INF_CONFIG_TEXT]; // best instruction set for native kernels of cpu; "auto"
    // A GPU plan runs steps on fewer elements than this on the CPU; 0: no such limit.
    uint32_t gpu_handoff_elements;
    uint64_t gpu_memory_bytes;            // memory limit of each GPU; 0: what its driver allows
    char vulkan_loader[INF_CONFIG_TEXT];  // path of the loader library; "": that of the system
    char vulkan_drivers[INF_CONFIG_TEXT]; // manifests, separated by colons; "": all
    uint32_t connections_max;             // number of connections that may be open at once
    // Limits of one connection:
    uint32_t requests_per_connection_max;      // requests in flight
    uint64_t request_bytes_per_connection_max; // inline bytes of the requests in flight
    uint64_t reply_bytes_soft_max; // unread replies above which nothing is read from the client
    // How long unread replies may exceed reply_bytes_soft_max before the daemon disconnects the
    // client.
    uint32_t reply_soft_ms;
    // Bytes of unread replies above which the daemon closes the connection.
    uint64_t reply_bytes_hard_max;
    // Up to this many bytes of reply data, the worker writes the reply to the socket itself instead
    // of passing it to the event loop; 0: workers never write replies.
    uint32_t direct_reply_bytes;
    // Limits of one user, over all connections with the same uid:
    uint32_t connections_per_uid_max;
    uint32_t fds_per_uid_max;           // connections, and descriptors received with frames
    uint32_t device_ms_per_uid_max;     // device time per second; 0: no limit
    uint32_t requests_per_uid_max;      // requests in flight
    uint64_t request_bytes_per_uid_max; // inline bytes of the requests in flight
    uint32_t regions_per_uid_max;
    uint64_t region_bytes_per_uid_max;
    // Bytes of the tensors that the daemon keeps in the user's sessions.
    uint64_t session_bytes_per_uid_max;
    uint32_t queue_requests_max; // number of queued requests per device
    uint64_t queue_bytes_max;    // inline bytes queued per device
    uint32_t batch_rows_max; // rows of different requests that may run in one batch; 1: no batches
    uint32_t drain_timeout_ms;       // time that requests in flight get after SIGTERM
    uint32_t run_limit_ms;           // a run that takes longer counts as hung
    char log_level[INF_CONFIG_TEXT]; // "error", "warning", "notice", "info", "debug"
    bool load_all;                   // load everything in the repository at start
    bool help, version, check;       // set on the command line only
    uint8_t origins[INF_FLAG_COUNT]; // enum inf_origin of each flag
};

// Sets the defaults, then reads the file that --config names (or /etc/inferd/inferd.conf if it
// exists, but not in a private run), the *.conf files in FILE.d, $INFERD_FLAGS, and the arguments;
// later values override earlier ones. A file has "key = value" lines and # comments; arguments are
// --key=value or --key value, with - or _. With runtime_dir, the sockets are
// runtime_dir/inferd.sock and runtime_dir/admin.sock unless they are named, and there is no
// repository and no cache unless one is named. --help and --version end the reading at once.
//
// INF_INVALID  the text gives file and line (or the argument), the key or value, and what was
//              wanted.
enum inf_code inf_config_read(struct inf_config *config, int argc, char **argv,
                              struct inf_error *err) INF_NODISCARD;

// Returns the log level as an enum. Reading the configuration has already validated log_level.
enum inf_log_level inf_config_log_level(const struct inf_config *config);

// Prints the usage text to `out`, with every flag, its default and its help.
void inf_config_help(FILE *out);

#endif
