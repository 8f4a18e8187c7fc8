// SPDX-License-Identifier: Apache-2.0
// Tests of messages that decoding refuses, and of the reasons.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "proto/wire/message.h"
#include "proto/wire/scratch.h"
#include "tests/support/wire/wire_bytes.h"

static struct inf_scratch *scratch;
static union inf_message got;

static void open_scratch(void)
{
    cr_assert_eq(inf_scratch_create(&scratch, NULL), INF_OK);
}

static void close_scratch(void)
{
    inf_scratch_destroy(&scratch);
}

TestSuite(message_checks, .init = open_scratch, .fini = close_scratch);

static void expect_accepted(enum inf_message_kind kind, const struct wire_bytes *bytes)
{
    struct inf_error err = {0};
    cr_assert_eq(inf_message_decode(&got, kind, wire_span(bytes), scratch, &err), INF_OK, "%s",
                 err.text);
}

static void refuses_with(enum inf_message_kind kind, const struct wire_bytes *bytes,
                         enum inf_code code, enum inf_reason reason, const char *text)
{
    struct inf_error err = {0};
    cr_assert_eq(inf_message_decode(&got, kind, wire_span(bytes), scratch, &err), code,
                 "wanted: %s; got: %s", text, err.text);
    cr_assert_eq(err.reason, reason, "%s", err.text);
    cr_assert_not_null(strstr(err.text, text), "'%s' does not say '%s'", err.text, text);
    cr_assert_null(strpbrk(err.text, "\n\r\x1b"), "one line");
}

static void expect_refused(enum inf_message_kind kind, const struct wire_bytes *bytes,
                           const char *text)
{
    refuses_with(kind, bytes, INF_INVALID, INF_REASON_BAD_PARAMETER, text);
}

// Returns a text that repeats one letter `size` times.
static const char *long_text(size_t size)
{
    static char text[8192];
    memset(text, 'n', size);
    text[size] = '\0';
    return text;
}

// --- messages with invalid tensors ---

struct input {
    const char *name;
    const char *datatype;
    const char *dims; // dimensions in protobuf's packed encoding
    size_t dims_size;
};

static const struct input plain = {"x", "FP32", "\x02\x03", 2};

static void put_input(struct wire_bytes *tensor, const struct input *input)
{
    tensor->size = 0;
    wire_text(tensor, 1, input->name);
    wire_text(tensor, 2, input->datatype);
    wire_block(tensor, 3, input->dims, input->dims_size);
}

// Returns a request for the model "m" with this one input.
static struct wire_bytes *request_with(const struct input *input)
{
    static struct wire_bytes bytes;
    static struct wire_bytes tensor;
    put_input(&tensor, input);
    bytes.size = 0;
    wire_text(&bytes, 1, "m");
    wire_message(&bytes, 5, &tensor);
    return &bytes;
}

static void refuses_input(struct input input, const char *text)
{
    expect_refused(INF_MESSAGE_INFER_REQUEST, request_with(&input), text);
}

Test(message_checks, inputs)
{
    expect_accepted(INF_MESSAGE_INFER_REQUEST, request_with(&plain));
    refuses_input((struct input){"", "FP32", "\x01", 1}, "input without a name");
    refuses_input((struct input){long_text(257), "FP32", "\x01", 1}, "has 257 bytes, at most 256");
    refuses_input((struct input){"a\nb", "", "\x01", 1}, "input 'a?b': datatype '' is not known");
    refuses_input((struct input){"x", "float32", "\x01", 1}, "datatype 'float32' is not known");
    refuses_input((struct input){"x", "fp32", "\x01", 1}, "datatype 'fp32' is not known");
    refuses_input((struct input){"x", "NONE", "\x01", 1}, "datatype 'NONE' is not known");
    refuses_input((struct input){"x", "STRING", "\x01", 1}, "datatype 'STRING' is not known");
    refuses_input((struct input){"x", "FP32", "\1\1\1\1\1\1\1\1\1", 9}, "shape has 9 dimensions");
    expect_accepted(INF_MESSAGE_INFER_REQUEST,
                    request_with(&(struct input){long_text(256), "FP32", "\1\1\1\1\1\1\1\1", 8}));
    expect_accepted(INF_MESSAGE_INFER_REQUEST, request_with(&(struct input){"x", "FP32", "", 0}));
}

Test(message_checks, dimensions)
{
    // The dimensions are -1, 2^31, 2^31 - 1 and the smallest int64.
    refuses_input((struct input){"x", "FP32", "\x02\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11},
                  "dimension 1 of the shape is -1, wanted 0 to 2147483647");
    refuses_input((struct input){"x", "UINT8", "\x80\x80\x80\x80\x08", 5},
                  "dimension 0 of the shape is 2147483648");
    expect_accepted(INF_MESSAGE_INFER_REQUEST,
                    request_with(&(struct input){"x", "UINT8", "\xff\xff\xff\xff\x07", 5}));
    refuses_input((struct input){"x", "UINT8", "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 10},
                  "is -9223372036854775808");
    // 2^31 - 1 doubles exceed 4 GiB. The product of eight large dimensions exceeds the limit too,
    // but with a dimension of 0 the tensor is empty.
    refuses_input((struct input){"x", "FP64", "\xff\xff\xff\xff\x07", 5},
                  "FP64 of shape [2147483647] is above the 4294967296 bytes");
    refuses_input((struct input){"x", "BOOL",
                                 "\xff\xff\xff\xff\x07\xff\xff\xff\xff\x07\xff\xff\xff\xff\x07",
                                 15},
                  "is above the 4294967296 bytes");
    expect_accepted(INF_MESSAGE_INFER_REQUEST,
                    request_with(&(struct input){"x", "FP64", "\xff\xff\xff\xff\x07\x00", 6}));
}

Test(message_checks, tensor_bytes_inside_the_metadata)
{
    static struct wire_bytes tensor;
    static struct wire_bytes bytes;
    put_input(&tensor, &plain);
    wire_block(&tensor, 5, "", 0);
    wire_text(&bytes, 1, "m");
    wire_message(&bytes, 5, &tensor);
    expect_refused(INF_MESSAGE_INFER_REQUEST, &bytes,
                   "input 'x': contents are not read: tensor bytes "
                   "follow the metadata");
    bytes.size = 0;
    wire_text(&bytes, 1, "m");
    wire_block(&bytes, 7, "abcd", 4);
    expect_refused(INF_MESSAGE_INFER_REQUEST, &bytes, "raw_input_contents is not read");
    bytes.size = 0;
    wire_block(&bytes, 6, "", 0);
    expect_refused(INF_MESSAGE_INFER_REPLY, &bytes, "raw_output_contents is not read");
    bytes.size = 0;
    wire_message(&bytes, 5, &tensor);
    expect_refused(INF_MESSAGE_INFER_REPLY, &bytes, "output 'x': contents are not read");
}

// Returns a request with `count` inputs or outputs (`field`), which have different names.
static struct wire_bytes *request_of_many(uint32_t field, int count)
{
    static struct wire_bytes bytes;
    static struct wire_bytes tensor;
    bytes.size = 0;
    wire_text(&bytes, 1, "m");
    for (int i = 0; i < count; i++) {
        char name[16];
        snprintf(name, sizeof name, "t%d", i);
        put_input(&tensor, &(struct input){name, "INT8", "\x01", 1});
        if (field == 6) {
            tensor.size = 0;
            wire_text(&tensor, 1, name);
        }
        wire_message(&bytes, field, &tensor);
    }
    return &bytes;
}

Test(message_checks, number_of_tensors)
{
    expect_accepted(INF_MESSAGE_INFER_REQUEST, request_of_many(5, 64));
    cr_assert_eq(got.infer_request.input_count, 64);
    expect_refused(INF_MESSAGE_INFER_REQUEST, request_of_many(5, 65), "65 inputs, at most 64");
    expect_accepted(INF_MESSAGE_INFER_REQUEST, request_of_many(6, 64));
    expect_refused(INF_MESSAGE_INFER_REQUEST, request_of_many(6, 65), "65 outputs, at most 64");
}

Test(message_checks, names_given_twice)
{
    static struct wire_bytes tensor;
    struct wire_bytes *bytes = request_of_many(5, 3);
    put_input(&tensor, &(struct input){"t1", "FP16", "", 0});
    wire_message(bytes, 5, &tensor);
    expect_refused(INF_MESSAGE_INFER_REQUEST, bytes, "input 't1' is named twice");
    bytes = request_of_many(6, 3);
    tensor.size = 0;
    wire_text(&tensor, 1, "t0");
    wire_message(bytes, 6, &tensor);
    expect_refused(INF_MESSAGE_INFER_REQUEST, bytes, "output 't0' is named twice");
}

// Returns a request in which a tensor (field 5: input, 6: output) has this location.
static struct wire_bytes *request_at(uint32_t field, uint64_t region_id, uint64_t offset,
                                     uint64_t length)
{
    static struct wire_bytes bytes;
    static struct wire_bytes tensor;
    static struct wire_bytes location;
    location.size = 0;
    wire_number(&location, 1, offset);
    wire_number(&location, 2, length);
    wire_number(&location, 3, region_id);
    if (field == 5) {
        put_input(&tensor, &plain);
    } else {
        tensor.size = 0;
        wire_text(&tensor, 1, "y");
    }
    wire_message(&tensor, 100, &location);
    bytes.size = 0;
    wire_text(&bytes, 1, "m");
    wire_message(&bytes, field, &tensor);
    return &bytes;
}

Test(message_checks, locations)
{
    expect_accepted(INF_MESSAGE_INFER_REQUEST, request_at(5, 0, 64, 24));
    expect_accepted(INF_MESSAGE_INFER_REQUEST, request_at(6, 1, UINT64_MAX, 0));
    refuses_with(INF_MESSAGE_INFER_REQUEST, request_at(5, 3, UINT64_MAX, 24), INF_RANGE,
                 INF_REASON_REGION_BOUNDS, "input 'x': 24 bytes at offset 18446744073709551615");
    refuses_with(INF_MESSAGE_INFER_REQUEST, request_at(6, 3, 32, UINT64_MAX - 31), INF_RANGE,
                 INF_REASON_REGION_BOUNDS, "output 'y': 18446744073709551584 bytes at offset 32");
    expect_refused(INF_MESSAGE_INFER_REQUEST, request_at(6, 0, 0, 100),
                   "output 'y': location names no region_id");
}

// --- messages with invalid names ---

static void refuses_model(const char *name)
{
    static struct wire_bytes bytes;
    bytes.size = 0;
    wire_text(&bytes, 1, name);
    expect_refused(INF_MESSAGE_INFER_REQUEST, &bytes, "is no model name");
    expect_refused(INF_MESSAGE_MODEL_READY_REQUEST, &bytes, "is no model name");
    expect_refused(INF_MESSAGE_MODEL_METADATA_REQUEST, &bytes, "is no model name");
    bytes.size = 0;
    wire_text(&bytes, 2, name);
    expect_refused(INF_MESSAGE_MODEL_LOAD_REQUEST, &bytes, "is no model name");
    expect_refused(INF_MESSAGE_MODEL_UNLOAD_REQUEST, &bytes, "is no model name");
}

Test(message_checks, model_names)
{
    static const char *const bad[] = {
        "",    " ",    "\t",      ".",  "..", ".hidden",     "a/b",  "../a", "a\\b",
        "a b", "a%2e", "@stable", "a:", ":a", "caf\xc3\xa9", "a\nb", "~",    "*",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        cr_assert_not(inf_model_name_valid(bad[i]), "%s", bad[i]);
        refuses_model(bad[i]);
    }
    refuses_model(long_text(65));
    refuses_model(long_text(4096));
    cr_assert(inf_model_name_valid(long_text(64)));
    cr_assert(inf_model_name_valid("A-z_0.9"));
    cr_assert(inf_model_name_valid("-"));
    cr_assert(inf_model_name_valid("a..b"));
}

Test(message_checks, a_model_name_may_name_a_version)
{
    static struct wire_bytes bytes;
    wire_text(&bytes, 1, "m@stable");
    expect_accepted(INF_MESSAGE_INFER_REQUEST, &bytes);
    expect_accepted(INF_MESSAGE_MODEL_READY_REQUEST, &bytes);
    expect_accepted(INF_MESSAGE_MODEL_METADATA_REQUEST, &bytes);
    expect_accepted(INF_MESSAGE_PLACEMENT_REQUEST, &bytes);
    wire_text(&bytes, 2, "1");
    expect_refused(INF_MESSAGE_INFER_REQUEST, &bytes,
                   "model_name 'm@stable' names a version, and so does model_version '1'");
    bytes.size = 0;
    wire_text(&bytes, 1, "m@");
    expect_refused(INF_MESSAGE_INFER_REQUEST, &bytes, "wanted a version or a label after '@'");
    bytes.size = 0;
    wire_text(&bytes, 1, "m@a@b");
    expect_refused(INF_MESSAGE_INFER_REQUEST, &bytes, "model_version 'a@b' is no version");
    bytes.size = 0;
    wire_text(&bytes, 1, "@1");
    expect_refused(INF_MESSAGE_INFER_REQUEST, &bytes, "is no model name");
    bytes.size = 0;
    wire_text(&bytes, 2, "m@1"); // a load reads all versions that are served
    expect_refused(INF_MESSAGE_MODEL_LOAD_REQUEST, &bytes, "is no model name");
}

Test(message_checks, a_model_name_may_name_a_signature)
{
    static struct wire_bytes bytes;
    wire_text(&bytes, 1, "m:decode");
    expect_accepted(INF_MESSAGE_INFER_REQUEST, &bytes);
    expect_accepted(INF_MESSAGE_MODEL_METADATA_REQUEST, &bytes);
    bytes.size = 0;
    wire_text(&bytes, 1, "m:decode@2");
    expect_accepted(INF_MESSAGE_INFER_REQUEST, &bytes);
    bytes.size = 0;
    wire_text(&bytes, 1, "m:a:b");
    expect_refused(INF_MESSAGE_INFER_REQUEST, &bytes, "wanted NAME or NAME:SIGNATURE");
    bytes.size = 0;
    wire_text(&bytes, 2, "m:decode"); // a load reads all signatures of a file
    expect_refused(INF_MESSAGE_MODEL_LOAD_REQUEST, &bytes, "is no model name");
}

Test(message_checks, references_of_models)
{
    static const char *const bad[] = {"",   "m@", "@1",   "m@.1",  "m@a@b", "a/b@1", ".m@1",
                                      "m:", ":s", "m:.s", "m:s:t", "m:s@",  "m:@1",  "m@1:s"};
    char text[80];
    cr_expect(inf_model_reference_valid("m:s"));
    cr_expect(inf_model_reference_valid("m:s@1"));
    snprintf(text, sizeof text, "%.62s:b", long_text(62));
    cr_expect(inf_model_reference_valid(text));
    snprintf(text, sizeof text, "%.62s:bc", long_text(62));
    cr_expect_not(inf_model_reference_valid(text));
    cr_expect(inf_model_reference_valid("m@1"));
    cr_expect(inf_model_reference_valid("m"));
    cr_expect(inf_model_reference_valid(long_text(64)));
    cr_expect_not(inf_model_reference_valid(long_text(65)));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        cr_expect_not(inf_model_reference_valid(bad[i]), "%s", bad[i]);
}

Test(message_checks, versions_ids_devices_and_paths)
{
    static struct wire_bytes bytes;
    wire_text(&bytes, 1, "m");
    wire_text(&bytes, 2, "../1");
    expect_refused(INF_MESSAGE_INFER_REQUEST, &bytes, "model_version '../1' is no version");
    expect_refused(INF_MESSAGE_MODEL_READY_REQUEST, &bytes, "version '../1' is no version");
    bytes.size = 0;
    wire_text(&bytes, 1, "m");
    wire_text(&bytes, 3, long_text(257));
    expect_refused(INF_MESSAGE_INFER_REQUEST, &bytes, "id 'nnnn");
    bytes.size = 0;
    wire_text(&bytes, 1, "m");
    wire_text(&bytes, 101, long_text(257));
    expect_refused(INF_MESSAGE_INFER_REQUEST, &bytes, "device 'nnnn");
    bytes.size = 0;
    wire_text(&bytes, 2, "m");
    wire_text(&bytes, 101, long_text(4096));
    expect_refused(INF_MESSAGE_MODEL_LOAD_REQUEST, &bytes, "has 4096 bytes, at most 4095");
    bytes.size = 0;
    wire_text(&bytes, 2, "m");
    wire_text(&bytes, 100, "a/b");
    expect_refused(INF_MESSAGE_MODEL_UNLOAD_REQUEST, &bytes, "version 'a/b' is no version");
}

// --- HELLO, region and metadata messages with invalid fields ---

Test(message_checks, hello)
{
    static struct wire_bytes bytes;
    wire_text(&bytes, 3, long_text(257));
    expect_refused(INF_MESSAGE_HELLO, &bytes, "client_name 'nnn");
    bytes.size = 0;
    wire_repeat(&bytes, "\x32\x01x", 3, 32);
    expect_accepted(INF_MESSAGE_HELLO, &bytes);
    wire_raw(&bytes, "\x32\x01x", 3);
    expect_refused(INF_MESSAGE_HELLO, &bytes, "features has 33 entries, at most 32");
    expect_refused(INF_MESSAGE_HELLO_ACK, &bytes, "features has 33 entries");
    bytes.size = 0;
    wire_text(&bytes, 6, long_text(257));
    expect_refused(INF_MESSAGE_HELLO, &bytes, "features 'nnn");
}

Test(message_checks, regions)
{
    static struct wire_bytes bytes;
    for (int kind = INF_MESSAGE_REGION_REGISTER; kind <= INF_MESSAGE_REGION_RELEASED; kind++) {
        bytes.size = 0;
        wire_number(&bytes, 2, 4096);
        expect_refused((enum inf_message_kind)kind, &bytes, "region_id is 0");
    }
    static const uint64_t sizes[] = {0, (4ull << 30) + 1, UINT64_MAX};
    for (size_t i = 0; i < 3; i++) {
        bytes.size = 0;
        wire_number(&bytes, 1, 5);
        wire_number(&bytes, 2, sizes[i]);
        expect_refused(INF_MESSAGE_REGION_REGISTER, &bytes, "region 5: size is ");
    }
}

Test(message_checks, model_metadata)
{
    static struct wire_bytes bytes;
    static struct wire_bytes tensor;
    put_input(&tensor,
              &(struct input){"x", "FP32", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10});
    wire_message(&bytes, 4, &tensor);
    expect_accepted(INF_MESSAGE_MODEL_METADATA, &bytes);
    cr_assert_eq(got.model_metadata.inputs[0].shape.dims[0], -1);
    put_input(&tensor,
              &(struct input){"x", "FP32", "\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10});
    bytes.size = 0;
    wire_message(&bytes, 5, &tensor);
    expect_refused(INF_MESSAGE_MODEL_METADATA, &bytes,
                   "output 'x': dimension 0 of the shape is -2");
    put_input(&tensor, &plain);
    wire_number(&tensor, 100, 1);
    bytes.size = 0;
    wire_message(&bytes, 4, &tensor);
    expect_refused(INF_MESSAGE_MODEL_METADATA, &bytes, "input 'x' is unranked, but has a shape");
}

// --- the memory that decoding a message may use ---

Test(message_checks, memory_of_unpacking_is_bounded)
{
    // A message that needs the most memory to decode: as many input tensors as fields are allowed,
    // and then a shape with as many dimensions as fit into the remaining bytes.
    static struct wire_bytes bytes;
    static struct wire_bytes tensor;
    static char ones[57000];
    memset(ones, 1, sizeof ones);
    wire_text(&bytes, 1, "m");
    wire_repeat(&bytes, "\x2a\x00", 2, 4090);
    put_input(&tensor, &(struct input){"x", "FP32", ones, sizeof ones});
    wire_message(&bytes, 5, &tensor);
    cr_assert_leq(bytes.size, INF_LIMIT_META_BYTES);
    refuses_with(INF_MESSAGE_INFER_REQUEST, &bytes, INF_EXHAUSTED, INF_REASON_FRAME_TOO_LARGE,
                 "more than 1048576 bytes of memory");
    // Expect that the memory for decoding can be used again after the failure.
    expect_accepted(INF_MESSAGE_INFER_REQUEST, request_with(&plain));
}

Test(message_checks, budget_ends_where_it_says)
{
    struct inf_error err;
    inf_scratch_begin_decode(scratch);
    cr_assert_not_null(inf_scratch_alloc(scratch, INF_LIMIT_META_UNPACK_BYTES - 16));
    cr_assert_not_null(inf_scratch_alloc(scratch, 1));
    cr_assert_null(inf_scratch_alloc(scratch, 1));
    cr_assert_null(scratch->allocator.alloc(scratch, SIZE_MAX));
    cr_assert(scratch->exhausted);
    inf_scratch_begin_encode(scratch);
    cr_assert_not_null(inf_scratch_alloc(scratch, INF_LIMIT_META_UNPACK_BYTES));
    cr_assert_null(inf_scratch_array(scratch, SIZE_MAX / 2, 4, &err));
    cr_assert_eq(err.code, INF_EXHAUSTED);
    cr_assert_null(inf_scratch_array(scratch, 1, 1, &err));
    cr_assert_eq(err.reason, INF_REASON_FRAME_TOO_LARGE);
    inf_scratch_end_encode(scratch);
    cr_assert_eq(scratch->used, INF_LIMIT_META_UNPACK_BYTES);
}

Test(message_checks, unknown_fields_up_to_the_limit_are_skipped)
{
    static struct wire_bytes bytes;
    bytes.size = 0;
    wire_text(&bytes, 1, "m");
    wire_repeat(&bytes, "\x78\x01", 2, 4095);
    expect_accepted(INF_MESSAGE_INFER_REQUEST, &bytes);
    cr_assert_str_eq(got.infer_request.model_name, "m");
    wire_raw(&bytes, "\x78\x01", 2);
    refuses_with(INF_MESSAGE_INFER_REQUEST, &bytes, INF_INVALID, INF_REASON_BAD_FRAME,
                 "too many fields");
}

// --- messages that cannot be encoded ---

Test(message_checks, what_cannot_be_encoded)
{
    static union inf_message message;
    uint8_t buffer[256];
    size_t size;
    struct inf_error err;
    message.infer_request.model_name = "m";
    message.infer_request.input_count = 1;
    message.infer_request.inputs[0].name = "x";
    cr_assert_eq(inf_message_encode(&message, INF_MESSAGE_INFER_REQUEST, buffer, sizeof buffer,
                                    &size, scratch, &err),
                 INF_INVALID);
    cr_assert_str_eq(err.text, "input 'x' has no element type");
    message.infer_request.inputs[0].dtype = INF_DTYPE_F32;
    message.infer_request.inputs[0].shape.rank = INF_RANK_UNKNOWN;
    cr_assert_eq(inf_message_encode(&message, INF_MESSAGE_INFER_REQUEST, buffer, sizeof buffer,
                                    &size, scratch, &err),
                 INF_INVALID);
    cr_assert_str_eq(err.text, "input 'x': rank is -1, wanted 0 to 8");
}
