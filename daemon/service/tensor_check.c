// SPDX-License-Identifier: Apache-2.0
// Checks the tensors of a request against the inputs and outputs of its model, and writes the error
// texts.
#include "daemon/service/tensor_check.h"

#include <stdio.h>
#include <string.h>

#include "proto/core/tensor_name.h"

uint32_t inf_service_find_port(const struct inf_port *ports, uint32_t count, const char *name,
                               uint32_t guess)
{
    if (guess < count && strcmp(ports[guess].name, name) == 0)
        return guess;
    return inf_tensor_names_find(INF_TENSOR_NAMES(ports, count), name, strlen(name));
}

const char *inf_service_describe_value(const struct inf_value *value,
                                       char text[INF_SERVICE_VALUE_TEXT])
{
    char shape[INF_SHAPE_TEXT_SIZE];
    snprintf(text, INF_SERVICE_VALUE_TEXT, "%s %s", inf_dtype_name(value->dtype),
             inf_shape_print(&value->shape, shape));
    return text;
}

enum inf_code inf_service_refuse_tensor(const char *what, const char *name,
                                        const struct inf_port *ports, uint32_t count,
                                        struct inf_fault *fault)
{
    char names[512] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < count && used < sizeof names; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s'%s'", i == 0 ? "" : ", ",
                                 ports[i].name);
    inf_text_trim(names);
    inf_fault_tensor(fault, name, NULL, NULL);
    return inf_fail_reason(&fault->err, INF_INVALID, INF_REASON_TENSOR_UNKNOWN,
                           "%s '%s': the model has no such %s; it has %s", what, name, what, names);
}

enum inf_code inf_service_refuse_twice(const char *what, const char *name, struct inf_fault *fault)
{
    inf_fault_tensor(fault, name, NULL, NULL);
    return inf_fail_reason(&fault->err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                           "%s '%s' is named twice, with and without ':0'", what, name);
}

enum inf_code inf_service_check_input(const struct inf_tensor_entry *entry,
                                      const struct inf_value *value, struct inf_fault *fault)
{
    char expected[INF_SHAPE_TEXT_SIZE];
    char actual[INF_SHAPE_TEXT_SIZE];
    if (entry->dtype != value->dtype) {
        inf_fault_tensor(fault, entry->name, inf_dtype_name(value->dtype),
                         inf_dtype_name(entry->dtype));
        return inf_fail_reason(&fault->err, INF_INVALID, INF_REASON_DTYPE_MISMATCH,
                               "input '%s': datatype is %s, wanted %s", entry->name, fault->actual,
                               fault->expected);
    }
    if (!inf_shape_matches(&entry->shape, &value->shape)) {
        inf_fault_tensor(fault, entry->name, inf_shape_print(&value->shape, expected),
                         inf_shape_print(&entry->shape, actual));
        return inf_fail_reason(&fault->err, INF_INVALID, INF_REASON_SHAPE_MISMATCH,
                               "input '%s': shape is %s, wanted %s", entry->name, actual, expected);
    }
    return INF_OK;
}
