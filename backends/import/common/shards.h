// SPDX-License-Identifier: Apache-2.0
// Reads the shards of one weight group as if they were one file, because a weight may begin in one
// shard and end in another.
#ifndef INF_BACKENDS_IMPORT_COMMON_SHARDS_H
#define INF_BACKENDS_IMPORT_COMMON_SHARDS_H

#include <stddef.h>
#include <stdint.h>

#include "backends/base/role.h"
#include "backends/import/common/json.h"

// The number of bytes read from files so far, and their hash, which depends on the pieces in which
// the bytes were added. The hash finds changes; it is no protection against a forged file.
struct inf_tally {
    uint64_t bytes;
    uint64_t hash;
};

// Initial value of a tally.
#define INF_TALLY_INIT ((struct inf_tally){.hash = 0xcbf29ce484222325u})

// Adds bytes to a tally.
void inf_tally_add(struct inf_tally *tally, const void *data, size_t size);

// Reads `size` bytes of an open file from `offset` on, and adds them to the tally while they are in
// the cache. The errors are those of inf_file_read_summed(). After a failure the tally is
// unchanged.
enum inf_code inf_tally_read(struct inf_tally *tally, int fd, const char *name, uint64_t offset,
                             void *buffer, size_t size,
                             struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Receives the paths of files before they are read. Called on the importing thread only.
struct inf_open_sink {
    void (*note)(void *context, const char *path);
    void *context;
};

// Notes a path if `sink` is not NULL.
void inf_open_sink_note(const struct inf_open_sink *sink, const char *path);

// The folder that contains the shards (weight files): a path below an open directory.
struct inf_shard_place {
    int directory_fd;
    const char *folder; // "a/b/", not terminated: only the first folder_length bytes belong to it
    int folder_length;  // length of the folder's path; 0: the directory itself is the folder
    // Receives the path below the directory of each file that is opened; NULL: not wanted.
    const struct inf_open_sink *opened;
};

struct inf_shards;

// Opens all files named in `paths`, a JSON array of file names. The caller destroys *out_shards.
// `place`, `paths` and `tally` must outlive it.
//
// INF_NOT_FOUND  a shard is missing.
// INF_DENIED     a name is not a plain file name, or the file is a link.
// INF_EXHAUSTED  more than INF_LIMIT_MODEL_WEIGHT_BYTES, or memory.
enum inf_code inf_shards_open(struct inf_shards **out_shards, const struct inf_shard_place *place,
                              const struct inf_json *paths, struct inf_tally *tally,
                              struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Closes the shards. NULL is allowed.
void inf_shards_destroy(struct inf_shards **shards);

// Returns the number of bytes not yet read.
uint64_t inf_shards_left(const struct inf_shards *shards);

// Reads the next `size` bytes into `buffer`. If `buffer` is NULL, skips the bytes but counts them.
//
// INF_INVALID  fewer bytes are left; the text names the last shard.
enum inf_code inf_shards_read(struct inf_shards *shards, void *buffer, uint64_t size,
                              struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Fails unless all bytes were read. The text names the shard in which the weights end.
enum inf_code inf_shards_finish(const struct inf_shards *shards,
                                struct inf_error *err) INF_NODISCARD;

#endif
