// SPDX-License-Identifier: Apache-2.0
// Memory of the caller that is shared with the daemon (public functions).
#include <stddef.h>

#include "client/inferd.h"
#include "client/lib/client.h"
#include "client/lib/error.h"
#include "client/lib/io/region.h"
#include "client/lib/io/send_queue.h"

int inferd_memory_alloc(inferd_client *client, size_t size, inferd_memory **memory,
                        struct inferd_error *err)
{
    struct inf_error error = {.code = INF_OK};
    *memory = NULL;
    inf_client_enter(client);
    if (client->connection.failure.code != INF_OK)
        error = client->connection.failure;
    else if (inf_client_region_acquire(client, size, memory, &error) == INF_OK)
        inf_client_send_queue_flush(client);
    inf_client_leave(client);
    return error.code == INF_OK ? INFERD_OK : inf_client_report_error(err, &error);
}

void *inferd_memory_data(const inferd_memory *memory)
{
    return memory->data;
}

size_t inferd_memory_size(const inferd_memory *memory)
{
    return memory->size;
}

void inferd_memory_free(inferd_memory *memory)
{
    if (memory == NULL)
        return;
    inferd_client *client = memory->client;
    inf_client_enter(client);
    inf_client_region_unref(&memory, true);
    inf_client_send_queue_flush(client);
    inf_client_leave(client);
}
