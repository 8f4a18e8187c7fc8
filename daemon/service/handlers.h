// SPDX-License-Identifier: Apache-2.0
// The handlers of all methods, for the table in service.c.
#ifndef INF_DAEMON_SERVICE_HANDLERS_H
#define INF_DAEMON_SERVICE_HANDLERS_H

#include "daemon/service/service.h"

// Handles one method. service->request holds the decoded request, and service->reply receives the
// message of the answer. On failure `fault` gives the reason.
typedef enum inf_code inf_service_handler(struct inf_service *service, struct inf_request *request,
                                          struct inf_answer *answer, struct inf_fault *fault);

inf_service_handler inf_service_server_live INF_ON_LOOP;
inf_service_handler inf_service_server_ready INF_ON_LOOP;
inf_service_handler inf_service_server_metadata INF_ON_LOOP;
inf_service_handler inf_service_server_status INF_ON_LOOP;
inf_service_handler inf_service_device_list INF_ON_LOOP;
inf_service_handler inf_service_memory_info INF_ON_LOOP;
inf_service_handler inf_service_metrics INF_ON_LOOP;
inf_service_handler inf_service_model_ready INF_ON_LOOP;
inf_service_handler inf_service_model_metadata INF_ON_LOOP;
inf_service_handler inf_service_model_infer INF_ON_LOOP;
inf_service_handler inf_service_server_limits INF_ON_LOOP;
inf_service_handler inf_service_session_open INF_ON_LOOP;
inf_service_handler inf_service_session_close INF_ON_LOOP;
inf_service_handler inf_service_session_rewind INF_ON_LOOP;
inf_service_handler inf_service_repository_index INF_ON_LOOP;
inf_service_handler inf_service_repository_load INF_ON_LOOP;
inf_service_handler inf_service_repository_unload INF_ON_LOOP;
inf_service_handler inf_service_repository_reload INF_ON_LOOP;

inf_service_handler inf_service_request_list INF_ON_LOOP;
inf_service_handler inf_service_client_list INF_ON_LOOP;
inf_service_handler inf_service_request_cancel INF_ON_LOOP;
inf_service_handler inf_service_client_disconnect INF_ON_LOOP;

inf_service_handler inf_service_report INF_ON_LOOP;

inf_service_handler inf_service_model_placement INF_ON_LOOP;
inf_service_handler inf_service_model_place INF_ON_LOOP;
inf_service_handler inf_service_environment INF_ON_LOOP;
inf_service_handler inf_service_flag_set INF_ON_LOOP;
inf_service_handler inf_service_flag_persist INF_ON_LOOP;
inf_service_handler inf_service_model_inspect INF_ON_LOOP;
inf_service_handler inf_service_model_precompile INF_ON_LOOP;

#endif
