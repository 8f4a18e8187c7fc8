// SPDX-License-Identifier: Apache-2.0
// fuzz_NAME [--rounds N] [--seed N] [--write DIR] [FILE...] - runs a fuzz target without libFuzzer.
//
// Each round takes a seed of the target, changes it in one to six places and passes it to the
// target. A changed input that crashes is reproduced by the same --seed and --rounds. --write
// stores the seeds as files for libFuzzer; FILE is passed to the target as it is.
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/tools/fuzz/fuzz.h"

#define INPUT_BYTES 8192u

struct input {
    uint8_t bytes[INPUT_BYTES];
    size_t size;
};

static uint32_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

static void insert_bytes(struct input *input, size_t at, const void *bytes, size_t size)
{
    if (input->size + size > INPUT_BYTES)
        return;
    memmove(input->bytes + at + size, input->bytes + at, input->size - at);
    memcpy(input->bytes + at, bytes, size);
    input->size += size;
}

static void remove_bytes(struct input *input, size_t at, size_t size)
{
    if (size > input->size - at)
        size = input->size - at;
    memmove(input->bytes + at, input->bytes + at + size, input->size - at - size);
    input->size -= size;
}

// Overwrites 4 bytes, such as an offset or a count of a binary format, with a number that is close
// to a limit or small.
static void overwrite_number(struct input *input, size_t at, uint8_t byte)
{
    static const uint32_t numbers[] = {0, 1, 0x7fffffff, 0x80000000, 0xffffffff, 0xfffffffe, 65536};
    size_t count = sizeof numbers / sizeof numbers[0];
    uint32_t number = byte < count ? numbers[byte] : byte;
    if (input->size >= sizeof number && at <= input->size - sizeof number)
        memcpy(input->bytes + at, &number, sizeof number);
}

static void change_input(struct input *input, uint64_t *state)
{
    static const char *const words[] = {"\r\n",
                                        "\n",
                                        "0",
                                        "-1",
                                        "4294967295",
                                        "[[[[",
                                        "\r\n\r\n",
                                        "{}",
                                        "chunked",
                                        "\0",
                                        "\xff\xff\xff\xff",
                                        "1e400",
                                        ",",
                                        "\"",
                                        ": ",
                                        "18446744073709551616"};
    size_t at = input->size > 0 ? next_random(state) % input->size : 0;
    const char *word = words[next_random(state) % (sizeof words / sizeof words[0])];
    const struct fuzz_seed *other = &fuzz_seeds[next_random(state) % fuzz_seed_count];
    size_t from = next_random(state) % (other->size + 1);
    uint8_t byte = (uint8_t)next_random(state);
    uint32_t kind = next_random(state);
    // The first three kinds move no byte.
    bool stays = fuzz_has_positions && next_random(state) % 16 != 0;
    switch (stays ? kind % 3 : kind % 8) {
    case 0:
        if (input->size > 0)
            input->bytes[at] = byte;
        break;
    case 1:
        if (input->size > 0)
            input->bytes[at] ^= (uint8_t)(1u << (byte & 7));
        break;
    case 2:
        overwrite_number(input, at, byte);
        break;
    case 3:
        insert_bytes(input, at, &byte, 1);
        break;
    case 4:
        insert_bytes(input, at, word, word[0] != '\0' ? strlen(word) : 1);
        break;
    case 5:
        remove_bytes(input, at, 1 + byte % 16u);
        break;
    case 6:
        insert_bytes(input, at, other->bytes + from, (other->size - from) % 64);
        break;
    default:
        input->size = byte < 64 ? at : input->size; // cuts the input off in one of four cases
        break;
    }
}

static void run_rounds(unsigned long rounds, uint64_t state)
{
    static struct input input;
    for (size_t i = 0; i < fuzz_seed_count; i++)
        LLVMFuzzerTestOneInput((const uint8_t *)fuzz_seeds[i].bytes, fuzz_seeds[i].size);
    for (unsigned long i = 0; i < rounds; i++) {
        const struct fuzz_seed *seed = &fuzz_seeds[next_random(&state) % fuzz_seed_count];
        input.size = seed->size < INPUT_BYTES ? seed->size : INPUT_BYTES;
        memcpy(input.bytes, seed->bytes, input.size);
        for (uint32_t changes = 1 + next_random(&state) % 6; changes > 0; changes--)
            change_input(&input, &state);
        // Pass a copy that has exactly the size of the input, so that a sanitizer detects a read
        // beyond its end.
        uint8_t *copy = malloc(input.size + (input.size == 0));
        if (copy == NULL)
            abort();
        memcpy(copy, input.bytes, input.size);
        LLVMFuzzerTestOneInput(copy, input.size);
        free(copy);
    }
    printf("%zu seeds, %lu inputs\n", fuzz_seed_count, rounds);
}

static bool write_seeds(const char *directory)
{
    char path[4096];
    for (size_t i = 0; i < fuzz_seed_count; i++) {
        snprintf(path, sizeof path, "%s/seed-%zu", directory, i);
        FILE *file = fopen(path, "wb");
        if (file == NULL)
            return false;
        bool ok = fwrite(fuzz_seeds[i].bytes, 1, fuzz_seeds[i].size, file) == fuzz_seeds[i].size;
        if (fclose(file) != 0 || !ok)
            return false;
    }
    return true;
}

static bool run_file(const char *path)
{
    static uint8_t bytes[1 << 20];
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return false;
    size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    LLVMFuzzerTestOneInput(bytes, size);
    return true;
}

int main(int argc, char **argv)
{
    unsigned long rounds = 0;
    uint64_t seed = 1;
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        bool ok = true;
        if (value != NULL && strcmp(argv[i], "--rounds") == 0)
            rounds = strtoul(argv[++i], NULL, 10);
        else if (value != NULL && strcmp(argv[i], "--seed") == 0)
            seed = strtoull(argv[++i], NULL, 10);
        else if (value != NULL && strcmp(argv[i], "--write") == 0)
            ok = write_seeds(argv[++i]);
        else
            ok = run_file(argv[i]);
        if (!ok) {
            fprintf(stderr, "%s: cannot read or write '%s'\n", argv[0], argv[i]);
            return 1;
        }
    }
    run_rounds(rounds, seed);
    return 0;
}
