// SPDX-License-Identifier: Apache-2.0
// Reads the data of a plan piece by piece, on several cores if there is much to read. A piece is
// checked while it is in the cache of the core that has read it.
#include "backends/saved/plan_data.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "backends/base/bulk/parallel.h"
#include "backends/storage/checksum.h"
#include "backends/storage/file.h"
#include "proto/core/span.h"

#define PIECE_BYTES INF_CHECKSUM_PIECE_BYTES

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
    size_t bytes; // of all pieces
    // The first thread that fails sets `code` and `err`; the pieces that are left are not read.
    atomic_bool failed;
    enum inf_code code;
    struct inf_error err;
};

static void read_piece(void *context, size_t index)
{
    struct reading *reading = context;
    struct piece *piece = &reading->pieces[index];
    const struct inf_plan_block *block = piece->block;
    size_t size = INF_MIN(block->size_bytes - piece->offset, PIECE_BYTES);
    uint8_t *memory = (uint8_t *)block->memory + piece->offset;
    struct inf_error err = {0};
    if (atomic_load(&reading->failed))
        return;
    enum inf_code code = inf_file_read(reading->fd, reading->name, block->offset + piece->offset,
                                       memory, size, &err);
    if (code == INF_OK) {
        piece->sum = inf_checksum(memory, size);
    } else if (!atomic_exchange(&reading->failed, true)) {
        reading->code = code;
        reading->err = err;
    }
}

static enum inf_code read_all(struct reading *reading, struct inf_error *err) INF_MAY_BLOCK
{
    inf_parallel_run(&(struct inf_parallel){.run = read_piece,
                                            .context = reading,
                                            .pieces = reading->piece_count,
                                            .bytes = reading->bytes});
    if (reading->code != INF_OK && err != NULL)
        *err = reading->err;
    return reading->code;
}

static void list_pieces(struct reading *reading, const struct inf_plan_block *blocks, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t at = 0; at < blocks[i].size_bytes; at += PIECE_BYTES)
            reading->pieces[reading->piece_count++] =
                (struct piece){.block = &blocks[i], .offset = at};
        reading->bytes += blocks[i].size_bytes;
    }
}

static enum inf_code check_sums(const struct reading *reading, const struct inf_plan_block *blocks,
                                size_t count, struct inf_error *err)
{
    const struct piece *piece = reading->pieces;
    for (size_t i = 0; i < count; i++) {
        uint64_t sum = blocks[i].size_bytes;
        for (size_t at = 0; at < blocks[i].size_bytes; at += PIECE_BYTES)
            sum = inf_checksum_add_piece(sum, (piece++)->sum);
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
