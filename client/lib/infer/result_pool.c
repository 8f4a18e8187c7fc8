// SPDX-License-Identifier: Apache-2.0
// Results of inferences. The struct, its list of outputs and its strings are kept for the next
// result, so that after the first requests a client does not allocate memory.
#include "client/lib/infer/result_pool.h"

#include <stdbool.h>
#include <stdlib.h>

#include "client/lib/client.h"
#include "proto/core/span.h"

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

static bool reserve_array(void **array, size_t *capacity, size_t count, size_t size)
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

enum inf_code inf_client_result_acquire(inferd_client *client, size_t output_count,
                                        size_t text_size, inferd_result **out_result,
                                        struct inf_error *err)
{
    inferd_result *result = client->results.unused;
    if (result != NULL) {
        unlink_result(result);
    } else {
        result = calloc(1, sizeof *result);
        if (result == NULL)
            return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                                   "no memory for a result");
        result->client = client;
    }
    link_result(result, &client->results.used);
    if (!reserve_array((void **)&result->outputs, &result->output_capacity, output_count,
                       sizeof result->outputs[0]) ||
        !reserve_array((void **)&result->text, &result->text_capacity, text_size, 1)) {
        inf_client_result_release(result);
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "no memory for a result of %zu outputs", output_count);
    }
    *out_result = result;
    return INF_OK;
}

void inf_client_result_release(inferd_result *result)
{
    if (result == NULL)
        return;
    inferd_client *client = result->client;
    inf_client_data_pool_free(&client->data_pool, result->data, result->data_size);
    result->data = NULL;
    result->data_size = 0;
    inf_client_region_unref(&result->output_region, true);
    result->output_count = 0;
    unlink_result(result);
    link_result(result, &client->results.unused);
}

static void free_results(inferd_client *client, inferd_result *result)
{
    while (result != NULL) {
        inferd_result *next = result->next;
        inf_client_data_pool_free(&client->data_pool, result->data, result->data_size);
        free(result->outputs);
        free(result->text);
        free(result);
        result = next;
    }
}

void inf_client_result_pool_fini(inferd_client *client)
{
    free_results(client, client->results.used);
    free_results(client, client->results.unused);
}
