// SPDX-License-Identifier: Apache-2.0
// Makes the plan of a model ahead (inferd compile): loads the model as the daemon would, and writes
// what the load made to a file, which a daemon of the same build takes instead of doing so itself.
#ifndef INF_DAEMON_COMPILE_H
#define INF_DAEMON_COMPILE_H

#include "daemon/config/config.h"
#include "daemon/system/log.h"

struct inf_compile_options {
    const char *model; // a model file, or a directory with one
    const char *file;  // the plan to write; replaced as a whole; "": beside the model
    const struct inf_config *config;
    const struct inf_log *logs; // one for each enum inf_log_part
    const char *version;        // of inferd
};

// Compiles the model and writes its plan.
//
// INF_NOT_FOUND  there is no such model.
// INF_UNAVAILABLE, INF_UNSUPPORTED  the plan cannot be written, or the model is a file that reads
//                others.
// Otherwise the errors of opening devices and of loading a model.
enum inf_code inf_compile_model(const struct inf_compile_options *options,
                                struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

#endif
