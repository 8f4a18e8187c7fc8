// SPDX-License-Identifier: Apache-2.0
// Chooses the device, precision and run mode of a request.
#ifndef INF_DAEMON_SERVICE_RUN_OPTIONS_H
#define INF_DAEMON_SERVICE_RUN_OPTIONS_H

#include "daemon/service/state.h"

// Chooses device, precision and run mode of a job whose model is known. The request may name each
// of them. Otherwise the device and precision are those that the model is placed with (or another
// device if that one is lost), and the mode comes from the settings.
enum inf_code inf_service_choose_run_options(struct inf_service *service, struct inf_job *job,
                                             const struct inf_request *request,
                                             struct inf_fault *fault) INF_NODISCARD INF_ON_LOOP;

// Sets *out_precision to the precision called `name`, which the device must offer; AUTO if `name`
// is "".
//
// INF_INVALID      there is no such precision.
// INF_UNSUPPORTED  the device does not offer this precision.
enum inf_code inf_service_choose_precision(const struct inf_device *device, const char *name,
                                           enum inf_precision *out_precision,
                                           struct inf_error *err) INF_NODISCARD;

// Submits a job that failed because of its device to another device, but only once per job. Returns
// true if the job was submitted again, and false if the client must get the failure as the answer.
bool inf_service_retry_job(struct inf_service *service,
                           struct inf_job *job) INF_NODISCARD INF_ON_LOOP;

// Assigns a job that is not submitted yet to the replica on which it would finish first. The job
// stays on its device if no replica is faster, or if the request names a device.
void inf_service_route_job(struct inf_service *service, struct inf_job *job) INF_ON_LOOP;

#endif
