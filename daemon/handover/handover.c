// SPDX-License-Identifier: Apache-2.0
// The memory that one process leaves to the next: making it, checking one that another process
// made, and handing out its slots. What is in a slot is the business of daemon/connection.
//
//   | header, a page | read record | slot 0 | slot 1 | ...
//
// The memfd is sparse: a page takes memory when it is first written, and all pages of a slot are
// freed with it. It is sealed, so that nothing can shrink it under a mapping.
#include "daemon/handover/handover.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/core/span.h"

#define SLOTS       INF_LIMIT_KEPT_CONNECTIONS
#define READ_OFFSET 4096u
#define SLOT_OFFSET (READ_OFFSET + (128u << 10))
#define TOTAL_BYTES (SLOT_OFFSET + (size_t)SLOTS * INF_LIMIT_KEPT_BYTES)
#define SEALS       (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static const char magic[16] = "inferd handover";

struct header {
    char magic[16];
    uint32_t format;        // INF_HANDOVER_FORMAT of the process that made it
    uint32_t oldest_reader; // the oldest format whose readers understand it
    // The sizes of the structs, which differ between architectures.
    uint32_t slot_bytes, pending_bytes, sent_bytes, read_bytes;
    uint32_t slot_count;
    uint32_t generation; // of the slot that was taken last
};

_Static_assert(sizeof(struct inf_kept_slot) <= INF_LIMIT_KEPT_BYTES, "a slot has room");
_Static_assert(sizeof(struct inf_read_record) <= SLOT_OFFSET - READ_OFFSET, "a read has room");
_Static_assert(sizeof(struct header) <= READ_OFFSET, "the header has room");
// The size of LISTEN_FDNAMES if the store is full of the longest names, each with a ':' behind it.
// The limit is that of Linux for one variable of the environment.
_Static_assert(sizeof "LISTEN_FDNAMES=inferd:inferd-admin" +
                       INF_LIMIT_STORED_FDS * sizeof "inferd-r-4095-4294967295-255" <=
                   128u << 10,
               "a full store must not prevent the start of the next process");

struct inf_handover {
    int fd;
    uint8_t *memory; // TOTAL_BYTES
    struct header *header;
    uint32_t first_free;       // index of the first free slot, plus 1; 0: none
    uint32_t next_free[SLOTS]; // index of the next free slot, plus 1
    bool taken[SLOTS];
    bool listed; // the list of free slots exists
};

static enum inf_code map_memory(struct inf_handover *handover, int fd, struct inf_error *err)
{
    void *memory = mmap(NULL, TOTAL_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED)
        return inf_fail(err, INF_EXHAUSTED, "no address space for the handover: %s",
                        strerror(errno));
    handover->fd = fd;
    handover->memory = memory;
    handover->header = memory;
    return INF_OK;
}

static struct header make_header(void)
{
    struct header header = {.format = INF_HANDOVER_FORMAT,
                            .oldest_reader = INF_HANDOVER_READER,
                            .slot_bytes = sizeof(struct inf_kept_slot),
                            .pending_bytes = sizeof(struct inf_pending),
                            .sent_bytes = sizeof(struct inf_sent_record),
                            .read_bytes = sizeof(struct inf_read_record),
                            .slot_count = SLOTS};
    memcpy(header.magic, magic, sizeof magic);
    return header;
}

static enum inf_code create_memory(struct inf_handover *handover, struct inf_error *err)
{
    int fd = memfd_create("inferd-handover", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return inf_fail(err, INF_EXHAUSTED, "memfd_create: %s", strerror(errno));
    enum inf_code code = INF_OK;
    if (ftruncate(fd, (off_t)TOTAL_BYTES) < 0 || fcntl(fd, F_ADD_SEALS, SEALS) < 0)
        code = inf_fail(err, INF_EXHAUSTED, "the memory for the handover: %s", strerror(errno));
    if (code == INF_OK)
        code = map_memory(handover, fd, err);
    if (code != INF_OK) {
        close(fd);
        return code;
    }
    *handover->header = make_header();
    return INF_OK;
}

// Checks that the descriptor is a sealed memfd of the right size, and that its header is one that
// this version reads.
static enum inf_code check_memory(int fd, struct inf_error *err)
{
    struct stat file;
    struct header header;
    const struct header wanted = make_header();
    int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || (seals & SEALS) != SEALS || fstat(fd, &file) < 0 ||
        (uint64_t)file.st_size != TOTAL_BYTES ||
        pread(fd, &header, sizeof header, 0) != (ssize_t)sizeof header)
        return inf_fail(err, INF_INVALID, "not a sealed memfd of %zu bytes", (size_t)TOTAL_BYTES);
    if (memcmp(header.magic, wanted.magic, sizeof header.magic) != 0)
        return inf_fail(err, INF_INVALID, "not a handover of this program");
    if (header.format < INF_HANDOVER_OLDEST || header.oldest_reader > INF_HANDOVER_FORMAT)
        return inf_fail(err, INF_INVALID, "format %u for readers of %u, wanted %u to %u",
                        header.format, header.oldest_reader, INF_HANDOVER_OLDEST,
                        INF_HANDOVER_FORMAT);
    if (header.slot_bytes != wanted.slot_bytes || header.pending_bytes != wanted.pending_bytes ||
        header.sent_bytes != wanted.sent_bytes || header.read_bytes != wanted.read_bytes ||
        header.slot_count != wanted.slot_count)
        return inf_fail(err, INF_INVALID, "the layout is another one");
    return INF_OK;
}

static enum inf_code adopt_memory(struct inf_handover *handover, int fd, struct inf_error *err)
{
    INF_TRY(check_memory(fd, err));
    return map_memory(handover, fd, err);
}

// Makes a handover of a new memory (fd is -1), or of the one that another process made.
static enum inf_code open_handover(struct inf_handover **out_handover, int fd,
                                   struct inf_error *err)
{
    struct inf_handover *handover = calloc(1, sizeof *handover);
    if (handover == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for the handover");
    handover->fd = -1;
    enum inf_code code = fd < 0 ? create_memory(handover, err) : adopt_memory(handover, fd, err);
    if (code == INF_OK)
        *out_handover = handover;
    else
        inf_handover_destroy(&handover);
    return code;
}

enum inf_code inf_handover_create(struct inf_handover **out_handover, struct inf_error *err)
{
    return open_handover(out_handover, -1, err);
}

enum inf_code inf_handover_adopt(struct inf_handover **out_handover, int fd, struct inf_error *err)
{
    assert(fd >= 0);
    return open_handover(out_handover, fd, err);
}

void inf_handover_destroy(struct inf_handover **handover)
{
    struct inf_handover *gone = *handover;
    if (gone == NULL)
        return;
    if (gone->memory != NULL)
        munmap(gone->memory, TOTAL_BYTES);
    if (gone->fd >= 0)
        close(gone->fd);
    free(gone);
    *handover = NULL;
}

int inf_handover_fd(const struct inf_handover *handover)
{
    return handover->fd;
}

struct inf_kept_slot *inf_handover_slot(struct inf_handover *handover, uint32_t index)
{
    assert(index < SLOTS);
    return (struct inf_kept_slot *)(void *)(handover->memory + SLOT_OFFSET +
                                            (size_t)index * INF_LIMIT_KEPT_BYTES);
}

struct inf_read_record *inf_handover_read_record(struct inf_handover *handover)
{
    return (struct inf_read_record *)(void *)(handover->memory + READ_OFFSET);
}

// --- slots ---

// Frees the pages of a slot, which are zero afterwards.
static void clear_slot(struct inf_handover *handover, uint32_t index)
{
    struct inf_kept_slot *slot = inf_handover_slot(handover, index);
    atomic_store(&slot->state, INF_KEPT_FREE);
    if (madvise(slot, INF_LIMIT_KEPT_BYTES, MADV_REMOVE) < 0)
        memset(slot, 0, sizeof *slot);
}

static void push_free(struct inf_handover *handover, uint32_t index)
{
    handover->next_free[index] = handover->first_free;
    handover->first_free = index + 1;
}

// Makes the list of free slots on the first call, when all slots that another process left are
// claimed already.
static void list_free(struct inf_handover *handover)
{
    if (handover->listed)
        return;
    handover->listed = true;
    for (uint32_t i = SLOTS; i > 0; i--)
        if (!handover->taken[i - 1])
            push_free(handover, i - 1);
}

bool inf_handover_take_slot(struct inf_handover *handover, uint32_t *out_index)
{
    list_free(handover);
    if (handover->first_free == 0)
        return false;
    uint32_t index = handover->first_free - 1;
    handover->first_free = handover->next_free[index];
    handover->taken[index] = true;
    struct inf_kept_slot *slot = inf_handover_slot(handover, index);
    // Another process may have left what it did not hand over.
    if (slot->generation != 0)
        clear_slot(handover, index);
    slot->generation = ++handover->header->generation;
    *out_index = index;
    return true;
}

void inf_handover_claim_slot(struct inf_handover *handover, uint32_t index)
{
    assert(!handover->listed && !handover->taken[index]);
    handover->taken[index] = true;
}

void inf_handover_free_slot(struct inf_handover *handover, uint32_t index)
{
    assert(handover->taken[index]);
    clear_slot(handover, index);
    handover->taken[index] = false;
    if (handover->listed)
        push_free(handover, index);
}

// --- names ---

static const char *const prefixes[] = {
    [INF_STORED_CONNECTION] = "inferd-c-",
    [INF_STORED_REGION] = "inferd-r-",
    [INF_STORED_SESSIONS] = "inferd-s-",
};

void inf_stored_name_format(const struct inf_stored_name *name, char text[INF_HANDOVER_NAME_BYTES])
{
    if (name->kind == INF_STORED_MEMORY)
        snprintf(text, INF_HANDOVER_NAME_BYTES, INF_HANDOVER_NAME);
    else if (name->kind == INF_STORED_REGION)
        snprintf(text, INF_HANDOVER_NAME_BYTES, "%s%" PRIu32 "-%" PRIu32 "-%" PRIu32,
                 prefixes[name->kind], name->slot, name->generation, name->region);
    else
        snprintf(text, INF_HANDOVER_NAME_BYTES, "%s%" PRIu32 "-%" PRIu32, prefixes[name->kind],
                 name->slot, name->generation);
}

struct inf_stored_name inf_stored_name_parse(const char *text)
{
    struct inf_stored_name name = {.kind = INF_STORED_UNKNOWN};
    char again[INF_HANDOVER_NAME_BYTES];
    if (strcmp(text, INF_HANDOVER_NAME) == 0)
        name.kind = INF_STORED_MEMORY;
    for (enum inf_stored_kind kind = INF_STORED_CONNECTION; kind <= INF_STORED_SESSIONS; kind++) {
        size_t length = strlen(prefixes[kind]);
        if (strncmp(text, prefixes[kind], length) != 0 ||
            sscanf(text + length, "%" SCNu32 "-%" SCNu32 "-%" SCNu32, &name.slot, &name.generation,
                   &name.region) != (kind == INF_STORED_REGION ? 3 : 2))
            continue;
        name.kind = kind;
    }
    // A number is written in one way only. So a name that formats to another text comes from
    // elsewhere, such as one with a leading zero.
    if (name.kind == INF_STORED_UNKNOWN)
        return name;
    inf_stored_name_format(&name, again);
    if (strcmp(again, text) != 0 || name.slot >= SLOTS || name.region >= INF_LIMIT_REGIONS)
        name.kind = INF_STORED_UNKNOWN;
    return name;
}
