// SPDX-License-Identifier: Apache-2.0
// Memory that a client shares with the daemon: memfds that are mapped once and then named by id in
// each request. Ids belong to one connection. Only the loop calls these functions. Workers use only
// the pointers in a job, which stay valid as long as the job holds the region.
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

// Tensors in a region start at multiples of this, as they do in the data segment of a frame.
#define INF_REGION_ALIGNMENT 64

// One mapped region. Its registration holds one reference, and each tensor in flight another.
struct inf_region {
    uint64_t id;
    uint8_t *memory; // mapped bytes, followed by INF_BLOB_SLACK_BYTES readable bytes
    uint64_t size_bytes;
    size_t mapped_bytes;
    struct inf_mapping *mapping; // mapping of the memory on devices; NULL: devices copy the tensors
    int fd;                      // the memfd, to find pages that the client freed
    // Bytes that are allocated in the memfd while no page of it is missing.
    uint64_t allocated_bytes;
    bool writable;
    bool made_here; // the daemon made the memfd, so its pages may be allocated by outputs
    // Bytes that outputs allocated in a region made here; charged to the user.
    uint64_t filled_bytes;
    // False: the client unregistered the region, and only tensors in flight keep it.
    bool registered;
    uint32_t references;
    // Stream id of the MEM_UNREGISTER frame, which the MEM_RELEASED frame repeats.
    uint64_t release_stream;
    uint32_t release_pending_plus_1; // of inf_region_unregister()
    struct inf_region_table *table; // table of the connection; NULL after the connection was closed
    struct inf_deferred_close *deferred_close;
    struct inf_counters *counters;
    struct inf_quota_user *user; // the user who is charged for the region; a reference
    struct inf_region *next;
};

// The regions of one connection. The struct is embedded in the connection.
struct inf_region_table {
    struct inf_region *regions;  // list of registered regions, most recently used first
    struct inf_region *released; // list of unmapped regions whose MEM_RELEASED is to be sent
    uint32_t count;
    uint64_t bytes;
    struct inf_deferred_close *deferred_close;
    struct inf_counters *counters;
    struct inf_quota_user *user;
};

// Prepares a table that is embedded in a connection. `deferred_close` and `counters` outlive the
// table and every region in flight. `user` is charged for the regions and outlives the table.
void inf_region_table_init(struct inf_region_table *table,
                           struct inf_deferred_close *deferred_close, struct inf_counters *counters,
                           struct inf_quota_user *user);

// Unregisters all regions of the connection. Regions in flight are unmapped when their last tensor
// is done.
void inf_region_table_fini(struct inf_region_table *table) INF_ON_LOOP;

// The memfd to be mapped as a region.
struct inf_region_options {
    uint64_t id; // id that the client chose; not 0
    uint64_t size_bytes;
    bool writable;
    bool made_here;           // the daemon, maybe an earlier process of it, made the memfd
    uint64_t allocated_bytes; // as in struct inf_region; only for regions made here
    // The memfd. inf_region_register() takes ownership of it, even on failure. The user is already
    // charged for it (INF_QUOTA_FDS), and its close is reserved (inf_deferred_close_reserve()).
    int fd;
};

// Maps a memfd.
//
// INF_INVALID       (BAD_PARAMETER) the id or the size is 0; (SIZE_MISMATCH) the file is smaller
//                   than the size.
// INF_EXISTS        (REGION_EXISTS) there is a region with this id already.
// INF_PRECONDITION  (SEALS_MISSING) not a memfd, or not sealed against SHRINK, GROW and SEAL;
//                   (REGION_SPARSE) some pages are not allocated, so reading them would charge the
//                   daemon.
// INF_EXHAUSTED     (QUOTA_BYTES) more regions or bytes than a connection or a user may have;
//                   (HOST_OOM) memory is exhausted.
enum inf_code inf_region_register(struct inf_region_table *table,
                                  const struct inf_region_options *options,
                                  struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Unregisters a region. inf_region_table_next_released() reports the region once it is unmapped,
// with `stream_id` and `pending_plus_1`, which are those of the frame that asked for it.
//
// INF_NOT_FOUND  (REGION_NOT_FOUND) there is no region with this id.
enum inf_code inf_region_unregister(struct inf_region_table *table, uint64_t id, uint64_t stream_id,
                                    uint32_t pending_plus_1,
                                    struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Creates a sealed memfd and maps it as a writable region. The caller sends *out_fd to the client,
// and closes it. The errors are those of inf_region_register().
enum inf_code inf_region_allocate(struct inf_region_table *table, uint64_t id, uint64_t size_bytes,
                                  int *out_fd, struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// A region that was unregistered and is unmapped.
struct inf_released_region {
    uint64_t id;
    uint64_t stream_id;
    uint32_t pending_plus_1;
};

// Removes the next region from the list of unmapped ones. Returns false if the list is empty.
bool inf_region_table_next_released(struct inf_region_table *table,
                                    struct inf_released_region *released) INF_NODISCARD INF_ON_LOOP;

// A range of a region, for one tensor.
struct inf_region_range {
    uint64_t id;
    uint64_t offset;
    uint64_t length;
    bool write; // true: a request will write to the range
};

// Finds the memory of a range and takes a reference to its region.
//
// INF_NOT_FOUND     (REGION_NOT_FOUND) there is no region with this id.
// INF_RANGE         (REGION_BOUNDS) the range extends beyond the region.
// INF_INVALID       (BAD_PARAMETER) the offset is not a multiple of INF_REGION_ALIGNMENT.
// INF_PRECONDITION  the range is to be written, but the region was not registered as writable;
//                   (REGION_SPARSE) the client freed pages of the region, or never wrote a range
//                   that is to be read, so that using it would charge the daemon.
// INF_EXHAUSTED     (QUOTA_BYTES) outputs would allocate more in regions than a user may have.
enum inf_code inf_region_acquire(struct inf_region_table *table,
                                 const struct inf_region_range *range,
                                 struct inf_region **out_region, uint8_t **out_memory,
                                 struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Drops a reference from inf_region_acquire() and sets the pointer to NULL. NULL is allowed.
void inf_region_release(struct inf_region **region) INF_ON_LOOP;

#endif
