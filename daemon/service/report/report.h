// SPDX-License-Identifier: Apache-2.0
// Reports are JSON texts about the slow requests and the events that the daemon remembers, and
// about what served models say about themselves.
#ifndef INF_DAEMON_SERVICE_REPORT_REPORT_H
#define INF_DAEMON_SERVICE_REPORT_REPORT_H

#include "daemon/observe/report_text.h"
#include "daemon/service/state.h"

// The most bytes of a report. All slow requests, with the longest names, need less than half of it.
#define INF_REPORT_BYTES_MAX ((size_t)1 << 20)

// The reader of a report, and what it asks for. An admin sees everything. Another client sees the
// slow requests of its own user, and all events except those for admins only.
struct inf_report_reader {
    const char *topic;
    uint64_t after; // for "events": number of the last event that the reader knows
    bool admin;
    struct inf_caller *caller; // the reader; NULL: the topic does not depend on it
    uint32_t uid;
    uint64_t client_id; // number of the reader's connection
    uint32_t reply_bytes_max;
};

// Prints a report, and makes it the data of an answer.
enum inf_code inf_service_make_report(struct inf_service *service,
                                      const struct inf_report_reader *reader,
                                      struct inf_answer *answer,
                                      struct inf_fault *fault) INF_NODISCARD INF_ON_LOOP;

// Prints the topic "slow": the remembered slow requests, as a list.
void inf_service_print_slow(const struct inf_service *service,
                            const struct inf_report_reader *reader,
                            struct inf_report_text *report) INF_ON_LOOP;

// Prints the topic "events": the remembered events after reader->after.
void inf_service_print_events(const struct inf_service *service,
                              const struct inf_report_reader *reader,
                              struct inf_report_text *report) INF_ON_LOOP;

// Prints the topic "memory": the budget of memory, what it is used for, and how often models were
// loaded and unloaded.
void inf_service_print_budget(struct inf_service *service,
                              struct inf_report_text *report) INF_ON_LOOP;

// The beginning of the topic about a model, which the name of the model follows.
#define INF_REPORT_MODEL_TOPIC "model "

// Prints the topic "model NAME" or "model NAME@VERSION": what the model says about itself.
//
// INF_INVALID  the topic has no name.
// INF_NOT_FOUND, INF_UNAVAILABLE, INF_PRECONDITION  as of inf_model_store_find().
enum inf_code inf_service_print_model(struct inf_service *service,
                                      const struct inf_report_reader *reader,
                                      struct inf_report_text *report,
                                      struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// If there is no event for the request yet, creates a call that waits for one, and sets
// answer->call. Otherwise leaves answer->call unchanged.
enum inf_code inf_service_begin_wait(struct inf_service *service, const struct inf_request *request,
                                     struct inf_answer *answer,
                                     struct inf_fault *fault) INF_NODISCARD INF_ON_LOOP;

#endif
