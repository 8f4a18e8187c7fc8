// SPDX-License-Identifier: Apache-2.0
// Regions: memory shared with the daemon, reused from request to request.
#ifndef INF_CLIENT_LIB_IO_REGION_H
#define INF_CLIENT_LIB_IO_REGION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/inferd.h"
#include "proto/core/status.h"
#include "proto/wire/assembler.h"

// Tensors of at least this many bytes go through shared memory: above it a copy costs more than a
// region.
#define INF_CLIENT_REGION_FROM_BYTES (16u << 10)
// Idle regions beyond this are given back to the system.
#define INF_CLIENT_IDLE_BYTES ((size_t)128 << 20)
// Half of the slots are for regions that the daemon has not confirmed to be released.
#define INF_CLIENT_REGION_SLOTS 512u

// One region. The caller knows it as inferd_memory; the library has others for its own use.
struct inferd_memory {
    inferd_client *client;
    uint8_t *data;   // the mapping; NULL once retired
    size_t size;     // bytes that were asked for
    size_t capacity; // bytes of the mapping
    uint64_t region_id;
    uint64_t register_stream; // the stream of MEM_REGISTER
    uint64_t release_stream;  // the stream of MEM_UNREGISTER; 0: not sent
    uint64_t used_at;         // value of the table's use_clock at the last release
    uint32_t references;      // 0: idle
    bool counted;             // counts against the daemon's limits
    bool tainted;             // a request ended although the daemon may still write here
    bool retired;             // unmapped; waits for MEM_RELEASED
    bool refused;             // the daemon refused the registration; `refusal` says why
    char refusal[200];
};

// Zero-initialise, then set from_bytes.
struct inf_client_region_table {
    inferd_memory *entries[INF_CLIENT_REGION_SLOTS];
    uint32_t slots_used; // entries from here on are NULL
    uint32_t count;      // registered regions and their bytes, as the daemon counts them
    uint64_t bytes;
    uint64_t generation; // of the last region id
    uint64_t use_clock;  // counts releases, to find the region that was idle for longest
    size_t idle_bytes;
    uint64_t
        refused_until_ns; // the daemon refused a region: before this time, none is made for the
                          // library's own use
    size_t from_bytes;    // tensors of at least this size go through shared memory
};

// Returns in *memory a region of at least `size` bytes with one reference: an idle one, or a new
// one whose registration is queued. Never blocks.
//
// INF_INVALID    `size` is 0 or too large.
// INF_EXHAUSTED  no memory, or the daemon's limits are reached.
enum inf_code inf_client_region_acquire(inferd_client *client, size_t size, inferd_memory **memory,
                                        struct inf_error *err) INF_NODISCARD;

// As inf_client_region_acquire(), for tensors that could also go through the socket: for one second
// after the daemon has refused a region, only idle regions are used.
enum inf_code inf_client_region_acquire_optional(inferd_client *client, size_t size,
                                                 inferd_memory **memory,
                                                 struct inf_error *err) INF_NODISCARD;

// Takes another reference.
void inf_client_region_ref(inferd_memory *memory);

// Gives a reference back and sets the pointer to NULL; a NULL region is allowed. If the daemon may
// still use the memory (`daemon_done` is false), the region is given up and not reused.
void inf_client_region_unref(inferd_memory **memory, bool daemon_done);

// Returns the region with this id, or NULL.
inferd_memory *inf_client_region_find(const inferd_client *client, uint64_t region_id);

// Handles MEM_REGISTERED and MEM_RELEASED, decoded in client->message, or an error (`refusal`, else
// NULL) for either. Returns false if the frame answers no registration or release of this client.
bool inf_client_region_handle_reply(inferd_client *client, const struct inf_frame *frame,
                                    const struct inf_error *refusal);

// The connection has ended, and every registration with it: frees the regions that are not in use.
void inf_client_region_table_reset(inferd_client *client);

// Registers the regions that are in use with a new connection.
enum inf_code inf_client_region_table_register(inferd_client *client,
                                               struct inf_error *err) INF_NODISCARD;

// Unmaps and frees every region.
void inf_client_region_table_fini(inferd_client *client);

#endif
