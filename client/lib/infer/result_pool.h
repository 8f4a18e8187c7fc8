// SPDX-License-Identifier: Apache-2.0
// Results of inferences: structs, lists of outputs and strings, kept for reuse.
#ifndef INF_CLIENT_LIB_INFER_RESULT_POOL_H
#define INF_CLIENT_LIB_INFER_RESULT_POOL_H

#include <stddef.h>
#include <stdint.h>

#include "client/inferd.h"
#include "proto/core/status.h"

struct inferd_result {
    inferd_client *client;
    // Links of the client's list of results in use, or of its list of unused results.
    inferd_result *next, **link;
    uint8_t *data; // data segment of the answer, from the data pool; NULL: none
    size_t data_size;
    inferd_memory *output_region; // region of the library that holds outputs; NULL: none
    inferd_tensor *outputs;
    size_t output_count, output_capacity;
    char *text; // one buffer for all strings of the result and the names of its outputs
    size_t text_capacity;
    const char *model_version, *device, *precision, *id;
    inferd_timing timing;
    uint64_t core_ns;
    // Values for the functions of the same name in inferd.h, like `core_ns`.
    unsigned batch_size, padded_size, flags, threads;
};

// The results of a client: those in use, and unused ones kept for reuse. Zero-initialise.
struct inf_client_result_pool {
    inferd_result *used, *unused;
};

// Returns in *result an empty result with room for `output_count` outputs and `text_size` bytes of
// text.
//
// INF_EXHAUSTED  there is no memory.
enum inf_code inf_client_result_acquire(inferd_client *client, size_t output_count,
                                        size_t text_size, inferd_result **result,
                                        struct inf_error *err) INF_NODISCARD;

// Gives a result, its data and its region back to their pools.
void inf_client_result_release(inferd_result *result);

// Frees all results, whether in use or not.
void inf_client_result_pool_fini(inferd_client *client);

#endif
