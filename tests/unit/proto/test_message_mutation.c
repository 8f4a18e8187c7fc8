// SPDX-License-Identifier: Apache-2.0
// Mutates valid messages: flips bits, and removes, repeats and swaps bytes. Decoding must not crash
// and must not read beyond the end. The bytes are in a heap block of exactly their size, so
// sanitizers detect such reads. If decoding accepts a mutated message, it must be possible to
// encode it again.
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "proto/wire/message.h"
#include "tests/support/wire/wire_samples.h"

enum {
    ROUNDS = 20000,
    ROOM = 4096
};

// xorshift64 generator, which gives the same sequence on every machine.
static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

// Changes the `*size` bytes in one randomly chosen way.
static void mutate_bytes(uint8_t *bytes, size_t *size, uint64_t *state)
{
    size_t at = next_random(state) % (*size + 1);
    size_t length = next_random(state) % (*size - at + 1);
    switch (next_random(state) % 6) {
    case 0: // flip a bit
    case 1:
        if (at < *size)
            bytes[at] ^= (uint8_t)(1u << next_random(state) % 8);
        break;
    case 2: // replace a byte
        if (at < *size)
            bytes[at] = (uint8_t)next_random(state);
        break;
    case 3: // truncate the end
        *size = at;
        break;
    case 4: // repeat a piece
        if (*size + length > ROOM)
            break;
        memmove(bytes + at + length, bytes + at, *size - at);
        *size += length;
        break;
    default: // remove a piece
        memmove(bytes + at, bytes + at + length, *size - at - length);
        *size -= length;
        break;
    }
}

struct tally {
    unsigned accepted;
    unsigned refused;
};

static void try_bytes(enum inf_message_kind kind, const uint8_t *bytes, size_t size,
                      struct inf_scratch *scratch, struct tally *tally)
{
    static union inf_message message;
    static uint8_t again[INF_LIMIT_META_BYTES];
    uint8_t *copy = malloc(size > 0 ? size : 1);
    memcpy(copy, bytes, size);
    struct inf_error err = {0};
    enum inf_code code =
        inf_message_decode(&message, kind, (struct inf_span){copy, size}, scratch, &err);
    if (code == INF_OK) {
        size_t again_size;
        cr_assert_eq(
            inf_message_encode(&message, kind, again, sizeof again, &again_size, scratch, &err),
            INF_OK, "%s", err.text);
        if (kind == INF_MESSAGE_INFER_REQUEST)
            (void)!inf_infer_request_resolve_inline(&message.infer_request, 420, &err);
        if (kind == INF_MESSAGE_INFER_REPLY)
            (void)!inf_infer_reply_resolve_inline(&message.infer_reply, 420, &err);
        tally->accepted++;
    } else {
        cr_assert_neq(err.text[0], '\0');
        cr_assert_neq(err.reason, INF_REASON_NONE);
        tally->refused++;
    }
    free(copy);
}

Test(message_mutation, never_crashes, .timeout = 110)
{
    struct inf_scratch *scratch;
    cr_assert_eq(inf_scratch_create(&scratch, NULL), INF_OK);
    static union inf_message message;
    for (int kind = INF_MESSAGE_HELLO; kind < INF_MESSAGE_KIND_COUNT; kind++) {
        uint8_t sample[ROOM];
        size_t sample_size;
        wire_sample(&message, (enum inf_message_kind)kind);
        cr_assert_eq(inf_message_encode(&message, (enum inf_message_kind)kind, sample, ROOM,
                                        &sample_size, scratch, NULL),
                     INF_OK);
        struct tally tally = {0};
        uint64_t state = 0x9e3779b97f4a7c15ull + (uint64_t)kind;
        for (int round = 0; round < ROUNDS; round++) {
            uint8_t bytes[ROOM];
            size_t size = sample_size;
            memcpy(bytes, sample, size);
            for (uint64_t i = next_random(&state) % 4 + 1; i > 0; i--)
                mutate_bytes(bytes, &size, &state);
            try_bytes((enum inf_message_kind)kind, bytes, size, scratch, &tally);
        }
        cr_assert_gt(tally.accepted, ROUNDS / 100, "kind %d", kind);
        cr_assert_gt(tally.refused, ROUNDS / 100, "kind %d", kind);
    }
    inf_scratch_destroy(&scratch);
}

Test(message_mutation, of_bytes_of_another_kind_never_crashes, .timeout = 110)
{
    struct inf_scratch *scratch;
    cr_assert_eq(inf_scratch_create(&scratch, NULL), INF_OK);
    static union inf_message message;
    struct tally tally = {0};
    for (int kind = 0; kind < INF_MESSAGE_KIND_COUNT; kind++) {
        uint8_t sample[ROOM];
        size_t size;
        wire_sample(&message, (enum inf_message_kind)kind);
        cr_assert_eq(inf_message_encode(&message, (enum inf_message_kind)kind, sample, ROOM, &size,
                                        scratch, NULL),
                     INF_OK);
        for (int other = 0; other < INF_MESSAGE_KIND_COUNT; other++)
            try_bytes((enum inf_message_kind)other, sample, size, scratch, &tally);
    }
    cr_assert_gt(tally.refused, 100);
    inf_scratch_destroy(&scratch);
}
