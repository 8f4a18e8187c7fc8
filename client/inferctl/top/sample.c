// SPDX-License-Identifier: Apache-2.0
// Reads the lists that inferctl top shows, and computes rates from the rows of two samples.
#include "client/inferctl/top/sample.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t read_clock_ns(void)
{
    struct timespec time = {0};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

int sample_read(inferd_client *client, struct sample *sample, struct inferd_error *err)
{
    *sample = (struct sample){.at_ns = read_clock_ns()};
    int code = inferd_status(client, &sample->status, err);
    if (code == 0)
        code = inferd_devices(client, &sample->devices, &sample->device_count, err);
    if (code == 0)
        code = inferd_models(client, &sample->models, &sample->model_count, err);
    if (code == 0)
        code = inferd_clients(client, &sample->clients, &sample->client_count,
                              &sample->clients_left_out, err);
    if (code == 0)
        code = inferd_requests(client, &sample->requests, &sample->request_count,
                               &sample->requests_left_out, err);
    if (code == 0)
        sample->memory = memory_use_read(client);
    return code;
}

void sample_free(struct sample *sample)
{
    free(sample->devices);
    free(sample->models);
    free(sample->clients);
    free(sample->requests);
    *sample = (struct sample){0};
}

double sample_rate(const struct sample *before, const struct sample *now, uint64_t value_before,
                   uint64_t value)
{
    uint64_t grown = value >= value_before ? value - value_before : value;
    return now->at_ns > before->at_ns ? (double)grown * 1e9 / (double)(now->at_ns - before->at_ns)
                                      : 0;
}

double sample_model_rate(const struct sample *before, const struct sample *now,
                         const inferd_model_row *model)
{
    for (size_t i = 0; i < before->model_count; i++)
        if (strcmp(before->models[i].name, model->name) == 0)
            return sample_rate(before, now, before->models[i].requests, model->requests);
    return 0;
}

static const inferd_device_row *find_device(const struct sample *before,
                                            const inferd_device_row *device)
{
    for (size_t i = 0; i < before->device_count; i++)
        if (strcmp(before->devices[i].name, device->name) == 0)
            return &before->devices[i];
    return NULL;
}

double sample_device_rate(const struct sample *before, const struct sample *now,
                          const inferd_device_row *device)
{
    const inferd_device_row *old = find_device(before, device);
    return old != NULL ? sample_rate(before, now, old->requests, device->requests) : 0;
}

double sample_device_busy(const struct sample *before, const struct sample *now,
                          const inferd_device_row *device)
{
    const inferd_device_row *old = find_device(before, device);
    if (old == NULL || device->slots == 0)
        return 0;
    double busy = sample_rate(before, now, old->busy_ns, device->busy_ns) / 1e9 / device->slots;
    // The daemon adds the device time of a request when the request ends. A request that began
    // before the interval can therefore add more time than the interval has.
    return busy > 1 ? 1 : busy;
}

double sample_client_rate(const struct sample *before, const struct sample *now,
                          const inferd_client_row *client)
{
    for (size_t i = 0; i < before->client_count; i++)
        if (before->clients[i].client_id == client->client_id)
            return sample_rate(before, now, before->clients[i].requests, client->requests);
    return 0;
}
