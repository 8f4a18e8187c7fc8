// SPDX-License-Identifier: Apache-2.0
// A daemon for a benchmark, in a directory of its own, with the models that the benchmark needs.
#ifndef INF_TESTS_TOOLS_BENCH_RPC_DAEMON_H
#define INF_TESTS_TOOLS_BENCH_RPC_DAEMON_H

#include <sys/types.h>

#define RPC_DAEMON_MODELS_MAX 4

struct rpc_daemon {
    char directory[32];
    char socket[64];
    pid_t pid;
    unsigned model_count;
    char models[RPC_DAEMON_MODELS_MAX][64];
};

// Returns the path of inferd: $INFERD, or the inferd of this program's build directory.
const char *rpc_daemon_path(void);

// Creates the daemon's directory. All users may enter it, so that clients of other users work.
void rpc_daemon_make(struct rpc_daemon *daemon);

// Creates the folder of a model, and stores its path in `directory`.
void rpc_daemon_add_model(struct rpc_daemon *daemon, const char *name, char directory[96]);

// Starts the program at `path` with the arguments (the last one is NULL), and waits until all its
// models are ready. Exits the program if that fails.
void rpc_daemon_start(struct rpc_daemon *daemon, const char *path, const char *const *arguments);

// Stops the daemon and removes the directory.
void rpc_daemon_stop(struct rpc_daemon *daemon);

#endif
