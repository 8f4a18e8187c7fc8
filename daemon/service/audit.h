// SPDX-License-Identifier: Apache-2.0
// Log lines about requests: one line for every administrative act, which says who did what with
// which result, and, at level debug of the part `access`, one line for every request.
#ifndef INF_DAEMON_SERVICE_AUDIT_H
#define INF_DAEMON_SERVICE_AUDIT_H

#include "daemon/observe/request_record.h"
#include "daemon/service/service.h"

// Logs an administrative act at level notice: method, user id and process id of the client, what
// the act was about (such as a model or a flag), and its result. `message` is the decoded request
// of kind `kind`. An act that becomes a call, such as a load, is logged as "begun".
void inf_service_log_act(const struct inf_log *log, const struct inf_request *request,
                         enum inf_message_kind kind, const union inf_message *message,
                         const struct inf_error *err, bool begun) INF_ON_LOOP;

// Logs at level debug a request that was answered with an error at once.
void inf_service_log_refusal(const struct inf_log *log, const struct inf_request *request,
                             const struct inf_error *err) INF_ON_LOOP;

// Logs at level debug a request that was answered at once without an error.
void inf_service_log_reply(const struct inf_log *log,
                           const struct inf_request *request) INF_ON_LOOP;

// Logs at level debug an inference that has ended. `error` is the error text, or "" if it was
// answered with its result.
void inf_service_log_inference(const struct inf_log *log, const struct inf_request_record *record,
                               const char *error) INF_ON_LOOP;

#endif
