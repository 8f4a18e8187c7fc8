// SPDX-License-Identifier: Apache-2.0
// The form of tensors of strings in libinferd.
#include <criterion/criterion.h>
#include <string.h>

#include "client/inferd.h"

static const uint8_t bytes[] = {2, 0, 0, 0, 'a', '\0', 0, 0, 0, 0, 1, 0, 0, 0, 'c'};

Test(client_strings, are_written_with_their_lengths)
{
    const inferd_string strings[] = {{"a\0", 2}, {NULL, 0}, {"c", 1}};
    uint8_t written[sizeof bytes + 1] = {0};
    cr_assert_eq(inferd_strings_write(strings, 3, NULL, 0), sizeof bytes);
    cr_assert_eq(inferd_strings_write(strings, 3, written, sizeof bytes - 1), sizeof bytes);
    cr_assert_eq(written[0], 0, "a buffer that is too small stays as it is");
    cr_assert_eq(inferd_strings_write(strings, 3, written, sizeof bytes), sizeof bytes);
    cr_assert_eq(memcmp(written, bytes, sizeof bytes), 0);
    cr_assert_eq(written[sizeof bytes], 0);
    cr_assert_eq(inferd_strings_write(NULL, 0, NULL, 0), 0);
    const inferd_string large = {"x", (size_t)UINT32_MAX + 1};
    cr_assert_eq(inferd_strings_write(&large, 1, NULL, 0), SIZE_MAX);
}

Test(client_strings, are_read_one_by_one)
{
    inferd_tensor tensor = {.dtype = INFERD_BYTES, .data = (void *)bytes, .size = sizeof bytes};
    inferd_string string;
    size_t offset = 0;
    cr_assert_eq(inferd_string_next(&tensor, &offset, &string), 1);
    cr_assert(string.size == 2 && memcmp(string.data, "a\0", 2) == 0);
    cr_assert_eq(inferd_string_next(&tensor, &offset, &string), 1);
    cr_assert_eq(string.size, 0);
    cr_assert_eq(inferd_string_next(&tensor, &offset, &string), 1);
    cr_assert(string.size == 1 && *(const char *)string.data == 'c');
    cr_assert_eq(offset, sizeof bytes);
    cr_assert_eq(inferd_string_next(&tensor, &offset, &string), 0);
    offset = sizeof bytes + 1;
    cr_assert_eq(inferd_string_next(&tensor, &offset, &string), 0);
    // A tensor that ends within a length, or within a string.
    for (tensor.size = 1; tensor.size < 6; tensor.size++) {
        offset = 0;
        cr_assert_eq(inferd_string_next(&tensor, &offset, &string), 0);
        cr_assert_eq(offset, 0);
    }
}

Test(client_strings, have_a_dtype)
{
    cr_assert_eq(inferd_dtype_parse("BYTES"), INFERD_BYTES);
    cr_assert_str_eq(inferd_dtype_name(INFERD_BYTES), "BYTES");
}
