// SPDX-License-Identifier: Apache-2.0
// The functions of daemon/service/report/request_count.c without their work: no request and no turn
// of the loop is counted, and no slow request is noted. A daemon that is linked with this file
// shows what the counting costs (bench_recording.py).
#include "daemon/service/service.h"

void inf_service_end_of(struct inf_service *service, const struct inf_call *call,
                        struct inf_request_end *end)
{
    (void)service;
    (void)call;
    end->counted = end->recorded = false;
}

void inf_service_count_failure(struct inf_service *service, struct inf_request_end *end,
                               const struct inf_error *err)
{
    (void)service;
    (void)end;
    (void)err;
}

void inf_service_count_refusal(struct inf_service *service, uint16_t method, uint32_t uid,
                               const struct inf_fault *fault)
{
    (void)service;
    (void)method;
    (void)uid;
    (void)fault;
}

void inf_service_count_answer(struct inf_service *service, const struct inf_call *call,
                              uint64_t now_ns)
{
    (void)service;
    (void)call;
    (void)now_ns;
}

void inf_service_begin_turn(struct inf_service *service)
{
    (void)service;
}

void inf_service_end_turn(struct inf_service *service, uint64_t now_ns)
{
    (void)service;
    (void)now_ns;
}
