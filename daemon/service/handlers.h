// SPDX-License-Identifier: Apache-2.0
// What the handlers of the service share; for service*.c only.
#ifndef INF_DAEMON_SERVICE_HANDLERS_H
#define INF_DAEMON_SERVICE_HANDLERS_H

#include "daemon/schedule/job.h"
#include "daemon/schedule/scheduler.h"
#include "daemon/schedule/shadow.h"
#include "daemon/service/service.h"

// Models listed in one answer: what fits the metadata of a frame, roughly.
#define INF_SERVICE_MODELS_MAX 512

// Facts in one answer.
#define INF_SERVICE_FACTS 192

// Room for the precisions of a device.
#define INF_SERVICE_PRECISIONS_TEXT 32

// What an answer about the environment is made of.
struct inf_service_environment {
    uint32_t fact_count, flag_count;
    char fact_names[INF_SERVICE_FACTS][64];
    char fact_values[INF_SERVICE_FACTS][INF_FACT_TEXT];
    char flag_values[INF_FLAG_COUNT][INF_CONFIG_TEXT];
    char flag_wanted[INF_FLAG_COUNT][INF_FLAG_WANTED_SIZE];
    struct inf_fact_entry facts[INF_SERVICE_FACTS];
    struct inf_flag_entry flags[INF_FLAG_COUNT];
};

// A load that somebody waits for.
struct inf_load {
    struct inf_call call;
    uint64_t token;
    struct inf_load *next;
};

struct inf_service {
    struct inf_service_options options;
    struct inf_scheduler *scheduler;
    struct inf_shadow *shadow;
    struct inf_scratch *scratch;
    bool draining;
    uint64_t started_ns;
    int statm_fd; // /proc/self/statm

    struct inf_call *unused_jobs; // linked by call.next
    struct inf_load *loads;
    uint64_t last_token;
    uint64_t models_demoted; // put into fp32, since answers in less were not finite

    // The request being handled and the answer made of it.
    union inf_message request;
    union inf_message reply;
    struct inf_model_row *model_rows; // INF_SERVICE_MODELS_MAX each
    struct inf_model_index_entry *model_entries;
    struct inf_device_entry device_entries[INF_REGISTRY_DEVICES];
    char device_precisions[INF_REGISTRY_DEVICES][INF_SERVICE_PRECISIONS_TEXT];
    struct inf_memory_entry memory_entries[INF_REGISTRY_DEVICES];

    struct inf_candidate_entry candidates[INF_RACE_ENTRIES + INF_REGISTRY_DEVICES];
    struct inf_declined_entry declined[INF_FACTS_DECLINED];
    struct inf_setting_entry settings[INF_MODEL_FLAG_COUNT];
    char setting_values[INF_MODEL_FLAG_COUNT][INF_CONFIG_TEXT];
    char setting_wanted[INF_MODEL_FLAG_COUNT][INF_FLAG_WANTED_SIZE];
    struct inf_service_environment environment_reply;
    struct inf_inspect_order *inspect_order; // while its request is handled
};

// A handler: service->request holds the decoded request, the answer's message is service->reply.
typedef enum inf_code inf_service_handler(struct inf_service *service, struct inf_request *request,
                                          struct inf_answer *answer, struct inf_fault *fault);

inf_service_handler inf_service_server_live INF_ON_LOOP;
inf_service_handler inf_service_server_ready INF_ON_LOOP;
inf_service_handler inf_service_server_metadata INF_ON_LOOP;
inf_service_handler inf_service_server_status INF_ON_LOOP;
inf_service_handler inf_service_device_list INF_ON_LOOP;
inf_service_handler inf_service_memory_info INF_ON_LOOP;
inf_service_handler inf_service_model_ready INF_ON_LOOP;
inf_service_handler inf_service_model_metadata INF_ON_LOOP;
inf_service_handler inf_service_model_infer INF_ON_LOOP;
inf_service_handler inf_service_server_limits INF_ON_LOOP;
inf_service_handler inf_service_session_open INF_ON_LOOP;
inf_service_handler inf_service_session_close INF_ON_LOOP;
inf_service_handler inf_service_repository_index INF_ON_LOOP;
inf_service_handler inf_service_repository_load INF_ON_LOOP;
inf_service_handler inf_service_repository_unload INF_ON_LOOP;

inf_service_handler inf_service_model_placement INF_ON_LOOP;
inf_service_handler inf_service_model_place INF_ON_LOOP;
inf_service_handler inf_service_environment INF_ON_LOOP;
inf_service_handler inf_service_flag_set INF_ON_LOOP;
inf_service_handler inf_service_model_inspect INF_ON_LOOP;
inf_service_handler inf_service_model_precompile INF_ON_LOOP;

// Fails where an input's datatype or shape is not the model's.
enum inf_code inf_service_check_input(const struct inf_tensor_entry *entry,
                                      const struct inf_value *value,
                                      struct inf_fault *fault) INF_NODISCARD;

// Starts a load whose events have this token; service->request has what is wanted.
typedef enum inf_code inf_service_load_starter(struct inf_service *service, uint64_t token,
                                               struct inf_error *err);

// Starts a load that the request waits for; *answer gets the call.
enum inf_code inf_service_begin_load(struct inf_service *service, inf_service_load_starter *start,
                                     struct inf_answer *answer,
                                     struct inf_fault *fault) INF_NODISCARD INF_ON_LOOP;

// What kind a device is: "host", "cpu", "gpu", "software"; static.
const char *inf_service_device_kind(const struct inf_device_info *info);

// Lists what a device computes in: "fp32,fp16". Returns `text`.
const char *inf_service_list_precisions(const struct inf_device_info *info,
                                        char text[INF_SERVICE_PRECISIONS_TEXT]);

// Resident bytes of the daemon, as the kernel counts them; 0 where it does not say.
uint64_t inf_service_resident_bytes(const struct inf_service *service) INF_ON_LOOP;

// Changes a flag, as inf_environment_set(), and hands limits to those who keep copies of them.
enum inf_code inf_service_change_flag(struct inf_service *service, const char *name,
                                      const char *value, const struct inf_flag **out_flag,
                                      struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// --- session.c ---

// Notes which inputs and outputs of a job that is being filled its session gives and keeps: those that
// the request says, and those of the session's pairs that the model has and the request leaves out.
// `given` has a bit for each input that the request has.
enum inf_code inf_service_join_session(struct inf_job *job, const struct inf_infer_request *infer,
                                       const struct inf_request *request, uint64_t given,
                                       struct inf_fault *fault) INF_NODISCARD INF_ON_LOOP;

// Accepts a filled job of a session: it runs now, or when those before it have. On failure it is the
// caller's.
enum inf_code inf_service_enter_session(struct inf_service *service, struct inf_job *job,
                                        struct inf_fault *fault) INF_NODISCARD INF_ON_LOOP;

// A job that may have been accepted is over: the next one of its session has its turn.
void inf_service_leave_session(struct inf_service *service, struct inf_job *job) INF_ON_LOOP;

// A job of a session has run: what it keeps is the session's now.
enum inf_code inf_service_keep(struct inf_job *job,
                               struct inf_fault *fault) INF_NODISCARD INF_ON_LOOP;

// --- run_options.c ---

// Settles where and how a job runs whose model is known: on the device that the request names, or the
// model's own (another while that is lost), in the precision it names, or as the model is placed, and
// what is done beside, as the request or the model says.
enum inf_code inf_service_choose_run_options(struct inf_service *service, struct inf_job *job,
                                             const struct inf_request *request,
                                             struct inf_fault *fault) INF_NODISCARD INF_ON_LOOP;

// *out_precision = what `name` says, which the device has to offer; AUTO where it is "".
//
// INF_INVALID, INF_UNSUPPORTED  it is no precision, or none of the device's.
enum inf_code inf_service_choose_precision(const struct inf_device *device, const char *name,
                                           enum inf_precision *out_precision,
                                           struct inf_error *err) INF_NODISCARD;

// Gives a job that failed through its device's fault to another device, once. True: it is the
// scheduler's again. False: its result is the answer.
bool inf_service_retry_job(struct inf_service *service,
                           struct inf_job *job) INF_NODISCARD INF_ON_LOOP;

// Gives a job, not submitted yet, to that of the devices that its model is spread over on which it would
// be done first; it stays where it is where that makes no difference, or the request named a device.
void inf_service_route(struct inf_service *service, struct inf_job *job) INF_ON_LOOP;

// --- infer.c ---

// All inputs of a job are known: works out what hangs on their shapes.
void inf_service_measure_job(struct inf_job *job);

// Checks an input against what the model takes.
enum inf_code inf_service_check_input(const struct inf_tensor_entry *entry,
                                      const struct inf_value *value,
                                      struct inf_fault *fault) INF_NODISCARD;

// The index of the port called `name`, `count` where there is none. `guess` is looked at first.
uint32_t inf_service_find_port(const struct inf_port *ports, uint32_t count, const char *name,
                               uint32_t guess);

// Frees a job for the next inference: everything it holds is given back.
void inf_service_release_job(struct inf_service *service, struct inf_job *job) INF_ON_LOOP;

// The answer of a job that is done.
enum inf_code inf_service_job_result(struct inf_service *service, struct inf_job *job,
                                     struct inf_answer *answer,
                                     struct inf_fault *fault) INF_NODISCARD INF_ON_LOOP;

// A job has been answered with its result, by whomever: what that tells of the model.
void inf_service_note_job(struct inf_service *service, struct inf_job *job) INF_ON_LOOP;

// Takes a load off the list and frees it.
void inf_service_release_load(struct inf_service *service, struct inf_load *load) INF_ON_LOOP;

#endif
