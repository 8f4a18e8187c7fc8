// SPDX-License-Identifier: Apache-2.0
// What the library has seen of models' outputs, so that large ones get room in a region.
#include "client/lib/client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct inf_learned *inf_learned_find(inferd_client *client, const char *model, const char *version)
{
    for (struct inf_learned **place = &client->learned; *place != NULL; place = &(*place)->next) {
        struct inf_learned *learned = *place;
        if (strcmp(learned->model, model) != 0 || strcmp(learned->version_asked, version) != 0)
            continue;
        *place = learned->next; // to the front: the list's end is the least used
        learned->next = client->learned;
        client->learned = learned;
        return learned;
    }
    return NULL;
}

struct inf_learned *inf_learned_make(inferd_client *client, const char *model, const char *version)
{
    struct inf_learned *learned = inf_learned_find(client, model, version);
    if (learned != NULL)
        return learned;
    uint32_t count = 0;
    struct inf_learned **place = &client->learned;
    for (; *place != NULL && count + 1 < INF_CLIENT_LEARNED; place = &(*place)->next)
        count++;
    if (*place != NULL) {
        learned = *place; // the last one
        *place = NULL;
        inf_learned_forget_info(learned);
        inf_learned_reset(learned);
    } else {
        learned = calloc(1, sizeof *learned);
        if (learned == NULL)
            return NULL;
    }
    snprintf(learned->model, sizeof learned->model, "%s", model);
    snprintf(learned->version_asked, sizeof learned->version_asked, "%s", version);
    learned->next = client->learned;
    client->learned = learned;
    return learned;
}

struct inf_learned_output *inf_learned_output(const struct inf_learned *learned, const char *name)
{
    for (uint32_t i = 0; i < learned->count; i++)
        if (strcmp(learned->outputs[i].name, name) == 0)
            return &learned->outputs[i];
    return NULL;
}

bool inf_learned_note(struct inf_learned *learned, const char *name, size_t bytes)
{
    struct inf_learned_output *output = inf_learned_output(learned, name);
    if (output != NULL) {
        output->bytes = INF_MAX(output->bytes, bytes);
        return true;
    }
    if (learned->count == learned->capacity) {
        uint32_t capacity = INF_MAX(learned->capacity * 2, 4);
        struct inf_learned_output *outputs =
            realloc(learned->outputs, capacity * sizeof learned->outputs[0]);
        if (outputs == NULL)
            return false;
        learned->outputs = outputs;
        learned->capacity = capacity;
    }
    output = &learned->outputs[learned->count++];
    snprintf(output->name, sizeof output->name, "%s", name);
    output->bytes = bytes;
    return true;
}

void inf_learned_reset(struct inf_learned *learned)
{
    learned->count = 0;
    learned->complete = false;
    learned->version_got[0] = '\0';
}

void inf_learned_forget_info(struct inf_learned *learned)
{
    free(learned->info);
    learned->info = NULL;
}

void inf_client_forget_infos(inferd_client *client)
{
    for (struct inf_learned *learned = client->learned; learned != NULL; learned = learned->next)
        inf_learned_forget_info(learned);
}

void inf_client_learned_fini(inferd_client *client)
{
    while (client->learned != NULL) {
        struct inf_learned *learned = client->learned;
        client->learned = learned->next;
        inf_learned_forget_info(learned);
        free(learned->outputs);
        free(learned);
    }
}
