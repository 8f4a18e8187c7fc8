// SPDX-License-Identifier: Apache-2.0
// Reads buffers in other files. Ranges are checked against the size of the file before memory is
// allocated, and all together have at most INF_LIMIT_MODEL_WEIGHT_BYTES.
#include "backends/import/tflite/external.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/import/common/beside.h"
#include "backends/storage/file.h"
#include "proto/core/limits.h"

static void read_buffer(struct inf_tflite_external_buffer *buffer, const struct inf_fb_table *table,
                        const struct inf_fb_vector *groups, struct inf_arena *arena)
{
    buffer->id = inf_fb_int(table, INF_FB_U32, 0, "id", 0);
    buffer->offset = (uint64_t)inf_fb_int(table, INF_FB_U64, 2, "offset", 0);
    buffer->length = (uint64_t)inf_fb_int(table, INF_FB_U64, 3, "length", 0);
    buffer->packing = inf_fb_string(table, 4, "packing", arena);
    int64_t group = inf_fb_int(table, INF_FB_U32, 1, "group", 0);
    if (group >= groups->count) {
        inf_fb_fail(table, "group", INF_INVALID, "is %lld, there are %u", (long long)group,
                    groups->count);
        return;
    }
    struct inf_fb_table row = inf_fb_table_at(groups, (uint32_t)group, "ExternalBufferGroup");
    const char *name = inf_fb_string(&row, 0, "name", arena);
    buffer->file = (struct inf_span){(const uint8_t *)name, strlen(name)};
}

void inf_tflite_external_list(struct inf_tflite_external *external, const struct inf_fb_table *root,
                              struct inf_arena *arena)
{
    struct inf_fb_vector groups = inf_fb_vector(root, 8, "external_buffer_groups", 4);
    struct inf_fb_vector list = inf_fb_vector(root, 9, "external_buffers", 4);
    if (!inf_fb_ok(root->file) || list.count == 0)
        return;
    external->buffers = inf_arena_alloc(arena, list.count * sizeof *external->buffers);
    if (external->buffers == NULL) {
        inf_fb_fail(root, "external_buffers", INF_EXHAUSTED, "no memory for %u", list.count);
        return;
    }
    for (uint32_t i = 0; inf_fb_ok(root->file) && i < list.count; i++) {
        struct inf_fb_table table = inf_fb_table_at(&list, i, "ExternalBuffer");
        external->buffers[external->count++] = (struct inf_tflite_external_buffer){0};
        read_buffer(&external->buffers[i], &table, &groups, arena);
    }
}

// Reads the bytes of a buffer from its open file of `file_bytes` bytes.
static enum inf_code read_range(struct inf_tflite_external *external,
                                struct inf_tflite_external_buffer *buffer, int fd, const char *path,
                                uint64_t file_bytes, struct inf_error *err)
{
    if (!inf_range_ok(buffer->offset, buffer->length, file_bytes))
        return inf_fail(err, INF_INVALID, "%llu bytes at byte %llu of the %llu bytes of '%.200s'",
                        (unsigned long long)buffer->length, (unsigned long long)buffer->offset,
                        (unsigned long long)file_bytes, path);
    if (buffer->length > INF_LIMIT_MODEL_WEIGHT_BYTES - external->read_bytes)
        return inf_fail(err, INF_EXHAUSTED, "external buffers have more than %llu bytes",
                        (unsigned long long)INF_LIMIT_MODEL_WEIGHT_BYTES);
    buffer->data = malloc(buffer->length + 1);
    if (buffer->data == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "no memory for %llu bytes",
                               (unsigned long long)buffer->length);
    external->read_bytes += buffer->length;
    return inf_tally_read(external->files->tally, fd, path, buffer->offset, buffer->data,
                          buffer->length, err);
}

static enum inf_code load_buffer(struct inf_tflite_external *external,
                                 struct inf_tflite_external_buffer *buffer, struct inf_error *err)
{
    char path[INF_BESIDE_PATH];
    uint64_t file_bytes;
    int fd;
    if (external->files == NULL)
        return inf_fail(err, INF_UNSUPPORTED, "its data are in another file");
    if (buffer->packing[0] != '\0' && strcmp(buffer->packing, "unpacked") != 0)
        return inf_fail(err, INF_UNSUPPORTED, "its data have packing '%.40s'", buffer->packing);
    INF_TRY(inf_beside_open(&fd, &file_bytes, path, &external->files->place, buffer->file, err));
    enum inf_code code = read_range(external, buffer, fd, path, file_bytes, err);
    close(fd);
    return code;
}

struct inf_span inf_tflite_external_find(struct inf_tflite_external *external, int64_t id,
                                         const struct inf_fb_table *tensor, const char *name)
{
    struct inf_error why = {0};
    for (uint32_t i = 0; inf_fb_ok(tensor->file) && i < external->count; i++) {
        struct inf_tflite_external_buffer *buffer = &external->buffers[i];
        if (buffer->id != id)
            continue;
        enum inf_code code = buffer->data != NULL ? INF_OK : load_buffer(external, buffer, &why);
        if (code == INF_OK)
            return (struct inf_span){buffer->data, buffer->length};
        inf_fb_fail(tensor, "external_buffer", code, "of '%.80s': %.200s", name, why.text);
        return (struct inf_span){0};
    }
    inf_fb_fail(tensor, "external_buffer", INF_INVALID, "of '%.80s' is %lld, which is not listed",
                name, (long long)id);
    return (struct inf_span){0};
}

void inf_tflite_external_fini(struct inf_tflite_external *external)
{
    for (uint32_t i = 0; i < external->count; i++)
        free(external->buffers[i].data);
    *external = (struct inf_tflite_external){0};
}
