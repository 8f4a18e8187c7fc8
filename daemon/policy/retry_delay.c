// SPDX-License-Identifier: Apache-2.0
// Each attempt costs memory and time of the machine, so attempts that keep being disturbed become
// rare.
#include "daemon/policy/retry_delay.h"

void inf_retry_delay_note(struct inf_retry_delay *delay, uint64_t first_ns, uint64_t now_ns)
{
    delay->after_ns = now_ns + (first_ns << delay->gave_up);
    if (delay->gave_up < INF_RETRY_DOUBLINGS)
        delay->gave_up++;
}
