// SPDX-License-Identifier: Apache-2.0
// A scan finds each model of the repository and reads its settings, but no model file. The loads
// that follow look at everything again, so the report is a forecast: a model that is to be loaded
// can still fail.
#include "daemon/load/source/scan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/load/load_order.h"
#include "daemon/load/source/load_source.h"
#include "daemon/load/source/quarantine.h"
#include "daemon/load/source/read_files.h"

static const struct inf_scan_known *find_known(const struct inf_load_scan_job *scan,
                                               const char *name)
{
    for (uint32_t i = 0; i < scan->known->count; i++)
        if (strcmp(scan->known->models[i].name, name) == 0)
            return &scan->known->models[i];
    return NULL;
}

// Returns true if the model is served or idle, and neither its files nor its settings changed.
static bool is_unchanged(const struct inf_scan_known *known,
                         const struct inf_model_location *location) INF_MAY_BLOCK
{
    char changed[INF_READ_FILES_NAME];
    return known != NULL && known->files != NULL && !known->rereads_settings &&
           known->config_stamp == location->config_stamp &&
           !inf_read_files_find_changed(known->files, location, changed);
}

// Says what the load of a model will do. `found` is the result of finding it and of reading its
// settings, and *err the reason if one of them failed.
static enum inf_scan_outcome foresee_load(const struct inf_load_options *options, const char *name,
                                          const struct inf_scan_known *known,
                                          const struct inf_model_location *location,
                                          enum inf_code found, struct inf_error *err) INF_MAY_BLOCK
{
    if (found != INF_OK)
        return INF_SCAN_REFUSED;
    if (is_unchanged(known, location))
        return INF_SCAN_UNCHANGED;
    if (options->journal == NULL || location->stamp == 0)
        return INF_SCAN_LOADING;
    const struct inf_quarantine_keys keys =
        inf_quarantine_make_keys(location->stamp, name, options->build);
    return inf_quarantine_check(options->journal, &keys, name, err) == INF_OK ? INF_SCAN_LOADING
                                                                              : INF_SCAN_REFUSED;
}

static void add_row(struct inf_scan_report *report, const char *name, enum inf_scan_outcome outcome,
                    const char *reason)
{
    struct inf_scan_row *row = &report->rows[report->count++];
    snprintf(row->name, sizeof row->name, "%s", name);
    snprintf(row->reason, sizeof row->reason, "%.*s", (int)sizeof row->reason - 1, reason);
    row->outcome = outcome;
}

// Finds the version of a model that is to be served by default, and reads the settings.
static enum inf_code find_model(const struct inf_load_options *options, const char *name,
                                struct inf_model_location *location,
                                struct inf_model_config *config,
                                struct inf_error *err) INF_MAY_BLOCK
{
    struct inf_model_versions versions = {0};
    INF_TRY(inf_load_source_find_versions(options, name, &versions, err));
    const struct inf_model_wanted wanted = {.version =
                                                versions.count > 0 ? versions.versions[0] : "",
                                            .ready_file = options->ready_file};
    INF_TRY(inf_model_locate_version(location, options->repository, name, &wanted, err));
    int fd = location->config_fd;
    location->config_fd = -1;
    return fd >= 0 ? inf_model_config_read(config, fd, location->config_file, err) : INF_OK;
}

// Finds one model and reads its settings. Sets its rank, and adds it to the report if there is one.
static void look_at_model(const struct inf_load_options *options, struct inf_load_scan_job *scan,
                          const char *name, struct inf_load_rank *rank) INF_MAY_BLOCK
{
    struct inf_model_location location = INF_MODEL_LOCATION_NONE;
    struct inf_model_config config;
    struct inf_error err = {0};
    inf_model_config_init(&config);
    enum inf_code code = find_model(options, name, &location, &config, &err);
    if (code != INF_OK)
        inf_model_config_init(&config);
    if (scan->report != NULL) {
        enum inf_scan_outcome outcome =
            foresee_load(options, name, find_known(scan, name), &location, code, &err);
        add_row(scan->report, name, outcome, outcome == INF_SCAN_REFUSED ? err.text : "");
    }
    inf_model_location_fini(&location);
    if (options->persisted != NULL)
        inf_model_config_take_persisted(&config, options->persisted, name);
    *rank = (struct inf_load_rank){.name = name,
                                   .priority = (uint8_t)inf_model_priority_parse(config.priority)};
}

static bool has_name(const struct inf_model_names *names, const char *name)
{
    uint32_t i = 0;
    while (i < names->count && strcmp(names->names[i], name) != 0)
        i++;
    return i < names->count;
}

// Adds the models that came from the repository and are no longer there.
static void report_removed(struct inf_load_scan_job *scan)
{
    for (uint32_t i = 0; i < scan->known->count; i++) {
        const struct inf_scan_known *known = &scan->known->models[i];
        if (!known->outside && !has_name(scan->names, known->name))
            add_row(scan->report, known->name, INF_SCAN_REMOVED,
                    known->is_served ? "it is served until it is unloaded" : "");
    }
}

static int compare_rows(const void *a, const void *b)
{
    const struct inf_scan_row *first = a, *second = b;
    if (first->outcome != second->outcome)
        return first->outcome < second->outcome ? -1 : 1;
    return strcmp(first->name, second->name);
}

enum inf_code inf_scan_run(const struct inf_load_options *options, struct inf_load_scan_job *scan,
                           struct inf_error *err)
{
    INF_TRY(inf_model_names_scan(&scan->names, options->repository, err));
    scan->ranks = calloc(INF_MAX(scan->names->count, 1u), sizeof *scan->ranks);
    if (scan->ranks == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "no memory for %u models",
                               scan->names->count);
    if (scan->known != NULL) {
        size_t rows = (size_t)scan->names->count + scan->known->count;
        scan->report = calloc(1, sizeof *scan->report + rows * sizeof scan->report->rows[0]);
        if (scan->report == NULL)
            return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                                   "no memory for a report on %zu models", rows);
    }
    for (uint32_t i = 0; i < scan->names->count; i++)
        look_at_model(options, scan, scan->names->names[i], &scan->ranks[i]);
    if (scan->report == NULL)
        return INF_OK;
    report_removed(scan);
    qsort(scan->report->rows, scan->report->count, sizeof scan->report->rows[0], compare_rows);
    return INF_OK;
}
