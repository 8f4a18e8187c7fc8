// SPDX-License-Identifier: Apache-2.0
// Binds the inputs and outputs of a request to memory: the data of the request, or a region.
#ifndef INF_DAEMON_SERVICE_BIND_H
#define INF_DAEMON_SERVICE_BIND_H

#include "daemon/service/state.h"

// Binds the inputs whose values the request contains. Sets bit i of *out_given for each input i of
// them.
enum inf_code inf_service_bind_inputs(struct inf_job *job, const struct inf_graph *graph,
                                      const struct inf_infer_request *infer,
                                      const struct inf_request *request, uint64_t *out_given,
                                      struct inf_fault *fault) INF_NODISCARD INF_ON_LOOP;

// Binds the outputs that the request names, or all outputs if it names none.
enum inf_code inf_service_bind_outputs(struct inf_job *job, const struct inf_graph *graph,
                                       const struct inf_infer_request *infer,
                                       const struct inf_request *request,
                                       struct inf_fault *fault) INF_NODISCARD INF_ON_LOOP;

// Fails if an input gets a value neither from the request (its bit in `given` is set) nor from the
// session.
//
// INF_INVALID  (TENSOR_MISSING) an input has no value.
enum inf_code inf_service_check_complete(const struct inf_job *job, const struct inf_graph *graph,
                                         uint64_t given, struct inf_fault *fault) INF_NODISCARD;

#endif
