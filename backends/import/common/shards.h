// SPDX-License-Identifier: Apache-2.0
// The shards of one weight group read as if they were one file: a weight may begin in one and end
// in another.
#ifndef INF_BACKENDS_IMPORT_COMMON_SHARDS_H
#define INF_BACKENDS_IMPORT_COMMON_SHARDS_H

#include <stddef.h>
#include <stdint.h>

#include "backends/base/role.h"
#include "backends/import/common/json.h"

// What was read from files so far: bytes, and FNV-1a over them in the order read.
struct inf_tally {
    uint64_t bytes;
    uint64_t hash;
};

// The tally of nothing.
#define INF_TALLY_INIT ((struct inf_tally){.hash = 0xcbf29ce484222325u})

// Adds bytes to a tally.
void inf_tally_add(struct inf_tally *tally, const void *data, size_t size);

// Where shards lie: in a folder beneath a directory.
struct inf_shard_place {
    int directory_fd;
    const char *folder; // "a/b/"; only the first folder_length bytes count
    int folder_length;  // 0 for the directory itself
};

struct inf_shards;

// Looks up all files of `paths`, the JSON array of their names. *out_shards is the caller's to
// destroy; `place`, `paths` and `tally` must outlive it.
//
// INF_NOT_FOUND  a shard is missing.
// INF_DENIED     a name is more than a file name, or the file is a link.
// INF_EXHAUSTED  more than INF_LIMIT_MODEL_WEIGHT_BYTES, or memory.
enum inf_code inf_shards_open(struct inf_shards **out_shards, const struct inf_shard_place *place,
                              const struct inf_json *paths, struct inf_tally *tally,
                              struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Closes the shards. NULL is fine.
void inf_shards_destroy(struct inf_shards **shards);

// Bytes not yet read.
uint64_t inf_shards_left(const struct inf_shards *shards);

// Reads the next `size` bytes into `buffer`, or only counts them where that is NULL.
//
// INF_INVALID  fewer are left; the text names the last shard.
enum inf_code inf_shards_read(struct inf_shards *shards, void *buffer, uint64_t size,
                              struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Fails unless everything was read; the text names the shard where the weights end.
enum inf_code inf_shards_finish(const struct inf_shards *shards,
                                struct inf_error *err) INF_NODISCARD;

#endif
