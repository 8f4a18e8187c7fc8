// SPDX-License-Identifier: Apache-2.0
// The layout of a plan's file:
//
//     header       sizes, key, build, checksum of the description, checksum of the header
//     description  facts, sizes and checksums of the constants, the graph (saved_graph.h)
//     constants    each at a multiple of 64 bytes, in the order of the description
//
// The file is read, not mapped, because a file that is truncated under a mapping is SIGBUS. The
// constants are read into their final place and are checked there, so no byte is copied twice. The
// file is not synced to the disk: what a crash leaves does not agree with the checksums.
#include "backends/saved/plan_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/saved/saved_graph.h"
#include "backends/storage/checksum.h"
#include "backends/storage/file.h"
#include "proto/core/limits.h"
#include "proto/core/span.h"

#define MAGIC           "infplan"
#define VERSION         1u
#define ALIGNMENT       64u
#define DESCRIPTION_MAX ((uint64_t)1 << 30)

// The header has no padding, so all its bytes are set.
struct header {
    char magic[8];
    uint32_t version, blob_count;
    uint64_t key;
    char build[96];
    uint64_t description_bytes, description_sum;
    uint64_t file_bytes;
    uint64_t header_sum; // of the bytes before it
};
_Static_assert(sizeof(struct header) == 152, "the header has no padding");

// What the description says about one constant.
struct saved_blob {
    uint64_t size_bytes, sum;
};

static uint64_t align_offset(uint64_t offset)
{
    return (offset + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static void fill_header(struct header *header, const struct inf_plan_id *id)
{
    *header = (struct header){.magic = MAGIC, .version = VERSION, .key = id->key};
    snprintf(header->build, sizeof header->build, "%s", id->build);
}

static uint64_t sum_header(const struct header *header)
{
    return inf_checksum(header, offsetof(struct header, header_sum));
}

// --- writing ---

static bool write_at(int fd, const void *data, size_t size, uint64_t offset)
{
    const char *at = data;
    while (size > 0) {
        ssize_t written = pwrite(fd, at, size, (off_t)offset);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return false;
        at += written;
        offset += (uint64_t)written;
        size -= (size_t)written;
    }
    return true;
}

static bool write_parts(int fd, const struct header *header, const struct inf_saved_bytes *bytes,
                        const struct inf_saved_blobs *blobs)
{
    uint64_t offset = align_offset(sizeof *header + bytes->size);
    if (!write_at(fd, header, sizeof *header, 0) ||
        !write_at(fd, bytes->data, bytes->size, sizeof *header))
        return false;
    for (uint32_t i = 0; i < blobs->count; i++) {
        const struct inf_blob *blob = blobs->items[i];
        if (!write_at(fd, blob->data, blob->size_bytes, offset))
            return false;
        offset = align_offset(offset + blob->size_bytes);
    }
    return ftruncate(fd, (off_t)header->file_bytes) == 0;
}

static enum inf_code write_file(int directory_fd, const char *name, const struct header *header,
                                const struct inf_saved_bytes *bytes,
                                const struct inf_saved_blobs *blobs, struct inf_error *err)
{
    char temporary[96];
    snprintf(temporary, sizeof temporary, "%.80s.new", name);
    (void)unlinkat(directory_fd, temporary, 0);
    int fd =
        openat(directory_fd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    bool ok = fd >= 0 && write_parts(fd, header, bytes, blobs);
    int error = errno;
    if (fd >= 0)
        close(fd);
    if (ok && renameat(directory_fd, temporary, directory_fd, name) == 0)
        return INF_OK;
    error = ok ? errno : error;
    (void)unlinkat(directory_fd, temporary, 0);
    return inf_fail(err, INF_UNAVAILABLE, "plan '%s': not written: %s", name, strerror(error));
}

// Writes the description to `bytes`, and completes the header.
static enum inf_code describe_plan(struct header *header, struct inf_saved_bytes *bytes,
                                   const struct inf_plan_facts *facts,
                                   const struct inf_graph *graph,
                                   const struct inf_saved_blobs *blobs, struct inf_error *err)
{
    inf_saved_append(bytes, facts->format, sizeof facts->format);
    inf_saved_append(bytes, &facts->content_hash, sizeof facts->content_hash);
    uint64_t data_bytes = 0;
    for (uint32_t i = 0; i < blobs->count; i++) {
        const struct inf_blob *blob = blobs->items[i];
        const struct saved_blob saved = {blob->size_bytes,
                                         inf_checksum(blob->data, blob->size_bytes)};
        inf_saved_append(bytes, &saved, sizeof saved);
        data_bytes += align_offset(blob->size_bytes);
    }
    inf_saved_graph_encode(bytes, graph, blobs);
    if (bytes->failed)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "no memory for a plan");
    header->blob_count = blobs->count;
    header->description_bytes = bytes->size;
    header->description_sum = inf_checksum(bytes->data, bytes->size);
    header->file_bytes = align_offset(sizeof *header + bytes->size) + data_bytes;
    header->header_sum = sum_header(header);
    return INF_OK;
}

enum inf_code inf_plan_file_write(int directory_fd, const char *name, const struct inf_plan_id *id,
                                  const struct inf_plan_facts *facts, const struct inf_graph *graph,
                                  struct inf_error *err)
{
    struct inf_saved_blobs blobs;
    struct inf_saved_bytes bytes = {0};
    struct header header;
    inf_role_check_may_block();
    fill_header(&header, id);
    INF_TRY(inf_saved_blobs_list(&blobs, graph, err));
    enum inf_code code = describe_plan(&header, &bytes, facts, graph, &blobs, err);
    if (code == INF_OK)
        code = write_file(directory_fd, name, &header, &bytes, &blobs, err);
    free(bytes.data);
    free(blobs.items);
    return code;
}

// --- reading ---

struct plan_reader {
    int fd;
    const char *name;
    uint64_t size_bytes; // of the file
    struct header header;
    uint8_t *description;
    struct inf_saved_blobs blobs; // owned references
    struct inf_error *err;
};

static enum inf_code fail_plan(const struct plan_reader *reader, const char *what)
{
    return inf_fail(reader->err, INF_INVALID, "plan '%s': %s", reader->name, what);
}

static enum inf_code check_owner(const struct plan_reader *reader)
{
    struct stat status;
    if (fstat(reader->fd, &status) != 0 || status.st_uid != geteuid() ||
        (status.st_mode & (S_IWGRP | S_IWOTH)) != 0)
        return inf_fail(reader->err, INF_DENIED,
                        "plan '%s': wanted a file of the daemon's user that others cannot write",
                        reader->name);
    return INF_OK;
}

static enum inf_code read_header(struct plan_reader *reader, const struct inf_plan_id *id)
{
    struct header *header = &reader->header, wanted;
    if (reader->size_bytes < sizeof *header)
        return fail_plan(reader, "it is too short");
    INF_TRY(inf_file_read(reader->fd, reader->name, 0, header, sizeof *header, reader->err));
    if (memcmp(header->magic, MAGIC, sizeof header->magic) != 0 ||
        header->header_sum != sum_header(header))
        return fail_plan(reader, "its header is damaged");
    fill_header(&wanted, id);
    if (header->version != VERSION || memcmp(header->build, wanted.build, sizeof wanted.build) != 0)
        return fail_plan(reader, "it was made by another version");
    if (header->key != id->key)
        return fail_plan(reader, "it is of another model");
    if (header->file_bytes != reader->size_bytes || header->description_bytes > DESCRIPTION_MAX ||
        header->description_bytes > reader->size_bytes - sizeof *header)
        return fail_plan(reader, "its size is not that in its header");
    return INF_OK;
}

static enum inf_code read_description(struct plan_reader *reader)
{
    size_t size = (size_t)reader->header.description_bytes;
    reader->description = malloc(size + 1);
    if (reader->description == NULL)
        return inf_fail_reason(reader->err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "no memory for a plan");
    INF_TRY(inf_file_read(reader->fd, reader->name, sizeof reader->header, reader->description,
                          size, reader->err));
    if (inf_checksum(reader->description, size) != reader->header.description_sum)
        return fail_plan(reader, "its description is damaged");
    return INF_OK;
}

// Reads one constant at *offset, and moves *offset behind it.
static enum inf_code read_blob(struct plan_reader *reader, const struct saved_blob *saved,
                               uint64_t *offset)
{
    if (*offset > reader->size_bytes || saved->size_bytes > reader->size_bytes - *offset)
        return fail_plan(reader, "a constant is outside of it");
    struct inf_blob *blob = inf_blob_create_unset((size_t)saved->size_bytes);
    if (blob == NULL)
        return inf_fail_reason(reader->err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "no memory for the constants of a plan");
    reader->blobs.items[reader->blobs.count++] = blob;
    INF_TRY(inf_file_read(reader->fd, reader->name, *offset, blob->data, blob->size_bytes,
                          reader->err));
    if (inf_checksum(blob->data, blob->size_bytes) != saved->sum)
        return fail_plan(reader, "a constant is damaged");
    *offset = align_offset(*offset + saved->size_bytes);
    return INF_OK;
}

// Reads all constants. `data` are their descriptions, which are aligned to no more than a byte.
static enum inf_code read_blobs(struct plan_reader *reader, const uint8_t *data)
{
    uint32_t count = reader->header.blob_count;
    uint64_t offset = align_offset(sizeof reader->header + reader->header.description_bytes);
    reader->blobs.items = calloc((size_t)count + 1, sizeof(struct inf_blob *));
    if (reader->blobs.items == NULL)
        return inf_fail_reason(reader->err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "no memory for the constants of a plan");
    for (uint32_t i = 0; i < count; i++, data += sizeof(struct saved_blob)) {
        struct saved_blob saved;
        memcpy(&saved, data, sizeof saved);
        INF_TRY(read_blob(reader, &saved, &offset));
    }
    return offset == reader->size_bytes ? INF_OK : fail_plan(reader, "bytes follow its constants");
}

// Constants of booleans have bytes 0 and 1 only; other parts rely on that.
static bool booleans_are_sound(const struct inf_graph *graph)
{
    for (uint32_t i = 0; i < graph->value_count; i++) {
        const struct inf_value *value = &graph->values[i];
        if (value->data == NULL || value->dtype != INF_DTYPE_BOOL)
            continue;
        for (size_t k = 0; k < value->data->size_bytes; k++)
            if (((const uint8_t *)value->data->data)[k] > 1)
                return false;
    }
    for (uint32_t i = 0; i < graph->subgraph_count; i++)
        if (!booleans_are_sound(graph->subgraphs[i]))
            return false;
    return true;
}

static enum inf_code read_plan(struct plan_reader *reader, const struct inf_plan_id *id,
                               struct inf_plan_facts *facts, struct inf_graph **out_graph)
{
    INF_CLEANUP(inf_graph_destroy) struct inf_graph *graph = NULL;
    INF_TRY(check_owner(reader));
    INF_TRY(read_header(reader, id));
    INF_TRY(read_description(reader));
    const size_t facts_bytes = sizeof facts->format + sizeof facts->content_hash;
    size_t size = (size_t)reader->header.description_bytes;
    if (size < facts_bytes ||
        reader->header.blob_count > (size - facts_bytes) / sizeof(struct saved_blob))
        return fail_plan(reader, "its description is too short");
    const uint8_t *at = reader->description;
    memcpy(facts->format, at, sizeof facts->format);
    memcpy(&facts->content_hash, at + sizeof facts->format, sizeof facts->content_hash);
    if (memchr(facts->format, 0, sizeof facts->format) == NULL)
        return fail_plan(reader, "the name of its format has no end");
    INF_TRY(read_blobs(reader, at + facts_bytes));
    size_t before = facts_bytes + reader->header.blob_count * sizeof(struct saved_blob);
    INF_TRY(
        inf_saved_graph_decode(&graph, at + before, size - before, &reader->blobs, reader->err));
    if (!booleans_are_sound(graph))
        return fail_plan(reader, "a boolean constant is neither true nor false");
    *out_graph = graph;
    graph = NULL;
    return INF_OK;
}

enum inf_code inf_plan_file_read(struct inf_graph **out_graph, struct inf_plan_facts *facts,
                                 int directory_fd, const char *name, const struct inf_plan_id *id,
                                 struct inf_error *err)
{
    struct plan_reader reader = {.name = name, .err = err};
    inf_role_check_may_block();
    INF_TRY(inf_file_open_beneath(&reader.fd, &reader.size_bytes, directory_fd, name, err));
    enum inf_code code = read_plan(&reader, id, facts, out_graph);
    for (uint32_t i = 0; i < reader.blobs.count; i++)
        inf_blob_unref(&reader.blobs.items[i]);
    free(reader.blobs.items);
    free(reader.description);
    close(reader.fd);
    return code;
}
