// SPDX-License-Identifier: Apache-2.0
// Pools of strings: handles, forged ones too, limits, and strings in messages, also random bytes.
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/string_pool.h"
#include "proto/core/bytes_tensor.h"
#include "proto/core/limits.h"

static struct inf_span span_of(const char *bytes)
{
    return (struct inf_span){(const uint8_t *)bytes, strlen(bytes)};
}

static uint64_t add_string(struct inf_string_pool *pool, const char *bytes)
{
    uint64_t handle;
    cr_assert_eq(inf_string_pool_add(pool, span_of(bytes), &handle, NULL), INF_OK);
    return handle;
}

static void expect_string(const struct inf_strings *strings, uint64_t handle, const char *bytes)
{
    struct inf_span got;
    cr_assert_eq(inf_strings_get(strings, handle, &got, NULL), INF_OK);
    cr_assert_eq(inf_string_compare(got, span_of(bytes)), 0, "wanted '%s'", bytes);
}

Test(string_pool, returns_what_was_added_from_both_pools)
{
    struct inf_shared_strings *shared = inf_shared_strings_create();
    struct inf_string_pool run = {0};
    const struct inf_strings strings = {inf_shared_strings_pool(shared), &run};
    uint64_t a = add_string(inf_shared_strings_pool(shared), "constant"),
             b = add_string(&run, "made");
    uint64_t empty = add_string(&run, "");
    for (int i = 0; i < 1000; i++)
        (void)add_string(&run, "more, so that the pool grows and moves");
    expect_string(&strings, a, "constant");
    expect_string(&strings, b, "made");
    expect_string(&strings, empty, "");
    expect_string(&strings, 0, "");
    expect_string(&strings, inf_string_handle_part(a, 3, 4), "stan");
    expect_string(&strings, inf_string_handle_part(b, 4, 0), "");
    inf_string_pool_clear(&run);
    cr_assert_eq(inf_strings_get(&strings, b, &(struct inf_span){0}, NULL), INF_INVALID);
    expect_string(&strings, a, "constant");
    inf_string_pool_fini(&run);
    inf_shared_strings_unref(&shared);
    cr_assert_null(shared);
}

Test(string_pool, no_handle_reaches_outside_of_its_pool)
{
    struct inf_string_pool run = {0};
    const struct inf_strings strings = {NULL, &run};
    struct inf_span got;
    uint64_t state = 1;
    (void)add_string(&run, "0123456789");
    // Offset 10 and length 1, offset 0 and length 11, both at their largest, and a constant.
    const uint64_t forged[] = {(uint64_t)10 << 32 | 1, 11, UINT64_MAX, UINT64_MAX >> 1,
                               (uint64_t)1 << 63 | 5};
    for (size_t i = 0; i < sizeof forged / sizeof *forged; i++)
        cr_assert_eq(inf_strings_get(&strings, forged[i], &got, NULL), INF_INVALID, "%zu", i);
    expect_string(&strings, (uint64_t)9 << 32 | 1, "9");
    for (int i = 0; i < 100000; i++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        if (inf_strings_get(&strings, state & UINT64_C(0x800000ff0000000f), &got, NULL) == INF_OK)
            cr_assert(got.size == 0 ||
                      (got.data >= run.bytes && got.data + got.size <= run.bytes + run.size_bytes));
    }
    inf_string_pool_fini(&run);
}

Test(string_pool, refuses_more_than_its_limit)
{
    struct inf_string_pool run = {.limit_bytes = 10};
    struct inf_error err;
    uint64_t handle = add_string(&run, "01234567");
    cr_assert_eq(inf_string_pool_add(&run, span_of("890"), &handle, &err), INF_EXHAUSTED);
    cr_assert_str_eq(err.text, "strings of more than 10 bytes in one run");
    (void)add_string(&run, "89");
    (void)add_string(&run, "");
    cr_assert_null(inf_string_pool_reserve(&run, SIZE_MAX, &err));
    inf_string_pool_fini(&run);
    cr_assert_null(inf_string_pool_reserve(&run, 11, &err));
    inf_string_pool_fini(&run);
}

Test(string_pool, gives_the_memory_of_a_large_run_back)
{
    struct inf_string_pool run = {0};
    (void)add_string(&run, "small");
    inf_string_pool_clear(&run);
    cr_assert_gt(run.capacity_bytes, 0);
    cr_assert_not_null(inf_string_pool_reserve(&run, (size_t)1 << 20, NULL));
    inf_string_pool_clear(&run);
    cr_assert_eq(run.capacity_bytes, 0);
    inf_string_pool_fini(&run);
}

// --- strings in messages ---

// "ab", "", "c" as in a message.
static const uint8_t message[] = {2, 0, 0, 0, 'a', 'b', 0, 0, 0, 0, 1, 0, 0, 0, 'c'};

static enum inf_code decode_copy(struct inf_string_pool *pool, const void *bytes, size_t size,
                                 size_t count, uint64_t *handles)
{
    // A copy of the right size lets a sanitizer find a read behind the end.
    uint8_t *copy = malloc(size + (size == 0));
    memcpy(copy, bytes, size);
    enum inf_code code =
        inf_string_pool_decode(pool, (struct inf_span){copy, size}, count, handles, NULL);
    free(copy);
    return code;
}

Test(string_pool, reads_and_writes_messages)
{
    struct inf_string_pool run = {0};
    const struct inf_strings strings = {NULL, &run};
    uint64_t handles[3];
    uint8_t again[sizeof message];
    size_t size;
    cr_assert_eq(decode_copy(&run, message, sizeof message, 3, handles), INF_OK);
    expect_string(&strings, handles[0], "ab");
    expect_string(&strings, handles[1], "");
    expect_string(&strings, handles[2], "c");
    cr_assert_eq(inf_strings_measure(&strings, handles, 3, &size, NULL), INF_OK);
    cr_assert_eq(size, sizeof message);
    inf_strings_encode(&strings, handles, 3, again);
    cr_assert_eq(memcmp(again, message, sizeof message), 0);
    handles[1] = 99;
    cr_assert_eq(inf_strings_measure(&strings, handles, 3, &size, NULL), INF_INVALID);
    inf_string_pool_fini(&run);
}

Test(string_pool, refuses_messages_that_are_cut_off_or_too_long)
{
    struct inf_string_pool run = {0};
    uint64_t handles[4];
    for (size_t size = 0; size < sizeof message; size++)
        cr_assert_eq(decode_copy(&run, message, size, 3, handles), INF_INVALID, "%zu bytes", size);
    cr_assert_eq(decode_copy(&run, message, sizeof message, 2, handles), INF_INVALID);
    cr_assert_eq(decode_copy(&run, message, sizeof message, 4, handles), INF_INVALID);
    cr_assert_eq(decode_copy(&run, message, 0, 0, handles), INF_OK);
    static const uint8_t largest[] = {0xff, 0xff, 0xff, 0xff, 'x'};
    cr_assert_eq(decode_copy(&run, largest, sizeof largest, 1, handles), INF_INVALID);
    inf_string_pool_fini(&run);
}

// Returns whether the bytes are `count` strings, by the definition of the form.
static bool is_tensor(const uint8_t *bytes, size_t size, size_t count)
{
    for (; count > 0; count--) {
        uint64_t length = 0;
        if (size < 4)
            return false;
        for (int i = 3; i >= 0; i--)
            length = length * 256 + bytes[i];
        if (length + 4 > size)
            return false;
        bytes += length + 4;
        size -= length + 4;
    }
    return size == 0;
}

Test(string_pool, random_messages_are_read_or_refused_as_defined)
{
    uint64_t state = 7;
    unsigned valid = 0;
    for (int round = 0; round < 200000; round++) {
        struct inf_string_pool run = {0};
        uint8_t bytes[sizeof message + 4];
        uint64_t handles[4];
        memcpy(bytes, message, sizeof message);
        memset(bytes + sizeof message, 0, 4);
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        size_t size = sizeof message + 4 - (state >> 60) % 6, count = (state >> 50) % 5;
        bytes[(state >> 40) % sizeof bytes] = (uint8_t)((state >> 30) % 3 == 0 ? 255 : state >> 33);
        bool wanted = is_tensor(bytes, size, count);
        cr_assert_eq(decode_copy(&run, bytes, size, count, handles) == INF_OK, wanted);
        valid += wanted;
        inf_string_pool_fini(&run);
    }
    cr_assert_gt(valid, 1000);
}
