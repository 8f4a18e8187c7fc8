// SPDX-License-Identifier: Apache-2.0
// Prints the parts of client/inferd.h that compiled programs depend on: the sizes of its structs,
// the places and sizes of their fields, and the numbers of its enums.
#include <stddef.h>
#include <stdio.h>

#include "client/inferd.h"

#define STRUCT(type)       printf("struct %s: %zu bytes\n", #type, sizeof(type))
#define FIELD(type, field) printf("  %s at %zu\n", #field, offsetof(type, field))
#define NUMBER(name)       printf("%s = %d\n", #name, (int)name)

static void print_requests(void)
{
    STRUCT(inferd_tensor);
    FIELD(inferd_tensor, shape);
    FIELD(inferd_tensor, data);
    FIELD(inferd_tensor, size);
    FIELD(inferd_tensor, memory);
    FIELD(inferd_tensor, session_tensor);
    STRUCT(inferd_request);
    FIELD(inferd_request, inputs);
    FIELD(inferd_request, outputs);
    FIELD(inferd_request, timeout_ms);
    FIELD(inferd_request, priority);
    FIELD(inferd_request, session);
    FIELD(inferd_request, order_key);
    STRUCT(inferd_session_options);
    FIELD(inferd_session_options, states);
    FIELD(inferd_session_options, max_length);
    STRUCT(inferd_session_state);
    FIELD(inferd_session_state, rank);
    FIELD(inferd_session_state, shape);
    STRUCT(struct inferd_error);
    FIELD(struct inferd_error, reason);
    FIELD(struct inferd_error, text);
    FIELD(struct inferd_error, retry_after_ms);
    STRUCT(inferd_timing);
}

static void print_answers(void)
{
    STRUCT(inferd_model_info);
    FIELD(inferd_model_info, inputs);
    STRUCT(inferd_model_row);
    FIELD(inferd_model_row, memory_bytes);
    STRUCT(inferd_device_row);
    FIELD(inferd_device_row, priority);
    FIELD(inferd_device_row, requests);
    STRUCT(inferd_server_status);
    FIELD(inferd_server_status, uptime_ns);
    FIELD(inferd_server_status, region_bytes);
    STRUCT(inferd_reload_row);
    FIELD(inferd_reload_row, reason);
    STRUCT(inferd_reload_report);
    FIELD(inferd_reload_report, config_error);
    STRUCT(inferd_request_row);
    FIELD(inferd_request_row, rows);
    STRUCT(inferd_client_row);
    FIELD(inferd_client_row, region_bytes);
    STRUCT(inferd_memory_row);
    FIELD(inferd_memory_row, num_bytes);
    STRUCT(inferd_memory_total);
    STRUCT(inferd_statistics);
    FIELD(inferd_statistics, in_flight);
    FIELD(inferd_statistics, without_shared_memory);
    STRUCT(inferd_checks);
}

int main(void)
{
    print_requests();
    print_answers();
    NUMBER(INFERD_CANCELLED);
    NUMBER(INFERD_UNAVAILABLE);
    NUMBER(INFERD_BOOL);
    NUMBER(INFERD_INT64);
    NUMBER(INFERD_FP64);
    NUMBER(INFERD_BYTES);
    NUMBER(INFERD_PRIORITY_LOW);
    NUMBER(INFERD_PADDED);
    NUMBER(INFERD_MOVED);
    return 0;
}
