// SPDX-License-Identifier: Apache-2.0
// What a fuzz target and its two drivers share. fuzz_main.c changes the seeds at random, in every
// build; libFuzzer, which check_fuzz.sh uses, searches for inputs that reach new code.
#ifndef INF_TESTS_TOOLS_FUZZ_FUZZ_H
#define INF_TESTS_TOOLS_FUZZ_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// A valid input of the target.
struct fuzz_seed {
    const char *bytes;
    size_t size;
};

#define FUZZ_SEED(text)                                                                            \
    {                                                                                              \
        text, sizeof(text) - 1                                                                     \
    }

extern const struct fuzz_seed fuzz_seeds[];
extern const size_t fuzz_seed_count;
// True: the format has positions in it, so that an inserted byte breaks all that follows. Most
// changes then overwrite bytes.
extern const bool fuzz_has_positions;

// Passes an input to the parser, and aborts if the parser breaks a promise of its header. Returns
// 0. The name is libFuzzer's.
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

// Reads all bytes, so that a sanitizer sees a size that is too large.
static inline void fuzz_read_bytes(const void *bytes, size_t size)
{
    unsigned sum = 0;
    for (size_t i = 0; i < size; i++)
        sum += ((const uint8_t *)bytes)[i];
    __asm__ volatile("" : : "r"(sum)); // the compiler must not leave the loop out
}

#endif
