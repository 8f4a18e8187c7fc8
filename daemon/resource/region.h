// SPDX-License-Identifier: Apache-2.0
// Memory that a client shares with the daemon: memfds, mapped once and then named by number in each
// request. Ids belong to one connection. Everything here is the loop's; workers only use the
// pointers that a job carries, which stay valid as long as the job holds the region.
#ifndef INF_DAEMON_RESOURCE_REGION_H
#define INF_DAEMON_RESOURCE_REGION_H

#include <stdbool.h>
#include <stdint.h>

#include "backends/base/role.h"
#include "backends/device/mapping.h"
#include "daemon/resource/deferred_close.h"
#include "daemon/resource/quota.h"
#include "daemon/system/counters.h"
#include "proto/core/status.h"

// Tensors in a region start at multiples of this, as in a frame's data segment.
#define INF_REGION_ALIGNMENT 64

// One mapped region. Its registration holds a reference, each tensor in flight another.
struct inf_region {
    uint64_t id;
    uint8_t *memory; // followed by INF_BLOB_SLACK_BYTES readable ones
    uint64_t size_bytes;
    size_t mapped_bytes;
    struct inf_mapping *mapping; // what devices make of it; NULL: they copy
    bool writable;
    bool registered; // false: unregistered, waiting for what is in flight
    uint32_t references;
    uint64_t release_stream;        // what its MEM_RELEASED answers
    struct inf_region_table *table; // NULL once the connection is gone
    struct inf_deferred_close *deferred_close;
    struct inf_counters *counters;
    struct inf_quota_user *user; // a reference: who is charged for it
    struct inf_region *next;
};

// The regions of one connection. Embedded.
struct inf_region_table {
    struct inf_region *regions;  // those last used first
    struct inf_region *released; // unmapped, MEM_RELEASED still to be sent
    uint32_t count;
    uint64_t bytes;
    struct inf_deferred_close *deferred_close;
    struct inf_counters *counters;
    struct inf_quota_user *user;
};

// Prepares an embedded table. `reaper` and `counters` outlive it and every region in flight; `user`,
// who is charged for the regions, outlives the table.
void inf_region_table_init(struct inf_region_table *table,
                           struct inf_deferred_close *deferred_close, struct inf_counters *counters,
                           struct inf_quota_user *user);

// Drops all registrations; regions in flight are unmapped with their last tensor.
void inf_region_table_fini(struct inf_region_table *table) INF_ON_LOOP;

// What a client asks to be mapped.
struct inf_region_options {
    uint64_t id; // the client's choice; not 0
    uint64_t size_bytes;
    bool writable;
    int fd; // closed in any case
};

// Maps a memfd.
//
// INF_INVALID       (BAD_PARAMETER) the id or the size is 0; (SIZE_MISMATCH) the file is smaller.
// INF_EXISTS        (REGION_EXISTS)
// INF_PRECONDITION  (SEALS_MISSING) no memfd, or not sealed against SHRINK, GROW and SEAL;
//                   (REGION_SPARSE) pages are missing: reading them would charge the daemon.
// INF_EXHAUSTED     (QUOTA_BYTES) more regions or bytes than a connection or a user may have;
//                   (HOST_OOM)
enum inf_code inf_region_register(struct inf_region_table *table,
                                  const struct inf_region_options *options,
                                  struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Takes a region's registration back; inf_region_table_next_released() tells when it is gone.
//
// INF_NOT_FOUND  (REGION_NOT_FOUND)
enum inf_code inf_region_unregister(struct inf_region_table *table, uint64_t id, uint64_t stream_id,
                                    struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Makes a memfd of the daemon's own, sealed, and maps it as a writable region. *out_fd is for the
// client, and the caller's to close. Fails as inf_region_register().
enum inf_code inf_region_allocate(struct inf_region_table *table, uint64_t id, uint64_t size_bytes,
                                  int *out_fd, struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Takes the next region off the list of those that are gone; false where there is none.
bool inf_region_table_next_released(struct inf_region_table *table, uint64_t *id,
                                    uint64_t *stream_id) INF_NODISCARD INF_ON_LOOP;

// A stretch of a region, for one tensor.
struct inf_region_range {
    uint64_t id;
    uint64_t offset;
    uint64_t length;
    bool write;
};

// Finds the memory of a stretch and holds its region.
//
// INF_NOT_FOUND     (REGION_NOT_FOUND)
// INF_RANGE         (REGION_BOUNDS)
// INF_INVALID       (BAD_PARAMETER) the offset is not a multiple of INF_REGION_ALIGNMENT.
// INF_PRECONDITION  it would be written, but is not registered as writable.
enum inf_code inf_region_acquire(struct inf_region_table *table,
                                 const struct inf_region_range *range,
                                 struct inf_region **out_region, uint8_t **out_memory,
                                 struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Lets a region go that inf_region_acquire() gave, and sets the pointer NULL.
void inf_region_release(struct inf_region **region) INF_ON_LOOP;

#endif
