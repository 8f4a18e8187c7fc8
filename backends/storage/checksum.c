// SPDX-License-Identifier: Apache-2.0
// Four sums run side by side over words of 64 bits, so that the processor multiplies for all four
// at once: one sum alone would wait for each product. Each step is a bijection of the sum, so a
// change of one word cannot be lost.
#include "backends/storage/checksum.h"

#include <stdlib.h>
#include <string.h>

#include "backends/base/bulk/parallel.h"
#include "proto/core/span.h"

#define LANES 4
#define PRIME UINT64_C(0x9e3779b97f4a7c15) // odd

static uint64_t mix_word(uint64_t sum, uint64_t word)
{
    sum = (sum ^ word) * PRIME;
    return sum << 31 | sum >> 33;
}

uint64_t inf_checksum(const void *data, size_t size)
{
    uint64_t sums[LANES] = {1, 2, 3, 4}, words[LANES];
    const unsigned char *at = data;
    size_t left = size;
    for (; left >= sizeof words; left -= sizeof words, at += sizeof words) {
        memcpy(words, at, sizeof words);
        for (int i = 0; i < LANES; i++)
            sums[i] = mix_word(sums[i], words[i]);
    }
    memset(words, 0, sizeof words);
    if (left > 0)
        memcpy(words, at, left);
    // The size tells padding from zeros of the data.
    uint64_t result = size;
    for (int i = 0; i < LANES; i++)
        result = mix_word(result, mix_word(sums[i], words[i]));
    return result;
}

// --- checksums of pieces ---

uint64_t inf_checksum_add_piece(uint64_t sum, uint64_t piece_sum)
{
    const uint64_t both[2] = {sum, piece_sum};
    return inf_checksum(both, sizeof both);
}

struct pieces {
    const unsigned char *data;
    size_t size;
    uint64_t *sums; // one for each piece
};

static uint64_t sum_piece(const struct pieces *pieces, size_t piece)
{
    size_t at = piece * INF_CHECKSUM_PIECE_BYTES;
    return inf_checksum(pieces->data + at, INF_MIN(pieces->size - at, INF_CHECKSUM_PIECE_BYTES));
}

static void store_piece_sum(void *context, size_t piece)
{
    const struct pieces *pieces = context;
    pieces->sums[piece] = sum_piece(pieces, piece);
}

uint64_t inf_checksum_pieces(const void *data, size_t size)
{
    size_t count = size / INF_CHECKSUM_PIECE_BYTES + (size % INF_CHECKSUM_PIECE_BYTES != 0);
    struct pieces pieces = {data, size, calloc(count + 1, sizeof(uint64_t))};
    uint64_t sum = size;
    if (pieces.sums != NULL)
        inf_parallel_run(&(struct inf_parallel){
            .run = store_piece_sum, .context = &pieces, .pieces = count, .bytes = size});
    // Without memory for the sums, this thread computes them one by one.
    for (size_t i = 0; i < count; i++)
        sum = inf_checksum_add_piece(sum,
                                     pieces.sums != NULL ? pieces.sums[i] : sum_piece(&pieces, i));
    free(pieces.sums);
    return sum;
}
