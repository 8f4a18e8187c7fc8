// SPDX-License-Identifier: Apache-2.0
// A frame assembler with its allocator, for tests of the assembler. Any failure that the test does
// not expect fails the test at once.
#ifndef INF_TESTS_SUPPORT_WIRE_ASSEMBLY_H
#define INF_TESTS_SUPPORT_WIRE_ASSEMBLY_H

#include "proto/wire/assembler.h"

struct assembly_memory {
    size_t live; // allocated bytes that were not freed yet
    bool refuse;
};

struct assembly {
    struct assembly_memory memory;
    struct inf_assembler assembler;
};

// Creates the assembler with the protocol's limits.
void assembly_begin(struct assembly *assembly);

// Destroys the assembler. All memory that it allocated must have been freed.
void assembly_end(struct assembly *assembly);

// Writes a REQUEST frame (or a MEM_REGISTER frame if it has fds) and returns its size. Metadata
// bytes are 'm' and data bytes are 'd'.
size_t assembly_put(uint8_t *to, uint64_t stream, uint32_t meta, uint32_t data, uint8_t fds);

// Feeds bytes in one piece. The assembler must accept all of them.
void assembly_feed(struct assembly *assembly, const uint8_t *bytes, size_t size);

// Feeds bytes, and returns how many the assembler accepted in one call.
size_t assembly_feed_some(struct assembly *assembly, const uint8_t *bytes, size_t size);

// Feeds bytes that the assembler must refuse with this code and reason. *err has the details.
void assembly_feed_bad(struct assembly *assembly, const uint8_t *bytes, size_t size,
                       enum inf_code code, enum inf_reason reason, struct inf_error *err);

// Takes a frame that must be rejected with code INF_EXHAUSTED and this reason. Its bytes and
// descriptors must have been released.
void assembly_take_rejected(struct assembly *assembly, uint64_t stream, enum inf_reason reason);

// Takes a frame, which must be complete. The caller releases its data with assembly_free().
void assembly_take(struct assembly *assembly, struct inf_frame *frame);

// Takes a frame and checks that it equals the frame that assembly_put() wrote.
void assembly_take_expected(struct assembly *assembly, uint64_t stream, uint32_t meta,
                            uint32_t data);

// Releases the data of a frame.
void assembly_free(struct assembly *assembly, void *data, size_t size);

// Returns true if all bytes equal `value`.
bool assembly_all(const uint8_t *bytes, size_t size, uint8_t value);

#endif
