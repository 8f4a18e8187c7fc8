// SPDX-License-Identifier: Apache-2.0
// Four sums run side by side over words of 64 bits, so that the processor multiplies for all four
// at once: one sum alone would wait for each product. Each step is a bijection of the sum, so a
// change of one word cannot be lost.
#include "backends/storage/checksum.h"

#include <string.h>

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
