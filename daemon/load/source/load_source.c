// SPDX-License-Identifier: Apache-2.0
// Where a load takes a model and its settings from: a path, a directory that an admin sent, or the
// repository. The settings of a model in the repository say which of its versions are served. An
// admin can have the model copied into the repository, and its settings kept.
#include "daemon/load/source/load_source.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/load/warm_up.h"
#include "daemon/model/directory.h"

enum inf_code inf_load_source_find_versions(const struct inf_load_options *options,
                                            const char *name, struct inf_model_versions *versions,
                                            struct inf_error *err)
{
    struct inf_version_list present;
    struct inf_model_config config;
    int config_fd;
    if (inf_version_list_read(&present, &config_fd, options->repository, name, options->ready_file,
                              NULL) != INF_OK)
        return INF_OK; // finding the model reports what is wrong
    inf_model_config_init(&config);
    if (config_fd >= 0 &&
        inf_model_config_read(&config, config_fd, INF_MODEL_CONFIG_FILE, NULL) != INF_OK)
        inf_model_config_init(&config);
    inf_versions_choose(versions, config.versions, config.labels, &present);
    if (present.count == 0 || versions->count > 0)
        return INF_OK;
    versions->known = false;
    return inf_fail_reason(err, INF_NOT_FOUND, INF_REASON_VERSION_NOT_FOUND,
                           "model '%s': the setting versions = %.64s names no version that is in "
                           "the repository; the highest one there is %s",
                           name, config.versions, present.versions[0].name);
}

enum inf_code inf_load_source_find(struct inf_load *load, struct inf_error *err)
{
    struct inf_load_job *job = load->job;
    if (job->model.directory_fd >= 0)
        return inf_model_locate_at(&load->location, job->model.directory_fd, job->model.path,
                                   job->name, err);
    if (job->model.path[0] != '\0')
        return inf_model_locate_path(&load->location, job->model.path, err);
    if (load->options->repository == NULL)
        return inf_fail_reason(err, INF_NOT_FOUND, INF_REASON_MODEL_NOT_FOUND,
                               "model '%s': there is no repository", job->name);
    const char *version = job->pin;
    const struct inf_model_versions *versions = &job->model.versions;
    if (version[0] == '\0') {
        INF_TRY(inf_load_source_find_versions(load->options, job->name, &job->model.versions, err));
        version = versions->count > 0 ? versions->versions[0] : "";
    }
    const struct inf_model_wanted wanted = {.version = version,
                                            .ready_file = load->options->ready_file};
    return inf_model_locate_version(&load->location, load->options->repository, job->name, &wanted,
                                    err);
}

enum inf_code inf_load_source_save(struct inf_load *load, struct inf_error *err)
{
    struct inf_load_model_job *model = &load->job->model;
    const struct inf_repository_save_options options = {.repository = load->options->repository,
                                                        .name = load->job->name,
                                                        .ready_file = load->options->ready_file,
                                                        .cancelled = &load->order->cancelled};
    inf_load_report(load->progress, load->location.version, "save", INF_LOAD_PERCENT_READ);
    INF_TRY(inf_repository_save(&load->saved, &options, &load->location, err));
    load->is_saved = true;
    inf_model_location_fini(&load->location);
    model->path[0] = '\0';
    if (model->directory_fd >= 0)
        close(model->directory_fd);
    model->directory_fd = -1;
    INF_TRY(inf_load_source_find(load, err));
    if (strcmp(load->location.version, load->saved.version) != 0)
        return inf_fail(err, INF_PRECONDITION,
                        "model '%s': not saved: its settings serve version %s, not the new one, %s",
                        load->job->name, load->location.version, load->saved.version);
    return INF_OK;
}

void inf_load_source_end_save(struct inf_load *load, enum inf_code code, struct inf_error *err)
{
    if (!load->is_saved)
        return;
    if (code == INF_OK) {
        inf_log(load->options->log, INF_LOG_INFO, "model saved name=%s version=%s", load->job->name,
                load->saved.version);
        inf_repository_save_fini(&load->saved);
        return;
    }
    inf_repository_save_undo(&load->saved);
    // If a single file was saved, its weights may be in other files of its directory, which were
    // not copied.
    if (code == INF_NOT_FOUND)
        (void)inf_error_prefix(err, code,
                               "not saved; if the model has several files, save their "
                               "directory");
}

enum inf_code inf_load_source_list_files(struct inf_load *load, struct inf_error *err)
{
    if (load->location.directory_fd < 0)
        return INF_OK;
    INF_TRY(inf_read_files_create(&load->files, &load->location, err));
    // The check is read last, so a check that is being written must be found too.
    if (load->location.has_directory)
        inf_read_files_note(load->files, INF_MODEL_CHECK_FOLDER);
    return INF_OK;
}

enum inf_code inf_load_source_check_unchanged(const struct inf_load *load, struct inf_error *err)
{
    char name[INF_READ_FILES_NAME];
    const char *changed = load->location.file;
    if (load->files == NULL)
        return INF_OK;
    if (!load->job->model.config_complete && inf_model_location_config_changed(&load->location))
        changed = load->location.config_file;
    else if (!inf_read_files_find_changed(load->files, &load->location, name))
        return INF_OK;
    else if (name[0] != '\0')
        changed = name;
    return inf_fail_reason(err, INF_UNAVAILABLE, INF_REASON_LOADING,
                           "model '%s': '%.64s' changed while the model was loaded; wanted files "
                           "that stay as they are during a load",
                           load->job->name, changed);
}

// Reads the settings file of the model, and finds out who may use the model. If the settings are
// wrong, that is admins only; the store uses it if it does not know better.
static enum inf_code read_config_file(struct inf_load *load, struct inf_error *err) INF_MAY_BLOCK
{
    struct inf_model_location *location = &load->location;
    struct inf_load_model_job *model = &load->job->model;
    int fd = location->config_fd;
    enum inf_code code = INF_OK;
    location->config_fd = -1;
    inf_model_config_init(&load->config);
    if (fd >= 0)
        code = inf_model_config_read(&load->config, fd, location->config_file, err);
    model->access = (struct inf_access){.is_restricted = true};
    if (code == INF_OK)
        code = inf_access_resolve(&model->access, load->config.allow_users,
                                  load->config.allow_groups, err);
    model->has_access = true;
    model->access_failed = code != INF_OK;
    return code;
}

enum inf_code inf_load_source_read_config(struct inf_load *load, struct inf_error *err)
{
    struct inf_load_job *job = load->job;
    if (job->model.config_complete) {
        load->config = job->model.config;
    } else {
        INF_TRY(read_config_file(load, err));
        if (load->options->persisted != NULL && !job->model.forgets)
            inf_model_config_take_persisted(&load->config, load->options->persisted, job->name);
        inf_model_config_take_asked(&load->config, &job->model.config);
        job->model.precision_requested =
            inf_model_config_origin(&load->config, INF_MODEL_FLAG_ID_precision) >
            INF_ORIGIN_DEFAULT;
    }
    if (load->files != NULL && load->config.labels_file[0] != '\0')
        inf_read_files_note(load->files, load->config.labels_file);
    job->model.has_settings = true;
    job->model.settings = load->config;
    return inf_model_device_choose(&load->config, load->options->devices, job->model.default_device,
                                   job->model.rules.power, &load->allow, &load->pinned, err);
}

enum inf_code inf_load_source_persist(struct inf_load *load, struct inf_error *err)
{
    if (load->job->model.forgets && load->options->persisted != NULL)
        INF_TRY(inf_persisted_remove(load->options->persisted, load->job->name, "", err));
    if (!load->job->model.persists)
        return INF_OK;
    if (load->options->persisted == NULL)
        return inf_fail(err, INF_PRECONDITION, "not persistent: there is no place for settings");
    return inf_model_config_persist(&load->served->config, load->options->persisted,
                                    load->job->name, err);
}
