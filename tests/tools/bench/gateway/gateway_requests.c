// SPDX-License-Identifier: Apache-2.0
// Writes requests of the Open Inference Protocol.
#include "tests/tools/bench/gateway/gateway_requests.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/tools/bench/rpc_samples.h"

struct text {
    uint8_t *bytes;
    size_t size, capacity;
};

static uint8_t *add_room(struct text *text, size_t size)
{
    if (text->size + size > text->capacity) {
        text->capacity = (text->size + size) * 2;
        text->bytes = realloc(text->bytes, text->capacity);
        if (text->bytes == NULL)
            rpc_die("no memory for a request");
    }
    text->size += size;
    return text->bytes + text->size - size;
}

__attribute__((format(printf, 2, 3))) static void add_text(struct text *text, const char *format,
                                                           ...)
{
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    memcpy(add_room(text, (size_t)size), line, (size_t)size);
}

// Makes a whole HTTP/1.1 request. The elements of its tensor are zeros in binary form, and numbers
// of seven digits in JSON.
static uint8_t *make_rest(enum gateway_form form, size_t tensor_bytes, size_t *size)
{
    struct text json = {0}, whole = {0};
    size_t count = tensor_bytes / sizeof(float);
    add_text(&json, "{\"inputs\":[{\"name\":\"x\",\"shape\":[%zu],\"datatype\":\"FP32\",", count);
    if (form == GATEWAY_BINARY) {
        add_text(&json, "\"parameters\":{\"binary_data_size\":%zu}}],", tensor_bytes);
        add_text(&json, "\"parameters\":{\"binary_data_output\":true}}");
    } else {
        for (size_t i = 0; i < count; i++)
            add_text(&json, "%s0.%06zu", i == 0 ? "\"data\":[" : ",", 100000 + i * 7919 % 900000);
        add_text(&json, "]}]}");
    }
    add_text(&whole, "POST /v2/models/null/infer HTTP/1.1\r\nHost: localhost\r\n");
    if (form == GATEWAY_BINARY)
        add_text(&whole, "Inference-Header-Content-Length: %zu\r\n", json.size);
    size_t body_size = json.size + (form == GATEWAY_BINARY ? tensor_bytes : 0);
    add_text(&whole, "Content-Length: %zu\r\n\r\n", body_size);
    memcpy(add_room(&whole, json.size), json.bytes, json.size);
    if (form == GATEWAY_BINARY)
        memset(add_room(&whole, tensor_bytes), 0, tensor_bytes);
    free(json.bytes);
    *size = whole.size;
    return whole.bytes;
}

static void add_varint(struct text *text, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        *add_room(text, 1) = (uint8_t)(value | 0x80);
    *add_room(text, 1) = (uint8_t)value;
}

// Adds a field of wire type 2.
static void add_field(struct text *text, unsigned number, const void *bytes, size_t size)
{
    add_varint(text, number << 3 | 2);
    add_varint(text, size);
    uint8_t *to = add_room(text, size);
    if (bytes != NULL)
        memcpy(to, bytes, size);
    else
        memset(to, 0, size);
}

// Makes a gRPC message with its prefix. The fields of ModelInferRequest: 1 model_name, 5 inputs (1
// name, 2 datatype, 3 shape), 7 raw_input_contents.
static uint8_t *make_grpc(size_t tensor_bytes, size_t *size)
{
    struct text shape = {0}, input = {0}, whole = {0};
    add_varint(&shape, tensor_bytes / sizeof(float));
    add_field(&input, 1, "x", 1);
    add_field(&input, 2, "FP32", 4);
    add_field(&input, 3, shape.bytes, shape.size);
    memset(add_room(&whole, 5), 0, 5);
    add_field(&whole, 1, "null", 4);
    add_field(&whole, 5, input.bytes, input.size);
    add_field(&whole, 7, NULL, tensor_bytes);
    for (unsigned i = 0; i < 4; i++)
        whole.bytes[1 + i] = (uint8_t)((whole.size - 5) >> (24 - 8 * i));
    free(shape.bytes);
    free(input.bytes);
    *size = whole.size;
    return whole.bytes;
}

uint8_t *gateway_request_make(enum gateway_form form, size_t tensor_bytes, size_t *size)
{
    return form == GATEWAY_GRPC ? make_grpc(tensor_bytes, size)
                                : make_rest(form, tensor_bytes, size);
}
