// SPDX-License-Identifier: Apache-2.0
// Where a load takes a model and its settings from, and what it writes there.
#ifndef INF_DAEMON_LOAD_SOURCE_LOAD_SOURCE_H
#define INF_DAEMON_LOAD_SOURCE_LOAD_SOURCE_H

#include "daemon/load/source/load_state.h"

// Sets *versions to the versions of a model of the repository that are to be served. If the
// settings file cannot be read, chooses the highest version; its load then fails and reports the
// reason.
//
// INF_NOT_FOUND  (VERSION_NOT_FOUND) the settings name only versions that do not exist, and exclude
//                every other one.
enum inf_code inf_load_source_find_versions(const struct inf_load_options *options,
                                            const char *name, struct inf_model_versions *versions,
                                            struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Finds the model file at the path, in the directory or in the repository that the job names, and
// sets load->location. In the repository it also chooses the versions that are to be served.
//
// INF_NOT_FOUND, INF_INVALID, INF_UNAVAILABLE  as inf_model_locate_version().
enum inf_code inf_load_source_find(struct inf_load *load,
                                   struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Copies the model that was found into the repository, and finds it again there.
//
// INF_PRECONDITION  the settings of the model do not serve the new version.
// Other errors      as inf_repository_save().
enum inf_code inf_load_source_save(struct inf_load *load,
                                   struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Ends a save, if there was one: keeps the copy if the load ended with INF_OK, and removes it
// otherwise. May add a hint to *err.
void inf_load_source_end_save(struct inf_load *load, enum inf_code code,
                              struct inf_error *err) INF_MAY_BLOCK;

// Makes load->files, the list of the files that the load reads. Does nothing if the directory of
// the model is not open, because the model is placed again.
//
// INF_EXHAUSTED  no memory.
enum inf_code inf_load_source_list_files(struct inf_load *load,
                                         struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Fails if a file that the load read, its check or its settings file is not what it was when the
// model was found. A directory that was being written or deleted may have been read in part, for
// example without its check, or without the settings that say who may use the model.
//
// INF_UNAVAILABLE  (LOADING) the text names the file.
enum inf_code inf_load_source_check_unchanged(const struct inf_load *load,
                                              struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Reads the settings of the model: first those from its settings file, then those that admins set.
// Sets load->config, the devices that it allows, and the settings in the job.
//
// INF_INVALID  a setting is wrong.
enum inf_code inf_load_source_read_config(struct inf_load *load,
                                          struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Makes the settings of the model persistent, or forgets them, if the admin asked for it. If that
// fails, so does the load, and the model stays as it was.
//
// INF_PRECONDITION  the daemon has no place for settings.
enum inf_code inf_load_source_persist(struct inf_load *load,
                                      struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

#endif
