// SPDX-License-Identifier: Apache-2.0
// Regions: memory shared with the daemon.
//
// Each region is one memfd, mapped here and registered with the daemon (MEM_REGISTER). Making one
// costs system calls, page faults and a round trip, so that regions are reused: a region without
// references is idle, and inf_client_region_acquire() takes an idle one whose capacity equals the
// size class of the request. There are four classes per power of two, so that sizes that are nearly
// equal share regions.
//
// A region that the daemon may still write to must not be reused. In that case the last unref
// passes `daemon_done` as false, and the client retires the region: it unmaps the region, sends
// MEM_UNREGISTER, and frees the region's entry when MEM_RELEASED arrives.
//
//   acquire -> in use -> unref -> idle -> acquire ...
//                          |        |
//                          |        +-- idle memory or the daemon's limits exceeded --> retired
//                          +-- tainted or refused ------------------------------------> retired
//                                                       retired -> MEM_RELEASED --> forgotten
//
// The client does not wait for the answer to a registration, because requests that use the region
// follow it on the same socket. If the daemon refuses it, those requests fail with REGION_NOT_FOUND
// and are sent again through the socket (fallback.c).
//
// An id is `generation << SLOT_BITS | slot`: the slot is an index into the table, and the
// generation distinguishes the region from earlier regions in the same slot.
#include "client/lib/io/region.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client/lib/client.h"
#include "client/lib/error.h"
#include "client/lib/io/memfd.h"
#include "proto/core/span.h"

#define SLOT_BITS        9u
#define CLASS_MIN_BYTES  ((size_t)64 << 10) // a multiple of any page size
#define REFUSED_PAUSE_NS ((uint64_t)1000 * 1000 * 1000)

_Static_assert(INF_CLIENT_REGION_SLOTS == 1u << SLOT_BITS, "a slot's number fits the id");

// Rounds a size up to one of four sizes per power of two, so that an idle region can be reused for
// any request of a similar size.
static size_t round_to_class(size_t size)
{
    if (size <= CLASS_MIN_BYTES)
        return CLASS_MIN_BYTES;
    unsigned log2 = 63u - (unsigned)__builtin_clzll((unsigned long long)size - 1);
    size_t step = (size_t)1 << (log2 - 2);
    return inf_size_align(size, INF_MAX(step, CLASS_MIN_BYTES));
}

// Subtracts the region from table->count and from the sum of bytes, which are compared with the
// daemon's limits before a new region is created.
static void uncount_region(inferd_memory *memory)
{
    if (!memory->counted)
        return;
    memory->counted = false;
    memory->client->regions.count--;
    memory->client->regions.bytes -= memory->capacity;
}

static void forget_region(inferd_memory *memory)
{
    inferd_client *client = memory->client;
    client->regions.entries[memory->region_id & (INF_CLIENT_REGION_SLOTS - 1)] = NULL;
    while (client->regions.slots_used > 0 &&
           client->regions.entries[client->regions.slots_used - 1] == NULL)
        client->regions.slots_used--;
    uncount_region(memory);
    free(memory);
}

// Unmaps a region without references and asks the daemon to release it. The daemon releases the
// region before it handles the next frame, so the region no longer counts against the limits. Only
// a region that a request still uses (`tainted`) continues to count.
static void retire_region(inferd_memory *memory)
{
    inferd_client *client = memory->client;
    munmap(memory->data, memory->capacity);
    memory->data = NULL;
    memory->retired = true;
    if (memory->refused || client->connection.failure.code != INF_OK) {
        forget_region(memory);
        return;
    }
    client->control.region = (struct inf_region_message){.region_id = memory->region_id};
    struct inf_frame_header header = {
        .type = INF_FRAME_MEM_UNREGISTER,
        .stream_id = client->connection.next_stream++,
    };
    // Ignore the error: if there is no memory for the frame, the daemon keeps the region mapped.
    struct inf_error ignored;
    memory->release_stream = header.stream_id;
    enum inf_code code = inf_client_send_queue_push_control(
        client, header, INF_MESSAGE_REGION_UNREGISTER, -1, &ignored);
    if (code == INF_OK && !memory->tainted)
        uncount_region(memory);
}

static void retire_idle(inferd_memory *memory)
{
    memory->client->regions.idle_bytes -= memory->capacity;
    retire_region(memory);
}

static bool is_idle(const inferd_memory *memory)
{
    return memory != NULL && memory->references == 0 && !memory->retired;
}

// Returns the most recently used idle region whose capacity is `capacity`. If `capacity` is 0,
// returns the least recently used idle region. Returns NULL if there is none.
static inferd_memory *find_idle(const inferd_client *client, size_t capacity)
{
    inferd_memory *best = NULL;
    for (uint32_t slot = 0; slot < client->regions.slots_used; slot++) {
        inferd_memory *memory = client->regions.entries[slot];
        if (!is_idle(memory) || (capacity != 0 && memory->capacity != capacity))
            continue;
        if (best == NULL || (memory->used_at > best->used_at) == (capacity != 0))
            best = memory;
    }
    return best;
}

static bool is_within_limits(const inferd_client *client, size_t capacity)
{
    uint64_t bytes_max = INF_MIN(client->connection.limits.region_bytes, INF_LIMIT_REGION_BYTES);
    return client->regions.count < INF_MIN(client->connection.limits.regions, INF_LIMIT_REGIONS) &&
           inf_range_ok(client->regions.bytes, capacity, bytes_max);
}

// Retires idle regions until the daemon's limits allow a further region of `capacity` bytes.
static enum inf_code make_room(inferd_client *client, size_t capacity, struct inf_error *err)
{
    while (!is_within_limits(client, capacity)) {
        inferd_memory *idle = find_idle(client, 0);
        if (idle == NULL)
            return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_QUOTA_BYTES,
                                   "%zu more bytes of shared memory are beyond the daemon's limits "
                                   "(%u regions, %llu bytes; %u and %llu in use)",
                                   capacity, client->connection.limits.regions,
                                   (unsigned long long)client->connection.limits.region_bytes,
                                   client->regions.count,
                                   (unsigned long long)client->regions.bytes);
        retire_idle(idle);
    }
    return INF_OK;
}

// Queues the frame MEM_REGISTER, which registers the region, together with the descriptor of the
// region's memfd. Takes ownership of the descriptor.
static enum inf_code send_register(inferd_memory *memory, int fd, struct inf_error *err)
{
    inferd_client *client = memory->client;
    memory->register_stream = client->connection.next_stream++;
    client->control.region = (struct inf_region_message){
        .region_id = memory->region_id,
        .size = memory->capacity,
        .writable = true,
    };
    struct inf_frame_header header = {
        .type = INF_FRAME_MEM_REGISTER,
        .stream_id = memory->register_stream,
    };
    INF_TRY(
        inf_client_send_queue_push_control(client, header, INF_MESSAGE_REGION_REGISTER, fd, err));
    memory->counted = true;
    client->regions.count++;
    client->regions.bytes += memory->capacity;
    return INF_OK;
}

// Puts the region into the client's table of regions, and registers it with the daemon. `fd` is the
// region's memfd; the function takes ownership of it.
static enum inf_code add_to_table(inferd_memory *memory, int fd, struct inf_error *err)
{
    inferd_client *client = memory->client;
    uint32_t slot = 0;
    while (slot < INF_CLIENT_REGION_SLOTS && client->regions.entries[slot] != NULL)
        slot++;
    if (slot == INF_CLIENT_REGION_SLOTS) {
        close(fd);
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_QUOTA_BYTES,
                               "the daemon has not confirmed the release of %u regions yet",
                               INF_CLIENT_REGION_SLOTS - client->regions.count);
    }
    memory->region_id = ++client->regions.generation << SLOT_BITS | slot;
    INF_TRY(send_register(memory, fd, err));
    client->regions.entries[slot] = memory;
    client->regions.slots_used = INF_MAX(client->regions.slots_used, slot + 1);
    return INF_OK;
}

static enum inf_code create_region(inferd_client *client, size_t capacity,
                                   inferd_memory **out_memory, struct inf_error *err)
{
    int fd = inf_client_memfd_create(capacity, err);
    if (fd < 0)
        return INF_EXHAUSTED;
    inferd_memory *memory = calloc(1, sizeof *memory);
    if (memory == NULL) {
        close(fd);
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "no memory for a region");
    }
    memory->client = client;
    memory->capacity = capacity;
    enum inf_code code = inf_client_memfd_map(fd, capacity, &memory->data, err);
    if (code == INF_OK)
        code = add_to_table(memory, fd, err);
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

enum inf_code inf_client_region_acquire(inferd_client *client, size_t size,
                                        inferd_memory **out_memory, struct inf_error *err)
{
    if (size == 0 || size > INF_LIMIT_REGION_BYTES)
        return inf_fail(err, INF_INVALID,
                        "%zu bytes of shared memory were asked for, not 1 to %llu", size,
                        (unsigned long long)INF_LIMIT_REGION_BYTES);
    size_t capacity = round_to_class(size);
    inferd_memory *memory = find_idle(client, capacity);
    if (memory != NULL) {
        client->regions.idle_bytes -= capacity;
    } else {
        INF_TRY(make_room(client, capacity, err));
        INF_TRY(create_region(client, capacity, &memory, err));
    }
    memory->size = size;
    memory->references = 1;
    *out_memory = memory;
    return INF_OK;
}

enum inf_code inf_client_region_acquire_optional(inferd_client *client, size_t size,
                                                 inferd_memory **out_memory, struct inf_error *err)
{
    if (inf_client_now_ns() < client->regions.refused_until_ns &&
        find_idle(client, round_to_class(size)) == NULL)
        return inf_fail_reason(
            err, INF_EXHAUSTED, INF_REASON_QUOTA_BYTES,
            "the daemon has just refused shared memory, and %zu bytes are wanted", size);
    return inf_client_region_acquire(client, size, out_memory, err);
}

void inf_client_region_ref(inferd_memory *memory)
{
    memory->references++;
}

void inf_client_region_unref(inferd_memory **memory_place, bool daemon_done)
{
    inferd_memory *memory = *memory_place;
    *memory_place = NULL;
    if (memory == NULL)
        return;
    inferd_client *client = memory->client;
    assert(memory->references > 0 && !memory->retired);
    memory->tainted = memory->tainted || !daemon_done;
    if (--memory->references > 0)
        return;
    if (memory->tainted || memory->refused) {
        retire_region(memory);
        return;
    }
    memory->used_at = ++client->regions.use_clock;
    client->regions.idle_bytes += memory->capacity;
    while (client->regions.idle_bytes > INF_CLIENT_IDLE_BYTES)
        retire_idle(find_idle(client, 0));
}

inferd_memory *inf_client_region_find(const inferd_client *client, uint64_t region_id)
{
    inferd_memory *memory = client->regions.entries[region_id & (INF_CLIENT_REGION_SLOTS - 1)];
    return memory != NULL && memory->region_id == region_id ? memory : NULL;
}

// Returns the region whose registration or release was sent on `stream`, or NULL if there is none.
static inferd_memory *find_by_stream(const inferd_client *client, uint64_t stream)
{
    for (uint32_t slot = 0; slot < client->regions.slots_used; slot++) {
        inferd_memory *memory = client->regions.entries[slot];
        if (memory != NULL &&
            (memory->register_stream == stream || memory->release_stream == stream))
            return memory;
    }
    return NULL;
}

bool inf_client_region_handle_reply(inferd_client *client, const struct inf_frame *frame,
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
        forget_region(memory); // a refusal means that the daemon does not know the region
        return true;
    }
    if (refusal == NULL || memory->retired)
        return true;
    memory->refused = true;
    client->regions.refused_until_ns = inf_client_now_ns() + REFUSED_PAUSE_NS;
    snprintf(memory->refusal, sizeof memory->refusal, "%.*s", (int)sizeof memory->refusal - 1,
             refusal->text);
    if (memory->references == 0)
        retire_idle(memory);
    return true;
}

void inf_client_region_table_reset(inferd_client *client)
{
    client->regions.refused_until_ns = 0;
    for (uint32_t slot = 0; slot < INF_CLIENT_REGION_SLOTS; slot++) {
        inferd_memory *memory = client->regions.entries[slot];
        if (memory == NULL)
            continue;
        uncount_region(memory);
        memory->refused = false;
        if (is_idle(memory))
            retire_idle(memory); // frees the region, because the connection has failed
        else if (memory->retired)
            forget_region(memory);
    }
}

enum inf_code inf_client_region_table_register(inferd_client *client, struct inf_error *err)
{
    for (uint32_t slot = 0; slot < client->regions.slots_used; slot++) {
        inferd_memory *memory = client->regions.entries[slot];
        int fd;
        if (memory == NULL)
            continue;
        // The region gets a new memfd, because a device of the old daemon may still write to the
        // old one.
        INF_TRY(inf_client_memfd_replace(memory->data, memory->capacity, &fd, err));
        memory->tainted = false;
        INF_TRY(send_register(memory, fd, err));
    }
    return INF_OK;
}

void inf_client_region_table_fini(inferd_client *client)
{
    for (uint32_t slot = 0; slot < client->regions.slots_used; slot++) {
        inferd_memory *memory = client->regions.entries[slot];
        if (memory != NULL && memory->data != NULL)
            munmap(memory->data, memory->capacity);
        free(memory);
    }
}
