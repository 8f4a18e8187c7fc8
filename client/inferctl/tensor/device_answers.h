// SPDX-License-Identifier: Apache-2.0
// The answers of all devices in all their precisions to the same request.
#ifndef INF_CLIENT_INFERCTL_TENSOR_DEVICE_ANSWERS_H
#define INF_CLIENT_INFERCTL_TENSOR_DEVICE_ANSWERS_H

#include "client/inferctl/cli/command.h"

#define DEVICE_ANSWER_PRECISION_SIZE 8

// The answer of one device in one precision. There is no result if the device refused the request;
// then `error` says why.
struct device_answer {
    const char *device;
    char precision[DEVICE_ANSWER_PRECISION_SIZE];
    inferd_result *result;
    struct inferd_error error;
};

// Zero-initialise it, and free it with device_answers_fini(), whatever the other functions return.
struct device_answers {
    inferd_environment *environment;
    inferd_device_row *devices;
    size_t device_count;
    struct device_answer *answers; // the last element is that of the reference device in fp32
    size_t count;
};

// Lists the devices of the daemon, each with all its precisions, fp32 last. If `device` or
// `precision` is not NULL, lists only these and the reference device. Returns an exit code, and
// prints a message on failure.
int device_answers_list(struct device_answers *answers, inferd_client *client, const char *device,
                        const char *precision);

// Sends `request` to every listed device in every listed precision, the reference device first, and
// waits for all answers.
void device_answers_request(struct device_answers *answers, inferd_client *client,
                            const inferd_request *request);

// Returns the answer of the reference device.
const struct device_answer *device_answers_reference(const struct device_answers *answers);

// Returns the accepted difference of elements, absolute or relative to the element, whichever is
// larger, for the precision of an answer.
double device_answer_tolerance(const struct device_answer *answer);

void device_answers_fini(struct device_answers *answers);

#endif
