// SPDX-License-Identifier: Apache-2.0
// The configuration of the daemon: files, environment and arguments, read once, validated as a
// whole, and passed down as a struct. Unknown keys are refused with the most similar name.
#ifndef INF_DAEMON_CONFIG_CONFIG_H
#define INF_DAEMON_CONFIG_CONFIG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "daemon/config/log_level.h"
#include "proto/core/limits.h"
#include "proto/core/status.h"

// The default path of the configuration file. A missing file is an error only if --config names it.
#define INF_CONFIG_FILE "/etc/inferd/inferd.conf"

// Environment variable with settings: "name=value,name=value".
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
    INF_ORIGIN_DERIVED, // the daemon computed the value from another flag
    INF_ORIGIN_FILE,
    INF_ORIGIN_DROP_IN,
    INF_ORIGIN_ENVIRONMENT,
    INF_ORIGIN_ARGUMENT,
    INF_ORIGIN_MODEL,     // the settings file of a model sets the value for this model
    INF_ORIGIN_PERSISTED, // as ADMIN, with --persist, so that it holds after a restart
    INF_ORIGIN_ADMIN,     // an admin used inferctl flags set or inferctl place
};

// The values of all flags of the daemon. flags.def has the name, default, range and help of each;
// a test checks that the manual page inferd.8 lists the same flags.
struct inf_config {
    char repository[INF_CONFIG_TEXT]; // directory of models; "": none
    char watch[INF_CONFIG_TEXT];      // how the repository is watched: "auto", "poll" or "never"
    uint32_t watch_settle_ms;         // time without changes after which a changed model is loaded
    uint32_t watch_poll_ms;           // interval at which files are checked if inotify is not used
    // If all loaded models together need more bytes than this, idle models are unloaded; 0: no
    // limit.
    uint64_t model_bytes_max;
    uint64_t memory_max; // memory that the daemon may use; 0: from the control group or the machine
    char ready_file[INF_CONFIG_TEXT]; // file that marks a complete model directory; "": none
    uint64_t plan_bytes_max;          // bytes of plans that are kept in cache_dir; 0: none are
    char cache_dir[INF_CONFIG_TEXT];  // compiled code and measurements for the next start; "": none
    char state_dir[INF_CONFIG_TEXT];  // settings that admins made persistent; "": none
    // Directory of both sockets; "": none. If it is set, the run is private: the daemon ignores the
    // system-wide configuration file, model repository and cache.
    char runtime_dir[INF_CONFIG_TEXT];
    char socket[INF_CONFIG_TEXT];         // path of the data socket, created with mode 0660
    char admin_socket[INF_CONFIG_TEXT];   // path of the admin socket, created with mode 0600
    char admin_group[INF_CONFIG_TEXT];    // group of admins; "": only root and the daemon's user
    char backends[INF_CONFIG_TEXT];       // names of enabled backends, with commas; "": all
    char device[INF_CONFIG_TEXT];         // default device of models; "auto": the daemon chooses
    char devices[INF_CONFIG_TEXT];        // names of the devices to use, with commas; "": all
    char devices_denied[INF_CONFIG_TEXT]; // names of devices not to use, with commas; "": none
    char power[INF_CONFIG_TEXT]; // preferred GPUs: "any"; "low": integrated; "high": discrete
    char race[INF_CONFIG_TEXT];  // whether devices race for a model: "auto", "always", "never"
    // Largest allowed difference between the outputs of a racing device and the reference device.
    double race_tolerance;
    // A model is reported as slow if its median run time exceeds its best median times this factor;
    // 0: never.
    double drift_factor;
    uint32_t drift_after_ms; // how long a model must be slow before this is reported
    uint32_t shadow_interval;
    // Number of concurrent runs on the CPU; 0: chosen automatically.
    uint32_t cpu_slots;
    uint32_t cpu_threads;              // number of CPU threads; 0: chosen automatically
    char cpu_isa_max[INF_CONFIG_TEXT]; // highest ISA level for native kernels of cpu; "auto"
    // Steps of a GPU plan run on the CPU if their tensors are in host memory and have fewer
    // elements than this; 0: no step does.
    uint32_t gpu_handoff_elements;
    uint64_t gpu_memory_bytes; // memory limit of each GPU; 0: what its driver allows
    bool gpu_standby; // compile models on a GPU also for the device that takes over if it is lost
    // When shaders are compared with the reference device before their first use: "auto", "always"
    // or "never".
    char gpu_shader_check[INF_CONFIG_TEXT];
    char vulkan_loader[INF_CONFIG_TEXT];  // path of libvulkan.so; "": the one of the system
    char vulkan_drivers[INF_CONFIG_TEXT]; // driver manifests, separated by colons; "": all
    uint32_t connections_max;             // the most connections that may be open at once
    // Limits of one connection:
    uint32_t requests_per_connection_max;      // the most requests in flight
    uint64_t request_bytes_per_connection_max; // the most bytes of inline data in flight
    uint64_t reply_bytes_soft_max; // unread reply bytes above which the daemon reads no requests
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
    uint32_t fds_per_uid_max;           // the most connections plus received descriptors
    uint32_t device_ms_per_uid_max;     // device milliseconds per second; 0: no limit
    uint32_t requests_per_uid_max;      // the most requests of the user in flight
    uint64_t request_bytes_per_uid_max; // the most bytes of inline data in requests in flight
    uint32_t regions_per_uid_max;
    uint64_t region_bytes_per_uid_max;
    // Bytes that the daemon allocates by writing outputs to regions that it made (MEM_ALLOC).
    uint64_t region_alloc_bytes_per_uid_max;
    // Bytes of the executables that the user's requests make for shapes that no load prepared.
    uint64_t arena_bytes_per_uid_max;
    uint64_t request_memory_max; // bytes of intermediate results of one request; 0: no limit
    // The most bytes of tensors that the daemon keeps in the user's sessions.
    uint64_t session_bytes_per_uid_max;
    uint32_t queue_requests_max; // the most queued requests per device
    uint64_t queue_bytes_max;    // the most bytes of inline data in queued requests, per device
    uint32_t batch_rows_max; // rows of different requests that may run in one batch; 1: no batches
    uint32_t drain_timeout_ms;        // time that requests in flight get after SIGTERM
    uint32_t load_limit_ms;           // a load that takes longer is cancelled
    uint32_t run_limit_ms;            // a run that takes longer is cancelled
    uint32_t run_grace_ms;            // a cancelled run that takes this much longer is stuck
    uint32_t slow_ms;                 // a request that takes this long is logged as slow; 0: never
    char log_level[INF_CONFIG_TEXT];  // "error", "warning", "notice", "info", "debug"
    char log[INF_CONFIG_TEXT];        // levels of single parts: "PART:LEVEL,PART:LEVEL"
    uint32_t log_kind_lines;          // warnings and errors of one kind per minute; 0: no limit
    char trace_file[INF_CONFIG_TEXT]; // file for spans; "": none
    char trace_socket[INF_CONFIG_TEXT]; // datagram socket for spans; "": none
    uint64_t trace_file_bytes;          // size at which the file is renamed
    double trace_rate;                  // share of requests without a context that are traced
    bool trace_parents;                 // trace requests that the client samples
    bool load_all;                      // load all models of the repository at start
    bool help, version, check;          // --help, --version and --check are given as arguments
    uint8_t origins[INF_FLAG_COUNT];    // enum inf_origin of each flag
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

// Writes the log level of each part: that of the flag `log`, or else log_level.
void inf_config_log_levels(const struct inf_config *config,
                           enum inf_log_level levels[INF_LOG_PARTS]);

// Prints the usage text to `out`, with every flag, its default and its help.
void inf_config_help(FILE *out);

#endif
