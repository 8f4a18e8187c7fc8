// SPDX-License-Identifier: Apache-2.0
// Samples that inferctl top shows: the state of the daemon at one time, and rates between two
// samples.
#ifndef INF_CLIENT_INFERCTL_TOP_SAMPLE_H
#define INF_CLIENT_INFERCTL_TOP_SAMPLE_H

#include "client/inferctl/cli/memory_use.h"
#include "client/inferd.h"

// The state of the daemon at one time. sample_free() frees the lists.
struct sample {
    uint64_t at_ns; // when the sample was taken, on the monotonic clock
    inferd_server_status status;
    struct memory_use memory;
    inferd_device_row *devices;
    inferd_model_row *models;
    inferd_client_row *clients;
    inferd_request_row *requests;
    size_t device_count, model_count, client_count, request_count;
    size_t clients_left_out, requests_left_out;
};

// Reads a sample from the daemon. Returns a code of enum inferd_code. The caller must call
// sample_free() even if the code is an error.
int sample_read(inferd_client *client, struct sample *sample, struct inferd_error *err);

// Frees the lists of a sample. A zeroed sample is allowed.
void sample_free(struct sample *sample);

// Return the rate of a row of `now` since the sample `before`, or 0 if `before` does not have the
// row.
double sample_model_rate(const struct sample *before, const struct sample *now,
                         const inferd_model_row *model); // requests per second
double sample_device_rate(const struct sample *before, const struct sample *now,
                          const inferd_device_row *device); // requests per second
double sample_device_busy(const struct sample *before, const struct sample *now,
                          const inferd_device_row *device); // busy share of the slots, 0 to 1
double sample_client_rate(const struct sample *before, const struct sample *now,
                          const inferd_client_row *client); // requests per second

// Returns how much a counter grew per second. If the counter became smaller, it was reset to 0
// between the samples, for example because a model was reloaded; then only its growth from 0
// counts.
double sample_rate(const struct sample *before, const struct sample *now, uint64_t value_before,
                   uint64_t value);

#endif
