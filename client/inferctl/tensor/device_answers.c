// SPDX-License-Identifier: Apache-2.0
// Sends the same request to every device in every precision that it offers. The daemon reports the
// precisions of its devices as facts about its environment.
#include "client/inferctl/tensor/device_answers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/inferctl/text/fact.h"

// The default tolerance for differences from the reference device, the same as in the tests of
// TensorFlow.js.
#define TOLERANCE_DEFAULT 1e-3

// The tolerances that the daemon guarantees if a request chooses a reduced precision
// (docs/reference/requirements.md, R44).
#define TOLERANCE_FP16 1e-2
#define TOLERANCE_BF16 3e-2

#define PRECISIONS_MAX 5

void device_answers_fini(struct device_answers *answers)
{
    for (size_t i = 0; i < answers->count; i++)
        inferd_result_free(answers->answers[i].result);
    free(answers->answers);
    free(answers->devices);
    inferd_environment_free(answers->environment);
}

// Adds an entry to `answers` for each precision of a device ("fp32,fp16"), fp32 last.
static void add_device(struct device_answers *answers, const inferd_device_row *device,
                       const char *precisions)
{
    size_t first = answers->count;
    for (const char *at = precisions; *at != '\0' && answers->count < first + PRECISIONS_MAX;
         at += *at == ',') {
        size_t length = strcspn(at, ",");
        struct device_answer *answer = &answers->answers[answers->count++];
        answer->device = device->name;
        snprintf(answer->precision, sizeof answer->precision, "%.*s", (int)length, at);
        at += length;
    }
    for (size_t low = first, high = answers->count; low + 1 < high; low++, high--) {
        struct device_answer swapped = answers->answers[low];
        answers->answers[low] = answers->answers[high - 1];
        answers->answers[high - 1] = swapped;
    }
}

// Removes the answers of devices and precisions that are not selected. The reference device is
// always kept.
static int keep_selected(struct device_answers *answers, const char *device, const char *precision)
{
    size_t kept = 0;
    bool known = device == NULL;
    for (size_t i = 0; i < answers->count; i++) {
        const struct device_answer *answer = &answers->answers[i];
        bool same_device = device == NULL || strcmp(answer->device, device) == 0;
        bool same_precision = precision == NULL || strcmp(answer->precision, precision) == 0;
        known |= same_device;
        if ((same_device && same_precision) || i + 1 == answers->count)
            answers->answers[kept++] = *answer;
    }
    answers->count = kept;
    return known ? EXIT_OK : command_say(EXIT_NOT_FOUND, "there is no device '%s'", device);
}

int device_answers_list(struct device_answers *answers, inferd_client *client, const char *device,
                        const char *precision)
{
    struct inferd_error err;
    if (inferd_devices(client, &answers->devices, &answers->device_count, &err) != 0 ||
        inferd_environment_read(client, &answers->environment, &err) != 0)
        return command_failed(&err);
    answers->answers = calloc(answers->device_count * PRECISIONS_MAX + 1, sizeof *answers->answers);
    if (answers->answers == NULL)
        return command_say(EXIT_FAILED, "no memory for the answers");
    for (size_t i = 0; i < answers->device_count; i++)
        add_device(
            answers, &answers->devices[i],
            fact_find(answers->environment, "device", answers->devices[i].name, "precisions"));
    if (answers->count == 0)
        return command_say(EXIT_FAILED, "the daemon names no device with its precisions");
    return keep_selected(answers, device, precision);
}

void device_answers_request(struct device_answers *answers, inferd_client *client,
                            const inferd_request *request)
{
    for (size_t i = answers->count; i-- > 0;) {
        struct device_answer *answer = &answers->answers[i];
        inferd_request pinned = *request;
        pinned.device = answer->device;
        if (inferd_set_run_options(client, answer->precision, NULL, &answer->error) == 0 &&
            inferd_infer(client, &pinned, &answer->result, &answer->error) == 0)
            continue;
        answer->result = NULL;
    }
}

const struct device_answer *device_answers_reference(const struct device_answers *answers)
{
    return &answers->answers[answers->count - 1];
}

double device_answer_tolerance(const struct device_answer *answer)
{
    if (strcmp(answer->precision, "bf16") == 0)
        return TOLERANCE_BF16;
    return strcmp(answer->precision, "fp32") == 0 ? TOLERANCE_DEFAULT : TOLERANCE_FP16;
}
