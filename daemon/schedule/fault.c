// SPDX-License-Identifier: Apache-2.0
// Errors with structured details that clients can evaluate without parsing the text.
#include "daemon/schedule/fault.h"

#include <stdio.h>

void inf_fault_init(struct inf_fault *fault)
{
    fault->err.code = INF_OK;
    fault->err.reason = INF_REASON_NONE;
    fault->err.text[0] = '\0';
    fault->retry_after_ms = 0;
    fault->phase = NULL;
    fault->model[0] = '\0';
    fault->version[0] = '\0';
    fault->tensor[0] = '\0';
    fault->expected[0] = '\0';
    fault->actual[0] = '\0';
}

static void copy_text(char *field, size_t size, const char *text)
{
    if (text == NULL)
        return;
    snprintf(field, size, "%s", text);
    inf_text_trim(field);
}

void inf_fault_tensor(struct inf_fault *fault, const char *tensor, const char *expected,
                      const char *actual)
{
    copy_text(fault->tensor, sizeof fault->tensor, tensor);
    copy_text(fault->expected, sizeof fault->expected, expected);
    copy_text(fault->actual, sizeof fault->actual, actual);
}

void inf_fault_model(struct inf_fault *fault, const char *model, const char *version)
{
    copy_text(fault->model, sizeof fault->model, model);
    copy_text(fault->version, sizeof fault->version, version);
}

void inf_fault_status(const struct inf_fault *fault, struct inf_status *status)
{
    *status = (struct inf_status){0};
    inf_status_from_error(status, &fault->err);
    status->retry_after_ms = fault->retry_after_ms;
    status->phase = fault->phase;
    status->model = fault->model;
    status->version = fault->version;
    status->tensor = fault->tensor;
    status->expected = fault->expected;
    status->actual = fault->actual;
}
