// SPDX-License-Identifier: Apache-2.0
// What the daemon and a compilation ahead share: the devices of the configuration, and the text
// that names version and build.
#ifndef INF_DAEMON_ENGINE_H
#define INF_DAEMON_ENGINE_H

#include "backends/registry.h"
#include "backends/storage/build_id.h"
#include "daemon/config/config.h"

// Buffer size for the text of inf_engine_build().
#define INF_ENGINE_BUILD_TEXT (32 + INF_BUILD_ID_TEXT)

// Writes the version and the build ID of this program. Plans and saved measurements are valid for
// one build only.
void inf_engine_build(char text[INF_ENGINE_BUILD_TEXT], const char *version);

// Opens the devices that the configuration allows. `logs` has a log for each enum inf_log_part. The
// caller closes the list, also after a failure.
//
// INF_UNAVAILABLE, INF_INVALID  as inf_device_list_open().
enum inf_code inf_engine_open_devices(struct inf_device_list *devices,
                                      const struct inf_config *config, const struct inf_log *logs,
                                      struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

#endif
