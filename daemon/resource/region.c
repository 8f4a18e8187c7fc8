// SPDX-License-Identifier: Apache-2.0
// Shared memory of clients.
//
// The problem: tensors are read and written in memory that the client controls. A client that
// truncates its file would kill the daemon with SIGBUS. A file on a slow file system would block
// the loop. A sparse file would charge its pages to the daemon. A client may disconnect while a
// worker still writes.
//
// The checks against these problems, in order: Only memfds are accepted, because only they have
// seals, and they must be sealed against shrinking, growing and further sealing. (Memfds of
// memfd_secret(2) have no seals.) The seals are checked first, because fstat() of another kind of
// file may block. The pages must have the usual size, because a mapping of huge pages is longer
// than the address range that is reserved for it. All pages must be allocated before registration.
// A region is mapped once, with one readable page behind it, because kernels read a little past the
// end of a tensor. A client may free pages of a registered memfd again (punch holes), or never
// write those of a memfd that the daemon made (MEM_ALLOC). Therefore the allocated blocks are
// checked at each use: a hole is refused, except that outputs may fill the holes of a memfd made
// here, which is charged to the user. (A client that punches a hole between the check and the run
// makes the daemon allocate the pages again. The limit of region bytes bounds that.) A region is
// reference counted: the registration holds one reference, each tensor in flight another. When the
// last reference is dropped, the memory is unmapped and the user refunded:
//
//   register --> registered, refs 1 --tensor--> refs 2 --unregister--> not registered, refs 1
//     --tensor done--> unmapped, MEM_RELEASED sent
//
// If the connection is already closed then (table == NULL), nothing is sent and the region is freed
// at once.
#include "daemon/resource/region.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "backends/base/blob.h"
#include "proto/core/limits.h"
#include "proto/core/span.h"

// Smaller regions are not mapped on devices, because copying them is faster.
#define MAPPING_BYTES_MIN ((size_t)16 << 10)

#define SEALS_WANTED (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

void inf_region_table_init(struct inf_region_table *table,
                           struct inf_deferred_close *deferred_close, struct inf_counters *counters,
                           struct inf_quota_user *user)
{
    *table = (struct inf_region_table){
        .deferred_close = deferred_close, .counters = counters, .user = user};
}

static void free_list(struct inf_region *first)
{
    while (first != NULL) {
        struct inf_region *gone = first;
        first = gone->next;
        free(gone);
    }
}

static void unlink_region(struct inf_region_table *table, struct inf_region *region)
{
    struct inf_region **link = &table->regions;
    while (*link != region)
        link = &(*link)->next;
    *link = region->next;
    region->next = NULL;
    table->count--;
    table->bytes -= region->size_bytes;
}

// Drops a reference to a region. Dropping the last one unmaps the region. If the connection is
// open, the region is also put into table->released, so that MEM_RELEASED is sent.
static void drop_reference(struct inf_region *region) INF_ON_LOOP
{
    assert(region->references > 0);
    if (--region->references > 0)
        return;
    // This close() never blocks, because it is not the last one: the mapping keeps the memfd alive.
    close(region->fd);
    inf_deferred_close_unmap(region->deferred_close, region->memory, region->mapped_bytes,
                             &region->mapping);
    region->memory = NULL;
    region->counters->regions--;
    region->counters->region_bytes -= region->size_bytes;
    inf_quota_refund(region->user, INF_QUOTA_REGIONS, 1);
    inf_quota_refund(region->user, INF_QUOTA_REGION_BYTES, region->size_bytes);
    inf_quota_refund(region->user, INF_QUOTA_FILLED_BYTES, region->filled_bytes);
    inf_quota_unref(&region->user);
    struct inf_region_table *table = region->table;
    if (table == NULL) {
        free(region);
        return;
    }
    unlink_region(table, region);
    region->next = table->released;
    table->released = region;
}

void inf_region_table_fini(struct inf_region_table *table)
{
    struct inf_region *region = table->regions;
    while (region != NULL) {
        struct inf_region *next = region->next;
        region->table = NULL;
        region->next = NULL;
        if (region->registered) {
            region->registered = false;
            drop_reference(region);
        }
        region = next;
    }
    free_list(table->released);
    *table = (struct inf_region_table){
        .deferred_close = table->deferred_close, .counters = table->counters, .user = table->user};
}

static struct inf_region *find_region(struct inf_region_table *table, uint64_t id)
{
    struct inf_region **link = &table->regions;
    while (*link != NULL && (*link)->id != id)
        link = &(*link)->next;
    struct inf_region *found = *link;
    if (found != NULL && found != table->regions) {
        *link = found->next;
        found->next = table->regions;
        table->regions = found;
    }
    return found;
}

// Checks the seals. Only a memfd has seals, so this also rejects every file whose operations could
// block.
static enum inf_code check_seals(const struct inf_region_options *options, int *out_seals,
                                 struct inf_error *err)
{
    int seals = fcntl(options->fd, F_GET_SEALS);
    if (seals < 0)
        return inf_fail_reason(err, INF_PRECONDITION, INF_REASON_SEALS_MISSING,
                               "region %" PRIu64 ": not a memfd", options->id);
    if ((seals & SEALS_WANTED) != SEALS_WANTED)
        return inf_fail_reason(err, INF_PRECONDITION, INF_REASON_SEALS_MISSING,
                               "region %" PRIu64 ": the memfd is not sealed with%s%s%s",
                               options->id, (seals & F_SEAL_SHRINK) == 0 ? " F_SEAL_SHRINK" : "",
                               (seals & F_SEAL_GROW) == 0 ? " F_SEAL_GROW" : "",
                               (seals & F_SEAL_SEAL) == 0 ? " F_SEAL_SEAL" : "");
    if (options->writable && (seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)) != 0)
        return inf_fail_reason(err, INF_PRECONDITION, INF_REASON_BAD_PARAMETER,
                               "region %" PRIu64 ": to be writable, but sealed against writing",
                               options->id);
    *out_seals = seals;
    return INF_OK;
}

// Checks that the file has pages of the usual size. A memfd of huge pages (MFD_HUGETLB) has seals
// too, but the kernel rounds its mapping up to the size of a huge page, which would overwrite other
// mappings at the addresses after the region.
static enum inf_code check_pages(const struct inf_region_options *options, struct inf_error *err)
{
    struct statfs system;
    if (fstatfs(options->fd, &system) < 0 || (unsigned long)system.f_type != TMPFS_MAGIC ||
        system.f_bsize != sysconf(_SC_PAGESIZE))
        return inf_fail_reason(err, INF_PRECONDITION, INF_REASON_SEALS_MISSING,
                               "region %" PRIu64
                               ": not a memfd of pages of %ld bytes; huge pages "
                               "(MFD_HUGETLB) cannot be shared",
                               options->id, sysconf(_SC_PAGESIZE));
    return INF_OK;
}

// Up to this size, blocks beyond the end of a memfd are freed. Freeing takes about 10 ms for this
// many bytes, and the loop serves no client meanwhile. A client can hide a hole of a larger memfd
// only behind as many bytes of its own.
#define FREE_BYTES_MAX ((uint64_t)64 << 20)

// Frees blocks beyond the end of the file, by setting the size that the file has already, and
// updates *file. Files without such blocks, which are usual, do not change.
static enum inf_code free_hidden_blocks(const struct inf_region_options *options, struct stat *file,
                                        struct inf_error *err)
{
    uint64_t allocated = (uint64_t)file->st_blocks * 512;
    if (allocated > (uint64_t)file->st_size + FREE_BYTES_MAX)
        return inf_fail_reason(err, INF_PRECONDITION, INF_REASON_REGION_SPARSE,
                               "region %" PRIu64 ": %" PRIu64
                               " bytes are allocated, more than the "
                               "%" PRIu64 " of the memfd",
                               options->id, allocated, (uint64_t)file->st_size);
    if ((uint64_t)file->st_size > FREE_BYTES_MAX)
        return INF_OK;
    if (ftruncate(options->fd, file->st_size) < 0 || fstat(options->fd, file) < 0)
        return inf_fail_reason(err, INF_PRECONDITION, INF_REASON_BAD_PARAMETER,
                               "region %" PRIu64
                               ": its blocks cannot be checked: %s; wanted a "
                               "memfd that is open for writing",
                               options->id, strerror(errno));
    return INF_OK;
}

// Checks that every page of the file is allocated. Pages of a hole are allocated at the first read
// and charged to the reader, which is the daemon. The kernel only tells how many blocks a file has,
// so the caller frees blocks beyond the end of the file before, which would hide a hole. None can
// be added later, because the file is sealed against growing.
static enum inf_code check_blocks(const struct inf_region_options *options, const struct stat *file,
                                  struct inf_error *err)
{
    uint64_t size = (uint64_t)file->st_size;
    uint64_t allocated = (uint64_t)file->st_blocks * 512;
    if (allocated < size)
        return inf_fail_reason(err, INF_PRECONDITION, INF_REASON_REGION_SPARSE,
                               "region %" PRIu64 ": only %" PRIu64 " of %" PRIu64
                               " bytes are allocated; write or fallocate() all of them first",
                               options->id, allocated, size);
    return INF_OK;
}

static enum inf_code check_file(struct inf_region_options *options, struct inf_error *err)
{
    struct stat file;
    if (fstat(options->fd, &file) < 0 || !S_ISREG(file.st_mode))
        return inf_fail_reason(err, INF_PRECONDITION, INF_REASON_SEALS_MISSING,
                               "region %" PRIu64 ": not a regular memfd", options->id);
    if ((uint64_t)file.st_size < options->size_bytes)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_SIZE_MISMATCH,
                               "region %" PRIu64 ": the memfd has %" PRIu64 " bytes, %" PRIu64
                               " were declared",
                               options->id, (uint64_t)file.st_size, options->size_bytes);
    INF_TRY(free_hidden_blocks(options, &file, err));
    options->allocated_bytes = (uint64_t)file.st_blocks * 512;
    return check_blocks(options, &file, err);
}

// Checks a memfd that an earlier process of the daemon made, which may have holes.
static enum inf_code check_own_file(struct inf_region_options *options, struct inf_error *err)
{
    struct stat file;
    if (fstat(options->fd, &file) < 0 || (uint64_t)file.st_size < options->size_bytes)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_SIZE_MISMATCH,
                               "region %" PRIu64 ": the memfd is smaller than %" PRIu64 " bytes",
                               options->id, options->size_bytes);
    options->allocated_bytes =
        inf_size_align((size_t)options->size_bytes, (size_t)sysconf(_SC_PAGESIZE));
    return INF_OK;
}

// Maps the file, followed by a readable page, because kernels read past the end of operands.
static enum inf_code map_file(struct inf_region *region, const struct inf_region_options *options,
                              int seals, struct inf_error *err)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t file_bytes = inf_size_align((size_t)options->size_bytes, page);
    size_t total = file_bytes + page;
    uint8_t *memory = mmap(NULL, total, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "region %" PRIu64 ": no address space", options->id);
    int protection = options->writable ? PROT_READ | PROT_WRITE : PROT_READ;
    // Use a private mapping for a write-sealed file, because kernels before 6.7 refuse a shared
    // mapping of it even for reading. The file cannot change, so a private mapping is equivalent.
    int sharing = (seals & F_SEAL_WRITE) != 0 ? MAP_PRIVATE : MAP_SHARED;
    if (mmap(memory, file_bytes, protection, sharing | MAP_FIXED, options->fd, 0) == MAP_FAILED) {
        int error = errno;
        munmap(memory, total);
        return inf_fail(err, INF_PRECONDITION, "region %" PRIu64 ": cannot be mapped: %s",
                        options->id, strerror(error));
    }
    region->memory = memory;
    region->mapped_bytes = total;
    // The file is sealed against shrinking, so devices may read the whole mapping at any time.
    if (file_bytes >= MAPPING_BYTES_MIN &&
        inf_mapping_create(&region->mapping, memory, file_bytes, NULL) != INF_OK)
        region->mapping = NULL;
    return INF_OK;
}

static enum inf_code check_limits(struct inf_region_table *table,
                                  const struct inf_region_options *options, struct inf_error *err)
{
    if (options->id == 0)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                               "region: the id is 0, wanted another");
    if (options->size_bytes == 0)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                               "region %" PRIu64 ": the size is 0", options->id);
    if (find_region(table, options->id) != NULL)
        return inf_fail_reason(err, INF_EXISTS, INF_REASON_REGION_EXISTS,
                               "region %" PRIu64 ": there is one of this id", options->id);
    if (table->count >= INF_LIMIT_REGIONS)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_QUOTA_BYTES,
                               "region %" PRIu64 ": the connection has %u regions already",
                               options->id, table->count);
    if (!inf_range_ok(table->bytes, options->size_bytes, INF_LIMIT_REGION_BYTES))
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_QUOTA_BYTES,
                               "region %" PRIu64 ": %" PRIu64 " bytes, with %" PRIu64
                               " registered already; the limit of a connection is %" PRIu64,
                               options->id, options->size_bytes, table->bytes,
                               INF_LIMIT_REGION_BYTES);
    return INF_OK;
}

static enum inf_code charge_user(struct inf_quota_user *user, uint64_t bytes,
                                 struct inf_error *err) INF_ON_LOOP
{
    INF_TRY(inf_quota_charge(user, INF_QUOTA_REGIONS, 1, err));
    enum inf_code code = inf_quota_charge(user, INF_QUOTA_REGION_BYTES, bytes, err);
    if (code != INF_OK)
        inf_quota_refund(user, INF_QUOTA_REGIONS, 1);
    return code;
}

static enum inf_code create_region(struct inf_region_table *table,
                                   const struct inf_region_options *options, int seals,
                                   struct inf_error *err) INF_ON_LOOP
{
    struct inf_region *region = calloc(1, sizeof *region);
    if (region == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "region %" PRIu64 ": no memory", options->id);
    enum inf_code code = map_file(region, options, seals, err);
    if (code != INF_OK) {
        free(region);
        return code;
    }
    region->user = inf_quota_ref(table->user);
    region->id = options->id;
    region->size_bytes = options->size_bytes;
    region->fd = options->fd;
    region->made_here = options->made_here;
    region->allocated_bytes = options->allocated_bytes;
    region->writable = options->writable;
    region->registered = true;
    region->references = 1;
    region->table = table;
    region->deferred_close = table->deferred_close;
    region->counters = table->counters;
    region->next = table->regions;
    table->regions = region;
    table->count++;
    table->bytes += region->size_bytes;
    table->counters->regions++;
    table->counters->region_bytes += region->size_bytes;
    return INF_OK;
}

static enum inf_code charge_and_create(struct inf_region_table *table,
                                       const struct inf_region_options *options, int seals,
                                       struct inf_error *err) INF_ON_LOOP
{
    INF_TRY(charge_user(table->user, options->size_bytes, err));
    enum inf_code code = create_region(table, options, seals, err);
    if (code == INF_OK)
        return INF_OK;
    inf_quota_refund(table->user, INF_QUOTA_REGIONS, 1);
    inf_quota_refund(table->user, INF_QUOTA_REGION_BYTES, options->size_bytes);
    return code;
}

enum inf_code inf_region_register(struct inf_region_table *table,
                                  const struct inf_region_options *wanted, struct inf_error *err)
{
    struct inf_region_options copy = *wanted, *options = &copy;
    int seals = 0;
    enum inf_code code = check_limits(table, options, err);
    if (code == INF_OK)
        code = check_seals(options, &seals, err);
    if (code == INF_OK)
        code = check_pages(options, err);
    if (code == INF_OK && options->made_here)
        code = check_own_file(options, err);
    else if (code == INF_OK)
        code = check_file(options, err);
    if (code == INF_OK)
        code = charge_and_create(table, options, seals, err);
    if (code != INF_OK) {
        // The descriptor may not be a memfd, and its close() may block.
        inf_deferred_close_fd(table->deferred_close, options->fd, table->user);
        return code;
    }
    // The region keeps the descriptor; the limit of regions bounds how many there are. The list
    // entry that was reserved to close it on another thread is used later, to unmap the region
    // there.
    inf_quota_refund(table->user, INF_QUOTA_FDS, 1);
    return INF_OK;
}

#define NOEXEC_SEAL_FLAG 0x0008u // MFD_NOEXEC_SEAL, which older headers do not define

// Creates a sealed memfd for a region that the daemon allocates. Its pages are allocated when they
// are first touched, and charged to the process that touches them. The quota limits how many bytes
// a client gets.
static int create_memfd(uint64_t size_bytes)
{
    int fd = memfd_create("inferd-region", MFD_CLOEXEC | MFD_ALLOW_SEALING | NOEXEC_SEAL_FLAG);
    if (fd < 0 && errno == EINVAL) // Linux before 6.3 does not know NOEXEC_SEAL_FLAG
        fd = memfd_create("inferd-region", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0 ||
        (ftruncate(fd, (off_t)size_bytes) == 0 && fcntl(fd, F_ADD_SEALS, SEALS_WANTED) == 0))
        return fd;
    close(fd);
    return -1;
}

// Creates the region of a memfd that the daemon made. On failure the caller closes the memfd.
static enum inf_code create_own(struct inf_region_table *table,
                                const struct inf_region_options *options,
                                struct inf_error *err) INF_ON_LOOP
{
    INF_TRY(inf_deferred_close_reserve(table->deferred_close, 1, err));
    enum inf_code code = charge_and_create(table, options, SEALS_WANTED, err);
    if (code != INF_OK)
        inf_deferred_close_cancel(table->deferred_close, 1);
    return code;
}

enum inf_code inf_region_allocate(struct inf_region_table *table, uint64_t id, uint64_t size_bytes,
                                  int *out_fd, struct inf_error *err)
{
    struct inf_region_options options = {
        .id = id,
        .size_bytes = size_bytes,
        .writable = true,
        .made_here = true,
        .allocated_bytes = inf_size_align(size_bytes, (size_t)sysconf(_SC_PAGESIZE))};
    INF_TRY(check_limits(table, &options, err));
    options.fd = create_memfd(size_bytes);
    if (options.fd < 0)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "region %" PRIu64 ": no memory for %" PRIu64 " bytes", id,
                               size_bytes);
    // The descriptor for the client, besides that of the region.
    int copy = fcntl(options.fd, F_DUPFD_CLOEXEC, 0);
    enum inf_code code = copy < 0 ? inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                                                    "region %" PRIu64 ": no descriptor", id)
                                  : create_own(table, &options, err);
    if (code == INF_OK) {
        *out_fd = copy;
        return INF_OK;
    }
    close(options.fd);
    if (copy >= 0)
        close(copy);
    return code;
}

static enum inf_code find_registered(struct inf_region_table *table, uint64_t id,
                                     struct inf_region **out_region, struct inf_error *err)
{
    struct inf_region *region = find_region(table, id);
    if (region == NULL || !region->registered)
        return inf_fail_reason(err, INF_NOT_FOUND, INF_REASON_REGION_NOT_FOUND,
                               "region %" PRIu64 ": not registered on this connection", id);
    *out_region = region;
    return INF_OK;
}

enum inf_code inf_region_unregister(struct inf_region_table *table, uint64_t id, uint64_t stream_id,
                                    uint32_t pending_plus_1, struct inf_error *err)
{
    struct inf_region *region = NULL;
    INF_TRY(find_registered(table, id, &region, err));
    region->registered = false;
    region->release_stream = stream_id;
    region->release_pending_plus_1 = pending_plus_1;
    drop_reference(region);
    return INF_OK;
}

bool inf_region_table_next_released(struct inf_region_table *table,
                                    struct inf_released_region *released)
{
    struct inf_region *region = table->released;
    if (region == NULL)
        return false;
    table->released = region->next;
    *released = (struct inf_released_region){.id = region->id,
                                             .stream_id = region->release_stream,
                                             .pending_plus_1 = region->release_pending_plus_1};
    free(region);
    return true;
}

// --- holes ---

// Returns how many bytes of the region have no page, at least.
static uint64_t count_missing(const struct inf_region *region)
{
    struct stat file;
    uint64_t allocated = fstat(region->fd, &file) == 0 ? (uint64_t)file.st_blocks * 512 : 0;
    return region->allocated_bytes - INF_MIN(allocated, region->allocated_bytes);
}

// Returns true if each page of the range is allocated. The range must not be empty.
static bool is_range_allocated(const struct inf_region *region,
                               const struct inf_region_range *range)
{
    off_t hole = lseek(region->fd, (off_t)range->offset, SEEK_HOLE);
    return hole >= 0 && (uint64_t)hole >= range->offset + range->length;
}

// Lets an output fill pages of a memfd that the daemon made, and charges the user.
static enum inf_code charge_filled(struct inf_region *region, uint64_t bytes,
                                   struct inf_error *err) INF_ON_LOOP
{
    uint64_t more = INF_MIN(bytes, region->allocated_bytes - region->filled_bytes);
    INF_TRY(inf_quota_charge(region->user, INF_QUOTA_FILLED_BYTES, more, err));
    region->filled_bytes += more;
    return INF_OK;
}

// Checks that using the range does not make the daemon allocate pages that no user is charged for.
// The usual case, a region without holes, costs one fstat().
static enum inf_code check_holes(struct inf_region *region, const struct inf_region_range *range,
                                 struct inf_error *err) INF_ON_LOOP
{
    uint64_t missing = count_missing(region);
    if (missing == 0 || range->length == 0)
        return INF_OK;
    if (!region->made_here)
        return inf_fail_reason(err, INF_PRECONDITION, INF_REASON_REGION_SPARSE,
                               "region %" PRIu64 ": %" PRIu64 " of %" PRIu64
                               " bytes were freed after it was registered",
                               range->id, missing, region->size_bytes);
    if (is_range_allocated(region, range))
        return INF_OK;
    if (!range->write)
        return inf_fail_reason(err, INF_PRECONDITION, INF_REASON_REGION_SPARSE,
                               "region %" PRIu64 ": %" PRIu64 " bytes at %" PRIu64
                               " were not written yet",
                               range->id, range->length, range->offset);
    return charge_filled(region, INF_MIN(missing, range->length), err);
}

enum inf_code inf_region_acquire(struct inf_region_table *table,
                                 const struct inf_region_range *range,
                                 struct inf_region **out_region, uint8_t **out_memory,
                                 struct inf_error *err)
{
    struct inf_region *region = NULL;
    INF_TRY(find_registered(table, range->id, &region, err));
    if (!inf_range_ok(range->offset, range->length, region->size_bytes))
        return inf_fail_reason(err, INF_RANGE, INF_REASON_REGION_BOUNDS,
                               "region %" PRIu64 ": %" PRIu64 " bytes at %" PRIu64
                               " do not fit its %" PRIu64,
                               range->id, range->length, range->offset, region->size_bytes);
    if (range->offset % INF_REGION_ALIGNMENT != 0)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                               "region %" PRIu64 ": offset %" PRIu64 " is no multiple of %d",
                               range->id, range->offset, INF_REGION_ALIGNMENT);
    if (range->write && !region->writable)
        return inf_fail_reason(err, INF_PRECONDITION, INF_REASON_BAD_PARAMETER,
                               "region %" PRIu64 ": an output, but not registered as writable",
                               range->id);
    INF_TRY(check_holes(region, range, err));
    region->references++;
    *out_region = region;
    *out_memory = region->memory + range->offset;
    return INF_OK;
}

void inf_region_release(struct inf_region **region)
{
    if (*region == NULL)
        return;
    drop_reference(*region);
    *region = NULL;
}
