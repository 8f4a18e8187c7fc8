// SPDX-License-Identifier: Apache-2.0
// Tests of the assembler, which cuts a byte stream into frames.
#include <criterion/criterion.h>
#include <string.h>

#include "tests/support/wire/assembly.h"

// --- frames that arrive in pieces of any size ---

Test(assembler, assembles_byte_by_byte)
{
    struct assembly assembly;
    assembly_begin(&assembly);
    uint8_t bytes[300];
    size_t size = assembly_put(bytes, 9, 100, 65, 0);
    cr_assert_not(inf_assembler_partial(&assembly.assembler));
    for (size_t i = 0; i < size; i++) {
        cr_assert_neq(assembly.assembler.state, INF_ASSEMBLER_READY);
        assembly_feed(&assembly, bytes + i, 1);
        cr_assert_eq(inf_assembler_partial(&assembly.assembler), i + 1 < size);
    }
    assembly_take_expected(&assembly, 9, 100, 65);
    assembly_end(&assembly);
}

Test(assembler, assembles_whatever_the_split)
{
    static const uint32_t sizes[][2] = {{0, 0}, {1, 0}, {0, 1}, {7, 0}, {0, 64}, {31, 129}};
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        uint8_t bytes[600];
        size_t first = assembly_put(bytes, 1, sizes[k][0], sizes[k][1], 0);
        size_t size = first + assembly_put(bytes + first, 2, sizes[k][0], sizes[k][1], 0);
        for (size_t split = 0; split <= size; split++) {
            struct assembly assembly;
            assembly_begin(&assembly);
            const size_t ends[] = {split, size};
            size_t at = 0;
            uint64_t stream = 1;
            for (size_t part = 0; part < 2; part++) {
                while (at < ends[part]) {
                    at += assembly_feed_some(&assembly, bytes + at, ends[part] - at);
                    if (assembly.assembler.state == INF_ASSEMBLER_READY)
                        assembly_take_expected(&assembly, stream++, sizes[k][0], sizes[k][1]);
                }
            }
            cr_assert_eq(stream, 3);
            cr_assert_not(inf_assembler_partial(&assembly.assembler));
            assembly_end(&assembly);
        }
    }
}

Test(assembler, stops_behind_the_first_of_two_frames)
{
    struct assembly assembly;
    assembly_begin(&assembly);
    uint8_t bytes[200];
    size_t first = assembly_put(bytes, 1, 3, 5, 0);
    size_t size = first + assembly_put(bytes + first, 2, 4, 0, 0);
    cr_assert_eq(assembly_feed_some(&assembly, bytes, size), first);
    cr_assert_eq(assembly_feed_some(&assembly, bytes + first, size - first), 0,
                 "nothing is taken in while a frame waits");
    assembly_take_expected(&assembly, 1, 3, 5);
    assembly_feed(&assembly, bytes + first, size - first);
    assembly_take_expected(&assembly, 2, 4, 0);
    assembly_end(&assembly);
}

Test(assembler, takes_data_straight_into_its_room)
{
    struct assembly assembly;
    assembly_begin(&assembly);
    static uint8_t bytes[24 + 8 + 1000];
    assembly_put(bytes, 5, 8, 1000, 0);
    uint8_t *room;
    size_t size;
    inf_assembler_data_room(&assembly.assembler, &room, &size);
    cr_assert_eq(size, 0);
    assembly_feed(&assembly, bytes, 24 + 8 + 10);
    inf_assembler_data_room(&assembly.assembler, &room, &size);
    cr_assert_eq(size, 990);
    memset(room, 'd', 400);
    inf_assembler_advance(&assembly.assembler, 400);
    inf_assembler_advance(&assembly.assembler, 0);
    inf_assembler_data_room(&assembly.assembler, &room, &size);
    cr_assert_eq(size, 590);
    assembly_feed(&assembly, bytes + 500, 90);
    inf_assembler_data_room(&assembly.assembler, &room, &size);
    cr_assert_eq(size, 500);
    memset(room, 'd', 500);
    inf_assembler_advance(&assembly.assembler, 500);
    assembly_take_expected(&assembly, 5, 8, 1000);
    assembly_end(&assembly);
}

Test(assembler, frees_a_truncated_frame)
{
    static uint8_t bytes[24 + 50 + 5000];
    size_t size = assembly_put(bytes, 5, 50, 5000, 0);
    for (size_t cut = 1; cut < size; cut += 7) {
        struct assembly assembly;
        assembly_begin(&assembly);
        assembly_feed(&assembly, bytes, cut);
        cr_assert(inf_assembler_partial(&assembly.assembler));
        assembly_end(&assembly);
    }
}

// --- frames that exceed the limits ---

Test(assembler, takes_frames_at_the_limit)
{
    struct assembly assembly;
    assembly_begin(&assembly);
    size_t size = 24 + (size_t)INF_LIMIT_META_BYTES + INF_LIMIT_DATA_BYTES;
    uint8_t *bytes = malloc(size);
    assembly_put(bytes, 1, INF_LIMIT_META_BYTES, INF_LIMIT_DATA_BYTES, 0);
    assembly_feed(&assembly, bytes, size);
    assembly_take_expected(&assembly, 1, INF_LIMIT_META_BYTES, INF_LIMIT_DATA_BYTES);
    free(bytes);
    assembly_end(&assembly);
}

// Expects that a frame that is too large is skipped. The frame is fed in pieces of odd sizes, and
// another frame follows.
static void expect_skipped(uint32_t meta, uint32_t data)
{
    struct assembly assembly;
    assembly_begin(&assembly);
    uint8_t bytes[24 + 10007];
    assembly_put(bytes, 77, 0, 0, 0);
    memcpy(bytes, &meta, 4);
    memcpy(bytes + 4, &data, 4);
    assembly_feed(&assembly, bytes, 24);
    uint64_t left = (uint64_t)meta + data;
    while (left > 0) {
        cr_assert_eq(assembly.assembler.state, INF_ASSEMBLER_SKIP);
        size_t piece = left < 10007 ? (size_t)left : 10007;
        assembly_feed(&assembly, bytes + 24, piece);
        left -= piece;
    }
    assembly_take_rejected(&assembly, 77, INF_REASON_FRAME_TOO_LARGE);
    size_t size = assembly_put(bytes, 78, 2, 0, 0);
    assembly_feed(&assembly, bytes, size);
    assembly_take_expected(&assembly, 78, 2, 0);
    assembly_end(&assembly);
}

Test(assembler, skips_and_reports_an_oversize_frame)
{
    expect_skipped(INF_LIMIT_META_BYTES + 1, 0);
    expect_skipped(0, INF_LIMIT_DATA_BYTES + 1);
    expect_skipped(10, 5u << 20);
    expect_skipped(0, INF_LIMIT_SKIP_BYTES);
}

static void expect_broken(uint32_t meta, uint32_t data)
{
    struct assembly assembly;
    assembly_begin(&assembly);
    uint8_t bytes[24];
    assembly_put(bytes, 77, 0, 0, 0);
    memcpy(bytes, &meta, 4);
    memcpy(bytes + 4, &data, 4);
    for (int again = 0; again < 2; again++) {
        struct inf_error err;
        assembly_feed_bad(&assembly, bytes, 24, INF_EXHAUSTED, INF_REASON_FRAME_TOO_LARGE, &err);
        cr_assert_eq(assembly.assembler.header.stream_id, 77);
    }
    assembly_end(&assembly);
}

Test(assembler, breaks_on_a_frame_beyond_skipping)
{
    expect_broken(1, INF_LIMIT_SKIP_BYTES);
    expect_broken(INF_LIMIT_SKIP_BYTES + 1, 0);
    expect_broken(UINT32_MAX, UINT32_MAX);
    expect_broken(0, UINT32_MAX);
}

Test(assembler, skips_a_frame_that_finds_no_memory)
{
    struct assembly assembly;
    assembly_begin(&assembly);
    assembly.memory.refuse = true;
    uint8_t bytes[400];
    size_t size = assembly_put(bytes, 4, 20, 300, 0);
    assembly_feed(&assembly, bytes, size);
    assembly_take_rejected(&assembly, 4, INF_REASON_HOST_OOM);
    assembly.memory.refuse = false;
    assembly_feed(&assembly, bytes, size);
    assembly_take_expected(&assembly, 4, 20, 300);
    assembly_end(&assembly);
}

Test(assembler, breaks_on_a_bad_header_for_good)
{
    struct assembly assembly;
    assembly_begin(&assembly);
    uint8_t bytes[48];
    assembly_put(bytes, 1, 0, 0, 0);
    assembly_put(bytes + 24, 2, 0, 0, 0);
    bytes[22] = 1;
    struct inf_error err;
    assembly_feed_bad(&assembly, bytes, 48, INF_INVALID, INF_REASON_BAD_FRAME, &err);
    assembly_feed_bad(&assembly, bytes + 24, 24, INF_INVALID, INF_REASON_BAD_FRAME, &err);
    cr_assert_not_null(strstr(err.text, "reserved"), "the first cause is kept: %s", err.text);
    cr_assert_not(inf_assembler_partial(&assembly.assembler));
    assembly_end(&assembly);
}
