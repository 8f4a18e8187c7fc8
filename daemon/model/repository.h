// SPDX-License-Identifier: Apache-2.0
// Where models lie on disk: finds the file that a name, or a path, stands for. Knows directories
// and names, not what is in the files (but for a glance that tells models from other JSON).
//
//   REPOSITORY/NAME/VERSION/model.json   the highest number wins
//   REPOSITORY/NAME/model.json           version "1"
//   REPOSITORY/NAME.json                 version "1"; its weights lie beside it
//
// model.onnx and NAME.onnx stand for model.json and NAME.json everywhere. Instead of either, the
// only .json file there that holds a model, or the only .onnx file, will do; where there are
// several, none is guessed. A model's settings lie in REPOSITORY/NAME/model.conf, or in
// REPOSITORY/NAME.conf. Links are not followed below the repository.
#ifndef INF_DAEMON_MODEL_REPOSITORY_H
#define INF_DAEMON_MODEL_REPOSITORY_H

#include <stdint.h>

#include "backends/base/role.h"
#include "proto/core/limits.h"
#include "proto/core/status.h"

// Text of a version: a number of at most 18 digits, as its directory is named.
#define INF_VERSION_TEXT 24

// Models that a repository may hold; a bound on what a scan takes.
#define INF_REPOSITORY_MODELS 1024

// A model file that was found.
struct inf_model_location {
    int directory_fd; // the directory with the file and its weights; -1: none
    char file[256];   // its name there
    char version[INF_VERSION_TEXT];
    uint64_t stamp;        // changes when the file is replaced or written to
    int config_fd;         // the model's settings, open for reading; -1: it has none
    char config_file[264]; // their name
    uint64_t config_stamp; // as stamp; 0: none
};

// Finds the model `name` (a valid one) in the directory `repository`. The caller ends with
// inf_model_location_fini(), also after a failure.
//
// INF_NOT_FOUND  (MODEL_NOT_FOUND) nothing of that name lies there.
// INF_INVALID    there is a directory of that name, but no model in it, or more than one.
enum inf_code inf_model_locate(struct inf_model_location *location, const char *repository,
                               const char *name, struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Finds the model at `path`, a file or a directory as in a repository. As inf_model_locate().
//
// INF_INVALID  the path is not absolute.
enum inf_code inf_model_locate_path(struct inf_model_location *location, const char *path,
                                    struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Closes the directory, and the settings.
void inf_model_location_fini(struct inf_model_location *location);

// Names of models, sorted.
struct inf_model_names {
    uint32_t count;
    char names[INF_REPOSITORY_MODELS][INF_LIMIT_MODEL_NAME + 1];
};

// Lists the models of a repository: every directory, every .onnx file and every .json file with a
// model in it whose name is a valid one. *out_names is the caller's to free().
//
// INF_NOT_FOUND  there is no such directory.
// INF_EXHAUSTED  more than INF_REPOSITORY_MODELS, or memory.
enum inf_code inf_model_names_scan(struct inf_model_names **out_names, const char *repository,
                                   struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

#endif
