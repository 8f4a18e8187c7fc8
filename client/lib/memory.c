// SPDX-License-Identifier: Apache-2.0
// Regions: memory shared with the daemon. Each is one memfd, registered when it is made and kept for
// use again. Ids carry the place in the table: generation << 8 | slot.
#include "client/lib/client.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SLOT_BITS        9u
#define CLASS_MIN_BYTES  ((size_t)64 << 10) // a multiple of any page size
#define REFUSED_PAUSE_NS ((uint64_t)1000 * 1000 * 1000)
#define NOEXEC_SEAL_FLAG 0x0008u // MFD_NOEXEC_SEAL, which older headers lack

_Static_assert(INF_CLIENT_REGION_SLOTS == 1u << SLOT_BITS, "a slot's number fits the id");

// Regions have few different sizes, so that they fit again: quarter steps between powers of two.
static size_t size_class(size_t size)
{
    if (size <= CLASS_MIN_BYTES)
        return CLASS_MIN_BYTES;
    unsigned log2 = 63u - (unsigned)__builtin_clzll((unsigned long long)size - 1);
    size_t step = (size_t)1 << (log2 - 2);
    return inf_size_align(size, INF_MAX(step, CLASS_MIN_BYTES));
}

// A sealed memfd of `size` bytes, none of them a hole: the daemon takes no other.
static int make_memfd(size_t size, struct inf_error *err)
{
    int fd = memfd_create("inferd", MFD_CLOEXEC | MFD_ALLOW_SEALING | NOEXEC_SEAL_FLAG);
    if (fd < 0 && errno == EINVAL) // before Linux 6.3
        fd = memfd_create("inferd", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) {
        inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "cannot make shared memory: %s",
                        strerror(errno));
        return -1;
    }
    if (ftruncate(fd, (off_t)size) < 0 || fallocate(fd, 0, 0, (off_t)size) < 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0) {
        inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                        "cannot make %zu bytes of shared memory: %s", size, strerror(errno));
        close(fd);
        return -1;
    }
    return fd;
}

// The region no longer counts against the daemon's limits.
static void discount(inferd_memory *memory)
{
    if (!memory->counted)
        return;
    memory->counted = false;
    memory->client->region_count--;
    memory->client->region_bytes -= memory->capacity;
}

static void forget(inferd_memory *memory)
{
    inferd_client *client = memory->client;
    client->regions[memory->region_id & (INF_CLIENT_REGION_SLOTS - 1)] = NULL;
    while (client->region_slots > 0 && client->regions[client->region_slots - 1] == NULL)
        client->region_slots--;
    discount(memory);
    free(memory);
}

// Unmaps a region that nobody uses here and asks the daemon to let go of it. The daemon does that
// before it looks at the next frame, unless the region is still in use there.
static void retire(inferd_memory *memory)
{
    inferd_client *client = memory->client;
    munmap(memory->data, memory->capacity);
    memory->data = NULL;
    memory->retired = true;
    if (memory->refused || client->failure.code != INF_OK) {
        forget(memory);
        return;
    }
    client->control.region = (struct inf_region_message){.region_id = memory->region_id};
    struct inf_frame_header header = {
        .type = INF_FRAME_MEM_UNREGISTER,
        .stream_id = client->next_stream++,
    };
    struct inf_error ignored; // without memory for the frame the daemon keeps the region longer
    memory->release_stream = header.stream_id;
    enum inf_code code =
        inf_client_send(client, header, INF_MESSAGE_REGION_UNREGISTER, -1, &ignored);
    if (code == INF_OK && !memory->tainted)
        discount(memory);
}

static void retire_idle(inferd_memory *memory)
{
    memory->client->idle_bytes -= memory->capacity;
    retire(memory);
}

static bool is_idle(const inferd_memory *memory)
{
    return memory != NULL && memory->references == 0 && !memory->retired;
}

// The idle region used last whose capacity is `capacity`; with 0, the one not used for longest.
static inferd_memory *find_idle(const inferd_client *client, size_t capacity)
{
    inferd_memory *best = NULL;
    for (uint32_t slot = 0; slot < client->region_slots; slot++) {
        inferd_memory *memory = client->regions[slot];
        if (!is_idle(memory) || (capacity != 0 && memory->capacity != capacity))
            continue;
        if (best == NULL || (memory->used_at > best->used_at) == (capacity != 0))
            best = memory;
    }
    return best;
}

static bool within_limits(const inferd_client *client, size_t capacity)
{
    uint64_t bytes_max = INF_MIN(client->limits.region_bytes, INF_LIMIT_REGION_BYTES);
    return client->region_count < INF_MIN(client->limits.regions, INF_LIMIT_REGIONS) &&
           inf_range_ok(client->region_bytes, capacity, bytes_max);
}

// Gives up idle regions until one of `capacity` bytes may be made.
static enum inf_code make_room(inferd_client *client, size_t capacity, struct inf_error *err)
{
    while (!within_limits(client, capacity)) {
        inferd_memory *idle = find_idle(client, 0);
        if (idle == NULL)
            return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_QUOTA_BYTES,
                                   "%zu more bytes of shared memory are beyond the daemon's limits "
                                   "(%u regions, %llu bytes; %u and %llu in use)",
                                   capacity, client->limits.regions,
                                   (unsigned long long)client->limits.region_bytes,
                                   client->region_count, (unsigned long long)client->region_bytes);
        retire_idle(idle);
    }
    return INF_OK;
}

static enum inf_code map(inferd_memory *memory, int fd, struct inf_error *err)
{
    void *data =
        mmap(NULL, memory->capacity, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
    if (data == MAP_FAILED)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "cannot map %zu bytes of shared memory: %s", memory->capacity,
                               strerror(errno));
    memory->data = data;
    return INF_OK;
}

// Sends the registration with the descriptor, which it takes over.
static enum inf_code send_register(inferd_memory *memory, int fd, struct inf_error *err)
{
    inferd_client *client = memory->client;
    memory->register_stream = client->next_stream++;
    client->control.region = (struct inf_region_message){
        .region_id = memory->region_id,
        .size = memory->capacity,
        .writable = true,
    };
    struct inf_frame_header header = {
        .type = INF_FRAME_MEM_REGISTER,
        .stream_id = memory->register_stream,
    };
    INF_TRY(inf_client_send(client, header, INF_MESSAGE_REGION_REGISTER, fd, err));
    memory->counted = true;
    client->region_count++;
    client->region_bytes += memory->capacity;
    return INF_OK;
}

// Puts the region in the table and registers it with the descriptor, which it takes over.
static enum inf_code register_memory(inferd_memory *memory, int fd, struct inf_error *err)
{
    inferd_client *client = memory->client;
    uint32_t slot = 0;
    while (slot < INF_CLIENT_REGION_SLOTS && client->regions[slot] != NULL)
        slot++;
    if (slot == INF_CLIENT_REGION_SLOTS) {
        close(fd);
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_QUOTA_BYTES,
                               "the daemon has not confirmed the release of %u regions yet",
                               INF_CLIENT_REGION_SLOTS - client->region_count);
    }
    memory->region_id = ++client->region_generation << SLOT_BITS | slot;
    INF_TRY(send_register(memory, fd, err));
    client->regions[slot] = memory;
    client->region_slots = INF_MAX(client->region_slots, slot + 1);
    return INF_OK;
}

static enum inf_code create(inferd_client *client, size_t capacity, inferd_memory **out_memory,
                            struct inf_error *err)
{
    int fd = make_memfd(capacity, err);
    if (fd < 0)
        return INF_EXHAUSTED;
    inferd_memory *memory = calloc(1, sizeof *memory);
    if (memory == NULL) {
        close(fd);
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "no memory for a region");
    }
    memory->client = client;
    memory->capacity = capacity;
    enum inf_code code = map(memory, fd, err);
    if (code == INF_OK)
        code = register_memory(memory, fd, err);
    else
        close(fd);
    if (code != INF_OK) {
        if (memory->data != NULL)
            munmap(memory->data, capacity);
        free(memory);
        return code;
    }
    *out_memory = memory;
    return INF_OK;
}

enum inf_code inf_memory_acquire(inferd_client *client, size_t size, inferd_memory **out_memory,
                                 struct inf_error *err)
{
    if (size == 0 || size > INF_LIMIT_REGION_BYTES)
        return inf_fail(err, INF_INVALID,
                        "%zu bytes of shared memory were asked for, not 1 to %llu", size,
                        (unsigned long long)INF_LIMIT_REGION_BYTES);
    size_t capacity = size_class(size);
    inferd_memory *memory = find_idle(client, capacity);
    if (memory != NULL) {
        client->idle_bytes -= capacity;
    } else {
        INF_TRY(make_room(client, capacity, err));
        INF_TRY(create(client, capacity, &memory, err));
    }
    memory->size = size;
    memory->references = 1;
    *out_memory = memory;
    return INF_OK;
}

enum inf_code inf_memory_acquire_block(inferd_client *client, size_t size,
                                       inferd_memory **out_memory, struct inf_error *err)
{
    if (inf_client_now_ns() < client->memory_from_ns && find_idle(client, size_class(size)) == NULL)
        return inf_fail_reason(
            err, INF_EXHAUSTED, INF_REASON_QUOTA_BYTES,
            "the daemon has just refused shared memory, and %zu bytes are wanted", size);
    return inf_memory_acquire(client, size, out_memory, err);
}

void inf_memory_ref(inferd_memory *memory)
{
    memory->references++;
}

void inf_memory_unref(inferd_memory **memory_place, bool daemon_done)
{
    inferd_memory *memory = *memory_place;
    *memory_place = NULL;
    if (memory == NULL)
        return;
    inferd_client *client = memory->client;
    memory->tainted = memory->tainted || !daemon_done;
    if (--memory->references > 0)
        return;
    if (memory->tainted || memory->refused) {
        retire(memory);
        return;
    }
    memory->used_at = ++client->region_clock;
    client->idle_bytes += memory->capacity;
    while (client->idle_bytes > INF_CLIENT_IDLE_BYTES)
        retire_idle(find_idle(client, 0));
}

inferd_memory *inf_memory_find(const inferd_client *client, uint64_t region_id)
{
    inferd_memory *memory = client->regions[region_id & (INF_CLIENT_REGION_SLOTS - 1)];
    return memory != NULL && memory->region_id == region_id ? memory : NULL;
}

// The region whose registration or release went out on `stream`.
static inferd_memory *find_by_stream(const inferd_client *client, uint64_t stream)
{
    for (uint32_t slot = 0; slot < client->region_slots; slot++) {
        inferd_memory *memory = client->regions[slot];
        if (memory != NULL &&
            (memory->register_stream == stream || memory->release_stream == stream))
            return memory;
    }
    return NULL;
}

bool inf_memory_answer(inferd_client *client, const struct inf_frame *frame,
                       const struct inf_error *refusal)
{
    inferd_memory *memory = find_by_stream(client, frame->header.stream_id);
    if (memory == NULL)
        return false;
    bool release = memory->release_stream == frame->header.stream_id;
    if (refusal == NULL) {
        uint8_t type = release ? INF_FRAME_MEM_RELEASED : INF_FRAME_MEM_REGISTERED;
        if (frame->header.type != type || client->message.region.region_id != memory->region_id)
            return false;
    }
    if (release) {
        forget(memory); // a refusal says that the daemon does not know it: as good as released
        return true;
    }
    if (refusal == NULL || memory->retired)
        return true;
    memory->refused = true;
    client->memory_from_ns = inf_client_now_ns() + REFUSED_PAUSE_NS;
    snprintf(memory->refusal, sizeof memory->refusal, "%.*s", (int)sizeof memory->refusal - 1,
             refusal->text);
    if (memory->references == 0)
        retire_idle(memory);
    return true;
}

void inf_client_memory_reset(inferd_client *client)
{
    client->memory_from_ns = 0;
    for (uint32_t slot = 0; slot < INF_CLIENT_REGION_SLOTS; slot++) {
        inferd_memory *memory = client->regions[slot];
        if (memory == NULL)
            continue;
        discount(memory);
        memory->refused = false;
        if (is_idle(memory))
            retire_idle(memory); // forgets it, as the connection is gone
        else if (memory->retired)
            forget(memory);
    }
}

// Puts a new memfd with the same contents in the place of a region's. The old one may still be
// written by a device of the old daemon's; nobody sees that any more.
static enum inf_code remake(inferd_memory *memory, int *out_fd, struct inf_error *err)
{
    int fd = make_memfd(memory->capacity, err);
    if (fd < 0)
        return INF_EXHAUSTED;
    uint8_t *copy = mmap(NULL, memory->capacity, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (copy != MAP_FAILED)
        memcpy(copy, memory->data, memory->capacity);
    if (copy == MAP_FAILED || mremap(copy, memory->capacity, memory->capacity,
                                     MREMAP_MAYMOVE | MREMAP_FIXED, memory->data) == MAP_FAILED) {
        inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                        "cannot map %zu bytes of shared memory: %s", memory->capacity,
                        strerror(errno));
        if (copy != MAP_FAILED)
            munmap(copy, memory->capacity);
        close(fd);
        return INF_EXHAUSTED;
    }
    memory->tainted = false;
    *out_fd = fd;
    return INF_OK;
}

enum inf_code inf_client_memory_register(inferd_client *client, struct inf_error *err)
{
    for (uint32_t slot = 0; slot < client->region_slots; slot++) {
        int fd;
        if (client->regions[slot] == NULL)
            continue;
        INF_TRY(remake(client->regions[slot], &fd, err));
        INF_TRY(send_register(client->regions[slot], fd, err));
    }
    return INF_OK;
}

void inf_client_memory_fini(inferd_client *client)
{
    for (uint32_t slot = 0; slot < client->region_slots; slot++) {
        inferd_memory *memory = client->regions[slot];
        if (memory != NULL && memory->data != NULL)
            munmap(memory->data, memory->capacity);
        free(memory);
    }
}

// --- the public side ---

int inferd_memory_alloc(inferd_client *client, size_t size, inferd_memory **memory,
                        struct inferd_error *err)
{
    struct inf_error error = {.code = INF_OK};
    *memory = NULL;
    inf_client_enter(client);
    if (client->failure.code != INF_OK)
        error = client->failure;
    else if (inf_memory_acquire(client, size, memory, &error) == INF_OK)
        inf_client_flush(client);
    inf_client_leave(client);
    return error.code == INF_OK ? INFERD_OK : inf_client_report(err, &error);
}

void *inferd_memory_data(const inferd_memory *memory)
{
    return memory->data;
}

size_t inferd_memory_size(const inferd_memory *memory)
{
    return memory->size;
}

void inferd_memory_free(inferd_memory *memory)
{
    if (memory == NULL)
        return;
    inferd_client *client = memory->client;
    inf_client_enter(client);
    inf_memory_unref(&memory, true);
    inf_client_flush(client);
    inf_client_leave(client);
}
