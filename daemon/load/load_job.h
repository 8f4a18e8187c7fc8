// SPDX-License-Identifier: Apache-2.0
// Jobs for the loader thread, their outcomes, and the messages that carry the outcomes back.
#ifndef INF_DAEMON_LOAD_LOAD_JOB_H
#define INF_DAEMON_LOAD_LOAD_JOB_H

#include <stdatomic.h>

#include "backends/base/idle_gate.h"
#include "backends/saved/plan_cache.h"
#include "daemon/config/persisted.h"
#include "daemon/load/inspect.h"
#include "daemon/load/served.h"
#include "daemon/load/source/model_uses.h"
#include "daemon/model/access.h"
#include "daemon/model/load_journal.h"
#include "daemon/model/precision_results.h"
#include "daemon/model/saved_version.h"
#include "daemon/model/versions.h"

// A question of the loader: is there room for a model of so many bytes in the budget of memory?
struct inf_load_room {
    uint32_t ticket;    // number of the question; 0: the event asks nothing
    bool may_defer;     // no client waits for the model
    uint64_t bytes;     // estimate of the model's memory
    uint64_t waited_ns; // time since the load asked first
};

// What became of the question.
enum inf_room_answer {
    INF_ROOM_GRANTED,
    INF_ROOM_DEFERRED, // the model is not loaded until a request needs it
    INF_ROOM_REFUSED,
};

// What a reload does with a model of the repository.
enum inf_scan_outcome {
    INF_SCAN_REFUSED,   // it is not loaded
    INF_SCAN_LOADING,   // it is loaded, because it is new, has changed or did not load before
    INF_SCAN_REMOVED,   // the repository no longer has it
    INF_SCAN_UNCHANGED, // what is served or idle is up to date
    INF_SCAN_OUTCOMES,
};

// Returns the name of an outcome: "refused", "loading", "removed" or "unchanged".
const char *inf_scan_outcome_name(enum inf_scan_outcome outcome);

// What a scan found, sorted by outcome and name.
struct inf_scan_report {
    uint32_t count;
    struct inf_scan_row {
        char name[INF_LIMIT_MODEL_NAME + 1];
        enum inf_scan_outcome outcome;
        char reason[256]; // why it is refused, or what becomes of a removed model; "": none
    } rows[];
};

// A progress report or a result, sent by the loader thread about one job.
struct inf_load_event {
    uint64_t token;       // inf_load_job.token of the job that this event is about
    bool final;           // true: the job has ended; false: the event only reports progress
    const char *stage;    // "read", "optimise", "compile", "warm-up" or "nodes"; static
    uint32_t percent;     // how much of the job is done
    struct inf_error err; // if `final`: INF_OK, or the reason why the job failed
    char name[INF_LIMIT_MODEL_NAME + 1];
    char pin[INF_VERSION_TEXT]; // inf_load_job.pin of the job
    char version[INF_VERSION_TEXT];
    // A report about some nodes of an inspected model, which the receiver frees with free(); NULL:
    // none.
    struct inf_inspect_rows *rows;
    struct inf_load_room room;
    // What a scan of the repository found, which the receiver frees with free(); NULL: none.
    struct inf_scan_report *report;
};

// A message from the loader thread to the loop.
struct inf_load_message {
    struct inf_load_message *next; // link of the loader's message queue
    struct inf_load_event event;
    struct inf_load_job *job; // if `final`: the job with its outcome; otherwise NULL
};

// Loads a model from its file, or places a model again that is already served.
struct inf_load_model_job {
    // Path of the model file; "": find it in the repository by name. With a directory descriptor:
    // name of the file in the directory; "": the directory is laid out as in a repository.
    char path[4096];
    int directory_fd; // a descriptor that an admin sent; owned; -1: none
    // Device for models whose settings name no device; borrowed. If NULL, the loader chooses the
    // best one.
    struct inf_device *default_device;
    struct inf_model_config config; // settings that admins set for this model
    bool config_complete;           // true: `config` has all settings, so no file is read
    // The settings that the admin asks for with a placement; `config` has them too. The loader does
    // not use them; the store repeats the placement with them if necessary.
    struct inf_model_config asked;
    bool precision_requested;     // true: decide about the precision; false: keep that of `base`
    struct inf_place_rules rules; // rules for choosing a device for the model
    // Result of an earlier race, which the placement uses instead of choosing again; owned. NULL:
    // none.
    struct inf_place_decision *decision;
    // Input shapes with which clients ran the model, to be compiled too; "": none.
    char shapes[INF_SERVED_SHAPES_TEXT];
    // The version that is served at present; NULL: the model is idle, or the load is never skipped.
    struct inf_served *known;
    // The files that the served or idle model was loaded from; one reference. If they and its
    // settings are unchanged, the load is skipped. NULL: always load.
    struct inf_read_files *known_files;
    uint64_t known_config_stamp; // stamp of the settings of an idle model
    bool rereads_settings;       // the settings file is read even if it and the model are unchanged

    // True: the files are copied into the repository first, and the model is loaded from there. The
    // loader then clears `path` and closes `directory_fd`.
    bool saves;
    bool persists;      // what admins set in `config` holds after a restart of the daemon
    bool forgets;       // what admins made persistent for the model is removed first
    bool wanted;        // a request waits for the model
    bool by_admin;      // an admin asked for this load
    uint8_t priority;   // enum inf_model_priority: which of the queued loads goes first
    uint64_t uses;      // requests that the model has answered, for the same purpose
    bool may_defer;     // no client waits for the model, so it is not loaded if memory is short
    bool takes_kernels; // the model is placed again because its kernels have raced
    // The load of a model whose files changed a moment ago is put off: it does not run before
    // `not_before_ns` (inf_clock_ns(); 0: at once), and then if its files are those that the loader
    // has seen (a fingerprint; 0: not looked at yet). `settled`: the files need no such look.
    uint64_t not_before_ns, files_seen;
    bool settled;
    uint64_t expected_bytes; // memory of the model when it was loaded before; 0: not known

    // The members below are the outcome of the job, which the loader sets.
    enum inf_room_answer room;          // whether there was room in the budget of memory
    struct inf_model_versions versions; // the versions to serve; only set if `pin` is ""
    bool unchanged;                     // the served or idle model is still up to date
    // `access` is set, even if the load failed later. `access_failed`: the settings that say who
    // may use the model cannot be read.
    bool has_access, access_failed;
    struct inf_access access;         // who may use the model
    bool has_settings;                // `settings` is set
    struct inf_model_config settings; // all settings of the model
    struct inf_served *served;        // the loaded model, one reference; NULL: failed, or unchanged
};

struct inf_load_rank;

// The models that the store knows when a scan begins, one for each name.
struct inf_scan_known_models {
    uint32_t count;
    struct inf_scan_known {
        char name[INF_LIMIT_MODEL_NAME + 1];
        // Files and settings of the default version that is served or idle; one reference; NULL:
        // none is.
        struct inf_read_files *files;
        uint64_t config_stamp;
        bool rereads_settings; // as in struct inf_load_model_job
        bool is_served;
        bool outside; // the model was not loaded from the repository
    } models[];
};

// Frees the list with its references. NULL is allowed.
void inf_scan_known_models_destroy(struct inf_scan_known_models **known);

// Lists the models of the repository.
struct inf_load_scan_job {
    struct inf_scan_known_models *known; // owned; NULL: no report is wanted

    // Outcomes; owned by the job; NULL on failure.
    struct inf_model_names *names;
    struct inf_load_rank *ranks;    // of each name, with the priority of its settings
    struct inf_scan_report *report; // set if `known` is
};

// Races the candidates in a placement of `base`, that is, times them against each other, or the
// kernels of `base`.
struct inf_load_race_job {
    bool kernels;                   // true: kernels race; false: the candidates of the placement
    struct inf_placement placement; // present placement of `base`
    // Allowed error of a candidate's outputs, as in struct inf_place_rules.
    double tolerance;
    struct inf_place_decision *decision; // outcome of the race; owned; NULL on failure

    // Outcomes of a race of kernels, as inf_background_kernels_run() describes.
    bool kernels_changed, disturbed;
};

// Measures how many decoding steps of `base` should share a run (daemon/load/trial/step_trial.h).
struct inf_load_steps_job {
    struct inf_step_findings findings; // outcome of the trial, if it succeeds
};

// Compiles `base` for joined decoding steps with these buffers (daemon/load/trial/join_compile.h).
struct inf_load_join_job {
    struct inf_device *device;      // borrowed from `base`
    struct inf_run_options options; // precision, threads and user
    struct inf_shape *shapes;       // of the inputs for an empty history; owned
    struct inf_history_buffers buffers;
};

// Keeps the plan of `base` for the next load.
struct inf_load_save_plan_job {
    struct inf_plan_facts facts;
};

// Adds the decision of a race to the tune database, the file of race results on disk.
struct inf_load_save_decision_job {
    struct inf_place_decision *decision; // the decision to save; owned by the job
};

// Saves the shapes with which clients ran `base`, so that the next start compiles them in advance.
struct inf_load_save_shapes_job {
    // The shapes as text: sets of input shapes, in the order of the inputs.
    char shapes[INF_SERVED_SHAPES_TEXT];
};

// Keeps how much models were used.
struct inf_load_save_uses_job {
    struct inf_model_use_counts *counts; // owned by the job
};

// Makes a flag of the daemon persistent, or no longer so.
struct inf_load_persist_job {
    struct inf_persisted_setting setting;
    bool forgets; // true: remove the setting
};

// Removes a version that a save has put into the repository.
struct inf_load_deletion_job {
    char version[INF_VERSION_TEXT];     // number of the version; "": the only one
    struct inf_saved_version_rest rest; // outcome
};

// Inspects the served model `base` node by node.
struct inf_load_inspect_job {
    struct inf_inspect_request *request; // what to inspect; owned by the job
};

// Compiles the served model `base` for further shapes, or for a further device.
struct inf_load_precompile_job {
    struct inf_device *device; // device to compile for; borrowed from the device list
    // Sets of "NAME=SHAPE"; "": the model's own shapes. For INF_LOAD_JOB_STANDBY: sets of input
    // shapes that were served before, in the order of the inputs.
    char shapes[INF_SERVED_SHAPES_TEXT];
};

enum inf_load_job_kind {
    INF_LOAD_JOB_MODEL,
    INF_LOAD_JOB_SCAN,
    INF_LOAD_JOB_RACE,
    INF_LOAD_JOB_STEPS,
    INF_LOAD_JOB_JOIN,
    INF_LOAD_JOB_SAVE_DECISION,
    INF_LOAD_JOB_SAVE_SHAPES,
    INF_LOAD_JOB_SAVE_PLAN,
    INF_LOAD_JOB_SAVE_USES,
    INF_LOAD_JOB_SAVE_HANG, // notes in the journal that a run of `base` does not end
    INF_LOAD_JOB_INSPECT,
    INF_LOAD_JOB_PRECOMPILE,
    INF_LOAD_JOB_STANDBY, // compiles `base` for the device that takes over if its device is lost
    INF_LOAD_JOB_PERSIST,
    INF_LOAD_JOB_DELETE,
    INF_LOAD_JOB_KINDS,
};

// Why a job was cancelled.
enum inf_load_stop {
    INF_LOAD_STOP_NONE,     // it was not
    INF_LOAD_STOP_LIMIT,    // its time is up
    INF_LOAD_STOP_UNLOADED, // its model was unloaded
    INF_LOAD_STOP_SHUTDOWN, // the daemon ends
};

// A job for the loader, which also carries its outcome. The sender creates the job. When the job is
// done, the loader's final message returns it to the sender.
struct inf_load_job {
    struct inf_load_job *next; // link of the loader's job queue
    enum inf_load_job_kind kind;
    uint64_t token;      // chosen by the sender; the loader copies it into every event of this job
    uint64_t generation; // not used by the loader: lets the sender recognise outdated jobs
    char name[INF_LIMIT_MODEL_NAME + 1];
    // "": the job is about the default version. Otherwise the number of the further version that
    // the job is about.
    char pin[INF_VERSION_TEXT];
    // The served model that the job is about; one reference. For INF_LOAD_JOB_MODEL: if it is not
    // NULL, this model is placed again without reading its file; if NULL, the file is read.
    struct inf_served *base;
    union {
        struct inf_load_model_job model;
        struct inf_load_scan_job scan;
        struct inf_load_race_job race;
        struct inf_load_steps_job steps;
        struct inf_load_join_job join;
        struct inf_load_save_plan_job save_plan;
        struct inf_load_save_decision_job save_decision;
        struct inf_load_save_shapes_job save_shapes;
        struct inf_load_save_uses_job save_uses;
        struct inf_load_inspect_job inspect;
        struct inf_load_precompile_job precompile;
        struct inf_load_persist_job persist;
        struct inf_load_deletion_job deletion;
    };

    // Checked between the steps of the job. Only inf_load_job_cancel() sets the two members.
    atomic_bool cancelled;
    _Atomic enum inf_load_stop stop;

    struct inf_load_message message; // the final message; embedded, so that sending it cannot fail
    char version[INF_VERSION_TEXT];  // outcome: version of the model; "" if it was not found
};

// What a loader needs for all its jobs.
struct inf_load_options {
    const char *repository; // directory of the models; NULL: none; outlives the loader
    // The time without changes after which the files of a model have settled; 0: files that change
    // are not waited for.
    uint32_t settle_ms;
    const char *ready_file;                // file that a complete model directory has; "": none
    const struct inf_device_list *devices; // all devices; outlives the loader
    struct inf_place_options place;        // options for placing models; for the loader thread only
    const struct inf_evaluator *evaluator;
    bool asks_for_room; // a budget bounds the memory of models: each load asks whether it fits
    // Makes races wait until the daemon is idle; outlives the loader.
    struct inf_idle_gate *idle_gate;
    // Input shapes with which each model was run before; used by the loader thread only.
    struct inf_served_shapes *served_shapes;
    // Results of earlier precision checks; used by the loader thread only. NULL: none are kept.
    struct inf_precision_results *precision_results;
    struct inf_model_uses *uses;      // use of models; used by the loader thread only
    struct inf_load_journal *journal; // loads that did not end; used by the loader thread only
    // What admins made persistent; used by the loader thread only. NULL: nothing.
    struct inf_persisted *persisted;
    const char *build;            // version and build of inferd; outlives the loader
    struct inf_plan_cache *plans; // plans of earlier loads; used by the loader thread only
    uint32_t batch_rows_max;      // the most rows that one run may batch; 1: no batches
    // Bounds the executables that requests make; outlives every model.
    struct inf_arena_budget *arena_budget;
    const struct inf_log *log;
};

// Callbacks of a job.
struct inf_load_progress_sink {
    // Receives the progress; may be NULL. Called by inf_load_report().
    void (*report)(void *context, const char *version, const char *stage, uint32_t percent);
    // Waits until the budget of memory has room for a model; may block. Never called if
    // asks_for_room is false.
    //
    // INF_EXHAUSTED  (HOST_OOM) *out_answer is REFUSED, the text has the numbers.
    // INF_CANCELLED, INF_DEADLINE  the job was cancelled.
    enum inf_code (*reserve)(void *context, uint64_t bytes, bool may_defer,
                             enum inf_room_answer *out_answer, struct inf_error *err);
    void *context;
};

// Reports that the load of a version has begun a stage, `percent` of the whole load.
static inline void inf_load_report(const struct inf_load_progress_sink *progress,
                                   const char *version, const char *stage, uint32_t percent)
{
    if (progress->report != NULL)
        progress->report(progress->context, version, stage, percent);
}

// Creates a zeroed job of this kind. The caller owns the job until it is submitted. Returns NULL if
// memory is exhausted.
struct inf_load_job *inf_load_job_create(enum inf_load_job_kind kind) INF_NODISCARD;

// Cancels a job that is queued or running: it ends at its next step with INF_CANCELLED. The first
// reason counts. Any thread; the job must not be freed meanwhile.
void inf_load_job_cancel(struct inf_load_job *job, enum inf_load_stop why);

// If the job was cancelled, fills in an error that gives the reason and returns its code; INF_OK
// otherwise.
enum inf_code inf_load_job_check(const struct inf_load_job *job,
                                 struct inf_error *err) INF_NODISCARD;

// Frees a job that was never submitted, together with everything that the job owns. NULL is
// allowed.
void inf_load_job_destroy(struct inf_load_job **job);

// Frees a message; a final message is freed together with its job. NULL is allowed.
void inf_load_message_destroy(struct inf_load_message **message);

#endif
