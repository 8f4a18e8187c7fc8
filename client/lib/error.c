// SPDX-License-Identifier: Apache-2.0
// The clock and the error structs of the library.
#include "client/lib/error.h"

#include <stdio.h>
#include <time.h>

uint64_t inf_client_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

int inf_client_report_error(struct inferd_error *err, const struct inf_error *error)
{
    if (err != NULL) {
        err->code = (int)error->code;
        err->retry_after_ms = 0;
        snprintf(err->reason, sizeof err->reason, "%s", inf_reason_name(error->reason));
        snprintf(err->text, sizeof err->text, "%s", error->text);
    }
    return (int)error->code;
}
