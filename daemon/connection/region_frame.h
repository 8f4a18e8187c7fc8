// SPDX-License-Identifier: Apache-2.0
// Handles the frames that manage shared memory: MEM_REGISTER, MEM_ALLOC and MEM_UNREGISTER.
#ifndef INF_DAEMON_CONNECTION_REGION_FRAME_H
#define INF_DAEMON_CONNECTION_REGION_FRAME_H

#include "daemon/connection/state.h"

// Handles a MEM_REGISTER frame: the client passes a descriptor of shared memory.
void inf_connection_register_region(struct inf_connection *connection,
                                    struct inf_frame *frame) INF_ON_LOOP;

// Handles a MEM_ALLOC frame: the daemon creates shared memory and passes a descriptor back.
void inf_connection_allocate_region(struct inf_connection *connection,
                                    const struct inf_frame *frame) INF_ON_LOOP;

// Handles a MEM_UNREGISTER frame.
void inf_connection_unregister_region(struct inf_connection *connection,
                                      const struct inf_frame *frame) INF_ON_LOOP;

#endif
