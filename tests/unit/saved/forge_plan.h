// SPDX-License-Identifier: Apache-2.0
// Changes the bytes of a plan's file as a forger could, with checksums that agree. The places are
// those of backends/saved/plan_layout.h, repeated on purpose.
#ifndef INF_TESTS_UNIT_SAVED_FORGE_PLAN_H
#define INF_TESTS_UNIT_SAVED_FORGE_PLAN_H

#include <stdint.h>
#include <string.h>

#include "backends/saved/plan_file.h"
#include "backends/storage/checksum.h"
#include "proto/core/span.h"

// Places in the header: number of constants, size of the description, its sum, size of the file,
// sum of the header; and the size of the header.
#define AT_BLOB_COUNT        12
#define AT_DESCRIPTION_BYTES 128
#define AT_DESCRIPTION_SUM   136
#define AT_FILE_BYTES        144
#define AT_HEADER_SUM        168
#define HEADER_BYTES         176
// Bytes of the description before the constants: format, hash and notes.
#define FACTS_BYTES (32 + 8 + INF_PLAN_NOTES_BYTES)

// Makes the checksums of the description and of the header right.
static inline void forge_sums(uint8_t *bytes)
{
    uint64_t description;
    memcpy(&description, bytes + AT_DESCRIPTION_BYTES, sizeof description);
    uint64_t sum = inf_checksum(bytes + HEADER_BYTES, (size_t)description);
    memcpy(bytes + AT_DESCRIPTION_SUM, &sum, sizeof sum);
    sum = inf_checksum(bytes, AT_HEADER_SUM);
    memcpy(bytes + AT_HEADER_SUM, &sum, sizeof sum);
}

// Takes the bytes of constant `index` out of the file, as if a form restored them. Returns the new
// size; 0 if there is no such constant. A constant without bytes stays as it is.
static inline size_t forge_dropped_constant(uint8_t *bytes, size_t size, uint32_t index)
{
    struct {
        uint64_t size_bytes, sum, evicted;
    } blob = {0};
    uint32_t count;
    uint64_t description;
    memcpy(&count, bytes + AT_BLOB_COUNT, sizeof count);
    memcpy(&description, bytes + AT_DESCRIPTION_BYTES, sizeof description);
    if (index >= count)
        return 0;
    uint8_t *entry = bytes + HEADER_BYTES + FACTS_BYTES;
    size_t offset = inf_size_align(HEADER_BYTES + (size_t)description, 64), data_bytes = 0;
    for (uint32_t i = 0; i <= index; i++, entry += sizeof blob) {
        offset += data_bytes;
        memcpy(&blob, entry, sizeof blob);
        data_bytes = blob.evicted ? 0 : inf_size_align((size_t)blob.size_bytes, 64);
    }
    blob.evicted = 1;
    memcpy(entry - sizeof blob, &blob, sizeof blob);
    memmove(bytes + offset, bytes + offset + data_bytes, size - offset - data_bytes);
    const uint64_t shorter = size - data_bytes;
    memcpy(bytes + AT_FILE_BYTES, &shorter, sizeof shorter);
    forge_sums(bytes);
    return (size_t)shorter;
}

#endif
