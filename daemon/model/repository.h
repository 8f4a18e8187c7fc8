// SPDX-License-Identifier: Apache-2.0
// Finds the files of models on disk, by name or by path. The code knows directories and names. It
// reads the content of a file only to tell models from other JSON files.
//
//   REPOSITORY/NAME/VERSION/model.json   the highest version is used
//   REPOSITORY/NAME/model.json           version "1"
//   REPOSITORY/NAME.json                 version "1"; its weights are in the same directory
//
// model.onnx and NAME.onnx may be used instead of model.json and NAME.json. Another name is
// accepted if the directory has exactly one .json file with a model, or one .onnx file. The
// settings of a model are in REPOSITORY/NAME/model.conf or REPOSITORY/NAME.conf. Links are not
// followed below the repository.
#ifndef INF_DAEMON_MODEL_REPOSITORY_H
#define INF_DAEMON_MODEL_REPOSITORY_H

#include <stdint.h>

#include "backends/base/role.h"
#include "proto/core/limits.h"
#include "proto/core/status.h"

// Buffer size for the text of a version. A version is a number of at most 18 digits, and the name
// of its directory.
#define INF_VERSION_TEXT 24

// The most models in a repository.
#define INF_REPOSITORY_MODELS 1024

// A model file that was found.
struct inf_model_location {
    int directory_fd; // the directory with the file and its weights; -1: none
    char file[256];   // name of the model file in that directory
    char version[INF_VERSION_TEXT];
    uint64_t stamp;        // changes when the file is replaced or written to
    int config_fd;         // settings file, open for reading; -1: none
    char config_file[264]; // name of the settings file
    // Changes when the settings file is replaced or written to; 0: there is no settings file.
    uint64_t config_stamp;
};

// Finds the model `name`, a valid name, in the directory `repository`. Call
// inf_model_location_fini() even after a failure.
//
// INF_NOT_FOUND  (MODEL_NOT_FOUND) there is no such file or directory.
// INF_INVALID    the directory has no model, or more than one.
enum inf_code inf_model_locate(struct inf_model_location *location, const char *repository,
                               const char *name, struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Finds the model at `path`, which is a file, or a directory laid out as in a repository. Otherwise
// like inf_model_locate().
//
// INF_INVALID  the path is not absolute.
enum inf_code inf_model_locate_path(struct inf_model_location *location, const char *path,
                                    struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Closes the directory and the settings file.
void inf_model_location_fini(struct inf_model_location *location);

// A sorted list of model names.
struct inf_model_names {
    uint32_t count;
    char names[INF_REPOSITORY_MODELS][INF_LIMIT_MODEL_NAME + 1];
};

// Lists the models of a repository: every directory, every .onnx file and every .json file with a
// model, if the name is a valid model name. The caller frees *out_names with free().
//
// INF_NOT_FOUND  there is no such directory.
// INF_EXHAUSTED  more than INF_REPOSITORY_MODELS, or memory.
enum inf_code inf_model_names_scan(struct inf_model_names **out_names, const char *repository,
                                   struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

#endif
