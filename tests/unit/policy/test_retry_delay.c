// SPDX-License-Identifier: Apache-2.0
// The delay after an attempt that was disturbed. It doubles with each such attempt in a row.
#include <criterion/criterion.h>

#include "daemon/policy/retry_delay.h"

Test(retry_delay, doubles_eight_times)
{
    static const uint64_t delays[] = {5, 10, 20, 40, 80, 160, 320, 640, 1280, 1280, 1280};
    struct inf_retry_delay delay = {.after_ns = 0};
    for (uint32_t i = 0; i < sizeof delays / sizeof delays[0]; i++) {
        inf_retry_delay_note(&delay, 5, 1000 * i);
        cr_expect_eq(delay.after_ns, 1000 * i + delays[i], "attempt %u", i);
    }
    cr_expect_eq(delay.gave_up, 8u);
    // An attempt that is not disturbed clears the delay.
    delay = (struct inf_retry_delay){.after_ns = 0};
    inf_retry_delay_note(&delay, 7, 100);
    cr_expect_eq(delay.after_ns, 107u);
    cr_expect_eq(delay.gave_up, 1u);
}
