// SPDX-License-Identifier: Apache-2.0
// Answers the requests of gRPC server reflection. A response is encoded when the client can receive
// it. At most one response is therefore in memory, and further requests wait in the body of the
// stream.
//
// The fields of the two messages, by their numbers in reflection.proto:
//
//   ServerReflectionRequest   1 host  3 file_by_filename  4 file_containing_symbol
//                             5 file_containing_extension  6 all_extension_numbers_of_type
//                             7 list_services
//   ServerReflectionResponse  1 valid_host  2 original_request  4 file_descriptor_response
//                             6 list_services_response  7 error_response
#include "client/gateway/grpc/reflection.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/gateway/grpc/services.h"
#include "client/gateway/http/clock.h"
#include "client/gateway/oip/proto_reader.h"
#include "client/gateway/oip/proto_writer.h"

// Maximum size of a question in bytes. The longest name of the gateway has less than 100.
#define QUESTION_BYTES_MAX ((size_t)4 << 10)

enum question_field {
    HOST = 1,
    FILE_BY_FILENAME = 3,
    FILE_CONTAINING_SYMBOL = 4,
    LIST_SERVICES = 7,
};

static void write_span(FILE *out, unsigned field, struct inf_span bytes)
{
    inf_proto_write_bytes(out, field, bytes.data, bytes.size);
}

// Returns the size of a field of fewer than 16384 bytes with its tag and length.
static size_t field_size(size_t size)
{
    return size + (size < 0x80 ? 2 : 3);
}

// Writes ErrorResponse: 1 error_code, 2 error_message.
static void write_error(FILE *out, int code, const char *text)
{
    struct inf_span message = {(const uint8_t *)text, strlen(text)};
    inf_proto_write_head(out, 7, 2 + field_size(message.size));
    inf_proto_write_varint(out, 1 << 3);
    inf_proto_write_varint(out, (uint64_t)code);
    write_span(out, 2, message);
}

// Writes ListServiceResponse: 1 service, which has 1 name.
static void write_services(FILE *out)
{
    char *text = NULL;
    size_t size = 0;
    FILE *list = open_memstream(&text, &size);
    if (list == NULL)
        return;
    struct inf_span file, package, name;
    for (unsigned i = 0; inf_grpc_services_file(i, &file); i++)
        for (unsigned k = 0; inf_grpc_services_name(file, k, &package, &name); k++) {
            size_t full = package.size + 1 + name.size;
            inf_proto_write_head(list, 1, field_size(full));
            inf_proto_write_head(list, 1, full);
            fprintf(list, "%.*s.%.*s", (int)package.size, (const char *)package.data,
                    (int)name.size, (const char *)name.data);
        }
    if (fclose(list) == 0)
        write_span(out, 6, (struct inf_span){(const uint8_t *)text, size});
    free(text);
}

// Writes FileDescriptorResponse: 1 file_descriptor_proto. No file of the gateway imports another.
static void write_file(FILE *out, bool by_name, struct inf_span wanted)
{
    struct inf_span file;
    for (unsigned i = 0; inf_grpc_services_file(i, &file); i++)
        if (by_name ? inf_grpc_services_file_is(file, wanted)
                    : inf_grpc_services_file_has(file, wanted)) {
            inf_proto_write_head(out, 4, field_size(file.size));
            write_span(out, 1, file);
            return;
        }
    write_error(out, INFERD_NOT_FOUND,
                by_name ? "there is no such file" : "there is no such symbol");
}

// Writes the response to a question.
static void write_response(FILE *out, struct inf_span question)
{
    struct inf_proto_field field, asked = {0};
    struct inf_span rest = question, host = {0};
    int code;
    while ((code = inf_proto_read_field(&rest, &field)) == 1)
        if (field.number == HOST && field.wire == INF_PROTO_BYTES)
            host = field.bytes;
        else if (field.number >= FILE_BY_FILENAME && field.number <= LIST_SERVICES)
            asked = field;
    if (host.size > 0)
        write_span(out, 1, host);
    write_span(out, 2, question);
    bool valid = code == 0 && asked.wire == INF_PROTO_BYTES;
    if (valid && asked.number == LIST_SERVICES)
        write_services(out);
    else if (valid && (asked.number == FILE_BY_FILENAME || asked.number == FILE_CONTAINING_SYMBOL))
        write_file(out, asked.number == FILE_BY_FILENAME, asked.bytes);
    else if (valid && asked.number != 0)
        write_error(out, INFERD_NOT_FOUND, "there are no extensions");
    else
        write_error(out, INFERD_INVALID_ARGUMENT, "this is no valid question");
}

// Determines whether the client has a response to read, and whether the call has ended.
static void update_call(struct inf_grpc_stream *stream)
{
    struct inf_span question;
    bool ready = inf_grpc_stream_peek(stream, QUESTION_BYTES_MAX, &question);
    if (!ready && stream->complete && stream->body_size > 0)
        inf_grpc_stream_fail(stream, INFERD_INVALID_ARGUMENT, "the call ends within a message");
    stream->ended = !ready && (stream->end_code != INFERD_OK || stream->complete);
    inf_grpc_stream_set_ready(stream, ready || stream->ended);
}

static void receive_questions(struct inf_grpc_stream *stream)
{
    update_call(stream);
    inf_grpc_reply_continue(stream);
}

// Replaces the response that was sent by the next one.
static bool load_response(struct inf_grpc_stream *stream)
{
    struct inf_span question;
    char *text = NULL;
    size_t size = 0;
    free(stream->user);
    stream->user = NULL;
    stream->piece_next = stream->piece_count = 0;
    bool found = inf_grpc_stream_peek(stream, QUESTION_BYTES_MAX, &question);
    FILE *out = found ? open_memstream(&text, &size) : NULL;
    if (out != NULL) {
        static const char prefix[INF_GRPC_PREFIX_BYTES];
        fwrite(prefix, 1, sizeof prefix, out);
        write_response(out, question);
        inf_grpc_stream_discard(stream, INF_GRPC_PREFIX_BYTES + question.size);
        stream->begin_ms = inf_http_clock_ms();
    }
    bool ok = out != NULL && fclose(out) == 0;
    if (found && !ok)
        inf_grpc_stream_fail(stream, INFERD_RESOURCE_EXHAUSTED, "no memory for a response");
    update_call(stream);
    if (!ok) {
        free(text);
        return false;
    }
    for (int i = 0; i < 4; i++)
        text[1 + i] = (char)((size - INF_GRPC_PREFIX_BYTES) >> (24 - 8 * i));
    stream->user = text;
    stream->pieces[0] = (struct iovec){text, size};
    stream->piece_count = 1;
    return true;
}

void inf_grpc_reflection_begin(struct inf_grpc_stream *stream)
{
    static const struct inf_grpc_streaming functions = {receive_questions, load_response};
    inf_grpc_reply_begin(stream, &functions, NULL, free);
}
