// SPDX-License-Identifier: Apache-2.0
// Tests of the offsets of tensors in a data segment.
#include <criterion/criterion.h>
#include <string.h>

#include "proto/wire/message.h"

static struct inf_tensor_entry make_entry(const char *name, enum inf_dtype dtype,
                                          struct inf_shape shape)
{
    return (struct inf_tensor_entry){.name = name, .dtype = dtype, .shape = shape};
}

static struct inf_tensor_entry make_placed(uint64_t region_id, uint64_t offset, uint64_t length)
{
    struct inf_tensor_entry result = make_entry("x", INF_DTYPE_F32, INF_SHAPE(5, 5));
    result.location = (struct inf_location){
        .present = true, .region_id = region_id, .offset = offset, .length = length};
    return result;
}

// Computes the location of a request's only input in a data segment of `data_bytes` bytes, and
// expects this code and reason.
static void expect_result(struct inf_tensor_entry input, uint64_t data_bytes, enum inf_code code,
                          enum inf_reason reason)
{
    static struct inf_infer_request request;
    request.input_count = 1;
    request.inputs[0] = input;
    struct inf_error err = {0};
    cr_assert_eq(inf_infer_request_resolve_inline(&request, data_bytes, &err), code, "got '%s'",
                 err.text);
    cr_assert_eq(err.reason, reason, "got '%s'", err.text);
}

Test(inline_data, lies_one_behind_the_other_at_multiples_of_64)
{
    static struct inf_infer_request request = {.input_count = 6};
    request.inputs[0] = make_entry("a", INF_DTYPE_F32, INF_SHAPE(1, 7)); // 28 bytes
    request.inputs[1] = make_entry("b", INF_DTYPE_U8, INF_SHAPE(64));    // 64 bytes
    request.inputs[2] = make_entry("c", INF_DTYPE_I64, INF_SHAPE(0, 3)); // 0 bytes
    request.inputs[3] = make_entry("d", INF_DTYPE_F16, (struct inf_shape){0});
    request.inputs[4] = make_placed(9, 3, 100);
    request.inputs[5] = make_entry("e", INF_DTYPE_F64, INF_SHAPE(2));
    cr_assert_eq(inf_infer_request_resolve_inline(&request, 192 + 16, NULL), INF_OK);
    static const uint64_t wanted[6][2] = {{0, 28}, {64, 64}, {0, 0}, {128, 2}, {3, 100}, {192, 16}};
    for (int i = 0; i < 6; i++) {
        cr_assert(request.inputs[i].location.present);
        cr_assert_eq(request.inputs[i].location.offset, wanted[i][0], "input %d", i);
        cr_assert_eq(request.inputs[i].location.length, wanted[i][1], "input %d", i);
        cr_assert_eq(request.inputs[i].location.region_id, i == 4 ? 9 : 0);
    }
}

Test(inline_data, follows_a_given_location)
{
    static struct inf_infer_reply reply = {.output_count = 2};
    reply.outputs[0] = make_placed(0, 128, 100);
    reply.outputs[1] = make_entry("b", INF_DTYPE_U8, INF_SHAPE(3));
    cr_assert_eq(inf_infer_reply_resolve_inline(&reply, 256 + 3, NULL), INF_OK);
    cr_assert_eq(reply.outputs[1].location.offset, 256);
    cr_assert_eq(reply.outputs[1].location.length, 3);
}

Test(inline_data, checks_lengths)
{
    struct inf_tensor_entry plain = make_entry("x", INF_DTYPE_F32, INF_SHAPE(5, 5)); // 100 bytes
    expect_result(plain, 100, INF_OK, 0);
    expect_result(plain, 127, INF_OK, 0);
    expect_result(plain, 99, INF_INVALID, INF_REASON_SIZE_MISMATCH);
    expect_result(plain, 0, INF_INVALID, INF_REASON_SIZE_MISMATCH);
    expect_result(plain, 164, INF_INVALID, INF_REASON_SIZE_MISMATCH);
    expect_result(make_placed(0, 0, 100), 100, INF_OK, 0);
    expect_result(make_placed(0, 0, 99), 100, INF_INVALID, INF_REASON_SIZE_MISMATCH);
    expect_result(make_placed(0, 0, 101), 101, INF_INVALID, INF_REASON_SIZE_MISMATCH);
    expect_result(make_placed(7, 0, 100), 0, INF_OK, 0);
    expect_result(make_placed(7, 1, 100), 0, INF_OK, 0);
    expect_result(make_placed(7, 0, 0), 0, INF_INVALID, INF_REASON_SIZE_MISMATCH);
    expect_result(make_placed(7, 0, UINT64_MAX), 0, INF_INVALID, INF_REASON_SIZE_MISMATCH);
    expect_result(make_placed(7, 0, 100), 64, INF_INVALID, INF_REASON_SIZE_MISMATCH);
}

Test(inline_data, checks_alignment_and_bounds)
{
    expect_result(make_placed(0, 64, 100), 164, INF_OK, 0);
    expect_result(make_placed(0, 32, 100), 164, INF_INVALID, INF_REASON_BAD_PARAMETER);
    expect_result(make_placed(0, 65, 100), 200, INF_INVALID, INF_REASON_BAD_PARAMETER);
    expect_result(make_placed(0, 64, 100), 163, INF_RANGE, INF_REASON_REGION_BOUNDS);
    expect_result(make_placed(0, 128, 100), 100, INF_RANGE, INF_REASON_REGION_BOUNDS);
    expect_result(make_placed(0, UINT64_MAX - 63, 100), 100, INF_RANGE, INF_REASON_REGION_BOUNDS);
}

Test(inline_data, refuses_shapes_without_a_size)
{
    expect_result(make_entry("x", INF_DTYPE_F32, INF_SHAPE(1 << 30, 1 << 30, 1 << 30)), 0,
                  INF_INVALID, INF_REASON_BAD_PARAMETER);
    expect_result(make_entry("x", INF_DTYPE_U8, INF_SHAPE(INF_DIM_UNKNOWN)), 0, INF_INVALID,
                  INF_REASON_BAD_PARAMETER);
    expect_result(make_entry("x", INF_DTYPE_NONE, INF_SHAPE(1)), 0, INF_INVALID,
                  INF_REASON_BAD_PARAMETER);
}

Test(inline_data, names_the_tensor_and_the_sizes)
{
    static struct inf_infer_request request = {.input_count = 1};
    request.inputs[0] = make_entry("images", INF_DTYPE_F32, INF_SHAPE(1, 4));
    struct inf_error err;
    cr_assert_eq(inf_infer_request_resolve_inline(&request, 15, &err), INF_INVALID);
    cr_assert_str_eq(
        err.text, "input 'images': 16 bytes at offset 0 are missing from the data segment of 15");
}

static struct inf_tensor_entry make_strings(uint64_t region_id, uint64_t length)
{
    struct inf_tensor_entry result = make_placed(region_id, 0, length);
    result.dtype = INF_DTYPE_BYTES; // 25 strings, of at least 4 bytes each
    return result;
}

// The shape of a tensor of strings gives only its least size.
Test(inline_data, takes_the_size_of_strings_from_their_location)
{
    expect_result(make_strings(0, 100), 100, INF_OK, 0);
    expect_result(make_strings(0, 5000), 5000, INF_OK, 0);
    expect_result(make_strings(0, 99), 99, INF_INVALID, INF_REASON_SIZE_MISMATCH);
    expect_result(make_strings(0, 200), 100, INF_RANGE, INF_REASON_REGION_BOUNDS);
    expect_result(make_strings(0, 100), 164, INF_INVALID, INF_REASON_SIZE_MISMATCH);
    expect_result(make_strings(7, 99), 0, INF_INVALID, INF_REASON_SIZE_MISMATCH);
    expect_result(make_strings(7, INF_LIMIT_TENSOR_BYTES + 1), 0, INF_INVALID,
                  INF_REASON_SIZE_MISMATCH);
    struct inf_tensor_entry plain = make_entry("x", INF_DTYPE_BYTES, INF_SHAPE(2));
    expect_result(plain, 8, INF_INVALID, INF_REASON_BAD_PARAMETER);
    expect_result(make_entry("x", INF_DTYPE_BYTES, INF_SHAPE(0)), 0, INF_OK, 0);
    plain.shape = INF_SHAPE((int64_t)INF_LIMIT_STRING_ELEMENTS + 1);
    expect_result(plain, 0, INF_INVALID, INF_REASON_BAD_PARAMETER);
}
