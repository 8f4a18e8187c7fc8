// SPDX-License-Identifier: Apache-2.0
// The public functions of the model store. Each function looks up the entry of its model, checks
// the request, and submits a job to the loader thread (submit.c). events.c handles the outcomes of
// the jobs.
#include "daemon/store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/clock.h"
#include "backends/base/idle_gate.h"
#include "daemon/model/devices.h"
#include "daemon/model/shapes.h"
#include "daemon/store/idle.h"
#include "daemon/store/submit.h"
#include "proto/wire/message.h"

static bool is_default(const char *name)
{
    return name == NULL || name[0] == '\0' || strcmp(name, "auto") == 0;
}

// Finds a served model for a client (`caller` is NULL: for the daemon or an admin). If the model is
// idle, starts loading it and fails with LOADING.
static enum inf_code find_served_entry(struct inf_model_store *store, struct inf_caller *caller,
                                       const char *name, const char *version,
                                       struct inf_model_entry **out_entry,
                                       struct inf_error *err) INF_ON_LOOP
{
    enum inf_code code = inf_model_table_find_served(&store->table, name, version, caller,
                                                     store->scans > 0, out_entry, err);
    if (code == INF_OK)
        (*out_entry)->awaited_until_ns = 0;
    if (code == INF_OK && (*out_entry)->leaving)
        return inf_fail_reason(err, INF_UNAVAILABLE, INF_REASON_LOADING,
                               "model '%.64s' is being unloaded, because another one needs its "
                               "memory",
                               name);
    if (code != INF_PRECONDITION || !inf_store_wake(store, name, version))
        return code;
    return inf_model_table_find_served(&store->table, name, version, caller, store->scans > 0,
                                       out_entry, err);
}

// Splits a reference of the form NAME or NAME:SIGNATURE. Returns NAME, which is `reference` itself
// or a copy in `buffer`. Sets *out_signature to SIGNATURE, or to NULL if the reference has none.
static const char *split_reference(const char *reference, char buffer[INF_LIMIT_MODEL_NAME + 1],
                                   const char **out_signature)
{
    size_t length = strcspn(reference, ":");
    *out_signature = reference[length] == ':' ? reference + length + 1 : NULL;
    if (*out_signature == NULL)
        return reference;
    snprintf(buffer, INF_LIMIT_MODEL_NAME + 1, "%.*s", (int)INF_MIN(length, INF_LIMIT_MODEL_NAME),
             reference);
    return buffer;
}

// Finds the model that NAME or NAME:SIGNATURE names, and the entry that has it. The model is
// borrowed from the entry. Otherwise like find_served_entry().
static enum inf_code find_served(struct inf_model_store *store, struct inf_caller *caller,
                                 const char *reference, const char *version,
                                 struct inf_model_entry **out_entry, struct inf_served **out_served,
                                 struct inf_error *err) INF_ON_LOOP
{
    char buffer[INF_LIMIT_MODEL_NAME + 1];
    const char *signature, *name = split_reference(reference, buffer, &signature);
    INF_TRY(find_served_entry(store, caller, name, version, out_entry, err));
    *out_served = (*out_entry)->served;
    if (signature == NULL)
        return INF_OK;
    return inf_served_find_signature((*out_entry)->served, signature, out_served, err);
}

// Refuses NAME:SIGNATURE for `what`, which is done with all signatures of a model together.
static enum inf_code refuse_signature(const char *reference, const char *what,
                                      struct inf_error *err)
{
    int length = (int)strcspn(reference, ":");
    if (reference[length] == '\0')
        return INF_OK;
    return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                           "'%.64s' is one signature; wanted model '%.*s': all its signatures are "
                           "%s together",
                           reference, length, reference, what);
}

// --- creating and destroying the store ---

static enum inf_code init_store(struct inf_model_store *store,
                                const struct inf_model_store_options *options,
                                struct inf_error *err)
{
    store->log = options->log;
    store->devices = options->devices;
    store->rules = options->rules;
    store->model_bytes_max = options->model_bytes_max;
    store->budget = options->budget;
    store->standby = options->standby;
    if (options->devices->count == 0)
        return inf_fail_reason(err, INF_UNAVAILABLE, INF_REASON_NO_DEVICE, "there is no device");
    if (!is_default(options->default_device))
        INF_TRY(inf_model_device_find(options->devices, options->default_device,
                                      &store->default_device, err));
    INF_TRY(inf_tune_open(&store->tune, options->cache_directory, options->log, err));
    INF_TRY(
        inf_served_shapes_open(&store->served_shapes, options->cache_directory, options->log, err));
    INF_TRY(inf_precision_results_open(&store->precision_results, options->cache_directory,
                                       options->log, err));
    INF_TRY(inf_load_journal_open(&store->journal, options->cache_directory, options->log, err));
    INF_TRY(inf_persisted_open(&store->persisted, options->state_directory, options->log, err));
    INF_TRY(inf_model_uses_open(&store->uses, options->state_directory, &store->use_counts,
                                options->log, err));
    store->uses_kept_ns = inf_clock_ns();
    INF_TRY(inf_plan_cache_create(&store->plans, options->cache_directory, options->plan_bytes_max,
                                  options->version != NULL ? options->version : "", options->log,
                                  err));
    const struct inf_loader_options loader = {
        .limit_ms = options->load_limit_ms,
        .load = {.repository = options->repository,
                 .settle_ms = options->settle_ms,
                 .ready_file = options->ready_file != NULL ? options->ready_file : "",
                 .devices = options->devices,
                 .evaluator = inf_registry_evaluator(),
                 .place = {.devices = options->devices,
                           .tune = store->tune,
                           .speeds = &store->speeds,
                           .cache_directory = options->cache_directory,
                           .version = options->version != NULL ? options->version : "",
                           .log = options->log},
                 .idle_gate = &store->idle_gate,
                 .asks_for_room = store->budget != NULL,
                 .batch_rows_max = options->batch_rows_max,
                 .arena_budget = &store->arena_budget,
                 .served_shapes = store->served_shapes,
                 .precision_results = store->precision_results,
                 .plans = store->plans,
                 .journal = store->journal,
                 .uses = store->uses,
                 .persisted = store->persisted,
                 .build = options->version != NULL ? options->version : "",
                 .log = options->log}};
    INF_TRY(inf_loader_create(&store->loader, &loader, err));
    struct inf_loader_options racer = loader;
    racer.reports_to = store->loader;
    racer.low_priority = true;
    return inf_loader_create(&store->racer, &racer, err);
}

enum inf_code inf_model_store_create(struct inf_model_store **out_store,
                                     const struct inf_model_store_options *options,
                                     struct inf_error *err)
{
    struct inf_model_store *store = calloc(1, sizeof *store);
    if (store == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for the table of models");
    inf_arena_budget_init(&store->arena_budget, options->arena_bytes_per_uid_max);
    atomic_store(&store->arena_budget.request_bytes_max, options->request_bytes_max);
    enum inf_code code = init_store(store, options, err);
    if (code != INF_OK) {
        inf_model_store_destroy(&store);
        return code;
    }
    *out_store = store;
    return INF_OK;
}

void inf_model_store_destroy(struct inf_model_store **store)
{
    struct inf_model_store *self = *store;
    if (self == NULL)
        return;
    if (self->loader != NULL)
        inf_store_submit_uses(self);
    // Dropping the references in the table of models makes the loader free the models, so the
    // loader must be destroyed later.
    inf_model_table_fini(&self->table);
    inf_idle_gate_shut_down(&self->idle_gate);
    inf_loader_destroy(&self->racer);
    inf_loader_destroy(&self->loader);
    inf_tune_close(&self->tune);
    inf_served_shapes_close(&self->served_shapes);
    inf_precision_results_close(&self->precision_results);
    inf_plan_cache_destroy(&self->plans);
    inf_load_journal_close(&self->journal);
    inf_model_uses_close(&self->uses);
    inf_persisted_close(&self->persisted);
    inf_arena_budget_fini(&self->arena_budget);
    free(self);
    *store = NULL;
}

// --- changing the default device and the placement rules ---

enum inf_code inf_model_store_set_device(struct inf_model_store *store, const char *name,
                                         struct inf_error *err)
{
    struct inf_device *device = NULL;
    if (!is_default(name))
        INF_TRY(inf_model_device_find(store->devices, name, &device, err));
    store->default_device = device;
    return INF_OK;
}

void inf_model_store_set_rules(struct inf_model_store *store, const struct inf_place_rules *rules)
{
    store->rules = *rules;
}

void inf_model_store_set_load_limit(struct inf_model_store *store, uint32_t limit_ms)
{
    inf_loader_set_limit(store->loader, limit_ms);
}

void inf_model_store_set_arena_limit(struct inf_model_store *store, uint64_t bytes_max)
{
    atomic_store(&store->arena_budget.bytes_max, bytes_max);
}

void inf_model_store_set_request_limit(struct inf_model_store *store, uint64_t bytes_max)
{
    atomic_store(&store->arena_budget.request_bytes_max, bytes_max);
}

void inf_model_store_cancel_loads(struct inf_model_store *store)
{
    inf_loader_cancel(store->racer, NULL, INF_LOAD_STOP_SHUTDOWN);
    inf_loader_cancel(store->loader, NULL, INF_LOAD_STOP_SHUTDOWN);
}

const struct inf_speed *inf_model_store_speed(const struct inf_model_store *store, uint32_t index)
{
    bool known = index < INF_PLACE_DEVICES && atomic_load(&store->speeds.known);
    return known ? &store->speeds.speeds[index] : NULL;
}

// --- loading and placing models ---

enum inf_code inf_model_store_load(struct inf_model_store *store,
                                   const struct inf_load_request *request, struct inf_error *err)
{
    struct inf_store_load load = {.token = request->token,
                                  .path = request->path,
                                  .directory_fd = request->directory_fd,
                                  .saves = request->saves};
    struct inf_device *device;
    inf_model_config_init(&load.config);
    if (!inf_model_name_valid(request->name))
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                               "model name '%.64s': wanted 1 to %u of A-Z a-z 0-9 . _ - and no dot "
                               "first",
                               request->name, INF_LIMIT_MODEL_NAME);
    if (request->path != NULL &&
        strlen(request->path) >= sizeof((struct inf_load_model_job *)0)->path)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                               "path of model '%s': wanted less than %zu characters", request->name,
                               sizeof((struct inf_load_model_job *)0)->path);
    if (!is_default(request->device)) {
        INF_TRY(inf_model_device_find(store->devices, request->device, &device, err));
        INF_TRY(inf_model_config_ask(&load.config, INF_MODEL_FLAG_ID_device, request->device, err));
    }
    bool is_known = inf_model_table_find(&store->table, request->name, "") != NULL;
    struct inf_model_entry *entry = inf_model_table_obtain(&store->table, request->name, "");
    if (entry == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory to load model '%s'", request->name);
    if (!is_known)
        entry->is_new =
            request->directory_fd != NULL || (request->path != NULL && request->path[0] != '\0');
    enum inf_code code = inf_store_check_room(store, entry, err);
    if (code == INF_OK)
        code = inf_store_submit_load(store, entry, &load, err);
    if (code != INF_OK && entry->served == NULL && entry->pending == 0)
        inf_model_table_remove(&store->table, request->name, "");
    return code;
}

enum inf_code inf_model_store_place(struct inf_model_store *store,
                                    const struct inf_place_request *request, struct inf_error *err)
{
    struct inf_store_load load = {.token = request->token};
    struct inf_model_entry *entry;
    struct inf_device *device;
    INF_TRY(refuse_signature(request->name, "placed", err));
    INF_TRY(find_served_entry(store, NULL, request->name, request->version, &entry, err));
    inf_model_config_init(&load.asked);
    const struct {
        enum inf_model_flag_id id;
        const char *value;
    } settings[] = {{INF_MODEL_FLAG_ID_device, request->device},
                    {INF_MODEL_FLAG_ID_policy, request->policy},
                    {INF_MODEL_FLAG_ID_precision, request->precision},
                    {INF_MODEL_FLAG_ID_mode, request->mode}};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(settings); i++)
        if (settings[i].value[0] != '\0')
            INF_TRY(inf_model_config_ask(&load.asked, settings[i].id, settings[i].value, err));
    load.config = entry->served->config;
    inf_model_config_take_asked(&load.config, &load.asked);
    load.precision_requested = request->precision[0] != '\0';
    load.persists = request->persists;
    if (!is_default(request->device))
        INF_TRY(inf_model_device_find(store->devices, request->device, &device, err));
    INF_TRY(inf_store_check_room(store, entry, err));
    return inf_store_submit_placing(store, entry, &load, err);
}

enum inf_code inf_model_store_persist_flag(struct inf_model_store *store, const char *name,
                                           const char *value, uint64_t token, struct inf_error *err)
{
    return inf_store_submit_persisting(store, name, value, token, err);
}

enum inf_code inf_model_store_forget_settings(struct inf_model_store *store, const char *name,
                                              uint64_t token, struct inf_error *err)
{
    struct inf_store_load load = {.token = token, .forgets = true};
    struct inf_model_entry *entry;
    INF_TRY(refuse_signature(name, "placed", err));
    INF_TRY(find_served_entry(store, NULL, name, "", &entry, err));
    if (entry->outside)
        return inf_fail(err, INF_PRECONDITION,
                        "model '%s' is not in the repository: load it again to forget settings",
                        entry->name);
    inf_model_config_init(&load.config);
    INF_TRY(inf_store_check_room(store, entry, err));
    return inf_store_submit_load(store, entry, &load, err);
}

// --- starting races (timing comparisons of devices) ---

enum inf_code inf_model_store_race(struct inf_model_store *store, const char *name,
                                   struct inf_error *err)
{
    struct inf_model_entry *entry;
    INF_TRY(refuse_signature(name, "placed", err));
    INF_TRY(find_served_entry(store, NULL, name, "", &entry, err));
    if (entry->races + entry->pending > 0)
        return inf_fail_reason(err, INF_UNAVAILABLE, INF_REASON_LOADING,
                               "model '%s' is being placed", name);
    const struct inf_place_request again = {
        .name = name, .version = "", .device = "", .policy = "", .precision = "", .mode = ""};
    // A race key of 0 means that no race between devices was possible when the model was placed.
    // This may have changed, so place the model again.
    if (entry->served->placement.key == 0)
        return inf_model_store_place(store, &again, err);
    return inf_store_submit_race(store, entry, err);
}

struct inf_model_store_counts inf_model_store_counts(const struct inf_model_store *store)
{
    return store->counts;
}

uint32_t inf_model_store_races(const struct inf_model_store *store)
{
    return store->races;
}

struct inf_idle_gate *inf_model_store_idle_gate(struct inf_model_store *store)
{
    return &store->idle_gate;
}

void inf_model_store_demote(struct inf_model_store *store, struct inf_served *served,
                            const char *why)
{
    const struct inf_run_options fp32 = {.precision = INF_PRECISION_FP32};
    snprintf(served->precision_reason, sizeof served->precision_reason, "%.255s", why);
    inf_model_set_default_options(served->model, served->device, &fp32);
    struct inf_place_decision *decision =
        inf_placement_demote(&served->placement, served->device, why);
    if (decision != NULL)
        inf_store_submit_decision(store, decision);
}

enum inf_code inf_model_store_inspect(struct inf_model_store *store, const char *name,
                                      uint64_t token, struct inf_inspect_request *request,
                                      struct inf_error *err)
{
    struct inf_model_entry *entry;
    struct inf_served *served;
    INF_TRY(find_served(store, NULL, name, "", &entry, &served, err));
    INF_TRY(inf_store_check_room(store, entry, err));
    return inf_store_submit_inspection(store, entry, served, token, request, err);
}

enum inf_code inf_model_store_precompile(struct inf_model_store *store,
                                         const struct inf_precompile_request *request,
                                         struct inf_error *err)
{
    char wanted[INF_FLAG_WANTED_SIZE];
    struct inf_model_entry *entry;
    struct inf_served *served;
    INF_TRY(find_served(store, NULL, request->name, request->version, &entry, &served, err));
    struct inf_device *device = served->device;
    if (!is_default(request->device))
        INF_TRY(inf_model_device_find(store->devices, request->device, &device, err));
    if (!inf_shape_sets_check(request->shapes, wanted, sizeof wanted) ||
        strlen(request->shapes) >= INF_SERVED_SHAPES_TEXT)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                               "shapes '%.64s': wanted %s", request->shapes, wanted);
    INF_TRY(inf_store_check_room(store, entry, err));
    return inf_store_submit_compilation(store, entry, served, request->token, device,
                                        request->shapes, err);
}

void inf_model_store_save_shapes(struct inf_model_store *store, struct inf_served *served)
{
    inf_store_submit_shapes(store, served);
}

enum inf_code inf_model_store_find_device(const struct inf_model_store *store, const char *name,
                                          struct inf_device **out_device, struct inf_error *err)
{
    return inf_model_device_find(store->devices, name, out_device, err);
}

int inf_model_store_notes_fd(const struct inf_model_store *store)
{
    return inf_load_journal_notes_fd(store->journal);
}

// --- taking events of the loader ---

int inf_model_store_fd(const struct inf_model_store *store)
{
    return inf_loader_fd(store->loader);
}

uint32_t inf_model_store_pending(const struct inf_model_store *store)
{
    return store->pending;
}

bool inf_model_store_is_restricted(const struct inf_model_store *store, const char *reference)
{
    char buffer[INF_LIMIT_MODEL_NAME + 1];
    const char *signature, *name = split_reference(reference, buffer, &signature);
    const struct inf_model_entry *entry = inf_model_table_find(&store->table, name, "");
    return entry != NULL && entry->access.is_restricted;
}

bool inf_model_store_reads_repository(const struct inf_model_store *store)
{
    return store->scans > 0;
}

// --- looking up models and devices ---

// Removes all versions of a model, and cancels its loads and races.
static void remove_model(struct inf_model_store *store, const char *name)
{
    const struct inf_model_entry *entry;
    inf_loader_cancel(store->racer, name, INF_LOAD_STOP_UNLOADED);
    inf_loader_cancel(store->loader, name, INF_LOAD_STOP_UNLOADED);
    while ((entry = inf_model_table_next_pin(&store->table, name, "")) != NULL)
        inf_model_table_remove(&store->table, name, entry->pin);
    inf_model_table_remove(&store->table, name, "");
}

// Removes one version of a model that has several. If that is the default version, the highest
// further version that is served becomes the default.
static void remove_version(struct inf_model_store *store, struct inf_model_entry *model,
                           const struct inf_model_entry *entry)
{
    struct inf_model_entry *next = model, *heir = NULL;
    if (entry == model) {
        while ((next = inf_model_table_next_pin(&store->table, model->name, next->pin)) != NULL)
            if (next->served != NULL &&
                (heir == NULL || strtoull(next->pin, NULL, 10) > strtoull(heir->pin, NULL, 10)))
                heir = next;
        inf_served_unref(&model->served);
        if (heir == NULL)
            return;
        model->served = heir->served;
        heir->served = NULL;
        entry = heir;
    }
    char pin[INF_VERSION_TEXT];
    memcpy(pin, entry->pin, sizeof pin);
    inf_model_table_remove(&store->table, model->name, pin);
}

enum inf_code inf_model_store_unload(struct inf_model_store *store, const char *name,
                                     const char *version, struct inf_error *err)
{
    INF_TRY(refuse_signature(name, "unloaded", err));
    struct inf_model_entry *model = inf_model_table_find(&store->table, name, ""), *entry = model;
    if (model == NULL)
        return inf_fail_reason(err, INF_NOT_FOUND, INF_REASON_MODEL_NOT_FOUND,
                               "model '%.64s' is not loaded", name);
    if (version[0] != '\0' && model->served == NULL &&
        strcmp(version, model->pending_version) != 0 &&
        inf_model_table_find(&store->table, name, version) == NULL)
        return inf_fail_reason(err, INF_NOT_FOUND, INF_REASON_VERSION_NOT_FOUND,
                               "model '%s' has no version '%.24s'; it has '%s'", name, version,
                               model->pending_version);
    if (version[0] != '\0')
        INF_TRY(inf_model_table_find_version(&store->table, model, version, &entry, err));
    enum inf_code code = INF_OK;
    const char *present = entry->served != NULL ? entry->served->version : entry->pending_version;
    if (entry->served == NULL && entry->pending == 0 && !entry->idle)
        code = inf_fail_reason(err, INF_PRECONDITION, INF_REASON_MODEL_FAILED,
                               "model '%.64s' was not loaded, because its load failed; it is no "
                               "longer listed. The load failed because: %s",
                               name, entry->reason);
    else
        inf_log(store->log, INF_LOG_INFO, "model unloaded name=%s version=%s%s", name, present,
                entry->pending > 0 && entry->served == NULL ? " (while it was loading)" : "");
    store->counts.unloaded_admin += code == INF_OK;
    if (version[0] != '\0' && inf_model_table_next_pin(&store->table, name, "") != NULL)
        remove_version(store, model, entry);
    else
        remove_model(store, name);
    return code;
}

enum inf_code inf_model_store_delete(struct inf_model_store *store, const char *name,
                                     const char *version, uint64_t token, struct inf_error *err)
{
    char number[INF_VERSION_TEXT];
    INF_TRY(refuse_signature(name, "deleted", err));
    const struct inf_model_entry *model = inf_model_table_find(&store->table, name, "");
    if (model != NULL && model->outside)
        return inf_fail(err, INF_PRECONDITION,
                        "model '%s' was loaded from a path, and its files stay there: unload it "
                        "without deleting",
                        name);
    if (inf_version_is_label(version)) {
        if (model == NULL || !inf_version_labels_find(model->labels, version, number))
            return inf_fail_reason(err, INF_NOT_FOUND, INF_REASON_VERSION_NOT_FOUND,
                                   "model '%.64s' has no label '%.64s'", name, version);
        version = number;
    }
    return inf_store_submit_deletion(store, name, version, token, err);
}

enum inf_code inf_model_store_find(struct inf_model_store *store, struct inf_caller *caller,
                                   const char *name, const char *version,
                                   struct inf_served **out_served, struct inf_error *err)
{
    struct inf_model_entry *entry;
    struct inf_served *served;
    INF_TRY(find_served(store, caller, name, version, &entry, &served, err));
    *out_served = inf_served_ref(served);
    return INF_OK;
}

enum inf_code inf_model_store_is_ready(const struct inf_model_store *store,
                                       struct inf_caller *caller, const char *name,
                                       const char *version, bool *out_ready, struct inf_error *err)
{
    char buffer[INF_LIMIT_MODEL_NAME + 1];
    struct inf_model_entry *entry;
    struct inf_served *served;
    struct inf_error why = {0};
    const char *signature, *model = split_reference(name, buffer, &signature);
    enum inf_code code = inf_model_table_find_served(&store->table, model, version, caller,
                                                     store->scans > 0, &entry, &why);
    if (code == INF_OK && signature != NULL)
        code = inf_served_find_signature(entry->served, signature, &served, &why);
    *out_ready = code == INF_OK
                     ? !entry->leaving
                     : code == INF_PRECONDITION && inf_store_is_idle(store, model, version);
    if (code == INF_OK || code == INF_UNAVAILABLE || code == INF_PRECONDITION)
        return INF_OK;
    if (err != NULL)
        *err = why;
    return code;
}

uint32_t inf_model_store_list(struct inf_model_store *store, struct inf_caller *caller,
                              struct inf_model_row *rows, uint32_t capacity)
{
    return inf_model_table_list(&store->table, caller, rows, capacity);
}

const char *inf_model_store_await(struct inf_model_store *store, const char *reference,
                                  char buffer[INF_LIMIT_MODEL_NAME + 1])
{
    bool is_loading = false, is_first = false;
    const char *signature, *name = split_reference(reference, buffer, &signature);
    for (struct inf_model_entry *entry = inf_model_table_find(&store->table, name, "");
         entry != NULL; entry = inf_model_table_next_pin(&store->table, name, entry->pin)) {
        if (entry->served != NULL || entry->pending == 0)
            continue;
        is_loading = true;
        is_first |= !entry->is_wanted;
        entry->is_wanted = true;
    }
    if (is_first)
        inf_loader_want(store->loader, name);
    return is_loading ? name : "";
}

struct inf_model_summary inf_model_store_summarize(const struct inf_model_store *store)
{
    struct inf_model_summary summary = inf_model_table_summarize(&store->table);
    summary.is_starting |= store->scans > 0;
    return summary;
}
