// SPDX-License-Identifier: Apache-2.0
// Computes hashes, and checksums at the end of lines.
#include "backends/storage/record.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

// The number of characters in a checksum: " ", 16 digits, "\n".
#define SEAL_CHARS 18

uint64_t inf_record_hash(uint64_t hash, const void *data, size_t size)
{
    const unsigned char *bytes = data;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    return hash;
}

uint64_t inf_record_hash_text(uint64_t hash, const char *text)
{
    return inf_record_hash(hash, text, strlen(text) + 1);
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
