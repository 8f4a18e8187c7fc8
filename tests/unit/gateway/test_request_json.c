// SPDX-License-Identifier: Apache-2.0
// Requests in JSON: which texts are read, which are refused and why, and that a request that is
// read in small parts is the same as one that is read at once.
#include <criterion/criterion.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/gateway/oip/request_json.h"

struct outcome {
    struct inf_oip_request *request;
    enum inf_code code;
    struct inf_error err;
    unsigned calls;
};

static bool refuse_charge(void *context, size_t size)
{
    size_t *left = context;
    if (size > *left)
        return false;
    *left -= size;
    return true;
}

// Decodes a text, `bytes_max` bytes at a time. `left` is how much memory the inputs may have.
static struct outcome decode_text(const char *text, size_t bytes_max, size_t left)
{
    struct outcome outcome = {calloc(1, sizeof *outcome.request), INF_OK, {0}, 0};
    // A copy of the exact size, so that a sanitizer finds reads behind it.
    size_t size = strlen(text);
    uint8_t *copy = malloc(size + (size == 0));
    memcpy(copy, text, size);
    struct inf_oip_json_decoder decoder = {
        .request = outcome.request,
        .outline.text = {copy, size},
        .charge = refuse_charge,
        .context = &left,
    };
    bool done = false;
    while (outcome.code == INF_OK && !done) {
        outcome.code = inf_oip_json_decode(&decoder, bytes_max, &done, &outcome.err);
        cr_assert_lt(++outcome.calls, 100000u, "%s", text);
    }
    inf_oip_json_decoder_fini(&decoder);
    free(copy);
    return outcome;
}

static void free_outcome(struct outcome *outcome)
{
    inf_oip_request_fini(outcome->request);
    free(outcome->request);
}

// Returns the JSON of an inference request with the single input "x". The caller frees it.
static char *make_request(const char *type, const char *shape, const char *data)
{
    size_t room = strlen(type) + strlen(shape) + strlen(data) + 128;
    char *text = malloc(room);
    snprintf(text, room,
             "{\"inputs\":[{\"name\":\"x\",\"datatype\":\"%s\",\"shape\":%s,\"data\":%s}]}", type,
             shape, data);
    return text;
}

static void check_data(const char *type, const char *shape, const char *data, const void *want,
                       size_t size)
{
    char *text = make_request(type, shape, data);
    for (size_t bytes = 1; bytes <= strlen(text) + 1; bytes += 1 + bytes / 4) {
        struct outcome outcome = decode_text(text, bytes, SIZE_MAX);
        cr_assert_eq(outcome.code, INF_OK, "%s: %s", text, outcome.err.text);
        cr_assert_eq(outcome.request->inputs[0].size, size, "%s", text);
        cr_assert_eq(memcmp(outcome.request->inputs[0].data, want, size), 0, "%s", text);
        free_outcome(&outcome);
    }
    free(text);
}

static void check_refused(const char *text, const char *says)
{
    for (size_t bytes = 1; bytes <= strlen(text) + 1; bytes += 1 + bytes / 4) {
        struct outcome outcome = decode_text(text, bytes, SIZE_MAX);
        cr_assert_neq(outcome.code, INF_OK, "%s", text);
        cr_assert(strstr(outcome.err.text, says) != NULL, "%s: %s", text, outcome.err.text);
        free_outcome(&outcome);
    }
}

static void check_data_refused(const char *type, const char *shape, const char *data,
                               const char *says)
{
    char *text = make_request(type, shape, data);
    check_refused(text, says);
    free(text);
}

Test(request_json, reads_elements_of_each_type)
{
    check_data("FP32", "[2]", "[1.5,-2]", (const float[]){1.5f, -2}, 8);
    check_data("FP64", "[2]", "[0.1,1e300]", (const double[]){0.1, 1e300}, 16);
    check_data("INT8", "[3]", "[-128,127,-0]", (const int8_t[]){-128, 127, 0}, 3);
    check_data("INT16", "[2]", "[-32768,32767]", (const int16_t[]){INT16_MIN, INT16_MAX}, 4);
    check_data("INT32", "[1]", "[-2147483648]", (const int32_t[]){INT32_MIN}, 4);
    check_data("INT64", "[2]", "[-9223372036854775808,9223372036854775807]",
               (const int64_t[]){INT64_MIN, INT64_MAX}, 16);
    check_data("UINT8", "[1]", "[255]", (const uint8_t[]){255}, 1);
    check_data("UINT16", "[1]", "[65535]", (const uint16_t[]){65535}, 2);
    check_data("UINT32", "[1]", "[4294967295]", (const uint32_t[]){UINT32_MAX}, 4);
    check_data("UINT64", "[1]", "[18446744073709551615]", (const uint64_t[]){UINT64_MAX}, 8);
    check_data("BOOL", "[4]", "[true,false,1,0]", (const uint8_t[]){1, 0, 1, 0}, 4);
    check_data("FP32", "[3]", "[Infinity,-Infinity,Inf]",
               (const float[]){INFINITY, -INFINITY, INFINITY}, 12);
    check_data("FP32", "[]", "[7]", (const float[]){7}, 4);
    check_data("FP32", "[0]", " [ ] ", (const float[]){0}, 0);
    check_data("FP32", "[0,3]", "[]", (const float[]){0}, 0);
    check_data("FP32", "[2,0]", "[[],[ ]]", (const float[]){0}, 0);
    check_data("FP32", "[2,2]", "[[1,2],[3,4]]", (const float[]){1, 2, 3, 4}, 16);
    check_data("FP32", "[2,2]", "[1,2,3,4]", (const float[]){1, 2, 3, 4}, 16);
    check_data("INT8", "[2,1,2]", " [\n[ [1 ,\t2 ] ] , [[3,4]]\r]", (const int8_t[]){1, 2, 3, 4},
               4);
    check_data("INT8", "[1,1,1,1,1,1,1,1]", "[[[[[[[[9]]]]]]]]", (const int8_t[]){9}, 1);
}

Test(request_json, refuses_elements_that_do_not_fit)
{
    check_data_refused("UINT64", "[1]", "[18446744073709551616]", "out of the range");
    check_data_refused("UINT64", "[1]", "[-1]", "out of the range");
    check_data_refused("INT64", "[1]", "[9223372036854775808]", "out of the range");
    check_data_refused("INT64", "[1]", "[-9223372036854775809]", "out of the range");
    check_data_refused("INT8", "[1]", "[128]", "element 0, 128, is out of the range of INT8");
    check_data_refused("INT32", "[2]", "[1,1.0]", "element 1 is no INT32");
    check_data_refused("INT32", "[1]", "[1e2]", "is no INT32");
    check_data_refused("INT32", "[1]", "[true]", "is no INT32");
    check_data_refused("INT32", "[1]", "[NaN]", "is no INT32");
    check_data_refused("BOOL", "[1]", "[2]", "out of the range");
    check_data_refused("BOOL", "[1]", "[truer]", "no valid JSON");
    check_data_refused("FP32", "[1]", "[3.5e38]", "out of the range");
    check_data_refused("FP32", "[1]", "[-1e400]", "out of the range");
    check_data_refused("FP64", "[1]", "[1e400]", "out of the range");
    check_data_refused("FP32", "[1]", "[\"1\"]", "is no FP32");
    check_data_refused("FP32", "[1]", "[null]", "is no FP32");
    check_data_refused("FP32", "[1]", "[\"\\\"]\"]", "is no FP32");
    check_data_refused("FP32", "[1]", "[{}]", "is no FP32");
    check_data_refused("FP16", "[1]", "[1]", "binary data only");
}

Test(request_json, refuses_arrays_that_do_not_have_the_shape)
{
    static const char *const flat[] = {"[]", "[1,2,3]", "[1,2,3,4,5]", "[1,2,3,]", "[[1],2,3,4]"};
    for (size_t i = 0; i < sizeof flat / sizeof flat[0]; i++)
        check_data_refused("FP32", "[4]", flat[i], "");
    static const char *const nested[] = {
        "[[1,2],[3]]",    "[[1,2],[3,4,5]]",   "[[1,2]]",        "[[1,2],[3,4],[5,6]]",
        "[[1,2],3,4]",    "[[[1],[2]],[3,4]]", "[[],[1,2,3,4]]", "[1,[2,3],4]",
        "[[1,2],[3,4],]", "[[1,2],,[3,4]]",    "[,[1,2],[3,4]]", "[[1,2][3,4]]",
        "[[1,2],[3,4]],1"};
    for (size_t i = 0; i < sizeof nested / sizeof nested[0]; i++)
        check_data_refused("FP32", "[2,2]", nested[i], "");
    check_data_refused("FP32", "[0,2]", "[[]]", "shape");
    check_data_refused("FP32", "[0]", "[x]", "no array of 0 elements");
    check_data_refused("FP32", "[2]", "[1}", "");
    check_data_refused("FP32", "[2]", "[1 2]", "no valid JSON");
    check_data_refused("FP32", "[2]", "[1x,2]", "no valid JSON");
    check_data_refused("FP32", "[2]", "[01,2]", "is no FP32");
}

Test(request_json, allocates_no_more_than_the_text_can_fill)
{
    // 2 GiB for a text of 60 bytes.
    check_data_refused("FP64", "[268435455]", "[1,2]", "no array of 268435455 elements");
    char *text = make_request("FP64", "[268435455]", "[1,2]");
    struct outcome outcome = decode_text(text, SIZE_MAX, 1000);
    cr_assert_eq(outcome.code, INF_INVALID);
    free_outcome(&outcome);
    free(text);
    text = make_request("FP32", "[2]", "[1,2]");
    outcome = decode_text(text, SIZE_MAX, 7);
    cr_assert_eq(outcome.code, INF_EXHAUSTED);
    free_outcome(&outcome);
    outcome = decode_text(text, SIZE_MAX, 8);
    cr_assert_eq(outcome.code, INF_OK);
    free_outcome(&outcome);
    free(text);
}

Test(request_json, members_have_any_order)
{
    struct outcome outcome = decode_text(
        " { \"other\":[{\"data\":[8]}],\"outputs\" : [ { \"name\" : \"data\" } ] , "
        "\"inputs\":[{\"data\" : [1,2],\"name\":\"a \\\" ]\","
        "\"shape\":[2],\"datatype\":\"INT8\"},{\"datatype\":\"INT8\",\"data\":[3],\"shape\":[1],"
        "\"name\":\"inputs\"}],\"id\":\"data\",\"parameters\":{\"data\":[5]}}",
        3, SIZE_MAX);
    cr_assert_eq(outcome.code, INF_OK, "%s", outcome.err.text);
    cr_assert_eq(outcome.request->input_count, 2u);
    cr_assert_str_eq(outcome.request->inputs[0].name, "a \" ]");
    cr_assert_eq(((const int8_t *)outcome.request->inputs[0].data)[1], 2);
    cr_assert_eq(((const int8_t *)outcome.request->inputs[1].data)[0], 3);
    cr_assert_str_eq(outcome.request->outputs[0].name, "data");
    free_outcome(&outcome);
}

#define INPUT(data) "{\"name\":\"x\",\"datatype\":\"INT8\",\"shape\":[1]," data "}"

Test(request_json, no_input_gets_the_data_of_another)
{
    // A key with an escape sequence, and a number in place of an array.
    check_refused("{\"inputs\":[" INPUT("\"d\\u0061ta\":[1]") "]}", "is no array");
    check_refused("{\"inputs\":[" INPUT("\"d\\u0061ta\":0") "," INPUT("\"data\":[7]") "]}",
                  "is no array");
    check_refused("{\"inputs\":[" INPUT("\"data\":0") "," INPUT("\"data\":[7]") "]}",
                  "is no array");
    check_refused("{\"inputs\":[" INPUT("\"data\":[7]") "," INPUT("\"data\":0") "]}",
                  "is no array");
    check_refused("{\"inputs\":[" INPUT("\"data\":[7]") "," INPUT("\"data\":1") "]}",
                  "is no array");
    check_refused("{\"inputs\":[" INPUT("\"data\":0") "]}", "is no array");
    check_refused("{\"inputs\":[" INPUT("\"data\":[1],\"data\":[2]") "]}", "duplicate");
    check_refused("{\"inputs\":[" INPUT("\"data\":[1]") "],\"inputs\":[" INPUT("\"data\":[1]") "]}",
                  "duplicate");
}

Test(request_json, refuses_texts_that_are_too_deep_or_too_large)
{
    size_t size = INF_OIP_JSON_OUTLINE_BYTES + 200;
    char *text = malloc(size + 1);
    for (unsigned depth = 12; depth <= 20; depth++) {
        char data[64] = "";
        for (unsigned i = 0; i < depth; i++)
            strcat(data, "[");
        check_data_refused("FP32", "[1]", data, depth > 13 ? "nests deeper" : "invalid");
    }
    memset(text, '0', size);
    memcpy(text, "[", 1);
    for (size_t i = 2; i < size; i += 2)
        text[i] = ',';
    text[size] = '\0';
    struct outcome outcome = decode_text(text, 1000, SIZE_MAX);
    cr_assert(strstr(outcome.err.text, "too many values") != NULL, "%s", outcome.err.text);
    free_outcome(&outcome);
    // Space does not count.
    char *request = make_request("INT8", "[1]", "[7]");
    memset(text, ' ', size);
    memcpy(text + size - strlen(request), request, strlen(request));
    outcome = decode_text(text, 1000, SIZE_MAX);
    cr_assert_eq(outcome.code, INF_OK, "%s", outcome.err.text);
    free_outcome(&outcome);
    free(request);
    free(text);
}

Test(request_json, a_long_text_needs_calls_in_proportion)
{
    enum {
        COUNT = 20000
    };
    char *data = malloc(COUNT * 2 + 2);
    for (size_t i = 0; i < COUNT; i++)
        memcpy(data + i * 2, ",1", 2);
    data[0] = '[';
    memcpy(data + COUNT * 2, "]", 2);
    char *text = make_request("INT8", "[20000]", data);
    // The text is read twice: once for its outline, once for its elements.
    struct outcome outcome = decode_text(text, 1000, SIZE_MAX);
    cr_assert_eq(outcome.code, INF_OK);
    cr_assert(outcome.calls >= 80 && outcome.calls <= 90, "%u", outcome.calls);
    free_outcome(&outcome);
    free(text);
    free(data);
}
