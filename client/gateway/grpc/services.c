// SPDX-License-Identifier: Apache-2.0
// Searches the descriptors that the build makes of the files in grpc/services/. The fields of
// descriptor.proto that are used here:
//
//   FileDescriptorSet    1 file
//   FileDescriptorProto  1 name  2 package  4 message_type  5 enum_type  6 service
//   DescriptorProto      1 name  3 nested_type  4 enum_type
//   ServiceDescriptorProto  1 name  2 method
//
// The names of enums and methods are their field 1 too.
#include "client/gateway/grpc/services.h"

#include <string.h>

#include "client/gateway/oip/proto_reader.h"

static const uint8_t descriptors[] = {
#include "services.inc"
};

// Reads the next field of `message` that has one of the numbers in the set `numbers` (bit n: field
// n) and contains bytes. Returns its number; 0: there is none.
static uint32_t next_field(struct inf_span *message, uint32_t numbers, struct inf_span *bytes)
{
    struct inf_proto_field field;
    while (inf_proto_read_field(message, &field) == 1)
        if (field.wire == INF_PROTO_BYTES && field.number < 32 &&
            (numbers >> field.number & 1) != 0) {
            *bytes = field.bytes;
            return field.number;
        }
    return 0;
}

// Returns the first field `number` of a message; an empty span if it has none.
static struct inf_span find_field(struct inf_span message, uint32_t number)
{
    struct inf_span bytes = {0};
    (void)next_field(&message, 1u << number, &bytes);
    return bytes;
}

static bool spans_equal(struct inf_span a, struct inf_span b)
{
    return a.size > 0 && a.size == b.size && memcmp(a.data, b.data, a.size) == 0;
}

// Removes `name` and the dot behind it, if there is one, from the start of *symbol. Returns false
// if *symbol does not begin with `name`.
static bool take_name(struct inf_span *symbol, struct inf_span name)
{
    if (name.size == 0 || symbol->size < name.size ||
        memcmp(symbol->data, name.data, name.size) != 0)
        return false;
    size_t taken = name.size;
    if (symbol->size == taken + 1 || (symbol->size > taken && symbol->data[taken++] != '.'))
        return false;
    symbol->data += taken;
    symbol->size -= taken;
    return true;
}

// Returns the set of the fields that name the parts of field `number`, which is one of `numbers`.
static uint32_t part_numbers(uint32_t numbers, uint32_t number)
{
    const uint32_t methods = 1u << 2, types = 1u << 3 | 1u << 4;
    bool in_file = (numbers & 1u << 6) != 0;
    if (in_file)
        return number == 6 ? methods : number == 4 ? types : 0;
    return number == 3 ? types : 0;
}

bool inf_grpc_services_file(unsigned index, struct inf_span *file)
{
    struct inf_span set = {descriptors, sizeof descriptors};
    for (unsigned i = 0; i <= index; i++)
        if (next_field(&set, 1u << 1, file) == 0)
            return false;
    return true;
}

bool inf_grpc_services_file_is(struct inf_span file, struct inf_span name)
{
    return spans_equal(find_field(file, 1), name);
}

bool inf_grpc_services_file_has(struct inf_span file, struct inf_span symbol)
{
    if (!take_name(&symbol, find_field(file, 2)))
        return false;
    // Descend from the file to what the symbol names. Only messages and services have parts.
    struct inf_span level = file, part;
    uint32_t numbers = 1u << 4 | 1u << 5 | 1u << 6, number;
    while (symbol.size > 0 && (number = next_field(&level, numbers, &part)) != 0) {
        if (!take_name(&symbol, find_field(part, 1)))
            continue;
        numbers = part_numbers(numbers, number);
        level = part;
    }
    return symbol.size == 0 && level.data != file.data;
}

bool inf_grpc_services_name(struct inf_span file, unsigned index, struct inf_span *package,
                            struct inf_span *name)
{
    struct inf_span service;
    *package = find_field(file, 2);
    for (unsigned i = 0; i <= index; i++)
        if (next_field(&file, 1u << 6, &service) == 0)
            return false;
    *name = find_field(service, 1);
    return true;
}
