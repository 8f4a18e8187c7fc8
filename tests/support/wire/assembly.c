// SPDX-License-Identifier: Apache-2.0
// Runs an assembler of frames on input in pieces of any size, and checks the frames that it
// returns.
#include "tests/support/wire/assembly.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static void *memory_alloc(void *context, size_t size)
{
    struct assembly_memory *memory = context;
    if (memory->refuse)
        return NULL;
    memory->live += size;
    return aligned_alloc(64, (size + 63) / 64 * 64);
}

static void memory_free(void *context, void *data, size_t size)
{
    struct assembly_memory *memory = context;
    memory->live -= size;
    free(data);
}

void assembly_begin(struct assembly *assembly)
{
    *assembly = (struct assembly){0};
    inf_assembler_init(&assembly->assembler,
                       &(struct inf_assembler_limits){.meta_bytes = INF_LIMIT_META_BYTES,
                                                      .data_bytes = INF_LIMIT_DATA_BYTES},
                       &(struct inf_assembler_memory){.alloc = memory_alloc,
                                                      .free = memory_free,
                                                      .context = &assembly->memory});
}

void assembly_end(struct assembly *assembly)
{
    inf_assembler_fini(&assembly->assembler);
    cr_assert_eq(assembly->memory.live, 0, "%zu bytes leaked", assembly->memory.live);
}

size_t assembly_put(uint8_t *to, uint64_t stream, uint32_t meta, uint32_t data, uint8_t fds)
{
    memset(to, 0, 24);
    memcpy(to, &meta, 4);
    memcpy(to + 4, &data, 4);
    memcpy(to + 8, &stream, 8);
    to[16] = fds > 0 ? 6 : 3;
    to[17] = fds;
    memset(to + 24, 'm', meta);
    memset(to + 24 + meta, 'd', data);
    return 24 + (size_t)meta + data;
}

bool assembly_all(const uint8_t *bytes, size_t size, uint8_t value)
{
    for (size_t i = 0; i < size; i++)
        if (bytes[i] != value)
            return false;
    return true;
}

void assembly_feed(struct assembly *assembly, const uint8_t *bytes, size_t size)
{
    size_t used;
    struct inf_error err;
    enum inf_code code =
        inf_assembler_feed(&assembly->assembler, (struct inf_span){bytes, size}, &used, &err);
    cr_assert_eq(code, INF_OK, "%s", err.text);
    cr_assert_eq(used, size);
}

size_t assembly_feed_some(struct assembly *assembly, const uint8_t *bytes, size_t size)
{
    size_t used;
    struct inf_error err;
    cr_assert_eq(
        inf_assembler_feed(&assembly->assembler, (struct inf_span){bytes, size}, &used, &err),
        INF_OK, "%s", err.text);
    return used;
}

void assembly_feed_bad(struct assembly *assembly, const uint8_t *bytes, size_t size,
                       enum inf_code code, enum inf_reason reason, struct inf_error *err)
{
    size_t used;
    cr_assert_eq(
        inf_assembler_feed(&assembly->assembler, (struct inf_span){bytes, size}, &used, err), code);
    cr_assert_eq(err->reason, reason);
    cr_assert_eq(assembly->assembler.state, INF_ASSEMBLER_BROKEN);
}

void assembly_take_rejected(struct assembly *assembly, uint64_t stream, enum inf_reason reason)
{
    struct inf_frame frame;
    assembly_take(assembly, &frame);
    cr_assert_eq(frame.rejected.code, INF_EXHAUSTED);
    cr_assert_eq(frame.rejected.reason, reason);
    cr_assert_eq(frame.header.stream_id, stream);
    cr_assert_eq(frame.meta.size, 0);
    cr_assert_null(frame.data);
    cr_assert_eq(frame.fd_count, 0);
    cr_assert_eq(assembly->memory.live, 0);
}

void assembly_take(struct assembly *assembly, struct inf_frame *frame)
{
    cr_assert_eq(assembly->assembler.state, INF_ASSEMBLER_READY);
    inf_assembler_take(&assembly->assembler, frame);
}

void assembly_take_expected(struct assembly *assembly, uint64_t stream, uint32_t meta,
                            uint32_t data)
{
    struct inf_frame frame;
    assembly_take(assembly, &frame);
    cr_assert_eq(frame.rejected.code, INF_OK);
    cr_assert_eq(frame.header.stream_id, stream);
    cr_assert_eq(frame.meta.size, meta);
    cr_assert(assembly_all(frame.meta.data, meta, 'm'));
    cr_assert_eq(frame.header.data_bytes, data);
    cr_assert_eq(frame.data == NULL, data == 0);
    cr_assert(assembly_all(frame.data, data, 'd'));
    cr_assert_eq((uintptr_t)frame.data % 64, 0);
    cr_assert_eq(frame.fd_count, 0);
    if (frame.data != NULL)
        memory_free(&assembly->memory, frame.data, data);
}

void assembly_free(struct assembly *assembly, void *data, size_t size)
{
    memory_free(&assembly->memory, data, size);
}
