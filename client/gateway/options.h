// SPDX-License-Identifier: Apache-2.0
// Parses the command line of the gateway.
#ifndef INF_GATEWAY_OPTIONS_H
#define INF_GATEWAY_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "client/gateway/http/server.h"

// Maximum number of --listen and --listen-admin options together.
#define INF_GATEWAY_ADDRESSES 16u

struct inf_gateway_options {
    const char *socket, *admin_socket; // the daemon's sockets; NULL: the default path
    const char *tokens;                // file with tokens; NULL: no token is needed
    struct {
        const char *text;
        bool admin;
    } addresses[INF_GATEWAY_ADDRESSES];
    unsigned address_count;
    struct inf_http_limits limits;
    uint64_t timeout_ms;
    uint64_t sequences_max, sequence_idle_ms;
};

// Parses the arguments. Returns -1 if the gateway is to be started, otherwise the exit status with
// which the program must end at once. The strings in *options point to `argv`.
int inf_gateway_options_parse(struct inf_gateway_options *options, int argc, char **argv);

#endif
