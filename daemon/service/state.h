// SPDX-License-Identifier: Apache-2.0
// The fields of the service. Only the files of this folder and of report/ include this header.
#ifndef INF_DAEMON_SERVICE_STATE_H
#define INF_DAEMON_SERVICE_STATE_H

#include "daemon/observe/event_log.h"
#include "daemon/observe/metrics.h"
#include "daemon/observe/slow_log.h"
#include "daemon/observe/timeline.h"
#include "daemon/observe/trace_writer.h"
#include "daemon/policy/model_waits.h"
#include "daemon/schedule/job.h"
#include "daemon/schedule/scheduler.h"
#include "daemon/schedule/shadow.h"
#include "daemon/service/activity.h"
#include "daemon/service/service.h"
#include "daemon/system/pressure.h"

// The most models in one answer; about this number fits into the metadata of a frame.
#define INF_SERVICE_MODELS_MAX 512

// The most facts (lines of name and value) in one answer of the Environment method.
#define INF_SERVICE_FACTS 192

// Buffer size for the names of the precisions of a device, such as "fp32,fp16".
#define INF_SERVICE_PRECISIONS_TEXT 32

// Memory for an answer of the Environment method.
struct inf_service_environment {
    uint32_t fact_count, flag_count;
    char fact_names[INF_SERVICE_FACTS][64];
    char fact_values[INF_SERVICE_FACTS][INF_FACT_TEXT];
    char flag_values[INF_FLAG_COUNT][INF_CONFIG_TEXT];
    char flag_wanted[INF_FLAG_COUNT][INF_FLAG_WANTED_SIZE];
    struct inf_fact_entry facts[INF_SERVICE_FACTS];
    struct inf_flag_entry flags[INF_FLAG_COUNT];
};

// Buffer size for the names of changed settings.
#define INF_CHANGED_NAMES 256

// What reading the configuration again has changed: names with commas between.
struct inf_config_changes {
    char live[INF_CHANGED_NAMES];    // settings that took effect
    char restart[INF_CHANGED_NAMES]; // settings that need a restart
    char error[INF_CHANGED_NAMES];   // why the configuration was not applied; "": it was
};

// A job of the model store that a client waits for: a load, a placement, a compilation, an
// inspection or a reload.
struct inf_load {
    struct inf_call call;
    uint64_t token; // number that every event of the job carries
    uint64_t accepted_ns;
    // Of a job that makes a flag persistent, or removes it: what is done when it has ended.
    enum inf_persistence persistence;
    bool ended;     // the final event of the job has come
    bool abandoned; // the client has left before that
    char flag[64], value[INF_CONFIG_TEXT];
    bool is_reload;
    struct inf_config_changes changes; // of a reload
    struct inf_load *next;
};

// A Report request that waits for an event whose number is greater than `after`.
struct inf_event_wait {
    struct inf_call call;
    uint64_t accepted_ns;
    uint64_t after;
    bool admin;
    uint32_t reply_bytes_max;
    struct inf_event_wait *next;
};

// A request that waits for its model to be loaded.
struct inf_waiting_request {
    struct inf_call call;
    struct inf_model_wait wait;
    struct inf_deadline deadline;
    struct inf_request request; // as it came, but `meta` is the copy below and `data` is owned
    char model[INF_LIMIT_MODEL_NAME + 1];
    uint8_t meta[];
};

struct inf_service {
    struct inf_service_options options;
    const struct inf_log *log; // log of the part INF_LOG_PART_SERVICE
    struct inf_scheduler *scheduler;
    struct inf_shadow *shadow;
    struct inf_scratch *scratch;
    struct inf_metrics *metrics;
    struct inf_slow_log *slow_log;
    struct inf_event_log *event_log;
    struct inf_trace_writer *trace_writer; // NULL: no traces are written
    struct inf_timeline timeline;
    uint64_t trace_random;              // state of the generator of trace ids
    struct inf_event_wait *event_waits; // requests that wait for an event
    uint64_t waits_checked; // events up to this number answer no request in `event_waits`
    // The list of models at the previous comparison (inf_service_watch_models()).
    struct inf_model_row *watched_models;
    uint32_t watched_model_count;
    bool draining;
    uint64_t started_ns;
    uint64_t turn_begin_ns; // time at which the present turn of the loop began; 0: none
    int statm_fd;           // descriptor of /proc/self/statm
    struct inf_pressure pressure;

    struct inf_call *unused_jobs; // empty jobs for reuse, linked by call.next
    struct inf_load *loads;
    struct inf_load *reload;            // the reload whose configuration is being read; NULL: none
    struct inf_model_waits model_waits; // of requests that wait for a model
    struct inf_deadlines *wait_deadlines; // of the same requests
    uint64_t last_token;
    // While a RepositoryModelLoad is handled: the directory descriptor of the request; -1: none.
    int load_directory_fd;
    // Number of models that the daemon moved to fp32, because answers in a lower precision were not
    // finite.
    uint64_t models_demoted;

    // The decoded request that is being handled, and the message with its answer.
    union inf_message request;
    union inf_message reply;
    struct inf_model_row *model_rows; // array of INF_SERVICE_MODELS_MAX elements, for answers
    struct inf_model_index_entry *model_entries;
    struct inf_device_entry device_entries[INF_REGISTRY_DEVICES];
    char device_precisions[INF_REGISTRY_DEVICES][INF_SERVICE_PRECISIONS_TEXT];
    struct inf_memory_entry memory_entries[INF_REGISTRY_DEVICES];

    struct inf_candidate_entry candidates[INF_RACE_ENTRIES + INF_REGISTRY_DEVICES];
    struct inf_declined_entry declined[INF_PROFILE_DECLINED];
    struct inf_setting_entry settings[INF_MODEL_FLAG_COUNT];
    char setting_values[INF_MODEL_FLAG_COUNT][INF_CONFIG_TEXT];
    char setting_wanted[INF_MODEL_FLAG_COUNT][INF_FLAG_WANTED_SIZE];
    char joined_steps[INF_STEPS_TEXT]; // what ModelPlacement says about joined steps
    struct inf_service_environment environment_reply;
    struct inf_activity activity; // memory for the answers of RequestList and ClientList
    const struct inf_client_directory *directory;
    void *directory_context;
    // While a ModelInspect request is being handled, the inspection that it asks for; otherwise
    // NULL.
    struct inf_inspect_request *inspection;
};

#endif
