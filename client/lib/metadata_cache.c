// SPDX-License-Identifier: Apache-2.0
// What the library has seen of models' outputs, so that large ones get room in a region.
#include "client/lib/client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct inf_metadata_cache *inf_metadata_cache_find(inferd_client *client, const char *model,
                                                   const char *version)
{
    for (struct inf_metadata_cache **place = &client->metadata; *place != NULL;
         place = &(*place)->next) {
        struct inf_metadata_cache *metadata = *place;
        if (strcmp(metadata->model, model) != 0 || strcmp(metadata->version_asked, version) != 0)
            continue;
        *place = metadata->next; // to the front: the list's end is the least used
        metadata->next = client->metadata;
        client->metadata = metadata;
        return metadata;
    }
    return NULL;
}

struct inf_metadata_cache *inf_metadata_cache_make(inferd_client *client, const char *model,
                                                   const char *version)
{
    struct inf_metadata_cache *metadata = inf_metadata_cache_find(client, model, version);
    if (metadata != NULL)
        return metadata;
    uint32_t count = 0;
    struct inf_metadata_cache **place = &client->metadata;
    for (; *place != NULL && count + 1 < INF_CLIENT_METADATA; place = &(*place)->next)
        count++;
    if (*place != NULL) {
        metadata = *place; // the last one
        *place = NULL;
        inf_metadata_cache_forget_info(metadata);
        inf_metadata_cache_reset(metadata);
    } else {
        metadata = calloc(1, sizeof *metadata);
        if (metadata == NULL)
            return NULL;
    }
    snprintf(metadata->model, sizeof metadata->model, "%s", model);
    snprintf(metadata->version_asked, sizeof metadata->version_asked, "%s", version);
    metadata->next = client->metadata;
    client->metadata = metadata;
    return metadata;
}

struct inf_metadata_cache_output *
inf_metadata_cache_output(const struct inf_metadata_cache *metadata, const char *name)
{
    for (uint32_t i = 0; i < metadata->count; i++)
        if (strcmp(metadata->outputs[i].name, name) == 0)
            return &metadata->outputs[i];
    return NULL;
}

bool inf_metadata_cache_note(struct inf_metadata_cache *metadata, const char *name, size_t bytes)
{
    struct inf_metadata_cache_output *output = inf_metadata_cache_output(metadata, name);
    if (output != NULL) {
        output->bytes = INF_MAX(output->bytes, bytes);
        return true;
    }
    if (metadata->count == metadata->capacity) {
        uint32_t capacity = INF_MAX(metadata->capacity * 2, 4);
        struct inf_metadata_cache_output *outputs =
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

void inf_metadata_cache_reset(struct inf_metadata_cache *metadata)
{
    metadata->count = 0;
    metadata->complete = false;
    metadata->version_got[0] = '\0';
}

void inf_metadata_cache_forget_info(struct inf_metadata_cache *metadata)
{
    free(metadata->info);
    metadata->info = NULL;
}

void inf_client_forget_infos(inferd_client *client)
{
    for (struct inf_metadata_cache *metadata = client->metadata; metadata != NULL;
         metadata = metadata->next)
        inf_metadata_cache_forget_info(metadata);
}

void inf_client_metadata_fini(inferd_client *client)
{
    while (client->metadata != NULL) {
        struct inf_metadata_cache *metadata = client->metadata;
        client->metadata = metadata->next;
        inf_metadata_cache_forget_info(metadata);
        free(metadata->outputs);
        free(metadata);
    }
}
