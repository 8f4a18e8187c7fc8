// SPDX-License-Identifier: Apache-2.0
// What the client knows about models, in order of use. A lookup moves its entry to the front of the
// list, and a new entry replaces the last one if the cache is full.
#include "client/lib/infer/metadata_cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/core/span.h"

struct inf_client_metadata *inf_client_metadata_cache_find(struct inf_client_metadata_cache *cache,
                                                           const char *model, const char *version)
{
    for (struct inf_client_metadata **place = &cache->models; *place != NULL;
         place = &(*place)->next) {
        struct inf_client_metadata *metadata = *place;
        if (strcmp(metadata->model, model) != 0 || strcmp(metadata->version_asked, version) != 0)
            continue;
        *place = metadata->next; // move the entry to the front
        metadata->next = cache->models;
        cache->models = metadata;
        return metadata;
    }
    return NULL;
}

struct inf_client_metadata *inf_client_metadata_cache_add(struct inf_client_metadata_cache *cache,
                                                          const char *model, const char *version)
{
    struct inf_client_metadata *metadata = inf_client_metadata_cache_find(cache, model, version);
    if (metadata != NULL)
        return metadata;
    uint32_t count = 0;
    struct inf_client_metadata **place = &cache->models;
    for (; *place != NULL && count + 1 < INF_CLIENT_METADATA_MODELS; place = &(*place)->next)
        count++;
    if (*place != NULL) {
        metadata = *place; // reuse the least recently used entry
        *place = NULL;
        inf_client_metadata_drop_info(metadata);
        inf_client_metadata_clear_outputs(metadata);
    } else {
        metadata = calloc(1, sizeof *metadata);
        if (metadata == NULL)
            return NULL;
    }
    snprintf(metadata->model, sizeof metadata->model, "%s", model);
    snprintf(metadata->version_asked, sizeof metadata->version_asked, "%s", version);
    metadata->next = cache->models;
    cache->models = metadata;
    return metadata;
}

struct inf_client_metadata_output *
inf_client_metadata_find_output(const struct inf_client_metadata *metadata, const char *name)
{
    for (uint32_t i = 0; i < metadata->count; i++)
        if (strcmp(metadata->outputs[i].name, name) == 0)
            return &metadata->outputs[i];
    return NULL;
}

bool inf_client_metadata_note_output(struct inf_client_metadata *metadata, const char *name,
                                     size_t bytes)
{
    struct inf_client_metadata_output *output = inf_client_metadata_find_output(metadata, name);
    if (output != NULL) {
        output->bytes = INF_MAX(output->bytes, bytes);
        return true;
    }
    if (metadata->count == metadata->capacity) {
        uint32_t capacity = INF_MAX(metadata->capacity * 2, 4);
        struct inf_client_metadata_output *outputs =
            realloc(metadata->outputs, capacity * sizeof metadata->outputs[0]);
        if (outputs == NULL)
            return false;
        metadata->outputs = outputs;
        metadata->capacity = capacity;
    }
    output = &metadata->outputs[metadata->count++];
    snprintf(output->name, sizeof output->name, "%s", name);
    output->bytes = bytes;
    return true;
}

void inf_client_metadata_clear_outputs(struct inf_client_metadata *metadata)
{
    metadata->count = 0;
    metadata->complete = false;
    metadata->version_got[0] = '\0';
}

void inf_client_metadata_drop_info(struct inf_client_metadata *metadata)
{
    free(metadata->info);
    metadata->info = NULL;
}

void inf_client_metadata_cache_drop_infos(struct inf_client_metadata_cache *cache)
{
    for (struct inf_client_metadata *metadata = cache->models; metadata != NULL;
         metadata = metadata->next)
        inf_client_metadata_drop_info(metadata);
}

void inf_client_metadata_cache_fini(struct inf_client_metadata_cache *cache)
{
    while (cache->models != NULL) {
        struct inf_client_metadata *metadata = cache->models;
        cache->models = metadata->next;
        inf_client_metadata_drop_info(metadata);
        free(metadata->outputs);
        free(metadata);
    }
}
