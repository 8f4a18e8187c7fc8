// SPDX-License-Identifier: Apache-2.0
// Computes FNV-1a hashes, chooses the places of records in an array, and adds and checks the
// checksums at the end of lines.
#include "backends/storage/record.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

// Length of the checksum at the end of a line: a blank, 16 hexadecimal digits, and the line end.
#define SEAL_CHARS 18

uint64_t inf_record_hash(uint64_t hash, const void *data, size_t size)
{
    return inf_hash_bytes(hash, data, size);
}

uint64_t inf_record_hash_text(uint64_t hash, const char *text)
{
    return inf_record_hash(hash, text, strlen(text) + 1);
}

uint64_t inf_record_hash_shapes(uint64_t hash, const struct inf_shape *shapes, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        hash = inf_record_hash(hash, &shapes[i].rank, sizeof shapes[i].rank);
        hash =
            inf_record_hash(hash, shapes[i].dims, (size_t)shapes[i].rank * sizeof *shapes[i].dims);
    }
    return hash;
}

uint32_t inf_record_place(struct inf_record_places *places, uint32_t capacity)
{
    assert(places->count <= capacity && places->next < capacity);
    if (places->count < capacity)
        return places->count++;
    uint32_t oldest = places->next;
    places->next = (oldest + 1) % capacity;
    return oldest;
}

size_t inf_record_seal(char *line, size_t size, size_t capacity)
{
    if (size + SEAL_CHARS >= capacity)
        return 0;
    uint64_t checksum = inf_record_hash(INF_RECORD_HASH_INIT, line, size);
    return size + (size_t)snprintf(line + size, capacity - size, " %016" PRIx64 "\n", checksum);
}

bool inf_record_open(char *line)
{
    char *space = strrchr(line, ' ');
    uint64_t checksum;
    if (space == NULL || strlen(space) != SEAL_CHARS - 1 ||
        sscanf(space, " %" SCNx64, &checksum) != 1 ||
        checksum != inf_record_hash(INF_RECORD_HASH_INIT, line, (size_t)(space - line)))
        return false;
    *space = '\0';
    return true;
}
