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

// Tensors of at least this many bytes go through shared memory, because copying them costs more
// than using a region.
#define INF_CLIENT_REGION_FROM_BYTES (16u << 10)
// The most bytes of idle regions that are kept. Regions beyond it are returned to the system.
#define INF_CLIENT_IDLE_BYTES ((size_t)128 << 20)
// Number of entries in the table of regions. Only half of them are used for live regions; the
// others are for regions whose release the daemon has not confirmed.
#define INF_CLIENT_REGION_SLOTS 512u

// One region. The caller sees it as inferd_memory. The library has further regions for its own use.
struct inferd_memory {
    inferd_client *client;
    uint8_t *data;   // the mapping; NULL after the region is retired
    size_t size;     // size in bytes that the caller requested
    size_t capacity; // size of the mapping in bytes
    uint64_t region_id;
    uint64_t register_stream; // stream number of the frame MEM_REGISTER for this region
    uint64_t release_stream;  // stream number of the frame MEM_UNREGISTER; 0: not sent yet
    uint64_t used_at;         // value of inf_client_region_table.use_clock at the last release
    uint32_t references;      // 0: the region is idle
    bool counted;             // the region counts against the daemon's limits
    bool tainted;             // a request ended although the daemon may still write to this region
    bool retired;             // the region is unmapped and waits for MEM_RELEASED
    bool refused;             // the daemon refused the registration; `refusal` has the reason
    char refusal[200];
};

// All regions of a client. Zero-initialise, then set from_bytes.
struct inf_client_region_table {
    inferd_memory *entries[INF_CLIENT_REGION_SLOTS];
    uint32_t slots_used; // all entries from this index on are NULL
    uint32_t count;      // number of registered regions; `bytes` is the sum of their sizes
    uint64_t bytes;
    uint64_t generation; // the generation in the id of the newest region, which makes ids unique
    // Number of regions that became idle so far. It serves as a clock, to find the region that has
    // been idle for the longest time.
    uint64_t use_clock;
    size_t idle_bytes;
    // Until this time the library creates no new region for its own use, because the daemon has
    // refused a region.
    uint64_t refused_until_ns;
    size_t from_bytes; // tensors of at least this size go through shared memory
};

// Returns in *memory a region of at least `size` bytes with one reference. The region is an idle
// one, or a new one whose registration is queued. Never blocks.
//
// INF_INVALID    `size` is 0 or too large.
// INF_EXHAUSTED  there is no memory, or the daemon's limits are reached.
enum inf_code inf_client_region_acquire(inferd_client *client, size_t size, inferd_memory **memory,
                                        struct inf_error *err) INF_NODISCARD;

// Returns a region as inf_client_region_acquire() does, for tensors that could also go through the
// socket. During one second after the daemon has refused a region, the function returns only idle
// regions, and otherwise fails.
enum inf_code inf_client_region_acquire_optional(inferd_client *client, size_t size,
                                                 inferd_memory **memory,
                                                 struct inf_error *err) INF_NODISCARD;

// Adds a reference to a region.
void inf_client_region_ref(inferd_memory *memory);

// Releases a reference and sets the pointer to NULL; a NULL region is allowed. If the daemon may
// still use the memory (`daemon_done` is false), the region is retired and not reused.
void inf_client_region_unref(inferd_memory **memory, bool daemon_done);

// Returns the region with this id, or NULL if there is none.
inferd_memory *inf_client_region_find(const inferd_client *client, uint64_t region_id);

// Handles the daemon's answer to a registration or a release: MEM_REGISTERED or MEM_RELEASED,
// decoded in client->message, or an error (`refusal`, otherwise NULL). Returns false if the frame
// answers no registration or release of this client.
bool inf_client_region_handle_reply(inferd_client *client, const struct inf_frame *frame,
                                    const struct inf_error *refusal);

// Frees the regions that are not in use. Called when the connection has ended, and with it every
// registration.
void inf_client_region_table_reset(inferd_client *client);

// Registers the regions that are in use with a new connection.
enum inf_code inf_client_region_table_register(inferd_client *client,
                                               struct inf_error *err) INF_NODISCARD;

// Unmaps and frees every region of the client.
void inf_client_region_table_fini(inferd_client *client);

#endif
