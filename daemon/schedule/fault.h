// SPDX-License-Identifier: Apache-2.0
// An error that is sent to a client, with structured details for programs.
#ifndef INF_DAEMON_SCHEDULE_FAULT_H
#define INF_DAEMON_SCHEDULE_FAULT_H

#include "proto/core/limits.h"
#include "proto/core/shape.h"
#include "proto/core/status.h"
#include "proto/wire/message.h"

// An error with its details. A text that does not apply is "". Initialise with inf_fault_init().
struct inf_fault {
    struct inf_error err;
    uint32_t retry_after_ms; // suggested delay before the client tries again; 0: none
    const char *phase;       // where it failed: "frame", "queue", "exec" or "load"; NULL: unknown
    char model[INF_LIMIT_MODEL_NAME + 1];
    char version[24];
    char tensor[INF_LIMIT_TENSOR_NAME + 1];
    char expected[INF_SHAPE_TEXT_SIZE];
    char actual[INF_SHAPE_TEXT_SIZE];
};

// Resets the fault to INF_OK.
void inf_fault_init(struct inf_fault *fault);

// Records the name of the wrong tensor, the expected value and the actual value. An argument that
// is NULL leaves its field unchanged. Texts that are too long are cut.
void inf_fault_tensor(struct inf_fault *fault, const char *tensor, const char *expected,
                      const char *actual);

// Records the name and version of the model. An argument that is NULL leaves its field unchanged.
void inf_fault_model(struct inf_fault *fault, const char *model, const char *version);

// Converts the fault to a Status message. The texts of the message point into the fault.
void inf_fault_status(const struct inf_fault *fault, struct inf_status *status);

#endif
