// SPDX-License-Identifier: Apache-2.0
// Functions that connect and reconnect, and block meanwhile.
#ifndef INF_CLIENT_LIB_CONNECT_H
#define INF_CLIENT_LIB_CONNECT_H

#include <stdint.h>

#include "client/inferd.h"
#include "proto/core/status.h"

// Reconnects as inferd_reconnect() does.
//
// INF_UNAVAILABLE  no daemon answered by `until_ns`.
enum inf_code inf_client_reconnect(inferd_client *client, uint64_t until_ns,
                                   struct inf_error *err) INF_NODISCARD;

#endif
