// SPDX-License-Identifier: Apache-2.0
// Finds devices by name, and decides which of them a model may be placed on.
#ifndef INF_DAEMON_MODEL_DEVICES_H
#define INF_DAEMON_MODEL_DEVICES_H

#include "backends/place/allow.h"
#include "backends/registry.h"
#include "daemon/model/config.h"

// Closes the devices that the administrator's allow and deny lists exclude. The reference device
// always stays, because it runs the operators that no other device supports. Names that match no
// device are logged.
void inf_model_devices_prune(struct inf_device_list *devices, const struct inf_allow_rules *rules,
                             const struct inf_log *log) INF_MAY_BLOCK;

// Finds the device called `name`. The result is borrowed from the list.
//
// INF_NOT_FOUND  (NO_DEVICE) there is no such device; the text lists all devices.
enum inf_code inf_model_device_find(const struct inf_device_list *devices, const char *name,
                                    struct inf_device **out_device,
                                    struct inf_error *err) INF_NODISCARD;

// Finds the device that the settings of a model name. If they name none, returns `otherwise`; if
// they ask for the best device, returns NULL. The result is borrowed from `devices`. Also fills the
// rules for choosing a device automatically; the texts in the rules belong to the settings. `power`
// is the power preference of the daemon.
//
// INF_NOT_FOUND  (NO_DEVICE) there is no such device, or none is allowed; the text lists them.
// INF_INVALID    (BAD_PARAMETER) the settings name a device that is not allowed.
enum inf_code inf_model_device_choose(const struct inf_model_config *config,
                                      const struct inf_device_list *devices,
                                      struct inf_device *otherwise, enum inf_power power,
                                      struct inf_allow_rules *rules, struct inf_device **out_device,
                                      struct inf_error *err) INF_NODISCARD;

// The index that stands for no device.
#define INF_DEVICE_INDEX_NONE UINT32_MAX

// Returns the index of the device that takes over from `device` if it is lost: the best other one
// that works and is not a software device. INF_DEVICE_INDEX_NONE if there is none.
uint32_t inf_model_device_find_other(const struct inf_device_list *devices,
                                     const struct inf_device *device);

#endif
