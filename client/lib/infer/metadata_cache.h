// SPDX-License-Identifier: Apache-2.0
// What the client knows about models: the sizes of their outputs, and their descriptions.
//
// The sizes let the library reserve shared memory for large outputs before the daemon computes
// them. The cache is a list in order of use; at most INF_CLIENT_METADATA_MODELS models are kept.
#ifndef INF_CLIENT_LIB_INFER_METADATA_CACHE_H
#define INF_CLIENT_LIB_INFER_METADATA_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/inferd.h"
#include "proto/core/limits.h"

#define INF_CLIENT_METADATA_MODELS 64u
// Size of a version's text including its NUL.
#define INF_CLIENT_VERSION_BYTES 24u

struct inf_client_metadata_output {
    char name[INF_LIMIT_TENSOR_NAME + 1];
    size_t bytes; // the largest size of the output seen so far, in bytes
};

// What is known about one model. The key is the model's name and the version that requests name
// ("": the newest version).
struct inf_client_metadata {
    struct inf_client_metadata *next;
    char model[INF_LIMIT_MODEL_NAME + 1];
    char version_asked[INF_CLIENT_VERSION_BYTES];
    char version_got[INF_CLIENT_VERSION_BYTES]; // the version that answered; "": none yet
    inferd_model_info *info; // the daemon's description; NULL: not requested yet, or outdated
    uint64_t info_ns;        // time at which the description arrived
    bool complete;           // `outputs` has all outputs of the model, in the model's order
    uint32_t count;
    uint32_t capacity;
    struct inf_client_metadata_output *outputs;
};

// The models that the client knows something about. Zero-initialise.
struct inf_client_metadata_cache {
    struct inf_client_metadata *models; // the most recently used model first
};

// Returns the entry of a model and moves it to the front, or returns NULL if there is none.
struct inf_client_metadata *inf_client_metadata_cache_find(struct inf_client_metadata_cache *cache,
                                                           const char *model, const char *version);

// Returns the entry of a model as inf_client_metadata_cache_find() does, but adds an empty entry if
// there is none. A full cache reuses its least recently used entry. Returns NULL if there is no
// memory.
struct inf_client_metadata *inf_client_metadata_cache_add(struct inf_client_metadata_cache *cache,
                                                          const char *model, const char *version);

// Returns the output called `name`, or NULL if there is none.
struct inf_client_metadata_output *
inf_client_metadata_find_output(const struct inf_client_metadata *metadata, const char *name);

// Records that the output called `name` needs `bytes` bytes of memory. Returns false if there is no
// memory to record it.
bool inf_client_metadata_note_output(struct inf_client_metadata *metadata, const char *name,
                                     size_t bytes);

// Forgets the sizes of all outputs, and which version of the model answered.
void inf_client_metadata_clear_outputs(struct inf_client_metadata *metadata);

// Free the description of one model, or of all models.
void inf_client_metadata_drop_info(struct inf_client_metadata *metadata);
void inf_client_metadata_cache_drop_infos(struct inf_client_metadata_cache *cache);

// Frees the entries of all models.
void inf_client_metadata_cache_fini(struct inf_client_metadata_cache *cache);

#endif
