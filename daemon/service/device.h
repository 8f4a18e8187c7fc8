// SPDX-License-Identifier: Apache-2.0
// Texts that describe a device in the answers of several methods.
#ifndef INF_DAEMON_SERVICE_DEVICE_H
#define INF_DAEMON_SERVICE_DEVICE_H

#include "daemon/service/state.h"

// Returns the name of the kind of a device: "host", "cpu", "gpu" or "software"; static.
const char *inf_service_device_kind(const struct inf_device_info *info);

// Writes the precisions that a device computes in, such as "fp32,fp16". Returns `text`.
const char *inf_service_list_precisions(const struct inf_device_info *info,
                                        char text[INF_SERVICE_PRECISIONS_TEXT]);

#endif
