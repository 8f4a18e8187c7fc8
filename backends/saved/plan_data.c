// SPDX-License-Identifier: Apache-2.0
// Reads the data of a plan piece by piece. A piece is checked while it is in the cache of the core
// that has read it. If there is much to read, threads take the next piece from a counter: most of
// the time goes to page faults of the memory that is filled, and the threads share these.
#include "backends/saved/plan_data.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "backends/base/cores.h"
#include "backends/base/thread.h"
#include "backends/storage/checksum.h"
#include "backends/storage/file.h"
#include "proto/core/span.h"

#define PIECE_BYTES ((size_t)256 << 10)
// There is one thread for each so many bytes, up to the number of processors.
#define THREAD_BYTES ((size_t)2 << 20)
#define THREADS_MAX  8u

static uint64_t add_sum(uint64_t sum, uint64_t piece_sum)
{
    const uint64_t both[2] = {sum, piece_sum};
    return inf_checksum(both, sizeof both);
}

uint64_t inf_plan_data_sum(const void *data, size_t size)
{
    const uint8_t *at = data;
    uint64_t sum = size;
    for (size_t left = size; left > 0;) {
        size_t piece = INF_MIN(left, PIECE_BYTES);
        sum = add_sum(sum, inf_checksum(at, piece));
        at += piece;
        left -= piece;
    }
    return sum;
}

// A piece of a block: all of them have PIECE_BYTES, except the last of each block.
struct piece {
    const struct inf_plan_block *block;
    size_t offset; // in the block
    uint64_t sum;  // checksum of what was read
};

struct reading {
    int fd;
    const char *name;
    struct piece *pieces;
    size_t piece_count;
    atomic_size_t next; // the piece that a thread takes next
    atomic_bool failed; // the other threads end
};

// One thread that reads, and the error that it met.
struct reader {
    struct inf_thread thread;
    struct reading *reading;
    struct inf_error err;
    enum inf_code code;
};

static void read_pieces(void *context)
{
    struct reader *reader = context;
    struct reading *reading = reader->reading;
    size_t index;
    while (!atomic_load(&reading->failed) &&
           (index = atomic_fetch_add(&reading->next, 1)) < reading->piece_count) {
        struct piece *piece = &reading->pieces[index];
        const struct inf_plan_block *block = piece->block;
        size_t size = INF_MIN(block->size_bytes - piece->offset, PIECE_BYTES);
        uint8_t *memory = (uint8_t *)block->memory + piece->offset;
        reader->code = inf_file_read(reading->fd, reading->name, block->offset + piece->offset,
                                     memory, size, &reader->err);
        if (reader->code != INF_OK)
            atomic_store(&reading->failed, true);
        else
            piece->sum = inf_checksum(memory, size);
    }
}

static void read_pieces_on_thread(void *context)
{
    inf_role_enter_worker();
    read_pieces(context);
}

static unsigned count_threads(const struct reading *reading) INF_MAY_BLOCK
{
    size_t wanted = reading->piece_count / (THREAD_BYTES / PIECE_BYTES) + 1;
    size_t most = wanted > 1 ? INF_MIN(inf_cores_usable(), THREADS_MAX) : 1;
    return (unsigned)INF_MIN(wanted, most);
}

// Reads all pieces. A thread that cannot be started leaves its work to the others.
static enum inf_code read_all(struct reading *reading, struct inf_error *err) INF_MAY_BLOCK
{
    struct reader readers[THREADS_MAX];
    unsigned count = count_threads(reading);
    for (unsigned i = 0; i < count; i++) {
        readers[i] = (struct reader){.reading = reading};
        if (i > 0)
            (void)!inf_thread_start(&readers[i].thread, "inferd-plan", read_pieces_on_thread,
                                    &readers[i], NULL);
    }
    read_pieces(&readers[0]);
    enum inf_code code = INF_OK;
    for (unsigned i = 0; i < count; i++) {
        if (readers[i].thread.started)
            inf_thread_join(&readers[i].thread);
        if (code == INF_OK && readers[i].code != INF_OK) {
            code = readers[i].code;
            if (err != NULL)
                *err = readers[i].err;
        }
    }
    return code;
}

static void list_pieces(struct reading *reading, const struct inf_plan_block *blocks, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t at = 0; at < blocks[i].size_bytes; at += PIECE_BYTES)
            reading->pieces[reading->piece_count++] =
                (struct piece){.block = &blocks[i], .offset = at};
}

static enum inf_code check_sums(const struct reading *reading, const struct inf_plan_block *blocks,
                                size_t count, struct inf_error *err)
{
    const struct piece *piece = reading->pieces;
    for (size_t i = 0; i < count; i++) {
        uint64_t sum = blocks[i].size_bytes;
        for (size_t at = 0; at < blocks[i].size_bytes; at += PIECE_BYTES)
            sum = add_sum(sum, (piece++)->sum);
        if (sum != blocks[i].sum)
            return inf_fail(err, INF_INVALID, "plan '%s': a constant is damaged", reading->name);
    }
    return INF_OK;
}

enum inf_code inf_plan_data_read(int fd, const char *name, const struct inf_plan_block *blocks,
                                 size_t count, struct inf_error *err)
{
    struct reading reading = {.fd = fd, .name = name};
    size_t pieces = 0;
    for (size_t i = 0; i < count; i++)
        pieces += blocks[i].size_bytes / PIECE_BYTES + 1;
    reading.pieces = calloc(pieces + 1, sizeof *reading.pieces);
    if (reading.pieces == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "no memory to read a plan");
    list_pieces(&reading, blocks, count);
    enum inf_code code = read_all(&reading, err);
    if (code == INF_OK)
        code = check_sums(&reading, blocks, count, err);
    free(reading.pieces);
    return code;
}
