// SPDX-License-Identifier: Apache-2.0
// A failure on its way to a client: the error, and beside it what a program may want to know.
#ifndef INF_DAEMON_SCHEDULE_FAULT_H
#define INF_DAEMON_SCHEDULE_FAULT_H

#include "proto/core/limits.h"
#include "proto/core/shape.h"
#include "proto/core/status.h"
#include "proto/wire/message.h"

// Strings are "" where they do not apply. inf_fault_init() before use.
struct inf_fault {
    struct inf_error err;
    uint32_t retry_after_ms; // 0: no advice
    const char *phase;       // static: "frame", "queue", "exec", "load"; NULL: none
    char model[INF_LIMIT_MODEL_NAME + 1];
    char version[24];
    char tensor[INF_LIMIT_TENSOR_NAME + 1];
    char expected[INF_SHAPE_TEXT_SIZE];
    char actual[INF_SHAPE_TEXT_SIZE];
};

// Makes the fault say "nothing is wrong".
void inf_fault_init(struct inf_fault *fault);

// Notes which tensor is at fault, what was wanted and what came; NULL leaves a field as it is. Texts
// that are too long are cut.
void inf_fault_tensor(struct inf_fault *fault, const char *tensor, const char *expected,
                      const char *actual);

// Notes which model was asked for; NULL leaves a field as it is.
void inf_fault_model(struct inf_fault *fault, const char *model, const char *version);

// The fault as a message; its strings are the fault's.
void inf_fault_status(const struct inf_fault *fault, struct inf_status *status);

#endif
