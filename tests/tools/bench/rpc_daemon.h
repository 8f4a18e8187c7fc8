// SPDX-License-Identifier: Apache-2.0
// A daemon of a benchmark's own, in a directory of its own, with the models that the benchmark wants.
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

// The inferd beside this program in the build directory, or $INFERD.
const char *rpc_daemon_path(void);

// Makes the directory. Everybody may go into it, so that other users can be clients.
void rpc_daemon_make(struct rpc_daemon *daemon);

// Makes room for a model: `directory` becomes where its files go.
void rpc_daemon_add_model(struct rpc_daemon *daemon, const char *name, char directory[96]);

// Starts the program at `path` with the arguments (NULL ends them) and waits until all its models can
// be asked. Ends this program where that does not happen.
void rpc_daemon_start(struct rpc_daemon *daemon, const char *path, const char *const *arguments);

// Ends the daemon and removes the directory.
void rpc_daemon_stop(struct rpc_daemon *daemon);

#endif
