// SPDX-License-Identifier: Apache-2.0
// The layout of a plan's file:
//
//     header       counts, sizes, key, build, checksum of the description, checksum of the header
//     description  facts; a struct for each constant, form and class; the sizes of the graphs; the
//                  graph and the graphs of the classes (saved_graph.h); the strings of
//                  constants; what the load added
//     data         the bytes of the constants, then those of the parts of the forms, each at a
//                  multiple of 64 bytes, in the order of the description
//
// The structs have no padding, so all their bytes are set. Numbers are in the byte order of the
// machine.
#ifndef INF_BACKENDS_SAVED_PLAN_LAYOUT_H
#define INF_BACKENDS_SAVED_PLAN_LAYOUT_H

#include <stddef.h>
#include <stdio.h>

#include "backends/saved/plan_file.h"
#include "backends/storage/checksum.h"

#define INF_PLAN_MAGIC           "infplan"
#define INF_PLAN_VERSION         5u
#define INF_PLAN_ALIGNMENT       64u
#define INF_PLAN_DESCRIPTION_MAX ((uint64_t)1 << 30)

struct inf_plan_header {
    char magic[8];
    uint32_t version, blob_count, form_count, class_count;
    uint64_t key;
    char build[96];
    uint64_t description_bytes, description_sum;
    uint64_t file_bytes;
    uint64_t string_bytes, extra_bytes; // at the end of the description
    uint64_t header_sum;                // of the bytes before it
};
_Static_assert(sizeof(struct inf_plan_header) == 176, "the header has no padding");

// What the description says about one constant.
struct inf_plan_saved_blob {
    uint64_t size_bytes, sum;
    uint64_t evicted; // 1: the file does not have its bytes; otherwise 0
};

// What the description says about one form.
struct inf_plan_saved_form {
    uint64_t blob; // number of the constant
    uint64_t part_bytes[INF_FORM_PARTS], part_sums[INF_FORM_PARTS];
    char device[32];
    uint8_t description[80];
};
_Static_assert(sizeof(struct inf_plan_saved_form) == 152, "a form has no padding");

// What the description says about one class.
struct inf_plan_saved_class {
    char device[32];
    uint32_t precision, threads;
};

// Returns the next multiple of the alignment of data.
static inline uint64_t inf_plan_align(uint64_t offset)
{
    return (offset + INF_PLAN_ALIGNMENT - 1) / INF_PLAN_ALIGNMENT * INF_PLAN_ALIGNMENT;
}

// Fills the part of a header that tells whose plan it is; all other numbers are 0.
static inline void inf_plan_header_init(struct inf_plan_header *header,
                                        const struct inf_plan_id *id)
{
    *header = (struct inf_plan_header){
        .magic = INF_PLAN_MAGIC, .version = INF_PLAN_VERSION, .key = id->key};
    snprintf(header->build, sizeof header->build, "%s", id->build);
}

// Returns the checksum of a header.
static inline uint64_t inf_plan_header_sum(const struct inf_plan_header *header)
{
    return inf_checksum(header, offsetof(struct inf_plan_header, header_sum));
}

#endif
