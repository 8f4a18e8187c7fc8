// SPDX-License-Identifier: Apache-2.0
// A model that is ready to answer requests, with everything that was decided about it when it was
// loaded.
#ifndef INF_DAEMON_LOAD_SERVED_H
#define INF_DAEMON_LOAD_SERVED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "backends/device/device.h"
#include "backends/exec/model/model.h"
#include "backends/import/common/description.h"
#include "backends/saved/plan_file.h"
#include "daemon/load/model_profile.h"
#include "daemon/load/placement.h"
#include "daemon/load/precision.h"
#include "daemon/load/race/compilations.h"
#include "daemon/load/replicas.h"
#include "daemon/model/config.h"
#include "daemon/model/repository.h"
#include "daemon/model/served_shapes.h"
#include "daemon/policy/batch_ladder.h"
#include "daemon/policy/latency_watch.h"
#include "daemon/policy/model_quota.h"
#include "daemon/policy/step_timing.h"
#include "proto/core/limits.h"

struct inf_loader;
struct inf_read_files;
struct inf_served;

// Buffer size for the alarm text of a shadow check, which repeats a request on the reference device
// and compares the outputs.
#define INF_SHADOW_TEXT 384

// Results of the shadow checks of one model (daemon/schedule/shadow.h).
struct inf_shadow_notes {
    // Number of requests to this model so far, by which the requests to check are chosen; only the
    // loop uses it.
    uint64_t requests;
    _Atomic uint64_t checked, drifted, dropped;
    // Describes the first answer that differed too much from the reference device; not changed
    // after `drifted` is set.
    char alarm[INF_SHADOW_TEXT];
};

// The most signatures (entry points) of a model file that are served beside the default one.
#define INF_SERVED_SIGNATURES 16u

// One signature of a model file beside the default one. Clients name it MODEL:KEY.
struct inf_served_signature {
    char key[INF_LIMIT_MODEL_NAME + 1];
    struct inf_served *served; // one reference; NULL: the signature is not served
    char reason[256];          // why the signature is not served; "" if it is
};

// One version of one model, ready to run. Immutable except for its counters and the fields marked
// "only the loop". Shared by reference: the store holds one reference, and every request in flight
// holds another.
struct inf_served {
    _Atomic uint32_t references;
    void (*retire)(struct inf_served *served); // called when the last reference is dropped
    struct inf_loader *loader;                 // frees the model; outlives every reference
    struct inf_served *next;                   // in the loader's list of models to free
    // Name of the model; MODEL:SIGNATURE if this is not the default signature of its file.
    char name[INF_LIMIT_MODEL_NAME + 1];
    char version[INF_VERSION_TEXT];
    char platform[40]; // format of the model file, such as "inferd_tfjs_graph_model"
    // What the model file says about itself; one reference; NULL: nothing.
    struct inf_model_description *description;
    // What the settings say about it, which overrides the file; one reference; NULL: nothing.
    struct inf_model_description *described;
    struct inf_model *model;        // graph and executables of the model; one reference
    struct inf_device *device;      // runs the model unless a request names another; one reference
    struct inf_placement placement; // why the model runs on `device`
    // The settings that the model was loaded with. The loop replaces those that take effect without
    // a load (inf_model_config_take_live()); other threads do not read them.
    struct inf_model_config config;
    // The account of the model for all its versions; one reference, which the store sets when it
    // begins to serve the model. Only the loop uses the account.
    struct inf_model_quota *quota;
    enum inf_precision precision;                // the precision that the settings ask for
    char precision_reason[INF_PRECISION_REASON]; // why the model computes in its present precision
    // Precision of the warm-up run; AUTO: there was no warm-up run.
    enum inf_precision warm_precision;
    struct inf_replicas replicas; // additional devices that may run the model
    // Row counts that are worth running as a batch on `device`, with their run times. If
    // inf_served_joins_steps() is true, a row is a decoding step of a session. The loop may then
    // set the ladder while the model is served, once. Another thread reads the ladder only for a
    // job that got a key for joined steps from the loop afterwards.
    struct inf_batch_ladder ladder;
    // Why the ladder of decoding steps is not longer; step_findings.ladder is empty. Once the model
    // is served, only the loop uses it.
    struct inf_step_findings step_findings;
    // Why the last compilation for joined steps failed; "": it did not. Only the loop uses it.
    char join_failure[INF_STEP_WHY];
    atomic_bool is_joining; // a job compiles the model for joined steps
    // Steps run one by one until this time (inf_clock_ns()), because a joined run failed although
    // each of its steps succeeded alone.
    _Atomic uint64_t join_after_ns;
    uint32_t rows_max; // the most rows that one run may have; 0: there was no warm-up
    // The ladder of decoding steps is to be measured. Once the model is served, only the loop uses
    // it.
    bool steps_due;
    // Facts about the plan for the warm-up shapes; all 0 if there was no warm-up.
    struct inf_model_profile profile;
    uint64_t stamp; // stamp of the model file; changes when the file changes
    // The files that the load has read; one reference.
    struct inf_read_files *files;
    _Atomic uint64_t config_stamp; // stamp of the settings file; 0: there is none
    // Hash of the model file and of the signature: two graphs of one file have different hashes.
    uint64_t content_hash;
    uint64_t file_hash; // hash of the model file alone
    // Key under which the plan of the model is kept for the next load
    // (backends/saved/plan_cache.h); 0: it is not kept.
    uint64_t cache_key;
    bool plan_due; // the plan has a key, and is not in the cache yet
    struct inf_plan_facts plan_facts;
    bool kernels_due; // kernels were chosen by rules, and may race; only the loop uses it
    // inf_background_kernels_count_overturned() before the load compiled the model.
    uint64_t kernels_overturned;
    // What the load has compiled, for a race of the kernels; NULL: kernels do not race.
    struct inf_compilations *compilations;
    // Key of the model in the journal of loads, for runs that do not end; 0: nothing is noted.
    uint64_t hang_key;
    bool reads_one_file;            // the model was read from its file, and from no other one
    _Atomic uint64_t request_count; // requests that were answered successfully (status OK)
    _Atomic uint64_t recomputed;    // number of answers that were computed again in fp32
    struct inf_shadow_notes shadow;
    // Shortens the search for the model's counters (daemon/observe/metrics.h); only the loop uses
    // it.
    uint64_t metrics_handle;
    // Number of the load that read the model's files. A model that is placed again keeps it.
    uint64_t load_number;
    uint64_t load_ns; // time that loading the model took
    uint64_t used_ns; // time of the last request or, if later, of the end of the load; loop only
    bool demoted;     // the model was moved to fp32 after wrong answers; only the loop uses it
    struct inf_latency_watch latency_watch; // only the loop uses it
    struct inf_served_shape_set shapes;     // shapes of recent requests; only the loop uses it
    // Shapes with which races run the model, one per input; NULL: not known.
    struct inf_shape *first_shapes;
    // Key of the default signature, which MODEL:KEY names too; "": it has none.
    char default_signature[INF_LIMIT_MODEL_NAME + 1];
    struct inf_served_signature *signatures; // the other signatures; owned
    uint32_t signature_count;
};

// Takes another reference to a model. May be called on any thread.
struct inf_served *inf_served_ref(struct inf_served *served) INF_NODISCARD;

// Drops a reference and sets the pointer to NULL. Dropping the last reference passes the model to
// the loader thread, which frees it, so this function never blocks. Any thread may call it. NULL is
// allowed.
void inf_served_unref(struct inf_served **served);

// Takes the outcome of a trial of joined steps (daemon/load/trial/step_trial.h), once. While the
// model is served, only the loop calls it.
void inf_served_take_steps(struct inf_served *served, const struct inf_step_findings *findings);

// Returns true if decoding steps of several sessions may run together, because requests append rows
// to a history. Requests that write rows over caches of a fixed size are not joined. No steps are
// joined while the ladder is empty. Any thread.
bool inf_served_joins_steps(const struct inf_served *served);

// Buffer size for the text of inf_served_explain_steps().
#define INF_STEPS_TEXT 512

// Writes to `text` how many decoding steps of several sessions run together at most, how much time
// that saves, and why no more do; "" if the model has no history. Returns `text`. Only the loop
// calls it.
const char *inf_served_explain_steps(const struct inf_served *served, char text[INF_STEPS_TEXT]);

// Writes MODEL:KEY, by which clients name a signature. It has at most INF_LIMIT_MODEL_NAME
// characters.
void inf_served_signature_name(char name[INF_LIMIT_MODEL_NAME + 1], const char *model,
                               const char *key);

// Finds the model that serves the signature `key` of the file of `served`. The result is borrowed
// from `served`.
//
// INF_NOT_FOUND     (MODEL_NOT_FOUND) the file has no such signature; the text lists those it has.
// INF_PRECONDITION  (MODEL_FAILED) the signature could not be loaded; the text says why.
enum inf_code inf_served_find_signature(struct inf_served *served, const char *key,
                                        struct inf_served **out_served,
                                        struct inf_error *err) INF_NODISCARD;

// Frees a model that has no references left, and sets the pointer to NULL. NULL is allowed.
void inf_served_destroy(struct inf_served **served) INF_MAY_BLOCK;

#endif
