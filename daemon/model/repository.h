// SPDX-License-Identifier: Apache-2.0
// Finds the files of models on disk, by name or by path. The code knows directories and names. It
// reads the content of a file only to tell models from other JSON files.
//
//   REPOSITORY/NAME/VERSION/model.json   the highest version is used
//   REPOSITORY/NAME/model.json           version "1"
//   REPOSITORY/NAME.json                 version "1"; its weights are in the same directory
//
// model.onnx and NAME.onnx, or model.tflite and NAME.tflite, may be used instead of model.json and
// NAME.json. Another name is accepted if the directory has exactly one .json file with a model, or
// one .onnx or .tflite file. The settings of a model are in REPOSITORY/NAME/model.conf or
// REPOSITORY/NAME.conf. Links are not followed below the repository.
#ifndef INF_DAEMON_MODEL_REPOSITORY_H
#define INF_DAEMON_MODEL_REPOSITORY_H

#include <stdbool.h>
#include <stdint.h>

#include "backends/base/role.h"
#include "proto/core/limits.h"
#include "proto/core/status.h"

// Buffer size for the text of a model's version. A version is a number of at most 18 digits, which
// is also the name of the directory with the version's files.
#define INF_VERSION_TEXT 24

// The most digits of a version.
#define INF_VERSION_DIGITS 18

// The most versions in a list of the versions of a model. If the model has more, the list has the
// highest versions.
#define INF_REPOSITORY_VERSIONS 64u

// The versions of a model that are in the repository, in descending order.
struct inf_version_list {
    uint32_t count;
    struct {
        uint64_t number;
        char name[INF_VERSION_TEXT];
    } versions[INF_REPOSITORY_VERSIONS];
};

// The most models in a repository.
#define INF_REPOSITORY_MODELS 1024

// Where a model file was found.
struct inf_model_location {
    int directory_fd; // the directory with the file and its weights; -1: none
    char file[256];   // name of the model file in that directory
    char version[INF_VERSION_TEXT];
    bool has_directory; // true: the model has a directory of its own; false: it is a single file
    uint64_t stamp;     // changes when the model file is replaced or written to
    // The directory of the settings file; -1: it is directory_fd.
    int config_directory_fd;
    int config_fd;         // settings file, open for reading; -1: none
    char config_file[264]; // name of the settings file, also if there is none
    // Changes when the settings file is replaced or written to; 0: there is no settings file.
    uint64_t config_stamp;
};

// A location before a model is found.
#define INF_MODEL_LOCATION_NONE                                                                    \
    {                                                                                              \
        .directory_fd = -1, .config_directory_fd = -1, .config_fd = -1                             \
    }

// Finds the model `name`, a valid name, in the directory `repository`. Call
// inf_model_location_fini() even after a failure.
//
// INF_NOT_FOUND  (MODEL_NOT_FOUND) there is no such file or directory.
// INF_INVALID    the directory has no model, or more than one.
enum inf_code inf_model_locate(struct inf_model_location *location, const char *repository,
                               const char *name, struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Which version of a model to find.
struct inf_model_wanted {
    const char *version; // number of the version; "": the highest version
    // Name of a file that every complete directory of a model or version has. A directory without
    // this file is treated as incomplete. "": every directory is complete.
    const char *ready_file;
};

// Finds a version of the model `name`. Otherwise like inf_model_locate().
//
// INF_NOT_FOUND    (VERSION_NOT_FOUND) there is no such version.
// INF_UNAVAILABLE  (LOADING) the directory is incomplete: it lacks the ready file.
enum inf_code inf_model_locate_version(struct inf_model_location *location, const char *repository,
                                       const char *name, const struct inf_model_wanted *wanted,
                                       struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Lists the versions of the model `name` whose directory has the file `ready_file`; if `ready_file`
// is "", lists all versions. Also opens the settings file of the model as *out_config_fd, which the
// caller closes; -1: there is none. A model without directories of versions has an empty list.
//
// INF_NOT_FOUND  the repository has no directory of this name.
enum inf_code inf_version_list_read(struct inf_version_list *list, int *out_config_fd,
                                    const char *repository, const char *name,
                                    const char *ready_file,
                                    struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Finds the model at `path`, which is a file, or a directory laid out as in a repository. Otherwise
// like inf_model_locate().
//
// INF_INVALID  the path is not absolute.
enum inf_code inf_model_locate_path(struct inf_model_location *location, const char *path,
                                    struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Finds the model file `file` in the directory `directory_fd`, which may have been opened with
// O_PATH. If `file` is "", the directory is laid out as in a repository, and `name` stands for it
// in error texts. The descriptor is not closed. Otherwise like inf_model_locate().
//
// INF_DENIED  the daemon's user may not read the directory.
enum inf_code inf_model_locate_at(struct inf_model_location *location, int directory_fd,
                                  const char *file, const char *name,
                                  struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Returns true if the stamp of the settings file differs from that of the time when the model was
// found. A file that did not exist then has changed if it exists.
bool inf_model_location_config_changed(const struct inf_model_location *location) INF_MAY_BLOCK;

// Returns the size of the model's files: of its directory, or of the one file of a model that has
// no directory of its own. An estimate; what cannot be read counts as 0.
uint64_t inf_model_location_bytes(const struct inf_model_location *location) INF_MAY_BLOCK;

// Closes the directories and the settings file.
void inf_model_location_fini(struct inf_model_location *location);

// A sorted list of model names.
struct inf_model_names {
    uint32_t count;
    char names[INF_REPOSITORY_MODELS][INF_LIMIT_MODEL_NAME + 1];
};

// Lists the models of a repository: every directory, every .onnx and .tflite file and every
// .json file with a model, if the name is a valid model name. The caller frees *out_names with
// free().
//
// INF_NOT_FOUND  there is no such directory.
// INF_EXHAUSTED  more than INF_REPOSITORY_MODELS, or memory.
enum inf_code inf_model_names_scan(struct inf_model_names **out_names, const char *repository,
                                   struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

#endif
