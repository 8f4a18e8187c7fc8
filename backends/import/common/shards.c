// SPDX-License-Identifier: Apache-2.0
// Reads the files of a weight group as one stream of bytes. The sizes of all files are read first,
// so that a weight larger than the files is refused before memory for it is allocated.
#include "backends/import/common/shards.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/storage/checksum.h"
#include "backends/storage/file.h"
#include "proto/core/hash.h"
#include "proto/core/limits.h"
#include "proto/core/span.h"

// Pieces of at least this many bytes are hashed by inf_checksum_pieces().
#define CHECKSUM_BYTES 1024

struct shard {
    const char *name; // owned by the manifest
    uint64_t size_bytes;
};

struct inf_shards {
    const struct inf_shard_place *place;
    struct inf_tally *tally;
    struct shard *items;
    size_t count;
    size_t current;  // index of the shard that is being read; `count` after the last one
    uint64_t offset; // bytes read of the current shard
    uint64_t left;   // bytes of all shards that are not yet read
    int fd;          // descriptor of the current shard; -1 if it is not open
};

// Adds `size` bytes to the tally. `sum` is their inf_checksum_pieces().
static void add_sum(struct inf_tally *tally, size_t size, uint64_t sum)
{
    uint64_t hash = (tally->hash ^ sum) * 0x9e3779b97f4a7c15u;
    tally->bytes += size;
    tally->hash = hash ^ hash >> 32;
}

void inf_tally_add(struct inf_tally *tally, const void *data, size_t size)
{
    const uint8_t *bytes = data;
    uint64_t hash = tally->hash, word;
    size_t i = 0;
    // inf_checksum_pieces() multiplies several words at once. In the loop below, each
    // multiplication waits for the one before.
    if (size >= CHECKSUM_BYTES) {
        add_sum(tally, size, inf_checksum_pieces(data, size));
        return;
    }
    tally->bytes += size;
    // Eight bytes at a time, because FNV-1a of 4 MB takes 4 ms. A multiplication changes only the
    // bits above a changed bit, so the shift moves the high bits down for the next word.
    for (; size - i >= sizeof word; i += sizeof word) {
        memcpy(&word, bytes + i, sizeof word);
        hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 32;
    }
    tally->hash = inf_hash_bytes(hash, bytes + i, size - i);
}

enum inf_code inf_tally_read(struct inf_tally *tally, int fd, const char *name, uint64_t offset,
                             void *buffer, size_t size, struct inf_error *err)
{
    uint64_t sum;
    if (size < CHECKSUM_BYTES) {
        INF_TRY(inf_file_read(fd, name, offset, buffer, size, err));
        inf_tally_add(tally, buffer, size);
        return INF_OK;
    }
    INF_TRY(inf_file_read_summed(fd, name, offset, buffer, size, &sum, err));
    add_sum(tally, size, sum);
    return INF_OK;
}

void inf_open_sink_note(const struct inf_open_sink *sink, const char *path)
{
    if (sink != NULL)
        sink->note(sink->context, path);
}

// Opens a shard. Its name must be a plain file name in the folder of the model.
static enum inf_code open_shard(int *out_fd, uint64_t *out_size_bytes,
                                const struct inf_shard_place *place, const char *name,
                                struct inf_error *err)
{
    if (strchr(name, '/') != NULL || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return inf_fail(err, INF_DENIED,
                        "shard '%s': leaves the model's folder, wanted a plain file name", name);
    char path[2 * INF_JSON_NAME_MAX + 1];
    if ((size_t)snprintf(path, sizeof path, "%.*s%s", place->folder_length, place->folder, name) >=
        sizeof path)
        return inf_fail(err, INF_INVALID, "shard '%s': the name is too long", name);
    inf_open_sink_note(place->opened, path);
    enum inf_code code =
        inf_file_open_beneath(out_fd, out_size_bytes, place->directory_fd, path, err);
    return code == INF_OK ? INF_OK : inf_error_prefix(err, code, "weights");
}

// Finds the sizes of all shards, so that weights larger than the shards are refused before memory
// is allocated.
static enum inf_code measure_shards(struct inf_shards *shards, const struct inf_json *paths,
                                    struct inf_error *err)
{
    for (size_t i = 0; i < shards->count; i++) {
        struct inf_json path = inf_json_at(paths, i);
        struct shard *shard = &shards->items[i];
        INF_TRY(inf_json_name(&path, &shard->name, err));
        int fd = -1;
        INF_TRY(open_shard(&fd, &shard->size_bytes, shards->place, shard->name, err));
        close(fd);
        if (shard->size_bytes > INF_LIMIT_MODEL_WEIGHT_BYTES - shards->left)
            return inf_fail(err, INF_EXHAUSTED,
                            "shard '%s': the weights are larger than %" PRIu64 " bytes",
                            shard->name, INF_LIMIT_MODEL_WEIGHT_BYTES);
        shards->left += shard->size_bytes;
    }
    return INF_OK;
}

enum inf_code inf_shards_open(struct inf_shards **out_shards, const struct inf_shard_place *place,
                              const struct inf_json *paths, struct inf_tally *tally,
                              struct inf_error *err)
{
    size_t count = 0;
    INF_TRY(inf_json_array(paths, &count, err));
    struct inf_shards *shards = calloc(1, sizeof *shards);
    if (shards == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for a weight group");
    *shards = (struct inf_shards){.place = place, .tally = tally, .count = count, .fd = -1};
    shards->items = calloc(count + 1, sizeof *shards->items);
    enum inf_code code = shards->items != NULL
                             ? measure_shards(shards, paths, err)
                             : inf_fail(err, INF_EXHAUSTED, "no memory for %zu shards", count);
    if (code == INF_OK)
        *out_shards = shards;
    else
        inf_shards_destroy(&shards);
    return code;
}

void inf_shards_destroy(struct inf_shards **shards)
{
    if (*shards == NULL)
        return;
    if ((*shards)->fd >= 0)
        close((*shards)->fd);
    free((*shards)->items);
    free(*shards);
    *shards = NULL;
}

uint64_t inf_shards_left(const struct inf_shards *shards)
{
    return shards->left;
}

// Reads from the current shard, and moves to the next one at its end.
static enum inf_code read_current(struct inf_shards *shards, void *buffer, size_t size,
                                  struct inf_error *err)
{
    const struct shard *shard = &shards->items[shards->current];
    if (shards->fd < 0) {
        uint64_t size_bytes;
        INF_TRY(open_shard(&shards->fd, &size_bytes, shards->place, shard->name, err));
    }
    INF_TRY(
        inf_tally_read(shards->tally, shards->fd, shard->name, shards->offset, buffer, size, err));
    shards->offset += size;
    shards->left -= size;
    return INF_OK;
}

// Moves to the next shard that has bytes left, and skips shards that are completely read or empty.
static void skip_ends(struct inf_shards *shards)
{
    while (shards->current < shards->count &&
           shards->offset == shards->items[shards->current].size_bytes) {
        if (shards->fd >= 0)
            close(shards->fd);
        shards->fd = -1;
        shards->current++;
        shards->offset = 0;
    }
}

enum inf_code inf_shards_read(struct inf_shards *shards, void *buffer, uint64_t size,
                              struct inf_error *err)
{
    if (size > shards->left)
        return inf_fail(
            err, INF_INVALID, "shard '%s': ends %" PRIu64 " bytes before the weights do",
            shards->count > 0 ? shards->items[shards->count - 1].name : "", size - shards->left);
    char scratch[8192];
    while (size > 0) {
        skip_ends(shards);
        uint64_t part = INF_MIN(size, shards->items[shards->current].size_bytes - shards->offset);
        if (buffer == NULL)
            part = INF_MIN(part, sizeof scratch);
        INF_TRY(read_current(shards, buffer != NULL ? buffer : scratch, (size_t)part, err));
        if (buffer != NULL)
            buffer = (char *)buffer + part;
        size -= part;
    }
    return INF_OK;
}

enum inf_code inf_shards_finish(const struct inf_shards *shards, struct inf_error *err)
{
    if (shards->left == 0)
        return INF_OK;
    const struct shard *shard = &shards->items[shards->current];
    return inf_fail(err, INF_INVALID,
                    "shard '%s': the weights end at byte %" PRIu64 " of %" PRIu64 ", and %" PRIu64
                    " bytes are left over",
                    shard->name, shards->offset, shard->size_bytes, shards->left);
}
