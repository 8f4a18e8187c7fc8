// SPDX-License-Identifier: Apache-2.0
// Results: a struct, its list of outputs and its strings are kept for use again.
#include <stdlib.h>
#include <string.h>

#include "client/lib/client.h"

static void unlink_result(inferd_result *result)
{
    *result->link = result->next;
    if (result->next != NULL)
        result->next->link = result->link;
}

static void link_result(inferd_result *result, inferd_result **list)
{
    result->next = *list;
    result->link = list;
    if (*list != NULL)
        (*list)->link = &result->next;
    *list = result;
}

static bool reserve(void **array, size_t *capacity, size_t count, size_t size)
{
    if (count <= *capacity)
        return true;
    count = INF_MAX(count, *capacity * 2);
    void *grown = realloc(*array, count * size);
    if (grown == NULL)
        return false;
    *array = grown;
    *capacity = count;
    return true;
}

enum inf_code inf_result_acquire(inferd_client *client, size_t output_count, size_t text_size,
                                 inferd_result **out_result, struct inf_error *err)
{
    inferd_result *result = client->unused_results;
    if (result != NULL) {
        unlink_result(result);
    } else {
        result = calloc(1, sizeof *result);
        if (result == NULL)
            return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                                   "no memory for a result");
        result->client = client;
    }
    link_result(result, &client->results);
    if (!reserve((void **)&result->outputs, &result->output_capacity, output_count,
                 sizeof result->outputs[0]) ||
        !reserve((void **)&result->text, &result->text_capacity, text_size, 1)) {
        inferd_result_free(result);
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "no memory for a result of %zu outputs", output_count);
    }
    *out_result = result;
    return INF_OK;
}

void inferd_result_free(inferd_result *result)
{
    if (result == NULL)
        return;
    inferd_client *client = result->client;
    inf_client_enter(client);
    inf_client_data_free(client, result->data, result->data_size);
    result->data = NULL;
    result->data_size = 0;
    inf_memory_unref(&result->output_block, true);
    result->output_count = 0;
    unlink_result(result);
    link_result(result, &client->unused_results);
    inf_client_leave(client);
}

static void free_list(inferd_client *client, inferd_result *result)
{
    while (result != NULL) {
        inferd_result *next = result->next;
        inf_client_data_free(client, result->data, result->data_size);
        free(result->outputs);
        free(result->text);
        free(result);
        result = next;
    }
}

void inf_client_results_fini(inferd_client *client)
{
    free_list(client, client->results);
    free_list(client, client->unused_results);
}

// --- what the caller sees ---

size_t inferd_result_output_count(const inferd_result *result)
{
    return result->output_count;
}

const inferd_tensor *inferd_result_output(const inferd_result *result, size_t index)
{
    return index < result->output_count ? &result->outputs[index] : NULL;
}

const inferd_tensor *inferd_result_find(const inferd_result *result, const char *name)
{
    for (size_t i = 0; i < result->output_count; i++)
        if (strcmp(result->outputs[i].name, name) == 0)
            return &result->outputs[i];
    return NULL;
}

const char *inferd_result_model_version(const inferd_result *result)
{
    return result->model_version;
}

const char *inferd_result_device(const inferd_result *result)
{
    return result->device;
}

const char *inferd_result_precision(const inferd_result *result)
{
    return result->precision;
}

const char *inferd_result_id(const inferd_result *result)
{
    return result->id;
}

inferd_timing inferd_result_timing(const inferd_result *result)
{
    return result->timing;
}

unsigned inferd_result_batch_size(const inferd_result *result)
{
    return result->batch_size;
}

unsigned inferd_result_padded_size(const inferd_result *result)
{
    return result->padded_size;
}

unsigned inferd_result_flags(const inferd_result *result)
{
    return result->flags;
}
