// SPDX-License-Identifier: Apache-2.0
// An assembler of frames and what it is fed, for tests of it. Whatever goes wrong beside it fails
// the test at once.
#ifndef INF_TESTS_SUPPORT_WIRE_ASSEMBLY_H
#define INF_TESTS_SUPPORT_WIRE_ASSEMBLY_H

#include "proto/wire/assembler.h"

struct assembly_memory {
    size_t live; // bytes handed out
    bool refuse;
};

struct assembly {
    struct assembly_memory memory;
    struct inf_assembler assembler;
};

// Begins with the protocol's limits.
void assembly_begin(struct assembly *assembly);

// Ends it. All its memory must have come back.
void assembly_end(struct assembly *assembly);

// Writes a REQUEST (or with fds a MEM_REGISTER) and gives its size. Metadata is 'm', data is 'd'.
size_t assembly_put(uint8_t *to, uint64_t stream, uint32_t meta, uint32_t data, uint8_t fds);

// Feeds bytes in one piece; they must all be used.
void assembly_feed(struct assembly *assembly, const uint8_t *bytes, size_t size);

// As assembly_feed(), of what the assembler takes at once: how many bytes.
size_t assembly_feed_some(struct assembly *assembly, const uint8_t *bytes, size_t size);

// Feeds bytes that must be refused with this code and reason; *err tells the rest.
void assembly_feed_bad(struct assembly *assembly, const uint8_t *bytes, size_t size,
                       enum inf_code code, enum inf_reason reason, struct inf_error *err);

// Takes a frame that must be rejected, with code INF_EXHAUSTED and this reason, and whose bytes and
// descriptors must be gone.
void assembly_take_rejected(struct assembly *assembly, uint64_t stream, enum inf_reason reason);

// Takes the frame that must be ready. Its data is the caller's, to give to assembly_free().
void assembly_take(struct assembly *assembly, struct inf_frame *frame);

// Takes a frame and checks that it is the one assembly_put() wrote.
void assembly_take_expected(struct assembly *assembly, uint64_t stream, uint32_t meta,
                            uint32_t data);

// Gives back the data of a frame.
void assembly_free(struct assembly *assembly, void *data, size_t size);

// Whether all bytes are `value`.
bool assembly_all(const uint8_t *bytes, size_t size, uint8_t value);

#endif
