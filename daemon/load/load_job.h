// SPDX-License-Identifier: Apache-2.0
// Jobs for the loader thread, their outcomes, and the messages that carry the outcomes back.
#ifndef INF_DAEMON_LOAD_LOAD_JOB_H
#define INF_DAEMON_LOAD_LOAD_JOB_H

#include "backends/base/idle_gate.h"
#include "daemon/load/inspect.h"
#include "daemon/load/served.h"

// Something that happened on the loader thread.
struct inf_load_event {
    uint64_t token;       // token of the job
    bool final;           // true: the job has ended; false: the event only reports progress
    const char *stage;    // progress: "read", "optimise", "compile", "warm-up" or "nodes"; static
    uint32_t percent;     // progress
    struct inf_error err; // if `final`: INF_OK, or the reason why the job failed
    char name[INF_LIMIT_MODEL_NAME + 1];
    char version[INF_VERSION_TEXT];
    // Rows of an inspection, which the receiver frees with free(); NULL: none.
    struct inf_inspect_rows *rows;
};

// A message from the loader.
struct inf_load_message {
    struct inf_load_message *next; // in the loader's queue
    struct inf_load_event event;
    struct inf_load_job *job; // if `final`: the job with its outcome; otherwise NULL
};

// Loads a model from its file, or places a model again that is already served.
struct inf_load_model_job {
    char path[4096]; // of the model file; "": find it in the repository by name
    // Device for models whose settings name no device; borrowed. If NULL, the loader chooses the
    // best one.
    struct inf_device *default_device;
    struct inf_model_config config; // the settings that admins set
    bool config_complete;           // `config` has all settings, so the settings file is not read
    bool precision_requested; // this job sets the precision; if false, `base` keeps its precision
    struct inf_place_rules rules; // for choosing a device
    // Result of an earlier race, which the placement uses instead of choosing again; owned. NULL:
    // none.
    struct inf_place_decision *decision;
    char shapes[INF_SERVED_SHAPES_TEXT]; // shapes served before, in the order of the inputs; ""
    // The served version. If its file is unchanged, the load is skipped. NULL: load always.
    struct inf_served *known;

    // The members below are the outcome of the job.
    bool unchanged;            // `known` is still up to date
    struct inf_served *served; // one reference; NULL on failure, or if unchanged
};

// Lists the models of the repository.
struct inf_load_scan_job {
    struct inf_model_names *names; // outcome; NULL on failure
};

// Races (times against each other) the candidates of a placement of `base`.
struct inf_load_race_job {
    struct inf_placement placement; // present placement of `base`
    // Allowed error of a candidate's outputs, as in struct inf_place_rules.
    double tolerance;
    struct inf_place_decision *decision; // outcome; owned; NULL on failure
};

// Adds the decision of a race to the tune database, the file of race results on disk.
struct inf_load_save_decision_job {
    struct inf_place_decision *decision; // owned
};

// Saves the shapes with which clients ran `base`, so that the next start compiles them in advance.
struct inf_load_save_shapes_job {
    // The shapes as text: sets of input shapes, in the order of the inputs.
    char shapes[INF_SERVED_SHAPES_TEXT];
};

// Inspects `base` node by node.
struct inf_load_inspect_job {
    struct inf_inspect_request *request; // owned
};

// Compiles `base` for further shapes.
struct inf_load_precompile_job {
    struct inf_device *device;           // borrowed from the device list
    char shapes[INF_SERVED_SHAPES_TEXT]; // sets by input name; "": the model's own
};

enum inf_load_job_kind {
    INF_LOAD_JOB_MODEL,
    INF_LOAD_JOB_SCAN,
    INF_LOAD_JOB_RACE,
    INF_LOAD_JOB_SAVE_DECISION,
    INF_LOAD_JOB_SAVE_SHAPES,
    INF_LOAD_JOB_INSPECT,
    INF_LOAD_JOB_PRECOMPILE,
    INF_LOAD_JOB_KINDS,
};

// A job for the loader, which also carries its outcome. The sender creates the job; the final
// message returns the job to the sender.
struct inf_load_job {
    struct inf_load_job *next; // in the loader's queue
    enum inf_load_job_kind kind;
    uint64_t token;      // chosen by the sender; the loader copies it into every event of this job
    uint64_t generation; // not used by the loader: lets the sender recognise outdated jobs
    char name[INF_LIMIT_MODEL_NAME + 1];
    // The served model that the job is about; one reference. For INF_LOAD_JOB_MODEL: if it is not
    // NULL, this model is placed again without reading its file; if NULL, the file is read.
    struct inf_served *base;
    union {
        struct inf_load_model_job model;
        struct inf_load_scan_job scan;
        struct inf_load_race_job race;
        struct inf_load_save_decision_job save_decision;
        struct inf_load_save_shapes_job save_shapes;
        struct inf_load_inspect_job inspect;
        struct inf_load_precompile_job precompile;
    };

    struct inf_load_message message; // the final message; embedded, so that sending it cannot fail
    char version[INF_VERSION_TEXT];  // outcome: of the model; "" if it was not found
};

// Options of all jobs of one loader.
struct inf_load_options {
    const char *repository; // directory of the models; NULL: none; outlives the loader
    const struct inf_device_list *devices; // all devices; outlives the loader
    struct inf_place_options place;        // used by the loader thread only
    const struct inf_evaluator *evaluator;
    // Makes races wait until the daemon is idle; outlives the loader.
    struct inf_idle_gate *idle_gate;
    // Input shapes with which each model was run before; used by the loader thread only.
    struct inf_served_shapes *served_shapes;
    uint32_t batch_rows_max; // rows that one run may batch; 1: no batches
    const struct inf_log *log;
};

// Callback that receives the progress of a job.
struct inf_load_progress_sink {
    void (*report)(void *context, const char *version, const char *stage, uint32_t percent);
    void *context;
};

// Creates a zeroed job of this kind. The caller owns the job until it is submitted. NULL without
// memory.
struct inf_load_job *inf_load_job_create(enum inf_load_job_kind kind) INF_NODISCARD;

// Frees a job that was never submitted, together with everything that the job owns. NULL is
// allowed.
void inf_load_job_destroy(struct inf_load_job **job);

// Frees a message; a final message is freed together with its job. NULL is allowed.
void inf_load_message_destroy(struct inf_load_message **message);

#endif
