// SPDX-License-Identifier: Apache-2.0
// Runs one load without a daemon around it. The options are those of the daemon's loader, without
// what the daemon remembers in its cache: the plan must not depend on which models ran here before.
// Devices do not race, because the machine that will use the plan decides that for itself.
#include "daemon/compile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/storage/file.h"
#include "daemon/engine.h"
#include "daemon/load/load.h"
#include "daemon/load/load_plan.h"
#include "daemon/load/trial/step_trial.h"
#include "daemon/model/devices.h"
#include "daemon/model/repository.h"

struct compile {
    const struct inf_compile_options *options;
    char build[INF_ENGINE_BUILD_TEXT];
    char path[4096]; // absolute path of the model
    struct inf_device_list devices;
    struct inf_place_speeds speeds;
    struct inf_arena_budget arena_budget;
    struct inf_model_location location;
    struct inf_load_job *job;
};

// Measures joined decoding steps, so that a daemon with the plan need not measure them while it
// serves. If this fails, that daemon measures them.
static void measure_steps(struct inf_served *served, const struct inf_log *log) INF_MAY_BLOCK
{
    const struct inf_step_trial trial = {.served = served, .log = log};
    struct inf_step_findings findings;
    struct inf_error err = {0};
    if (!served->steps_due)
        return;
    if (inf_step_trial_run(&trial, &findings, &err) != INF_OK) {
        inf_log(log, INF_LOG_NOTICE, "joined steps not measured reason=\"%s\"", err.text);
        return;
    }
    inf_served_take_steps(served, &findings);
}

static enum inf_code load_model(struct compile *compile, struct inf_error *err) INF_MAY_BLOCK
{
    const struct inf_config *config = compile->options->config;
    const struct inf_log *log = &compile->options->logs[INF_LOG_PART_MODEL];
    const struct inf_load_options load = {.ready_file = "",
                                          .devices = &compile->devices,
                                          .evaluator = inf_registry_evaluator(),
                                          .place = {.devices = &compile->devices,
                                                    .speeds = &compile->speeds,
                                                    .version = compile->build,
                                                    .log = log},
                                          .batch_rows_max = config->batch_rows_max,
                                          .arena_budget = &compile->arena_budget,
                                          .build = compile->build,
                                          .log = log};
    const struct inf_load_progress_sink silent = {.report = NULL};
    compile->job = inf_load_job_create(INF_LOAD_JOB_MODEL);
    if (compile->job == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "no memory for a load");
    struct inf_load_model_job *model = &compile->job->model;
    snprintf(compile->job->name, sizeof compile->job->name, "model");
    snprintf(model->path, sizeof model->path, "%s", compile->path);
    model->rules = (struct inf_place_rules){.races = INF_PLACE_RACES_NEVER};
    model->by_admin = true;
    if (strcmp(config->device, "auto") != 0 && config->device[0] != '\0')
        INF_TRY(
            inf_model_device_find(&compile->devices, config->device, &model->default_device, err));
    INF_TRY(inf_load_model(compile->job, &load, &silent, err));
    measure_steps(model->served, log);
    return INF_OK;
}

// Splits options->file into an open directory and a name in it. Without a file, chooses the place
// beside the model. The caller closes *out_fd.
static enum inf_code open_place(const struct compile *compile, int *out_fd,
                                char name[INF_LOAD_PLAN_NAME], struct inf_error *err)
{
    char folder[4096];
    const char *file = compile->options->file;
    const char *slash = strrchr(file, '/'), *last = slash != NULL ? slash + 1 : file;
    if (file[0] == '\0') {
        inf_load_plan_name(name, compile->location.file);
        *out_fd = openat(compile->location.directory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return *out_fd >= 0
                   ? INF_OK
                   : inf_fail(err, INF_DENIED, "the directory of the model cannot be read");
    }
    // The writer appends a suffix to the name while the file is not complete.
    if (last[0] == '\0' || strlen(last) > 70 || (size_t)(last - file) >= sizeof folder)
        return inf_fail(err, INF_INVALID, "'%.100s': wanted a file name of at most 70 characters",
                        file);
    snprintf(folder, sizeof folder, "%.*s", (int)(last - file), file);
    snprintf(name, INF_LOAD_PLAN_NAME, "%s", last);
    return inf_directory_open(out_fd, folder[0] != '\0' ? folder : ".", err);
}

static enum inf_code write_plan(struct compile *compile, struct inf_error *err) INF_MAY_BLOCK
{
    char name[INF_LOAD_PLAN_NAME];
    int fd;
    INF_TRY(open_place(compile, &fd, name, err));
    enum inf_code code = inf_load_plan_write(compile->job->model.served, &compile->location,
                                             compile->build, fd, name, err);
    close(fd);
    return code;
}

static enum inf_code run_compile(struct compile *compile, struct inf_error *err) INF_MAY_BLOCK
{
    const struct inf_compile_options *options = compile->options;
    inf_engine_build(compile->build, options->version);
    if (realpath(options->model, compile->path) == NULL)
        return inf_fail(err, INF_NOT_FOUND, "'%.200s': %s", options->model, strerror(errno));
    INF_TRY(inf_model_locate_path(&compile->location, compile->path, err));
    INF_TRY(inf_engine_open_devices(&compile->devices, options->config, options->logs, err));
    INF_TRY(load_model(compile, err));
    return write_plan(compile, err);
}

enum inf_code inf_compile_model(const struct inf_compile_options *options, struct inf_error *err)
{
    struct compile *compile = calloc(1, sizeof *compile);
    if (compile == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "no memory");
    compile->options = options;
    compile->location = (struct inf_model_location)INF_MODEL_LOCATION_NONE;
    inf_arena_budget_init(&compile->arena_budget, options->config->arena_bytes_per_uid_max);
    enum inf_code code = run_compile(compile, err);
    if (compile->job != NULL)
        inf_served_destroy(&compile->job->model.served);
    inf_load_job_destroy(&compile->job);
    inf_model_location_fini(&compile->location);
    inf_device_list_close(&compile->devices);
    inf_arena_budget_fini(&compile->arena_budget);
    free(compile);
    return code;
}
