// SPDX-License-Identifier: Apache-2.0
// The thread that loads, warms up and frees models, so that the loop never waits for any of it.
// Jobs go to it and results come back as messages whose arrival an eventfd tells. It knows no table
// of models: that is the store's.
#ifndef INF_DAEMON_LOAD_LOADER_H
#define INF_DAEMON_LOAD_LOADER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "backends/base/idle_gate.h"
#include "backends/device/device.h"
#include "backends/exec/model.h"
#include "daemon/load/inspect.h"
#include "daemon/load/model_profile.h"
#include "daemon/load/placement.h"
#include "daemon/load/precision.h"
#include "daemon/load/replicas.h"
#include "daemon/model/config.h"
#include "daemon/model/repository.h"
#include "daemon/model/served_shapes.h"
#include "daemon/policy/batch_ladder.h"
#include "daemon/policy/latency_watch.h"
#include "proto/core/limits.h"

struct inf_loader;

// Room for an alarm's text.
#define INF_SHADOW_TEXT 384

// What checking a model's answers found.
struct inf_shadow_notes {
    uint64_t asked; // the loop's: requests so far
    _Atomic uint64_t checked, drifted, dropped;
    char alarm[INF_SHADOW_TEXT]; // of the first that drifted; fixed once `drifted` is not 0
};

// One version of one model, ready. Immutable but for the counters; shared by reference: the store
// holds one, every request in flight another.
struct inf_served {
    _Atomic uint32_t references;
    struct inf_loader *loader; // frees it; outlives every reference
    struct inf_served *next;   // the loader's
    char name[INF_LIMIT_MODEL_NAME + 1];
    char version[INF_VERSION_TEXT];
    char platform[40];              // "inferd_tfjs_graph_model"
    struct inf_model *model;        // one reference
    struct inf_device *device;      // where it runs unless a request names another; one reference
    struct inf_placement placement; // why there
    struct inf_model_config config; // what it was told
    enum inf_precision precision;   // that was wanted
    char precision_reason[INF_PRECISION_REASON]; // why it computes in what it does
    struct inf_replicas spread;                  // where else it may run
    struct inf_batch_ladder ladder; // whether and how its runs are shared, on that device
    struct inf_model_profile facts; // at the shapes it was warmed up with; 0 where it was not
    uint64_t stamp;                 // of its file
    uint64_t config_stamp;          // of its settings' file; 0: it has none
    uint64_t content_hash;          // of its file
    _Atomic uint64_t request_count; // answered with OK
    enum inf_precision
        warm_precision;             // what it computed in when it was warmed up; AUTO: it was not
    _Atomic uint64_t recomputed;    // answers that had to be computed again in fp32
    struct inf_shadow_notes shadow; // what checking its answers found (daemon/schedule/shadow.h)
    bool demoted;                   // the loop's: it was said that this model computes in fp32 now
    struct inf_latency_watch latency_watch; // the loop's: how fast it is
    struct inf_served_shape_set seen;       // the loop's: what it serves
    struct inf_shape
        *first_shapes; // that devices race with, one an input; NULL: not even ranks are known
};

// Another reference. Any thread.
struct inf_served *inf_served_ref(struct inf_served *served) INF_NODISCARD;

// Drops a reference and sets the pointer NULL. The last one hands it to the loader thread to be
// freed, so this never blocks. Any thread. NULL is fine.
void inf_served_unref(struct inf_served **served);

// Something that happened on the loader thread.
struct inf_load_event {
    uint64_t token;
    bool final;           // the load ended; else progress
    const char *stage;    // progress: "read", "optimise", "compile", "warm-up"; static
    uint32_t percent;     // progress
    struct inf_error err; // final: INF_OK, or why it failed
    char name[INF_LIMIT_MODEL_NAME + 1];
    char version[INF_VERSION_TEXT];
    struct inf_inspect_rows
        *rows; // of a dissection; NULL: none. free() is whoever's takes the event
};

// A message from the loader.
struct inf_load_message {
    struct inf_load_message *next; // the loader's
    struct inf_load_event event;
    struct inf_load_job *job; // final: the job with its outcome; progress: NULL
};

// A job for the loader, and then its outcome. Made by the sender, who gets it back with the final
// message.
struct inf_load_job {
    struct inf_load_job *next; // the loader's
    bool scan;                 // list the repository instead of loading a model
    uint64_t token;
    uint64_t generation; // the sender's
    char name[INF_LIMIT_MODEL_NAME + 1];
    char path[4096];                   // "": in the repository
    struct inf_device *default_device; // where nothing else is said; the list's. NULL: the best
    struct inf_model_config config;    // what admins ask for; the rest is the model's file's
    bool config_whole;                 // nothing is: no file is read
    bool precision_asked;              // somebody asks now; else that of `base` stands
    struct inf_place_rules rules;
    struct inf_served *base; // one reference: this is placed anew, no file is read; NULL: a file is
    struct inf_inspect_order *dissect;   // not NULL: base is looked into instead
    bool race;                           // candidates race for base instead: `placement` says which
    bool keep;                           // what was decided is only kept
    struct inf_placement placement;      // race: the base's
    struct inf_place_decision *decision; // what a race decided, or to go by; NULL: none. The job's
    struct inf_device *precompile_on; // not NULL: base is compiled for `shapes` instead; the list's
    bool remember;                    // `shapes` are what base serves: to be written down
    char shapes[INF_SERVED_SHAPES_TEXT]; // sets: by name to be compiled, in order to be remembered
    // What is served now, one reference: it is not loaded again where its file is the same, but placed
    // anew where its settings' file is another. NULL: load in any case.
    struct inf_served *known;

    struct inf_load_message message; // the final one, here so that memory for it cannot lack
    char version[INF_VERSION_TEXT];  // "" where it was not found
    bool unchanged;                  // it is what is served already
    struct inf_served *served;       // one reference; NULL on failure, or where unchanged
    struct inf_model_names *names;   // scan: what was found; NULL on failure
};

struct inf_loader_options {
    const char *repository;                // directory; NULL: none; outlives the loader
    const struct inf_device_list *devices; // all there are; outlives the loader
    struct inf_place_options place;        // the loader thread's
    const struct inf_evaluator *evaluator;
    struct inf_idle_gate *idle_gate; // whether anything is served; outlives the loader
    struct inf_loader *reports_to;   // who gets the messages, and outlives this one; NULL: itself
    bool gives_way;                  // to threads that somebody waits for: inf_thread_give_way()
    struct inf_served_shapes *seen;  // what models served last; the loader thread's
    uint32_t batch_rows_max; // rows of different requests that a model may run at once; 1: none
    const struct inf_log *log;
};

// Starts the thread. *out_loader is the caller's to destroy.
enum inf_code inf_loader_create(struct inf_loader **out_loader,
                                const struct inf_loader_options *options,
                                struct inf_error *err) INF_NODISCARD;

// Waits for a load under way, drops the jobs and messages that wait, frees every model that nobody
// refers to, and stops the thread. NULL is fine.
void inf_loader_destroy(struct inf_loader **loader);

// Queues a job from calloc(), filled down to `message`. Takes it over. Never blocks.
void inf_loader_submit(struct inf_loader *loader, struct inf_load_job *job);

// Readable while messages wait.
int inf_loader_fd(const struct inf_loader *loader);

// Takes the oldest message, the caller's to destroy; NULL where there is none. Never blocks. Call
// until NULL each time the fd is readable.
struct inf_load_message *inf_loader_receive(struct inf_loader *loader);

// Frees a message, and the job that a final one belongs to with all it refers to. NULL is fine.
void inf_load_message_destroy(struct inf_load_message **message);

// Frees a job that was never submitted. NULL is fine.
void inf_load_job_destroy(struct inf_load_job **job);

#endif
