// SPDX-License-Identifier: Apache-2.0
#include "daemon/store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/idle_gate.h"
#include "daemon/model/devices.h"
#include "daemon/model/shapes.h"
#include "proto/wire/message.h"

// Loads that may wait, but for those that a scan of the repository starts.
#define LOADS_MAX 256u

struct inf_model_store {
    struct inf_loader *loader;
    struct inf_loader *racer; // reports to the loader
    struct inf_idle_gate idle_gate;
    uint32_t races; // that wait or are under way
    const struct inf_device_list *devices;
    struct inf_device *default_device; // the list's reference; NULL: each model's best
    struct inf_tune *tune;             // the loader thread's
    struct inf_served_shapes *seen;    // the loader thread's
    struct inf_place_speeds speeds;
    struct inf_place_rules rules; // for loads to come
    struct inf_model_table table;
    uint32_t pending;
    uint32_t scans; // of them, readings of the repository
};

static bool is_default(const char *name)
{
    return name == NULL || name[0] == '\0' || strcmp(name, "auto") == 0;
}

static enum inf_code look(const struct inf_model_store *store, const char *name,
                          const char *version, struct inf_model_entry **out_entry,
                          struct inf_error *err)
{
    return inf_model_table_look(&store->table, name, version, store->scans > 0, out_entry, err);
}

// --- making and freeing ---

static enum inf_code fill(struct inf_model_store *store,
                          const struct inf_model_store_options *options, struct inf_error *err)
{
    store->devices = options->devices;
    store->rules = options->rules;
    if (options->devices->count == 0)
        return inf_fail_reason(err, INF_UNAVAILABLE, INF_REASON_NO_DEVICE, "there is no device");
    if (!is_default(options->default_device))
        INF_TRY(inf_model_device_find(options->devices, options->default_device,
                                      &store->default_device, err));
    INF_TRY(inf_tune_open(&store->tune, options->cache_directory, options->log, err));
    INF_TRY(inf_served_shapes_open(&store->seen, options->cache_directory, options->log, err));
    const struct inf_loader_options loader = {
        .repository = options->repository,
        .devices = options->devices,
        .evaluator = inf_registry_evaluator(),
        .place = {.devices = options->devices,
                  .tune = store->tune,
                  .speeds = &store->speeds,
                  .cache_directory = options->cache_directory,
                  .version = options->version != NULL ? options->version : "",
                  .log = options->log},
        .idle_gate = &store->idle_gate,
        .batch_rows_max = options->batch_rows_max,
        .seen = store->seen,
        .log = options->log,
    };
    INF_TRY(inf_loader_create(&store->loader, &loader, err));
    struct inf_loader_options racer = loader;
    racer.reports_to = store->loader;
    racer.gives_way = true;
    return inf_loader_create(&store->racer, &racer, err);
}

enum inf_code inf_model_store_create(struct inf_model_store **out_store,
                                     const struct inf_model_store_options *options,
                                     struct inf_error *err)
{
    struct inf_model_store *store = calloc(1, sizeof *store);
    if (store == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for the table of models");
    enum inf_code code = fill(store, options, err);
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
    inf_model_table_fini(&self->table); // the loader frees what was served
    inf_idle_gate_end(&self->idle_gate);
    inf_loader_destroy(&self->racer);
    inf_loader_destroy(&self->loader);
    inf_tune_close(&self->tune);
    inf_served_shapes_close(&self->seen);
    free(self);
    *store = NULL;
}

// --- what can be changed ---

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

const struct inf_speed *inf_model_store_speed(const struct inf_model_store *store, uint32_t index)
{
    bool known = index < INF_PLACE_DEVICES && atomic_load(&store->speeds.known);
    return known ? &store->speeds.speeds[index] : NULL;
}

// --- loading ---

// How a model is to be loaded, beside what the request says.
struct load_manner {
    struct inf_model_config config; // what admins ask for
    bool if_changed;                // not where the files are those that are served
    bool again;                     // what is served is placed anew, no file is read
    bool precision_asked;
    struct inf_place_decision *decision; // to go by; the job's on success
    struct inf_inspect_order *dissect;   // it is looked into instead; the job's on success
    struct inf_device *precompile_on;    // it is compiled for further shapes instead
    const char *shapes;                  // which
};

// Whether a job only looks at what is served.
static bool changes_nothing(const struct inf_load_job *job)
{
    return job->dissect != NULL || job->precompile_on != NULL;
}

// Puts a load of `entry` into the loader's queue.
static enum inf_code submit(struct inf_model_store *store, struct inf_model_entry *entry,
                            const struct inf_load_request *request,
                            const struct load_manner *manner, struct inf_error *err)
{
    struct inf_load_job *job = calloc(1, sizeof *job);
    if (job == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory to load model '%s'", entry->name);
    job->token = request->token;
    job->generation = entry->generation;
    job->config = manner->config;
    job->config_whole = manner->again;
    job->default_device = store->default_device;
    job->rules = store->rules;
    job->precision_asked = manner->precision_asked;
    job->decision = manner->decision;
    if (manner->again)
        job->base = inf_served_ref(entry->served);
    snprintf(job->name, sizeof job->name, "%s", entry->name);
    if (request->path != NULL)
        snprintf(job->path, sizeof job->path, "%s", request->path);
    if (manner->if_changed && entry->served != NULL)
        job->known = inf_served_ref(entry->served);
    job->dissect = manner->dissect;
    job->precompile_on = manner->precompile_on;
    if (manner->shapes != NULL)
        snprintf(job->shapes, sizeof job->shapes, "%s", manner->shapes);
    else if (entry->served != NULL && (manner->again || manner->if_changed))
        inf_served_shapes_print(&entry->served->seen, job->shapes);
    if (!changes_nothing(job))
        entry->reason[0] = '\0';
    entry->pending++;
    store->pending++;
    inf_loader_submit(store->loader, job);
    return INF_OK;
}

// The same for a load that somebody asks for: not so many may wait.
static enum inf_code submit_asked(struct inf_model_store *store, struct inf_model_entry *entry,
                                  const struct inf_load_request *request,
                                  const struct load_manner *manner, struct inf_error *err)
{
    if (store->pending >= LOADS_MAX)
        return inf_fail_reason(err, INF_UNAVAILABLE, INF_REASON_LOADING,
                               "model '%s': %u loads wait already", entry->name, store->pending);
    return submit(store, entry, request, manner, err);
}

enum inf_code inf_model_store_load(struct inf_model_store *store,
                                   const struct inf_load_request *request, struct inf_error *err)
{
    struct load_manner manner = {0};
    struct inf_device *device;
    inf_model_config_init(&manner.config);
    if (!inf_model_name_valid(request->name))
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                               "model name '%.64s': wanted 1 to %u of A-Z a-z 0-9 . _ - and no dot "
                               "first",
                               request->name, INF_LIMIT_MODEL_NAME);
    if (request->path != NULL && strlen(request->path) >= sizeof((struct inf_load_job *)0)->path)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                               "path of model '%s': wanted less than %zu characters", request->name,
                               sizeof((struct inf_load_job *)0)->path);
    if (!is_default(request->device)) {
        INF_TRY(inf_model_device_find(store->devices, request->device, &device, err));
        INF_TRY(
            inf_model_config_ask(&manner.config, INF_MODEL_FLAG_ID_device, request->device, err));
    }
    struct inf_model_entry *entry = inf_model_table_obtain(&store->table, request->name);
    if (entry == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory to load model '%s'", request->name);
    enum inf_code code = submit_asked(store, entry, request, &manner, err);
    if (code != INF_OK && entry->served == NULL && entry->pending == 0)
        inf_model_table_remove(&store->table, request->name);
    return code;
}

enum inf_code inf_model_store_place(struct inf_model_store *store,
                                    const struct inf_place_request *request, struct inf_error *err)
{
    struct load_manner manner = {.again = true};
    struct inf_model_entry *entry;
    struct inf_device *device;
    INF_TRY(look(store, request->name, request->version, &entry, err));
    manner.config = entry->served->config;
    const struct {
        enum inf_model_flag_id id;
        const char *value;
    } asked[] = {{INF_MODEL_FLAG_ID_device, request->device},
                 {INF_MODEL_FLAG_ID_policy, request->policy},
                 {INF_MODEL_FLAG_ID_precision, request->precision},
                 {INF_MODEL_FLAG_ID_mode, request->mode}};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(asked); i++)
        if (asked[i].value[0] != '\0')
            INF_TRY(inf_model_config_ask(&manner.config, asked[i].id, asked[i].value, err));
    manner.precision_asked = request->precision[0] != '\0';
    if (!is_default(request->device))
        INF_TRY(inf_model_device_find(store->devices, request->device, &device, err));
    const struct inf_load_request load = {.name = request->name, .token = request->token};
    return submit_asked(store, entry, &load, &manner, err);
}

// --- races ---

// Begins one for what is served. Its candidates are those of the placement.
static enum inf_code start_race(struct inf_model_store *store, struct inf_model_entry *entry,
                                struct inf_error *err)
{
    struct inf_load_job *job = calloc(1, sizeof *job);
    if (job == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for a race");
    job->race = true;
    job->generation = entry->generation;
    job->rules = store->rules;
    job->base = inf_served_ref(entry->served);
    job->placement = entry->served->placement;
    snprintf(job->name, sizeof job->name, "%s", entry->name);
    store->races++;
    entry->races++;
    inf_loader_submit(store->racer, job);
    return INF_OK;
}

enum inf_code inf_model_store_race(struct inf_model_store *store, const char *name,
                                   struct inf_error *err)
{
    struct inf_model_entry *entry;
    INF_TRY(look(store, name, "", &entry, err));
    if (entry->races + entry->pending > 0)
        return inf_fail_reason(err, INF_UNAVAILABLE, INF_REASON_LOADING,
                               "model '%s' is being placed", name);
    // There was nobody to race when it was placed: that may have changed.
    const struct inf_place_request order = {
        .name = name, .version = "", .device = "", .policy = "", .precision = "", .mode = ""};
    if (entry->served->placement.key == 0)
        return inf_model_store_place(store, &order, err);
    return start_race(store, entry, err);
}

uint32_t inf_model_store_races(const struct inf_model_store *store)
{
    return store->races;
}

struct inf_idle_gate *inf_model_store_calm(struct inf_model_store *store)
{
    return &store->idle_gate;
}

// Has a decision kept for the next start. Takes it over; without memory it is forgotten.
static void keep_decision(struct inf_model_store *store, struct inf_place_decision *decision)
{
    struct inf_load_job *job = calloc(1, sizeof *job);
    if (job == NULL) {
        free(decision);
        return;
    }
    job->keep = true;
    job->decision = decision;
    inf_loader_submit(store->loader, job);
}

// A race is over: where the winner is what runs already, that is all; else the model is placed anew.
static void finish_race(struct inf_model_store *store, struct inf_model_entry *entry,
                        struct inf_load_job *job)
{
    store->races--;
    if (entry != NULL)
        entry->races--;
    if (entry == NULL || entry->served != job->base || job->decision == NULL)
        return;
    struct inf_served *served = entry->served;
    const struct inf_race *race = &job->decision->race;
    const struct inf_race_entry *chosen = &race->entries[race->chosen];
    if (chosen->device == served->device &&
        inf_run_options_equal(&chosen->options, &served->placement.options)) {
        inf_placement_adopt(&served->placement, race);
        if (served->precision == INF_PRECISION_AUTO)
            inf_precision_explain(&served->placement, served->precision_reason);
        keep_decision(store, job->decision);
        job->decision = NULL;
        return;
    }
    const struct load_manner manner = {
        .again = true, .config = served->config, .decision = job->decision};
    const struct inf_load_request load = {.name = entry->name};
    struct inf_error ignored = {0};
    if (submit(store, entry, &load, &manner, &ignored) == INF_OK)
        job->decision = NULL;
}

void inf_model_store_demote(struct inf_model_store *store, struct inf_served *served,
                            const char *why)
{
    const struct inf_run_options fp32 = {.precision = INF_PRECISION_FP32};
    snprintf(served->precision_reason, sizeof served->precision_reason, "%.255s", why);
    inf_model_prefer(served->model, served->device, &fp32);
    struct inf_place_decision *decision =
        inf_placement_demote(&served->placement, served->device, why);
    if (decision != NULL)
        keep_decision(store, decision);
}

enum inf_code inf_model_store_inspect(struct inf_model_store *store, const char *name,
                                      uint64_t token, struct inf_inspect_order *order,
                                      struct inf_error *err)
{
    const struct load_manner manner = {.again = true, .dissect = order};
    const struct inf_load_request load = {.name = name, .token = token};
    struct inf_model_entry *entry;
    INF_TRY(look(store, name, "", &entry, err));
    return submit_asked(store, entry, &load, &manner, err);
}

enum inf_code inf_model_store_precompile(struct inf_model_store *store,
                                         const struct inf_precompile_request *request,
                                         struct inf_error *err)
{
    struct load_manner manner = {.again = true, .shapes = request->shapes};
    const struct inf_load_request load = {.name = request->name, .token = request->token};
    char wanted[INF_FLAG_WANTED_SIZE];
    struct inf_model_entry *entry;
    INF_TRY(look(store, request->name, request->version, &entry, err));
    manner.precompile_on = entry->served->device;
    if (!is_default(request->device))
        INF_TRY(inf_model_device_find(store->devices, request->device, &manner.precompile_on, err));
    if (!inf_shape_sets_check(request->shapes, wanted, sizeof wanted) ||
        strlen(request->shapes) >= INF_SERVED_SHAPES_TEXT)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                               "shapes '%.64s': wanted %s", request->shapes, wanted);
    return submit_asked(store, entry, &load, &manner, err);
}

void inf_model_store_remember(struct inf_model_store *store, struct inf_served *served)
{
    struct inf_load_job *job = calloc(1, sizeof *job);
    if (job == NULL)
        return;
    job->remember = true;
    job->base = inf_served_ref(served);
    inf_served_shapes_print(&served->seen, job->shapes);
    inf_loader_submit(store->loader, job);
}

enum inf_code inf_model_store_find_device(const struct inf_model_store *store, const char *name,
                                          struct inf_device **out_device, struct inf_error *err)
{
    return inf_model_device_find(store->devices, name, out_device, err);
}

enum inf_code inf_model_store_load_all(struct inf_model_store *store, struct inf_error *err)
{
    struct inf_load_job *job = calloc(1, sizeof *job);
    if (job == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory to read the repository");
    job->scan = true;
    store->pending++;
    store->scans++;
    inf_loader_submit(store->loader, job);
    return INF_OK;
}

// Starts loading what a scan found. What an admin has asked for of a model stays.
static void load_found(struct inf_model_store *store, const struct inf_model_names *names)
{
    for (uint32_t i = 0; names != NULL && i < names->count; i++) {
        const struct inf_load_request request = {.name = names->names[i]};
        struct inf_model_entry *entry = inf_model_table_obtain(&store->table, request.name);
        if (entry == NULL)
            return;
        struct load_manner manner = {.if_changed = true};
        inf_model_config_init(&manner.config);
        if (entry->served != NULL)
            inf_model_config_take_asked(&manner.config, &entry->served->config);
        struct inf_error err = {0};
        if (submit(store, entry, &request, &manner, &err) != INF_OK)
            snprintf(entry->reason, sizeof entry->reason, "%.255s", err.text);
    }
}

// --- events ---

// Brings the table up to date with a load that ended.
static void finish(struct inf_model_store *store, struct inf_model_entry *entry,
                   struct inf_load_job *job, struct inf_load_event *event)
{
    store->pending--;
    if (entry == NULL) {
        event->err = (struct inf_error){0};
        (void)inf_fail_reason(&event->err, INF_CANCELLED, INF_REASON_BY_ADMIN,
                              "model '%s' was unloaded while it was loading", job->name);
        return;
    }
    entry->pending--;
    if (changes_nothing(job))
        return;
    if (event->err.code != INF_OK) {
        snprintf(entry->reason, sizeof entry->reason, "%.255s", event->err.text);
        return;
    }
    entry->reason[0] = '\0';
    if (job->served == NULL) // unchanged
        return;
    if (job->base != NULL && job->base != entry->served) {
        (void)inf_fail_reason(&event->err, INF_CANCELLED, INF_REASON_BY_ADMIN,
                              "model '%s' was loaded anew while it was being placed", job->name);
        return;
    }
    if (job->base != NULL) // the same model to its users
        atomic_store(&job->served->request_count, atomic_load(&job->base->request_count));
    inf_served_unref(&entry->served);
    entry->served = job->served;
    job->served = NULL;
    // Nothing comes of it without memory: the rule stands.
    if (entry->served->placement.race_due)
        (void)start_race(store, entry, &(struct inf_error){0});
}

// The entry that a message is about; NULL where it is gone.
static struct inf_model_entry *entry_of(const struct inf_model_store *store, const char *name,
                                        const struct inf_load_job *job)
{
    struct inf_model_entry *entry = inf_model_table_find(&store->table, name);
    return entry != NULL && (job == NULL || entry->generation == job->generation) ? entry : NULL;
}

bool inf_model_store_next_event(struct inf_model_store *store, struct inf_load_event *event)
{
    struct inf_load_message *message;
    while ((message = inf_loader_receive(store->loader)) != NULL) {
        struct inf_load_job *job = message->job;
        bool ours = job != NULL &&
                    (job->scan || job->race || job->keep || job->remember); // nobody else's to know
        *event = message->event;
        message->event.rows = NULL; // the event's now
        if (ours && job->race) {
            finish_race(store, entry_of(store, job->name, job), job);
        } else if (ours && job->scan) {
            store->pending--;
            store->scans--;
            load_found(store, job->names);
        } else if (!ours) {
            struct inf_model_entry *entry = entry_of(store, event->name, job);
            if (entry != NULL && event->rows == NULL)
                snprintf(entry->pending_version, sizeof entry->pending_version, "%s",
                         event->version);
            if (event->final)
                finish(store, entry, job, event);
        }
        inf_load_message_destroy(&message);
        if (!ours)
            return true;
    }
    return false;
}

int inf_model_store_fd(const struct inf_model_store *store)
{
    return inf_loader_fd(store->loader);
}

uint32_t inf_model_store_pending(const struct inf_model_store *store)
{
    return store->pending;
}

// --- looking up ---

enum inf_code inf_model_store_unload(struct inf_model_store *store, const char *name,
                                     const char *version, struct inf_error *err)
{
    const struct inf_model_entry *entry = inf_model_table_find(&store->table, name);
    if (entry == NULL)
        return inf_fail_reason(err, INF_NOT_FOUND, INF_REASON_MODEL_NOT_FOUND,
                               "model '%.64s' is not loaded", name);
    const char *present = entry->served != NULL ? entry->served->version : entry->pending_version;
    if (version[0] != '\0' && strcmp(version, present) != 0)
        return inf_fail_reason(err, INF_NOT_FOUND, INF_REASON_VERSION_NOT_FOUND,
                               "model '%s' has no version '%.24s'; it has '%s'", name, version,
                               present);
    inf_model_table_remove(&store->table, name);
    return INF_OK;
}

enum inf_code inf_model_store_find(struct inf_model_store *store, const char *name,
                                   const char *version, struct inf_served **out_served,
                                   struct inf_error *err)
{
    struct inf_model_entry *entry;
    INF_TRY(look(store, name, version, &entry, err));
    *out_served = inf_served_ref(entry->served);
    return INF_OK;
}

uint32_t inf_model_store_list(struct inf_model_store *store, struct inf_model_row *rows,
                              uint32_t capacity)
{
    return inf_model_table_list(&store->table, rows, capacity);
}
